//! The common layout of messages: preamble, length, type block, and consecutive fields (RFC 6189
//! section 5.1).

use thiserror::Error;

use super::error_code::ErrorCode;

/// Octets of the longest message that is written, parsed or reassembled.
///
/// The longest known message is the `KEMPart1` of X448 with BIKE-L5 and HQC-256: 19 716 octets.
pub const MESSAGE_LEN_MAX: usize = 20_480;

/// The first two octets of every message.
const PREAMBLE: [u8; 2] = [0x50, 0x5a];

/// Octets of the MAC at the end of Hello, Commit, `DHPart1`, `DHPart2` and the KEM parts.
const MAC_LEN: usize = 8;

/// The reason why octets are not a ZRTP message.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// There are fewer octets than preamble, length and type block need.
    #[error("a message of {0} octets is too short for its header")]
    TooShort(usize),
    /// The message does not begin with 0x505a.
    #[error("a message begins with {0:02x?} instead of the preamble")]
    Preamble([u8; 2]),
    /// The length field differs from the number of octets.
    #[error("the length field claims {claimed} octets, but there are {actual}")]
    Length {
        /// Octets according to the length field.
        claimed: usize,
        /// Octets present.
        actual: usize,
    },
    /// The message type block is not one of section 5.1.1 or the draft.
    #[error("unknown message type {0:?}")]
    UnknownType([u8; 8]),
    /// There are too few or too many octets for the type of message and the algorithms in it.
    #[error("a length of {actual} octets does not fit the type of message (at octet {at})")]
    Size {
        /// Octets of the message.
        actual: usize,
        /// Offset of the field that is too short, or of the surplus octets.
        at: usize,
    },
    /// A Hello announces more than seven algorithms of one kind.
    #[error("a list of {0} algorithms exceeds the maximum of 7")]
    AlgorithmCount(u8),
    /// A Commit selects an unknown algorithm.
    #[error("unknown algorithm {code:?}: {error}")]
    UnknownAlgorithm {
        /// The unknown type block.
        code: [u8; 4],
        /// The error with which to answer.
        error: ErrorCode,
    },
}

impl MessageError {
    /// Returns the code to send in an Error message (RFC 6189 section 5.9).
    pub fn code(self) -> ErrorCode {
        match self {
            Self::UnknownAlgorithm { error, .. } => error,
            _ => ErrorCode::MalformedPacket,
        }
    }
}

/// Returns the octets that the MAC at the end of `message` covers: all but the last eight.
///
/// For Hello, Commit, `DHPart1`, `DHPart2`, `KEMPart1` and `KEMPart2`. Empty if there are fewer
/// than eight octets.
pub fn without_mac(message: &[u8]) -> &[u8] {
    message.split_last_chunk::<MAC_LEN>().map_or(&[], |(covered, _)| covered)
}

/// Writes `mac` to the last eight octets of a written message.
pub fn set_mac(message: &mut [u8], mac: [u8; 8]) {
    if let Some(place) = message.last_chunk_mut() {
        *place = mac;
    }
}

/// Reads consecutive fields of a message.
pub(super) struct Fields<'a> {
    message_len: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Checks preamble and length; returns the type block and the fields after it.
    pub(super) fn open(message: &'a [u8]) -> Result<([u8; 8], Self), MessageError> {
        let too_short = MessageError::TooShort(message.len());
        let (&preamble, rest) = message.split_first_chunk::<2>().ok_or(too_short)?;
        if preamble != PREAMBLE {
            return Err(MessageError::Preamble(preamble));
        }
        let (&words, rest) = rest.split_first_chunk::<2>().ok_or(too_short)?;
        let (&kind, rest) = rest.split_first_chunk::<8>().ok_or(too_short)?;
        let claimed = usize::from(u16::from_be_bytes(words)) * 4;
        if claimed != message.len() {
            return Err(MessageError::Length { claimed, actual: message.len() });
        }
        if claimed > MESSAGE_LEN_MAX {
            return Err(MessageError::Size { actual: claimed, at: MESSAGE_LEN_MAX });
        }
        Ok((kind, Self { message_len: message.len(), rest }))
    }

    /// Reads fields of octets without a header, such as the plain text of a Confirm.
    pub(super) fn plain(octets: &'a [u8]) -> Self {
        Self { message_len: octets.len(), rest: octets }
    }

    /// Returns the error for missing or surplus octets at this position.
    pub(super) fn size_error(&self) -> MessageError {
        let at = self.message_len - self.rest.len();
        MessageError::Size { actual: self.message_len, at }
    }

    /// Reads the next `N` octets.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let error = self.size_error();
        let (&array, rest) = self.rest.split_first_chunk().ok_or(error)?;
        self.rest = rest;
        Ok(array)
    }

    /// Reads the next 32-bit word.
    pub(super) fn word(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads the next `len` octets.
    pub(super) fn octets(&mut self, len: usize) -> Result<&'a [u8], MessageError> {
        let error = self.size_error();
        let (octets, rest) = self.rest.split_at_checked(len).ok_or(error)?;
        self.rest = rest;
        Ok(octets)
    }

    /// Reads a value of `len` octets; skips its padding to a whole word unchecked.
    pub(super) fn padded(&mut self, len: usize) -> Result<&'a [u8], MessageError> {
        let value = self.octets(len)?;
        self.octets(len.next_multiple_of(4) - len)?;
        Ok(value)
    }

    /// Reads all octets except the last `len`.
    pub(super) fn all_but(&mut self, len: usize) -> Result<&'a [u8], MessageError> {
        let len = self.rest.len().checked_sub(len).ok_or_else(|| self.size_error())?;
        self.octets(len)
    }

    /// Returns the number of remaining octets.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    /// Checks that no octets remain.
    pub(super) fn end(&self) -> Result<(), MessageError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.size_error()) }
    }
}

/// Appends a message of type `kind`, whose fields `fill` appends, and sets its length.
///
/// `fill` must append whole words, at most [`MESSAGE_LEN_MAX`] octets.
pub(super) fn write_message(out: &mut Vec<u8>, kind: [u8; 8], fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&PREAMBLE);
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&kind);
    fill(out);
    let words = ((out.len() - start) / 4) as u16;
    let length = out.get_mut(start + 2..).and_then(<[u8]>::first_chunk_mut);
    if let Some(length) = length {
        *length = words.to_be_bytes();
    }
}

/// Appends `octets`, and zeros up to a whole word.
pub(super) fn write_padded(out: &mut Vec<u8>, octets: &[u8]) {
    out.extend_from_slice(octets);
    let padding = octets.len().next_multiple_of(4) - octets.len();
    out.resize(out.len() + padding, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_is_the_last_eight_octets() {
        let mut message: Vec<u8> = (0..20).collect();
        set_mac(&mut message, [0xff; 8]);
        assert_eq!(without_mac(&message), (0..12).collect::<Vec<u8>>());
        assert_eq!(message[12..], [0xff; 8]);
    }

    #[test]
    fn too_few_octets_for_a_mac_are_left_alone() {
        let mut message = [1, 2, 3];
        set_mac(&mut message, [0xff; 8]);
        assert_eq!(message, [1, 2, 3]);
        assert!(without_mac(&message).is_empty());
    }

    #[test]
    fn a_wrong_preamble_is_named() {
        let mut message = Vec::new();
        write_message(&mut message, *b"HelloACK", |_| ());
        message[0] = 0x51;
        assert_eq!(Fields::open(&message).err(), Some(MessageError::Preamble([0x51, 0x5a])));
    }

    #[test]
    fn a_length_field_that_lies_is_refused() {
        let mut message = Vec::new();
        write_message(&mut message, *b"HelloACK", |_| ());
        message[3] = 4;
        let error = MessageError::Length { claimed: 16, actual: 12 };
        assert_eq!(Fields::open(&message).err(), Some(error));
    }

    #[test]
    fn padding_goes_to_a_whole_word() {
        let mut out = Vec::new();
        write_padded(&mut out, &[1, 2, 3, 4, 5]);
        assert_eq!(out, [1, 2, 3, 4, 5, 0, 0, 0]);
        let mut fields = Fields::plain(&out);
        assert_eq!(fields.padded(5), Ok(&[1, 2, 3, 4, 5][..]));
        assert_eq!(fields.end(), Ok(()));
    }
}
