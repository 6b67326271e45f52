//! BYE: sources that leave the session (RFC 3550 section 6.6).

use super::compound::Part;
use super::error::{RtcpError, need};
use super::word;
use crate::ssrc::Ssrc;

/// Sources that leave the session, and an optional reason.
#[derive(Clone, Copy, Debug)]
pub struct Bye<'p> {
    sources: &'p [u8],
    reason: Option<&'p [u8]>,
}

impl<'p> Bye<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let len = usize::from(part.count) * 4;
        need("the sources of a BYE", len, part.body.len())?;
        let (sources, rest) = part.body.split_at(len);
        let reason = match rest.split_first() {
            None => None,
            Some((reason_len, text)) => {
                let reason_len = usize::from(*reason_len);
                need("the reason of a BYE", reason_len, text.len())?;
                Some(&text[..reason_len])
            }
        };
        Ok(Self { sources, reason })
    }

    /// Returns the sources.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = Ssrc> + use<'p> {
        self.sources.chunks_exact(4).map(|source| Ssrc(word(source, 0)))
    }

    /// Returns the reason, up to 255 octets of UTF-8, not validated.
    pub fn reason(&self) -> Option<&'p [u8]> {
        self.reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_optional_and_bounded() {
        let body = [0, 0, 0, 1, 0, 0, 0, 2, 3, b'e', b'n', b'd'];
        let bye = Bye::parse(Part { count: 2, body: &body }).unwrap();
        assert_eq!(bye.sources().collect::<Vec<_>>(), [Ssrc(1), Ssrc(2)]);
        assert_eq!(bye.reason(), Some(&b"end"[..]));
        let bye = Bye::parse(Part { count: 2, body: &body[..8] }).unwrap();
        assert_eq!(bye.reason(), None);
        assert!(Bye::parse(Part { count: 3, body: &body[..8] }).is_err());
        assert!(
            Bye::parse(Part { count: 2, body: &[&body[..8], &[4, 1, 2, 3]].concat() }).is_err()
        );
        assert_eq!(Bye::parse(Part { count: 0, body: &[] }).unwrap().sources().len(), 0);
    }
}
