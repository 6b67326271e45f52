//! What a sender writes into header extensions: the elements of a frame, and those that every stream
//! has of itself, such as its MID and transport-wide numbers.

use std::time::Instant;

use super::frame_elements::FrameElements;
use crate::batch::Batch;
use crate::rtp::{
    AbsSendTime, CaptureTime, Element, ElementError, Elements, ExtensionForm, ExtensionKind,
    ExtensionMap, HeaderExtension, TransportCounter, TransportSequence, close_elements,
    write_element,
};
use crate::time::NtpTime;

/// Octets of a header extension before its data (RFC 3550 section 5.3.1).
const INTRODUCTION_LEN: usize = 4;

/// Octets of a capture time.
const CAPTURE_LEN: usize = 16;

/// The state for header extensions; a sender without any has none.
#[derive(Debug)]
pub(super) struct SendElements {
    map: ExtensionMap,
    counter: TransportCounter,
    /// The number of a packet that did not fit its batch.
    number: Option<TransportSequence>,
    /// An instant, and the wall-clock time at it; `None` without times of packets.
    pub(super) wall_clock: Option<(Instant, NtpTime)>,
    send_time: AbsSendTime,
    pub(super) mid: Vec<u8>,
    pub(super) rid: Vec<u8>,
    /// Whether a receiver knows the source by its SSRC.
    pub(super) is_acknowledged: bool,
    frame: FrameElements,
    capture: Option<CaptureTime>,
    form: ExtensionForm,
    is_first: bool,
}

/// The streams in which packets are sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stream {
    Media,
    /// Repair packets in the stream of the media.
    RepairWithin,
    /// Retransmissions, or repair packets, in a stream of their own.
    RepairBeside,
}

impl SendElements {
    pub(super) fn new(map: ExtensionMap) -> Self {
        Self {
            map,
            counter: TransportCounter::default(),
            number: None,
            wall_clock: None,
            send_time: AbsSendTime::default(),
            mid: Vec::new(),
            rid: Vec::new(),
            is_acknowledged: false,
            frame: FrameElements::default(),
            capture: None,
            form: map.form(),
            is_first: true,
        }
    }

    pub(super) fn map(&self) -> ExtensionMap {
        self.map
    }

    /// Returns whether packets carry the times at which they are sent.
    pub(super) fn has_send_time(&self) -> bool {
        self.wall_clock.is_some() && self.map.id(ExtensionKind::AbsSendTime).is_some()
    }

    /// Sets the time at which the next packets are sent.
    pub(super) fn set_now(&mut self, now: Instant) {
        let Some((instant, ntp)) = self.wall_clock else { return };
        let ntp = if now >= instant { ntp.plus(now - instant) } else { ntp.minus(instant - now) };
        self.send_time = ntp.into();
    }

    pub(super) fn set_counter(&mut self, counter: TransportCounter) {
        self.counter = counter;
    }

    /// Sets the elements of the next frame.
    pub(super) fn start(
        &mut self,
        capture: Option<CaptureTime>,
        frame: &FrameElements,
    ) -> Result<(), ElementError> {
        self.form = frame.check(self.map)?;
        self.capture = capture.filter(|_| self.has_any(&ExtensionKind::OF_CAPTURE));
        self.frame.clone_from(frame);
        self.is_first = true;
        Ok(())
    }

    fn has_any(&self, kinds: &[ExtensionKind]) -> bool {
        kinds.iter().any(|kind| self.map.id(*kind).is_some())
    }

    /// Returns whether packets carry their times or numbers.
    fn has_own_of_packets(&self) -> bool {
        self.has_send_time() || self.map.id(ExtensionKind::TransportSequence).is_some()
    }

    /// Returns the elements that name the stream.
    fn names(&self, stream: Stream) -> impl Iterator<Item = Element<'_>> {
        let rid = match stream {
            Stream::Media => Some(ExtensionKind::Rid),
            Stream::RepairWithin => None,
            Stream::RepairBeside => Some(ExtensionKind::RepairedRid),
        };
        let is_known = stream == Stream::Media && self.is_acknowledged;
        let names = [(Some(ExtensionKind::Mid), &self.mid), (rid, &self.rid)];
        names.into_iter().filter(move |_| !is_known).filter_map(|(kind, name)| {
            let id = self.map.id(kind?).filter(|_| !name.is_empty())?;
            Some(Element { id, data: name })
        })
    }

    /// Returns whether the next packet of the frame has elements.
    #[inline]
    pub(super) fn are_due(&self, is_last: bool) -> bool {
        self.has_own_of_packets()
            || self.is_first && self.capture.is_some()
            || self.frame.are_due(self.is_first, is_last)
            || self.names(Stream::Media).next().is_some()
    }

    /// Returns whether packets for repair have elements.
    pub(super) fn are_due_in_repair(&self) -> bool {
        self.has_own_of_packets() || self.names(Stream::RepairBeside).next().is_some()
    }

    /// Returns the most octets of a header extension of the frame, with its introduction.
    pub(super) fn len_max(&self) -> usize {
        let capture_len = if self.capture.is_some() {
            let kinds =
                ExtensionKind::OF_CAPTURE.iter().filter(|kind| self.map.id(**kind).is_some());
            kinds.count() * (self.form.head_len() + CAPTURE_LEN)
        } else {
            0
        };
        padded(self.own_len() + capture_len + self.frame.len_max(self.form))
    }

    /// Returns the octets of the header extension of a packet at this place of the frame, with its
    /// introduction and without a capture time.
    pub(super) fn len_at(&self, place: (bool, bool)) -> usize {
        let head_len = self.form.head_len();
        let mut len = self.times_len();
        let names = self.names(Stream::Media).filter(|name| !self.frame.has(name.id, place));
        names.for_each(|name| len += head_len + name.data.len());
        self.frame.for_each(self.map, place, |element| len += head_len + element.data.len());
        padded(len)
    }

    /// Returns the octets of a header extension of a packet for repair, with its introduction.
    pub(super) fn repair_len(&self) -> usize {
        padded(self.own_len())
    }

    /// Returns the octets of the elements that the stream has of itself. The room for its names stays
    /// when they are no longer sent, because retransmissions have them.
    fn own_len(&self) -> usize {
        let head_len = self.form.head_len();
        let of = |kind: ExtensionKind, len: usize| {
            if self.map.id(kind).is_some() && len > 0 { head_len + len } else { 0 }
        };
        let rid = of(ExtensionKind::Rid, self.rid.len());
        of(ExtensionKind::Mid, self.mid.len())
            + rid.max(of(ExtensionKind::RepairedRid, self.rid.len()))
            + self.times_len()
    }

    /// Returns the octets of the elements with the time and the number of a packet.
    fn times_len(&self) -> usize {
        let has_number = self.map.id(ExtensionKind::TransportSequence).is_some();
        let of = |is_there, len: usize| if is_there { self.form.head_len() + len } else { 0 };
        of(self.has_send_time(), 3) + of(has_number, 2)
    }

    /// Writes the elements of the next packet of the frame to `out`, padded; returns their form.
    pub(super) fn compose(&mut self, is_last: bool, out: &mut Vec<u8>) -> ExtensionForm {
        out.clear();
        let place = (self.is_first, is_last);
        self.compose_own(Stream::Media, self.form, Some(place), out);
        let (map, form) = (self.map, self.form);
        // They fit: they have been checked.
        if let Some(capture) = self.capture.filter(|_| self.is_first) {
            map.for_each_of(capture, |element| {
                let _ = write_element(form, element, out);
            });
        }
        self.frame.for_each(map, place, |element| {
            let _ = write_element(form, element, out);
        });
        close_elements(0, out);
        form
    }

    /// Writes the elements of a repair packet to `out`, padded; returns their form.
    pub(super) fn compose_repair(&mut self, stream: Stream, out: &mut Vec<u8>) -> ExtensionForm {
        out.clear();
        let form = self.map.form();
        self.compose_own(stream, form, None, out);
        close_elements(0, out);
        form
    }

    /// Writes the elements that the stream has of itself, except those that the application has set
    /// for this place of its frame.
    fn compose_own(
        &mut self,
        stream: Stream,
        form: ExtensionForm,
        place: Option<(bool, bool)>,
        out: &mut Vec<u8>,
    ) {
        for name in self.names(stream) {
            if !place.is_some_and(|place| self.frame.has(name.id, place)) {
                let _ = write_element(form, name, out);
            }
        }
        let send_time = self.map.id(ExtensionKind::AbsSendTime);
        if let Some(id) = send_time.filter(|_| self.has_send_time()) {
            let data = &self.send_time.to_bytes();
            let _ = write_element(form, Element { id, data }, out);
        }
        if let Some(id) = self.map.id(ExtensionKind::TransportSequence) {
            let number = *self.number.get_or_insert_with(|| self.counter.count());
            let data = &number.to_bytes();
            let _ = write_element(form, Element { id, data }, out);
        }
    }

    /// Returns the header extension of the retransmission of a packet with `extension`: with the names
    /// of its own stream, and with its own time and number.
    pub(super) fn of_retransmission(
        &mut self,
        extension: Option<HeaderExtension>,
    ) -> Option<HeaderExtension> {
        let (before, mut form) = match &extension {
            Some(extension) => (&extension.data[..], ExtensionForm::of(extension.profile)),
            None => (&[][..], Some(self.map.form())),
        };
        let Some(profile) = form.map(ExtensionForm::profile) else { return extension };
        if self.map.form() == ExtensionForm::TwoByte {
            form = Some(ExtensionForm::TwoByte);
        }
        let form = form?;
        let is_own = |id| match self.map.kind(id) {
            Some(ExtensionKind::Mid) => !self.mid.is_empty(),
            Some(ExtensionKind::Rid | ExtensionKind::RepairedRid) => !self.rid.is_empty(),
            kind => {
                matches!(kind, Some(ExtensionKind::AbsSendTime | ExtensionKind::TransportSequence))
            }
        };
        let mut data = Vec::new();
        for element in Elements::new(profile, before)?.flatten() {
            if !is_own(element.id) {
                // It fits: the form is that in which it was, or has more room.
                let _ = write_element(form, element, &mut data);
            }
        }
        self.compose_own(Stream::RepairBeside, form, None, &mut data);
        close_elements(0, &mut data);
        (!data.is_empty()).then_some(HeaderExtension { profile: form.profile(), data })
    }

    /// Notes that a packet of the frame was written.
    #[inline]
    pub(super) fn note_written(&mut self) {
        self.is_first = false;
    }

    /// Notes that the packet with the composed elements is in `batch`.
    pub(super) fn note_placed(&mut self, batch: &mut Batch) {
        if let Some(TransportSequence(number)) = self.number.take() {
            batch.note_transport_sequence(number.0);
        }
    }
}

/// Returns the octets of a header extension with `len` octets of elements.
fn padded(len: usize) -> usize {
    if len == 0 { 0 } else { INTRODUCTION_LEN + len.next_multiple_of(4) }
}

/// Appends an extension; `false` if its length cannot be expressed.
pub(super) fn introduce(profile: u16, data: &[u8], packet: &mut Vec<u8>) -> bool {
    let Some(words) = u16::try_from(data.len() / 4).ok().filter(|_| data.len().is_multiple_of(4))
    else {
        return false;
    };
    packet.extend_from_slice(&profile.to_be_bytes());
    packet.extend_from_slice(&words.to_be_bytes());
    packet.extend_from_slice(data);
    true
}
