//! The CPU time for a gigabyte through Rust: the counterpart of throughput.cpp, line by line.
//! `throughput OCTETS FRAMES` prints CPU seconds per gigabyte.

use std::time::Duration;

use rushes::{Codec, Context, Delivery, Pacing};

#[cfg(target_os = "linux")]
fn cpu_seconds() -> Result<f64, nix::Error> {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

#[cfg(not(target_os = "linux"))]
fn cpu_seconds() -> Result<f64, std::io::Error> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let len = arguments.next().map_or(Ok(667_000), |len| len.parse())?;
    let frames = arguments.next().map_or(Ok(1000), |frames| frames.parse())?;
    let mut frame = vec![0x55; len];
    frame[..7].copy_from_slice(&[0, 0, 0, 1, 0x26, 1, 0x80]);

    let session = Context::new().session("127.0.0.1")?;
    let options = session.stream(Codec::H265).pacing(Pacing::Off).delivery(Delivery::Unit);
    let mut receiver = options.clone().open()?;
    let mut sender = options.remote_port(receiver.local_address().port()).open()?;
    let before = cpu_seconds()?;
    let mut received = 0;
    // One frame at a time, so that no socket buffer overflows.
    for _ in 0..frames {
        sender.push_frame(&frame, None)?;
        if let Some(got) = receiver.pull_frame(Duration::from_secs(1))? {
            received += u32::from(got.len() == len);
        }
    }
    let gigabytes = len as f64 * f64::from(frames) / 1e9;
    println!("{:.4}", (cpu_seconds()? - before) / gigabytes);
    if received == frames { Ok(()) } else { Err("frames were lost".into()) }
}
