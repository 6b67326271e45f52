//! Receives frames by polling.

use std::time::Duration;

use rushes::{Codec, Context};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Context::new().session("127.0.0.1")?;
    let mut stream = session.stream(Codec::H264).open()?;
    let port = stream.local_address().port();
    let sender = std::thread::spawn(move || play(port));

    let mut frames = 0;
    while let Some(frame) = stream.pull_frame(Duration::from_millis(500))? {
        // A decoder would take `&frame[..]` here; dropping the frame returns its memory.
        frames += 1;
        if frames % 10 == 0 {
            println!("frame {frames}: {} octets at {:?}", frame.len(), frame.timestamp());
        }
    }
    sender.join().map_err(|_| "the sender panicked")??;
    println!("{frames} frames, {:?}", stream.statistics().receive.discards);
    Ok(())
}

/// Sends thirty frames to `port`.
fn play(port: u16) -> Result<(), rushes::Error> {
    let mut stream =
        Context::new().session("127.0.0.1")?.stream(Codec::H264).remote_port(port).open()?;
    for number in 0..30_u8 {
        stream.push_frame(&[0, 0, 0, 1, 0x65, 0x80 | number, 0x55], None)?;
    }
    Ok(())
}
