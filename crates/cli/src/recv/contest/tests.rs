//! Sources that send one after the other, or together.

use std::net::SocketAddr;

use rushes::proto::ExtendedSequence;

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

/// Sources that send one after the other or together.
struct World {
    now: Instant,
    contest: Contest,
    statistics: ReceiveStatistics,
    /// The source and the number of octets of each frame in the file.
    file: Vec<(u32, usize)>,
    /// How often the contest ended the file.
    files_ended: usize,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let (contest, statistics) = (Contest::default(), ReceiveStatistics::default());
        Self { now, contest, statistics, file: Vec::new(), files_ended: 0 }
    }

    /// Takes a frame of source `ssrc` at host 192.0.2.`host`, a millisecond after the last one.
    fn frame(&mut self, ssrc: u32, host: u8, len: usize) {
        self.now += MILLISECOND;
        let sources = &mut self.statistics.sources;
        let n = sources.iter().position(|source| source.ssrc == Ssrc(ssrc));
        let n = n.unwrap_or_else(|| {
            sources.push(SourceStatistics {
                ssrc: Ssrc(ssrc),
                address: Some(SocketAddr::from(([192, 0, 2, host], ssrc as u16))),
                packets: 0,
                packets_lost: 0,
                frames: 0,
                frames_dropped: 0,
                packets_unusable: 0,
                packets_congested: 0,
                received: 0,
                expected: 0,
                first_heard: self.now,
                last_heard: self.now,
                cumulative_lost: 0,
                highest: ExtendedSequence(0),
                jitter: 0,
                jitter_time: Duration::ZERO,
            });
            sources.len() - 1
        });
        sources[n].packets += 1;
        sources[n].frames += 1;
        sources[n].last_heard = self.now;
        self.contest.update(&self.statistics);
        let octets = vec![7; len];
        let frame = Incoming {
            ssrc: Ssrc(ssrc),
            arrival: self.now,
            timestamp: RtpTimestamp(0),
            octets: &octets,
        };
        match self.contest.take(frame) {
            Turn::Write => self.file.push((ssrc, len)),
            Turn::Wait => {}
            Turn::Next => self.files_ended += 1,
            Turn::Change(change) => self.change(&change),
        }
    }

    /// Ends the file, and begins the next; returns the octets that are kept for it.
    fn next_file(&mut self) -> usize {
        self.contest = std::mem::take(&mut self.contest).next().apart();
        self.file.clear();
        self.contest.update(&self.statistics);
        self.contest.begin().iter().map(|kept| kept.octets.len()).sum()
    }

    fn change(&mut self, change: &Change) {
        if !change.goes_on {
            self.file.clear();
        }
        self.file.extend(change.frames.iter().map(|kept| (change.now.0, kept.octets.len())));
    }

    fn succession(&mut self, has_left: bool, is_given_up: bool) -> bool {
        let change = self.contest.succession(self.now, has_left, is_given_up);
        change.is_some_and(|change| {
            self.change(&change);
            true
        })
    }

    /// Returns the number of octets of source `ssrc` in the file.
    fn octets(&self, ssrc: u32) -> usize {
        self.file.iter().filter(|(of, _)| *of == ssrc).map(|(_, len)| len).sum()
    }
}

#[test]
fn whoever_sends_more_is_written_from_its_beginning_whoever_was_first() {
    for is_first in [true, false] {
        let mut world = World::new();
        for n in 0..100 {
            if is_first || n > 0 {
                world.frame(1, 1, 3);
            }
            world.frame(2, 2, 1000);
        }
        assert_eq!((world.octets(1), world.octets(2)), (0, 100_000));
    }
}

#[test]
fn two_that_send_alike_do_not_take_turns() {
    let mut world = World::new();
    for n in 0..1000 {
        world.frame(1, 1, 100 + n % 50);
        world.frame(2, 2, 150 - n % 50);
    }
    assert_eq!((world.file.len(), world.octets(2)), (1000, 0));
}

#[test]
fn a_burst_is_made_up_for() {
    let mut world = World::new();
    world.frame(1, 1, 1000);
    world.frame(2, 2, 50_000);
    assert_eq!(world.octets(1), 0);
    for _ in 0..200 {
        world.frame(1, 1, 1000);
    }
    assert_eq!((world.octets(1), world.octets(2)), (201_000, 0), "nothing of it is lost");
}

#[test]
fn what_is_long_enough_is_safe() {
    let mut world = World::new();
    for _ in 0..6 {
        world.frame(1, 1, 1 << 20);
    }
    for _ in 0..30 {
        world.frame(2, 2, 1 << 20);
    }
    assert_eq!((world.octets(1), world.octets(2)), (6 << 20, 0));
    assert!(world.contest.contenders.iter().all(|contender| contender.frames.is_empty()));
}

#[test]
fn the_successor_is_of_the_same_host_and_begins_after_the_last_packet() {
    let mut world = World::new();
    world.frame(9, 1, 100);
    for _ in 0..10 {
        world.frame(1, 1, 1000);
        world.frame(9, 1, 10);
    }
    world.frame(1, 1, 1000);
    for _ in 0..10 {
        world.frame(2, 1, 1000);
        world.frame(3, 2, 2000);
        world.frame(9, 1, 10);
    }
    assert!(!world.succession(false, false), "it may only be late");
    world.now += SUCCESSION_SILENCE;
    assert!(world.succession(false, false));
    assert_eq!((world.octets(1), world.octets(2)), (11_000, 10_000));
    // Further frames of the first source are not part of the file.
    world.frame(1, 1, 1000);
    world.frame(2, 1, 1000);
    let sources: Vec<_> = world.contest.sources().map(|(ssrc, _)| ssrc.0).collect();
    assert_eq!((world.octets(1), world.octets(2), sources), (11_000, 11_000, vec![1, 2]));
}

#[test]
fn after_a_goodbye_only_the_same_address_goes_on() {
    let mut world = World::new();
    world.frame(1, 1, 1000);
    for _ in 0..3 {
        world.frame(2, 1, 100);
    }
    assert!(!world.succession(true, true), "another port");
    let address = world.statistics.sources[0].address;
    world.statistics.sources[1].address = address;
    world.contest.update(&world.statistics);
    assert!(world.succession(true, false));
}

#[test]
fn a_successor_that_cannot_wait_goes_on_at_once() {
    let mut world = World::new();
    for _ in 0..5 {
        world.frame(1, 1, 1 << 20);
    }
    for _ in 0..6 {
        world.frame(2, 1, 1 << 20);
    }
    assert_eq!((world.octets(1), world.octets(2)), (5 << 20, 6 << 20));
}

#[test]
fn with_a_file_for_each_a_later_source_begins_the_next_file_with_its_first_frame() {
    for host in [1, 2] {
        let mut world = World::new();
        assert_eq!(world.next_file(), 0);
        world.frame(1, 1, 100);
        for _ in 0..100 {
            world.frame(2, host, 1000);
        }
        assert_eq!((world.octets(1), world.octets(2)), (100, 0), "the first file is kept");
        let later = world.now + SUCCESSION_SILENCE;
        assert!(world.contest.succession(later, false, true).is_none());
        assert_eq!(world.contest.is_followed(later), host == 1);
        assert_eq!(world.next_file(), 100_000);
        world.frame(2, host, 1000);
        assert_eq!(world.octets(2), 1000);
        let counts: Vec<_> = world.contest.sources().map(|(_, counts)| counts.packets).collect();
        assert_eq!(counts, [101]);
    }
}

#[test]
fn senders_that_followed_each_other_all_have_a_file() {
    let mut world = World::new();
    world.next_file();
    for ssrc in [1, 2, 3] {
        world.frame(ssrc, 1, 100);
        world.frame(ssrc, 1, 100);
    }
    for ssrc in [2, 3] {
        assert_eq!(world.next_file(), 200);
        assert_eq!(world.contest.written(), Some(Ssrc(ssrc)));
    }
}

#[test]
fn a_stranger_in_a_short_pause_does_not_end_the_file() {
    let mut world = World::new();
    world.next_file();
    for _ in 0..2 {
        world.frame(1, 1, 1 << 20);
        for _ in 0..20 {
            world.frame(2, 2, 1 << 20);
        }
    }
    assert_eq!((world.files_ended, world.octets(1)), (0, 2 << 20));
    world.now += SUCCESSION_SILENCE;
    (0..6).for_each(|_| world.frame(3, 3, 1 << 20));
    assert!(world.files_ended > 0);
}

#[test]
fn a_source_that_goes_on_after_its_file_is_counted_from_there() {
    let mut world = World::new();
    world.next_file();
    for _ in 0..5 {
        world.frame(1, 1, 10);
    }
    assert_eq!(world.next_file(), 0);
    assert!(world.contest.written().is_none());
    for _ in 0..3 {
        world.frame(1, 1, 10);
    }
    assert_eq!(world.octets(1), 30);
    let (_, counts) = world.contest.sources().next().unwrap();
    assert_eq!((counts.packets, counts.packets_before), (3, 5));
}

#[test]
fn a_source_that_is_silent_when_a_file_ends_does_not_begin_the_next() {
    let mut world = World::new();
    world.next_file();
    world.frame(1, 1, 100);
    world.frame(2, 2, 50);
    world.frame(1, 1, 100);
    assert_eq!(world.next_file(), 0);
}

#[test]
fn what_is_kept_for_the_next_file_is_bounded() {
    let mut world = World::new();
    world.next_file();
    world.frame(1, 1, 100);
    for _ in 0..200 {
        world.frame(2, 2, 1 << 20);
    }
    assert!(world.next_file() as u64 <= NEXT_MAX + (1 << 21));
}
