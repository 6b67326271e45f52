//! The cases: paths, flows, and the seconds in which rates are measured.
#![allow(clippy::single_range_in_vec_init, reason = "a case has ranges of seconds, often one")]

use std::ops::Range;
use std::time::Duration;

use super::encoder::Encoder;
use super::flow::{Flow, Schedule, Source};
use super::media::{Controller, Media};
use super::tcp::Tcp;
use super::world::run;
use super::{MS, RATES};
use crate::{Bottleneck, Course, Path};

/// The time that the queue of the bottleneck holds (RFC 8867 section 4.2).
const QUEUE: Duration = Duration::from_millis(300);

/// What a flow sends.
#[derive(Clone, Debug)]
enum Kind {
    /// Media, with the seed of its encoder.
    Media(u64),
    Tcp(Tcp),
}

/// One case.
#[derive(Clone, Debug)]
pub struct Case {
    /// The section of RFC 8867, and what else the case differs by.
    pub name: &'static str,
    /// What is tried.
    pub title: &'static str,
    /// Duration in seconds.
    pub seconds: u32,
    /// The seconds in which rates are measured: each has one capacity, and flows have adapted.
    pub ranges: Vec<Range<usize>>,
    /// A flow that has to grow, as its place among the flows; from which second on; and the rate
    /// in kbit/s that it should reach: 80 % of its share.
    pub growth: (usize, usize, usize),
    courses: [Course; 2],
    flows: Vec<(Kind, Schedule)>,
}

impl Case {
    /// Runs the case; `controller` creates the controller of a flow that begins at a time.
    pub fn run<C: Controller>(&self, mut controller: impl FnMut(Duration) -> C) -> Vec<Flow<C>> {
        self.run_with(RATES[1] as f64, |begins| {
            Source::Media(Box::new(Media::new(controller(begins), begins)))
        })
    }

    /// Runs the case with media of a fixed `rate` in kbit/s, which nothing controls.
    pub fn run_fixed<C: Controller>(&self, rate: u32) -> Vec<Flow<C>> {
        let rate = f64::from(rate) * 1000.0;
        self.run_with(rate, |_| Source::Fixed(rate))
    }

    fn run_with<C: Controller>(
        &self,
        rate: f64,
        mut media: impl FnMut(Duration) -> Source<C>,
    ) -> Vec<Flow<C>> {
        let flow = |(kind, schedule): &(Kind, Schedule)| match kind {
            Kind::Media(seed) => {
                let encoder = Encoder::new(*seed, schedule.begins, rate);
                Flow::new(media(schedule.begins), schedule.clone(), encoder)
            }
            Kind::Tcp(tcp) => {
                let unused = Encoder::new(0, Duration::MAX, rate);
                Flow::new(Source::Tcp(tcp.clone()), schedule.clone(), unused)
            }
        };
        let mut flows: Vec<_> = self.flows.iter().map(flow).collect();
        run(&mut flows, self.courses.clone(), self.seconds);
        flows
    }

    /// Returns whether the path has bottlenecks in both directions.
    pub fn is_two_way(&self) -> bool {
        self.courses.iter().all(|course| course.path.bottleneck.is_some())
    }

    /// Returns the capacity in a direction at a second, in kbit/s; 0 if it is not limited.
    pub fn capacity(&self, way: usize, second: usize) -> usize {
        let course = &self.courses[way];
        let latest = course.changes.iter().rfind(|change| change.at.as_secs() as usize <= second);
        let path = latest.and_then(|change| change.path.as_ref()).unwrap_or(&course.path);
        path.bottleneck.map_or(0, |bottleneck| bottleneck.rate as usize / 1000)
    }
}

/// A bottleneck of this capacity in kbit/s whose queue holds a time.
fn path(capacity: u64, queue: Duration) -> Path {
    let rate = capacity * 1000;
    let queue = (rate as f64 / 8.0 * queue.as_secs_f64()) as usize;
    let bottleneck = Some(Bottleneck { rate, queue, ecn_threshold: None });
    Path { bottleneck, ..Path::default() }
}

/// A path of these capacities in kbit/s, each from a second on.
fn course(first: u64, changes: &[(u32, u64)]) -> Course {
    let then = |course: Course, (at, rate): &(u32, u64)| {
        course.then(Duration::from_secs((*at).into()), path(*rate, QUEUE))
    };
    changes.iter().fold(path(first, QUEUE).into(), then)
}

/// A flow of media from a second on.
fn media(seed: u64, begins: u64) -> (Kind, Schedule) {
    (Kind::Media(seed), Schedule::from(Duration::from_secs(begins)))
}

/// Returns the cases, in the order of the RFC.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::from(varying());
    cases.extend(shared());
    cases.extend([300, 1000].map(beside_long_tcp));
    cases.push(beside_short_tcp());
    cases.push(pausing());
    cases
}

/// Returns the cases whose capacity varies.
fn varying() -> [Case; 3] {
    let free = || Course::from(Path::default());
    let mut back = media(2, 0);
    back.1.way = 1;
    [
        Case {
            name: "5.1",
            title: "one flow, capacity varies",
            seconds: 100,
            ranges: vec![20..40, 50..60, 65..80, 90..100],
            growth: (0, 0, 800),
            // 1 Mbit/s times 1, 2.5, 0.6 and 1.
            courses: [course(1000, &[(40, 2500), (60, 600), (80, 1000)]), free()],
            flows: vec![media(1, 0)],
        },
        Case {
            name: "5.2",
            title: "two flows, capacity varies",
            seconds: 125,
            ranges: vec![15..25, 35..50, 60..75, 85..100, 110..125],
            growth: (0, 0, 1200),
            // 2 Mbit/s times 2, 1, 1.75, 0.5 and 1.
            courses: [course(4000, &[(25, 2000), (50, 3500), (75, 1000), (100, 2000)]), free()],
            flows: vec![media(1, 0), media(2, 0)],
        },
        Case {
            name: "5.3",
            title: "a flow in each direction, both capacities vary",
            seconds: 100,
            ranges: vec![10..20, 25..35, 45..60, 85..100],
            growth: (0, 60, 1200),
            courses: [
                course(2000, &[(20, 1000), (40, 500), (60, 2000)]),
                course(2000, &[(35, 800), (70, 2000)]),
            ],
            flows: vec![media(1, 0), back],
        },
    ]
}

/// Returns the cases in which flows of media share a path.
fn shared() -> [Case; 2] {
    let delays = [10, 25, 50, 100, 150].into_iter().zip(0..);
    let delayed = |(delay, place): (u32, u64)| {
        let (kind, schedule) = media(delay.into(), 10 * place);
        (kind, Schedule { delay: delay * MS, ..schedule })
    };
    [
        Case {
            name: "5.4",
            title: "three flows, one after another",
            seconds: 120,
            ranges: vec![80..120],
            growth: (2, 40, 933),
            courses: [path(3500, QUEUE).into(), Path::default().into()],
            flows: vec![media(0, 0), media(20, 20), media(40, 40)],
        },
        Case {
            name: "5.5",
            title: "five flows, delays of 10, 25, 50, 100 and 150 ms",
            seconds: 200,
            ranges: vec![100..200],
            growth: (4, 40, 640),
            courses: [path(4000, QUEUE).into(), Path::default().into()],
            flows: delays.map(delayed).collect(),
        },
    ]
}

/// Returns the case with a long TCP flow, and a queue of this many milliseconds.
fn beside_long_tcp(queue: u32) -> Case {
    let is_short = queue == 300;
    Case {
        name: if is_short { "5.6" } else { "5.6, 1 s" },
        title: if is_short {
            "beside a long TCP flow, queue of 300 ms"
        } else {
            "beside a long TCP flow, queue of 1 s"
        },
        seconds: 120,
        ranges: vec![60..120],
        growth: (1, 5, 800),
        courses: [path(2000, queue * MS).into(), Path::default().into()],
        flows: vec![(Kind::Tcp(Tcp::long()), Schedule::from(Duration::ZERO)), media(1, 5)],
    }
}

/// Returns the case with ten TCP flows that come and go, but none after 200 s.
fn beside_short_tcp() -> Case {
    let ends = Duration::from_secs(200);
    let schedule = Schedule { ends, ..Schedule::from(Duration::ZERO) };
    let tcp = (0..10).map(|n| (Kind::Tcp(Tcp::short(n + 10, n < 2)), schedule.clone()));
    Case {
        name: "5.7",
        title: "two flows beside short TCP flows, which end after 200 s",
        seconds: 300,
        ranges: vec![100..200, 240..300],
        growth: (0, 200, 800),
        courses: [path(2000, QUEUE).into(), Path::default().into()],
        flows: [media(1, 5), media(2, 5)].into_iter().chain(tcp).collect(),
    }
}

/// Returns the case in which one of three flows pauses.
fn pausing() -> Case {
    let mut flows = vec![media(1, 0), media(2, 0), media(3, 0)];
    flows[1].1.pause = Duration::from_secs(40)..Duration::from_secs(60);
    Case {
        name: "5.8",
        title: "three flows, of which one pauses from 40 to 60 s",
        seconds: 120,
        ranges: vec![30..40, 90..120],
        growth: (1, 60, 933),
        courses: [path(3500, QUEUE).into(), Path::default().into()],
        flows,
    }
}
