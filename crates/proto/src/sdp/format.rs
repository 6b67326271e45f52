//! One format of a media: a payload type, its encoding and its feedback.

use core::time::Duration;

use super::error::Unsupported;
use super::feedback::Feedback;
use super::h264::H264Parameters;
use super::h265::H265Parameters;
use super::h266::H266Parameters;
use super::line::{Line, number};
use super::opus::OpusParameters;
use super::parameters::parameters;
use super::warning::{LeftOut, Problem, Warnings};
use crate::ssrc::PayloadType;
use crate::time::ClockRate;

/// A payload type with its `a=rtpmap`, `a=fmtp` and `a=rtcp-fb` lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Format {
    /// The payload type, as listed in `m=`.
    pub payload_type: PayloadType,
    /// The encoding of the payload, with the format parameters.
    pub encoding: Encoding,
    /// Ticks per second of the RTP timestamp.
    pub clock_rate: ClockRate,
    /// Number of audio channels; one if absent.
    pub channels: Option<u8>,
    /// Feedback that may be sent, at most [`FEEDBACK_MAX`](super::FEEDBACK_MAX) kinds.
    pub feedback: Vec<Feedback>,
}

impl Format {
    /// Creates a format of `encoding` under `payload_type`, with its usual clock rate and channels
    /// (48 000 Hz and two channels for Opus, 90 000 Hz for all others) and without feedback.
    pub fn new(payload_type: PayloadType, encoding: Encoding) -> Self {
        let opus = matches!(encoding, Encoding::Opus(_));
        Self {
            payload_type,
            encoding,
            clock_rate: if opus { ClockRate::OPUS } else { ClockRate::VIDEO },
            channels: opus.then_some(2),
            feedback: Vec::new(),
        }
    }

    /// Checks that Rushes has a payload format for this encoding.
    ///
    /// # Errors
    /// [`Unsupported`], with the reason.
    pub fn supported(&self) -> Result<(), Unsupported> {
        let encoding = match &self.encoding {
            Encoding::H264(parameters) if parameters.packetization_mode > 1 => {
                return Err(Unsupported::PacketizationMode(parameters.packetization_mode));
            }
            Encoding::H265(H265Parameters { transmission_mode: Some(mode), .. })
                if !mode.eq_ignore_ascii_case("SRST") =>
            {
                return Err(Unsupported::TransmissionMode(mode.clone()));
            }
            Encoding::H264(_) => "H264",
            Encoding::H265(_) => "H265",
            Encoding::H266(_) => "H266",
            Encoding::Opus(_) => "opus",
            other => return Err(Unsupported::Encoding(other.name().to_owned())),
        };
        let opus = encoding == "opus";
        let clock_rate = if opus { ClockRate::OPUS } else { ClockRate::VIDEO };
        if self.clock_rate != clock_rate {
            return Err(Unsupported::ClockRate { encoding, clock_rate: self.clock_rate });
        }
        match self.channels {
            // RFC 7587 section 7 requires 2, but some devices announce mono as 1.
            Some(channels) if channels > if opus { 2 } else { 1 } => {
                Err(Unsupported::Channels { encoding, channels })
            }
            _ => Ok(()),
        }
    }
}

/// The encoding of a payload, with its format parameters.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Encoding {
    /// H.264 (RFC 6184).
    H264(H264Parameters),
    /// H.265 (RFC 7798).
    H265(H265Parameters),
    /// H.266 (RFC 9328).
    H266(H266Parameters),
    /// Opus (RFC 7587).
    Opus(OpusParameters),
    /// Retransmissions of another format (RFC 4588 section 8).
    Rtx {
        /// `apt`: the payload type of the packets that are retransmitted.
        apt: PayloadType,
        /// `rtx-time`: how long the sender keeps a packet to retransmit it, in whole ms.
        rtx_time: Option<Duration>,
    },
    /// Another encoding.
    Other {
        /// The encoding name.
        name: String,
        /// The whole text of `a=fmtp` after the payload type; empty if there is none.
        parameters: String,
    },
}

impl Encoding {
    /// Returns the encoding name of `a=rtpmap`.
    pub fn name(&self) -> &str {
        match self {
            Self::H264(_) => "H264",
            Self::H265(_) => "H265",
            Self::H266(_) => "H266",
            Self::Opus(_) => "opus",
            Self::Rtx { .. } => "rtx",
            Self::Other { name, .. } => name,
        }
    }

    /// Returns the encoding called `name`, ignoring case, without parameters.
    fn named(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "h264" => Self::H264(H264Parameters::default()),
            "h265" => Self::H265(H265Parameters::default()),
            "h266" => Self::H266(H266Parameters::default()),
            "opus" => Self::Opus(OpusParameters::default()),
            _ => Self::Other { name: name.to_owned(), parameters: String::new() },
        }
    }

    /// Returns the encoding called `name` of `payload_type`, with its `a=fmtp` parameters.
    ///
    /// A parameter that cannot be read is skipped. If it determines the packet format, the result
    /// is `None`, because a receiver without it would misinterpret packets.
    pub(super) fn parse(
        name: &str,
        payload_type: PayloadType,
        texts: &[(Line<'_>, &str)],
        warnings: &mut Warnings,
    ) -> Option<Self> {
        let mut encoding = Self::named(name);
        if let Self::Other { name, parameters } = &mut encoding {
            let texts: Vec<&str> = texts.iter().map(|(_, text)| *text).collect();
            *parameters = texts.join(";");
            let rtx = name.eq_ignore_ascii_case("rtx").then(|| parse_rtx(parameters)).flatten();
            return Some(rtx.unwrap_or(encoding));
        }
        for (line, text) in texts {
            for (name, value) in parameters(text) {
                let Err(problem) = encoding.set(&name, value) else { continue };
                if matches!(name.as_str(), "packetization-mode" | "sprop-max-don-diff") {
                    warnings.add(line.number, problem, LeftOut::Format(payload_type));
                    return None;
                }
                warnings.add(line.number, problem, LeftOut::Parameter(name));
            }
        }
        Some(encoding)
    }

    /// Sets the parameter `name`, in lower case, to `value`.
    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match self {
            Self::H264(parameters) => parameters.set(name, value),
            Self::H265(parameters) => parameters.set(name, value),
            Self::H266(parameters) => parameters.set(name, value),
            Self::Opus(parameters) => parameters.set(name, value),
            Self::Rtx { .. } | Self::Other { .. } => Ok(()),
        }
    }

    /// Returns the format parameters, as in `a=fmtp` after the payload type.
    pub(super) fn write_parameters(&self) -> String {
        match self {
            Self::H264(parameters) => parameters.write(),
            Self::H265(parameters) => parameters.write(),
            Self::H266(parameters) => parameters.write(),
            Self::Opus(parameters) => parameters.write(),
            Self::Rtx { apt, rtx_time: None } => format!("apt={}", apt.value()),
            Self::Rtx { apt, rtx_time: Some(time) } => {
                format!("apt={};rtx-time={}", apt.value(), time.as_millis())
            }
            Self::Other { parameters, .. } => parameters.clone(),
        }
    }
}

/// Reads a retransmission format; `None` without a valid `apt`.
fn parse_rtx(text: &str) -> Option<Encoding> {
    let mut apt = None;
    let mut rtx_time = None;
    for (name, value) in parameters(text) {
        match name.as_str() {
            "apt" => apt = number(value).and_then(PayloadType::new),
            "rtx-time" => rtx_time = number(value).map(Duration::from_millis),
            _ => {}
        }
    }
    Some(Encoding::Rtx { apt: apt?, rtx_time })
}

/// Returns encoding name, clock rate in hertz and channels of a payload type that needs no
/// `a=rtpmap` (RFC 3551 section 6).
pub fn static_format(payload_type: u8) -> Option<(&'static str, u32, Option<u8>)> {
    Some(match payload_type {
        0 => ("PCMU", 8000, None),
        3 => ("GSM", 8000, None),
        4 => ("G723", 8000, None),
        5 => ("DVI4", 8000, None),
        6 => ("DVI4", 16_000, None),
        7 => ("LPC", 8000, None),
        8 => ("PCMA", 8000, None),
        9 => ("G722", 8000, None),
        10 => ("L16", 44_100, Some(2)),
        11 => ("L16", 44_100, None),
        12 => ("QCELP", 8000, None),
        13 => ("CN", 8000, None),
        14 => ("MPA", 90_000, None),
        15 => ("G728", 8000, None),
        16 => ("DVI4", 11_025, None),
        17 => ("DVI4", 22_050, None),
        18 => ("G729", 8000, None),
        25 => ("CelB", 90_000, None),
        26 => ("JPEG", 90_000, None),
        28 => ("nv", 90_000, None),
        31 => ("H261", 90_000, None),
        32 => ("MPV", 90_000, None),
        33 => ("MP2T", 90_000, None),
        34 => ("H263", 90_000, None),
        _ => return None,
    })
}
