//! The transport-wide sequence number, which counts all packets of a connection
//! (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 2).

use std::sync::Arc;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;

use super::error::ExtensionError;
use super::extension::Element;
use super::packet::Extension;
use crate::seq::SequenceNumber;

/// The URI that denotes the element in `a=extmap` (section 2.3), as browsers write it.
pub const TRANSPORT_SEQUENCE_URI: &str =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

/// A transport-wide sequence number as an element of a header extension: 16 bits, one counter for
/// all packets of a connection, whatever their stream. Receivers report by it
/// ([`TransportWide`](crate::rtcp::TransportWide)).
///
/// ```
/// use rushes_proto::SequenceNumber;
/// use rushes_proto::rtp::{Element, Extension, ExtensionForm, TransportSequence, write_elements};
///
/// let sequence = TransportSequence(SequenceNumber(0x0102));
/// let (form, mut data) = (ExtensionForm::OneByte, Vec::new());
/// write_elements(form, &[Element { id: 5, data: &sequence.to_bytes() }], &mut data)?;
/// assert_eq!(data, [0x51, 1, 2, 0]);
/// let extension = Extension { profile: form.profile(), data: &data };
/// assert_eq!(TransportSequence::find(5, extension), Ok(Some(sequence)));
/// # Ok::<(), rushes_proto::rtp::WriteError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TransportSequence(pub SequenceNumber);

impl TransportSequence {
    /// Returns the number in a received `extension`, if it has the element `id`.
    ///
    /// # Errors
    /// [`ExtensionError`] if the extension is malformed, or the element has neither 2 octets nor the
    /// 4 of a request for feedback, which is not read.
    pub fn find(id: u8, extension: Extension<'_>) -> Result<Option<Self>, ExtensionError> {
        for element in extension.elements().into_iter().flatten() {
            let element = element?;
            if element.id == id {
                return Self::read(element).map(Some);
            }
        }
        Ok(None)
    }

    pub(super) fn read(Element { id, data }: Element<'_>) -> Result<Self, ExtensionError> {
        match *data {
            [high, low] | [high, low, _, _] => {
                Ok(Self(SequenceNumber(u16::from_be_bytes([high, low]))))
            }
            _ => Err(ExtensionError::Length { id, len: data.len() }),
        }
    }

    /// Returns the data of the element.
    pub fn to_bytes(self) -> [u8; 2] {
        self.0.0.to_be_bytes()
    }
}

/// Counts the packets of a connection: the streams of the connection have clones of one counter.
///
/// ```
/// use rushes_proto::SequenceNumber;
/// use rushes_proto::rtp::{TransportCounter, TransportSequence};
///
/// let video = TransportCounter::new(SequenceNumber(65_535));
/// let audio = video.clone();
/// assert_eq!(video.count(), TransportSequence(SequenceNumber(65_535)));
/// assert_eq!(audio.count(), TransportSequence(SequenceNumber(0)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct TransportCounter(Arc<AtomicU16>);

impl TransportCounter {
    /// Creates a counter whose first packet has the number `first`.
    pub fn new(first: SequenceNumber) -> Self {
        Self(Arc::new(AtomicU16::new(first.0)))
    }

    /// Returns the number of the next packet, and counts it.
    pub fn count(&self) -> TransportSequence {
        TransportSequence(SequenceNumber(self.0.fetch_add(1, Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::ONE_BYTE_PROFILE;

    #[test]
    fn a_number_is_found_among_others_and_no_other_length_is_read() {
        let find =
            |data: &[u8]| TransportSequence::find(5, Extension { profile: ONE_BYTE_PROFILE, data });
        let number = Some(TransportSequence(SequenceNumber(0xfffe)));
        assert_eq!(find(&[0x10, 7, 0x51, 0xff, 0xfe, 0, 0, 0]), Ok(number));
        // With a request for feedback, as in version 02.
        assert_eq!(find(&[0x53, 0xff, 0xfe, 0x80, 1, 0, 0, 0]), Ok(number));
        assert_eq!(find(&[0x61, 0xff, 0xfe, 0]), Ok(None));
        for len in [1, 3, 5, 16] {
            let data = [&[0x50 | (len - 1)][..], &vec![1; len.into()]].concat();
            assert_eq!(find(&data), Err(ExtensionError::Length { id: 5, len: len.into() }));
        }
        assert!(find(&[0x51, 0xff]).is_err());
    }
}
