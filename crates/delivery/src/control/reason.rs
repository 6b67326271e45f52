//! The reasons why a session ended or was refused.

use core::fmt;

/// Maximum octets of a text that explains a reason.
pub const TEXT_LEN_MAX: usize = 200;

/// The reason code of a `Refuse` or a `Stop`; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// 0: no error; the session has ended.
    Ended,
    /// 1: another version of this protocol.
    Version,
    /// 2: a format that the other side does not have.
    Format,
    /// 3: a transport that the other side does not have.
    Transport,
    /// 4: too many units, or a number that does not fit the video mode.
    Units,
    /// 5: a packet size that cannot be used.
    PacketSize,
    /// 6: too many clients; trying again later may help.
    Busy,
    /// 7: no session has this token.
    Token,
    /// 8: an answer did not arrive in time.
    TimedOut,
    /// 9: octets unknown to this protocol, or values out of bounds.
    Malformed,
    /// 10: something that is valid, but not supported here.
    Unsupported,
    /// 11: a message that is not allowed in this state.
    OutOfTurn,
    /// 12: the two ends do not have the same key.
    Key,
    /// A number without a meaning in this version, 13 to 255.
    Other(u8),
}

/// All reasons with a meaning, in the order of their numbers.
const REASONS: [Reason; 13] = [
    Reason::Ended,
    Reason::Version,
    Reason::Format,
    Reason::Transport,
    Reason::Units,
    Reason::PacketSize,
    Reason::Busy,
    Reason::Token,
    Reason::TimedOut,
    Reason::Malformed,
    Reason::Unsupported,
    Reason::OutOfTurn,
    Reason::Key,
];

impl Reason {
    /// Returns the reason code on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Ended => 0,
            Self::Version => 1,
            Self::Format => 2,
            Self::Transport => 3,
            Self::Units => 4,
            Self::PacketSize => 5,
            Self::Busy => 6,
            Self::Token => 7,
            Self::TimedOut => 8,
            Self::Malformed => 9,
            Self::Unsupported => 10,
            Self::OutOfTurn => 11,
            Self::Key => 12,
            Self::Other(number) => number,
        }
    }

    /// Returns the reason with this code. An unknown code is kept, so that none is misread.
    pub fn from_number(number: u8) -> Self {
        REASONS.get(usize::from(number)).copied().unwrap_or(Self::Other(number))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "ended",
            Self::Version => "wrong version",
            Self::Format => "format not available",
            Self::Transport => "transport not available",
            Self::Units => "number of units not available",
            Self::PacketSize => "packet size not available",
            Self::Busy => "too many clients",
            Self::Token => "wrong token",
            Self::TimedOut => "timed out",
            Self::Malformed => "malformed",
            Self::Unsupported => "unsupported",
            Self::OutOfTurn => "unexpected message",
            Self::Key => "wrong key",
            Self::Other(number) => return write!(f, "reason {number}"),
        })
    }
}

/// The side that ended a session, and why.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum StoppedBy {
    /// This side, at the application's request.
    Own,
    /// The peer, by `Stop` or `Refuse`.
    Peer,
    /// Neither: the connection closed without `Stop` or `Refuse`.
    Closed,
    /// This side, because the peer took too long.
    Timeout,
    /// This side, because the peer violated the protocol.
    Protocol,
}

/// The end of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stopped {
    /// The side that ended it, and why.
    pub by: StoppedBy,
    /// The reason code.
    pub reason: Reason,
    /// The reason as text: at most 200 octets without control characters; may be empty.
    pub text: String,
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.by {
            StoppedBy::Own => "closed by this side",
            StoppedBy::Peer => "closed by the peer",
            StoppedBy::Closed => "connection closed by the peer",
            StoppedBy::Timeout => "aborted",
            StoppedBy::Protocol => "peer violated the protocol",
        })?;
        write!(f, ": {}", self.reason)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, " ({})", self.text) }
    }
}

/// Cuts `text` to 200 octets and replaces control characters, which could manipulate a terminal.
pub(super) fn printable(text: &str) -> String {
    let mut end = text.len().min(TEXT_LEN_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A control character beyond ASCII has two octets, so a space never makes the text longer.
    text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back_to_their_reason() {
        for number in 0..=255 {
            assert_eq!(Reason::from_number(number).number(), number);
        }
        assert_eq!(Reason::from_number(6), Reason::Busy);
        assert_eq!(Reason::from_number(12), Reason::Key);
        assert_eq!(Reason::from_number(13), Reason::Other(13));
    }

    #[test]
    fn a_text_is_cut_between_characters_and_cannot_steer_a_terminal() {
        assert_eq!(printable("a\x1b[2Jb\u{9b}c"), "a [2Jb c");
        let long = "é".repeat(150);
        assert_eq!(printable(&long).len(), 200);
        assert_eq!(printable(&format!("x{long}")).len(), 199);
    }
}
