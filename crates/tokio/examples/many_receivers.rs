//! Receives audio on many ports in one task, and prints what arrives each second.
//!
//! `cargo run -p rushes-tokio --example many_receivers -- 100` receives on 100 ports for three seconds, to which
//! it also sends.

#[cfg(target_os = "linux")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    use std::time::Duration;

    use rushes::{Codec, Context, Poller};
    use rushes_tokio::{FrameSender, Frames};
    use tokio::time::{Instant, interval, sleep_until};

    let count: u64 = std::env::args().nth(1).map_or(Ok(10), |count| count.parse())?;
    let session = Context::new().session("127.0.0.1")?;
    let mut poller = Poller::new()?;
    let mut senders = Vec::new();
    for token in 0..count {
        let stream = session.stream(Codec::Opus).open()?;
        let port = stream.local_address().port();
        let (_, receiver) = stream.split()?;
        poller.add(receiver, token)?;
        let (sender, _) = session.stream(Codec::Opus).remote_port(port).open()?.split()?;
        senders.push(FrameSender::new(sender));
    }
    tokio::spawn(async move {
        let mut every = interval(Duration::from_millis(20));
        loop {
            every.tick().await;
            for sender in &mut senders {
                if let Err(error) = sender.push(b"\xfc twenty milliseconds", None).await {
                    eprintln!("a frame was not sent: {error}");
                }
            }
        }
    });
    let mut frames = Frames::new(poller)?;
    for second in 1..=3 {
        let end = Instant::now() + Duration::from_secs(1);
        let mut arrived = 0_u64;
        loop {
            tokio::select! {
                frame = frames.next() => {
                    frame?;
                    arrived += 1;
                }
                () = sleep_until(end) => break,
            }
        }
        println!("second {second}: {arrived} frames of {count} streams");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
