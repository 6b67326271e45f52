//! Frames of any data: split at the packet limit, ended by the marker bit.
//!
//! All packets of a frame have its timestamp, and the last one has the marker bit. At the receiver,
//! a new timestamp also starts a new frame, for senders that set no marker bit.

use super::builder::FrameBuilder;
use super::cut::Cut;
use super::error::{FrameError, PayloadError};
use super::fragment::{Fragment, Run};
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// A format for frames of any data.
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
    /// The encoding name on which both sides have agreed.
    pub name: &'static str,
    /// The rate of the timestamps.
    pub clock_rate: ClockRate,
}

impl Default for Generic {
    /// Returns the name `X-RUSHES-GENERIC` and a clock of 90 kHz.
    fn default() -> Self {
        Self { name: "X-RUSHES-GENERIC", clock_rate: ClockRate::VIDEO }
    }
}

impl PayloadFormat for Generic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn clock_rate(&self) -> ClockRate {
        self.clock_rate
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(GenericPacketiser::default())
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(GenericDepacketiser)
    }
}

#[derive(Default)]
struct GenericPacketiser {
    cut: Cut,
}

impl Packetiser for GenericPacketiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        self.cut = Cut::default();
        self.cut = Cut::start(frame.len(), limit, 0)?;
        Ok(())
    }

    fn next(&mut self, _frame: &[u8], fragment: &mut Fragment) -> bool {
        self.cut.next(&[], fragment)
    }

    fn next_run(&mut self, _frame: &[u8], most: usize) -> Option<Run> {
        self.cut.next_run(&[], most)
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
        if payload.is_empty() {
            // This is a keep-alive, or a packet of padding only.
            return Ok(());
        }
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::super::builder::Delivery;
    use super::super::rig::{Listener, send};
    use super::*;

    #[test]
    fn a_frame_is_cut_at_the_limit_and_marked_at_its_end() {
        let sent = send(Generic::default().packetiser().as_mut(), b"abcdefg", 3);
        let sent: Vec<_> = sent.iter().map(|sent| (&sent.octets[..], sent.marker)).collect();
        assert_eq!(sent, [(&b"abc"[..], false), (b"def", false), (b"g", true)]);
    }

    #[test]
    fn a_frame_of_exactly_the_limit_is_one_packet() {
        assert_eq!(send(Generic::default().packetiser().as_mut(), b"abc", 3).len(), 1);
    }

    #[test]
    fn empty_frames_and_packets_without_room_are_refused() {
        let mut packetiser = Generic::default().packetiser();
        assert_eq!(packetiser.start(b"", 3), Err(FrameError::Empty));
        let error = FrameError::PacketTooSmall { limit: 0, need: 1 };
        assert_eq!(packetiser.start(b"abc", 0), Err(error));
        assert!(!packetiser.next(b"abc", &mut Fragment::default()));
    }

    #[test]
    fn a_frame_with_a_missing_packet_is_dropped_and_the_next_stands() {
        let mut listener = Listener::new(&Generic::default(), Delivery::AccessUnit);
        listener.take(b"ab", 0, false).unwrap();
        listener.lose(1);
        listener.take(b"ef", 0, true).unwrap();
        listener.take(b"gh", 9, true).unwrap();
        assert_eq!(listener.frames(), [b"gh"]);
    }

    #[test]
    fn a_new_timestamp_ends_a_frame_without_a_marker() {
        let mut listener = Listener::new(&Generic::default(), Delivery::AccessUnit);
        for (octets, timestamp) in [(b"ab", 0), (b"cd", 0), (b"ef", 9), (b"gh", 18)] {
            listener.take(octets, timestamp, false).unwrap();
        }
        assert_eq!(listener.frames(), [&b"abcd"[..], b"ef"]);
    }

    #[test]
    fn a_name_and_clock_of_the_callers_own_are_kept() {
        let format = Generic { name: "X-KLV", clock_rate: ClockRate::OPUS };
        assert_eq!((format.name(), format.clock_rate()), ("X-KLV", ClockRate::OPUS));
    }
}
