//! When pictures are presented, from the headers of their access units.

mod bits;
mod format;
mod h264;
mod h265;
mod h266;
mod headers;
mod look_ahead;
mod position;
mod reading;
mod recent;
mod step;
#[cfg(test)]
mod tests;
mod timeline;
mod vui;
#[cfg(test)]
mod write;

pub use format::{PictureFormat, parameter_set_id};
pub use look_ahead::PictureLookAhead;
pub use position::Position;

use super::header::NalCodec;
use crate::payload::builder::Framing;
use crate::time::FrameRate;
use headers::{Entry, Headers};
use reading::Order;
use timeline::Timeline;

/// When a picture is presented.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PictureTime {
    /// Its position among the pictures of the stream.
    pub position: Position,
    /// The source of the position.
    pub order: PictureOrder,
    /// Whether the picture is one field of a pair, whose duration is half a frame interval. In
    /// H.264 each field is a separate access unit.
    pub is_field: bool,
    /// The frame rate that the active parameter sets declare; `None` if they declare none.
    ///
    /// H.264: `time_scale` / (2 × `num_units_in_tick`) (ITU-T H.264 section E.2.1). H.265:
    /// `vui_time_scale` / `vui_num_units_in_tick` or those of the VPS (ITU-T H.265 sections E.3.1
    /// and 7.4.3.1). H.266: `time_scale` / `num_units_in_tick` of the SPS (ITU-T H.266 section
    /// 7.3.5.1). Encoders of video without a constant rate declare a nominal one.
    pub frame_rate: Option<FrameRate>,
    /// Whether the presentation order may differ from the decoding order; `None` if the active
    /// parameter sets do not declare it, and before the first ones.
    pub reorders: Option<bool>,
}

/// The source of a picture's position.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PictureOrder {
    /// The picture order count.
    Count,
    /// The place in decoding order, because the parameter sets exclude another order.
    Decoding,
    /// The place in decoding order, because the slice header or its parameter sets are missing or
    /// damaged. The position may be wrong in a stream that reorders pictures.
    Unknown,
}

/// Determines when pictures are presented, each from its own headers and those before it.
///
/// Encoders reorder pictures to predict from later ones. Access units are therefore stored and sent
/// in decoding order, but their RTP timestamps are the times of sampling, which are in presentation
/// order (RFC 6184 section 5.1, RFC 7798 section 4.1, RFC 9328 section 4.1).
///
/// ```
/// use rushes_proto::{ClockRate, FrameRate};
/// use rushes_proto::payload::{Framing, nal::{NalCodec, PictureClock}};
/// # let access_units = [b"\0\0\x01\x65\x88", b"\0\0\x01\x41\x9a"];
/// let mut clock = PictureClock::new(NalCodec::H264);
/// for access_unit in access_units {
///     let time = clock.push(access_unit, Framing::AnnexB);
///     let rate = time.frame_rate.unwrap_or_default();
///     let base = 1_234_567_u32; // random, see RFC 3550 section 5.1
///     let ticks = time.position.ticks(ClockRate::VIDEO, rate);
///     let timestamp = base.wrapping_add(ticks as u32);
/// }
/// ```
///
/// # Positions
/// The first picture in decoding order has position 0; pictures presented before it have negative
/// ones. An IDR picture comes after all pictures before it in decoding order. A gap in the picture
/// order counts is a gap in the positions. In a stream that excludes reordering, positions count
/// access units.
///
/// Two values have to be guessed:
///
/// - The difference of the picture order counts of two adjacent frames. It is usually 2 in H.264
///   and 1 in H.265 and H.266, but is not declared. A stream with another difference has wrong
///   distances until its pictures show the right one: in H.264 until the first two adjacent frames,
///   in H.265 and H.266 for a sequence or 40 frames.
/// - The number of pictures that follow a random access point in decoding order and precede it in
///   presentation order (RADL and RASL pictures of an IDR or BLA picture). It is guessed to be that
///   of the last random access point which may have them, at first 0.
///
/// After a wrong guess, some pictures are too close to each other, and later ones follow at the
/// right distance. Within the limits below, positions never contradict the order of presentation,
/// and no two pictures have the same position. [`PictureLookAhead`] makes no such guesses.
///
/// # Limits
/// A picture whose count contradicts its sequence (more than 64 pictures late, or more than 65 536
/// counts from the others) is taken for the first one of a new sequence. In layered streams, only
/// the base layer is read. The clock holds a few fields of at most 32 SPS and 256 PPS, and 64
/// positions. After damage, the next IDR picture with its parameter sets restores the order.
#[derive(Clone, Debug)]
pub struct PictureClock {
    headers: Headers,
    timeline: Timeline,
}

impl PictureClock {
    /// Creates a clock at the beginning of a stream.
    pub fn new(codec: NalCodec) -> Self {
        let headers = Headers::new(codec);
        let timeline = Timeline::new(headers.usual_step());
        Self { headers, timeline }
    }

    /// Returns the time of `access_unit`, which must be the next in decoding order. In H.264 each
    /// field counts as an access unit.
    ///
    /// Octets that are not an access unit are placed directly after the previous one, as with
    /// [`PictureOrder::Unknown`].
    pub fn push(&mut self, access_unit: &[u8], framing: Framing) -> PictureTime {
        let entry = self.headers.read(access_unit, framing);
        place(&mut self.timeline, entry)
    }
}

fn place(timeline: &mut Timeline, entry: Entry) -> PictureTime {
    let (position, order) = match entry.order {
        Some(Order::Count(picture)) => {
            (timeline.push(picture, entry.is_field), PictureOrder::Count)
        }
        Some(Order::Decoding) => (timeline.push_in_order(entry.is_field), PictureOrder::Decoding),
        None => (timeline.push_in_order(false), PictureOrder::Unknown),
    };
    PictureTime {
        position: Position(position),
        order,
        is_field: entry.is_field,
        frame_rate: entry.declared.rate,
        reorders: entry.declared.reorders,
    }
}
