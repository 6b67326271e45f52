//! Lines of a description that cannot be used, and the parts that are skipped.

use core::fmt;

use thiserror::Error;

use super::WARNINGS_MAX;
use super::error::Unsupported;
use crate::ssrc::PayloadType;

/// A line that cannot be used, and the part that was skipped because of it; the rest of the
/// description was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// The number of the line, counted from 1 as in an editor.
    pub line: usize,
    /// The problem with it.
    pub problem: Problem,
    /// The part of the description that was skipped.
    pub left_out: LeftOut,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.problem, self.left_out)
    }
}

/// The problem with a line.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// It does not conform to RFC 8866 or to the RFC of the attribute. The text is the invalid part
    /// and the type of its line.
    #[error("{0} is missing or malformed")]
    Malformed(&'static str),
    /// It was given before with another meaning. The text is the repeated part.
    #[error("{0} is given twice")]
    Repeated(&'static str),
    /// There are more items than the maximum.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// The kind of the items.
        what: &'static str,
        /// The maximum number that is read.
        limit: usize,
    },
    /// It is well-formed, but not supported.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// The part of a description that is skipped because of a line.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LeftOut {
    /// The line.
    Line,
    /// The invalid part of the line, such as one payload type of `m=`.
    Part,
    /// The format parameter of this name.
    Parameter(String),
    /// The format with this payload type: the invalid parameter determines the packet format.
    Format(PayloadType),
    /// The media that begins with the line, and all lines below it.
    Media,
    /// The line, and all lines after it.
    Rest,
    /// The warnings for this line and others, because there are [`WARNINGS_MAX`] before this one.
    Warnings,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line => f.write_str("the line is left out"),
            Self::Part => f.write_str("this part of the line is left out"),
            Self::Parameter(name) => write!(f, "the parameter {name} is left out"),
            Self::Format(payload_type) => {
                write!(f, "payload type {} is left out", payload_type.value())
            }
            Self::Media => f.write_str("the media is left out"),
            Self::Rest => f.write_str("the rest of the description is left out"),
            Self::Warnings => f.write_str("further warnings are left out"),
        }
    }
}

/// The warnings of one description: at most [`WARNINGS_MAX`], and one that reports more.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    found: Vec<Warning>,
    /// The first line whose warning was dropped.
    more: Option<usize>,
}

impl Warnings {
    pub(super) fn add(&mut self, line: usize, problem: Problem, left_out: LeftOut) {
        if self.found.len() < WARNINGS_MAX {
            self.found.push(Warning { line, problem, left_out });
        } else {
            self.more.get_or_insert(line);
        }
    }

    /// Returns all warnings in the order of the lines.
    pub(super) fn finish(mut self) -> Vec<Warning> {
        self.found.sort_by_key(|warning| warning.line);
        self.found.extend(self.more.map(|line| Warning {
            line,
            problem: Problem::TooMany { what: "warnings", limit: WARNINGS_MAX },
            left_out: LeftOut::Warnings,
        }));
        self.found
    }
}
