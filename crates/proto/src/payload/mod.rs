//! Payload formats: frames into RTP payloads and back.
//!
//! A [`PayloadFormat`] makes the two halves of one format: a [`Packetiser`] that splits frames
//! into [`Fragment`]s no longer than a packet may be, and a [`Depacketiser`] that joins payloads,
//! given in order and with losses announced, into units in a [`FrameBuilder`]. Both see payloads
//! only: no RTP header, no sequence numbers, no clock.
//!
//! Other formats implement the same three traits; [`generic`] is the shortest example.

mod builder;
mod decoding_order;
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
mod layout;
#[cfg(test)]
mod naive;
pub mod nal;
pub mod opus;
mod pool;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod round_trips;
mod split;
pub mod texture;

pub use builder::{Delivery, FrameBuilder, FrameSettings, Framing};
pub use error::{FrameError, PayloadError};
pub use fragment::{Fragment, MAX_OWN_OCTETS, Piece, Run};
pub use frame::Frame;
pub use pool::FramePool;

use std::fmt;
use std::time::Instant;

use crate::rtp::CaptureTime;
use crate::ssrc::Ssrc;
use crate::time::{ClockRate, RtpTimestamp};

/// One payload format: how frames of one codec travel in RTP.
pub trait PayloadFormat: fmt::Debug + Send + Sync {
    /// The encoding name as in the `a=rtpmap` line of SDP, for example `H265`.
    fn name(&self) -> &'static str;

    /// The rate of the RTP timestamps.
    fn clock_rate(&self) -> ClockRate;

    /// A new sending half.
    fn packetiser(&self) -> Box<dyn Packetiser>;

    /// A new receiving half, for one source.
    fn depacketiser(&self) -> Box<dyn Depacketiser>;

    /// Whether the format's frames are access units of NAL units, which may be delivered one by
    /// one ([`Delivery::Unit`]). A frame of another format is one unit.
    fn has_nal_units(&self) -> bool {
        false
    }

    /// Whether every payload is a whole frame, so that the loss of one never touches another.
    fn has_one_packet_frames(&self) -> bool {
        false
    }

    /// Whether units carry decoding order numbers and may arrive in another order. The
    /// [`Depacketiser`] then determines where frames begin and end: the packets do not show it.
    fn is_interleaved(&self) -> bool {
        false
    }

    /// Whether payloads may be processed in the order of arrival: none waits for a missing one
    /// before it.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// The sending half of a payload format.
pub trait Packetiser: Send {
    /// Starts a frame, which is split into payloads of at most `limit` octets; a format whose
    /// frames cannot be split makes one longer payload, which is sent in IP fragments.
    ///
    /// After `Ok`, [`next`](Self::next) is called with the same `frame` until it returns `false`.
    ///
    /// # Errors
    /// The frame cannot be sent in this format; no part of it is sent.
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError>;

    /// Describes the next payload in `fragment`, which is empty on entry; `false` if there is none
    /// left. Only the last payload of a frame has the marker bit (in Opus, the first of a
    /// talkspurt).
    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool;

    /// Returns up to `most` of the next payloads as a [`Run`], as most payloads of a large frame
    /// are; `None`, with nothing changed, if [`next`](Self::next) has to describe them one by one.
    /// A run must fit the limit and the frame; otherwise the frame is cut short.
    fn next_run(&mut self, _frame: &[u8], _most: usize) -> Option<Run> {
        None
    }

    /// Maximum length in octets of the header extensions that it [sets](Fragment::set_extension),
    /// their four octets of header included; the limit of payloads is reduced by it. It must not
    /// change.
    fn extension_len_max(&self) -> usize {
        0
    }

    /// Units of the last [started](Self::start) frame that cannot be sent in the format and are
    /// left out.
    fn units_left_out(&self) -> usize {
        0
    }

    /// The duration of `frame` in ticks of the clock rate, if the format defines it (Opus).
    fn duration(&self, _frame: &[u8]) -> Option<u32> {
        None
    }
}

/// The RTP header fields and the arrival of a payload.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// The source.
    pub ssrc: Ssrc,
    /// The sampling instant, in ticks.
    pub timestamp: RtpTimestamp,
    /// The marker bit: in all video formats here, the last packet of an access unit.
    pub marker: bool,
    /// When the datagram arrived.
    pub arrival: Instant,
    /// When the media was captured, if the packet carries it.
    pub captured: Option<CaptureTime>,
}

/// The receiving half of a payload format, for one source.
///
/// The caller calls [`FrameBuilder::begin_packet`] before and [`FrameBuilder::end_packet`] after
/// each `push`; a depacketiser opens, fills and finishes units. At the end, or after a long
/// silence, the caller calls [`finish`](Self::finish) and then [`FrameBuilder::finish_source`].
pub trait Depacketiser: Send {
    /// Takes one payload. Payloads come without duplicates and, unless the format [is
    /// unordered](PayloadFormat::is_unordered), in sequence.
    ///
    /// # Errors
    /// The payload is damaged or unknown. The caller then abandons the open unit; units finished
    /// before the error are kept.
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError>;

    /// Length of the header, 2 or 3 octets, of the next payload if it is another fragment of the
    /// open unit; the octets after it continue the unit. `None` if no unit is open or the format
    /// has no such header.
    ///
    /// If `Some(n)`, packets of the same frame whose payloads begin with the same `n` octets as one
    /// that [continued](Self::push_behind) the unit, and ended neither unit nor frame, continue it
    /// as well: they are not passed to the depacketiser.
    fn head_len(&self) -> Option<usize> {
        None
    }

    /// Takes a payload that begins with `head` and whose other `len` octets are already in `frame`,
    /// behind the open unit; `false`, with nothing changed, if they do not continue the unit: the
    /// caller then pushes the payload.
    fn push_behind(
        &mut self,
        _head: &[u8],
        _len: usize,
        _packet: PacketInfo,
        _frame: &mut FrameBuilder,
    ) -> bool {
        false
    }

    /// Whether a stream begins with this payload, the first one received; if not, packets before it
    /// may have been lost, and are requested where that is agreed. `None` if payloads do not show
    /// it.
    fn begins(&self, _payload: &[u8]) -> Option<bool> {
        None
    }

    /// Forgets the fragments of an unfinished unit: packets before the next `push` are missing, or
    /// the last payload was damaged. The caller abandons the unit itself.
    fn lost(&mut self);

    /// Passes units that wait for earlier ones to `frame`: the source sent BYE or has been silent
    /// for long. The caller then calls [`FrameBuilder::finish_source`].
    fn finish(&mut self, _frame: &mut FrameBuilder) {}

    /// Approximate octets of memory in units that wait for earlier ones.
    fn held_len(&self) -> usize {
        0
    }
}
