//! The circuit breakers of a sender (RFC 8083), in virtual time: two participants and a link that
//! loses media.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::net::SocketAddr;
use std::time::Duration;

use proptest::prelude::*;
use rushes_netsim::{Path, Seeded};
use rushes_proto::Ssrc;
use rushes_proto::control::{CircuitBreaker, ControlEvent};
use rushes_proto::rtcp::{ReportBlock, Writer};
use rushes_proto::timer::TimerConfig;

use world::reports::Session;

const SENDER: Ssrc = Ssrc(1);
const RECEIVER: Ssrc = Ssrc(2);

/// Octets of a packet's payload in [`Session::send_media`].
const PACKET: u64 = 100;

/// A sender of media and a receiver that reports, both by the rules of RTP/AVP.
struct Call {
    session: Session,
    random: Seeded,
    /// Packets each second, and the share of them that the path loses.
    rate: u64,
    loss: f64,
    sent: u64,
    /// Packets received, and the number of the newest.
    received: (u64, u64),
    /// Whether the receiver reports.
    reports: bool,
}

impl Call {
    fn new(rate: u64, loss: f64, round_trip_ms: u64) -> Self {
        let path = Path { delay: Duration::from_millis(round_trip_ms / 2), ..Path::default() };
        let mut session = Session::over(path);
        for ssrc in [SENDER, RECEIVER] {
            session.join(ssrc.0, |config| config.timer = TimerConfig::new(10_000_000));
        }
        session.parties[0].participant.set_circuit_breakers(true);
        let random = Seeded(7);
        Self { session, random, rate, loss, sent: 0, received: (0, 0), reports: true }
    }

    /// Sends for a number of seconds; returns the first circuit breaker that triggers, and after how
    /// many seconds.
    fn run(&mut self, seconds: u64) -> Option<(u64, CircuitBreaker)> {
        for tick in 1..=seconds * 50 {
            let due = self.rate * tick / 50 - self.rate * (tick - 1) / 50;
            for _ in 0..due {
                self.sent += 1;
                if self.random.unit() >= self.loss {
                    self.received = (self.received.0 + 1, self.sent);
                }
            }
            self.step();
            let mut events = self.session.parties[0].events.drain(..);
            let breaker = events.find_map(|event| match event {
                ControlEvent::CircuitBreaker(breaker) => Some(breaker),
                _ => None,
            });
            drop(events);
            if let Some(breaker) = breaker {
                return Some((tick / 50, breaker));
            }
        }
        None
    }

    fn step(&mut self) {
        let (received, highest) = self.received;
        self.session.send_media(0, self.sent);
        if self.reports && highest > 0 {
            self.session.receive_media(1, SENDER, highest, received);
        }
        if !self.reports {
            self.session.parties[1].received.clear();
        }
        self.session.run(Duration::from_millis(20));
    }

    /// Sends for a number of seconds, without a receiver in the session.
    fn run_alone(&mut self, seconds: u64) -> Option<CircuitBreaker> {
        for tick in 1..=seconds * 50 {
            self.sent += self.rate * tick / 50 - self.rate * (tick - 1) / 50;
            self.session.send_media(0, self.sent);
            self.session.run(Duration::from_millis(20));
        }
        self.session.parties[0].events.drain(..).find_map(|event| match event {
            ControlEvent::CircuitBreaker(breaker) => Some(breaker),
            _ => None,
        })
    }

    /// Lets `from` report on the sender's media now, from the receiver's address.
    fn report(&mut self, from: Ssrc, fraction_lost: u8, highest: u64) {
        let block = ReportBlock {
            ssrc: SENDER,
            fraction_lost,
            cumulative_lost: 0,
            highest: highest as u32,
            jitter: 0,
            last_sender_report: 0,
            delay: 0,
        };
        let mut writer = Writer::new();
        writer.receiver_report(from, &[block]);
        let (now, address) = (self.session.now(), SocketAddr::from(([192, 0, 2, 2], 5005)));
        let sent = self.session.parties[0].sent;
        let participant = &mut self.session.parties[0].participant;
        participant.note_sent(now, &sent);
        participant.handle_datagram(now, Some(address), writer.bytes()).unwrap();
    }
}

#[test]
fn heavy_loss_at_a_high_rate_triggers_after_three_reporting_intervals() {
    // 30 % at a round trip of 100 ms: TCP has 2.2 packets in flight, this stream 50.
    let mut call = Call::new(500, 0.3, 100);
    let (seconds, breaker) = call.run(60).expect("congestion");
    assert!((15..=30).contains(&seconds), "after {seconds} s");
    let CircuitBreaker::Congestion { lost, round_trip, bit_rate, tcp_bit_rate } = breaker else {
        panic!("{breaker:?}");
    };
    assert!((0.25..0.35).contains(&lost), "{lost}");
    assert!(round_trip.abs_diff(Duration::from_millis(100)) < Duration::from_millis(5));
    assert!(bit_rate.abs_diff(500 * PACKET * 8) < 20_000, "{bit_rate}");
    assert!(tcp_bit_rate * 10 < bit_rate, "{tcp_bit_rate}");
    // It triggers once.
    assert_eq!(call.run(60), None);
}

#[test]
fn the_loss_of_a_radio_link_does_not_trigger_at_a_low_rate() {
    // 2 % of 1 Mbit/s in packets of 1 200 octets, and 10 % of a call in packets of 20 ms.
    for (rate, loss, round_trip) in [(104, 0.02, 100), (50, 0.1, 200), (50, 0.3, 100)] {
        assert_eq!(Call::new(rate, loss, round_trip).run(120), None, "{rate}/s, {loss}");
    }
}

#[test]
fn a_short_round_trip_allows_high_rates() {
    // 1 % of 20 000 packets a second on a path of 2 ms: TCP has 12 in flight, this stream 40.
    assert_eq!(Call::new(20_000, 0.01, 2).run(60), None);
}

#[test]
fn congestion_that_passes_in_time_does_not_trigger() {
    let mut call = Call::new(500, 0.0, 100);
    assert_eq!(call.run(30), None);
    call.loss = 0.3;
    assert_eq!(call.run(2), None);
    call.loss = 0.0;
    assert_eq!(call.run(60), None);
}

#[test]
fn a_receiver_that_never_reports_triggers_nothing() {
    let mut call = Call::new(500, 0.3, 100);
    call.reports = false;
    assert_eq!(call.run(600), None);
}

#[test]
fn a_receiver_that_falls_silent_triggers_after_three_intervals() {
    let mut call = Call::new(500, 0.0, 100);
    assert_eq!(call.run(60), None);
    call.reports = false;
    let (seconds, breaker) = call.run(60).expect("a time-out");
    assert!((15 - 8..=45).contains(&seconds), "after {seconds} s");
    let CircuitBreaker::RtcpTimeout { silence } = breaker else { panic!("{breaker:?}") };
    assert!(silence >= Duration::from_secs(15), "{silence:?}");
}

#[test]
fn a_receiver_that_leaves_with_a_bye_may_come_back_at_any_time() {
    let mut call = Call::new(500, 0.0, 100);
    assert_eq!(call.run(60), None);
    let now = call.session.now();
    call.session.parties[1].participant.leave(now, "restart");
    call.reports = false;
    assert_eq!(call.run(300), None);
}

#[test]
fn feedback_alone_shows_that_the_receiver_is_alive() {
    let mut call = Call::new(500, 0.0, 100);
    call.session.parties.truncate(1);
    for second in 0..200 {
        if second < 10 {
            let highest = call.sent;
            call.report(RECEIVER, 0, highest);
        }
        let mut writer = Writer::new();
        writer.picture_loss(RECEIVER, SENDER);
        let now = call.session.now();
        let participant = &mut call.session.parties[0].participant;
        participant.handle_datagram(now, None, writer.bytes()).unwrap();
        assert_eq!(call.run_alone(1), None, "after {second} s");
    }
    assert!(call.run_alone(60).is_some());
}

#[test]
fn media_that_never_arrives_triggers_after_five_reports() {
    let mut call = Call::new(50, 0.0, 100);
    assert_eq!(call.run(30), None);
    // The receiver goes on reporting, and its highest sequence number stands still.
    call.session.parties.truncate(1);
    let highest = call.sent;
    let mut breaker = None;
    for _ in 0..6 {
        assert_eq!(breaker, None);
        breaker = call.run_alone(5);
        call.report(RECEIVER, 0, highest);
    }
    let breaker = breaker.or_else(|| call.run_alone(1));
    let Some(CircuitBreaker::MediaTimeout { reports, time }) = breaker else {
        panic!("{breaker:?}");
    };
    assert_eq!(reports, 5);
    assert!(time >= Duration::from_secs(24), "{time:?}");
}

#[test]
fn a_sender_that_pauses_is_not_stopped() {
    let mut call = Call::new(50, 0.0, 100);
    assert_eq!(call.run(30), None);
    call.rate = 0;
    call.reports = false;
    assert_eq!(call.run(200), None);
    (call.rate, call.reports) = (50, true);
    assert_eq!(call.run(60), None);
}

#[test]
fn a_player_that_reports_by_octets_is_not_taken_for_silent() {
    // FFmpeg reports after about 280 kB: after half a second, and in a silent scene after a minute.
    let mut call = Call::new(5000, 0.0, 100);
    call.session.parties.truncate(1);
    let mut reported = 0;
    for second in 0..900 {
        call.rate = if second % 300 < 60 { 5000 } else { 40 };
        assert_eq!(call.run_alone(1), None, "after {second} s");
        if (call.sent - reported) * PACKET > 280_000 {
            reported = call.sent;
            call.report(RECEIVER, 0, reported);
        }
    }
}

#[test]
fn forged_reports_of_a_stranger_trigger_nothing_while_the_receiver_reports_well() {
    let stranger = Ssrc(0xbad);
    let mut call = Call::new(500, 0.0, 100);
    for _ in 0..120 {
        assert_eq!(call.run(1), None);
        let highest = call.sent;
        call.report(stranger, 255, highest);
        call.report(stranger, 255, highest);
    }
    // The receiver's own reports still do.
    call.loss = 0.5;
    assert!(call.run(90).is_some());
}

#[test]
fn reports_from_elsewhere_trigger_nothing_and_push_out_no_receiver() {
    let mut call = Call::new(500, 0.0, 100);
    for second in 0..120 {
        assert_eq!(call.run(1), None, "after {second} s");
        let highest = call.sent;
        call.session.parties[0].participant.set_from_peer(false);
        (0..100).for_each(|n| call.report(Ssrc(1000 + n), 255, highest));
        call.session.parties[0].participant.set_from_peer(true);
    }
    let peers = call.session.parties[0].participant.remotes();
    assert!(peers.iter().any(|peer| peer.ssrc == RECEIVER && peer.reported.is_some()));
    // The receiver's own reports still do.
    call.loss = 0.5;
    assert!(call.run(90).is_some());
}

#[test]
fn no_number_of_forged_receivers_pushes_out_one_that_reports() {
    let mut call = Call::new(500, 0.0, 100);
    assert_eq!(call.run(20), None);
    for second in 0..60 {
        let highest = call.sent;
        (0..100).for_each(|n| call.report(Ssrc(1000 + n), 255, highest));
        assert_eq!(call.run(1), None, "after {second} s");
    }
}

#[test]
fn one_of_several_receivers_does_not_stop_the_stream_for_the_others() {
    let mut call = Call::new(500, 0.0, 100);
    for n in 0..100 {
        let highest = call.sent.saturating_sub(10);
        assert_eq!(call.run(1), None, "after {n} s");
        if n % 5 == 0 {
            call.report(Ssrc(3), 128, highest);
        }
    }
}

#[test]
fn a_stop_lasts_as_long_as_what_triggered_it() {
    let mut call = Call::new(500, 0.3, 100);
    assert!(call.run(60).is_some());
    call.loss = 0.0;
    let now = call.session.now();
    let participant = &mut call.session.parties[0].participant;
    let wait = participant.resume(now).expect_err("too early");
    assert!(wait <= Duration::from_secs(15) && wait > Duration::from_secs(14), "{wait:?}");
    assert_eq!(participant.resume(now + wait), Ok(()));
    assert_eq!(call.run(60), None);
    // The breakers work again.
    call.loss = 0.5;
    assert!(call.run(60).is_some());
}

#[test]
fn without_circuit_breakers_nothing_is_stopped() {
    let mut call = Call::new(500, 0.5, 100);
    call.session.parties[0].participant.set_circuit_breakers(false);
    assert_eq!(call.run(120), None);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Whatever is reported, and whenever: a stop needs fifteen seconds of sending, and there is one.
    #[test]
    fn no_reports_stop_a_sender_in_less_than_three_intervals(
        reports in prop::collection::vec((any::<u8>(), 0..2_u32, 0..2_u32, 0..60_u64), 1..200),
        rate in 1..5000_u64,
    ) {
        let mut call = Call::new(rate, 0.0, 20);
        call.session.parties.truncate(1);
        let mut ticks = 0;
        let mut triggered = None;
        for (fraction, highest, from, wait) in reports {
            for _ in 0..wait {
                ticks += 1;
                call.sent += rate / 50 + 1;
                call.session.send_media(0, call.sent);
                call.session.run(Duration::from_millis(20));
            }
            call.report(Ssrc(10 + from), fraction, highest.into());
            while let Some(event) = call.session.parties[0].participant.poll_event() {
                if let ControlEvent::CircuitBreaker(breaker) = event {
                    prop_assert!(triggered.is_none());
                    triggered = Some((ticks, breaker));
                }
            }
        }
        if let Some((ticks, breaker)) = triggered {
            prop_assert!(ticks * 20 >= 15_000, "{breaker:?} after {ticks}");
        }
    }
}
