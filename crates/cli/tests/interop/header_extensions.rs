//! Header extensions, and reports by transport-wide number, with pion and GStreamer at the other end.

use std::time::{Duration, Instant};

use rushes::{
    AudioLevel, Codec, Context, ControlEvent, ExtensionKind, FrameElements, MediaStream, Placement,
    RateSettings, StreamBuilder,
};

use crate::pion::pion;
use crate::rig::{Process, have_elements, ports};

/// The identifiers in `interop/pion/wide.go`.
const LEVEL: u8 = 1;
const NUMBER: u8 = 3;
const MID: u8 = 4;

/// Time after which a run counts as hung.
const HANGS: Duration = Duration::from_secs(60);

fn with_extensions(builder: StreamBuilder) -> StreamBuilder {
    builder
        .extension(LEVEL, ExtensionKind::AudioLevel.uri())
        .extension(NUMBER, ExtensionKind::TransportSequence.uri())
        .extension(MID, ExtensionKind::Mid.uri())
}

/// Sends frames of the size that the target asks for, until it has doubled: only reports raise it, as
/// without them it is halved each second.
fn follow(sender: &mut MediaStream) {
    let level = AudioLevel { below_overload: 30, has_voice: true };
    let elements = FrameElements::default().with(Placement::Every, LEVEL, level.to_bytes());
    let begin = Instant::now();
    loop {
        let target = sender.rtcp().target_rate().unwrap();
        if target > 200_000 {
            return;
        }
        assert!(begin.elapsed() < HANGS, "the target is {target}");
        let frame = vec![7; (target / 8 / 30) as usize];
        let now = Instant::now();
        sender.sender().push_frame_with(&frame, None, now, &elements).unwrap();
        sender.sender().wait_until(now + Duration::from_millis(33)).unwrap();
    }
}

fn rates() -> RateSettings {
    RateSettings::new(20_000, 100_000, 4_000_000).unwrap()
}

#[test]
fn reports_of_pion_drive_the_rate() {
    let Some(pion) = pion() else { return };
    let port = ports();
    let arguments = ["wide-recv", &format!("127.0.0.1:{port}")];
    let process = Process::start(pion.to_str().unwrap(), &arguments).listening(port);
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = with_extensions(session.stream(Codec::Generic)).mid("video").rtcp_mux(true);
    let mut sender = builder.remote_port(port).rate_control(rates()).open().unwrap();
    follow(&mut sender);
    let sent = sender.statistics().send.packets;
    drop(sender);
    let (out, err) = process.finish();
    assert!(err.is_empty(), "{err}");
    // pion reports only, so the source is never known by its SSRC.
    for line in ["mid=video", "level=30 voice=true"] {
        assert!(out.contains(&format!("{line} packets={sent}\n")), "{sent}\n{out}");
    }
}

#[test]
fn our_reports_drive_the_rate_of_pion() {
    let Some(pion) = pion() else { return };
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = with_extensions(session.stream(Codec::Opus)).rtcp_mux(true).probation(1);
    let mut receiver = builder.report_transport_wide(true).open().unwrap();
    let to = receiver.local_address().to_string();
    let process = Process::start(pion.to_str().unwrap(), &["wide-send", &to]);
    let mut frames = 0;
    while let Some(frame) = receiver.pull_frame(Duration::from_secs(2)).unwrap() {
        let level = frame.element(LEVEL).and_then(AudioLevel::from_data).unwrap();
        let expected = AudioLevel { below_overload: frames % 128, has_voice: frames % 2 == 0 };
        assert_eq!((frame.element(MID), level), (Some(&b"audio"[..]), expected));
        frames = frames.wrapping_add(1);
    }
    let (out, err) = process.finish();
    assert!(err.is_empty(), "{err}");
    let value = |name: &str| -> u64 {
        let found = out.split_whitespace().find_map(|word| word.strip_prefix(name));
        found.unwrap().parse().unwrap()
    };
    assert_eq!(receiver.statistics().receive.frames, 600);
    assert!(value("target=") > 105_000 && value("reports=") > 10, "{out}");
    assert!(value("received=") >= 590 && value("missing=") == 0, "{out}");
}

#[test]
fn reports_of_gstreamer_drive_the_rate() {
    if !have_elements(&["rtpbin", "udpsrc", "udpsink", "rtphdrexttwcc"]) {
        return;
    }
    let (port, own) = (ports(), ports());
    let caps = format!(
        "caps=application/x-rtp,media=video,clock-rate=90000,encoding-name=H264,payload=96,\
         extmap-{NUMBER}=(string){},rtcp-fb-transport-cc=(boolean)true",
        ExtensionKind::TransportSequence.uri()
    );
    let (at, to) = (format!("port={port}"), format!("port={own}"));
    let arguments = [
        "-q",
        "rtpbin",
        "name=bin",
        "rtp-profile=avpf",
        "udpsrc",
        "address=127.0.0.1",
        &at,
        &caps,
        "!",
        "bin.recv_rtp_sink_0",
        "bin.send_rtcp_src_0",
        "!",
        "udpsink",
        "host=127.0.0.1",
        &to,
        "sync=false",
        "async=false",
        // Without a sink for the media, the pipeline ends after the first packets.
        "bin.",
        "!",
        "fakesink",
        "sync=false",
        "async=false",
    ];
    let process = Process::start("gst-launch-1.0", &arguments).listening(port);
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = session.stream(Codec::Generic).payload_type(rushes::PayloadType::H264);
    let builder = with_extensions(builder).rtcp_mux(true).local_port(own).remote_port(port);
    let mut sender = builder.rate_control(rates()).open().unwrap();
    follow(&mut sender);
    let events: Vec<_> = std::iter::from_fn(|| sender.rtcp().poll_event()).collect();
    let (_, err) = process.stop_after(Duration::ZERO);
    assert!(!err.contains("ERROR"), "{err}");
    assert!(!events.contains(&ControlEvent::NotReported), "{events:?}");
}
