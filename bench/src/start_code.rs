//! `rushes bench start-code`: the speed of finding NAL units in a byte stream.

use std::hint::black_box;
use std::time::{Duration, Instant};

use clap::Args;
use memchr::memmem::Finder;
use rushes::payload::nal::find_start_codes;

use crate::captions;
use crate::ends::in_turns;
use crate::report::{Figure, Span, Table, medians_of};
use crate::settings::{Measure, Settings};

#[derive(Args, Clone, Debug)]
#[command(after_help = "\
One core counts the start codes (0 0 1) of the same octets in memory, in turns: by the library, by
`memmem` of the memchr crate, and octet by octet. GB/s are medians of the turns.")]
pub(crate) struct StartCodeArgs {}

/// Generates this number of octets.
type Make = fn(usize) -> Vec<u8>;

/// Counts start codes.
type Search<'a> = &'a dyn Fn(&[u8]) -> usize;

/// The octets to search, by the frequency of zeros in them.
const CASES: [(&str, Make); 6] = [
    ("slice, zeros as by chance", |len| slice(len, 256)),
    ("slice, one octet in 16 is zero", |len| slice(len, 16)),
    ("slice, one octet in 4 is zero", |len| slice(len, 4)),
    ("zero, other, one (near misses)", |len| [0, 5, 1].repeat(len / 3)),
    ("zeros only", |len| vec![0; len]),
    ("NAL units of 50 octets", |len| [&[0, 0, 1][..], &[0x42; 47]].concat().repeat(len / 50)),
];

/// Octets searched at a time, as in a large access unit.
const LEN: usize = 700 << 10;

/// Returns a slice in which one octet in `rarity` is zero, with emulation prevention.
fn slice(len: usize, rarity: u64) -> Vec<u8> {
    let mut state = 1_u64;
    let mut octets: Vec<u8> = Vec::with_capacity(len + 1);
    while octets.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let is_zero = (state >> 32).is_multiple_of(rarity);
        let octet = if is_zero { 0 } else { (state >> 56) as u8 | 1 };
        // Emulation prevention before the octets 0 to 3.
        if octet < 4 && octets.ends_with(&[0, 0]) {
            octets.push(3);
        }
        octets.push(octet);
    }
    octets
}

fn octet_by_octet(octets: &[u8]) -> usize {
    octets.windows(3).filter(|window| **window == [0, 0, 1]).count()
}

impl Measure for StartCodeArgs {
    fn figures(&self, settings: &Settings) -> anyhow::Result<Vec<Figure>> {
        settings.progress("start codes");
        let (turns, time) = settings.choose((9, 40), (3, 20));
        let finder = Finder::new(&[0, 0, 1]);
        let searches: [Search<'_>; 3] = [
            &|octets| find_start_codes(octets).count(),
            &|octets| finder.find_iter(octets).count(),
            &octet_by_octet,
        ];
        let mut rows = Vec::new();
        for (name, make) in CASES {
            let octets = make(LEN);
            let found = searches.map(|search| search(&octets));
            anyhow::ensure!(
                found == [found[2]; 3],
                "{name}: start codes were missed or invented: {found:?}"
            );
            let time = Duration::from_millis(time);
            let speeds = in_turns(&searches, turns, |_, search| Ok(speed(*search, &octets, time)))?;
            rows.push((name, speeds.into_iter().map(Span::of_runs).collect::<Vec<_>>()));
        }
        let table = Table::of(&rows)
            .text("octets", |row| row.0)
            .measure("library", 1, |row| Some(row.1[0]?.median))
            .measure("least", 1, |row| Some(row.1[0]?.low))
            .measure("most", 1, |row| Some(row.1[0]?.high))
            .measure("memmem", 1, |row| Some(row.1[1]?.median))
            .measure("octet by octet", 1, |row| Some(row.1[2]?.median))
            .measure("library / octet by octet", 1, |row| {
                Some(row.1[0]?.median / row.1[2]?.median)
            });
        let settings = format!("GB/s, {LEN} octets at a time, {}", medians_of(turns));
        Ok(vec![table.figure(&captions::START_CODE, settings)])
    }
}

/// Returns the GB/s that `search` reaches in `time`.
fn speed(search: Search<'_>, octets: &[u8], time: Duration) -> f64 {
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < time {
        black_box(search(black_box(octets)));
        count += 1;
    }
    count as f64 * octets.len() as f64 * 1e-9 / start.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_hold_no_start_code_and_the_zeros_that_they_should() {
        for rarity in [256, 16, 4] {
            let octets = slice(100_000, rarity);
            assert_eq!(octet_by_octet(&octets), 0);
            let zeros = octets.iter().map(|octet| u64::from(*octet == 0)).sum::<u64>();
            let expected = 100_000 / rarity;
            assert!(zeros > expected / 2 && zeros < expected * 2, "{zeros} of 1 in {rarity}");
        }
    }
}
