//! Uncompressed video in RTP: RFC 4175, with the sampling modes of RFC 4421.
//!
//! Both ends agree on the size, the sampling and the depth of the video ([`RawVideo`]), which give
//! the layout and the length of a frame. Every packet states which parts of which lines it carries,
//! so that each has its place in the frame. A frame is whole if every pgroup of it arrived; lines
//! that another packet carries again are overwritten.
//!
//! Memory for a frame follows from what was agreed on, never from a packet. A packet with a line, an
//! offset or a length outside the frame is refused and counted, and changes no frame.
//!
//! With [padding](super::PaddingLimit) all packets of a frame but the last have one length: those with the
//! end of a line have one more line header, and so less room for pgroups, of which they carry whole ones only.
//!
//! In interlaced video the unit is a field: fields are pushed in turn, the first field of a frame
//! first, each with the time at which it was sampled, and received in the same way.

mod join;
mod lines;
mod split;
mod video;

pub use lines::{Lines, Segment};
pub use video::{Pgroup, RawError, RawVideo, SIDE_MAX, Sampling, Scan};

use self::join::RawDepacketiser;
use self::split::RawPacketiser;
use super::coverage::Placement;
use super::{Depacketiser, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// Uncompressed video as in RFC 4175.
#[derive(Clone, Copy, Debug)]
pub struct Raw {
    /// The video on which both ends have agreed.
    pub video: RawVideo,
    /// The rate of the timestamps, which should be 90 kHz.
    pub clock_rate: ClockRate,
}

impl Raw {
    /// Returns the format of `video`, with a clock of 90 kHz.
    pub fn new(video: RawVideo) -> Self {
        Self { video, clock_rate: ClockRate::VIDEO }
    }
}

impl PayloadFormat for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn clock_rate(&self) -> ClockRate {
        self.clock_rate
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(RawPacketiser::new(self.video))
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(RawDepacketiser::new(self.video))
    }

    fn placement(&self) -> Option<Placement> {
        let (frame_len, grain) = (self.video.frame_len(), self.video.pgroup().octets);
        Some(Placement { frame_len, grain })
    }
}

#[cfg(test)]
mod tests;
