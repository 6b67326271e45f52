//! A stream's codec from its payloads, where nobody says what it is.

use std::time::Instant;

use rushes::payload::FrameSettings;
use rushes::payload::opus::packet_duration;
use rushes::proto::payload::nal::{NalCodec, NalHeader};
use rushes::proto::rtp::Packet;
use rushes::proto::stream::{Receiver, ReceiverConfig};
use rushes::{ClockRate, Codec, Delivery, Discard, PayloadType};

use super::codec::{Encoding, Known, PREFIX_LEN};
use super::names::nal_codec;

/// The share of good signs above which a payload type keeps its default meaning.
const PLAUSIBLE: f64 = 0.5;

/// The share of good signs that makes a guess.
const CONVINCING: f64 = 0.9;

/// Good signs that a guess needs.
const EVIDENCE: u64 = 3;

/// Ticks in the shortest Opus frame, 2.5 ms.
const OPUS_TICKS: i32 = 120;

/// What the first packets of a stream are, which are of `payload_type`: what that means by
/// default, unless the payloads contradict.
pub(crate) fn guess(payload_type: u8, datagrams: &[&[u8]]) -> Encoding {
    let default = [Codec::H264, Codec::H265, Codec::H266, Codec::Opus, Codec::Generic]
        .into_iter()
        .find(|codec| codec.payload_type().value() == payload_type);
    let score = |codec| score(codec, payload_type, datagrams);
    if let Some(default) = default.filter(|default| *default != Codec::Generic)
        && score(default).is_none_or(|score| score.share() >= PLAUSIBLE)
    {
        return Encoding::of(default, Known::Default);
    }
    let best = [Codec::H264, Codec::H265, Codec::H266, Codec::Opus]
        .into_iter()
        .filter_map(|codec| Some((codec, score(codec)?)))
        .filter(|(_, score)| score.share() >= CONVINCING && score.good >= EVIDENCE)
        .max_by(|(_, a), (_, b)| a.share().total_cmp(&b.share()));
    match (best, default) {
        (Some((codec, _)), _) => Encoding::of(codec, Known::Guessed),
        (None, Some(Codec::Generic)) => Encoding::of(Codec::Generic, Known::Default),
        _ => Encoding::unknown(),
    }
}

/// Signs for and against a codec.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    good: u64,
    bad: u64,
}

impl Score {
    fn share(&self) -> f64 {
        self.good as f64 / (self.good + self.bad).max(1) as f64
    }
}

/// How well `datagrams` read as `codec`; `None` if they say nothing either way.
fn score(codec: Codec, payload_type: u8, datagrams: &[&[u8]]) -> Option<Score> {
    let score = match nal_codec(codec) {
        Some(nal) => score_units(codec, nal, payload_type, datagrams)?,
        None => score_opus(payload_type, datagrams),
    };
    (score.good + score.bad > 0).then_some(score)
}

/// Runs the receiver and looks at the units that come out.
fn score_units(
    codec: Codec,
    nal: NalCodec,
    payload_type: u8,
    datagrams: &[&[u8]],
) -> Option<Score> {
    let payload_type = PayloadType::new(payload_type)?;
    let mut config = ReceiverConfig::new(payload_type, ClockRate::VIDEO);
    config.probation = 1;
    config.frame = FrameSettings { delivery: Delivery::Unit, ..FrameSettings::default() };
    let mut receiver = Receiver::new(Encoding::of(codec, Known::Guessed).format(), config).ok()?;
    let now = Instant::now();
    let mut score = Score::default();
    let mut discarded = 0;
    for datagram in datagrams {
        receiver.handle_datagram(now, datagram);
        let mut units = 0;
        while let Some(unit) = receiver.poll_frame() {
            let header = unit.get(PREFIX_LEN..).and_then(|unit| nal.header(unit));
            let plausible = header.is_some_and(|header| is_plausible(nal, header));
            *(if plausible { &mut score.good } else { &mut score.bad }) += 1;
            units += 1;
        }
        let discards = receiver.statistics().discards;
        let before = std::mem::replace(&mut discarded, discards.total());
        // A fragment that came in order and broke no rule.
        score.good += u64::from(units == 0 && discarded == before);
    }
    let discards = receiver.statistics().discards;
    score.bad += discards.get(Discard::Payload) + discards.get(Discard::OutsideMode);
    Some(score)
}

/// Whether an encoder would write such a header: types that are in use, with the values of other
/// fields that the standards ask for. Headers of another codec or of noise seldom pass.
fn is_plausible(codec: NalCodec, header: NalHeader) -> bool {
    if header.forbidden_zero_bit {
        return false;
    }
    let single_layer = header.layer_id == 0 && header.temporal_id_plus1 > 0;
    let lowest = header.temporal_id_plus1 == 1;
    match codec {
        // H.264 section 7.4.1: `nal_ref_idc` is zero for 6 and 9 to 12, and not zero for 5, 7, 8.
        NalCodec::H264 => match header.nal_type {
            1 => true,
            5 | 7 | 8 | 13..=15 | 20 => header.ref_idc > 0,
            6 | 9..=12 => header.ref_idc == 0,
            _ => false,
        },
        NalCodec::H265 => match header.nal_type {
            0..=9 | 34..=40 => single_layer,
            16..=21 | 32 | 33 => single_layer && lowest,
            _ => false,
        },
        NalCodec::H266 => match header.nal_type {
            0..=3 | 10 | 16..=20 | 23..=25 => single_layer,
            7..=9 | 12..=15 | 21 | 22 => single_layer && lowest,
            _ => false,
        },
    }
}

/// Timestamps of Opus step by just the time that each packet lasts.
fn score_opus(payload_type: u8, datagrams: &[&[u8]]) -> Score {
    let mut score = Score::default();
    let mut last = None;
    let packets = datagrams.iter().filter_map(|datagram| Packet::parse(datagram).ok());
    for packet in packets.filter(|packet| packet.payload_type() == payload_type) {
        let Ok(ticks) = packet_duration(packet.payload()) else {
            score.bad += 1;
            last = None;
            continue;
        };
        if let Some((sequence, expected)) = last
            && packet.sequence() == sequence
        {
            match packet.timestamp().distance(expected) {
                0 => score.good += 1,
                // Silence is left out (RFC 7587 section 3.1.3), by whole frames.
                gap if gap > 0 && gap % OPUS_TICKS == 0 => {}
                _ => score.bad += 1,
            }
        }
        last = Some((packet.sequence().plus(1), packet.timestamp().plus(ticks)));
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_codec_are_not_plausible_in_another() {
        let plausible = |codec: NalCodec, unit: &[u8]| {
            codec.header(unit).is_some_and(|header| is_plausible(codec, header))
        };
        let avc: [&[u8]; 6] =
            [&[0x67, 0x64], &[0x68, 0xeb], &[0x65, 0x88], &[0x41, 0x9a], &[0x06, 5], &[0x09, 0xf0]];
        let hevc: [&[u8]; 6] =
            [&[0x40, 1], &[0x42, 1], &[0x44, 1], &[0x26, 1], &[0x02, 1], &[0x4e, 1]];
        let vvc: [&[u8]; 5] = [&[0, 0x79], &[0, 0x81], &[0, 0x41], &[0, 0x01], &[0, 0xa1]];
        let share = |codec: NalCodec, units: &[&[u8]]| {
            units.iter().filter(|unit| plausible(codec, unit)).count() as f64 / units.len() as f64
        };
        let table = [(NalCodec::H264, &avc[..]), (NalCodec::H265, &hevc), (NalCodec::H266, &vvc)];
        for (own, units) in table {
            for (codec, _) in table {
                let share = share(codec, units);
                assert!(if codec == own { share > 0.99 } else { share < 0.5 }, "{own:?} {codec:?}");
            }
        }
    }
}
