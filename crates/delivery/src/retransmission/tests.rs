//! Requests of one client, and of several.
#![allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use proptest::prelude::*;

use super::credit::PART;
use super::queues::RUNS_MAX;
use super::*;

const MS: Duration = Duration::from_millis(1);

struct Frame(Plan, usize);

impl Planned for Frame {
    fn plan(&self) -> &Plan {
        &self.0
    }

    fn memory(&self) -> usize {
        self.1
    }
}

fn frame(packets: usize, memory: usize) -> Arc<Frame> {
    Arc::new(Frame(Plan::new(&[(packets, packets)], 1).unwrap(), memory))
}

/// Returns those of frames that were sent, and their only member.
fn retransmissions(frames: u64, packets: usize) -> (Retransmissions<Frame>, MemberId) {
    let mut retransmissions = Retransmissions::default();
    let member = retransmissions.join();
    (0..frames).for_each(|number| retransmissions.begin(Instant::now(), number, frame(packets, 0)));
    (retransmissions, member)
}

fn nack(frame: u64, packets: &[Range<u32>]) -> Nack {
    Nack { frame, packets: packets.to_vec() }
}

fn sent(retransmissions: &mut Retransmissions<Frame>) -> Vec<Range<u32>> {
    std::iter::from_fn(|| retransmissions.poll()).map(|(_, packets)| packets).collect()
}

#[test]
fn requested_packets_are_sent_again_in_runs() {
    let (mut retransmissions, member) = retransmissions(8, 100);
    retransmissions.handle_nack(
        Instant::now(),
        (member, &nack(7, &[0..2, 2..4, 98..200])),
        |_, packet| packet != 1,
    );
    assert_eq!(sent(&mut retransmissions), [0..1, 2..4, 98..100]);
    let counts = retransmissions.statistics();
    assert_eq!((counts.requested, counts.retransmitted), (6, 5));
}

#[test]
fn a_packet_is_sent_again_three_times_at_most() {
    let (mut retransmissions, member) = retransmissions(8, 100);
    for time in 0..5 {
        retransmissions.handle_nack(Instant::now(), (member, &nack(6, &[5..6])), |_, _| true);
        assert_eq!(sent(&mut retransmissions).len(), usize::from(time < 3));
    }
}

#[test]
fn a_client_may_request_a_quarter_of_what_it_is_sent() {
    let (mut retransmissions, member) = retransmissions(1, 100);
    let flood = |retransmissions: &mut Retransmissions<Frame>, number| {
        for _ in 0..100 {
            retransmissions.handle_nack(
                Instant::now(),
                (member, &nack(number, &[0..u32::MAX])),
                |_, _| true,
            );
        }
        sent(retransmissions).iter().map(ExactSizeIterator::len).sum::<usize>()
    };
    assert_eq!(flood(&mut retransmissions, 0), 25);
    for number in 1..9 {
        retransmissions.begin(Instant::now(), number, frame(100, 0));
    }
    assert_eq!(flood(&mut retransmissions, 8), 100, "one frame at once");
    assert_eq!(flood(&mut retransmissions, 8), 0);
    retransmissions.begin(Instant::now(), 9, frame(100, 0));
    // Requests of packets that are not sent again count, too.
    retransmissions.handle_nack(Instant::now(), (member, &nack(9, &[0..100])), |_, _| false);
    assert_eq!(flood(&mut retransmissions, 9), 0);
}

#[test]
fn a_frame_of_one_packet_is_sent_again_every_fourth_time() {
    let (mut retransmissions, member) = retransmissions(0, 0);
    let mut again = 0;
    for number in 0..400 {
        retransmissions.begin(Instant::now(), number, frame(1, 0));
        retransmissions.handle_nack(Instant::now(), (member, &nack(number, &[0..1])), |_, _| true);
        again += sent(&mut retransmissions).len();
    }
    assert_eq!(again, 100);
}

#[test]
fn the_latest_frames_are_kept_as_far_as_memory_allows() {
    let (mut retransmissions, member) = retransmissions(0, 0);
    let is_kept = |retransmissions: &mut Retransmissions<Frame>, number| {
        retransmissions.handle_nack(Instant::now(), (member, &nack(number, &[0..1])), |_, _| true);
        !sent(retransmissions).is_empty()
    };
    for number in 0..20 {
        retransmissions.begin(Instant::now(), number, frame(100, 1 << 20));
    }
    let kept: Vec<_> = (0..21).filter(|number| is_kept(&mut retransmissions, *number)).collect();
    assert_eq!(kept, [12, 13, 14, 15, 16, 17, 18, 19]);
    for number in 20..30 {
        retransmissions.begin(Instant::now(), number, frame(100, 40 << 20));
    }
    let kept: Vec<_> = (0..30).filter(|number| is_kept(&mut retransmissions, *number)).collect();
    assert_eq!(kept, [28, 29]);
    retransmissions.begin(Instant::now(), 30, frame(100, usize::MAX));
    retransmissions.begin(Instant::now(), 31, frame(100, usize::MAX));
    assert_eq!(retransmissions.frames.len(), 1);
}

#[test]
fn a_frame_is_kept_until_a_while_after_the_next_one_began() {
    let mut retransmissions = Retransmissions::default();
    let start = Instant::now();
    // Four frames a second.
    for number in 0..3 {
        retransmissions.begin(start + 250 * MS * number, number.into(), frame(100, 0));
    }
    assert_eq!(retransmissions.frames.len(), 2);
    for number in 3..30 {
        let now = start + 500 * MS + 50 * MS * (number - 2);
        retransmissions.begin(now, number.into(), frame(100, 0));
    }
    // The last four began within 150 ms; the one before ended when the first of them began.
    assert_eq!(retransmissions.frames.len(), 4);
}

#[test]
fn requests_for_frames_that_are_gone_are_ignored() {
    let (mut retransmissions, member) = retransmissions(8, 100);
    retransmissions.handle_nack(Instant::now(), (member, &nack(7, &[0..4])), |_, _| true);
    retransmissions.handle_nack(Instant::now(), (member, &nack(8, &[0..4])), |_, _| true);
    for number in 8..16 {
        retransmissions.begin(Instant::now(), number, frame(100, 0));
    }
    assert!(
        retransmissions.is_waiting()
            && sent(&mut retransmissions).is_empty()
            && !retransmissions.is_waiting()
    );
    // Frames of more packets than can be numbered twice are not retransmitted.
    retransmissions.begin(Instant::now(), 20, frame((1 << 23) + 1, 0));
    retransmissions.handle_nack(Instant::now(), (member, &nack(20, &[0..4])), |_, _| true);
    assert!(!retransmissions.is_waiting());
}

#[test]
fn what_one_member_has_just_requested_costs_another_nothing() {
    let (mut retransmissions, first) = retransmissions(4, 100);
    let second = retransmissions.join();
    let now = Instant::now();
    retransmissions.begin(now, 4, frame(100, 0));
    let left = |retransmissions: &Retransmissions<Frame>| retransmissions.credit.left();
    let before = left(&retransmissions);
    retransmissions.handle_nack(now + 2 * MS, (first, &nack(4, &[3..5])), |_, _| true);
    // It is waiting, or on its way.
    retransmissions.handle_nack(now + 3 * MS, (second, &nack(4, &[3..4])), |_, _| true);
    assert_eq!(sent(&mut retransmissions), [3..5]);
    retransmissions.handle_nack(now + 11 * MS, (second, &nack(4, &[4..5])), |_, _| true);
    assert_eq!(sent(&mut retransmissions), []);
    assert_eq!(before - left(&retransmissions), 2 * PART);
    // The first one misses the answer; the second one requests it later.
    retransmissions.handle_nack(now + 9 * MS, (first, &nack(4, &[3..4])), |_, _| true);
    retransmissions.handle_nack(now + 20 * MS, (second, &nack(4, &[4..5])), |_, _| true);
    assert_eq!(sent(&mut retransmissions), [4..5, 3..4], "in turn");
    assert_eq!(before - left(&retransmissions), 4 * PART);
    let counts = retransmissions.statistics();
    assert_eq!((counts.requested, counts.retransmitted), (6, 4));
}

#[test]
fn members_are_answered_in_turn_and_one_that_left_requests_no_more() {
    let (mut retransmissions, first) = retransmissions(8, 100);
    let [second, third] = [(); 2].map(|()| retransmissions.join());
    for number in 8..40 {
        retransmissions.begin(Instant::now(), number, frame(100, 0));
    }
    let odd: Vec<_> = (0..20).map(|at| 2 * at..2 * at + 1).collect();
    for (member, frame) in [(first, 39), (second, 38), (third, 37)] {
        retransmissions.handle_nack(Instant::now(), (member, &nack(frame, &odd)), |_, _| true);
    }
    retransmissions.leave(second);
    let runs = sent(&mut retransmissions);
    // What it requested may be what another one requested, too.
    let begin = [0..1, 0..1, 0..1, 2..3];
    assert_eq!((runs.len(), &runs[..4]), (60, &begin[..]));
    retransmissions.handle_nack(Instant::now(), (second, &nack(39, &[50..51])), |_, _| true);
    assert!(!retransmissions.is_waiting(), "it has left");
}

#[test]
fn a_member_that_requests_everything_does_not_fill_the_queue_of_another() {
    let (mut retransmissions, greedy) = retransmissions(0, 0);
    let honest = retransmissions.join();
    for number in 0..40 {
        retransmissions.begin(Instant::now(), number, frame(100_000, 0));
    }
    // Single packets, of which each is a run.
    let all: Vec<_> = (0..50_000).map(|at| 2 * at..2 * at + 1).collect();
    retransmissions.handle_nack(Instant::now(), (greedy, &nack(39, &all)), |_, _| true);
    retransmissions.handle_nack(Instant::now(), (honest, &nack(39, &[7..8])), |_, _| true);
    let runs = sent(&mut retransmissions);
    assert_eq!((runs.len(), &runs[1]), (RUNS_MAX + 1, &(7..8)));
}

proptest! {
    #[test]
    fn whatever_is_requested_the_work_is_limited(
        requests in prop::collection::vec((0_u64..6, 0_u32..300, 0_u32..u32::MAX), 1..300),
    ) {
        let (mut retransmissions, member) = retransmissions(2, 200);
        let before = retransmissions.credit.left();
        for (number, start, len) in requests {
            let nack = nack(number, &[start..start.saturating_add(len)]);
            retransmissions.handle_nack(Instant::now(), (member, &nack), |_, packet| packet % 7 != 0);
            prop_assert!(retransmissions.waiting.longest() <= RUNS_MAX);
        }
        let counts = retransmissions.statistics();
        prop_assert!(counts.requested * PART <= before && counts.retransmitted <= counts.requested);
        let all: usize = sent(&mut retransmissions).iter().map(ExactSizeIterator::len).sum();
        prop_assert_eq!(all as u64, counts.retransmitted);
    }
}
