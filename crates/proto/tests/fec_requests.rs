//! Repair packets together with requests, where a round trip leaves time for one request only.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod session;
mod world;

use std::time::Duration;

use rushes_netsim::{Conditions, Loss, Path, Seeded};
use rushes_proto::payload::Delivery;
use session::{Recovery, Session, Setting};
use world::{Kind, Source};

const ROUND_TRIP: Duration = Duration::from_millis(200);
const LATENCY: Duration = Duration::from_millis(300);

/// How long a packet is not requested, the default of the facade.
const FEC_WAIT: Duration = Duration::from_millis(60);

const RUNS: u64 = 20;
const FRAMES: u32 = 1000;

/// Returns the share of access units that arrive, at 10 % of independent loss in both directions.
fn delivered(recovery: bool, percent: Option<u8>, unit_len: usize) -> f64 {
    let path = Path { delay: ROUND_TRIP / 2, loss: Loss::Independent(0.1), ..Path::default() };
    let mut arrived = 0;
    for seed in 1..=RUNS {
        // The latency includes the time for which repair packets are awaited.
        let limit = if percent.is_some() { LATENCY.saturating_sub(FEC_WAIT) } else { LATENCY };
        let setting = Setting {
            kind: Kind::H265,
            conditions: Conditions::both(path.clone()),
            seed,
            delivery: Delivery::AccessUnit,
            recovery: recovery.then_some((Recovery::Rtx, limit)),
            fec: percent.map(|percent| (percent, FEC_WAIT)),
            secured: true,
            packet_len_max: 1200,
        };
        let mut random = Seeded(seed);
        let sources: Vec<_> = (0..FRAMES)
            .map(|n| Source::new(Kind::H265, vec![Kind::H265.unit(n, unit_len, &mut random)]))
            .collect();
        let outcome = Session::new(&setting).run(&sources, Duration::from_secs(2));
        let mut expected = sources.iter().map(|source| source.delivered(Kind::H265));
        for frame in &outcome.frames {
            assert!(expected.any(|unit| unit == frame.data()), "never sent, or in another order");
        }
        arrived += outcome.frames.len();
    }
    let share = arrived as f64 / (RUNS * u64::from(FRAMES)) as f64;
    println!("{unit_len} octets, recovery {recovery}, {percent:?} %: {:.3} %", share * 100.0);
    share
}

/// Access units of 3 packets, with one repair packet each, and of 9, with one or two.
#[test]
fn requests_add_to_repair_packets_even_if_there_is_time_for_one_only() {
    for unit_len in [3000, 10_000] {
        let requests_alone = delivered(true, None, unit_len);
        let repairs_alone = delivered(false, Some(20), unit_len);
        let both = delivered(true, Some(20), unit_len);
        assert!(requests_alone < 0.97 && repairs_alone < 0.97, "{requests_alone} {repairs_alone}");
        assert!(both >= 0.999, "{unit_len} octets: {both}");
    }
}
