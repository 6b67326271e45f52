//! A viewer requests a key frame, lost packets are retransmitted, and each side reports on the
//! other.
//!
//! Run with: `cargo run -p rushes --example key_frames_and_recovery`

use std::time::{Duration, Instant};

use rushes::{Codec, Context, ControlEvent, KeyFrameRequest, Recovery};

fn main() -> Result<(), rushes::Error> {
    let session = Context::new().session("127.0.0.1")?;
    // Both sides must agree on recovery; with it, requests are sent at once.
    let stream = || session.stream(Codec::H265).recovery(Recovery::On);
    let mut viewer = stream().open()?;
    let mut camera = stream().remote_port(viewer.local_address().port()).open()?;

    // The hook is called on the thread that reads the camera's port; `poll_event` would also work.
    let wanted = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let want = wanted.clone();
    camera.rtcp().on_event(move |event| {
        if let ControlEvent::KeyFrameRequested { from, request } = event {
            println!("{from} asks for a key frame: {request:?}");
            want.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });

    let access_unit = b"\0\0\0\x01\x26\x01\x80an intra picture";
    let start = Instant::now();
    let mut asked = false;
    while !wanted.load(std::sync::atomic::Ordering::Relaxed) && start.elapsed().as_secs() < 5 {
        camera.push_frame(access_unit, None)?;
        // An application that only sends waits like this to answer requests.
        camera.sender().wait_until(Instant::now() + Duration::from_millis(5))?;
        while viewer.pull_frame(Duration::from_millis(5))?.is_some() {
            if !asked {
                viewer.rtcp().request_key_frame(KeyFrameRequest::PictureLoss)?;
                asked = true;
            }
        }
    }
    for peer in viewer.rtcp().peers() {
        println!("{} ({}): round trip {:?}", peer.ssrc, peer.cname, peer.round_trip);
    }
    camera.rtcp().send_bye("the example is over")
}
