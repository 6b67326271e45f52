//! Frames over a network that loses, delays, duplicates and forges datagrams: received octets are
//! correct, missing ones are reported, and every stream ends.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rushes::Pacing;
use rushes::texture::{
    ClientOptions, ClientStatistics, Format, Layout, ServerOptions, TextureClient, TextureServer,
    Timing, Transport,
};

use rushes_netsim::{Bottleneck, Conditions, Loss, Path, Statistics, Straying};

use texture_world::noise::Noise;
use texture_world::relay::{Between, Weather};
use texture_world::witness::{Pictures, Seen, Witness};

/// Time after which a stream counts as hung.
const HANGS: Duration = Duration::from_secs(30);

const FORMATS: [Format; 3] = [Format::Bc1, Format::Yuv420, Format::Rgb24];

/// A stream that goes through the relay.
#[derive(Clone, Debug)]
struct Trial {
    format: Format,
    size: (u32, u32),
    units: usize,
    frames: u64,
    fps: u32,
    slots: usize,
    transport: Transport,
    /// The shortest and the longest wait for missing packets.
    deadlines: (Duration, Duration),
    /// Whether missing packets are sent again.
    recovery: bool,
    weather: Weather,
}

/// The outcome of a trial.
struct Outcome {
    seen: Seen,
    statistics: ClientStatistics,
    packets: u64,
    went: u64,
    came: u64,
}

impl Trial {
    fn small(format: Format, units: usize, weather: Weather) -> Self {
        let deadlines = (Duration::ZERO, Duration::from_millis(50));
        let transport = Transport::Udp;
        let (size, frames, fps, slots) = ((319, 181), 20, 100, 3);
        let recovery = true;
        Self { format, size, units, frames, fps, slots, transport, deadlines, recovery, weather }
    }

    fn run(&self) -> Outcome {
        let layout = Layout::new(self.format, self.size.0, self.size.1).unwrap();
        let mut options = ServerOptions::default();
        (options.units, options.transport) = (self.units, self.transport);
        (options.timing, options.pacing) = (Timing::EveryFrame, Pacing::Rate(800_000_000));
        let noise = Noise::new(layout, self.fps, self.frames);
        let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
        let relay = Between::new(server.local_address(), self.weather.clone());

        let witness = Witness::new(Pictures::Numbered(self.frames));
        let witness = Arc::new(witness.with_forged(relay.tally.forged.clone()));
        let mut options = ClientOptions::default();
        (options.slots, options.recovery) = (self.slots, self.recovery);
        (options.deadline_min, options.deadline_max) = self.deadlines;
        let client = TextureClient::connect(relay.address(), witness.clone(), options).unwrap();
        let packets = u64::from(client.shape().unwrap().plan().packets());
        let end = client.wait(HANGS).unwrap_or_else(|| panic!("{self:?}: no end"));
        assert!(end.text.contains("source has ended"), "{self:?}: {end}");
        // Packets of other units may still be in flight.
        let until = Instant::now() + HANGS;
        let came = || relay.tally.statistics().sent;
        while came() < packets * self.frames && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let statistics = client.stop();
        let seen = witness.seen();
        let Statistics { sent: came, delivered: went, .. } = relay.tally.statistics();
        let outcome = Outcome { seen, statistics, packets, went, came };
        self.check(&outcome);
        outcome
    }

    /// Checks the properties that hold on every network.
    fn check(&self, outcome: &Outcome) {
        let Outcome { seen, statistics, packets, went, .. } = outcome;
        assert_eq!(seen.faults, [""; 0], "{self:?}: {statistics:?}");
        assert_eq!(seen.ends, 1, "{self:?}");
        let handed = statistics.frames_whole + statistics.frames_damaged;
        assert_eq!((handed, statistics.frames_damaged), (seen.frames, seen.damaged), "{self:?}");
        // A forged header may name frames that do not exist.
        let counted = handed + statistics.frames_lost == self.frames;
        assert!(counted || self.weather.forged > 0.0, "{self:?}: {statistics:?}");
        assert_eq!(statistics.packets_lost, seen.packets_missing, "{self:?}");
        let all = statistics.packets + statistics.packets_lost;
        assert_eq!(all, handed * packets, "{self:?}: {statistics:?}");
        let heard = statistics.packets
            + statistics.packets_duplicate
            + statistics.packets_late
            + statistics.packets_invalid;
        assert!(heard <= *went, "{self:?}: {heard} of {went}");
    }
}

/// Runs the trials, six at a time.
fn run_all(trials: &[Trial]) -> Vec<Outcome> {
    thread::scope(|scope| {
        let mut outcomes = Vec::new();
        for some in trials.chunks(6) {
            let running: Vec<_> = some.iter().map(|trial| scope.spawn(|| trial.run())).collect();
            outcomes.extend(running.into_iter().map(|trial| trial.join().unwrap()));
        }
        outcomes
    })
}

/// Returns a network with this path that forges nothing.
fn weather(path: Path, seed: u64) -> Weather {
    Weather { path, seed, ..Weather::default() }
}

fn losing(probability: f64) -> Path {
    Path { loss: Loss::Independent(probability), ..Path::default() }
}

/// Delays datagrams behind up to twenty later ones.
fn late(probability: f64) -> Straying {
    Straying::places(probability, 1..=20)
}

fn twice(probability: f64) -> Straying {
    Straying::places(probability, 0..=0)
}

/// Small frames of every format, in one to four units.
fn small(weather: &Weather) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (place, format) in FORMATS.into_iter().enumerate() {
        for units in [1 + place, 4] {
            let seed = weather.seed + trials.len() as u64;
            trials.push(Trial::small(format, units, Weather { seed, ..weather.clone() }));
        }
    }
    trials
}

#[test]
fn a_network_that_does_nothing_changes_nothing() {
    for (trial, outcome) in
        small(&Weather::default()).iter().zip(run_all(&small(&Weather::default())))
    {
        let lacks = outcome.went - outcome.statistics.packets.min(outcome.went);
        let late = outcome.statistics.packets_late;
        // On a busy machine some packets arrive after the end and are not read.
        assert!(outcome.seen.frames > 0 && late <= lacks, "{trial:?}: {late} of {lacks}");
        // A packet is sent again only if it was requested, because a thread was later than its frame.
        let again = outcome.came - outcome.packets * trial.frames;
        assert!(again <= 3 * outcome.statistics.packets_requested, "{trial:?}: {again} again");
    }
}

#[test]
fn lost_packets_are_concealed_and_nothing_else_is() {
    for lost in [1, 10, 100] {
        let path = losing(lost as f64 / 1000.0);
        let mut trials = small(&weather(path, lost));
        for trial in &mut trials {
            trial.recovery = false;
        }
        let outcomes = run_all(&trials);
        let missing: u64 = outcomes.iter().map(|outcome| outcome.seen.packets_missing).sum();
        assert!(lost == 1 || missing > 0);
    }
}

/// Returns a trial with the deadline and slots of `rushes texture view` when it writes a file.
fn for_a_file(frames: u64, seed: u64, path: Path) -> Trial {
    let weather = weather(path, seed);
    let (slots, deadlines) = (8, (Duration::from_secs(1), Duration::from_secs(1)));
    Trial { frames, slots, deadlines, ..Trial::small(Format::Bc1, 2, weather) }
}

#[test]
fn frames_that_wait_for_longer_than_the_stream_lasts_all_count() {
    let trials: Vec<_> = (0..12).map(|seed| for_a_file(24, seed, losing(0.02))).collect();
    for outcome in run_all(&trials) {
        assert!(outcome.seen.frames > 0, "{:?}", outcome.statistics);
    }
}

#[test]
fn frames_of_which_nothing_came_before_the_end_are_lost() {
    let path = Path { loss: Loss::Outage(30..u64::MAX), ..Path::default() };
    let outcome = for_a_file(24, 1, path).run();
    assert!(outcome.statistics.frames_lost > 10, "{:?}", outcome.statistics);
}

#[test]
fn a_server_that_closes_has_sent_and_announced_its_whole_last_frame() {
    let layout = Layout::new(Format::Rgb24, 1_280, 720).unwrap();
    for seed in 0..4 {
        let mut options = ServerOptions::default();
        (options.units, options.timing) = (2, Timing::EveryFrame);
        options.pacing = Pacing::Rate(400_000_000);
        let noise = Noise::new(layout, 60, 1_000);
        let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
        let relay = Between::new(server.local_address(), weather(losing(0.02), seed));
        let witness = Arc::new(Witness::new(Pictures::Numbered(1_000)));
        let mut options = ClientOptions::default();
        // The packets sent are counted.
        options.recovery = false;
        let client = TextureClient::connect(relay.address(), witness.clone(), options).unwrap();
        let packets = u64::from(client.shape().unwrap().plan().packets());
        let until = Instant::now() + HANGS;
        while witness.seen().frames < 5 + seed && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        drop(server);
        let end = client.wait(HANGS).unwrap();
        assert!(end.text.contains("closing"), "{end}");
        let statistics = client.stop();
        let ended = statistics.frames_whole + statistics.frames_damaged + statistics.frames_lost;
        let sent = || relay.tally.statistics().sent;
        let until = Instant::now() + HANGS;
        while sent() < ended * packets && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(sent(), ended * packets, "{statistics:?}");
        assert_eq!(witness.seen().faults, [""; 0]);
    }
}

#[test]
fn on_a_slow_link_frames_that_take_longer_than_the_deadline_are_whole() {
    // A frame takes 2.3 s, and packets are 19 ms apart.
    let line = Bottleneck { rate: 600_000, queue: 4 << 20, ecn_threshold: None };
    let path = Path { bottleneck: Some(line), ..Path::default() };
    let deadlines = (Duration::ZERO, Duration::from_secs(1));
    let slow = Trial { deadlines, frames: 3, ..Trial::small(Format::Rgb24, 1, weather(path, 12)) };
    let outcome = slow.run();
    assert_eq!((outcome.seen.frames, outcome.seen.damaged), (3, 0), "{:?}", outcome.statistics);
}

#[test]
fn packets_out_of_order_find_their_places() {
    run_all(&small(&weather(Path { reordering: late(0.2), ..Path::default() }, 5)));
}

#[test]
fn packets_that_arrive_twice_count_once() {
    let path = Path { duplication: twice(0.3), ..Path::default() };
    for outcome in run_all(&small(&weather(path, 6))) {
        let statistics = outcome.statistics;
        assert!(statistics.packets_duplicate + statistics.packets_late > 0, "{statistics:?}");
    }
}

#[test]
fn forged_headers_spoil_only_the_octets_that_they_name() {
    for outcome in run_all(&small(&Weather { forged: 0.05, seed: 7, ..Weather::default() })) {
        assert!(outcome.statistics.packets_invalid > 0);
    }
}

#[test]
fn everything_at_once_still_ends() {
    let path = Path { reordering: late(0.1), duplication: twice(0.1), ..losing(0.05) };
    let weather = Weather { forged: 0.02, ..weather(path, 8) };
    let mut trials = small(&weather);
    trials.iter_mut().zip(2..).for_each(|(trial, slots)| trial.slots = slots);
    run_all(&trials);
}

#[test]
fn rtp_over_a_bad_network_ends_as_well() {
    let path = Path { reordering: late(0.1), duplication: twice(0.1), ..losing(0.05) };
    let mut trials = small(&weather(path, 11));
    for trial in &mut trials {
        trial.transport = Transport::Rtp;
    }
    let outcomes = run_all(&trials);
    let missing: u64 = outcomes.iter().map(|outcome| outcome.seen.packets_missing).sum();
    assert!(missing > 0 && outcomes.iter().any(|outcome| outcome.seen.frames > 0));
}

#[test]
fn networks_that_people_have_end_nothing() {
    for (_, conditions) in Conditions::all() {
        run_all(&small(&weather(conditions.back.path, 10)));
    }
}

#[test]
fn large_frames_survive_bad_weather() {
    let path = Path { reordering: late(0.02), duplication: twice(0.02), ..losing(0.01) };
    let trial = |(seed, format)| Trial {
        size: (1_918, 1_078),
        frames: 6,
        fps: 20,
        ..Trial::small(format, 4, weather(path.clone(), seed))
    };
    for trial in (20..).zip(FORMATS).map(trial) {
        let outcome = trial.run();
        assert!(outcome.seen.frames > 0, "{trial:?}");
    }
}

#[test]
fn a_network_that_falls_silent_for_good_ends_nothing_but_the_pictures() {
    let path = Path { loss: Loss::Outage(40..u64::MAX), ..Path::default() };
    for outcome in run_all(&small(&weather(path, 9))) {
        assert!(outcome.seen.frames > 0 && outcome.seen.frames < 20);
    }
}

/// A trial whose frames have one packet each.
fn tiny(frames: u64, outage: std::ops::Range<u64>) -> Trial {
    let weather = weather(Path { loss: Loss::Outage(outage), ..Path::default() }, 0);
    Trial { size: (30, 26), frames, fps: 200, ..Trial::small(Format::Bc1, 1, weather) }
}

#[test]
fn small_frames_arrive_again_after_an_outage() {
    let outcome = tiny(200, 50..100).run();
    let Seen { frames, last, .. } = outcome.seen;
    assert!(frames > 100 && last == Some(199), "{frames} until {last:?}");
}

#[test]
fn after_an_outage_of_more_frames_than_a_header_can_count_numbers_are_still_right() {
    let outcome = tiny(700, 100..500).run();
    let Seen { frames, last, .. } = outcome.seen;
    assert!(frames > 100 && last == Some(699), "{frames} until {last:?}");
}

#[test]
fn every_tile_is_reported_before_its_frame() {
    let layout = Layout::new(Format::Bc1, 319, 181).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.timing) = (4, Timing::EveryFrame);
    let noise = Noise::new(layout, 100, 20);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let witness = Witness::new(Pictures::Numbered(20)).slow(Duration::from_millis(3));
    let witness = Arc::new(witness);
    let options = ClientOptions::default();
    let client = TextureClient::connect(server.local_address(), witness.clone(), options).unwrap();
    client.wait(HANGS).unwrap();
    client.stop();
    assert_eq!(witness.seen().faults, [""; 0]);
    assert!(witness.seen().frames > 0);
}
