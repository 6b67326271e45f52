//! Lines of a description that cannot be used, and what is lost with each.

use core::fmt;

use thiserror::Error;

use super::WARNINGS_MAX;
use super::error::Unsupported;
use crate::ssrc::PayloadType;

/// A line that is odd in itself, and what was left out because of it; all else was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// Which line; lines count from 1, as an editor shows them.
    pub line: usize,
    /// What is wrong with it.
    pub problem: Problem,
    /// What the description lacks because of it.
    pub left_out: LeftOut,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.problem, self.left_out)
    }
}

/// What is wrong with a line.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// It is not what RFC 8866 or the attribute's own RFC says: the part that is wrong, with the
    /// line it belongs to.
    #[error("{0} is missing or malformed")]
    Malformed(&'static str),
    /// There are more of something than are read.
    #[error("there are more than {limit} {what}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are read.
        limit: usize,
    },
    /// It is well-formed and asks for what cannot be done.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// What a description lacks because of an odd line.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LeftOut {
    /// What the line says.
    Line,
    /// The part of the line that is wrong, such as one payload type of `m=`.
    Part,
    /// The format parameter of this name.
    Parameter(String),
    /// The format with this payload type: what is wrong decides how its packets look.
    Format(PayloadType),
    /// The media that begins with the line, and all lines below it.
    Media,
    /// The line, and all lines after it.
    Rest,
    /// Warnings of this line and of others: there are [`WARNINGS_MAX`] before this one.
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

/// The warnings of one description, at most [`WARNINGS_MAX`] and one that says so.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    found: Vec<Warning>,
    /// The first line whose warning found no room.
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

    /// All of them, in the order of the lines.
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
