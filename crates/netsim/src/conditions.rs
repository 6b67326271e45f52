//! The conditions of both directions: typical networks and random ones.

use std::time::Duration;

use crate::{Bottleneck, Course, Loss, Path, Seeded, Straying};

const MS: Duration = Duration::from_millis(1);
const MBIT: u64 = 1_000_000;

/// Both directions between two ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// From the first end to the second: from the sender of media to its receiver.
    pub there: Course,
    /// From the second end to the first.
    pub back: Course,
}

impl Conditions {
    /// Creates conditions with the same course in both directions.
    pub fn both(course: impl Into<Course>) -> Self {
        let there = course.into();
        Self { back: there.clone(), there }
    }

    /// Creates conditions with this course from the first end to the second and a perfect path
    /// back.
    pub fn there(course: impl Into<Course>) -> Self {
        Self { there: course.into(), back: Course::default() }
    }

    /// Describes a wired local network: 0.2 ms, 1 Gbit/s, a queue of 512 KiB that marks above 64
    /// KiB, MTU 1500, no loss.
    pub fn lan() -> Self {
        Self::both(Path {
            delay: MS / 5,
            bottleneck: Some(Bottleneck {
                ecn_threshold: Some(64 << 10),
                ..bottleneck(1000, 512 << 10)
            }),
            mtu: Some(1500),
            ..Path::default()
        })
    }

    /// Describes a wireless local network: 3 ms and up to 10 ms of jitter without reordering, 80
    /// Mbit/s, a queue of 256 KiB, MTU 1500, 1 % lost in bursts of 3 (at most 12).
    pub fn wifi() -> Self {
        Self::both(Path {
            delay: 3 * MS,
            jitter: 10 * MS,
            bottleneck: Some(bottleneck(80, 256 << 10)),
            loss: Loss::bursts(0.01, 3.0, 12),
            mtu: Some(1500),
            ..Path::default()
        })
    }

    /// Describes a mobile network: 40 ms and up to 30 ms of jitter without reordering, 20 Mbit/s
    /// there and 50 back, a queue of 1 MiB, MTU 1400, 0.5 % lost in bursts of 5 (at most 20), one
    /// in a thousand late by 5 to 60 ms.
    pub fn mobile() -> Self {
        let way = |rate| Path {
            delay: 40 * MS,
            jitter: 30 * MS,
            bottleneck: Some(bottleneck(rate, 1 << 20)),
            loss: Loss::bursts(0.005, 5.0, 20),
            reordering: Straying::time(0.001, 5 * MS..=60 * MS),
            mtu: Some(1400),
            ..Path::default()
        };
        Self { there: way(20).into(), back: way(50).into() }
    }

    /// Describes a path between continents: 110 ms and up to 2 ms of jitter without reordering, MTU
    /// 1500, 0.3 % lost independently, one in a thousand up to 40 places late, one in two thousand
    /// duplicated.
    pub fn intercontinental() -> Self {
        Self::both(Path {
            delay: 110 * MS,
            jitter: 2 * MS,
            loss: Loss::Independent(0.003),
            reordering: Straying::places(0.001, 1..=40),
            duplication: Straying::places(0.0005, 0..=3),
            mtu: Some(1500),
            ..Path::default()
        })
    }

    /// Describes a geostationary satellite: 280 ms and up to 5 ms of jitter without reordering, 20
    /// Mbit/s, a queue of 1.5 MiB, MTU 1400, 1 % lost in bursts of 8 (at most 20).
    pub fn satellite() -> Self {
        Self::both(Path {
            delay: 280 * MS,
            jitter: 5 * MS,
            bottleneck: Some(bottleneck(20, 3 << 19)),
            loss: Loss::bursts(0.01, 8.0, 20),
            mtu: Some(1400),
            ..Path::default()
        })
    }

    /// Returns all typical networks, by name.
    pub fn all() -> [(&'static str, Self); 5] {
        [
            ("lan", Self::lan()),
            ("wifi", Self::wifi()),
            ("mobile", Self::mobile()),
            ("intercontinental", Self::intercontinental()),
            ("satellite", Self::satellite()),
        ]
    }

    /// Creates random conditions; equal seeds give equal conditions.
    ///
    /// Both directions have the same delay, 0 to 300 ms. Other conditions are drawn for each
    /// direction:
    ///
    /// - loss: a third of the cases has none, a third loses 0 to 20 % independently, and a third
    ///   loses 0 to 20 % in bursts of at most 2 to 20 datagrams;
    /// - reordering: 0 to 2 % of the datagrams are late by up to 0, 10, 100 or 1000 places;
    /// - duplication: 0 to 5 % of the datagrams arrive twice, the copy late by up to 0, 10, 100 or
    ///   1000 places.
    pub fn random(seed: u64) -> Self {
        let mut random = Seeded(seed);
        let delay = MS * random.below(301) as u32;
        let mut way = || Path { delay, ..Path::random(&mut random) };
        Self { there: way().into(), back: way().into() }
    }
}

impl Path {
    /// Creates a random path without delay; see [`Conditions::random`].
    fn random(random: &mut Seeded) -> Self {
        let lost = 0.2 * random.unit();
        let loss = match random.below(3) {
            0 => Loss::None,
            1 => Loss::Independent(lost),
            _ => {
                let max = random.between(2, 20) as u32;
                Loss::bursts(lost, 1.0 + random.unit() * f64::from(max - 1), max)
            }
        };
        let mut straying = |most: f64| {
            let probability = most * random.unit();
            let places = [0, 10, 100, 1000][random.below(4) as usize];
            Straying::places(probability, 0..=places)
        };
        Self { loss, reordering: straying(0.02), duplication: straying(0.05), ..Self::default() }
    }
}

fn bottleneck(megabits: u64, queue: usize) -> Bottleneck {
    Bottleneck { rate: megabits * MBIT, queue, ecn_threshold: None }
}
