//! The elements of header extensions that the ends of a stream agreed on.

use super::capture_time::{CaptureTime, complete};
use super::error::{ExtensionError, WriteError};
use super::extension::{Element, ExtensionForm, write_elements};
use super::packet::Extension;
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
}

impl ExtensionKind {
    /// All kinds; where several carry the same value, the one that carries most of it is first.
    pub const ALL: [Self; 3] = [Self::AbsCaptureTime, Self::Ntp64, Self::Ntp56];

    /// Returns the URI that denotes it in `a=extmap` (RFC 8285 section 5).
    pub fn uri(self) -> &'static str {
        match self {
            Self::AbsCaptureTime => "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
            Self::Ntp64 => "urn:ietf:params:rtp-hdrext:ntp-64",
            Self::Ntp56 => "urn:ietf:params:rtp-hdrext:ntp-56",
        }
    }

    /// Creates the kind that `uri` denotes, if it is known.
    pub fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.uri() == uri)
    }

    /// Returns the capture time in the data of an element; `None` if `reported`, the wall clock of
    /// the source in its last report, is needed and absent.
    fn read(
        self,
        Element { id, data }: Element<'_>,
        reported: Option<NtpTime>,
    ) -> Result<Option<CaptureTime>, ExtensionError> {
        let number =
            |octets: &[u8]| octets.iter().fold(0, |sum, octet| sum << 8 | u64::from(*octet));
        match (self, data.len()) {
            (Self::AbsCaptureTime, 16) => Ok(Some(CaptureTime {
                ntp: NtpTime(number(&data[..8])),
                clock_offset: Some(number(&data[8..]).cast_signed()),
            })),
            (Self::AbsCaptureTime | Self::Ntp64, 8) => {
                Ok(Some(CaptureTime::new(NtpTime(number(data)))))
            }
            (Self::Ntp56, 7) => {
                Ok(reported.map(|reported| CaptureTime::new(complete(number(data), reported))))
            }
            _ => Err(ExtensionError::Length { id, len: data.len() }),
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
        }
    }
}

/// The elements that the ends of a stream agreed on, each with its local identifier (RFC 8285
/// section 5); by default none.
///
/// ```
/// use rushes_proto::rtp::{ExtensionKind, ExtensionMap};
/// let map = ExtensionMap::default().with(ExtensionKind::Ntp64, 3)?;
/// assert_eq!(map.id(ExtensionKind::Ntp64), Some(3));
/// assert!(map.with(ExtensionKind::AbsCaptureTime, 3).is_err());
/// # Ok::<(), rushes_proto::rtp::ExtensionMapError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExtensionMap {
    /// The identifier of each kind; 0 if it is not agreed on.
    ids: [u8; ExtensionKind::ALL.len()],
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
        // RFC 8285 section 4.2: 15 has a meaning of its own in the one-byte form.
        if matches!(id, 0 | 15) {
            return Err(ExtensionMapError::Reserved { id });
        }
        if self.iter().any(|(other, used)| used == id && other != kind) {
            return Err(ExtensionMapError::Used { id });
        }
        self.ids[kind as usize] = id;
        Ok(self)
    }

    /// Returns the identifier of `kind`, if it is agreed on.
    pub fn id(self, kind: ExtensionKind) -> Option<u8> {
        Some(self.ids[kind as usize]).filter(|id| *id != 0)
    }

    /// Returns the kinds that are agreed on, with their identifiers.
    pub fn iter(self) -> impl Iterator<Item = (ExtensionKind, u8)> {
        ExtensionKind::ALL.into_iter().filter_map(move |kind| Some((kind, self.id(kind)?)))
    }

    /// Returns whether no kind is agreed on.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.ids == [0; ExtensionKind::ALL.len()]
    }

    /// Returns the form that all identifiers fit.
    pub fn form(self) -> ExtensionForm {
        if self.ids.iter().all(|id| *id < 15) {
            ExtensionForm::OneByte
        } else {
            ExtensionForm::TwoByte
        }
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
        let mut found = [None; ExtensionKind::ALL.len()];
        for element in extension.elements().into_iter().flatten() {
            let element = element?;
            let known = self.iter().find(|(_, id)| *id == element.id);
            if let Some((kind, _)) = known {
                let place = &mut found[kind as usize];
                *place = place.or(kind.read(element, reported)?);
            }
        }
        Ok(found.into_iter().flatten().next())
    }

    /// Adds the elements with `capture` to the end of `out`, in the map's [form](Self::form), padded
    /// to whole words.
    ///
    /// # Errors
    /// None in practice: all elements fit the form.
    pub fn write(self, capture: CaptureTime, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let mut data = [[0; 16]; ExtensionKind::ALL.len()];
        let mut elements = [Element { id: 0, data: &[] }; ExtensionKind::ALL.len()];
        let mut count = 0;
        for ((kind, id), data) in self.iter().zip(&mut data) {
            let len = kind.write(capture, data);
            elements[count] = Element { id, data: &data[..len] };
            count += 1;
        }
        write_elements(self.form(), &elements[..count], out)
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
            for kind in ExtensionKind::ALL {
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
}
