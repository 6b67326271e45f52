//! The elements of header extensions that the ends of a stream agreed on.

use super::capture_time::{CaptureTime, complete};
use super::error::{ExtensionError, WriteError};
use super::extension::{Element, ExtensionForm, close_elements, write_element};
use super::packet::Extension;
use super::transport_sequence::{TRANSPORT_SEQUENCE_URI, TransportSequence};
use crate::time::NtpTime;

/// The meaning of an element of header extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
#[non_exhaustive]
pub enum ExtensionKind {
    /// [`CaptureTime`] of 64 bits, and a clock offset of 64 bits if there is one: 8 or 16 octets.
    AbsCaptureTime,
    /// [`CaptureTime`] of 64 bits (RFC 6051 section 3.3, variant A).
    Ntp64,
    /// [`CaptureTime`] of 56 bits (RFC 6051 section 3.3, variant B). Receivers need a sender report
    /// to complete it.
    Ntp56,
    /// The identification of the media description, as text (RFC 9143 section 15).
    Mid,
    /// The identification of the stream among those of its media, as text (RFC 8852 section 3.1).
    Rid,
    /// In packets for repair, the [`Rid`](Self::Rid) of the stream that they repair (RFC 8852
    /// section 3.2).
    RepairedRid,
    /// [`AudioLevel`](super::AudioLevel) (RFC 6464).
    AudioLevel,
    /// [`AbsSendTime`](super::AbsSendTime).
    AbsSendTime,
    /// [`TransportSequence`].
    TransportSequence,
    /// The dependency descriptor of AV1, at least three octets
    /// (<https://aomediacodec.github.io/av1-rtp-spec/>, appendix A).
    DependencyDescriptor,
}

impl ExtensionKind {
    /// All kinds; where several carry the same value, the one that carries most of it is first.
    pub const ALL: [Self; 10] = [
        Self::AbsCaptureTime,
        Self::Ntp64,
        Self::Ntp56,
        Self::Mid,
        Self::Rid,
        Self::RepairedRid,
        Self::AudioLevel,
        Self::AbsSendTime,
        Self::TransportSequence,
        Self::DependencyDescriptor,
    ];

    /// The kinds that carry a [`CaptureTime`], in the same order.
    pub const OF_CAPTURE: [Self; 3] = [Self::AbsCaptureTime, Self::Ntp64, Self::Ntp56];

    /// Returns the URI that denotes it in `a=extmap` (RFC 8285 section 5).
    pub fn uri(self) -> &'static str {
        match self {
            Self::AbsCaptureTime => "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
            Self::Ntp64 => "urn:ietf:params:rtp-hdrext:ntp-64",
            Self::Ntp56 => "urn:ietf:params:rtp-hdrext:ntp-56",
            Self::Mid => "urn:ietf:params:rtp-hdrext:sdes:mid",
            Self::Rid => "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
            Self::RepairedRid => "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id",
            Self::AudioLevel => "urn:ietf:params:rtp-hdrext:ssrc-audio-level",
            Self::AbsSendTime => "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
            Self::TransportSequence => TRANSPORT_SEQUENCE_URI,
            Self::DependencyDescriptor => {
                "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"
            }
        }
    }

    /// Returns a short name, for programs: `mid`, `audio-level`, and so on.
    pub fn name(self) -> &'static str {
        match self {
            Self::AbsCaptureTime => "abs-capture-time",
            Self::Ntp64 => "ntp-64",
            Self::Ntp56 => "ntp-56",
            Self::Mid => "mid",
            Self::Rid => "rid",
            Self::RepairedRid => "repaired-rid",
            Self::AudioLevel => "audio-level",
            Self::AbsSendTime => "abs-send-time",
            Self::TransportSequence => "transport-sequence",
            Self::DependencyDescriptor => "dependency-descriptor",
        }
    }

    /// Creates the kind that `uri` denotes, if it is known.
    pub fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.uri() == uri)
    }

    /// Returns whether streams read and write the element themselves, so that applications are not
    /// given it and do not set it.
    pub fn is_internal(self) -> bool {
        self.is_capture_time() || self == Self::TransportSequence
    }

    /// Returns whether it carries a [`CaptureTime`].
    fn is_capture_time(self) -> bool {
        Self::OF_CAPTURE.contains(&self)
    }

    /// Returns whether an element of this kind may have `len` octets.
    pub(crate) fn allows(self, len: usize) -> bool {
        match self {
            Self::AbsCaptureTime => matches!(len, 8 | 16),
            Self::Ntp64 => len == 8,
            Self::Ntp56 => len == 7,
            Self::Mid | Self::Rid | Self::RepairedRid => len >= 1,
            Self::AudioLevel => len == 1,
            Self::AbsSendTime => len == 3,
            Self::TransportSequence => matches!(len, 2 | 4),
            Self::DependencyDescriptor => len >= 3,
        }
    }

    /// Returns the capture time in the data of an element, whose length it [allows](Self::allows);
    /// `None` if `reported`, the wall clock of the source in its last report, is needed and absent, or
    /// if the kind carries none.
    fn read(self, data: &[u8], reported: Option<NtpTime>) -> Option<CaptureTime> {
        let number =
            |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet));
        match (self, data.len()) {
            (Self::AbsCaptureTime, 16) => Some(CaptureTime {
                ntp: NtpTime(number(&data[..8])),
                clock_offset: Some(number(&data[8..]).cast_signed()),
            }),
            (Self::AbsCaptureTime | Self::Ntp64, 8) => {
                Some(CaptureTime::new(NtpTime(number(data))))
            }
            (Self::Ntp56, 7) => {
                reported.map(|reported| CaptureTime::new(complete(number(data), reported)))
            }
            _ => None,
        }
    }

    /// Writes `capture` to the front of `data`, and returns the number of octets.
    fn write(self, capture: CaptureTime, data: &mut [u8; 16]) -> usize {
        let by_sender = capture.by_sender().0.to_be_bytes();
        match (self, capture.clock_offset) {
            (Self::AbsCaptureTime, Some(offset)) => {
                data[..8].copy_from_slice(&capture.ntp.0.to_be_bytes());
                data[8..].copy_from_slice(&offset.to_be_bytes());
                16
            }
            (Self::AbsCaptureTime | Self::Ntp64, _) => {
                data[..8].copy_from_slice(&by_sender);
                8
            }
            (Self::Ntp56, _) => {
                data[..7].copy_from_slice(&by_sender[1..]);
                7
            }
            _ => 0,
        }
    }
}

/// The elements that the ends of a stream agreed on, each with its local identifier (RFC 8285
/// section 5); by default none.
///
/// ```
/// use rushes_proto::rtp::{ExtensionKind, ExtensionMap};
/// let map = ExtensionMap::default().with(ExtensionKind::Ntp64, 3)?.with_own(4)?;
/// assert_eq!(map.id(ExtensionKind::Ntp64), Some(3));
/// assert!(map.with(ExtensionKind::AbsCaptureTime, 3).is_err());
/// assert!(map.contains(4) && !map.contains(5));
/// # Ok::<(), rushes_proto::rtp::ExtensionMapError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExtensionMap {
    /// The identifier of each kind; 0 if it is not agreed on.
    ids: [u8; ExtensionKind::ALL.len()],
    /// The identifiers of elements whose meaning only the application knows.
    own: IdSet,
    is_mixed: bool,
}

/// A set of identifiers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct IdSet([u64; 4]);

impl IdSet {
    fn contains(self, id: u8) -> bool {
        self.0[usize::from(id / 64)] >> (id % 64) & 1 == 1
    }

    /// Adds an identifier; returns whether it is new.
    fn insert(&mut self, id: u8) -> bool {
        let is_new = !self.contains(id);
        self.0[usize::from(id / 64)] |= 1 << (id % 64);
        is_new
    }
}

/// What a stream reads in a header extension itself.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReadExtension {
    /// The capture time, of the kind that carries most of it.
    pub captured: Option<CaptureTime>,
    /// The transport-wide sequence number.
    pub transport_sequence: Option<TransportSequence>,
}

impl ExtensionMap {
    /// Returns the map with `kind` as element `id`; this replaces an earlier identifier of `kind`.
    ///
    /// With identifiers up to 14 extensions are written in the one-byte form, otherwise in the
    /// two-byte form.
    ///
    /// # Errors
    /// [`ExtensionMapError`] if `id` is 0, is 15, or denotes another kind.
    pub fn with(mut self, kind: ExtensionKind, id: u8) -> Result<Self, ExtensionMapError> {
        self.check(id, Some(kind))?;
        self.ids[kind as usize] = id;
        Ok(self)
    }

    /// Returns the map with `id` as an element whose meaning only the application knows.
    ///
    /// # Errors
    /// [`ExtensionMapError`] if `id` is 0, is 15, or denotes another element.
    pub fn with_own(mut self, id: u8) -> Result<Self, ExtensionMapError> {
        self.check(id, None)?;
        self.own.insert(id);
        Ok(self)
    }

    /// Returns the map with the agreement that packets of one stream may have different forms
    /// (`a=extmap-allow-mixed`, RFC 8285 section 6): then elements that are empty or longer than 16
    /// octets can be sent with identifiers up to 14, too. Without it all packets have the same form.
    #[must_use]
    pub fn with_mixed_forms(mut self, is_mixed: bool) -> Self {
        self.is_mixed = is_mixed;
        self
    }

    fn check(self, id: u8, kind: Option<ExtensionKind>) -> Result<(), ExtensionMapError> {
        // RFC 8285 section 4.2: 15 has a meaning of its own in the one-byte form.
        if matches!(id, 0 | 15) {
            return Err(ExtensionMapError::Reserved { id });
        }
        let is_used = self.iter().any(|(other, used)| used == id && Some(other) != kind);
        if is_used || self.own.contains(id) {
            return Err(ExtensionMapError::Used { id });
        }
        Ok(())
    }

    /// Returns the identifier of `kind`, if it is agreed on.
    #[inline]
    pub fn id(self, kind: ExtensionKind) -> Option<u8> {
        Some(self.ids[kind as usize]).filter(|id| *id != 0)
    }

    /// Returns the kind whose identifier is `id`.
    pub fn kind(self, id: u8) -> Option<ExtensionKind> {
        self.iter().find(|(_, used)| *used == id).map(|(kind, _)| kind)
    }

    /// Returns whether an element is agreed on, whatever its meaning.
    pub fn contains(self, id: u8) -> bool {
        self.own.contains(id) || self.kind(id).is_some()
    }

    /// Returns the kinds that are agreed on, with their identifiers.
    pub fn iter(self) -> impl Iterator<Item = (ExtensionKind, u8)> {
        ExtensionKind::ALL.into_iter().filter_map(move |kind| Some((kind, self.id(kind)?)))
    }

    /// Returns whether nothing is agreed on.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.ids == [0; ExtensionKind::ALL.len()] && self.own == IdSet::default()
    }

    /// Returns whether packets of one stream may have different forms.
    pub fn has_mixed_forms(self) -> bool {
        self.is_mixed
    }

    /// Returns the form that all identifiers fit.
    pub fn form(self) -> ExtensionForm {
        let [low, high @ ..] = self.own.0;
        let has_high = self.ids.iter().any(|id| *id > 14) || low >> 15 != 0 || high != [0; 3];
        if has_high { ExtensionForm::TwoByte } else { ExtensionForm::OneByte }
    }

    /// Reads a received `extension`: returns what streams use themselves, and adds the other elements
    /// that were agreed on to `out`, each once, in the two-byte form without padding. `reported` is
    /// the wall clock of the source in its last report, if there was one.
    ///
    /// # Errors
    /// [`ExtensionError`] if the extension is malformed; none of it is then to be used, and `out` is
    /// unchanged.
    pub fn read(
        self,
        extension: Extension<'_>,
        reported: Option<NtpTime>,
        out: &mut Vec<u8>,
    ) -> Result<ReadExtension, ExtensionError> {
        let before = out.len();
        let read = self.read_all(extension, reported, out);
        if read.is_err() {
            out.truncate(before);
        }
        read
    }

    fn read_all(
        self,
        extension: Extension<'_>,
        reported: Option<NtpTime>,
        out: &mut Vec<u8>,
    ) -> Result<ReadExtension, ExtensionError> {
        let mut captured = [None; ExtensionKind::OF_CAPTURE.len()];
        let mut transport_sequence = None;
        let mut seen = IdSet::default();
        for element in extension.elements().into_iter().flatten() {
            let element = element?;
            let kind = self.kind(element.id);
            if kind.is_none() && !self.own.contains(element.id) {
                continue;
            }
            if let Some(kind) = kind {
                let Element { id, data } = element;
                if !kind.allows(data.len()) {
                    return Err(ExtensionError::Length { id, len: data.len() });
                }
                let time = kind.read(data, reported);
                if let Some(place) = captured.get_mut(kind as usize) {
                    *place = place.or(time);
                }
            }
            let is_new = seen.insert(element.id);
            if kind == Some(ExtensionKind::TransportSequence) && is_new {
                transport_sequence = Some(TransportSequence::read(element)?);
            }
            if is_new && !kind.is_some_and(ExtensionKind::is_internal) {
                // It fits: its length was read from one octet.
                let _ = write_element(ExtensionForm::TwoByte, element, out);
            }
        }
        Ok(ReadExtension { captured: captured.into_iter().flatten().next(), transport_sequence })
    }

    /// Returns the capture time in a received `extension`, if it has one. `reported` is the wall
    /// clock of the source in its last report, if there was one.
    ///
    /// # Errors
    /// [`ExtensionError`] if the extension is malformed; none of it is then to be used.
    pub fn capture_time(
        self,
        extension: Extension<'_>,
        reported: Option<NtpTime>,
    ) -> Result<Option<CaptureTime>, ExtensionError> {
        self.read(extension, reported, &mut Vec::new()).map(|read| read.captured)
    }

    /// Calls `write` with each element that carries `capture`.
    pub(crate) fn for_each_of(self, capture: CaptureTime, mut write: impl FnMut(Element<'_>)) {
        for kind in ExtensionKind::OF_CAPTURE {
            if let Some(id) = self.id(kind) {
                let mut data = [0; 16];
                let len = kind.write(capture, &mut data);
                write(Element { id, data: &data[..len] });
            }
        }
    }

    /// Adds the elements with `capture` to the end of `out`, in the map's [form](Self::form), padded
    /// to whole words.
    ///
    /// # Errors
    /// None in practice: all elements fit the form.
    pub fn write(self, capture: CaptureTime, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let (begin, mut outcome) = (out.len(), Ok(()));
        self.for_each_of(capture, |element| {
            let written = write_element(self.form(), element, out);
            outcome = outcome.and(written);
        });
        close_elements(begin, out);
        outcome
    }
}

/// The reason why an element cannot have an identifier.
#[derive(Clone, Copy, Debug, Eq, thiserror::Error, PartialEq)]
#[non_exhaustive]
pub enum ExtensionMapError {
    /// The identifier is reserved (RFC 8285 section 4.2).
    #[error("the identifier {id} of a header extension is reserved: take 1 to 14, or 16 to 255")]
    Reserved {
        /// The identifier given.
        id: u8,
    },
    /// The identifier denotes another element.
    #[error("the identifier {id} denotes two header extensions: give each one of its own")]
    Used {
        /// The identifier given.
        id: u8,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::{ONE_BYTE_PROFILE, TWO_BYTE_PROFILE};

    fn map(ids: &[(ExtensionKind, u8)]) -> ExtensionMap {
        let none = ExtensionMap::default();
        ids.iter().fold(none, |map, (kind, id)| map.with(*kind, *id).unwrap())
    }

    const CAPTURE: CaptureTime =
        CaptureTime { ntp: NtpTime(0x0102_0304_0506_0708), clock_offset: Some(-3) };

    /// RFC 6051 section 3.3, figures 5 and 6.
    #[test]
    fn the_octets_are_those_of_the_figures() {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        let capture = CaptureTime::new(CAPTURE.ntp);
        map(&[(ExtensionKind::Ntp64, 4)]).write(capture, &mut long).unwrap();
        map(&[(ExtensionKind::Ntp56, 5)]).write(capture, &mut short).unwrap();
        assert_eq!(long, [0x47, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0]);
        assert_eq!(short, [0x56, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn each_kind_and_form_is_read_as_it_was_written() {
        let by_sender = CaptureTime::new(CAPTURE.by_sender());
        for id in [1, 14, 16, 255] {
            for kind in ExtensionKind::OF_CAPTURE {
                let (map, mut data) = (map(&[(kind, id)]), Vec::new());
                map.write(CAPTURE, &mut data).unwrap();
                let extension = Extension { profile: map.form().profile(), data: &data };
                let expected =
                    if kind == ExtensionKind::AbsCaptureTime { CAPTURE } else { by_sender };
                let read = map.capture_time(extension, Some(CAPTURE.ntp));
                assert_eq!(read, Ok(Some(expected)), "{kind:?} {id}");
                let without = map.capture_time(extension, None).unwrap();
                assert_eq!(without.is_none(), kind == ExtensionKind::Ntp56);
            }
        }
    }

    #[test]
    fn of_several_the_fullest_one_is_used() {
        let all = [
            (ExtensionKind::Ntp56, 1),
            (ExtensionKind::Ntp64, 2),
            (ExtensionKind::AbsCaptureTime, 3),
        ];
        let (map, mut data) = (map(&all), Vec::new());
        map.write(CAPTURE, &mut data).unwrap();
        let extension = Extension { profile: ONE_BYTE_PROFILE, data: &data };
        assert_eq!(map.capture_time(extension, None), Ok(Some(CAPTURE)));
    }

    #[test]
    fn a_known_element_of_another_length_is_malformed_and_an_unknown_one_is_not() {
        let map = map(&[(ExtensionKind::AbsCaptureTime, 3)]);
        for len in (0..=255_u8).filter(|len| ![8, 16].contains(len)) {
            let data = [&[3, len][..], &vec![1; len.into()]].concat();
            let extension = Extension { profile: TWO_BYTE_PROFILE, data: &data };
            let error = ExtensionError::Length { id: 3, len: len.into() };
            assert_eq!(map.capture_time(extension, None), Err(error));
            let other = [&[4, len][..], &vec![1; len.into()]].concat();
            let extension = Extension { profile: TWO_BYTE_PROFILE, data: &other };
            assert_eq!(map.capture_time(extension, None), Ok(None));
        }
        let foreign = Extension { profile: 0xabcd, data: &[0x3f, 1, 2, 3] };
        assert_eq!(map.capture_time(foreign, None), Ok(None));
    }

    #[test]
    fn reserved_and_used_identifiers_are_refused() {
        let map = map(&[(ExtensionKind::Ntp64, 3)]);
        for id in [0, 15] {
            let error = ExtensionMapError::Reserved { id };
            assert_eq!(map.with(ExtensionKind::Ntp56, id), Err(error));
        }
        let error = ExtensionMapError::Used { id: 3 };
        assert_eq!(map.with(ExtensionKind::Ntp56, 3), Err(error));
        assert_eq!(map.with(ExtensionKind::Ntp64, 3), Ok(map));
        for kind in ExtensionKind::ALL {
            assert_eq!(ExtensionKind::of_uri(kind.uri()), Some(kind));
        }
    }

    #[test]
    fn known_and_own_elements_are_given_once_and_internal_ones_are_not() {
        let map = map(&[
            (ExtensionKind::Mid, 1),
            (ExtensionKind::TransportSequence, 2),
            (ExtensionKind::Ntp56, 3),
        ]);
        let map = map.with_own(4).unwrap();
        let data = [0x11, b'a', b'b', 0x21, 9, 8, 0x40, 7, 0x10, b'c', 0x40, 6, 0x50, 5, 0, 0];
        let mut out = vec![0xee];
        let read = map.read(Extension { profile: ONE_BYTE_PROFILE, data: &data }, None, &mut out);
        let number = Some(TransportSequence(crate::SequenceNumber(0x0908)));
        assert_eq!(read, Ok(ReadExtension { captured: None, transport_sequence: number }));
        assert_eq!(out, [0xee, 1, 2, b'a', b'b', 4, 1, 7]);
        // A malformed element anywhere makes the rest useless.
        for data in [[0x10, b'a', 0x20, 1], [0x10, b'a', 0x41, 1], [0x10, b'a', 0x05, 1]] {
            let extension = Extension { profile: ONE_BYTE_PROFILE, data: &data };
            assert!(map.read(extension, None, &mut out).is_err());
            assert_eq!(out.len(), 8);
        }
    }

    #[test]
    fn own_identifiers_are_unique_and_determine_the_form() {
        let map = map(&[(ExtensionKind::Mid, 3)]).with_own(5).unwrap();
        assert_eq!(map.form(), ExtensionForm::OneByte);
        assert_eq!(map.with_own(16).unwrap().form(), ExtensionForm::TwoByte);
        for id in [3, 5] {
            assert_eq!(map.with_own(id), Err(ExtensionMapError::Used { id }));
        }
        assert_eq!(map.with_own(15), Err(ExtensionMapError::Reserved { id: 15 }));
        let error = ExtensionMapError::Used { id: 5 };
        assert_eq!(map.with(ExtensionKind::Mid, 5), Err(error));
        assert!(
            !map.is_empty() && ExtensionMap::default().with_own(7).is_ok_and(|map| !map.is_empty())
        );
    }
}
