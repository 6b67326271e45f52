//! The loss that repair packets leave in a stream, against theory: over paths of several delays, with
//! jitter, and with independent losses and bursts.
//!
//! `cargo test -p rushes-proto --test fec_delays -- --ignored --nocapture` prints the whole table.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::disallowed_methods, reason = "any instant will do")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_netsim::Seeded;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;
use rushes_proto::repair::fec::{DecoderLimits, FecFormat};
use rushes_proto::stream::{
    Event, FecReception, FecSending, Receiver, ReceiverConfig, Sender, SenderConfig,
};
use rushes_proto::{Batch, ClockRate, FrameRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

const MEDIA: Ssrc = Ssrc(7);
const REPAIR: Ssrc = Ssrc(8);
const FIRST: u16 = 65_000;

/// Packets of a frame, which is a block.
const BLOCK: u64 = 40;

/// Octets of a frame of as many packets as a block has.
const FRAME_LEN: usize = 3140;

const INTERVAL: Duration = Duration::from_millis(33);

/// A path that is in one of two states: good, or bad, where it loses everything (Gilbert 1960).
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// The probabilities of going from good to bad and from bad to good, before each datagram.
    enter: f64,
    leave: f64,
}

impl Chain {
    /// Loses a share of all datagrams, each independently of the others.
    fn independent(loss: f64) -> Self {
        Self { enter: loss, leave: 1.0 - loss }
    }

    /// Loses a share of all datagrams in bursts of three on average.
    fn bursts(loss: f64) -> Self {
        let leave = 1.0 / 3.0;
        Self { enter: loss / (1.0 - loss) * leave, leave }
    }

    /// Returns the share of packets of a block that stays lost: those lost together with another
    /// packet of their column, or with its repair packet. `repairs` of them follow the block.
    fn residual(self, repairs: u64) -> f64 {
        let loss = self.enter / (self.enter + self.leave);
        let recovered = |lost: u64| {
            // The probabilities of both states after each datagram, as far as it has the fate that
            // the recovery of packet `lost` needs.
            let (mut good, mut bad) = (1.0 - loss, loss);
            for place in 0..BLOCK + repairs {
                (good, bad) = (
                    good * (1.0 - self.enter) + bad * self.leave,
                    good * self.enter + bad * (1.0 - self.leave),
                );
                let column = if place < BLOCK { place % repairs } else { place - BLOCK };
                if place == lost {
                    good = 0.0;
                } else if column == lost % repairs {
                    bad = 0.0;
                }
            }
            good + bad
        };
        loss - (0..BLOCK).map(recovered).sum::<f64>() / BLOCK as f64
    }
}

fn sender(percent: u8) -> Sender {
    let config = SenderConfig {
        ssrc: MEDIA,
        payload_type: PayloadType::GENERIC,
        first_sequence: SequenceNumber(FIRST),
        first_timestamp: RtpTimestamp(0),
        clock_rate: ClockRate::VIDEO,
        frame_rate: FrameRate::DEFAULT,
        packet_len_max: 120,
    };
    let fec = FecSending {
        format: FecFormat::FlexFec,
        payload_type: PayloadType::new(115).unwrap(),
        red: None,
        ssrc: REPAIR,
        first_sequence: SequenceNumber(9),
        percent,
        span: Duration::ZERO,
    };
    Sender::new(Generic::default().packetiser(), config).unwrap().with_fec(fec).unwrap()
}

fn receiver() -> Receiver {
    let mut config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
    config.remote_ssrc = Some(MEDIA);
    config.fec = Some(FecReception {
        format: FecFormat::FlexFec,
        payload_type: PayloadType::new(115).unwrap(),
        red: None,
        ssrc: Some(REPAIR),
        wait: Duration::from_millis(60),
        limits: DecoderLimits::default(),
    });
    Receiver::new(Arc::new(Generic::default()), config).unwrap()
}

/// Sends `blocks` blocks over a path with this delay and up to a tenth of it as jitter, and returns
/// the packets of each that stay lost. The path loses nothing of the first and of the last one.
fn lost(percent: u8, chain: Chain, delay: Duration, blocks: u64) -> Vec<u64> {
    let (mut sender, mut batch, start) = (sender(percent), Batch::new(), Instant::now());
    let (mut random, mut is_bad) = (Seeded(delay.as_millis() as u64), false);
    let mut arrivals = Vec::new();
    for n in 0..blocks + 2 {
        let frame = vec![n as u8; FRAME_LEN];
        let mut outgoing = sender.push(&frame, None).unwrap();
        while outgoing.fill(&mut batch) {
            for datagram in batch.datagrams() {
                is_bad = random.chance(if is_bad { 1.0 - chain.leave } else { chain.enter });
                if is_bad && (1..=blocks).contains(&n) {
                    continue;
                }
                // Of the first frame the receiver cannot know that it begins with another packet.
                let jitter = delay / 10 * random.below(1000) as u32 / 1000 * u32::from(n > 0);
                let sent = start + INTERVAL * n as u32;
                arrivals.push((sent + delay + jitter, datagram.to_vec()));
            }
        }
        drop(outgoing);
        let (packets, repairs) = (sender.statistics().packets, sender.statistics().repairs);
        assert_eq!(
            (packets, repairs),
            ((n + 1) * BLOCK, (n + 1) * BLOCK * u64::from(percent) / 100)
        );
    }
    arrivals.sort_by_key(|(at, _)| *at);
    let (mut receiver, mut lost) = (receiver(), vec![0; blocks as usize + 2]);
    for (at, datagram) in arrivals {
        while let Some(due) = receiver.poll_timeout().filter(|due| *due <= at) {
            receiver.handle_timeout(due);
        }
        receiver.handle_datagram(at, &datagram);
        while let Some(frame) = receiver.poll_frame() {
            let first = frame.data()[0];
            let is_whole = frame.len() == FRAME_LEN;
            let others = frame.data().iter().filter(|octet| **octet != first).count();
            assert!(is_whole && others == 0, "{} octets, {others} others, {first}", frame.len());
        }
        while let Some(event) = receiver.poll_event() {
            let Event::PacketsLost { first, packets, .. } = event else { continue };
            let first = u64::from(first.sequence().0.wrapping_sub(FIRST));
            for place in (first..).take(packets as usize) {
                lost[(place / BLOCK) as usize] += 1;
            }
        }
    }
    assert!(lost[0] == 0 && lost.pop() == Some(0));
    lost.split_off(1)
}

/// Checks that the loss that is left is within four standard deviations of theory.
fn check(percent: u8, chain: Chain, delay: Duration, blocks: u64) -> (f64, f64) {
    let lost = lost(percent, chain, delay, blocks);
    let mean = lost.iter().sum::<u64>() as f64 / blocks as f64;
    let spread: f64 = lost.iter().map(|count| (*count as f64 - mean).powi(2)).sum();
    let expected = chain.residual(BLOCK * u64::from(percent) / 100) * BLOCK as f64;
    // Packets that stay lost come at least in twos.
    let variance = (spread / blocks as f64).max(2.0 * expected);
    let deviation = (variance / blocks as f64).sqrt();
    assert!(
        (mean - expected).abs() <= 4.0 * deviation,
        "{percent} %, {chain:?}, {delay:?}: {mean} of {BLOCK} instead of {expected}"
    );
    (mean / BLOCK as f64, expected / BLOCK as f64)
}

const RATIOS: [u8; 5] = [5, 10, 20, 25, 50];

#[test]
fn the_loss_that_is_left_is_that_of_theory_over_paths_of_any_delay() {
    for (delay, ratios) in [(10, [5, 20]), (300, [10, 50])] {
        for percent in ratios {
            for loss in [0.0, 0.05, 0.2] {
                for chain in [Chain::independent(loss), Chain::bursts(loss)] {
                    check(percent, chain, Duration::from_millis(delay), 100);
                }
            }
        }
    }
}

#[test]
fn theory_of_independent_losses_has_a_closed_form() {
    for (percent, loss) in RATIOS.into_iter().zip([0.01, 0.05, 0.1, 0.2, 0.3]) {
        let repairs = BLOCK * u64::from(percent) / 100;
        let closed = loss * (1.0 - (1.0_f64 - loss).powi((BLOCK / repairs) as i32));
        assert!((Chain::independent(loss).residual(repairs) - closed).abs() < 1e-12);
    }
}

/// Prints in percent what is left, and in parentheses what theory says.
#[test]
#[ignore = "takes minutes"]
fn the_whole_table_is_that_of_theory() {
    for (name, chain) in
        [("independent", Chain::independent as fn(f64) -> Chain), ("bursts", Chain::bursts)]
    {
        for delay in [10, 30, 100, 300] {
            println!("{name}, {delay} ms one way; by ratio: {RATIOS:?} %");
            for loss in [0.0, 0.01, 0.05, 0.1, 0.2] {
                let cells = RATIOS.map(|percent| {
                    let delay = Duration::from_millis(delay);
                    let (left, expected) = check(percent, chain(loss), delay, 1000);
                    format!("{:.3} ({:.3})", left * 100.0, expected * 100.0)
                });
                println!("{:>4} %: {}", loss * 100.0, cells.join("  "));
            }
        }
    }
}
