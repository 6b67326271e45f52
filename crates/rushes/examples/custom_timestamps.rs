//! Timestamps set by the application: capture times in ticks of the stream's clock.

use std::time::{Duration, Instant};

use rushes::{ClockRate, Codec, Context, RtpTimestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let session = Context::new().session("127.0.0.1")?;
    let mut receiver = session.stream(Codec::H266).open()?;
    let port = receiver.local_address().port();
    let mut sender = session.stream(Codec::H266).remote_port(port).open()?;

    // The camera has no steady rate, so each frame carries its capture time.
    let clock = ClockRate::VIDEO;
    let start = Instant::now();
    for number in 0..5_u8 {
        std::thread::sleep(Duration::from_millis(3 * u64::from(number)));
        let captured = RtpTimestamp(clock.ticks(start.elapsed()));
        sender.push_frame(&[0, 0, 0, 1, 0x00, 0x01, 0x80 | number], captured)?;
    }
    let mut before = None;
    while let Some(frame) = receiver.pull_frame(Duration::from_millis(100))? {
        let ticks = before.map_or(0, |before| frame.timestamp().distance(before));
        println!("{:?}, {ticks} ticks after the one before", frame.timestamp());
        before = Some(frame.timestamp());
    }
    Ok(())
}
