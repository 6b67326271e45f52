//! Which of several partitions each pixel belongs to.

use crate::decode::astc::PIXELS;
use crate::format::Block;

/// Returns the partition of each pixel, of two to four (section C.2.21).
#[inline]
pub(super) fn of_pixels(block: u128, shape: Block) -> [u8; PIXELS] {
    let count = (block >> 11 & 3) as u32 + 1;
    let seed = (block >> 13 & 0x3ff) as u32;
    let number = scrambled(seed | (count - 1) << 10);
    let [by_seed, by_count] = [if seed & 2 == 0 { 5 } else { 4 }, if count == 3 { 6 } else { 5 }];
    let shifts = if seed & 1 == 0 { [by_count, by_seed] } else { [by_seed, by_count] };
    // Coordinates in small blocks count twice. Only the lowest six bits of sums matter.
    let doubled = u32::from(shape.width * shape.height < 31);
    let factor = |n: u32| {
        let nibble = number >> (4 * n) & 15;
        (((nibble * nibble) >> shifts[n as usize % 2]) << doubled) as u8
    };
    let (mut across, mut down) = ([0; 4], [0; 4]);
    let mut start = [14, 10, 6, 2].map(|shift| (number >> shift) as u8);
    for n in 0..4 {
        across[n] = factor(2 * n as u32);
        down[n] = factor(2 * n as u32 + 1);
    }
    let mut partitions = [0; PIXELS];
    let rows = partitions.chunks_exact_mut(shape.width as usize).take(shape.height as usize);
    for row in rows {
        let mut sums = start;
        for partition in row {
            *partition = greatest(sums.map(|sum| sum & 63), count);
            for n in 0..4 {
                sums[n] = sums[n].wrapping_add(across[n]);
            }
        }
        for n in 0..4 {
            start[n] = start[n].wrapping_add(down[n]);
        }
    }
    partitions
}

/// Returns the number of the greatest value, or of the first of them; those from `count` on are 0.
#[inline]
fn greatest([a, b, c, d]: [u8; 4], count: u32) -> u8 {
    let c = if count < 3 { 0 } else { c };
    let d = if count < 4 { 0 } else { d };
    let (one, of_one) = if b > a { (1, b) } else { (0, a) };
    let (other, of_other) = if d > c { (3, d) } else { (2, c) };
    if of_other > of_one { other } else { one }
}

/// Returns a number whose bits depend on all bits of a seed.
const fn scrambled(seed: u32) -> u32 {
    let mut number = seed;
    number ^= number >> 15;
    number = number.wrapping_sub(number << 17);
    number = number.wrapping_add(number << 7);
    number = number.wrapping_add(number << 4);
    number ^= number >> 5;
    number = number.wrapping_add(number << 16);
    number ^= number >> 7;
    number ^= number >> 3;
    number ^= number << 6;
    number ^ number >> 17
}
