//! Picture order counts from slice headers (ITU-T H.264 section 8.2.1).

use super::super::reading::{Picture, picture_order_msb};
use super::sets::{Cycle, Order};
use super::slice::{Slice, Structure};

/// The state from which the next picture order count is derived.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    /// `prevPicOrderCntMsb` and `prevPicOrderCntLsb`.
    previous: (i64, i64),
    /// `prevFrameNum` and `prevFrameNumOffset`.
    frame_num: (u32, u64),
    /// Which field the last picture was, if it was the first field of an IDR picture.
    idr_field: Option<Structure>,
}

impl Counter {
    /// Returns the next picture in decoding order; `None` if its count is out of range.
    pub(super) fn push(&mut self, slice: &Slice, order: &Order) -> Option<Picture> {
        let second = match (slice.is_idr, self.idr_field) {
            (true, Some(first)) => ![first, Structure::Frame].contains(&slice.structure),
            _ => false,
        };
        let is_field = slice.structure != Structure::Frame;
        let starts = slice.is_idr && !second;
        self.idr_field = (starts && is_field).then_some(slice.structure);
        if starts {
            *self = Self { idr_field: self.idr_field, ..Self::default() };
        }
        let [top, bottom] = match order {
            Order::Signalled { lsb_len } => self.signalled(slice, 1 << lsb_len),
            Order::Expected(cycle) => self.expected(slice, cycle),
            Order::Decoding => [0, 0],
        };
        let count = match slice.structure {
            Structure::Frame => top.min(bottom),
            Structure::TopField => top,
            Structure::BottomField => bottom,
        };
        if i32::try_from(count).is_err() {
            *self = Self::default();
            return None;
        }
        if slice.resets {
            // The picture counts as an IDR picture from here on: sections 8.2.1 and 7.4.3.
            let lsb = if slice.structure == Structure::BottomField { 0 } else { top - count };
            *self = Self { previous: (0, lsb), ..Self::default() };
            return Some(Picture { count: 0, starts: true, may_have_leading: true });
        }
        Some(Picture { count, starts, may_have_leading: true })
    }

    /// Returns the counts of type 0 (section 8.2.1.1).
    fn signalled(&mut self, slice: &Slice, modulus: i64) -> [i64; 2] {
        let (previous_msb, previous_lsb) = self.previous;
        let lsb = i64::from(slice.lsb);
        let msb = picture_order_msb(lsb, previous_msb, previous_lsb, modulus);
        if slice.is_reference {
            self.previous = (msb, lsb);
        }
        [msb + lsb, msb + lsb + i64::from(slice.delta_bottom)]
    }

    /// Returns the counts of type 1 (section 8.2.1.2), with `frame_num` of at most 16 bits.
    fn expected(&mut self, slice: &Slice, cycle: &Cycle) -> [i64; 2] {
        let (previous, mut offset) = self.frame_num;
        if previous > slice.frame_num {
            offset += cycle.frame_num_max;
        }
        self.frame_num = (slice.frame_num, offset);
        let len = cycle.offsets.len() as u64;
        let mut number = if len == 0 { 0 } else { offset + u64::from(slice.frame_num) };
        number -= u64::from(!slice.is_reference && number > 0);
        let mut expected = if slice.is_reference { 0 } else { cycle.offset_for_non_ref_pic };
        if number > 0 {
            let sum = |count: u64| -> i64 {
                cycle.offsets.iter().take(count as usize).map(|offset| i64::from(*offset)).sum()
            };
            let cycles = i64::try_from((number - 1) / len).unwrap_or(i64::MAX);
            expected = expected.saturating_add(cycles.saturating_mul(sum(len)));
            expected = expected.saturating_add(sum((number - 1) % len + 1));
        }
        let delta = slice.delta.map(i64::from);
        let to_bottom = cycle.offset_for_top_to_bottom_field;
        let top = expected.saturating_add(delta[0]);
        // A field has no second difference.
        [top, top.saturating_add(to_bottom + delta[1])]
    }
}
