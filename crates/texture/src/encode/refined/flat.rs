//! Blocks whose pixels all have one place on the line: a colour next to an end often is nearer to their mean
//! than an end can be.

use crate::encode::line;

/// For each value of a channel the steps of both ends, in the places that they have in a block. The colour next to
/// the first end, at its third of the line, is nearest to the value.
type Table = [u32; 256];

/// How many steps from the value an end may be.
const REACH: u8 = 4;

static HIGH: Table = table(31, 11);
static MIDDLE: Table = table(63, 5);
static LOW: Table = table(31, 0);

/// Returns the block of the mean colour, from sums of red, green and blue over sixteen pixels.
pub(super) fn colour_of(totals: [i32; 3]) -> [u8; 8] {
    let [red, green, blue] =
        totals.map(|total| usize::from(((total + 8) >> 4).cast_unsigned() as u8));
    block(HIGH[red] | MIDDLE[green] | LOW[blue])
}

/// Returns the block of the mean chroma, from sums of Co and Cg over sixteen pixels and its scale: 1, 2 or 4.
pub(super) fn chroma_of(totals: [i32; 2], scale: i32) -> [u8; 8] {
    let mean = |total: i32| (((total - 128 * 16) * scale + 8) >> 4) + 128;
    let [orange, green] =
        totals.map(|total| usize::from(mean(total).clamp(0, 255).cast_unsigned() as u8));
    let blue = (scale - 1).cast_unsigned();
    block(HIGH[orange] | MIDDLE[green] | blue | blue << 16)
}

/// Returns the block of the mean colour, from a lane of the vector code.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn colour(totals: [u8; 16]) -> [u8; 8] {
    let [red, green, blue, _] = totals_of(totals);
    colour_of([red, green, blue])
}

/// Returns the block of the mean chroma, from a lane of the vector code; the former block has the scale.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) fn chroma(totals: [u8; 16], former: [u8; 8]) -> [u8; 8] {
    let [orange, green, ..] = totals_of(totals);
    chroma_of([orange, green], i32::from(former[0] & 31) + 1)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn totals_of(lane: [u8; 16]) -> [i32; 4] {
    let mut totals = [0; 4];
    for (total, octets) in totals.iter_mut().zip(lane.as_chunks().0) {
        *total = i32::from_le_bytes(*octets);
    }
    totals
}

fn block(ends: u32) -> [u8; 8] {
    line::ordered([ends as u16, (ends >> 16) as u16], 0xaaaa_aaaa)
}

/// Returns the table of a channel of up to `greatest` steps, 31 or 63, `shift` bits from the end.
#[allow(clippy::cast_possible_wrap, reason = "values are below 256")]
const fn table(greatest: u8, shift: u32) -> Table {
    let mut table = [0; 256];
    let mut value = 0;
    while value < 256 {
        let near = (value * greatest as usize / 255) as u8;
        let (mut best, mut first) = (i32::MAX, near.saturating_sub(REACH));
        while first <= greatest && first <= near + REACH {
            let mut second = near.saturating_sub(REACH);
            while second <= greatest && second <= near + REACH {
                let third = (2 * expanded(first, greatest) + expanded(second, greatest)) / 3;
                // Decoders round differently, which matters less the nearer the ends are.
                let spread = (first as i32 - second as i32).abs();
                let badness = (third - value as i32).abs() * 256 + spread;
                if badness < best {
                    best = badness;
                    table[value] = (first as u32 | (second as u32) << 16) << shift;
                }
                second += 1;
            }
            first += 1;
        }
        value += 1;
    }
    table
}

const fn expanded(steps: u8, greatest: u8) -> i32 {
    let (factor, rest) = if greatest == 63 { (259, 33) } else { (527, 23) };
    (steps as i32 * factor + rest) >> 6
}
