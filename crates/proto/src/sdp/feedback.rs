//! Feedback messages that a receiver may send (`a=rtcp-fb`, RFC 4585 section 4.2, RFC 5104
//! section 7.1).

use core::fmt;
use core::time::Duration;

use super::line::number;

/// One kind of feedback for one format.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Feedback {
    /// `nack`: Generic NACK (RFC 4585 section 6.2.1).
    Nack,
    /// `nack pli`: Picture Loss Indication (RFC 4585 section 6.3.1).
    NackPli,
    /// `ccm fir`: Full Intra Request (RFC 5104 section 4.3.1).
    CcmFir,
    /// `ccm tmmbr`: Temporary Maximum Media Stream Bit Rate (RFC 5104 section 4.2).
    CcmTmmbr {
        /// `smaxpr`: the highest packet rate, in packets per second.
        smaxpr: Option<u64>,
    },
    /// `goog-remb`: Receiver Estimated Maximum Bitrate, as sent by browsers.
    GoogRemb,
    /// `transport-cc`: arrival times of all packets, as sent by browsers.
    TransportCc,
    /// `trr-int`: the minimum time between two regular compound RTCP packets, in whole
    /// milliseconds.
    TrrInt(Duration),
    /// Other feedback, as written, which RFC 4585 section 4.2 requires receivers to ignore.
    Other(String),
}

impl Feedback {
    /// Returns the feedback that `words`, everything after the payload type, denote.
    pub(super) fn new(words: &[&str]) -> Self {
        let known = match words {
            ["nack"] => Some(Self::Nack),
            ["nack", "pli"] => Some(Self::NackPli),
            ["ccm", "fir"] => Some(Self::CcmFir),
            ["ccm", "tmmbr"] => Some(Self::CcmTmmbr { smaxpr: None }),
            ["ccm", "tmmbr", rate] => rate
                .strip_prefix("smaxpr=")
                .and_then(number)
                .map(|rate| Self::CcmTmmbr { smaxpr: Some(rate) }),
            ["goog-remb"] => Some(Self::GoogRemb),
            ["transport-cc"] => Some(Self::TransportCc),
            ["trr-int", interval] => {
                number(interval).map(|interval| Self::TrrInt(Duration::from_millis(interval)))
            }
            _ => None,
        };
        known.unwrap_or_else(|| Self::Other(words.join(" ")))
    }
}

impl fmt::Display for Feedback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nack => f.write_str("nack"),
            Self::NackPli => f.write_str("nack pli"),
            Self::CcmFir => f.write_str("ccm fir"),
            Self::CcmTmmbr { smaxpr: None } => f.write_str("ccm tmmbr"),
            Self::CcmTmmbr { smaxpr: Some(rate) } => write!(f, "ccm tmmbr smaxpr={rate}"),
            Self::GoogRemb => f.write_str("goog-remb"),
            Self::TransportCc => f.write_str("transport-cc"),
            Self::TrrInt(interval) => write!(f, "trr-int {}", interval.as_millis()),
            Self::Other(text) => f.write_str(text),
        }
    }
}
