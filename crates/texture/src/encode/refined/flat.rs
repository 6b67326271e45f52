//! Blocks of one colour, which the colour next to an end often has exactly where no end has it.

/// The steps of both ends for each value of a channel; their third is nearest to it.
type Table = [[u8; 2]; 256];

/// How many steps from the value an end may be.
const REACH: u8 = 4;

static FIVE_BITS: Table = table(31);
static SIX_BITS: Table = table(63);

/// Replaces the last eight bytes of the block of a lane by the nearest one, if it has one colour.
#[inline]
pub(super) fn replace<const LANES: usize, const SIZE: usize>(
    pixels: &[[[u8; 4]; LANES]; 16],
    lane: usize,
    out: &mut [u8; SIZE],
) {
    let [red, green, blue, _] = pixels[0][lane];
    if pixels.iter().any(|pixel| pixel[lane][..3] != [red, green, blue]) {
        return;
    }
    let [red, blue] = [red, blue].map(|value| FIVE_BITS[usize::from(value)]);
    let green = SIX_BITS[usize::from(green)];
    let end = |n: usize| u32::from(red[n]) << 11 | u32::from(green[n]) << 5 | u32::from(blue[n]);
    if let Some(out) = out.last_chunk_mut() {
        *out = super::ordered([end(0), end(1)], 0xaaaa_aaaa);
    }
}

/// Returns the table for values of up to `greatest`, 31 or 63.
#[allow(clippy::cast_possible_wrap, reason = "values are below 256")]
const fn table(greatest: u8) -> Table {
    let mut table = [[0; 2]; 256];
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
                    table[value] = [first, second];
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
