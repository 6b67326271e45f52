//! Block modes: the grid of a block's weights, their planes and their range.

use crate::decode::astc::sequence::Range;

/// The weights of a block.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    /// The size of the grid.
    pub(super) width: u8,
    pub(super) height: u8,
    /// 1 or 2.
    pub(super) planes: u8,
    /// The index of [`RANGES`].
    pub(super) range: u8,
    /// The bits of all weights; 0 if the mode is reserved or has too many or too few weights.
    pub(super) bits: u8,
}

/// The ranges of weights (section C.2.7), those of high precision in the second half.
pub(super) static RANGES: [Range; 16] = {
    let none = Range::new(1, 0);
    let [one, two, three] = [Range::new(1, 1), Range::new(1, 2), Range::new(1, 3)];
    let [trits, quints] = [Range::new(3, 0), Range::new(5, 0)];
    [
        none,
        none,
        one,
        trits,
        two,
        quints,
        Range::new(3, 1),
        three,
        none,
        none,
        Range::new(5, 1),
        Range::new(3, 2),
        Range::new(1, 4),
        Range::new(5, 2),
        Range::new(3, 3),
        Range::new(1, 5),
    ]
};

/// The modes by the lowest eleven bits of a block.
pub(super) static MODES: [Mode; 2048] = {
    let mut modes = [Mode { width: 0, height: 0, planes: 1, range: 0, bits: 0 }; 2048];
    let mut bits = 0;
    while bits < modes.len() {
        modes[bits] = mode(bits as u32);
        bits += 1;
    }
    modes
};

/// Decodes a block mode (section C.2.10).
const fn mode(mode: u32) -> Mode {
    let (a, b) = (mode >> 5 & 3, mode >> 7 & 3);
    let (mut planes, mut high) = (1 + (mode >> 10 & 1), mode >> 9 & 1);
    let (upper, width, height) = if mode & 3 != 0 {
        let (width, height) = match (mode >> 2 & 3, b) {
            (0, _) => (b + 4, a + 2),
            (1, _) => (b + 8, a + 2),
            (2, _) => (a + 2, b + 8),
            (_, 0 | 1) => (a + 2, b + 6),
            _ => (b, a + 2),
        };
        (mode & 3, width, height)
    } else {
        let (width, height) = match (b, a) {
            (0, _) => (12, a + 2),
            (1, _) => (a + 2, 12),
            (2, _) => {
                (planes, high) = (1, 0);
                (a + 6, (mode >> 9 & 3) + 6)
            }
            (_, 0) => (6, 10),
            (_, 1) => (10, 6),
            // Reserved.
            _ => (0, 0),
        };
        (mode >> 2 & 3, width, height)
    };
    let range = mode >> 4 & 1 | upper << 1;
    let count = width * height * planes;
    let mut bits = 0;
    if range >= 2 && count <= 64 {
        bits = RANGES[(range | high << 3) as usize].bits_of(count);
    }
    // Section C.2.24.
    if bits < 24 || bits > 96 {
        bits = 0;
    }
    Mode {
        width: width as u8,
        height: height as u8,
        planes: planes as u8,
        range: (range | high << 3) as u8,
        bits: bits as u8,
    }
}
