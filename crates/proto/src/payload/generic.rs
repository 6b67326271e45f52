//! Frames of any kind: split where they must be, ended by the marker bit.
//!
//! All packets of a frame share its timestamp, and the last has the marker bit. A receiver also
//! takes a new timestamp for a new frame, so that senders that set no marker are understood.

use super::Depacketiser;
use super::PacketInfo;
use super::Packetiser;
use super::PayloadFormat;
use super::builder::FrameBuilder;
use super::error::FrameError;
use super::error::PayloadError;
use super::fragment::Fragment;
use crate::time::ClockRate;

/// Frames without a format of their own.
///
/// ```
/// use rushes_proto::payload::{Fragment, PayloadFormat, generic::Generic};
/// let mut packetiser = Generic::default().packetiser();
/// let mut fragment = Fragment::default();
/// packetiser.start(b"abcde", 3)?;
/// assert!(packetiser.next(b"abcde", &mut fragment));
/// assert_eq!((fragment.len(), fragment.marker()), (3, false));
/// # Ok::<(), rushes_proto::payload::FrameError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Generic {
    /// The rate of the timestamps.
    pub clock_rate: ClockRate,
}

impl Default for Generic {
    /// A clock of 90 kHz.
    fn default() -> Self {
        Self { clock_rate: ClockRate::VIDEO }
    }
}

impl PayloadFormat for Generic {
    fn name(&self) -> &'static str {
        "X-RUSHES-GENERIC"
    }

    fn clock_rate(&self) -> ClockRate {
        self.clock_rate
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(GenericPacketiser { limit: 1, sent: 0, len: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(GenericDepacketiser)
    }
}

struct GenericPacketiser {
    limit: usize,
    sent: usize,
    len: usize,
}

impl Packetiser for GenericPacketiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        (self.sent, self.len) = (0, 0);
        if frame.is_empty() {
            return Err(FrameError::Empty);
        }
        if limit == 0 {
            return Err(FrameError::PacketTooSmall { limit, need: 1 });
        }
        (self.limit, self.len) = (limit, frame.len());
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        if self.sent == self.len {
            return false;
        }
        let end = self.len.min(self.sent + self.limit);
        fragment.push_frame(self.sent..end);
        fragment.set_marker(end == self.len);
        self.sent = end;
        true
    }
}

struct GenericDepacketiser;

impl Depacketiser for GenericDepacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        _packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}
