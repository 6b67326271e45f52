//! Bitstreams without a container: their codec by the types of their NAL units.

use rushes::Codec;
use rushes::format::is_plausible;
use rushes::payload::nal::{NalCodec, find_start_codes};

use crate::inspect::nal_unit_type;

/// Maximum NAL units that are examined.
const UNITS_MAX: usize = 64;

/// Maximum NAL units that are named in a message.
const UNITS_NAMED: usize = 4;

/// Minimum share of NAL units with plausible headers in a bitstream of the codec.
const SHARE_MIN: f64 = 0.9;

/// The codec that the beginning of a file looks like.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) codec: Codec,
    /// The reason, worded to follow "its" in a sentence.
    pub(super) reason: String,
}

/// Returns the codec that these first octets of a file look like, if it is clear.
pub(super) fn look(octets: &[u8]) -> Option<Look> {
    if octets.starts_with(b"OggS") {
        let reason = "first octets are those of an Ogg file".to_owned();
        return Some(Look { codec: Codec::Opus, reason });
    }
    let ivf = [Codec::Vp8, Codec::Vp9, Codec::Av1];
    if octets.starts_with(b"DKIF") {
        let codec = ivf.into_iter().find(|codec| (codec.files.is_of)(octets))?;
        let reason = "first octets are those of an IVF file".to_owned();
        return Some(Look { codec, reason });
    }
    if is_wav(octets) {
        let samples = [Codec::L16, Codec::L24, Codec::Pcmu, Codec::Pcma];
        let codec = samples.into_iter().find(|codec| (codec.files.is_of)(octets))?;
        let reason = "first octets are those of a WAV file".to_owned();
        return Some(Look { codec, reason });
    }
    let units = units(octets);
    let codecs = [Codec::H264, Codec::H265, Codec::H266];
    let found = codecs.into_iter().find(|codec| codec.nal.is_some_and(|nal| fits(nal, &units)));
    found.map(|codec| Look { codec, reason: reason(codec, &units) })
}

/// Returns whether a file with these first octets is a WAV file.
pub(super) fn is_wav(octets: &[u8]) -> bool {
    let begins = [b"RIFF", b"RF64", b"BW64"].iter().any(|mark| octets.starts_with(*mark));
    begins && octets.get(8..12) == Some(b"WAVE")
}

/// Returns whether, by its NAL units, a file with these first octets may be of `codec`.
pub(super) fn may_be(codec: Codec, octets: &[u8]) -> bool {
    let Some(nal) = codec.nal else { return false };
    let units = units(octets);
    share(nal, &units) >= 0.5 && has_parameter_set(nal, &units)
}

/// Returns the first NAL units of an Annex B bitstream, each with all octets that follow it.
fn units(octets: &[u8]) -> Vec<&[u8]> {
    // A bitstream begins with a start code, perhaps after a zero octet.
    let is_at_start = find_start_codes(octets).next().is_some_and(|at| at <= 1);
    let starts = find_start_codes(octets).filter(|_| is_at_start).take(UNITS_MAX);
    starts.map(|at| &octets[at + 3..]).filter(|unit| unit.len() > 1).collect()
}

fn share(nal: NalCodec, units: &[&[u8]]) -> f64 {
    let is_good = |unit: &&&[u8]| nal.header(unit).is_some_and(|header| is_plausible(nal, header));
    units.iter().filter(is_good).count() as f64 / units.len().max(1) as f64
}

fn has_parameter_set(nal: NalCodec, units: &[&[u8]]) -> bool {
    let is_set = |unit: &&[u8]| {
        let header = nal.header(unit).filter(|header| is_plausible(nal, *header));
        header.is_some_and(|header| nal.is_parameter_set(header.nal_type))
    };
    units.iter().any(is_set)
}

fn fits(nal: NalCodec, units: &[&[u8]]) -> bool {
    share(nal, units) >= SHARE_MIN && has_parameter_set(nal, units)
}

fn reason(codec: Codec, units: &[&[u8]]) -> String {
    let Some(nal) = codec.nal else { return String::new() };
    let types = units.iter().filter_map(|unit| Some(nal.header(unit)?.nal_type));
    let mut names: Vec<String> =
        types.map(|it| format!("{it} ({})", nal_unit_type(nal, it))).collect();
    names.dedup();
    names.truncate(UNITS_NAMED);
    format!("first NAL units have the {} types {}", codec.title, names.join(", "))
}
