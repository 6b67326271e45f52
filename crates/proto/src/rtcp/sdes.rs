//! Source descriptions (RFC 3550 section 6.5).

use super::compound::Part;
use super::error::{RtcpError, need};
use super::report::source;
use crate::ssrc::Ssrc;

/// The kind of an item.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SdesKind {
    /// The canonical name, the same for all streams of one participant and clock (6.5.1).
    Cname,
    /// The user's name (6.5.2).
    Name,
    /// The user's electronic mail address (6.5.3).
    Email,
    /// The user's telephone number (6.5.4).
    Phone,
    /// The user's location (6.5.5).
    Location,
    /// The application (6.5.6).
    Tool,
    /// The user's current activity (6.5.7).
    Note,
    /// A private extension, which begins with its name (6.5.8).
    Private,
    /// Any other item, by its number.
    Other(u8),
}

impl SdesKind {
    fn from_wire(number: u8) -> Self {
        match number {
            1 => Self::Cname,
            2 => Self::Name,
            3 => Self::Email,
            4 => Self::Phone,
            5 => Self::Location,
            6 => Self::Tool,
            7 => Self::Note,
            8 => Self::Private,
            other => Self::Other(other),
        }
    }

    /// Returns the number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Cname => 1,
            Self::Name => 2,
            Self::Email => 3,
            Self::Phone => 4,
            Self::Location => 5,
            Self::Tool => 6,
            Self::Note => 7,
            Self::Private => 8,
            Self::Other(number) => number,
        }
    }
}

/// One item: a kind and up to 255 octets of UTF-8, not validated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SdesItem<'p> {
    /// The kind of the item.
    pub kind: SdesKind,
    /// Its text; in a private item, the length of the prefix, the prefix and the value.
    pub text: &'p [u8],
}

impl<'p> SdesItem<'p> {
    /// Returns prefix and value of a private item (RFC 3550 section 6.5.8); `None` for other items,
    /// and if the prefix exceeds the item.
    pub fn private(&self) -> Option<(&'p [u8], &'p [u8])> {
        let (len, rest) = self.text.split_first()?;
        (self.kind == SdesKind::Private).then_some(())?;
        rest.split_at_checked(usize::from(*len))
    }
}

/// The items of one source.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'p> {
    ssrc: Ssrc,
    items: &'p [u8],
}

impl<'p> Chunk<'p> {
    /// Returns the source.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns its items in order.
    pub fn items(&self) -> impl Iterator<Item = SdesItem<'p>> + use<'p> {
        let mut rest = self.items;
        std::iter::from_fn(move || {
            let (&[kind, len], tail) = rest.split_first_chunk::<2>()?;
            let (text, tail) = tail.split_at_checked(usize::from(len))?;
            rest = tail;
            Some(SdesItem { kind: SdesKind::from_wire(kind), text })
        })
    }
}

/// Descriptions of any number of sources.
#[derive(Clone, Copy, Debug)]
pub struct SourceDescription<'p> {
    count: u8,
    body: &'p [u8],
}

impl<'p> SourceDescription<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let mut rest = part.body;
        for _ in 0..part.count {
            rest = split_chunk(rest)?.1;
        }
        Ok(Self { count: part.count, body: part.body })
    }

    /// Returns the chunks in order.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'p>> + use<'p> {
        let mut rest = self.body;
        (0..self.count).map_while(move |_| {
            let (chunk, tail) = split_chunk(rest).ok()?;
            rest = tail;
            Some(chunk)
        })
    }

    /// Returns the canonical name of `ssrc`.
    pub fn cname(&self, ssrc: Ssrc) -> Option<&'p [u8]> {
        let mut chunks = self.chunks();
        let chunk = chunks.find(|chunk| chunk.ssrc == ssrc)?;
        chunk.items().find(|item| item.kind == SdesKind::Cname).map(|item| item.text)
    }
}

/// Returns the first chunk and the rest. The items end with a zero octet, the chunk with a whole
/// word.
fn split_chunk(bytes: &[u8]) -> Result<(Chunk<'_>, &[u8]), RtcpError> {
    let (ssrc, items) = source(bytes)?;
    let mut end = 0;
    while items.get(end).is_some_and(|kind| *kind != 0) {
        need("the length of an SDES item", end + 2, items.len())?;
        let len = 2 + usize::from(items[end + 1]);
        need("an SDES item", end + len, items.len())?;
        end += len;
    }
    // Some peers omit the closing zero if the items already end at a multiple of four.
    let padded = (end + 1).next_multiple_of(4).min(items.len());
    Ok((Chunk { ssrc, items: &items[..end] }, &items[padded..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(count: u8, body: &[u8]) -> Result<SourceDescription<'_>, RtcpError> {
        SourceDescription::parse(Part { count, body })
    }

    #[test]
    fn two_chunks_are_padded_apart() {
        let body = [0, 0, 0, 1, 1, 2, b'a', b'b', 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, b'c', 0];
        let sdes = parse(2, &body).unwrap();
        assert_eq!(sdes.cname(Ssrc(1)), Some(&b"ab"[..]));
        assert_eq!(sdes.cname(Ssrc(2)), Some(&b"c"[..]));
        assert_eq!(sdes.cname(Ssrc(3)), None);
    }

    #[test]
    fn a_private_item_has_a_prefix() {
        let body = [0, 0, 0, 1, 8, 4, 2, b'p', b'x', b'v', 0, 0];
        let sdes = parse(1, &body).unwrap();
        let item = sdes.chunks().next().unwrap().items().next().unwrap();
        assert_eq!(item.private(), Some((&b"px"[..], &b"v"[..])));
        let too_long = SdesItem { kind: SdesKind::Private, text: &[9, 1] };
        assert_eq!(too_long.private(), None);
    }

    #[test]
    fn an_item_beyond_the_end_is_refused() {
        assert!(parse(1, &[0, 0, 0, 1, 1, 3, b'a', b'b']).is_err());
        assert!(parse(1, &[0, 0, 0, 1, 1, 1, b'a', 2]).is_err());
        assert!(parse(2, &[0, 0, 0, 1, 0, 0, 0, 0]).is_err());
        assert!(parse(1, &[0, 0, 0]).is_err());
    }

    #[test]
    fn a_chunk_without_its_closing_zero_still_ends_with_the_packet() {
        let sdes = parse(1, &[0, 0, 0, 1, 1, 2, b'a', b'b']);
        assert_eq!(sdes.unwrap().cname(Ssrc(1)), Some(&b"ab"[..]));
    }

    #[test]
    fn kinds_keep_their_numbers() {
        for number in 0..=255 {
            assert_eq!(SdesKind::from_wire(number).number(), number);
        }
    }
}
