//! All targets: the function that each runs, and its seeds.

use std::sync::Arc;

use rushes::format::{FORMATS, FormatOptions};
use rushes_proto::Ssrc;
use rushes_proto::payload::PayloadFormat;
use rushes_proto::payload::generic::Generic;
use rushes_proto::payload::h264::H264;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::h266::H266;
use rushes_proto::payload::opus::Opus;
use rushes_proto::payload::raw::{Raw, RawVideo, Sampling};
use rushes_proto::payload::texture::Texture;

use crate::{
    agree, delivery, depacketise, dtls, extension, fec, frames, ice, negotiation, packing, parsers,
    participate, rate, read_report, receive, repairs, secure, secure_reports, seeds, texture, whip,
    window,
};

/// A fuzz target. A program of `fuzz_targets` has the same name.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Processes octets in every way that applies; panics if a check fails.
    pub run: fn(&[u8]),
    /// Octets as our own senders make them.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:literal: $run:expr, $seeds:expr;)*) => {
        /// Every target.
        pub const TARGETS: &[Target] =
            &[$(Target { name: $name, run: $run, seeds: $seeds }),*];
    };
}

targets! {
    "access_units": parsers::access_units, seeds::access_units;
    "containers": parsers::containers, seeds::containers;
    "delivery_assembly": frames::assembly, seeds::assembly;
    "delivery_control": delivery::control, seeds::control;
    "delivery_opening": delivery::opening, seeds::openings;
    "delivery_packing": packing::packing, seeds::packing;
    "delivery_plan": frames::plan, seeds::plans;
    "delivery_repair": repairs::repair, seeds::repairs;
    "delivery_sealed": delivery::sealed, seeds::sealed;
    "delivery_window": window::send, seeds::credits;
    "demux": dtls::read, dtls::texts;
    "dtls": dtls::shake_hands, dtls::seeds;
    "extension": extension, seeds::extensions;
    "fec": fec::decode, seeds::rtp;
    "ice": ice::handle, ice::seeds;
    "media_files": parsers::media_files, seeds::media_files;
    "nal_units": parsers::nal_units, seeds::nal_units;
    "negotiation": negotiation::negotiate, negotiation::descriptions;
    "ogg_opus": parsers::ogg_opus, seeds::ogg_opus;
    "payload_formats": formats, seeds::formats;
    "payload_generic": |octets| depacketise(&Generic::default(), octets),
        || seeds::payloads(&Generic::default());
    "payload_h264": |octets| depacketise(&H264::default(), octets),
        || seeds::payloads(&H264::default());
    "payload_h265": |octets| depacketise(&H265::default(), octets),
        || seeds::payloads(&H265::default());
    "payload_h265_numbered": parsers::numbered, seeds::numbered;
    "payload_h266": |octets| depacketise(&H266::default(), octets),
        || seeds::payloads(&H266::default());
    "payload_opus": |octets| depacketise(&Opus::default(), octets),
        || seeds::payloads(&Opus::default());
    "payload_raw": |octets| depacketise(&raw(), octets), || seeds::payloads(&raw());
    "payload_texture": |octets| depacketise(&TEXTURE, octets), || seeds::payloads(&TEXTURE);
    "picture_order": parsers::picture_order, seeds::picture_order;
    "rate": rate::control, seeds::rates;
    "rtcp": |octets| { read_report(octets); participate(Ssrc(0x0102_0304), octets); },
        seeds::reports;
    "rtp_header_round_trip": parsers::rtp_header, seeds::rtp;
    "rtp_packet": parsers::rtp_packet, seeds::rtp;
    "sdp": parsers::sdp, seeds::descriptions;
    "srtcp": secure_reports, || seeds::secured(&seeds::reports());
    "srtp": secure, || seeds::secured(&seeds::rtp());
    "stream": |octets| receive(Arc::new(H265::default()), octets), seeds::streams;
    "texture_decoder": texture::decode, texture::frames;
    "texture_files": texture::files, texture::seeds;
    "whip_fields": whip::fields, whip::seeds;
    "zrtp_message": parsers::zrtp_message, seeds::zrtp_messages;
    "zrtp_session": agree, seeds::agreements;
}

/// Gives payloads to the depacketiser of the format that the first octet selects from the table.
fn formats(octets: &[u8]) {
    let Some((first, octets)) = octets.split_first() else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    depacketise(&*(format.payload)(&FormatOptions::default()), octets);
}

/// Returns uncompressed video that takes several packets.
fn raw() -> Raw {
    Raw::new(RawVideo::new(Sampling::YCbCr422, 10, 48, 8).unwrap_or(RawVideo::PIXEL))
}

const TEXTURE: Texture = Texture { payload: 64 };

/// Returns the frames that seeds are made from: the name of a file in `vectors/media`, or none.
pub(crate) fn media_of(format: &dyn PayloadFormat) -> Option<&'static str> {
    Some(match format.name() {
        "H264" => "avc_cif_60f_baseline.264",
        "H265" => "hevc_192x128_90f_tiny_nals.265",
        "H266" => "vvc_192x128_64f_vvenc_tiny_nals.266",
        "opus" => "opus_speech_mono_mixed_durations.opus",
        "VP8" => "vp8_320x180_60f_libvpx.ivf",
        "VP9" => "vp9_320x180_60f_libvpx.ivf",
        "AV1" => "av1_320x180_60f_libaom.obu",
        _ => return None,
    })
}

/// Runs the target of this name.
///
/// # Panics
/// If there is no such target, or if a check fails.
pub fn run(name: &str, octets: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("the target is in the table").run)(octets);
}
