//! A description cut into lines, each with its number for errors (RFC 8866 section 5).

use core::str::FromStr;

use super::DESCRIPTION_LEN_MAX;
use super::LINES_MAX;
use super::error::SdpError;
use super::error::Unsupported;

/// Words of a line between single or several spaces.
pub(super) type Fields<'a> = core::str::SplitAsciiWhitespace<'a>;

/// The type letters that exist; a description with another must be ignored as a whole (RFC 8866
/// section 5).
const TYPES: &str = "vosiuepcbtrzkam";

/// One line: its number from 1, type letter, and value without space at its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) kind: char,
    pub(super) value: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn malformed(self, what: &'static str) -> SdpError {
        SdpError::Malformed { line: self.number, what }
    }

    pub(super) fn unsupported(self, reason: Unsupported) -> SdpError {
        SdpError::Unsupported { line: self.number, reason }
    }

    pub(super) fn too_many(self, what: &'static str, limit: usize) -> SdpError {
        SdpError::TooMany { line: self.number, what, limit }
    }

    pub(super) fn fields(self) -> Fields<'a> {
        self.value.split_ascii_whitespace()
    }

    /// An attribute's name and value; the value is empty if there is none.
    pub(super) fn attribute(self) -> (&'a str, &'a str) {
        let (name, value) = self.value.split_once(':').unwrap_or((self.value, ""));
        (trim(name), trim(value))
    }

    /// `text` as a number of decimal digits only.
    pub(super) fn number<N: FromStr>(self, text: &str, what: &'static str) -> Result<N, SdpError> {
        number(text).ok_or_else(|| self.malformed(what))
    }

    /// The next of `fields` as a number of decimal digits only.
    pub(super) fn next_number<N: FromStr>(
        self,
        fields: &mut Fields<'_>,
        what: &'static str,
    ) -> Result<N, SdpError> {
        self.number(fields.next().unwrap_or_default(), what)
    }
}

/// `text` as a number of decimal digits only: `from_str` alone would take a sign.
pub(super) fn number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// `text` without spaces and tabs at its ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Checks the length of `octets` and makes text of them: octets that are not UTF-8, which a
/// session name may have, become U+FFFD.
pub(super) fn text(octets: &[u8]) -> Result<String, SdpError> {
    if octets.len() > DESCRIPTION_LEN_MAX {
        return Err(SdpError::TooLong { len: octets.len(), limit: DESCRIPTION_LEN_MAX });
    }
    Ok(String::from_utf8_lossy(octets).into_owned())
}

/// The lines of `text`; empty lines are left out, as is the `SDP:` that FFmpeg prints first.
pub(super) fn lines(text: &str) -> Result<Vec<Line<'_>>, SdpError> {
    let mut lines = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.split('\n').enumerate() {
        let number = index + 1;
        let line = trim(line.trim_end_matches([' ', '\t', '\r']));
        if line.is_empty() || (lines.is_empty() && line == "SDP:") {
            continue;
        }
        if lines.len() == LINES_MAX {
            return Err(SdpError::TooMany { line: number, what: "lines", limit: LINES_MAX });
        }
        let malformed = |what| SdpError::Malformed { line: number, what };
        let (kind, value) = line.split_once('=').ok_or_else(|| malformed("the = of a line"))?;
        let mut letters = kind.chars();
        let kind = letters.next().filter(|letter| TYPES.contains(*letter));
        let kind = kind
            .filter(|_| letters.next().is_none())
            .ok_or_else(|| malformed("the type letter"))?;
        if value.contains(|c: char| c.is_ascii_control() && c != '\t') {
            return Err(malformed("a text without control characters"));
        }
        lines.push(Line { number, kind, value: trim(value) });
    }
    match lines.first() {
        Some(line) if line.kind == 'v' && line.value == "0" => Ok(lines),
        first => Err(SdpError::NoVersion { line: first.map_or(0, |line| line.number) }),
    }
}
