//! Sends frames to a port; here a few made-up H.265 access units.
//!
//! Run a receiver first: `rushes recv --from 5004 --codec h265 -o copy.265`, then
//! `cargo run --example send 127.0.0.1 5004`.

use rushes::{Codec, Context, FrameRate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let host = arguments.next().unwrap_or_else(|| "127.0.0.1".to_owned());
    let port = arguments.next().map_or(Ok(5004), |port| port.parse())?;

    let session = Context::new().session(&host)?;
    let mut stream = session
        .stream(Codec::H265)
        .remote_port(port)
        // Automatic timestamps and pacing follow the frame rate.
        .frame_rate(FrameRate::new(30, 1).ok_or("a rate of zero")?)
        .open()?;

    for number in 0..30_u8 {
        // An encoder's access unit: start code, NAL unit header, slice.
        let mut access_unit = vec![0, 0, 0, 1, 0x02, 0x01, 0x80 | number];
        access_unit.resize(20_000, 0x55);
        stream.push_frame(&access_unit, None)?;
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    println!("{:?}", stream.statistics().send);
    Ok(())
}
