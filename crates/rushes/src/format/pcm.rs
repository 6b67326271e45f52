//! Audio as samples: L16 and PCMU and PCMA (RFC 3551), L24 (RFC 3190), in WAV files.

use std::sync::Arc;

use rushes_proto::payload::pcm::{Pcm, Sample};
use rushes_proto::sdp::{self, Unsupported};
use rushes_proto::{ClockRate, PayloadType};

use super::file::{Sampling, wav};
use super::pcm_evidence::{companded, linear};
use super::{FileKind, FormatOptions, MediaFormat, blocks};

/// What the four formats have in common.
const SAMPLES: MediaFormat = MediaFormat {
    media: "audio",
    channels: Some(2),
    clock_rate: ClockRate::OPUS,
    accept,
    ffmpeg: Some("wav"),
    ..MediaFormat::UNKNOWN
};

/// What PCMU and PCMA have in common.
const SPEECH: MediaFormat =
    MediaFormat { channels: None, clock_rate: ClockRate::new(8000).unwrap(), ..SAMPLES };

pub(super) static L16: MediaFormat = MediaFormat {
    name: "l16",
    title: "L16",
    encoding: Some(Sample::L16.name()),
    sample: Some(Sample::L16),
    payload_type: PayloadType::new(102).unwrap(),
    payload: |options| Arc::new(with_options(&L16, Sample::L16, options)),
    files: FileKind {
        reader: |path, options| wav::reader(path, Sample::L16, options),
        writer: |_| wav::writer(Sample::L16, sampling(&L16)),
        is_of: |head| wav::sample_of(head) == Some(Sample::L16),
        ..blocks::files(&["wav"])
    },
    evidence: |packets| linear(Sample::L16, packets),
    ..SAMPLES
};

pub(super) static L24: MediaFormat = MediaFormat {
    name: "l24",
    title: "L24",
    encoding: Some(Sample::L24.name()),
    sample: Some(Sample::L24),
    payload_type: PayloadType::new(103).unwrap(),
    payload: |options| Arc::new(with_options(&L24, Sample::L24, options)),
    files: FileKind {
        reader: |path, options| wav::reader(path, Sample::L24, options),
        writer: |_| wav::writer(Sample::L24, sampling(&L24)),
        is_of: |head| wav::sample_of(head) == Some(Sample::L24),
        ..blocks::files(&["wav"])
    },
    evidence: |packets| linear(Sample::L24, packets),
    ..SAMPLES
};

pub(super) static PCMU: MediaFormat = MediaFormat {
    name: "pcmu",
    title: "PCMU",
    encoding: Some(Sample::Pcmu.name()),
    sample: Some(Sample::Pcmu),
    payload_type: PayloadType::new(0).unwrap(),
    payload: |options| Arc::new(with_options(&PCMU, Sample::Pcmu, options)),
    files: FileKind {
        reader: |path, options| wav::reader(path, Sample::Pcmu, options),
        writer: |_| wav::writer(Sample::Pcmu, sampling(&PCMU)),
        is_of: |head| wav::sample_of(head) == Some(Sample::Pcmu),
        ..blocks::files(&["wav"])
    },
    evidence: |packets| companded(Sample::Pcmu, packets),
    ..SPEECH
};

pub(super) static PCMA: MediaFormat = MediaFormat {
    name: "pcma",
    title: "PCMA",
    encoding: Some(Sample::Pcma.name()),
    sample: Some(Sample::Pcma),
    payload_type: PayloadType::new(8).unwrap(),
    payload: |options| Arc::new(with_options(&PCMA, Sample::Pcma, options)),
    files: FileKind {
        reader: |path, options| wav::reader(path, Sample::Pcma, options),
        writer: |_| wav::writer(Sample::Pcma, sampling(&PCMA)),
        is_of: |head| wav::sample_of(head) == Some(Sample::Pcma),
        ..blocks::files(&["wav"])
    },
    evidence: |packets| companded(Sample::Pcma, packets),
    ..SPEECH
};

/// Returns the rate and the channels that a format has by default.
fn sampling(format: &MediaFormat) -> Sampling {
    Sampling { rate: format.clock_rate, channels: format.channels.unwrap_or(1) }
}

/// Returns the payload format of `format`, whose samples are of `sample`.
pub(super) fn with_options(format: &MediaFormat, sample: Sample, options: &FormatOptions) -> Pcm {
    let Sampling { rate, channels } = sampling(format);
    let rate = options.clock_rate.unwrap_or(rate);
    let channels = options.channels.unwrap_or(channels);
    Pcm { packet_time: options.packet_time, ..Pcm::new(sample, rate, channels) }
}

/// Accepts any rate, and any number of channels but none.
fn accept(format: &sdp::Format, _: &mut FormatOptions) -> Result<(), Unsupported> {
    match format.channels {
        Some(channels @ 0) => Err(Unsupported::Channels { encoding: "audio", channels }),
        _ => Ok(()),
    }
}
