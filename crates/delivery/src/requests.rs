//! Missing packets of a frame: when each is requested, and how long an answer takes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Maximum missing packets of a frame that are requested at the same time.
const MISSING_MAX: usize = 1 << 12;

/// How often a packet is requested.
pub(super) const TRIES_MAX: u8 = 3;

/// The shortest and the longest time that a packet may be late before it is requested: packets overtake
/// each other on some paths.
const TOLERANCE_MIN: Duration = Duration::from_millis(1);
const TOLERANCE_MAX: Duration = Duration::from_millis(20);

/// The time beyond a round trip in which a request is answered, until answers have been measured: the
/// server's bursts, and threads of both ends.
const ANSWER_TIME: Duration = Duration::from_millis(3);

/// The time by which a thread that requests packets may be late: frames wait longer by it.
pub(super) const GRACE: Duration = Duration::from_millis(2);

/// One missing packet.
#[derive(Clone, Copy, Debug)]
struct Missing {
    /// When it is requested, for the first time or again; `None` if it is given up.
    due: Option<Instant>,
    /// When it was requested first and last, and how often.
    requested_at: Option<(Instant, Instant)>,
    tries: u8,
}

/// A requested packet that arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Requested {
    /// When it was requested first and last.
    pub(super) first_at: Instant,
    pub(super) last_at: Instant,
}

/// The missing packets of one frame.
#[derive(Debug, Default)]
pub(super) struct Requests {
    missing: BTreeMap<u32, Missing>,
    /// The earliest time at which one of them is due, or earlier.
    due: Option<Instant>,
    /// Until when an answer to the latest request may arrive.
    pub(super) until: Option<Instant>,
    /// Whether the frame is about to be given up.
    pub(super) is_late: bool,
    /// Whether all packets that had not arrived were noted as missing, because all were sent.
    pub(super) is_swept: bool,
    /// Whether a packet was requested that was only late.
    pub(super) is_hasty: bool,
}

impl Requests {
    /// Forgets the packets of the last frame.
    pub(super) fn clear(&mut self) {
        self.missing.clear();
        (self.due, self.until, self.is_hasty) = (None, None, false);
        (self.is_late, self.is_swept) = (false, false);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.missing.is_empty()
    }

    /// Returns when a packet is due to be requested.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Notes missing packets, which are requested at `due`. Returns whether there is room for more.
    pub(super) fn add(&mut self, packets: Range<u32>, due: Instant) -> bool {
        for packet in packets {
            if self.missing.len() == MISSING_MAX {
                break;
            }
            let missing = Missing { due: Some(due), requested_at: None, tries: 0 };
            self.missing.entry(packet).or_insert(missing);
        }
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.missing.len() < MISSING_MAX
    }

    /// Forgets those of `packets` that were not requested: they are still expected. Calls `forgotten`
    /// for each.
    pub(super) fn forget(&mut self, packets: Range<u32>, mut forgotten: impl FnMut(u32)) {
        if self.missing.range(packets.clone()).next().is_some() {
            self.missing.retain(|packet, it| {
                let is_kept = it.tries > 0 || !packets.contains(packet);
                if !is_kept {
                    forgotten(*packet);
                }
                is_kept
            });
        }
    }

    /// Returns whether a packet is noted as missing.
    pub(super) fn contains(&self, packet: u32) -> bool {
        self.missing.contains_key(&packet)
    }

    /// Handles the arrival of a packet; returns its request, if it was requested.
    pub(super) fn handle_arrival(&mut self, packet: u32) -> Option<Requested> {
        let missing = self.missing.remove(&packet)?;
        missing.requested_at.map(|(first_at, last_at)| Requested { first_at, last_at })
    }

    /// Gives up the packets that are due at `now`, because no answer would be in time.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for missing in self.missing.values_mut() {
            missing.due = missing.due.filter(|due| *due > now);
        }
        self.due = self.missing.values().filter_map(|missing| missing.due).min();
    }

    /// Writes the packets that are due at `now` to `packets`, at most `most` runs of up to 2^16 − 1
    /// packets. Each is requested again at `next`, up to three times; the frame waits for it until then.
    ///
    /// Returns the number of those that are requested for the first time.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        next: Instant,
        (packets, most): (&mut Vec<Range<u32>>, usize),
    ) -> u64 {
        packets.clear();
        if self.due.is_none_or(|due| due > now) {
            return 0;
        }
        let mut fresh = 0;
        for (&packet, missing) in &mut self.missing {
            if missing.due.is_none_or(|due| due > now) {
                continue;
            }
            if missing.tries == TRIES_MAX {
                missing.due = None;
                continue;
            }
            let is_full = packets.len() == most;
            match packets.last_mut() {
                Some(run) if run.end == packet && run.len() < usize::from(u16::MAX) => run.end += 1,
                _ if is_full => break,
                _ => packets.push(packet..packet + 1),
            }
            fresh += u64::from(missing.tries == 0);
            let tries = missing.tries + 1;
            let first_at = missing.requested_at.map_or(now, |(first_at, _)| first_at);
            *missing = Missing { due: Some(next), requested_at: Some((first_at, now)), tries };
        }
        self.due = self.missing.values().filter_map(|missing| missing.due).min();
        if !packets.is_empty() {
            self.until = Some(next + GRACE);
        }
        fresh
    }
}

/// How long to wait: for late packets, and for answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    tolerance: Duration,
    /// The average time of an answer, and its average deviation (RFC 6298 section 2).
    answer: Option<(Duration, Duration)>,
    /// The shortest time of an answer.
    round_trip: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { tolerance: TOLERANCE_MIN, answer: None, round_trip: Duration::ZERO }
    }
}

impl Patience {
    /// Returns the time that a packet may be late.
    pub(super) fn tolerance(&self) -> Duration {
        self.tolerance
    }

    /// Handles a packet that arrived although it was requested: it was late.
    pub(super) fn handle_late(&mut self) {
        self.tolerance = (self.tolerance * 2).min(TOLERANCE_MAX);
    }

    /// Handles the end of a frame of which nothing was requested in vain.
    pub(super) fn handle_frame(&mut self) {
        self.tolerance = (self.tolerance * 63 / 64).max(TOLERANCE_MIN);
    }

    /// Handles an answer. If it came too soon after the last request, it is one to an earlier request.
    pub(super) fn handle_answer(&mut self, now: Instant, request: Requested) {
        let since = |at| now.saturating_duration_since(at);
        let last = Some(since(request.last_at)).filter(|took| *took >= self.round_trip);
        self.note_answer(last.unwrap_or_else(|| since(request.first_at)));
    }

    fn note_answer(&mut self, took: Duration) {
        self.answer = Some(match self.answer {
            None => (took, took / 4),
            Some((mean, deviation)) => {
                ((mean * 7 + took) / 8, (deviation * 3 + mean.abs_diff(took)) / 4)
            }
        });
    }

    /// Returns the time that an answer is waited for: less than by RFC 6298, as a request too many costs
    /// less than a frame.
    pub(super) fn answer_time(&mut self, round_trip: Duration) -> Duration {
        self.round_trip = round_trip;
        let unmeasured = round_trip * 3 / 2 + ANSWER_TIME;
        let measured = self.answer.map(|(mean, deviation)| mean + deviation * 2 + TOLERANCE_MIN);
        measured.unwrap_or(unmeasured).max(TOLERANCE_MIN * 2)
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
#[allow(clippy::disallowed_methods, reason = "any instant will do")]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_missing_packet_is_requested_three_times_and_then_given_up() {
        let (mut requests, mut runs) = (Requests::default(), Vec::new());
        let start = Instant::now();
        requests.add(3..6, start + MS);
        requests.add(4..9, start + 2 * MS);
        assert_eq!(requests.due(), Some(start + MS));
        requests.poll(start, start, (&mut runs, 9));
        assert_eq!(runs, []);
        requests.poll(start + MS, start + 10 * MS, (&mut runs, 9));
        assert_eq!((&runs[..], requests.until), (&[3..6][..], Some(start + 12 * MS)));
        let request = Requested { first_at: start + MS, last_at: start + MS };
        assert_eq!(requests.handle_arrival(4), Some(request));
        for again in 2..=3 {
            let now = start + 10 * MS * again;
            requests.poll(now, now + 10 * MS, (&mut runs, 9));
            assert_eq!(runs, [3..4, 5..9], "{again}");
        }
        requests.poll(start + 40 * MS, start + 50 * MS, (&mut runs, 9));
        assert_eq!(runs, [6..9], "the others were requested once more often");
        requests.poll(start + 50 * MS, start + 60 * MS, (&mut runs, 9));
        assert!(runs.is_empty() && requests.due().is_none());
        requests.add(0..10, start + 60 * MS);
        requests.poll(start + 60 * MS, start + 70 * MS, (&mut runs, 9));
        assert_eq!(runs, [0..3, 4..5, 9..10], "those that were given up stay so");
    }

    #[test]
    fn runs_beyond_a_message_are_due_in_the_next() {
        let (mut requests, mut runs) = (Requests::default(), Vec::new());
        let now = Instant::now();
        for packet in 0..5 {
            requests.add(packet * 2..packet * 2 + 1, now);
        }
        for expected in [&[0..1, 2..3][..], &[4..5, 6..7], &[8..9], &[]] {
            requests.poll(now, now + MS, (&mut runs, 2));
            assert_eq!(runs, expected);
        }
    }

    #[test]
    fn packets_that_are_expected_after_all_are_not_requested() {
        let (mut requests, mut runs) = (Requests::default(), Vec::new());
        let now = Instant::now();
        requests.add(0..3, now);
        requests.poll(now, now + 9 * MS, (&mut runs, 9));
        requests.add(3..9, now + MS);
        let mut forgotten = Vec::new();
        requests.forget(1..8, |packet| forgotten.push(packet));
        assert_eq!(forgotten, [3, 4, 5, 6, 7]);
        requests.poll(now + MS, now + 9 * MS, (&mut runs, 9));
        assert_eq!(runs, [8..9]);
        assert!(requests.handle_arrival(5).is_none());
        assert!(requests.handle_arrival(1).is_some());
    }

    #[test]
    fn the_memory_for_missing_packets_is_limited() {
        let (mut requests, now) = (Requests::default(), Instant::now());
        requests.add(0..1 << 23, now);
        assert_eq!(requests.missing.len(), MISSING_MAX);
    }

    #[test]
    fn an_answer_sooner_than_a_round_trip_is_one_to_the_first_request() {
        let mut patience = Patience::default();
        let now = Instant::now() + 100 * MS;
        patience.answer_time(20 * MS);
        for (last, expected) in [(25, 25), (15, 48)] {
            let [first_at, last_at] = [48, last].map(|ago| now.checked_sub(MS * ago).unwrap());
            patience.answer = None;
            patience.handle_answer(now, Requested { first_at, last_at });
            assert_eq!(patience.answer.unwrap().0, expected * MS);
        }
    }

    #[test]
    fn patience_follows_late_packets_and_answers() {
        let mut patience = Patience::default();
        assert_eq!(patience.answer_time(20 * MS), 33 * MS);
        for _ in 0..100 {
            patience.note_answer(25 * MS);
            patience.handle_late();
        }
        let waits = patience.answer_time(20 * MS);
        assert!(waits >= 25 * MS && waits < 27 * MS, "{waits:?}");
        assert_eq!(patience.tolerance(), TOLERANCE_MAX);
        for _ in 0..300 {
            patience.handle_frame();
        }
        assert_eq!(patience.tolerance(), TOLERANCE_MIN);
    }
}
