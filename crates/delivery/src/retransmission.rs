//! Packets that a server sends again because the client requested them.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Plan;
use crate::control::Nack;

/// Maximum frames of which packets are sent again: as many as a client has in progress.
const FRAMES_MAX: usize = 8;

/// Time for which a frame is kept after the next one began. By then a client with default options has
/// given it up.
const KEPT: Duration = Duration::from_millis(150);

/// Maximum octets that frames before the latest keep in memory.
const MEMORY_MAX: usize = 64 << 20;

/// How often a packet is sent again.
const TIMES_MAX: u8 = 3;

/// The part of the packets that a client may request: one in so many, and at most those of one frame
/// at once.
const PART: u64 = 4;

/// Maximum runs of packets that wait to be sent again.
const RUNS_MAX: usize = 4_096;

/// A frame that is kept to send packets of it again.
pub trait Planned {
    /// Returns the frame's packets.
    fn plan(&self) -> &Plan;

    /// Returns the octets that are kept in memory for this frame.
    fn memory(&self) -> usize;
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetransmissionStatistics {
    /// Packets that the client requested.
    pub requested: u64,
    /// Packets among them that are sent again.
    pub retransmitted: u64,
}

/// The latest frames of a session, and the packets of them that the client requested.
///
/// A client may request a quarter as many packets as it is sent, and each three times. Everything else
/// is ignored, so neither traffic nor memory grows with what it requests. A frame is encoded by rows, so
/// single packets of many rows take more work than their number says.
#[derive(Debug)]
pub struct Retransmissions<F> {
    frames: VecDeque<Kept<F>>,
    waiting: VecDeque<(u64, Range<u32>)>,
    /// Packets that may be requested, times `PART`.
    credit: u64,
    statistics: RetransmissionStatistics,
}

#[derive(Debug)]
struct Kept<F> {
    number: u64,
    begun_at: Instant,
    frame: Arc<F>,
    /// How often each packet was sent again; empty before the first.
    times: Vec<u8>,
}

impl<F: Planned> Default for Retransmissions<F> {
    fn default() -> Self {
        let statistics = RetransmissionStatistics::default();
        Self { frames: VecDeque::new(), waiting: VecDeque::new(), credit: 0, statistics }
    }
}

impl<F: Planned> Retransmissions<F> {
    /// Returns the counts since the beginning.
    pub fn statistics(&self) -> RetransmissionStatistics {
        self.statistics
    }

    /// Keeps a frame that is sent from `now` on, instead of the oldest ones.
    pub fn begin(&mut self, now: Instant, number: u64, frame: Arc<F>) {
        let packets = u64::from(frame.plan().packets());
        self.credit = (self.credit + packets).min(packets * PART);
        self.frames.push_back(Kept { number, begun_at: now, frame, times: Vec::new() });
        let is_old = |frames: &VecDeque<Kept<F>>| {
            frames.get(1).is_some_and(|next| next.begun_at + KEPT <= now)
        };
        let memory = |frames: &VecDeque<Kept<F>>| -> usize {
            let before = frames.iter().rev().skip(1);
            before.fold(0, |sum, kept| sum.saturating_add(kept.frame.memory()))
        };
        while self.frames.len() > FRAMES_MAX
            || memory(&self.frames) > MEMORY_MAX
            || is_old(&self.frames)
        {
            self.frames.pop_front();
        }
    }

    /// Handles a request: packets that may be sent again wait to be ([`poll`](Self::poll)).
    ///
    /// `is_sent` returns whether a packet of a frame has been sent before.
    pub fn handle_nack(&mut self, nack: &Nack, is_sent: impl Fn(&F, u32) -> bool) {
        let Some(kept) = self.frames.iter_mut().find(|kept| kept.number == nack.frame) else {
            return;
        };
        let packets = kept.frame.plan().packets();
        if !kept.frame.plan().can_retransmit() {
            return;
        }
        for packet in
            nack.packets.iter().flat_map(|run| run.start.min(packets)..run.end.min(packets))
        {
            if self.credit < PART || self.waiting.len() == RUNS_MAX {
                return;
            }
            self.credit -= PART;
            self.statistics.requested += 1;
            if kept.times.is_empty() {
                kept.times.resize(packets as usize, 0);
            }
            let Some(times) = kept.times.get_mut(packet as usize) else { continue };
            if *times == TIMES_MAX || !is_sent(&kept.frame, packet) {
                continue;
            }
            *times += 1;
            self.statistics.retransmitted += 1;
            match self.waiting.back_mut() {
                Some((frame, run)) if *frame == kept.number && run.end == packet => run.end += 1,
                _ => self.waiting.push_back((kept.number, packet..packet + 1)),
            }
        }
    }

    /// Returns the next packets to send again, of one frame.
    pub fn poll(&mut self) -> Option<(Arc<F>, Range<u32>)> {
        loop {
            let (number, packets) = self.waiting.pop_front()?;
            // A frame that is no longer kept has ended at the client.
            if let Some(kept) = self.frames.iter().find(|kept| kept.number == number) {
                return Some((kept.frame.clone(), packets));
            }
        }
    }

    /// Returns whether packets wait to be sent again.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use proptest::prelude::*;

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

    fn retransmissions(frames: u64, packets: usize) -> Retransmissions<Frame> {
        let mut retransmissions = Retransmissions::default();
        (0..frames)
            .for_each(|number| retransmissions.begin(Instant::now(), number, frame(packets, 0)));
        retransmissions
    }

    fn nack(frame: u64, packets: &[Range<u32>]) -> Nack {
        Nack { frame, packets: packets.to_vec() }
    }

    fn sent(retransmissions: &mut Retransmissions<Frame>) -> Vec<Range<u32>> {
        std::iter::from_fn(|| retransmissions.poll()).map(|(_, packets)| packets).collect()
    }

    #[test]
    fn requested_packets_are_sent_again_in_runs() {
        let mut retransmissions = retransmissions(8, 100);
        retransmissions.handle_nack(&nack(7, &[0..2, 2..4, 98..200]), |_, packet| packet != 1);
        assert_eq!(sent(&mut retransmissions), [0..1, 2..4, 98..100]);
        let counts = retransmissions.statistics();
        assert_eq!((counts.requested, counts.retransmitted), (6, 5));
    }

    #[test]
    fn a_packet_is_sent_again_three_times_at_most() {
        let mut retransmissions = retransmissions(8, 100);
        for time in 0..5 {
            retransmissions.handle_nack(&nack(6, &[5..6]), |_, _| true);
            assert_eq!(sent(&mut retransmissions).len(), usize::from(time < 3));
        }
    }

    #[test]
    fn a_client_may_request_a_quarter_of_what_it_is_sent() {
        let mut retransmissions = retransmissions(1, 100);
        let flood = |retransmissions: &mut Retransmissions<Frame>, number| {
            for _ in 0..100 {
                retransmissions.handle_nack(&nack(number, &[0..u32::MAX]), |_, _| true);
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
        retransmissions.handle_nack(&nack(9, &[0..100]), |_, _| false);
        assert_eq!(flood(&mut retransmissions, 9), 0);
    }

    #[test]
    fn a_frame_of_one_packet_is_sent_again_every_fourth_time() {
        let mut retransmissions = Retransmissions::default();
        let mut again = 0;
        for number in 0..400 {
            retransmissions.begin(Instant::now(), number, frame(1, 0));
            retransmissions.handle_nack(&nack(number, &[0..1]), |_, _| true);
            again += sent(&mut retransmissions).len();
        }
        assert_eq!(again, 100);
    }

    #[test]
    fn the_latest_frames_are_kept_as_far_as_memory_allows() {
        let mut retransmissions = Retransmissions::default();
        let is_kept = |retransmissions: &mut Retransmissions<Frame>, number| {
            retransmissions.handle_nack(&nack(number, &[0..1]), |_, _| true);
            !sent(retransmissions).is_empty()
        };
        for number in 0..20 {
            retransmissions.begin(Instant::now(), number, frame(100, 1 << 20));
        }
        let kept: Vec<_> =
            (0..21).filter(|number| is_kept(&mut retransmissions, *number)).collect();
        assert_eq!(kept, [12, 13, 14, 15, 16, 17, 18, 19]);
        for number in 20..30 {
            retransmissions.begin(Instant::now(), number, frame(100, 40 << 20));
        }
        let kept: Vec<_> =
            (0..30).filter(|number| is_kept(&mut retransmissions, *number)).collect();
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
        let mut retransmissions = retransmissions(8, 100);
        retransmissions.handle_nack(&nack(7, &[0..4]), |_, _| true);
        retransmissions.handle_nack(&nack(8, &[0..4]), |_, _| true);
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
        retransmissions.handle_nack(&nack(20, &[0..4]), |_, _| true);
        assert!(!retransmissions.is_waiting());
    }

    proptest! {
        #[test]
        fn whatever_is_requested_the_work_is_limited(
            requests in prop::collection::vec((0_u64..6, 0_u32..300, 0_u32..u32::MAX), 1..300),
        ) {
            let mut retransmissions = retransmissions(2, 200);
            let before = retransmissions.credit;
            for (number, start, len) in requests {
                let nack = nack(number, &[start..start.saturating_add(len)]);
                retransmissions.handle_nack(&nack, |_, packet| packet % 7 != 0);
                prop_assert!(retransmissions.waiting.len() <= RUNS_MAX);
            }
            let counts = retransmissions.statistics();
            prop_assert!(counts.requested * PART <= before && counts.retransmitted <= counts.requested);
            let all: usize = sent(&mut retransmissions).iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(all as u64, counts.retransmitted);
        }
    }
}
