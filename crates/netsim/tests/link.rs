//! One direction treats datagrams as its description specifies, and counts each of them.
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::time::Duration;

use rushes_netsim::{
    Bottleneck, Conditions, Course, Delivery, HEADERS, HOLD_IDLE, Link, Loss, Network, Path,
    Statistics, Straying, Way,
};

const MS: Duration = Duration::from_millis(1);

/// Sends `count` numbered datagrams of 1000 octets, one every millisecond; returns all deliveries.
fn all(course: impl Into<Course>, count: u64, seed: u64) -> (Vec<Delivery<u64>>, Statistics) {
    let mut link = Link::new(course, seed);
    let mut came = Vec::new();
    for n in 0..count {
        let now = MS * n as u32;
        came.extend(std::iter::from_fn(|| link.poll(now)));
        link.push(now, 1000, n);
        let statistics = link.statistics();
        assert_eq!(statistics.delivered, came.len() as u64);
    }
    while let Some(due) = link.next_due() {
        came.extend(std::iter::from_fn(|| link.poll(due)));
    }
    assert!(came.is_sorted_by_key(|delivery| delivery.at));
    let statistics = link.statistics();
    assert_eq!(statistics.in_flight(), 0);
    assert_eq!(statistics.delivered, came.len() as u64);
    (came, statistics)
}

fn numbers(came: &[Delivery<u64>]) -> Vec<u64> {
    came.iter().map(|delivery| delivery.item).collect()
}

/// Returns the travel time of a datagram.
fn time(delivery: &Delivery<u64>) -> Duration {
    delivery.at.checked_sub(MS * delivery.item as u32).unwrap()
}

/// Returns how far each delivery is behind the highest number before it.
fn lags(came: &[Delivery<u64>]) -> Vec<u64> {
    let mut highest = 0;
    let behind = |delivery: &Delivery<u64>| {
        highest = highest.max(delivery.item);
        highest - delivery.item
    };
    came.iter().map(behind).collect()
}

#[test]
fn a_perfect_path_delivers_all_at_once() {
    let (came, statistics) = all(Path::default(), 100, 1);
    assert_eq!(numbers(&came), (0..100).collect::<Vec<_>>());
    assert!(came.iter().all(|one| one.at == MS * one.item as u32 && !one.marked));
    assert_eq!(statistics, Statistics { sent: 100, delivered: 100, ..Statistics::default() });
}

#[test]
fn jitter_keeps_the_order_unless_it_may_not() {
    let path = Path { delay: 20 * MS, jitter: 50 * MS, ..Path::default() };
    let (came, _) = all(path.clone(), 1000, 2);
    assert_eq!(numbers(&came), (0..1000).collect::<Vec<_>>());
    let times: Vec<Duration> = came.iter().map(time).collect();
    assert!(times.iter().all(|time| (20 * MS..=70 * MS).contains(time)));
    assert!(times.iter().any(|time| *time < 30 * MS) && times.iter().any(|time| *time > 65 * MS));
    let (came, _) = all(Path { jitter_reorders: true, ..path }, 1000, 2);
    let most = lags(&came).into_iter().max().unwrap();
    assert!((30..=50).contains(&most), "{most}");
}

#[test]
fn a_link_loses_the_share_of_its_loss() {
    for loss in [Loss::Independent(0.1), Loss::bursts(0.1, 5.0, 20)] {
        let (came, statistics) = all(Path { loss, ..Path::default() }, 20_000, 3);
        assert_eq!(came.len() as u64 + statistics.lost, 20_000);
        assert!((1_800..2_200).contains(&statistics.lost), "{}", statistics.lost);
    }
}

#[test]
fn datagrams_fall_behind_by_places() {
    let reordering = Straying::places(0.01, 500..=500);
    let (came, statistics) = all(Path { reordering, ..Path::default() }, 10_000, 4);
    let behind: Vec<u64> = lags(&came).into_iter().filter(|lag| *lag > 0).collect();
    assert!((60..140).contains(&behind.len()), "{}", behind.len());
    // Some of the datagrams that overtake it are late themselves, and at the end fewer are left.
    assert!(behind[..behind.len() - 20].iter().all(|lag| *lag > 490), "{behind:?}");
    assert!(behind.iter().all(|lag| *lag <= 500));
    assert_eq!((statistics.delivered, statistics.duplicated), (10_000, 0));
}

#[test]
fn datagrams_fall_behind_by_seconds() {
    let reordering = Straying::time(0.1, 2000 * MS..=3000 * MS);
    let path = Path { delay: 10 * MS, reordering, ..Path::default() };
    let (came, _) = all(path, 10_000, 5);
    for time in came.iter().map(time) {
        assert!(time == 10 * MS || (2010 * MS..=3010 * MS).contains(&time), "{time:?}");
    }
    assert!(lags(&came).into_iter().max().unwrap() > 2900);
}

#[test]
fn copies_are_as_late_as_described() {
    for lag in [0, 1, 300] {
        let duplication = Straying::places(0.05, lag..=lag);
        let (came, statistics) = all(Path { duplication, ..Path::default() }, 10_000, 6);
        assert_eq!(statistics.delivered, 10_000 + statistics.duplicated);
        assert!((400..600).contains(&statistics.duplicated), "{}", statistics.duplicated);
        let mut seen = std::collections::HashSet::new();
        let again = came.iter().zip(lags(&came)).filter(|(one, _)| !seen.insert(one.item));
        let again: Vec<u64> = again.map(|(_, lag)| lag).collect();
        assert_eq!(again.len() as u64, statistics.duplicated);
        assert!(again.iter().filter(|found| **found == u64::from(lag)).count() + 30 > again.len());
    }
}

#[test]
fn held_datagrams_are_released_when_no_others_follow() {
    let reordering = Straying::places(1.0, 9..=9);
    let mut link = Link::new(Path { delay: 5 * MS, reordering, ..Path::default() }, 7);
    link.push(MS, 1, "held");
    assert_eq!(link.next_due(), Some(MS + HOLD_IDLE));
    assert_eq!(link.poll(MS + HOLD_IDLE), None);
    assert_eq!(link.poll(6 * MS + HOLD_IDLE).unwrap().item, "held");
    link.push(500 * MS, 1, "held");
    link.finish();
    assert_eq!(link.poll(505 * MS).unwrap().at, 505 * MS);
    assert_eq!(link.next_due(), None);
}

/// Returns a path of 1 Mbit/s, on which a packet of 125 octets takes a millisecond.
fn narrow(queue: usize, ecn_threshold: Option<usize>) -> Path {
    let bottleneck = Some(Bottleneck { rate: 1_000_000, queue, ecn_threshold });
    Path { bottleneck, ..Path::default() }
}

const LEN: usize = 125 - HEADERS;

#[test]
fn a_line_sends_one_packet_after_the_other() {
    let mut link = Link::new(Path { delay: 10 * MS, ..narrow(10_000, None) }, 8);
    for n in 0..3 {
        link.push(Duration::ZERO, LEN, n);
    }
    link.push(20 * MS, LEN, 3);
    let times = [11, 12, 13, 31].map(|time| MS * time);
    assert_eq!(times.map(|now| link.poll(now).unwrap().at), times);
}

#[test]
fn a_queue_drops_exactly_the_packets_that_do_not_fit() {
    let mut link = Link::new(narrow(500, None), 9);
    for n in 0..6 {
        link.push(Duration::ZERO, LEN, n);
    }
    // Four packets fit; when the first has been sent, there is room for one more.
    assert_eq!(link.statistics().overflowed, 2);
    link.push(MS, LEN, 6);
    link.push(MS, 0, 7);
    assert_eq!(link.statistics().overflowed, 3);
    let came: Vec<i32> = std::iter::from_fn(|| link.poll(9 * MS)).map(|one| one.item).collect();
    assert_eq!(came, [0, 1, 2, 3, 6]);
    link.push(9 * MS, 5000, 8);
    assert_eq!(link.statistics().overflowed, 3, "an idle line takes any packet");
}

#[test]
fn a_queue_above_its_threshold_marks() {
    let mut link = Link::new(narrow(100_000, Some(250)), 10);
    for n in 0..5 {
        link.push(Duration::ZERO, LEN, n);
    }
    link.push(3 * MS, LEN, 5);
    let marked: Vec<bool> =
        std::iter::from_fn(|| link.poll(9 * MS)).map(|one| one.marked).collect();
    assert_eq!(marked, [false, false, false, true, true, false]);
    assert_eq!(link.statistics().marked, 2);
}

#[test]
fn only_packets_within_the_mtu_pass() {
    let mut link = Link::new(Path { mtu: Some(1500), ..Path::default() }, 11);
    link.push(MS, 1472, 1472);
    link.push(MS, 1473, 1473);
    assert_eq!((link.poll(MS).unwrap().item, link.poll(MS)), (1472, None));
    assert_eq!(link.statistics().too_large, 1);
}

#[test]
fn a_path_changes_when_it_should() {
    let path = |delay| Path { delay: delay * MS, ..Path::default() };
    let course =
        Course::from(path(100)).then(50 * MS, path(20)).new_address(80 * MS).then(90 * MS, path(5));
    let (came, _) = all(course, 100, 12);
    for one in &came {
        let delay = match one.item {
            0..50 => 100,
            50..90 => 20,
            _ => 5,
        };
        assert_eq!(one.at, MS * (one.item as u32 + delay));
        assert_eq!(one.address, u32::from(one.item >= 80));
    }
    assert_eq!(came[0].item, 50, "datagrams on the shorter path overtake");
}

#[test]
fn both_directions_are_independent_and_deliver_in_order_of_time() {
    let path = Path { delay: 10 * MS, loss: Loss::Independent(0.5), ..Path::default() };
    let mut network = Network::new(Conditions::both(path), 13);
    for n in 0..1000_u32 {
        network.push(MS * n, Way::There, 100, n);
        network.push(MS * n, Way::Back, 100, n);
    }
    let came: Vec<_> = std::iter::from_fn(|| network.poll(Duration::MAX)).collect();
    assert!(came.is_sorted_by_key(|(_, one)| one.at));
    let of = |way| came.iter().filter(|one| one.0 == way).map(|one| one.1.item).collect::<Vec<_>>();
    assert_ne!(of(Way::There), of(Way::Back));
    for way in Way::BOTH {
        let statistics = network.statistics(way);
        assert_eq!(statistics.lost + of(way).len() as u64, 1000);
    }
    assert_eq!(network.next_due(), None);
}

#[test]
fn the_same_seed_has_the_same_outcome() {
    for seed in 0..200 {
        let conditions = Conditions::random(seed);
        assert_eq!(conditions, Conditions::random(seed));
        let run = || all(conditions.there.clone(), 2000, seed);
        assert_eq!(run(), run());
    }
    let losses = |seed| all(Path { loss: Loss::Independent(0.1), ..Path::default() }, 500, seed).0;
    assert_ne!(losses(1), losses(2));
}

#[test]
fn random_cases_reach_their_limits_and_pass_none() {
    let paths: Vec<Path> = (0..1000).map(|seed| Conditions::random(seed).there.path).collect();
    let most = |of: &dyn Fn(&Path) -> f64| paths.iter().map(of).fold(0.0, f64::max);
    let delay = most(&|path| path.delay.as_secs_f64());
    let loss = most(&|path| path.loss.ratio());
    let reordering = most(&|path| path.reordering.probability);
    let duplication = most(&|path| path.duplication.probability);
    assert!((0.29..=0.3).contains(&delay), "{delay}");
    assert!((0.19..=0.2001).contains(&loss), "{loss}");
    assert!((0.019..=0.02).contains(&reordering), "{reordering}");
    assert!((0.049..=0.05).contains(&duplication), "{duplication}");
    assert!(paths.iter().any(|path| path.loss == Loss::None));
    for (seed, path) in paths.into_iter().enumerate().take(50) {
        let ratio = path.loss.ratio();
        let (came, statistics) = all(path, 20_000, seed as u64);
        assert!((statistics.lost as f64 / 20_000.0 - ratio).abs() < 0.03, "{seed}");
        assert!(lags(&came).into_iter().all(|lag| lag <= 1000), "{seed}");
    }
}

#[test]
fn typical_conditions_have_the_described_properties() {
    for (name, conditions) in Conditions::all() {
        for course in [conditions.there, conditions.back] {
            let (_, statistics) = all(course.clone(), 50_000, 14);
            let ratio = statistics.lost as f64 / 50_000.0;
            assert!((ratio - course.path.loss.ratio()).abs() < 0.006, "{name}: {ratio}");
            assert_eq!((statistics.too_large, statistics.overflowed), (0, 0), "{name}");
        }
    }
}
