//! The visible properties of a stream whose codec is unknown.

use rushes::format::follows;
use rushes::proto::rtp::Packet;
use serde::Serialize;

use crate::report::counted;

/// Minimum number of packets to distinguish noise from headers.
const NOISE_PACKETS: usize = 32;

/// Maximum deviation of a bit's count from half of the packets, in standard deviations of fair coin
/// tosses. In 32 packets, a constant bit deviates by 5.7.
const DEVIATIONS: f64 = 5.0;

/// Minimum share of packets that must fit a pattern of markers.
const AGREEING_MIN: f64 = 0.95;

/// The properties of a stream's first packets that are visible without the codec.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Appearance {
    packets: usize,
    octets_least: usize,
    octets_median: usize,
    octets_most: usize,
    markers: Markers,
    /// Whether the payloads begin like noise, so that they may be encrypted.
    random: bool,
}

/// Which packets have the marker bit.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Markers {
    None,
    All,
    /// The last packet of each timestamp.
    LastOfTimestamp,
    Some(usize),
}

impl Appearance {
    pub(super) fn new(packets: &[Packet<'_>]) -> Self {
        let mut octets: Vec<usize> = packets.iter().map(|packet| packet.payload().len()).collect();
        octets.sort_unstable();
        let at = |place: usize| octets.get(place).copied().unwrap_or_default();
        Self {
            packets: packets.len(),
            octets_least: at(0),
            octets_median: at(octets.len() / 2),
            octets_most: at(octets.len().saturating_sub(1)),
            markers: Markers::of(packets),
            random: is_random(packets),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { octets_least, octets_median, octets_most, .. } = self;
        let encrypted = if self.random { ", perhaps encrypted" } else { "" };
        let octets = if octets_least == octets_most {
            counted(*octets_least as u64, "octet")
        } else {
            format!("{octets_least} to {octets_most} octets (median {octets_median})")
        };
        let markers = match self.markers {
            Markers::None => "no marker".to_owned(),
            Markers::All => "a marker on each".to_owned(),
            Markers::LastOfTimestamp => "a marker on the last of each timestamp".to_owned(),
            Markers::Some(marked) => {
                format!("{} in {} packets", counted(marked as u64, "marker"), self.packets)
            }
        };
        format!("unknown{encrypted}, {octets} a packet, {markers}")
    }
}

impl Markers {
    fn of(packets: &[Packet<'_>]) -> Self {
        let marked = packets.iter().filter(|packet| packet.marker()).count();
        let pairs = packets.windows(2).filter(|pair| follows(&pair[1], &pair[0]));
        let (pairs, agreeing) = pairs.fold((0, 0), |(pairs, agreeing), pair| {
            let is_last = pair[0].timestamp() != pair[1].timestamp();
            (pairs + 1, agreeing + usize::from(pair[0].marker() == is_last))
        });
        match marked {
            0 => Self::None,
            _ if marked == packets.len() => Self::All,
            _ if pairs > 0 && agreeing as f64 >= AGREEING_MIN * f64::from(pairs) => {
                Self::LastOfTimestamp
            }
            _ => Self::Some(marked),
        }
    }
}

/// Returns whether the payloads begin like noise. Each of the first 32 bits must be set in about
/// half of the packets, unlike in a codec's header, and must differ in about half of them from the
/// bit two octets later, unlike in uncompressed samples.
fn is_random(packets: &[Packet<'_>]) -> bool {
    let heads = packets.iter().filter_map(|packet| packet.payload().first_chunk());
    let heads: Vec<u32> = heads.map(|head| u32::from_be_bytes(*head)).collect();
    let expected = heads.len() as f64 / 2.0;
    let far = DEVIATIONS * (heads.len() as f64).sqrt() / 2.0;
    let is_even = |word: &dyn Fn(u32) -> u32, bit: u32| {
        let set = heads.iter().filter(|head| word(**head) >> bit & 1 == 1).count();
        (set as f64 - expected).abs() < far
    };
    let is_balanced = |bit| is_even(&|head| head, bit) && is_even(&|head| head ^ head << 16, bit);
    heads.len() >= NOISE_PACKETS && (0..u32::BITS).all(is_balanced)
}
