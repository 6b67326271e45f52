//! Paced frames leave in bursts that a small switch can hold.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::time::Duration;

use rushes::{Burst, Codec, Context, Error, FrameRate, Pacing, SendPath, StreamBuilder};

/// Frames that are so close that pacing takes little time.
fn stream() -> StreamBuilder {
    let session = Context::new().session("127.0.0.1").unwrap();
    session.stream(Codec::Generic).frame_rate(FrameRate::new(200, 1).unwrap()).rtcp(false)
}

/// The system calls and datagrams of a frame of `len` octets.
fn sent(builder: StreamBuilder, len: usize) -> (u64, u64) {
    let mut receiver = stream().probation(1).open().unwrap();
    let port = receiver.local_address().port();
    let mut sender = builder.remote_port(port).send_path(SendPath::Gso).open().unwrap();
    let frame = vec![7; len];
    sender.push_frame(&frame, None).unwrap();
    let received = receiver.pull_frame(Duration::from_secs(10)).unwrap().unwrap();
    assert!(received[..] == frame[..]);
    let counters = sender.statistics().socket;
    (counters.send_calls, counters.sent_datagrams)
}

#[test]
fn by_default_a_frame_of_less_than_a_batch_is_spread_too() {
    let octets = Burst::default().octets;
    assert_eq!(sent(stream(), octets / 2).0, 1);
    assert_eq!(sent(stream(), octets + 1).0, 2);
    assert_eq!(sent(stream(), 5 * octets).0, 6);
    assert_eq!(sent(stream().pacing(Pacing::Off), octets + 1).0, 1);
}

#[test]
fn a_burst_at_a_low_rate_is_a_packet() {
    let (calls, datagrams) = sent(stream().pacing(Pacing::Rate(20_000_000)), 20_000);
    // 2 ms are 5 000 octets there: three packets.
    assert_eq!(calls, datagrams.div_ceil(3));
    let (calls, datagrams) = sent(stream().pacing(Pacing::Rate(5_000_000)), 20_000);
    assert_eq!((calls, datagrams), (14, 14));
    let burst = Burst { octets: 1 << 20, time: Duration::from_millis(40) };
    let (calls, _) = sent(stream().pacing(Pacing::Rate(5_000_000)).burst(burst), 20_000);
    assert_eq!(calls, 1);
}

#[test]
fn a_burst_contains_a_packet_however_small_it_is() {
    let burst = Burst { octets: 0, time: Duration::ZERO };
    let (calls, datagrams) = sent(stream().burst(burst), 20_000);
    assert_eq!(calls, datagrams);
}

#[test]
fn another_thread_can_end_a_frame_that_would_take_hours() {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let builder = stream().pacing(Pacing::Rate(1_000)).remote_port(port);
    let mut sender = builder.open().unwrap();
    let handle = sender.handle();
    let mut packet = [0; 2048];
    std::thread::scope(|scope| {
        let pushed = scope.spawn(|| sender.push_frame(&vec![7; 1_000_000], None));
        let first = receiver.recv(&mut packet).unwrap();
        handle.stop_sending();
        let ended = pushed.join().unwrap();
        assert!(matches!(ended, Err(Error::SendingStopped)), "{ended:?}");
        // A packet without payload, after a gap in the sequence numbers.
        let sequence = |packet: &[u8]| u16::from_be_bytes([packet[2], packet[3]]);
        let before = sequence(&packet);
        assert!(first > 1000 && receiver.recv(&mut packet).unwrap() < 100);
        assert!(sequence(&packet).wrapping_sub(before) > 1);
    });
    assert!(matches!(sender.push_frame(b"frame", None), Err(Error::SendingStopped)));
    sender.sender().send_keep_alive().unwrap();
    assert_eq!(sender.statistics().send.frames_cut, 1);
}
