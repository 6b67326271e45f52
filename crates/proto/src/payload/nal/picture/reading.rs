//! The information in an access unit's headers from which its presentation position follows.

use crate::time::FrameRate;

/// The first slice of an access unit, with its parameter sets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Reading {
    pub(super) declared: Declared,
    /// Whether the access unit is one field of H.264, which lasts half a frame interval.
    pub(super) is_field: bool,
    pub(super) order: Order,
}

/// The declarations of the active parameter sets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Declared {
    pub(super) rate: Option<FrameRate>,
    /// Whether the presentation order may differ from the decoding order, if declared.
    pub(super) reorders: Option<bool>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// The parameter sets exclude reordering.
    Decoding,
    Count(Picture),
}

/// A picture with its picture order count.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Picture {
    /// `PicOrderCntVal`, or H.264's `PicOrderCnt()`: the presentation order within a coded video
    /// sequence.
    pub(super) count: i64,
    /// Whether it starts a coded video sequence: all pictures before it in decoding order are
    /// presented before it and before all pictures after it.
    pub(super) starts: bool,
    /// Whether pictures after it may be presented before it, if it starts a sequence.
    pub(super) may_have_leading: bool,
}

/// Returns the most significant part of a picture order count with the lower bits `lsb`, with which
/// the count is nearest to the previous one (ITU-T H.264 section 8.2.1.1, H.265 and H.266 section
/// 8.3.1).
pub(super) fn picture_order_msb(
    lsb: i64,
    previous_msb: i64,
    previous_lsb: i64,
    modulus: i64,
) -> i64 {
    if lsb < previous_lsb && previous_lsb - lsb >= modulus / 2 {
        previous_msb + modulus
    } else if lsb > previous_lsb && lsb - previous_lsb > modulus / 2 {
        previous_msb - modulus
    } else {
        previous_msb
    }
}

/// The count of H.265 and H.266 from which the next one is derived: `prevTid0Pic` (section 8.3.1).
#[derive(Clone, Debug)]
pub(super) struct Counter {
    previous: i64,
    /// Whether the stream begins or an end of sequence was read: the next picture then starts a
    /// coded video sequence if it is a random access point.
    pub(super) ended: bool,
}

impl Counter {
    pub(super) fn new() -> Self {
        Self { previous: 0, ended: true }
    }

    /// Returns the count of a picture with the lower bits `lsb`, of `lsb_len` bits. `msb` is the
    /// upper part if the standard or the header states it; `is_previous` is whether later counts
    /// are derived from this one.
    pub(super) fn push(
        &mut self,
        lsb: u32,
        lsb_len: u32,
        msb: Option<i64>,
        is_previous: bool,
    ) -> i64 {
        let (lsb, modulus) = (i64::from(lsb), 1 << lsb_len);
        let previous_lsb = self.previous & (modulus - 1);
        let previous_msb = self.previous - previous_lsb;
        let msb =
            msb.unwrap_or_else(|| picture_order_msb(lsb, previous_msb, previous_lsb, modulus));
        if is_previous {
            self.previous = msb + lsb;
        }
        self.ended = false;
        msb + lsb
    }
}
