//! The codec of a stream: given by the user, described, implied by its payload type, or guessed.

use std::collections::HashMap;
use std::sync::Arc;

use rushes::file::Sampling;
use rushes::format::FormatOptions;
use rushes::payload::PayloadFormat;
use rushes::payload::raw::RawVideo;
use rushes::proto::payload::nal::NalCodec;
use rushes::sdp::{self, Description, SdpError, Warning};
use rushes::{ClockRate, Codec, Ssrc};

use super::unknown::Appearance;

/// Octets before each NAL unit that a receiver delivers.
pub(crate) const PREFIX_LEN: usize = 4;

/// The origin of a stream's codec.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Known {
    /// The command line gives it.
    CommandLine,
    /// A session description gives it.
    Described,
    /// The payload type has a fixed meaning (RFC 3551).
    Static,
    /// The payloads look like the codec, and the payload type is the default of Rushes for it.
    Default,
    /// The payloads look like the codec.
    Guessed,
    /// The codec is unknown.
    Unknown,
}

impl Known {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "from the command line",
            Self::Described => "from the SDP",
            Self::Static => "by RFC 3551",
            Self::Default => "by default",
            Self::Guessed => "a guess from the payloads",
            Self::Unknown => "unknown",
        }
    }
}

/// The encoding of a payload type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoding {
    pub(crate) name: String,
    /// The codec, if the library supports its format; other formats are tracked packet by packet.
    pub(crate) codec: Option<Codec>,
    pub(crate) clock_rate: ClockRate,
    /// Options of the payload format.
    options: FormatOptions,
    pub(crate) known: Known,
    /// Visible properties of the packets, if the codec is unknown.
    pub(crate) appearance: Option<Appearance>,
}

impl Encoding {
    pub(crate) fn of(codec: Codec, known: Known) -> Self {
        let options = FormatOptions::default();
        let (name, clock_rate) = (codec.title.to_owned(), codec.clock_rate);
        Self { name, codec: Some(codec), clock_rate, options, known, appearance: None }
    }

    /// Creates an encoding that the library does not support, by its name.
    pub(super) fn other(name: &str, clock_rate: ClockRate, known: Known) -> Self {
        let options = FormatOptions::default();
        Self { name: name.to_owned(), codec: None, clock_rate, options, known, appearance: None }
    }

    /// Returns the encoding of a static payload type (RFC 3551 section 6).
    fn of_static(payload_type: u8) -> Option<Self> {
        let (name, hertz, channels) = sdp::static_format(payload_type)?;
        let clock_rate = ClockRate::new(hertz)?;
        let other = Self::other(name, clock_rate, Known::Static);
        let codec = Codec::of_encoding(name).filter(|codec| codec.sample.is_some());
        Some(Self { codec, ..other }.with_channels(channels.or(Some(1))))
    }

    /// Sets the channels of samples.
    pub(super) fn with_channels(mut self, channels: Option<u8>) -> Self {
        self.options.channels = channels;
        self
    }

    /// Returns how samples are sampled.
    pub(crate) fn sampling(&self) -> Option<Sampling> {
        let codec = self.codec.filter(|codec| codec.sample.is_some())?;
        let channels = self.options.channels.or(codec.channels).unwrap_or(1);
        Some(Sampling { rate: self.clock_rate, channels })
    }

    /// Creates an unknown encoding with the visible properties of its packets.
    pub(super) fn unknown(appearance: Appearance) -> Self {
        let other = Self::other("unknown", ClockRate::VIDEO, Known::Unknown);
        Self { appearance: Some(appearance), ..other }
    }

    pub(crate) fn nal_codec(&self) -> Option<NalCodec> {
        self.codec?.nal
    }

    /// Returns the size, sampling and depth of uncompressed video, if it was described.
    pub(crate) fn raw_video(&self) -> Option<RawVideo> {
        self.options.raw.as_ref().map(|raw| raw.video)
    }

    /// Returns the payload format that reads the encoding.
    pub(crate) fn format(&self) -> Arc<dyn PayloadFormat> {
        let mut options = self.options.clone();
        options.clock_rate = Some(self.clock_rate);
        // Only a description says the size of uncompressed video. Without one, frames are counted by
        // their marker bits, and their octets are not put in place.
        let codec = self.codec.filter(|codec| (codec.check)(&options).is_ok());
        (codec.unwrap_or(Codec::Generic).payload)(&options)
    }
}

/// The encodings given by the command line and the description.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encodings {
    pub(crate) by_source: HashMap<Ssrc, Codec>,
    pub(crate) by_type: HashMap<u8, Encoding>,
    /// The codec of sources and payload types that are not listed.
    pub(crate) others: Option<Codec>,
}

impl Encodings {
    /// Returns the encoding of `payload_type` from `ssrc`, if it is known before any payload is
    /// examined.
    pub(crate) fn given(&self, ssrc: Ssrc, payload_type: u8) -> Option<Encoding> {
        let chosen = |codec: &Codec| Encoding::of(*codec, Known::CommandLine);
        let source = self.by_source.get(&ssrc).map(chosen);
        let listed = || self.by_type.get(&payload_type).cloned();
        let other = || self.others.as_ref().map(chosen);
        source.or_else(listed).or_else(other).or_else(|| Encoding::of_static(payload_type))
    }
}

/// Returns the encodings in a session description, and warnings about its unusable lines.
///
/// # Errors
/// If no part of the description can be used.
pub(crate) fn codecs_from_sdp(
    description: &[u8],
) -> Result<(HashMap<u8, Encoding>, Vec<Warning>), SdpError> {
    let (description, warnings) = Description::parse_with_warnings(description)?;
    let formats = description.media.iter().flat_map(|media| &media.formats);
    let encodings = formats.map(|format| {
        let codec = sdp::codec_of(format);
        let name = codec.map_or_else(|| format.encoding.name(), |codec| codec.title).to_owned();
        let mut options = FormatOptions::default();
        options.channels = format.channels.or(Some(1));
        if let sdp::Encoding::Other { parameters, .. } = &format.encoding {
            options.parameters.clone_from(parameters);
        }
        if let Some(codec) = codec {
            // Streams that the library cannot receive in this form are inspected nevertheless.
            let _ = (codec.accept)(format, &mut options);
        }
        let (clock_rate, known) = (format.clock_rate, Known::Described);
        let encoding = Encoding { name, codec, clock_rate, options, known, appearance: None };
        (format.payload_type.value(), encoding)
    });
    Ok((encodings.collect(), warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_encodings_and_clock_rates() {
        let sdp = "v=0\r\no=- 0 0 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n\
                   m=video 5004 RTP/AVP 96 97\r\na=rtpmap:96 h265/90000\r\n\
                   a=fmtp:96 sprop-max-don-diff=2\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n\
                   m=audio 5006 RTP/AVP 100 0 72\r\na=rtpmap:100 opus/48000/2\r\n";
        let (encodings, warnings) = codecs_from_sdp(sdp.as_bytes()).unwrap();
        assert_eq!(warnings.iter().map(|warning| warning.line).collect::<Vec<_>>(), [10]);
        assert_eq!(
            (encodings[&96].codec, encodings[&96].options.max_don_diff),
            (Some(Codec::H265), 2)
        );
        assert_eq!((encodings[&97].codec, &*encodings[&97].name), (None, "rtx"));
        assert_eq!(encodings[&100].clock_rate, ClockRate::OPUS);
        assert!(codecs_from_sdp(b"not a description").is_err());
    }

    #[test]
    fn the_size_of_uncompressed_video_is_that_of_its_description() {
        let text = "v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=x\r\nt=0 0\r\nc=IN IP4 192.0.2.9\r\n\
                    m=video 5004 RTP/AVP 107\r\na=rtpmap:107 raw/90000\r\n\
                    a=fmtp:107 sampling=RGB; width=4; height=2; depth=8\r\n";
        let (encodings, _) = codecs_from_sdp(text.as_bytes()).unwrap();
        let encoding = &encodings[&107];
        assert_eq!(encoding.raw_video().map(|video| (video.width(), video.height())), Some((4, 2)));
        assert_eq!(encoding.format().placement().map(|placement| placement.frame_len), Some(24));
        // Without a description the size is not known.
        let guessed = Encoding::of(Codec::Uncompressed, Known::Guessed);
        assert!(guessed.raw_video().is_none() && guessed.format().placement().is_none());
    }
}
