//! Whole sessions of timers in virtual time, within the limits of RTCP's load (RFC 3550 section
//! 6.2).
//!
//! Every member is a real [`Timer`] with separate tables. The network is multicast with a constant
//! delay and no loss.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic and read the clock"
)]

use std::time::{Duration, Instant};

use rushes_proto::Ssrc;
use rushes_proto::timer::{Due, FeedbackTiming, Timer, TimerConfig};

use rushes_netsim::{Link, Path, Seeded};

const LEN: usize = 100;
const DELAY: Duration = Duration::from_millis(50);
/// The interval at which a sender's media are noted; the first is at the start.
const MEDIA: Duration = Duration::from_secs(8);

/// A packet under way, or one that was sent.
#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Time since the start of the session.
    sent: Duration,
    from: usize,
    due: Due,
    /// Whether it is an SR, which shows that `from` was a sender.
    sender: bool,
}

/// A multicast session; members with the lowest numbers send media.
#[derive(Clone)]
struct Session {
    start: Instant,
    members: Vec<Timer>,
    /// Nanoseconds from `start` to each member's next timeout.
    timeouts: Vec<u64>,
    senders: usize,
    next_media: Duration,
    flying: Link<Packet>,
    sent: Vec<Packet>,
    /// The timeouts: when, at which member, and of which member.
    timed_out: Vec<(Duration, usize, usize)>,
}

fn ssrc(member: usize) -> Ssrc {
    Ssrc(member as u32)
}

impl Session {
    /// Creates a session of `members` that all join at once; `senders` of them send media.
    fn join(config: TimerConfig, members: usize, senders: usize) -> Self {
        let start = Instant::now();
        let timer = |member| Timer::new(config, ssrc(member), member as u64 * 7919 + 1, start);
        let members: Vec<Timer> = (0..members).map(timer).collect();
        let timeouts = vec![0; members.len()];
        let mut session = Self {
            start,
            members,
            timeouts,
            senders,
            next_media: Duration::ZERO,
            flying: Link::new(Path { delay: DELAY, ..Path::default() }, 1),
            sent: Vec::new(),
            timed_out: Vec::new(),
        };
        (0..session.members.len()).for_each(|member| session.look_up_timeout(member));
        session
    }

    fn look_up_timeout(&mut self, member: usize) {
        let timeout = self.members[member].poll_timeout();
        self.timeouts[member] =
            timeout.map_or(u64::MAX, |timeout| (timeout - self.start).as_nanos() as u64);
    }

    fn run(&mut self, until: Duration) {
        loop {
            let (member, timeout) = self.earliest();
            let arrival = self.flying.next_due().unwrap_or(Duration::MAX);
            let next = timeout.min(arrival).min(self.next_media);
            if next > until {
                return;
            }
            if next == self.next_media {
                self.send_media(next);
            } else if next == arrival {
                self.deliver(next);
            } else {
                self.expire(member, next);
            }
        }
    }

    fn earliest(&self) -> (usize, Duration) {
        let least = self.timeouts.iter().copied().min().unwrap();
        let member = self.timeouts.iter().position(|timeout| *timeout == least).unwrap();
        (member, Duration::from_nanos(least))
    }

    fn send_media(&mut self, at: Duration) {
        let now = self.start + at;
        for sender in 0..self.senders {
            self.members[sender].note_sent_rtp(now);
            self.look_up_timeout(sender);
            self.members.iter_mut().for_each(|member| member.handle_rtp(now, ssrc(sender)));
        }
        self.next_media = at + MEDIA;
    }

    fn deliver(&mut self, at: Duration) {
        let now = self.start + at;
        let Packet { from, due, .. } = self.flying.poll(at).unwrap().item;
        for member in (0..self.members.len()).filter(|member| *member != from) {
            let timer = &mut self.members[member];
            timer.handle_compound(LEN, due == Due::Bye);
            if due == Due::Bye {
                timer.handle_bye(now, ssrc(from));
                self.look_up_timeout(member);
            } else {
                timer.handle_cname(now, ssrc(from));
            }
        }
    }

    fn expire(&mut self, from: usize, at: Duration) {
        let now = self.start + at;
        let timer = &mut self.members[from];
        let sender = timer.we_sent();
        let due = timer.handle_timeout(now);
        if due != Due::Nothing {
            timer.note_sent_rtcp(now, LEN);
            let packet = Packet { sent: at, from, due, sender };
            self.flying.push(at, LEN, packet);
            self.sent.push(packet);
        }
        while let Some(left) = timer.poll_left() {
            self.timed_out.push((at, from, left.0 as usize));
        }
        self.look_up_timeout(from);
    }

    /// The members from `first` on leave at once.
    fn leave(&mut self, first: usize, at: Duration) {
        for member in first..self.members.len() {
            self.members[member].want_bye(self.start + at, LEN);
            self.look_up_timeout(member);
        }
    }

    /// Returns the packets per second that `of` selects, from `from` to `to`.
    fn rate(&self, from: Duration, to: Duration, of: impl Fn(&Packet) -> bool) -> f64 {
        let sent = self.sent.iter().filter(|packet| (from..to).contains(&packet.sent));
        sent.filter(|packet| of(packet)).count() as f64 / to.saturating_sub(from).as_secs_f64()
    }

    /// Returns the maximum number of packets that `of` selects in any `window`.
    fn peak(&self, window: Duration, of: impl Fn(&Packet) -> bool) -> usize {
        let sent: Vec<Duration> =
            self.sent.iter().filter(|packet| of(packet)).map(|packet| packet.sent).collect();
        let mut first = 0;
        let mut peak = 0;
        for (last, at) in sent.iter().enumerate() {
            while sent[first] + window <= *at {
                first += 1;
            }
            peak = peak.max(last + 1 - first);
        }
        peak
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a configuration whose RTCP bandwidth is `rate` packets a second.
fn config(rate: u64) -> TimerConfig {
    let bandwidth = rate * LEN as u64 * 8 * 20;
    TimerConfig { packet_len: LEN, multiparty: true, ..TimerConfig::new(bandwidth) }
}

fn any(_: &Packet) -> bool {
    true
}

fn is_report(packet: &Packet) -> bool {
    packet.due == Due::Report
}

fn is_bye(packet: &Packet) -> bool {
    packet.due == Due::Bye
}

/// Asserts that `measured` differs from `expected` by at most the fraction `tolerance`.
fn assert_within(measured: f64, expected: f64, tolerance: f64) {
    let ratio = measured / expected;
    assert!((ratio - 1.0).abs() <= tolerance, "{measured} instead of {expected}");
}

/// Returns the times between the packets of `from` that `of` selects, in seconds.
fn gaps(session: &Session, from: usize, of: impl Fn(&Packet) -> bool) -> Vec<f64> {
    let mine = session.sent.iter().filter(|packet| packet.from == from && of(packet));
    let sent: Vec<f64> = mine.map(|packet| packet.sent.as_secs_f64()).collect();
    sent.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

// Steady state.

#[test]
fn two_members_report_every_five_seconds_far_below_their_bandwidth() {
    let mut session = Session::join(config(100), 2, 1);
    session.run(seconds(20_000));
    for member in 0..2 {
        let gaps = gaps(&session, member, any);
        assert!(gaps.iter().all(|gap| (2.052..6.157).contains(gap)));
        assert_within(mean(&gaps), 5.0, 0.02);
    }
    assert!(session.rate(seconds(0), seconds(20_000), any) < 0.41);
}

#[test]
fn fifty_members_use_their_bandwidth_a_quarter_of_it_for_the_senders() {
    let mut session = Session::join(config(1), 50, 5);
    session.run(seconds(10_000));
    let rate = |of: fn(&Packet) -> bool| session.rate(seconds(1_000), seconds(10_000), of);
    assert_within(rate(any), 1.0, 0.03);
    assert_within(rate(|packet| packet.sender), 0.25, 0.05);
}

#[test]
fn where_most_members_send_all_share_alike() {
    let mut session = Session::join(config(1), 50, 40);
    session.run(seconds(10_000));
    let rate = |of: fn(&Packet) -> bool| session.rate(seconds(1_000), seconds(10_000), of);
    assert_within(rate(any), 1.0, 0.03);
    assert_within(rate(|packet| packet.sender), 0.8, 0.05);
}

// Many join at once: RTCP's bandwidth is 40 packets a second.

/// Maximum number of packets in any second, and in any five seconds: three times the bandwidth.
const STORM_1S: usize = 120;
const STORM_5S: usize = 600;

#[test]
fn a_thousand_that_join_at_once_make_no_storm_and_settle_at_their_bandwidth() {
    let mut session = Session::join(config(40), 1_000, 100);
    session.run(seconds(400));
    let peaks = (session.peak(seconds(1), any), session.peak(seconds(5), any));
    assert!(peaks.0 <= STORM_1S && peaks.1 <= STORM_5S, "{peaks:?}");
    let rate = |of: fn(&Packet) -> bool| session.rate(seconds(240), seconds(400), of);
    assert_within(rate(any), 40.0, 0.05);
    assert_within(rate(|packet| packet.sender), 10.0, 0.07);
    assert_within(rate(|packet| !packet.sender), 30.0, 0.07);
    assert!(session.members.iter().all(|timer| (timer.members(), timer.senders()) == (1_000, 100)));
}

// Many leave at once: RTCP's bandwidth is 8 packets a second, and 900 of 1 000 leave.

const STAY: usize = 100;

/// Returns the session 250 s after most members left at 500 s.
fn left_behind() -> Session {
    let mut session = Session::join(config(8), 1_000, 20);
    session.run(seconds(500));
    assert!(session.timed_out.is_empty());
    session.leave(STAY, seconds(500));
    session.run(seconds(750));
    session
}

/// Returns the share of the 100 × 99 pairs of remaining members in which one timed out the other.
fn premature(session: &Session) -> f64 {
    let wrong = session.timed_out.iter().filter(|(_, _, who)| *who < STAY);
    wrong.count() as f64 / (STAY * (STAY - 1)) as f64
}

/// Maximum in any second: twice the 22 BYEs that 900 members, over 2 s, send within the delay of 50
/// ms.
const BYES_1S: usize = 45;
/// Maximum in any five seconds: three times the bandwidth.
const BYES_5S: usize = 120;

#[test]
fn nine_hundred_members_leaving_at_once_cause_no_storm_and_the_others_adapt() {
    let session = left_behind();
    let peaks = (session.peak(seconds(1), is_bye), session.peak(seconds(5), is_bye));
    assert!(peaks.0 <= BYES_1S && peaks.1 <= BYES_5S, "{peaks:?}");
    assert_eq!(session.sent.iter().filter(|packet| is_bye(packet)).count(), 900);
    assert!(premature(&session) < 0.01, "{}", premature(&session));
    assert!(session.members[..STAY].iter().all(|timer| timer.members() == STAY));
    assert_within(session.rate(seconds(650), seconds(750), is_report), 8.0, 0.1);
}

// Early feedback between two parties: RTCP's bandwidth is 8 packets a second, Td 0.25 s.

const FEEDBACK_MAX: Duration = Duration::from_millis(200);

fn avpf(regular_interval_min: Duration) -> Session {
    let feedback = Some(FeedbackTiming { regular_interval_min, delay_max: FEEDBACK_MAX });
    Session::join(TimerConfig { feedback, multiparty: false, ..config(8) }, 2, 2)
}

/// Runs for 1 000 s with events at `member` about every `spacing` seconds. Returns the delays, in
/// seconds, of the events for which feedback was scheduled, and the number of all events.
fn with_events(session: &mut Session, member: usize, spacing: f64) -> (Vec<f64>, usize) {
    let mut random = Seeded(11);
    let mut wait = || -spacing * ((random.below(1 << 32) + 1) as f64 / 2f64.powi(32)).ln();
    let (mut promised, mut events) = (Vec::new(), 0);
    let mut at = wait();
    while at < 1_000.0 {
        let event = Duration::from_secs_f64(at);
        session.run(event);
        events += 1;
        if session.members[member].want_feedback(session.start + event).is_some() {
            promised.push(event);
        }
        session.look_up_timeout(member);
        at += wait();
    }
    session.run(seconds(1_010));
    let mine: Vec<Duration> =
        session.sent.iter().filter(|packet| packet.from == member).map(|p| p.sent).collect();
    let told = |event: &Duration| mine[mine.partition_point(|sent| sent < event)];
    let delays =
        promised.iter().map(|event| told(event).as_secs_f64() - event.as_secs_f64()).collect();
    (delays, events)
}

#[test]
fn rare_events_are_reported_at_once() {
    let mut session = avpf(Duration::ZERO);
    let (delays, events) = with_events(&mut session, 0, 2.0);
    assert!(delays.len() * 100 > events * 90, "{} of {events}", delays.len());
    let at_once = delays.iter().filter(|delay| **delay < 1e-6).count();
    assert!(at_once * 100 > events * 80, "{at_once} of {events}");
}

#[test]
fn feedback_keeps_its_delay_and_its_bandwidth_however_many_the_events() {
    let mut session = avpf(Duration::ZERO);
    let (delays, events) = with_events(&mut session, 0, 0.05);
    assert!(events > 19_000);
    // Reconsideration may delay the report with which feedback is sent, by at most 1.23 Td.
    let late = delays.iter().filter(|delay| **delay > FEEDBACK_MAX.as_secs_f64()).count();
    assert!(late * 5 < delays.len(), "{late} of {}", delays.len());
    let limit = FEEDBACK_MAX.as_secs_f64() + 1.2313 * 0.25;
    assert!(delays.iter().all(|delay| *delay < limit));
    let rate = session.rate(seconds(10), seconds(1_000), any);
    // The member with events sends a tenth more, because the report that an early packet replaces
    // is counted at T_rr, which the compensation for reconsideration has made shorter than Td.
    assert!(rate < 8.0 * 1.07, "{rate}");
    assert!(session.rate(seconds(10), seconds(1_000), |p| p.due == Due::Feedback) > 1.0);
}

#[test]
fn without_events_two_parties_with_feedback_report_at_their_bandwidth() {
    let mut session = avpf(Duration::ZERO);
    session.run(seconds(1_000));
    assert_within(session.rate(seconds(10), seconds(1_000), any), 8.0, 0.03);
    assert!(session.sent.iter().all(is_report));
}

#[test]
fn the_regular_interval_is_kept_with_and_without_feedback() {
    for spacing in [1e9, 0.5] {
        let mut session = avpf(seconds(5));
        let (delays, _) = with_events(&mut session, 0, spacing);
        let gaps = gaps(&session, 0, is_report);
        assert!(gaps.iter().all(|gap| (2.5..7.5 + 2.0 * 1.2313 * 0.25).contains(gap)));
        assert_within(mean(&gaps), 5.1, 0.05);
        assert!(delays.iter().all(|delay| *delay < 0.6));
        assert_eq!(
            session.sent.iter().any(|p| p.due == Due::Feedback && p.from == 0),
            spacing < 1.0
        );
    }
}
