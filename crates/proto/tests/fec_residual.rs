//! The loss that repair packets leave, against theory.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_netsim::Seeded;
use rushes_proto::Ssrc;
use rushes_proto::repair::fec::{BlockSize, Decoder, DecoderLimits, Encoder, FecFormat};

const SOURCE: Ssrc = Ssrc(7);
const PACKETS: u32 = 400_000;

fn packet(n: u32) -> Vec<u8> {
    let [high, low] = (n as u16).to_be_bytes();
    let mut packet = vec![0x80, 96, high, low];
    packet.extend((n * 3000).to_be_bytes());
    packet.extend(SOURCE.0.to_be_bytes());
    packet.extend(n.to_be_bytes());
    packet
}

/// Returns the share of packets that is lost on the way, and the share that stays lost, with blocks
/// of `packets` and `repairs` and a path that loses those datagrams for which `is_lost` is true.
fn residual((packets, repairs): (u16, u16), mut is_lost: impl FnMut() -> bool) -> (f64, f64) {
    let size = BlockSize::new(FecFormat::FlexFec, packets, repairs).unwrap();
    let mut encoder = Encoder::new(size, SOURCE);
    let mut decoder = Decoder::new(FecFormat::FlexFec, SOURCE, DecoderLimits::default());
    let (mut lost, mut recovered) = (0, 0);
    for n in 0..PACKETS {
        let packet = packet(n);
        encoder.push(&packet);
        if is_lost() {
            lost += 1;
        } else {
            decoder.handle_source(&packet);
        }
        if encoder.is_full() {
            encoder.close(|repair| {
                if !is_lost() {
                    let _ = decoder.handle_repair(&[SOURCE], repair);
                }
            });
        }
        while let Some(found) = decoder.poll_recovered() {
            let number = u32::from_be_bytes(found[12..].try_into().unwrap());
            assert_eq!(found, self::packet(number));
            recovered += 1;
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(PACKETS);
    (share(lost), share(lost - recovered))
}

#[test]
fn independent_loss_leaves_what_theory_says() {
    for repairs in [2, 4, 8, 10, 20] {
        for loss in [0.01, 0.02, 0.05, 0.1, 0.2] {
            let mut random = Seeded(1);
            let (_, left) = residual((40, repairs), || random.chance(loss));
            // A packet stays lost if another one of its column, or their repair packet, is lost.
            let column = 40.0 / f64::from(repairs);
            let expected = loss * (1.0 - (1.0_f64 - loss).powf(column));
            // Four standard deviations of pairs: packets that stay lost come at least in twos.
            let deviation = (2.0 * expected / f64::from(PACKETS)).sqrt();
            assert!(
                (left - expected).abs() < 4.0 * deviation,
                "{repairs} of 40 at {loss}: {left} instead of {expected}"
            );
            println!("{repairs} of 40 at {loss}: {left:.5}, in theory {expected:.5}");
        }
    }
}

#[test]
fn interleaving_recovers_bursts_that_repair_packets_of_neighbours_do_not() {
    /// One packet in two hundred begins a burst of three.
    fn bursts() -> impl FnMut() -> bool {
        let (mut random, mut left) = (Seeded(2), 0);
        move || {
            if left == 0 && random.chance(0.005) {
                left = 4;
            }
            left -= i32::from(left > 0);
            left > 0
        }
    }
    let (lost, interleaved) = residual((40, 8), bursts());
    let (_, of_neighbours) = residual((5, 1), bursts());
    assert!(interleaved < lost / 5.0, "{interleaved} of {lost}");
    assert!(of_neighbours > lost / 2.0, "{of_neighbours} of {lost}");
}
