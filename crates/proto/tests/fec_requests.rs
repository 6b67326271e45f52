//! Repair packets together with requests, where a round trip leaves time for one request only, or for
//! none.
#![cfg(feature = "srtp")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod session;
mod world;

use std::time::Duration;

use rushes_netsim::{Conditions, Loss, Path, Seeded};
use rushes_proto::payload::Delivery;
use session::{Recovery, Session, Setting};
use world::{Kind, Source};

const ONE_WAY: Duration = Duration::from_millis(100);
const LATENCY: Duration = Duration::from_millis(300);

/// How long a packet is not requested, the default of the facade.
const FEC_WAIT: Duration = Duration::from_millis(60);

const RUNS: u64 = 20;
const FRAMES: u32 = 1000;

/// Returns the share of access units that arrive over a path with this delay that loses a share of the
/// packets in both directions, each independently.
fn delivered_over(
    (delay, loss, runs): (Duration, f64, u64),
    recovery: bool,
    percent: Option<u8>,
    unit_len: usize,
) -> f64 {
    let path = Path { delay, loss: Loss::Independent(loss), ..Path::default() };
    let mut arrived = 0;
    for seed in 1..=runs {
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
    arrived as f64 / (runs * u64::from(FRAMES)) as f64
}

/// Returns the share of access units that arrive at 10 % of loss.
fn delivered(recovery: bool, percent: Option<u8>, unit_len: usize) -> f64 {
    let share = delivered_over((ONE_WAY, 0.1, RUNS), recovery, percent, unit_len);
    println!("{unit_len} octets, recovery {recovery}, {percent:?} %: {:.3} %", share * 100.0);
    share
}

/// Requests need a round trip within the limit, repair packets need none.
#[test]
fn repair_packets_help_at_any_delay_and_requests_where_there_is_time() {
    for one_way in [10, 300] {
        let path = (Duration::from_millis(one_way), 0.1, 1);
        let repairs_alone = delivered_over(path, false, Some(20), 3000);
        let both = delivered_over(path, true, Some(20), 3000);
        assert!(repairs_alone > 0.9, "{one_way} ms: {repairs_alone}");
        // Requests change which packets are lost, so that the shares differ by chance.
        let least = if one_way == 10 { 0.999 } else { repairs_alone - 0.02 };
        assert!(both >= least, "{one_way} ms: {both} {repairs_alone}");
    }
}

/// Prints the share of access units of nine packets that arrive within 300 ms beyond the path's own
/// delay: with requests, with 20 % of repair packets, and with both.
#[test]
#[ignore = "takes minutes"]
fn the_table_of_delays_and_losses() {
    for one_way in [10, 30, 100, 300] {
        for loss in [0.01, 0.05, 0.1, 0.2] {
            let path = (Duration::from_millis(one_way), loss, 4);
            let [requests, repairs, both] = [(true, None), (false, Some(20)), (true, Some(20))]
                .map(|(recovery, percent)| delivered_over(path, recovery, percent, 10_000) * 100.0);
            println!(
                "{one_way:>3} ms one way, {:>2} %: {requests:.2} {repairs:.2} {both:.2}",
                loss * 100.0
            );
            assert!(both + 0.5 >= requests.max(repairs), "{one_way} ms, {loss}");
        }
    }
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
