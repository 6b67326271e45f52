//! Rate control over a path of limited rate, between sockets. Nothing here depends on how fast this
//! machine is: each step ends when the target has got where it must, and only its order counts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use rushes::proto::rtcp::{Arrival, Ecn, Writer};
use rushes::{
    Codec, Context, ControlEvent, Error, ExtensionKind, Fec, MediaStream, NtpTime, PayloadType,
    RateSettings, Recovery, SequenceNumber, Session, Ssrc, StreamBuilder,
};
use rushes_netsim::{Bottleneck, Path, Relay, Way};

const MS: Duration = Duration::from_millis(1);

/// Time after which a run counts as hung.
const HANGS: Duration = Duration::from_secs(120);

const KBIT: u64 = 1000;

fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

/// A path with a queue of 300 ms.
fn path(rate: u64) -> Path {
    let queue = (rate / 8 * 3 / 10) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Path { delay: 10 * MS, bottleneck, ..Path::default() }
}

/// A receiver that counts payload octets, and the relay in front of it.
fn receiver(builder: StreamBuilder) -> (MediaStream, Arc<AtomicU64>) {
    counting(builder.report_arrivals(true))
}

fn counting(builder: StreamBuilder) -> (MediaStream, Arc<AtomicU64>) {
    let mut receiver = builder.probation(1).open().unwrap();
    let octets = Arc::new(AtomicU64::new(0));
    let count = octets.clone();
    receiver
        .on_frame(move |frame| {
            count.fetch_add(frame.len() as u64, Relaxed);
        })
        .unwrap();
    (receiver, octets)
}

/// Pushes 30 frames per second of the size that the target asks for, until `is_done` of it.
fn encode(sender: &mut MediaStream, mut is_done: impl FnMut(u64) -> bool) {
    let begin = Instant::now();
    let mut next = begin;
    loop {
        let target = sender.rtcp().target_rate().unwrap();
        if is_done(target) {
            return;
        }
        assert!(begin.elapsed() < HANGS, "the target is {target}");
        sender.push_frame(&vec![7; (target / 8 / 30) as usize + 1], None).unwrap();
        next = Instant::now().max(next + 33 * MS);
        sender.sender().wait_until(next).unwrap();
    }
}

#[test]
fn the_target_follows_the_rate_of_the_path_without_loss() {
    let (receiver, _) = receiver(session().stream(Codec::Generic));
    follow(&receiver, session().stream(Codec::Generic));
}

/// Reports by transport-wide number cover repair packets and retransmissions, too.
#[test]
fn the_target_follows_reports_by_transport_wide_number() {
    let numbered = |builder: StreamBuilder| {
        let builder = builder.extension(5, ExtensionKind::TransportSequence.uri());
        builder.fec(Fec::percent(20)).recovery(Recovery::On)
    };
    let builder = numbered(session().stream(Codec::Generic)).report_transport_wide(true);
    let (receiver, _) = counting(builder);
    follow(&receiver, numbered(session().stream(Codec::Generic)));
}

/// Sends a stream of `builder` to `receiver` over a path whose rate changes.
fn follow(receiver: &MediaStream, builder: StreamBuilder) {
    let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
    relay.set_path(Way::There, path(2000 * KBIT));
    relay.set_path(Way::Back, Path { delay: 10 * MS, ..Path::default() });
    let rates = RateSettings::new(100 * KBIT, 300 * KBIT, 8000 * KBIT).unwrap();
    let builder = builder.remote_port(relay.address().port());
    let mut sender = builder.rate_control(rates).open().unwrap();
    let mut most = 0;
    encode(&mut sender, |target| target > 800 * KBIT);
    relay.set_path(Way::There, path(600 * KBIT));
    encode(&mut sender, |target| target < 550 * KBIT);
    relay.set_path(Way::There, path(2000 * KBIT));
    encode(&mut sender, |target| {
        most = most.max(target);
        target > 800 * KBIT
    });
    assert!(most < 2500 * KBIT, "{most}");
    let passed = relay.media(Way::There);
    // The path got slower once, with more in flight than its new queue holds.
    assert!(passed.overflowed * 10 < passed.sent, "{passed:?}");
    let statistics = sender.statistics().rate.unwrap();
    assert!(statistics.round_trip.unwrap() >= 20 * MS, "{statistics:?}");
    let events: Vec<_> = std::iter::from_fn(|| sender.rtcp().poll_event()).collect();
    let is_target = |event: &ControlEvent| matches!(event, ControlEvent::TargetRate { .. });
    assert!(events.iter().any(is_target), "{events:?}");
    // The reports are the controller's.
    let is_report = |event: &ControlEvent| {
        matches!(event, ControlEvent::Arrivals { .. } | ControlEvent::WideArrivals { .. })
    };
    assert!(!events.iter().any(is_report));
    assert!(!events.contains(&ControlEvent::NotReported), "{events:?}");
}

#[test]
fn streams_of_a_session_share_a_path_by_priority() {
    let (own, theirs) = (session(), session());
    let kinds = [(PayloadType::new(100).unwrap(), 1), (PayloadType::new(101).unwrap(), 2)];
    let (first, counted) = receiver(theirs.stream(Codec::Generic).payload_type(kinds[0].0));
    let at = first.local_address();
    let builder = theirs.stream(Codec::Generic).payload_type(kinds[1].0);
    let (second, others) = receiver(builder.local_port(at.port()));
    let relay = Relay::to(at).with_control().start().unwrap();
    relay.set_path(Way::There, path(2000 * KBIT));
    let rates = RateSettings::new(50 * KBIT, 150 * KBIT, 4000 * KBIT).unwrap();
    let mut port = 0;
    let mut senders = kinds.map(|(kind, priority)| {
        let builder = own.stream(Codec::Generic).payload_type(kind).rate_control(rates);
        let builder = builder.rate_priority(priority).local_port(port);
        let sender = builder.remote_port(relay.address().port()).open().unwrap();
        port = sender.local_address().port();
        sender
    });
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let [one, two] = &mut senders;
        scope.spawn(|| encode(one, |_| is_done.load(Relaxed)));
        encode(two, |target| target > 700 * KBIT);
        // Some more seconds of media, so that their octets can be compared.
        let before = others.load(Relaxed);
        encode(two, |_| others.load(Relaxed) > before + 300_000);
        is_done.store(true, Relaxed);
    });
    let [one, two] = senders.each_ref().map(|sender| sender.statistics().rate.unwrap().target);
    assert!((one * 2).abs_diff(two) <= two / 100, "{one} {two}");
    let [one, two] = [&counted, &others].map(|octets| octets.load(Relaxed));
    assert!(two > one * 3 / 2 && two < one * 3, "{one} {two}");
    let passed = relay.media(Way::There);
    assert!(passed.overflowed * 20 < passed.sent, "{passed:?}");
    drop(second);
}

/// Sends forged reports to `port` on all packets of `media`: lost or marked, and noise.
fn forge(from: &UdpSocket, port: u16, media: Ssrc) {
    let mut writer = Writer::new();
    for begin in (0..=u16::MAX).step_by(16_384) {
        let missing = (0..16_384)
            .map(|n| (n % 2 == 0).then_some((Ecn::Congestion, Arrival::Before(500 * MS))));
        writer.clear();
        writer.receiver_report(Ssrc(77), &[]);
        writer.congestion(Ssrc(77), [(media, SequenceNumber(begin), missing)], NtpTime(1 << 40));
        // A report of 32 KiB and some noise.
        from.send_to(writer.bytes(), ("127.0.0.1", port)).unwrap();
        from.send_to(&writer.bytes()[..61], ("127.0.0.1", port)).unwrap();
    }
}

/// Runs a stream beside a stranger that forges reports from `host`, until the target is at its
/// maximum; returns the sender.
fn beside_a_forger(host: &str, adjust: impl Fn(StreamBuilder) -> StreamBuilder) -> MediaStream {
    let (receiver, _) = receiver(adjust(session().stream(Codec::Generic)));
    let rates = RateSettings::new(50 * KBIT, 100 * KBIT, 400 * KBIT).unwrap();
    let builder = adjust(session().stream(Codec::Generic)).rate_control(rates);
    let mut sender = builder.remote_port(receiver.local_address().port()).open().unwrap();
    let stranger = UdpSocket::bind((host, 0)).unwrap();
    let (port, media) = (sender.local_address().port() + 1, sender.ssrc());
    let mut frames = 0;
    encode(&mut sender, |target| {
        forge(&stranger, port, media);
        frames += 1;
        target == 400 * KBIT && frames > 30
    });
    sender
}

#[test]
fn reports_that_another_host_forges_change_no_target() {
    let sender = beside_a_forger("127.0.0.2", |builder| builder);
    assert!(sender.statistics().foreign > 30);
}

#[cfg(feature = "srtp")]
#[test]
fn forged_reports_change_no_target_of_a_secured_stream() {
    use rushes::{Security, Suite};
    let suite = Suite::AeadAes128Gcm;
    let security = Security::shared(suite, &vec![7; suite.key_and_salt_len()]).unwrap();
    let sender = beside_a_forger("127.0.0.1", |builder| builder.security(security.clone()));
    let events: Vec<_> = std::iter::from_fn(|| sender.rtcp().poll_event()).collect();
    assert!(events.iter().any(|event| matches!(event, ControlEvent::Refused { .. })));
}

#[test]
fn forged_reports_for_a_stream_that_is_not_secured_leave_its_rate_within_limits() {
    let (receiver, octets) = receiver(session().stream(Codec::Generic));
    let rates = RateSettings::new(50 * KBIT, 100 * KBIT, 400 * KBIT).unwrap();
    let builder = session().stream(Codec::Generic).rate_control(rates);
    let mut sender = builder.remote_port(receiver.local_address().port()).open().unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, media) = (sender.local_address().port() + 1, sender.ssrc());
    let mut frames = 0;
    encode(&mut sender, |target| {
        assert!((50 * KBIT..=400 * KBIT).contains(&target), "{target}");
        forge(&stranger, port, media);
        frames += 1;
        frames > 60
    });
    // Whatever they say, frames are sent whole.
    let sent = sender.statistics().send.frame_octets;
    let begin = Instant::now();
    while octets.load(Relaxed) < sent {
        assert!(begin.elapsed() < HANGS, "{} of {sent}", octets.load(Relaxed));
        sender.sender().wait_until(Instant::now() + 10 * MS).unwrap();
    }
}

#[test]
fn a_peer_that_does_not_report_gets_the_minimum_and_the_application_an_event() {
    let mut receiver = session().stream(Codec::Generic).probation(1).open().unwrap();
    receiver.on_frame(drop).unwrap();
    let rates = RateSettings::new(50 * KBIT, 200 * KBIT, 400 * KBIT).unwrap();
    let builder = session().stream(Codec::Generic).rate_control(rates);
    let mut sender = builder.remote_port(receiver.local_address().port()).open().unwrap();
    encode(&mut sender, |target| target == 50 * KBIT);
    let events: Vec<_> = std::iter::from_fn(|| sender.rtcp().poll_event()).collect();
    let told = events.iter().filter(|event| **event == ControlEvent::NotReported).count();
    assert_eq!(told, 1, "{events:?}");
}

#[test]
fn settings_that_cannot_be_kept_are_refused() {
    let rates = RateSettings::new(1, 2, 3).unwrap();
    let stream = || session().stream(Codec::Generic).remote_port(9).rate_control(rates);
    assert!(matches!(stream().rtcp(false).open(), Err(Error::NoRtcp)));
    assert!(matches!(stream().rate_priority(0).open(), Err(Error::RatePriority)));
    let group = Context::new().session("239.255.82.84").unwrap();
    let group = group.stream(Codec::Generic).remote_port(9).rate_control(rates);
    assert!(matches!(group.open(), Err(Error::RateOfGroup { .. })));
}

#[test]
fn a_stream_without_rate_control_has_no_target() {
    let stream = session().stream(Codec::Generic).open().unwrap();
    assert_eq!((stream.rtcp().target_rate(), stream.statistics().rate), (None, None));
}

#[cfg(target_os = "linux")]
#[test]
fn packets_carry_the_mark_of_the_settings() {
    use rushes_net::SocketOptions;
    let reader =
        rushes_net::UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default())
            .unwrap();
    reader.enable_arrival_details();
    let mut arena = reader.arena();
    let rates = RateSettings::new(KBIT, 1000 * KBIT, 1000 * KBIT).unwrap();
    for (rates, mark) in [(rates, 0), (rates.ecn(true), 2), (rates.ecn(true).l4s(true), 1)] {
        let builder = session().stream(Codec::Generic).rate_control(rates);
        let port = reader.local_address().port();
        let mut sender = builder.remote_port(port).open().unwrap();
        sender.push_frame(b"frame", None).unwrap();
        let deadline = Instant::now() + HANGS;
        let datagrams = reader.receive(&mut arena, deadline, None).unwrap();
        let marks: Vec<_> = datagrams.map(|datagram| datagram.ecn).collect();
        assert_eq!(marks, [mark]);
    }
}

#[test]
fn repair_packets_take_their_part_of_the_target() {
    let rates = RateSettings::new(700 * KBIT, 1000 * KBIT, 8000 * KBIT).unwrap();
    for (percent, target) in [(25, 800 * KBIT), (100, 700 * KBIT)] {
        let builder = session().stream(Codec::Generic).rate_control(rates);
        let stream = builder.fec(Fec::percent(percent)).open().unwrap();
        assert_eq!(stream.rtcp().target_rate(), Some(target));
    }
}
