//! Access units with sizes like those of an encoder, filled with data that resembles coded video.

use anyhow::{Context as _, bail};
use rushes::Codec;
use rushes::payload::nal::NalCodec;

use super::{NOMINAL_RATE, Origin, Sequence, Unit, h264, h265, h266};

/// Access units from one intra access unit to the next.
pub(super) const PERIOD: usize = 64;

/// The size of the intra access unit, relative to the mean of the others.
const INTRA: f64 = 5.0;

/// Maximum deviation of the others from their mean, as a share of it.
const SPREAD: f64 = 0.25;

const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// The minimum bit rate, which leaves room for the headers.
const BIT_RATE_MIN: u64 = 1_000_000;
/// The maximum bit rate: a sequence is kept in memory.
const BIT_RATE_MAX: u64 = 20_000_000_000;

pub(super) fn sequence(codec: Codec, bit_rate: u64) -> anyhow::Result<Sequence> {
    if !(BIT_RATE_MIN..=BIT_RATE_MAX).contains(&bit_rate) {
        bail!("cannot make a sequence of {bit_rate} bit/s; the range is 1 Mbit/s to 20 Gbit/s");
    }
    let (sets, header): (_, fn(u32) -> Vec<u8>) = match codec.nal {
        Some(NalCodec::H264) => (h264::parameter_sets(), h264::slice_header),
        Some(NalCodec::H265) => (h265::parameter_sets(), h265::slice_header),
        Some(NalCodec::H266) => (h266::parameter_sets(), h266::slice_header),
        None => bail!("no sequence of {} can be made", codec.title),
    };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let sizes = sizes(bit_rate, &mut random);
    let mut octets = Vec::with_capacity(sizes.iter().sum());
    let mut units = Vec::with_capacity(PERIOD);
    for (n, size) in sizes.into_iter().enumerate() {
        let start = octets.len();
        for set in sets.iter().filter(|_| n == 0) {
            octets.extend_from_slice(&START_CODE);
            octets.extend_from_slice(set);
        }
        octets.extend_from_slice(&START_CODE);
        octets.extend_from_slice(&header(u32::try_from(n)?));
        let slice = octets.len();
        let end = start + size;
        if end < slice + 2 {
            bail!("access unit {n} has no room for a slice");
        }
        octets.resize(end, 0);
        fill(octets.get_mut(slice..).context("no slice")?, &mut random);
        units.push(Unit { octets: start..end, is_intra: n == 0 });
    }
    let origin = Origin::Made(bit_rate);
    Ok(Sequence { codec, octets, units, rate: NOMINAL_RATE, origin })
}

/// Returns the octets of each access unit of a period.
fn sizes(bit_rate: u64, random: &mut Random) -> Vec<usize> {
    let total = bit_rate as f64 / 8.0 / NOMINAL_RATE * PERIOD as f64;
    let mut weights: Vec<f64> = (1..PERIOD)
        .map(|_| 1.0 + SPREAD * (random.next() as f64 / u64::MAX as f64 * 2.0 - 1.0))
        .collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    weights.insert(0, INTRA * mean);
    let sum: f64 = weights.iter().sum();
    #[allow(clippy::cast_sign_loss, reason = "all are above zero")]
    weights.into_iter().map(|weight| (total * weight / sum).round() as usize).collect()
}

/// Fills `octets` with random slice data, without start codes and with the end of a slice.
fn fill(octets: &mut [u8], random: &mut Random) {
    let mut words = octets.chunks_exact_mut(8);
    for word in &mut words {
        word.copy_from_slice(&random.next().to_ne_bytes());
    }
    for octet in words.into_remainder() {
        *octet = random.next() as u8;
    }
    prevent_emulation(octets);
    // The stop bit, with no zeros after it.
    if let Some(last) = octets.last_mut() {
        *last |= 1;
    }
}

/// Replaces the third octet of anything like a start code by an emulation prevention octet, as if
/// the encoder had inserted it.
fn prevent_emulation(octets: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = two_zeros(&octets[at..]) {
        at += found + 2;
        match &mut octets[at..] {
            [third, fourth, ..] if *third <= 3 => {
                *third = 3;
                *fourth &= 3;
            }
            [third] if *third <= 3 => *third = 3,
            _ => {}
        }
    }
}

/// Returns where two zeros in a row begin.
fn two_zeros(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(window) = octets.get(at..at + 8).and_then(|window| window.first_chunk()) {
        if has_zero(u64::from_ne_bytes(*window)) {
            // The last octet may be the first of two.
            let end = (at + 9).min(octets.len());
            let found = octets[at..end].windows(2).position(|pair| pair == [0, 0]);
            if let Some(found) = found {
                return Some(at + found);
            }
        }
        at += 8;
    }
    octets[at..].windows(2).position(|pair| pair == [0, 0]).map(|found| at + found)
}

/// Returns whether any octet of a word is zero.
fn has_zero(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

/// A cheap generator of reproducible pseudo-random numbers (G. Marsaglia's xorshift64*).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_zeros_are_found_wherever_they_are() {
        for len in 2..40 {
            for at in 0..len - 1 {
                let mut octets = vec![1; len];
                octets[at..at + 2].fill(0);
                assert_eq!(two_zeros(&octets), Some(at), "{at} of {len}");
                octets[at] = 1;
                assert_eq!(two_zeros(&octets), None, "{at} of {len}");
            }
        }
    }

    #[test]
    fn nothing_in_slice_data_looks_like_a_start_code() {
        for octet in 0..4 {
            let mut octets = vec![octet; 1000];
            octets[500..].fill(0);
            prevent_emulation(&mut octets);
            for four in octets.windows(4) {
                assert!(four[..2] != [0, 0] || four[2] == 3 && four[3] <= 3, "{four:?}");
            }
        }
    }
}
