//! The lines of a description, each with its number for error messages (RFC 8866 section 5).

use core::str::FromStr;

use super::error::SdpError;
use super::warning::{LeftOut, Problem, Warnings};
use super::{DESCRIPTION_LEN_MAX, LINES_MAX};

/// Words of a line, separated by one or more spaces.
pub(super) type Fields<'a> = core::str::SplitAsciiWhitespace<'a>;

/// The defined type letters. RFC 8866 section 5 requires a description with any other letter to be
/// ignored as a whole. Here, as in other programs, only the line is ignored, because surveillance
/// cameras add lines such as `y=`.
const TYPES: &str = "vosiuepcbtrzkam";

/// One line: its number, counted from 1, its type letter, and its value without surrounding spaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) number: usize,
    pub(super) kind: char,
    pub(super) value: &'a str,
}

impl<'a> Line<'a> {
    /// Reads `<type>=<value>`.
    fn parse(number: usize, text: &'a str) -> Result<Self, Problem> {
        let (kind, value) = text.split_once('=').ok_or(Problem::Malformed("the = of a line"))?;
        let mut letters = kind.chars();
        let kind = letters.next().filter(|letter| TYPES.contains(*letter));
        let kind = kind.filter(|_| letters.next().is_none());
        let kind = kind.ok_or(Problem::Malformed("the type letter"))?;
        let is_text = !value.contains(|c: char| c.is_ascii_control() && c != '\t');
        match kind {
            _ if is_text => Ok(Self { number, kind, value: trim(value) }),
            // It is kept without a value; otherwise the lines below it would belong to the previous
            // media.
            'm' => Ok(Self { number, kind, value: "" }),
            _ => Err(Problem::Malformed("a text without control characters")),
        }
    }

    fn is_version(&self) -> bool {
        self.kind == 'v' && self.value == "0"
    }

    pub(super) fn fields(self) -> Fields<'a> {
        self.value.split_ascii_whitespace()
    }

    /// Returns an attribute's name and value; the value is empty if there is none.
    pub(super) fn attribute(self) -> (&'a str, &'a str) {
        let (name, value) = self.value.split_once(':').unwrap_or((self.value, ""));
        (trim(name), trim(value))
    }
}

/// Returns the next of `fields`; if there is none, the problem names `what`.
pub(super) fn next<'a>(fields: &mut Fields<'a>, what: &'static str) -> Result<&'a str, Problem> {
    fields.next().ok_or(Problem::Malformed(what))
}

/// Returns the next of `fields` as a number of decimal digits.
pub(super) fn next_number<N: FromStr>(
    fields: &mut Fields<'_>,
    what: &'static str,
) -> Result<N, Problem> {
    number_of(fields.next().unwrap_or_default(), what)
}

/// Reads `text` as a number of decimal digits; otherwise the problem names `what`.
pub(super) fn number_of<N: FromStr>(text: &str, what: &'static str) -> Result<N, Problem> {
    number(text).ok_or(Problem::Malformed(what))
}

/// Reads `text` as a number of decimal digits; `from_str` alone would accept a sign.
pub(super) fn number<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|octet| octet.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Returns `text` without spaces and tabs at its ends.
pub(super) fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Checks the length of `octets` and converts them to text. Invalid UTF-8, which a session name may
/// contain, becomes U+FFFD.
pub(super) fn text(octets: &[u8]) -> Result<String, SdpError> {
    if octets.len() > DESCRIPTION_LEN_MAX {
        return Err(SdpError::TooLong { len: octets.len(), limit: DESCRIPTION_LEN_MAX });
    }
    Ok(String::from_utf8_lossy(octets).into_owned())
}

/// Returns the lines of `text` from `v=0` on, without empty lines; FFmpeg prints `SDP:` first.
pub(super) fn lines<'a>(text: &'a str, warnings: &mut Warnings) -> Result<Vec<Line<'a>>, SdpError> {
    let mut lines = Vec::new();
    let mut first = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, text) in text.split('\n').enumerate() {
        let number = index + 1;
        let text = trim(text.trim_end_matches([' ', '\t', '\r']));
        if text.is_empty() || (first.is_none() && text == "SDP:") {
            continue;
        }
        first.get_or_insert(number);
        if lines.len() == LINES_MAX {
            let problem = Problem::TooMany { what: "lines", limit: LINES_MAX };
            warnings.add(number, problem, LeftOut::Rest);
            break;
        }
        match Line::parse(number, text) {
            Ok(line) if lines.is_empty() && !line.is_version() => {
                warnings.add(number, Problem::Malformed("v=0 before it"), LeftOut::Line);
            }
            Ok(line) => lines.push(line),
            Err(problem) => warnings.add(number, problem, LeftOut::Line),
        }
    }
    if lines.is_empty() {
        return Err(SdpError::NoVersion { line: first.unwrap_or(0) });
    }
    Ok(lines)
}
