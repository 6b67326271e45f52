//! Sessions over the simulated network: delay, loss in bursts, reordering over hundreds of places,
//! duplication; with and without retransmission, clear and secured.
//!
//! Every unit is delivered at most once, in order and as it was sent. The numbers of received and
//! lost packets add up to that of sent ones.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod session;
mod world;

use std::collections::HashMap;
use std::time::Duration;

use rushes_netsim::{Conditions, Loss, Path, Seeded};
use rushes_proto::payload::Delivery;
use rushes_proto::repair::RequestTiming;
use rushes_proto::stream::Discard;
use session::{Outcome, Recovery, Session, Setting};
use world::{Kind, Source};

const MS: Duration = Duration::from_millis(1);

/// Returns frames of one to four units of 20 to 4 000 octets.
fn sources(kind: Kind, frames: u32, random: &mut Seeded) -> Vec<Source> {
    let mut number = 0;
    let mut unit = |random: &mut Seeded| {
        number += 1;
        let most = if random.below(4) == 0 { 4000 } else { 600 };
        kind.unit(number, 20 + random.below(most) as usize, random)
    };
    let frames = (0..frames).map(|_| 1 + random.below(4));
    let units: Vec<u64> = frames.collect();
    // A stream begins with a delimiter or parameter sets, here in three of four cases.
    let mut first = kind.delimiter().filter(|_| random.below(4) > 0);
    units
        .into_iter()
        .map(|count| {
            let count = if kind.has_nal_units() { count } else { 1 };
            let units = (0..count).map(|_| unit(random));
            Source::new(kind, first.take().into_iter().chain(units).collect())
        })
        .collect()
}

fn round_trip(setting: &Setting) -> Duration {
    setting.conditions.there.path.delay + setting.conditions.back.path.delay
}

/// The numbers of units sent and delivered.
#[derive(Clone, Copy, Debug, Default)]
struct Ratio {
    sent: usize,
    arrived: usize,
}

/// Runs a session, checks all conditions, and returns how many units (or frames) arrived.
fn check(setting: &Setting, frames: u32) -> (Ratio, Outcome) {
    let mut random = Seeded(setting.seed ^ 0xabcd);
    let sources = sources(setting.kind, frames, &mut random);
    let latency = setting.recovery.map_or(Duration::ZERO, |(_, latency)| latency);
    let linger = latency + round_trip(setting) + Duration::from_secs(2);
    let outcome = Session::new(setting).run(&sources, linger);
    let kind = setting.kind;
    let expected: Vec<Vec<u8>> = match setting.delivery {
        Delivery::AccessUnit => sources.iter().map(|source| source.delivered(kind)).collect(),
        Delivery::Unit => sources
            .iter()
            .flat_map(|source| source.units.iter())
            .map(|unit| Source::new(kind, vec![unit.clone()]).delivered(kind))
            .collect(),
    };
    let places: HashMap<&[u8], usize> =
        expected.iter().enumerate().map(|(n, unit)| (&unit[..], n)).collect();
    let mut last = None;
    let mut packetiser = kind.format().packetiser();
    for (n, frame) in outcome.frames.iter().enumerate() {
        let mut place = places.get(frame.data());
        if n == 0 && place.is_none() {
            // The first access unit may lack its beginning if the rest looks like a whole one.
            let is_rest = |unit: &Vec<u8>| unit.ends_with(frame.data());
            place = expected
                .iter()
                .position(is_rest)
                .as_ref()
                .and_then(|n| places.get(&expected[*n][..]));
        }
        assert!(place.is_some(), "frame {n} was never sent: {setting:?}");
        packetiser.start(frame.data(), 1400).unwrap();
        assert_eq!(frame.layers(), packetiser.layers(frame.data()), "{setting:?}");
        assert!(last < place, "{last:?} before {place:?}: {setting:?}");
        last = place;
    }
    check_counts(setting, &outcome);
    (Ratio { sent: expected.len(), arrived: outcome.frames.len() }, outcome)
}

fn check_counts(setting: &Setting, outcome: &Outcome) {
    let received = &outcome.received;
    assert!(received.sources.is_empty(), "the source has not ended: {setting:?}");
    let expected: u64 = received.ended.iter().map(|source| source.expected).sum();
    let counted = received.packets + received.packets_lost;
    assert_eq!(counted, expected, "{received:?} of {setting:?}");
    let sent = outcome.packets_sent;
    assert!(counted <= sent, "{counted} of {sent}: {received:?} of {setting:?}");
    // Packets lost before the first received one are unknown. So are those after the last one,
    // unless a report counts them.
    let unknown = outcome.packets_sent - counted;
    let known = outcome.outside + received.discards.get(Discard::Late);
    assert!(unknown <= known, "{unknown} of {known} unknown: {received:?} of {setting:?}");
    assert!(outcome.held_max <= 64 << 20, "{} octets held", outcome.held_max);
}

/// Returns a case derived from `seed`.
fn case(seed: u64) -> Setting {
    let mut random = Seeded(seed);
    let conditions = Conditions::random(seed);
    let kinds = [Kind::H264, Kind::H265, Kind::H266];
    let round_trip = conditions.there.path.delay + conditions.back.path.delay;
    let recovery = match random.below(3) {
        0 => None,
        1 => Some(Recovery::Verbatim),
        _ => Some(Recovery::Rtx),
    };
    Setting {
        kind: kinds[random.below(3) as usize],
        conditions,
        seed,
        delivery: if random.below(2) == 0 { Delivery::AccessUnit } else { Delivery::Unit },
        recovery: recovery.map(|recovery| (recovery, 3 * round_trip + 60 * MS)),
        fec: None,
        secured: random.below(2) == 0,
        packet_len_max: 200 + random.below(1300) as usize,
    }
}

#[test]
fn a_thousand_networks_deliver_every_unit_at_most_once_in_order_and_as_it_was_sent() {
    for seed in 1..=1000 {
        check(&case(seed), 60);
    }
}

#[test]
fn uncompressed_video_is_delivered_whole_once_and_in_order_with_retransmissions_and_srtp() {
    for seed in 1..=100 {
        let setting = Setting {
            kind: Kind::Raw,
            delivery: Delivery::AccessUnit,
            packet_len_max: 150 + (seed % 400) as usize,
            ..case(seed)
        };
        check(&setting, 60);
    }
}

/// The effect of retransmission (RFC 4588).
#[derive(Clone, Copy, Debug)]
struct Recovered {
    /// The share of units delivered.
    arrived: f64,
    /// Requests per lost packet.
    requests: f64,
}

/// Returns the library's default latency.
fn default_latency(_: Duration) -> Duration {
    RequestTiming::default().latency_max
}

/// Returns a latency of three round-trip times and 60 ms.
fn three_round_trips(round_trip: Duration) -> Duration {
    3 * round_trip + 60 * MS
}

/// Runs sessions with RTX at one rate of loss in both directions, independent or in bursts, each
/// over a path with a delay drawn at random.
fn recovered(
    loss: f64,
    delay: impl Fn(&mut Seeded) -> Duration,
    latency: impl Fn(Duration) -> Duration,
) -> Recovered {
    let (mut all, mut requests, mut losses) = (Ratio::default(), 0, 0);
    for seed in 1..=150 {
        let mut random = Seeded(seed);
        let path = Path {
            delay: delay(&mut random),
            loss: match random.below(2) {
                0 => Loss::Independent(loss),
                _ => Loss::bursts(loss, 1.0 + random.unit() * 6.0, 20),
            },
            ..Path::default()
        };
        let setting = Setting { conditions: Conditions::both(path), ..case(seed) };
        let latency = latency(round_trip(&setting));
        let setting = Setting {
            recovery: Some((Recovery::Rtx, latency)),
            delivery: Delivery::Unit,
            ..setting
        };
        let (ratio, outcome) = check(&setting, 200);
        all.sent += ratio.sent;
        all.arrived += ratio.arrived;
        requests += outcome.received.requested;
        losses += outcome.received.recovered + outcome.received.packets_lost;
    }
    let recovered = Recovered {
        arrived: all.arrived as f64 / all.sent as f64,
        requests: requests as f64 / losses as f64,
    };
    println!("loss {loss}: {recovered:?}");
    recovered
}

/// Returns a delay of 0 to 300 ms each way.
fn any_delay(random: &mut Seeded) -> Duration {
    MS * random.below(301) as u32
}

#[test]
fn with_three_round_trips_of_latency_nearly_everything_is_delivered_at_five_per_cent_loss() {
    let recovered = recovered(0.05, any_delay, three_round_trips);
    assert!(recovered.arrived >= 0.999, "{recovered:?}");
    assert!(recovered.requests <= 1.5, "{recovered:?}");
}

#[test]
fn with_three_round_trips_of_latency_nearly_everything_is_delivered_at_twenty_per_cent_loss() {
    let recovered = recovered(0.2, any_delay, three_round_trips);
    assert!(recovered.arrived >= 0.995, "{recovered:?}");
}

/// The default is half a second: enough for at least two requests at round-trip times up to 200 ms.
#[test]
fn at_the_default_latency_nearly_everything_is_delivered_where_the_round_trip_is_short_enough() {
    for (round_trip, loss, least) in [
        (40, 0.05, 0.9995),
        (100, 0.05, 0.9995),
        (200, 0.05, 0.9995),
        (300, 0.05, 0.99),
        (40, 0.2, 0.995),
        (100, 0.2, 0.995),
        (200, 0.2, 0.994),
        (300, 0.2, 0.89),
    ] {
        println!("round trip {round_trip} ms:");
        let recovered = recovered(loss, |_| MS * (round_trip / 2), default_latency);
        assert!(recovered.arrived >= least, "{round_trip} ms: {recovered:?}");
    }
}
