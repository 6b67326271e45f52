//! Payload formats: convert frames to RTP payloads and back.
//!
//! A [`PayloadFormat`] makes the two halves of one format: a [`Packetiser`] splits frames into
//! [`Fragment`]s that fit a packet, and a [`Depacketiser`] joins payloads into units in a
//! [`FrameBuilder`]. Payloads are passed to it in order, and losses are reported to it. Both halves
//! see payloads only: no RTP header, no sequence numbers, no clock.
//!
//! Other formats implement the same three traits; [`generic`] is the shortest example.

pub mod av1;
mod bits;
mod builder;
mod coverage;
mod cut;
mod decoding_order;
mod elements;
#[cfg(test)]
mod end_of_source;
mod error;
mod fragment;
mod frame;
pub mod generic;
pub mod h264;
pub mod h265;
pub mod h266;
#[cfg(test)]
mod interleaver;
mod join;
mod layers;
mod layout;
mod len_hint;
#[cfg(test)]
mod naive;
pub mod nal;
pub mod opus;
mod packed;
pub mod pcm;
mod pool;
pub mod raw;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod round_trips;
mod split;
mod stretch;
pub mod texture;
mod units;
pub mod vp8;
pub mod vp9;

pub use builder::{Delivery, FrameBuilder, FrameSettings, Framing};
pub use coverage::Placement;
pub use error::{FrameError, PayloadError};
pub use fragment::{Fragment, MAX_OWN_OCTETS, Piece, Run};
pub use frame::Frame;
pub use layers::{Layers, TemporalLayers};
pub use packed::PackedFrames;
pub use pool::FramePool;

use std::fmt;
use std::time::Instant;

use crate::ecn::Ecn;
use crate::rtp::CaptureTime;
use crate::ssrc::Ssrc;
use crate::time::{ClockRate, RtpTimestamp};

/// One payload format: how frames of one codec are sent in RTP.
pub trait PayloadFormat: fmt::Debug + Send + Sync {
    /// Returns the encoding name as in the `a=rtpmap` line of SDP, for example `H265`.
    fn name(&self) -> &'static str;

    /// Returns the rate of the RTP timestamps.
    fn clock_rate(&self) -> ClockRate;

    /// Creates a sending half.
    fn packetiser(&self) -> Box<dyn Packetiser>;

    /// Creates a receiving half for one source.
    fn depacketiser(&self) -> Box<dyn Depacketiser>;

    /// Returns whether the format's frames are access units of NAL units, which may be delivered
    /// one by one ([`Delivery::Unit`]). In other formats, a frame is one unit.
    fn has_nal_units(&self) -> bool {
        false
    }

    /// Returns whether every payload is received as a whole frame, so the loss of one never affects
    /// another.
    fn has_one_packet_frames(&self) -> bool {
        false
    }

    /// Returns whether units carry decoding order numbers and may arrive in another order. The
    /// [`Depacketiser`] then determines where frames begin and end, which packets do not show.
    fn is_interleaved(&self) -> bool {
        false
    }

    /// Returns how frames are filled, if every packet states its place in a frame and all frames have
    /// one length. The [`Depacketiser`] then [places](FrameBuilder::place) octets, and a frame is whole
    /// if all of it was placed, whatever packets were lost.
    fn placement(&self) -> Option<Placement> {
        None
    }

    /// Returns whether payloads may be processed in order of arrival: none needs an earlier one.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// The sending half of a payload format.
pub trait Packetiser: Send {
    /// Checks that payloads of at most `limit` octets suffice for frames of the format, before there is
    /// one.
    ///
    /// # Errors
    /// [`FrameError`] if no frame could be sent.
    fn check(&self, _limit: usize) -> Result<(), FrameError> {
        Ok(())
    }

    /// Sets the number of the first packet of the next frame, in a format whose packets are numbered by
    /// the application; others ignore it.
    fn set_first_packet(&mut self, _number: u32) {}

    /// Starts a frame, which is split into payloads of at most `limit` octets. A format whose
    /// frames cannot be split makes one longer payload, which is sent in IP fragments.
    ///
    /// After `Ok`, [`next`](Self::next) is called with the same `frame` until it returns `false`.
    ///
    /// # Errors
    /// [`FrameError`] if the frame cannot be sent in this format; no part of it is then sent.
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError>;

    /// Lets the packetiser add padding ([`Fragment::set_padding`]) from the next frame on; by default it
    /// must not. Formats whose frames have a single short packet, the last one, gain nothing by it and
    /// ignore this.
    fn set_padding_limit(&mut self, _limit: PaddingLimit) {}

    /// Fills `fragment`, which is empty on entry, with the next payload; returns `false` if none is
    /// left. Only the last payload of a frame has the marker bit (in Opus, the first of a talkspurt; of
    /// samples none).
    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool;

    /// Returns up to `most` of the next payloads as a [`Run`], which most payloads of a large frame
    /// form; `None`, with nothing changed, if [`next`](Self::next) has to describe them one by one.
    /// A run must fit the limit and the frame; otherwise the frame is cut short.
    fn next_run(&mut self, _frame: &[u8], _most: usize) -> Option<Run> {
        None
    }

    /// Returns the maximum octets of the header extensions that the packetiser
    /// [sets](Fragment::set_extension), including their header of four octets. The limit of
    /// payloads is reduced by this length, which must not change.
    fn extension_len_max(&self) -> usize {
        0
    }

    /// Returns how many units of the last [started](Self::start) frame were left out because the
    /// format cannot send them, as far as the frame was split.
    fn units_left_out(&self) -> usize {
        0
    }

    /// Returns the layers of `frame`, the last [started](Self::start) one, if it tells them.
    fn layers(&mut self, _frame: &[u8]) -> Option<Layers> {
        None
    }

    /// Returns whether the last payload was the last one of its frame without having the marker bit, as
    /// in formats of audio.
    fn ends_unmarked(&self) -> bool {
        false
    }

    /// Returns the duration of `frame` in ticks of the clock rate, if the format defines it (Opus,
    /// samples).
    fn duration(&self, _frame: &[u8]) -> Option<u32> {
        None
    }
}

/// How much a packetiser may add to what it sends, so that neighbouring packets have one length: the
/// system then takes many of them at once.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PaddingLimit {
    /// Octets of padding and of the headers of additional packets, in thousandths of the octets of all
    /// datagrams without them. With 0 there is no padding.
    pub per_mille: u16,
    /// The octets that every datagram has at least beside its payload.
    pub header_len: usize,
    /// The octets that an additional datagram has beside its payload. It is neither the first nor the
    /// last of its frame, so it has only those header extensions that are for every packet.
    pub more_header_len: usize,
}

/// The RTP header fields and the arrival of a payload.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// The source.
    pub ssrc: Ssrc,
    /// The sampling instant, in ticks.
    pub timestamp: RtpTimestamp,
    /// The marker bit; in all video formats here, it is set on the last packet of an access unit.
    pub marker: bool,
    /// When the datagram was read; timers count from here.
    pub arrival: Instant,
    /// When the datagram arrived at this host.
    pub stamp: Instant,
    /// The mark with which it arrived.
    pub ecn: Ecn,
    /// When the media was captured, if the packet carries it.
    pub captured: Option<CaptureTime>,
}

/// The receiving half of a payload format, for one source.
///
/// The caller calls [`FrameBuilder::begin_packet`] before and [`FrameBuilder::end_packet`] after
/// each `push`; a depacketiser opens, fills and finishes units. At the end, or after a long
/// silence, the caller calls [`finish`](Self::finish) and then [`FrameBuilder::finish_source`].
pub trait Depacketiser: Send {
    /// Handles one payload. Payloads are passed without duplicates and, unless the format [is
    /// unordered](PayloadFormat::is_unordered), in sequence.
    ///
    /// # Errors
    /// [`PayloadError`] if the payload is damaged or unknown. The caller then abandons the open
    /// unit; units finished before the error are kept.
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError>;

    /// Returns the length of the next payload's header, 2 or 3 octets, if that payload is another
    /// fragment of the open unit; the octets after the header continue the unit. `None` if no unit
    /// is open or the format has no such header.
    ///
    /// If the result is `Some(n)`, some packets of the same frame also continue the unit and are
    /// not passed to the depacketiser: those whose payloads begin with the same `n` octets as one
    /// that [continued](Self::push_behind) the unit and ended neither unit nor frame.
    fn head_len(&self) -> Option<usize> {
        None
    }

    /// Handles a payload that begins with `head` and whose other `len` octets are already in
    /// `frame`, behind the open unit. Returns `false`, with nothing changed, if they do not
    /// continue the unit; the caller then pushes the whole payload.
    fn push_behind(
        &mut self,
        _head: &[u8],
        _len: usize,
        _packet: PacketInfo,
        _frame: &mut FrameBuilder,
    ) -> bool {
        false
    }

    /// Returns whether this payload, the first one received, begins a stream. If not, packets
    /// before it may have been lost, and are requested if requests were negotiated. `None` if
    /// payloads do not show it.
    fn begins(&self, _payload: &[u8]) -> Option<bool> {
        None
    }

    /// Forgets the fragments of an unfinished unit, because packets before the next `push` are
    /// missing or the last payload was damaged. The caller abandons the unit itself.
    fn lost(&mut self);

    /// Passes units that wait for earlier ones to `frame`, because the source sent BYE or has been
    /// silent for long. The caller then calls [`FrameBuilder::finish_source`].
    fn finish(&mut self, _frame: &mut FrameBuilder) {}

    /// Returns the approximate octets of memory in units that wait for earlier ones.
    fn held_len(&self) -> usize {
        0
    }
}
