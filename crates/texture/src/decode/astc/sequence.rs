//! Bounded integer sequences (section C.2.12): values of plain bits, or of bits and trits, of which five
//! share eight bits, or quints, of which three share seven.
#![allow(clippy::inline_always, reason = "shifts are constant where they are inlined")]

/// How many levels values have: `digits << bits`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Range {
    /// 3 for trits, 5 for quints, 1 for plain bits.
    pub(super) digits: u8,
    pub(super) bits: u8,
}

/// Room for the values of a sequence, at most 64, and for the rest of the last group.
pub(super) type Values = [u8; 128];

/// The values of all levels of a range.
pub(super) type Table = [u8; 256];

impl Range {
    pub(super) const fn new(digits: u8, bits: u8) -> Self {
        Self { digits, bits }
    }

    /// Returns the number of levels.
    pub(super) const fn levels(self) -> usize {
        (self.digits as usize) << self.bits
    }

    /// Returns the number of bits of `count` values.
    pub(super) const fn bits_of(self, count: u32) -> u32 {
        let digits = match self.digits {
            3 => (8 * count).div_ceil(5),
            5 => (7 * count).div_ceil(3),
            _ => 0,
        };
        self.bits as u32 * count + digits
    }
}

/// Writes the values of the first `count` levels, at most 64.
///
/// What `bits` has after the sequence is ignored, and some values after `count` are overwritten.
pub(super) fn read((range, table): (Range, &Table), bits: u128, count: u32, values: &mut Values) {
    let bits = bits & ((1 << range.bits_of(count)) - 1);
    let groups = |length: u32| count.div_ceil(length) as usize;
    match (range.digits, range.bits) {
        (3, 0) => trits::<0>(bits, groups(5), table, values),
        (3, 1) => trits::<1>(bits, groups(5), table, values),
        (3, 2) => trits::<2>(bits, groups(5), table, values),
        (3, 3) => trits::<3>(bits, groups(5), table, values),
        (3, 4) => trits::<4>(bits, groups(5), table, values),
        (3, 5) => trits::<5>(bits, groups(5), table, values),
        (3, _) => trits::<6>(bits, groups(5), table, values),
        (5, 0) => quints::<0>(bits, groups(3), table, values),
        (5, 1) => quints::<1>(bits, groups(3), table, values),
        (5, 2) => quints::<2>(bits, groups(3), table, values),
        (5, 3) => quints::<3>(bits, groups(3), table, values),
        (5, 4) => quints::<4>(bits, groups(3), table, values),
        (5, _) => quints::<5>(bits, groups(3), table, values),
        (_, 1) => plain::<1>(bits, groups(5), table, values),
        (_, 2) => plain::<2>(bits, groups(5), table, values),
        (_, 3) => plain::<3>(bits, groups(5), table, values),
        (_, 4) => plain::<4>(bits, groups(5), table, values),
        (_, 5) => plain::<5>(bits, groups(5), table, values),
        (_, 6) => plain::<6>(bits, groups(5), table, values),
        (_, 7) => plain::<7>(bits, groups(5), table, values),
        _ => plain::<8>(bits, groups(5), table, values),
    }
}

fn trits<const BITS: u32>(mut bits: u128, groups: usize, table: &Table, values: &mut Values) {
    for group in values.as_chunks_mut::<5>().0.iter_mut().take(groups) {
        let word = bits as u64;
        let packed = word >> BITS & 0x03
            | word >> (2 * BITS) & 0x0c
            | word >> (3 * BITS) & 0x10
            | word >> (4 * BITS) & 0x60
            | word >> (5 * BITS) & 0x80;
        let digits = u64::from(TRITS[packed as usize]);
        for (n, value) in (0..).zip(group) {
            let at = [0, 2, 4, 5, 7][n as usize] + n * BITS;
            *value = level::<BITS>(word >> at, digits >> (3 * n), table);
        }
        bits >>= 8 + 5 * BITS;
    }
}

fn quints<const BITS: u32>(mut bits: u128, groups: usize, table: &Table, values: &mut Values) {
    for group in values.as_chunks_mut::<3>().0.iter_mut().take(groups) {
        let word = bits as u64;
        let packed = word >> BITS & 0x07 | word >> (2 * BITS) & 0x18 | word >> (3 * BITS) & 0x60;
        let digits = u64::from(QUINTS[packed as usize]);
        for (n, value) in (0..).zip(group) {
            let at = [0, 3, 5][n as usize] + n * BITS;
            *value = level::<BITS>(word >> at, digits >> (3 * n), table);
        }
        bits >>= 7 + 3 * BITS;
    }
}

fn plain<const BITS: u32>(mut bits: u128, groups: usize, table: &Table, values: &mut Values) {
    for group in values.as_chunks_mut::<5>().0.iter_mut().take(groups) {
        let word = bits as u64;
        for (n, value) in (0..).zip(group) {
            *value = level::<BITS>(word >> (n * BITS), 0, table);
        }
        bits >>= 5 * BITS;
    }
}

/// Returns the value of a level, of which the bits and the digit are the lowest ones of two words.
#[inline(always)]
fn level<const BITS: u32>(word: u64, digits: u64, table: &Table) -> u8 {
    let level = word & ((1 << BITS) - 1) | (digits & 7) << BITS;
    table[(level & 255) as usize]
}

/// The trits that share eight bits, three bits each.
static TRITS: [u16; 256] = {
    let mut trits = [0; 256];
    let mut packed = 0;
    while packed < 256 {
        trits[packed as usize] = five_trits(packed);
        packed += 1;
    }
    trits
};

/// The quints that share seven bits, three bits each.
static QUINTS: [u16; 128] = {
    let mut quints = [0; 128];
    let mut packed = 0;
    while packed < 128 {
        quints[packed as usize] = three_quints(packed);
        packed += 1;
    }
    quints
};

const fn five_trits(packed: u16) -> u16 {
    let (low, fourth, fifth) = if packed >> 2 & 7 == 7 {
        (packed >> 5 << 2 | packed & 3, 2, 2)
    } else if packed >> 5 & 3 == 3 {
        (packed & 31, packed >> 7, 2)
    } else {
        (packed & 31, packed >> 5 & 3, packed >> 7)
    };
    let (first, second, third) = if low & 3 == 3 {
        (low >> 2 & 3 & !(low >> 3 & 1), low >> 4, 2)
    } else if low >> 2 & 3 == 3 {
        (low & 3, 2, 2)
    } else {
        (low & 3 & !(low >> 1 & 1), low >> 2 & 3, low >> 4)
    };
    first | second << 3 | third << 6 | fourth << 9 | fifth << 12
}

const fn three_quints(packed: u16) -> u16 {
    let (upper, middle) = (packed >> 5 & 3, packed >> 3 & 3);
    if packed >> 1 & 3 == 3 && upper == 0 {
        let third = if packed & 1 == 1 { 4 } else { middle };
        return 4 | 4 << 3 | third << 6;
    }
    let (low, third) = if packed >> 1 & 3 == 3 {
        (middle << 3 | (!upper & 3) << 1 | packed & 1, 4)
    } else {
        (packed & 31, upper)
    };
    if low & 7 == 5 {
        return low >> 3 | 4 << 3 | third << 6;
    }
    low & 7 | low >> 3 << 3 | third << 6
}
