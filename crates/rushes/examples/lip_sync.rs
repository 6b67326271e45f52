//! Picture and sound on two streams of one context, presented together.
//!
//! Run with: `cargo run -p rushes --example lip_sync`

use std::time::{Duration, Instant};

use rushes::{Codec, Context, FrameRate, LipSync, MediaStream, Ssrc};

/// Returns when a frame of `stream` was captured, by the sender's wall clock, or `None` before the
/// first report.
fn captured(stream: &MediaStream, ssrc: Ssrc, at: rushes::RtpTimestamp) -> Option<rushes::NtpTime> {
    let peers = stream.rtcp().peers();
    let peer = peers.iter().find(|peer| peer.ssrc == ssrc)?;
    Some(peer.clock?.to_ntp(at))
}

fn main() -> Result<(), rushes::Error> {
    // One context gives both streams one canonical name and one wall clock.
    let session = Context::new().session("127.0.0.1")?;
    let mut screen = session.stream(Codec::H265).open()?;
    let mut speaker = session.stream(Codec::Opus).open()?;
    let port = |stream: &MediaStream| stream.local_address().port();
    let camera = session.stream(Codec::H265).remote_port(port(&screen));
    let mut camera = camera.frame_rate(FrameRate::from_f64(50.0).unwrap_or_default()).open()?;
    let mut microphone = session.stream(Codec::Opus).remote_port(port(&speaker)).open()?;

    let mut sync = LipSync::new(Duration::from_millis(5));
    let mut presented = Vec::new();
    let start = Instant::now();
    for n in 0..20 {
        microphone.sender().wait_until(start + n * Duration::from_millis(20))?;
        // Both are captured at the same instant, but encoding the picture takes longer.
        let instant = Instant::now();
        microphone.sender().push_frame_captured(&[0x08, 1, 2, 3], None, instant)?;
        std::thread::sleep(Duration::from_millis(8));
        camera.sender().push_frame_captured(b"\0\0\0\x01\x26\x01\x80picture", None, instant)?;

        for (name, stream) in [("sound", &mut speaker), ("picture", &mut screen)] {
            while let Some(frame) = stream.pull_frame(Duration::from_millis(1))? {
                let Some(ntp) = captured(stream, frame.ssrc(), frame.timestamp()) else { continue };
                sync.note_frame(ntp, Instant::now());
                if let Some(at) = sync.present_at(ntp) {
                    presented.push((name, ntp, at));
                }
            }
        }
    }
    for (name, ntp, at) in presented.iter().rev().take(4) {
        println!(
            "{name} captured at {:.3} s: present in {:.1} ms",
            ntp.unix().as_secs_f64(),
            at.saturating_duration_since(Instant::now()).as_secs_f64() * 1e3,
        );
    }
    println!("{} frames had a place on the common clock", presented.len());
    Ok(())
}
