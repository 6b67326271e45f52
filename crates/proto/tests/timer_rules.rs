//! The RTCP timing rules of one participant, one by one (RFC 3550 section 6.3, RFC 4585).
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may panic and read the clock"
)]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rushes_proto::Ssrc;
use rushes_proto::timer::{Due, FeedbackTiming, Timer, TimerConfig};

use rushes_netsim::Seeded;

const US: Ssrc = Ssrc(0xffff_ffff);
const LEN: usize = 100;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The minimum time between two reports at a minimum interval of 5 s, and at half of it.
const SPACING: Duration = Duration::from_millis(2051);
const SPACING_INITIAL: Duration = Duration::from_millis(1025);

/// Returns a configuration whose RTCP bandwidth is one packet of `LEN` octets a second.
fn slow() -> TimerConfig {
    TimerConfig { packet_len: LEN, ..TimerConfig::new(16_000) }
}

fn avpf(bandwidth: u64, regular_interval_min: Duration) -> TimerConfig {
    let feedback = Some(FeedbackTiming { regular_interval_min, delay_max: 100 * MS });
    TimerConfig { packet_len: LEN, feedback, ..TimerConfig::new(bandwidth) }
}

/// Runs until something is due, and sends it.
fn next(timer: &mut Timer) -> (Instant, Due) {
    loop {
        let now = timer.poll_timeout().unwrap();
        let due = timer.handle_timeout(now);
        if due != Due::Nothing {
            timer.note_sent_rtcp(now, LEN);
            return (now, due);
        }
    }
}

fn with_members(config: TimerConfig, others: u32, now: Instant) -> Timer {
    let mut timer = Timer::new(config, US, 1, now);
    (0..others).for_each(|ssrc| timer.handle_cname(now, Ssrc(ssrc)));
    timer
}

#[test]
fn the_first_report_goes_after_half_the_minimum() {
    let start = Instant::now();
    for seed in 0..200 {
        let timer = Timer::new(TimerConfig::new(1_000_000), US, seed, start);
        let delay = timer.poll_timeout().unwrap() - start;
        assert!(delay >= SPACING_INITIAL && delay <= Duration::from_millis(3079), "{delay:?}");
    }
}

#[test]
fn two_participants_of_one_seed_behave_alike_and_of_two_seeds_differ() {
    let start = Instant::now();
    let at = |seed| Timer::new(slow(), US, seed, start).poll_timeout();
    assert_eq!(at(1), at(1));
    assert_ne!(at(1), at(2));
}

#[test]
fn a_group_that_grew_meanwhile_puts_the_report_off() {
    let start = Instant::now();
    let mut timer = Timer::new(slow(), US, 1, start);
    let now = timer.poll_timeout().unwrap();
    (0..300).for_each(|ssrc| timer.handle_cname(now, Ssrc(ssrc)));
    assert_eq!(timer.handle_timeout(now), Due::Nothing);
    assert!(timer.poll_timeout().unwrap() > start + 150 * SECOND);
}

#[test]
fn each_goodbye_draws_the_report_nearer() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 300, start);
    let _ = next(&mut timer);
    let (sent, _) = next(&mut timer);
    let before = timer.poll_timeout().unwrap() - sent;
    (0..200).for_each(|ssrc| timer.handle_bye(sent, Ssrc(ssrc)));
    let after = timer.poll_timeout().unwrap() - sent;
    let ratio = after.as_secs_f64() / before.as_secs_f64();
    assert!((ratio - 101.0 / 301.0).abs() < 1e-6, "{ratio}");
}

#[test]
fn a_member_times_out_after_five_intervals_and_is_named() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 1, start);
    timer.handle_rtp(start, Ssrc(7));
    assert_eq!((timer.members(), timer.senders()), (3, 1));
    let mut now = start;
    while timer.is_member(Ssrc(7)) {
        now = next(&mut timer).0;
        timer.handle_member(now, Ssrc(0));
    }
    assert!(now - start > 25 * SECOND && now - start < 25 * SECOND + Duration::from_millis(6157));
    assert_eq!((timer.poll_left(), timer.poll_left()), (Some(Ssrc(7)), None));
    assert_eq!((timer.members(), timer.senders()), (2, 0));
}

#[test]
fn a_member_that_stops_sending_media_becomes_a_receiver() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 1, start);
    timer.note_sent_rtp(start);
    assert!(timer.we_sent() && timer.senders() == 1);
    let mut now = start;
    while timer.we_sent() {
        timer.handle_member(now, Ssrc(0));
        now = next(&mut timer).0;
    }
    assert!(now - start > 10 * SECOND && now - start < 17 * SECOND, "{:?}", now - start);
}

#[test]
fn the_first_media_bring_the_first_sender_report_forward() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 300, start);
    let (sent, _) = next(&mut timer);
    assert!(timer.poll_timeout().unwrap() - sent > 100 * SECOND);
    timer.note_sent_rtp(sent);
    assert!(timer.poll_timeout().unwrap() - sent < 7 * SECOND);
}

#[test]
fn the_average_length_follows_by_sixteenths() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 300, start);
    let before = timer.interval().as_secs_f64();
    timer.handle_compound(LEN + 160, false);
    assert!((timer.interval().as_secs_f64() / before - 1.1).abs() < 1e-6);
}

#[test]
fn in_a_small_session_a_goodbye_goes_at_once() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 48, start);
    let _ = next(&mut timer);
    let now = start + 20 * SECOND;
    timer.want_bye(now, LEN);
    assert_eq!(next(&mut timer), (now, Due::Bye));
    assert_eq!(timer.poll_timeout(), None);
    assert_eq!(timer.handle_timeout(now + 100 * SECOND), Due::Nothing);
}

#[test]
fn in_a_large_session_a_bye_backs_off_like_the_others() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 49, start);
    let _ = next(&mut timer);
    let now = start + 20 * SECOND;
    timer.want_bye(now, LEN);
    assert!(timer.poll_timeout().unwrap() - now >= SPACING_INITIAL);
    // BYEs of unknown sources count; reports and their lengths do not.
    (1000..1300).for_each(|ssrc| timer.handle_bye(now, Ssrc(ssrc)));
    timer.handle_compound(100_000, false);
    timer.handle_cname(now, Ssrc(1));
    assert!((timer.interval().as_secs_f64() - 301.0 / 0.75).abs() < 1e-6);
    let (sent, due) = next(&mut timer);
    assert_eq!(due, Due::Bye);
    assert!(sent - now > 160 * SECOND);
}

#[test]
fn a_participant_that_never_sent_leaves_without_bye() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 3, start);
    timer.want_bye(start, LEN);
    assert_eq!(timer.poll_timeout(), None);
    let mut timer = with_members(slow(), 3, start);
    timer.note_sent_rtp(start);
    timer.set_ssrc(Ssrc(2));
    timer.want_bye(start, LEN);
    assert_eq!(timer.poll_timeout(), None);
}

#[test]
fn a_report_that_could_not_be_sent_is_due_again() {
    let start = Instant::now();
    let mut timer = Timer::new(slow(), US, 1, start);
    let mut reports = 0;
    for _ in 0..100 {
        let now = timer.poll_timeout().unwrap();
        let due = timer.handle_timeout(now);
        assert!(timer.poll_timeout().unwrap() > now);
        reports += usize::from(due == Due::Report);
    }
    assert!(reports > 30, "{reports}");
}

#[test]
fn after_a_collision_the_old_name_is_another_member_and_the_new_one_is_ours() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 3, start);
    timer.set_ssrc(Ssrc(1));
    assert_eq!(timer.members(), 3);
    timer.handle_cname(start, Ssrc(1));
    assert_eq!(timer.members(), 3);
    timer.handle_cname(start, US);
    assert_eq!(timer.members(), 4);
}

#[test]
fn without_bandwidth_nothing_is_ever_due() {
    let start = Instant::now();
    let timer = Timer::new(TimerConfig::new(0), US, 1, start);
    assert!(timer.poll_timeout().unwrap() - start > Duration::from_secs(100 * 24 * 3600));
}

#[test]
fn early_feedback_uses_up_the_next_regular_report() {
    let start = Instant::now();
    let mut timer = with_members(avpf(64_000, Duration::ZERO), 1, start);
    let _ = next(&mut timer);
    let (sent, _) = next(&mut timer);
    let t_rr = timer.poll_timeout().unwrap() - sent;
    let event = sent + t_rr / 4;
    assert_eq!(timer.want_feedback(event), Some(event));
    assert_eq!(timer.handle_timeout(event), Due::Feedback);
    timer.note_sent_rtcp(event, LEN);
    assert_eq!(timer.poll_timeout(), Some(sent + 2 * t_rr));
}

#[test]
fn without_avpf_there_is_no_early_feedback() {
    let start = Instant::now();
    let mut timer = with_members(slow(), 1, start);
    assert_eq!(timer.want_feedback(start), None);
}

#[test]
fn many_parties_with_feedback_first_wait_about_a_second() {
    let start = Instant::now();
    for seed in 0..100 {
        let config = TimerConfig { multiparty: true, ..avpf(10_000_000, Duration::ZERO) };
        let delay = Timer::new(config, US, seed, start).poll_timeout().unwrap() - start;
        assert!(delay >= 410 * MS && delay <= 1232 * MS, "{delay:?}");
    }
}

#[test]
fn a_flood_of_sources_and_goodbyes_leaves_the_peer_and_the_schedule_alone() {
    let peer = Ssrc(0x1234_5678);
    for cname in [false, true] {
        let start = Instant::now();
        let mut random = Seeded(5);
        let mut timer = Timer::new(TimerConfig::new(1_000_000), US, 1, start);
        timer.handle_rtp(start, peer);
        let mut reports = Vec::new();
        // 10⁶ sources over 100 s; with every tenth comes a BYE of yet another SSRC.
        for packet in 0..1_000_000u32 {
            let now = start + 100 * MS / 1000 * packet;
            if packet % 1000 == 0 {
                timer.handle_rtp(now, peer);
            }
            let ssrc = Ssrc(random.roll() as u32);
            if cname {
                timer.handle_cname(now, ssrc);
            } else {
                timer.handle_member(now, ssrc);
            }
            if packet % 10 == 0 {
                timer.handle_bye(now, Ssrc(random.roll() as u32));
            }
            assert!(timer.is_member(peer));
            if timer.poll_timeout().unwrap() <= now && timer.handle_timeout(now) == Due::Report {
                timer.note_sent_rtcp(now, LEN);
                reports.push(now - start);
            }
        }
        if cname {
            // Only as many members as the limit are kept, and this participant itself.
            let limit = TimerConfig::new(1_000_000).members_max;
            assert_eq!(timer.members(), limit + 1);
        } else {
            assert_eq!(timer.members(), 2);
            assert!((16..=32).contains(&reports.len()), "{}", reports.len());
            assert!(reports.windows(2).all(|pair| pair[1] < pair[0] + 7 * SECOND));
        }
    }
}

/// An event at a participant; the number is an SSRC, a length or milliseconds.
#[derive(Clone, Copy, Debug)]
enum Step {
    Rtp(u32),
    Member(u32),
    Cname(u32),
    Bye(u32),
    Compound(u16, bool),
    SendRtp,
    WantFeedback,
    CancelFeedback,
    Wait(u32),
    Expire,
    SendNothing,
    Collide(u32),
    WantBye,
}

fn step() -> impl Strategy<Value = Step> {
    let ssrc = || prop_oneof![0..40u32, any::<u32>()];
    prop_oneof![
        4 => ssrc().prop_map(Step::Rtp),
        4 => ssrc().prop_map(Step::Member),
        8 => ssrc().prop_map(Step::Cname),
        4 => ssrc().prop_map(Step::Bye),
        2 => (any::<u16>(), any::<bool>()).prop_map(|(len, bye)| Step::Compound(len, bye)),
        2 => Just(Step::SendRtp),
        2 => Just(Step::WantFeedback),
        1 => Just(Step::CancelFeedback),
        4 => (0..20_000u32).prop_map(Step::Wait),
        8 => Just(Step::Expire),
        1 => Just(Step::SendNothing),
        1 => ssrc().prop_map(Step::Collide),
    ]
}

fn apply(timer: &mut Timer, now: &mut Instant, step: Step) -> Due {
    match step {
        Step::Rtp(ssrc) => timer.handle_rtp(*now, Ssrc(ssrc)),
        Step::Member(ssrc) => timer.handle_member(*now, Ssrc(ssrc)),
        Step::Cname(ssrc) => timer.handle_cname(*now, Ssrc(ssrc)),
        Step::Bye(ssrc) => timer.handle_bye(*now, Ssrc(ssrc)),
        Step::Compound(len, bye) => timer.handle_compound(usize::from(len), bye),
        Step::SendRtp => timer.note_sent_rtp(*now),
        Step::WantFeedback => drop(timer.want_feedback(*now)),
        Step::CancelFeedback => timer.cancel_feedback(),
        Step::Wait(ms) => *now += MS * ms,
        Step::Collide(ssrc) => timer.set_ssrc(Ssrc(ssrc)),
        Step::WantBye => timer.want_bye(*now, LEN),
        Step::Expire | Step::SendNothing => {
            let Some(timeout) = timer.poll_timeout() else { return Due::Nothing };
            *now = timeout.max(*now);
            let due = timer.handle_timeout(*now);
            if due != Due::Nothing && matches!(step, Step::Expire) {
                timer.note_sent_rtcp(*now, LEN);
            }
            return due;
        }
    }
    Due::Nothing
}

proptest! {
    #[test]
    fn two_reports_are_never_closer_than_the_shortest_interval(
        steps in prop::collection::vec(step(), 1..300),
        seed: u64,
        members_max in 1..30usize,
    ) {
        let start = Instant::now();
        let config = TimerConfig { members_max, ..slow() };
        let mut timer = Timer::new(config, US, seed, start);
        let mut now = start;
        // Until a first report has been sent, half the minimum applies.
        let (mut last, mut initial) = (start, true);
        for step in steps {
            let due = apply(&mut timer, &mut now, step);
            if due == Due::Report {
                let least = if initial { SPACING_INITIAL } else { SPACING };
                prop_assert!(now - last >= least, "{:?}", now - last);
                last = now;
                initial &= !matches!(step, Step::Expire);
            }
            prop_assert!(timer.senders() <= timer.members());
        }
    }

    #[test]
    fn after_a_report_the_next_lies_in_the_range_of_the_interval(
        joins in prop::collection::vec(0..2000u32, 0..400),
        bandwidth in 1_000..1_000_000u64,
        seed: u64,
    ) {
        let start = Instant::now();
        let config = TimerConfig::new(bandwidth);
        let mut timer = Timer::new(config, US, seed, start);
        for ssrc in joins {
            timer.handle_cname(start, Ssrc(ssrc));
        }
        for _ in 0..20 {
            let (sent, _) = next(&mut timer);
            let ratio =
                (timer.poll_timeout().unwrap() - sent).as_secs_f64() / timer.interval().as_secs_f64();
            prop_assert!((0.4104..=1.2313).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn whatever_happens_a_timeout_moves_on_and_a_goodbye_is_the_last(
        steps in prop::collection::vec(prop_oneof![30 => step(), 1 => Just(Step::WantBye)], 1..300),
        seed: u64,
        members_max in 0..30usize,
        bandwidth in prop_oneof![Just(0u64), Just(u64::MAX), 1..10_000_000_000u64],
        shares in (any::<f64>(), any::<f64>()),
        trr_int in prop::option::of(0..5000u32),
        multiparty: bool,
        reduced_minimum: bool,
    ) {
        let start = Instant::now();
        let config = TimerConfig {
            members_max,
            rtcp_share: shares.0,
            sender_share: shares.1,
            interval_min: Duration::ZERO,
            multiparty,
            reduced_minimum,
            feedback: trr_int.and_then(|ms| avpf(1, MS * ms).feedback),
            ..TimerConfig::new(bandwidth)
        };
        let mut timer = Timer::new(config, US, seed, start);
        let (mut now, mut gone) = (start, false);
        for step in steps {
            // "Never" is a year away: reached repeatedly, it would leave the clock's range.
            if timer.poll_timeout().is_some_and(|timeout| timeout - start > 1_000_000 * SECOND) {
                break;
            }
            let due = apply(&mut timer, &mut now, step);
            prop_assert!(!gone || due == Due::Nothing);
            gone |= due == Due::Bye && matches!(step, Step::Expire);
            if matches!(step, Step::Expire | Step::SendNothing) {
                prop_assert!(timer.poll_timeout().is_none_or(|timeout| timeout > now));
            }
            prop_assert_eq!(gone && timer.poll_timeout().is_some(), false);
        }
    }
}
