//! Payload formats: frames into RTP payloads and back.
//!
//! A [`PayloadFormat`] makes the two halves of one format: a [`Packetiser`] that splits frames
//! into [`Fragment`]s no longer than a packet may be, and a [`Depacketiser`] that joins payloads,
//! given in order and with losses announced, into units in a [`FrameBuilder`]. Both see payloads
//! only: no RTP header, no sequence numbers, no clock.
//!
//! Formats of your own implement the same three traits; [`generic`] is the shortest example.

mod builder;
mod decoding_order;
#[cfg(test)]
mod endings;
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
mod split;
pub mod texture;
#[cfg(test)]
mod trips;

pub use builder::{Delivery, FrameBuilder, FrameSettings, Framing};
pub use error::{FrameError, PayloadError};
pub use fragment::{Fragment, MAX_OWN_OCTETS, Piece, Run};
pub use frame::Frame;
pub use pool::FramePool;

use std::fmt;
use std::time::Instant;

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

    /// Whether units are put into another order than that of the packets they came in, by decoding
    /// order numbers. The [`Depacketiser`] then says where frames begin and end: the packets do not.
    fn is_interleaved(&self) -> bool {
        false
    }

    /// Whether payloads may be taken in whatever order they come, so that none waits for one that
    /// is missing before it.
    fn is_unordered(&self) -> bool {
        false
    }
}

/// The sending half of a payload format.
pub trait Packetiser: Send {
    /// Takes up a frame, to be split into payloads of at most `limit` octets; a format whose
    /// frames cannot be split makes one longer payload, which leaves in IP fragments.
    ///
    /// After `Ok`, [`next`](Self::next) is called with the same `frame` until it returns `false`.
    ///
    /// # Errors
    /// The frame cannot travel in this format; nothing of it is sent.
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError>;

    /// Describes the next payload in `fragment`, which arrives empty; `false` if there is none
    /// left. The marker bit is set on the last payload of the frame and only there.
    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool;

    /// Takes the next payloads, at most `most` of them, if they are a [`Run`], which is what most of
    /// a large frame is; `None`, and nothing changes, if [`next`](Self::next) is to describe them
    /// one by one. What is in a run must fit the limit and the frame; a frame with one that does
    /// not is cut short.
    fn next_run(&mut self, _frame: &[u8], _most: usize) -> Option<Run> {
        None
    }

    /// Maximum length in octets of the header extensions that it [sets](Fragment::set_extension),
    /// their four octets of header included; the limit of payloads is so much lower. It must not
    /// change.
    fn extension_len_max(&self) -> usize {
        0
    }

    /// Units of the frame that was [taken up](Self::start) last that cannot travel in the format, and
    /// are left out.
    fn units_left_out(&self) -> usize {
        0
    }

    /// How long `frame` lasts in ticks of the clock rate, where the format says so (Opus).
    fn duration(&self, _frame: &[u8]) -> Option<u32> {
        None
    }
}

/// What the RTP header of a payload said.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo {
    /// The source.
    pub ssrc: Ssrc,
    /// The sampling instant, in ticks.
    pub timestamp: RtpTimestamp,
    /// The marker bit: the last packet of an access unit, by all video formats here.
    pub marker: bool,
    /// When the datagram came in.
    pub arrival: Instant,
}

/// The receiving half of a payload format, for one source.
///
/// The caller takes care of the packet's frame: [`FrameBuilder::begin_packet`] before and
/// [`FrameBuilder::end_packet`] after each `push`. A depacketiser opens, fills and closes units. At
/// the end, or after long silence, come [`finish`](Self::finish) and then
/// [`FrameBuilder::finish_source`].
pub trait Depacketiser: Send {
    /// Takes one payload. Payloads come in sequence and without duplicates.
    ///
    /// # Errors
    /// The payload is damaged or not understood. The caller then abandons the open unit; a whole
    /// unit that was finished before the error stands.
    fn push(
        &mut self,
        payload: &[u8],
        packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError>;

    /// Octets of the next payload before those that go on with the unit in hand, 2 or 3, if it is
    /// one more fragment of that unit; `None` if no unit is in hand or the format has no such.
    ///
    /// Whoever says so promises that a packet of the same frame goes on with the unit too if its
    /// payload begins with the same octets, so many, as one that [did](Self::push_behind) and ended
    /// neither unit nor frame: it is not asked about then.
    fn head_len(&self) -> Option<usize> {
        None
    }

    /// Takes a payload of which `head` are the first octets and the other `len` lie behind the
    /// open unit of `frame` already; `false`, and nothing changes, if they do not go on with it:
    /// then the payload is to be pushed.
    fn push_behind(
        &mut self,
        _head: &[u8],
        _len: usize,
        _packet: PacketInfo,
        _frame: &mut FrameBuilder,
    ) -> bool {
        false
    }

    /// Whether a source that begins with this payload begins there; if not, packets before it may
    /// have been lost, and are asked for where that is agreed. `None` if payloads do not show it.
    fn begins(&self, _payload: &[u8]) -> Option<bool> {
        None
    }

    /// One or more packets before the next `push` are missing, or its predecessor was damaged:
    /// forget the fragments of an unfinished unit. The caller abandons the unit itself.
    fn lost(&mut self);

    /// No more payloads come: the source said BYE, or has been silent for long. Hands units that
    /// wait for others before them to `frame`, which is [finished](FrameBuilder::finish_source)
    /// next.
    fn finish(&mut self, _frame: &mut FrameBuilder) {}

    /// About how many octets of memory are held in units that wait for others before them.
    fn held_len(&self) -> usize {
        0
    }
}
