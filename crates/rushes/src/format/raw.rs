//! Uncompressed video (RFC 4175), in Y4M files or as frames one after the other.

use std::sync::Arc;

use rushes_proto::PayloadType;
use rushes_proto::payload::raw::{Lines, Raw, RawVideo, Segment};
use rushes_proto::rtp::Packet;
use rushes_proto::sdp::Unsupported;

use super::file::{FrameWriter, y4m};
use super::raw_parameters::{ENCODING, RawParameters};
use super::{Evidence, FileKind, FormatOptions, MediaFormat, blocks, follows};

pub(super) static FORMAT: MediaFormat = MediaFormat {
    name: "uncompressed",
    title: "uncompressed video",
    encoding: Some(ENCODING),
    payload_type: PayloadType::new(107).unwrap(),
    payload: |options| {
        let clock_rate = options.clock_rate.unwrap_or(FORMAT.clock_rate);
        Arc::new(Raw { video: video(options), clock_rate })
    },
    parameters: |options, rate| {
        let raw = options.raw.as_ref();
        raw.map_or_else(String::new, |raw| raw.write(raw.frame_rate.or(rate)))
    },
    check: |options| match options.raw {
        Some(_) => Ok(()),
        None => {
            Err("its width, height, sampling and depth must be given (raw_video), or come from a \
                     description")
        }
    },
    accept: |_, options| {
        let parsed = RawParameters::parse(&options.parameters);
        let reason = |reason| Unsupported::Parameter { encoding: ENCODING, reason };
        options.raw = Some(parsed.map_err(reason)?);
        Ok(())
    },
    files: FileKind {
        extensions: &["y4m"],
        reader: y4m::reader,
        writer: |path| -> Box<dyn FrameWriter> {
            match path.extension() {
                Some(extension) if extension.eq_ignore_ascii_case("y4m") => y4m::writer(),
                _ => blocks::writer(path),
            }
        },
        is_of: y4m::is_of,
    },
    evidence,
    ..MediaFormat::UNKNOWN
};

/// Returns the video of the options; one of a single pixel if there is none, which `check` refuses.
fn video(options: &FormatOptions) -> RawVideo {
    options.raw.as_ref().map_or(RawVideo::PIXEL, |raw| raw.video)
}

/// Counts the packets that consist of parts of lines, each behind the one before: the length of a
/// payload is that of its parts, which noise would not state.
fn evidence(packets: &[Packet<'_>]) -> Evidence {
    let mut evidence = Evidence::default();
    for pair in packets.windows(2) {
        let (before, packet) = (&pair[0], &pair[1]);
        if !follows(packet, before) {
            continue;
        }
        let is_plausible = parts(before).zip(parts(packet)).is_some_and(|(earlier, later)| {
            let is_in_order = |pair: &[Segment]| place(pair[0]) < place(pair[1]);
            let is_ended = before.marker() || before.timestamp() != packet.timestamp();
            let (last, first) = (earlier[earlier.len() - 1], later[0]);
            later.windows(2).all(is_in_order) && (is_ended || is_in_order(&[last, first]))
        });
        evidence.count(is_plausible);
    }
    evidence
}

/// Returns the parts of lines in a packet, none of them empty; `None` if the payload is no such
/// packet.
fn parts(packet: &Packet<'_>) -> Option<Vec<Segment>> {
    let lines = Lines::parse(packet.payload()).ok()?;
    let parts: Vec<_> = lines.segments().map(|(segment, _)| segment).collect();
    parts.iter().all(|part| part.len > 0).then_some(parts)
}

fn place(segment: Segment) -> (bool, u16, u16) {
    (segment.is_second_field, segment.line, segment.offset)
}
