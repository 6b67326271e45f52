//! The command line of `rushes inspect`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rushes::{Codec, PayloadType, Ssrc};

use crate::args::{VerboseArgs, codec_names};
use crate::overwrite::OverwriteArgs;
use crate::values::{parse_duration, parse_payload_type};

#[derive(Args, Debug)]
#[command(after_help = "\
Every RTP stream of the capture goes through the receiver of the library, at the times of the
capture: the report shows what a program would have received. pcap and pcapng are read, over
Ethernet, raw IP, BSD loopback and Linux cooked captures; IP fragments are put together.

The codec of a stream is taken from --codec SSRC=CODEC, --payload-type, --sdp or --codec. Otherwise
it is guessed if its packets show enough signs of one: headers of NAL units that continue each
other, durations of Opus that agree with the timestamps, telephone events that grow. Otherwise it is
unknown, and the report describes its packets; type 99, which `rushes send` uses by default for raw
frames, is taken as raw frames.

An extracted file appears when it is finished. Of a lossy or damaged capture it has the complete
units. The exit code is 0 if there was a stream, 1 if not, or if the capture is damaged or cut.

Examples:
  rushes inspect call.pcapng
  rushes inspect call.pcap --sdp call.sdp --json
  rushes inspect call.pcap --payload-type 102=h264 --payload-type 109=opus
  rushes inspect call.pcap --codec 1f2e3d4c=h264
  rushes inspect call.pcap --extract 0x1f2e3d4c -o film.265")]
pub(crate) struct InspectArgs {
    /// Capture to read
    #[arg(value_name = "FILE.pcap")]
    pub(super) file: PathBuf,
    /// Codec of all streams without a more specific option, or of one SSRC, for example
    /// 1f2e3d4c=h264; may be repeated
    #[arg(long, value_parser = parse_choice, value_name = "[SSRC=]CODEC", help_heading = "Stream")]
    pub(super) codec: Vec<CodecChoice>,
    /// Codec of a payload type, for example 102=h264; may be repeated
    #[arg(long, value_parser = parse_mapping, value_name = "TYPE=CODEC", help_heading = "Stream")]
    pub(super) payload_type: Vec<(PayloadType, Codec)>,
    /// Session description (SDP) that names the codecs
    #[arg(long, value_name = "FILE", help_heading = "Stream")]
    pub(super) sdp: Option<PathBuf>,
    /// Maximum wait for a missing packet
    #[arg(long, value_parser = parse_duration, default_value = "50ms", value_name = "TIME",
        help_heading = "Stream")]
    pub(super) reorder_time: Duration,
    /// Extract the stream of this SSRC: hexadecimal as printed or with 0x, or decimal
    #[arg(long, value_name = "SSRC", requires = "output_file", help_heading = "Output")]
    pub(super) extract: Option<String>,
    /// File for the extracted stream: Annex B, Ogg Opus, or concatenated frames
    #[arg(long, short, value_name = "FILE", requires = "extract", help_heading = "Output")]
    pub(super) output_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overwrite: OverwriteArgs,
    /// Print one JSON object instead of the report
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
    /// Print nothing but errors
    #[arg(long, short, help_heading = "Output", conflicts_with = "json")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) verbose: VerboseArgs,
}

/// A parsed value of `--codec`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct CodecChoice {
    /// The SSRC as written, if one was given.
    pub(super) source: Option<String>,
    pub(super) codec: Codec,
}

fn parse_choice(text: &str) -> Result<CodecChoice, String> {
    let (source, codec) = match text.split_once('=') {
        Some((source, codec)) => (Some(source), codec),
        None => (None, text),
    };
    if let Some(source) = source.filter(|source| ssrcs(source).is_empty()) {
        return Err(format!("{source:?} is not an SSRC of 32 bits"));
    }
    Ok(CodecChoice { source: source.map(str::to_owned), codec: parse_codec(codec)? })
}

fn parse_codec(text: &str) -> Result<Codec, String> {
    Codec::named(text).ok_or_else(|| format!("{text:?} is not one of {}", codec_names().join(", ")))
}

fn parse_mapping(text: &str) -> Result<(PayloadType, Codec), String> {
    let (payload_type, codec) =
        text.split_once('=').ok_or_else(|| format!("{text:?} is not TYPE=CODEC"))?;
    Ok((parse_payload_type(payload_type)?, parse_codec(codec)?))
}

/// Returns the SSRCs that a text may mean: hexadecimal as in reports, and also decimal if it has
/// only decimal digits.
pub(super) fn ssrcs(text: &str) -> Vec<Ssrc> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let mut found = Vec::new();
    let digits = hexadecimal.unwrap_or(text);
    if (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        found.extend(u32::from_str_radix(digits, 16).map(Ssrc));
    }
    if hexadecimal.is_none() && text.bytes().all(|digit| digit.is_ascii_digit()) {
        found.extend(text.parse().map(Ssrc));
    }
    // Reports print eight hexadecimal digits; fewer are more likely decimal.
    if digits.len() != 8 {
        found.reverse();
    }
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ssrc_is_read_as_it_is_printed_and_as_it_is_written() {
        assert_eq!(ssrcs("1f2e3d4c"), [Ssrc(0x1f2e_3d4c)]);
        assert_eq!(ssrcs("0x1F"), [Ssrc(0x1f)]);
        assert_eq!(ssrcs("12345678"), [Ssrc(0x1234_5678), Ssrc(12_345_678)]);
        assert_eq!(ssrcs("77"), [Ssrc(77), Ssrc(0x77)]);
        assert_eq!(ssrcs("4294967295"), [Ssrc(u32::MAX)]);
        for text in ["", "0x", "4294967296", "xyz", "123456789a", "+1", "-1"] {
            assert_eq!(ssrcs(text), [], "{text}");
        }
    }

    #[test]
    fn a_codec_is_that_of_all_streams_or_of_one() {
        let all = CodecChoice { source: None, codec: Codec::Opus };
        assert_eq!(parse_choice("opus"), Ok(all));
        let one = CodecChoice { source: Some("0x1f".to_owned()), codec: Codec::H264 };
        assert_eq!(parse_choice("0x1f=h264"), Ok(one));
        for text in ["", "=h264", "xyz=h264", "1f=", "1f=mp3", "mp3"] {
            assert!(parse_choice(text).is_err(), "{text}");
        }
    }

    #[test]
    fn payload_types_are_mapped_to_codecs() {
        let mapping = parse_mapping("102=h264").unwrap();
        assert_eq!((mapping.0.value(), mapping.1), (102, Codec::H264));
        for text in ["102", "102=x", "200=h264", "=h264"] {
            assert!(parse_mapping(text).is_err(), "{text}");
        }
    }
}
