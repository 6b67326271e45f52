//! The four pixel rows of a block row.

/// Bytes of one row of a block: four pixels of four bytes.
pub(super) const BLOCK: usize = 16;

/// Four rows of equal length.
pub(crate) type Strip<'a> = [&'a [u8]; 4];

/// The pixels of a block, row by row.
pub(super) type Pixels = [[u8; 4]; 16];

/// Cuts four rows of `blocks` blocks out of `rgba`; returns `None` if it is too short.
pub(super) fn strip(rgba: &[u8], stride: usize, blocks: usize) -> Option<Strip<'_>> {
    let length = blocks.checked_mul(BLOCK)?;
    let row = |n: usize| {
        let start = stride.checked_mul(n)?;
        rgba.get(start..start.checked_add(length)?)
    };
    Some([row(0)?, row(1)?, row(2)?, row(3)?])
}

/// Returns the blocks of a strip, from left to right.
pub(super) fn blocks(strip: Strip<'_>) -> impl Iterator<Item = Pixels> {
    let [a, b, c, d] = strip.map(|row| row.as_chunks::<BLOCK>().0);
    a.iter().zip(b).zip(c).zip(d).map(|(((a, b), c), d)| {
        let mut pixels = [[0; 4]; 16];
        for (pixels, row) in pixels.as_chunks_mut::<4>().0.iter_mut().zip([a, b, c, d]) {
            pixels.copy_from_slice(row.as_chunks::<4>().0);
        }
        pixels
    })
}

/// Returns the number of blocks in whole groups of `N`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn whole<const N: usize>(strip: Strip<'_>) -> usize {
    strip[0].len() / BLOCK / N * N
}

/// Returns the rest of a strip after its first `count` blocks.
pub(crate) fn after(strip: Strip<'_>, count: usize) -> Strip<'_> {
    strip.map(|row| row.get(count * BLOCK..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_is_cut_only_where_its_last_octet_is() {
        assert!(strip(&[0; 16 * 4], 16, 1).is_some());
        assert!(strip(&[0; 16 * 4 - 1], 16, 1).is_none());
        assert!(strip(&[0; 48 * 3 + 16], 48, 1).is_some());
        assert!(strip(&[0; 64], usize::MAX, 1).is_none());
        assert!(strip(&[0; 64], 16, usize::MAX).is_none());
    }
}
