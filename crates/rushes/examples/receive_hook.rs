//! Receives frames through a hook, which a thread of the library calls for each frame.

use std::sync::mpsc;
use std::time::Duration;

use rushes::{Codec, Context, Event};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Context::new().session("127.0.0.1")?;
    let mut receiver = session.stream(Codec::Generic).open()?;
    let mut sender =
        session.stream(Codec::Generic).remote_port(receiver.local_address().port()).open()?;

    let (frames, played) = mpsc::channel();
    // Losses are reported as soon as they are known. A real viewer would request a key frame here.
    receiver.receiver()?.on_event(|event| {
        if let Event::PacketsLost { packets, .. } = event {
            println!("{packets} packets lost");
        }
    });
    receiver.on_frame(move |frame| {
        // This fails only if the receiver of the channel was dropped.
        let _ = frames.send(frame.len());
    })?;

    for len in [100, 10_000, 1_000_000] {
        sender.push_frame(&vec![7; len], None)?;
    }
    for _ in 0..3 {
        println!("a frame of {} octets", played.recv_timeout(Duration::from_secs(1))?);
    }
    // Dropping the stream stops its thread.
    Ok(())
}
