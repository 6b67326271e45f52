//! Evidence for audio as samples: every packet has as many sample groups as its timestamp says.

use rushes_proto::payload::pcm::Sample;
use rushes_proto::rtp::Packet;

use super::Codec;
use super::evidence::{Evidence, follows};

/// The most octets of a sample group that are plausible: 64 channels of 24 bits.
const GROUP_LEN_MAX: usize = 192;

/// Samples in the packets of speech: 10, 20, 30 and 40 ms at 8 000 Hz.
const SPEECH_SAMPLES: [u32; 4] = [80, 160, 240, 320];

/// Returns the octets of a sample group, if the payloads have as many for each tick of their
/// timestamps, and in how many packets.
///
/// Streams of other codecs have more or fewer octets in one packet than in another, or fewer than
/// ticks.
fn group_len(packets: &[Packet<'_>]) -> (Option<usize>, Evidence) {
    let (mut group_len, mut evidence) = (None, Evidence::default());
    for pair in packets.windows(2) {
        let (before, packet) = (&pair[0], &pair[1]);
        if !follows(packet, before) {
            continue;
        }
        let ticks = packet.timestamp().0.wrapping_sub(before.timestamp().0) as usize;
        let len = before.payload().len();
        let whole = len.checked_div(ticks).filter(|it| it * ticks == len && *it > 0);
        let found = whole.filter(|it| *it <= GROUP_LEN_MAX);
        let is_same = found.is_some() && found == *group_len.get_or_insert(found);
        evidence.count(is_same);
    }
    (group_len.flatten(), evidence)
}

/// Returns the number of channels of a stream of samples, by its packets; `None` if they do not show it.
pub fn channels_of(codec: Codec, packets: &[Packet<'_>]) -> Option<u8> {
    let channels = group_len(packets).0? / codec.sample?.len();
    u8::try_from(channels).ok().filter(|channels| *channels > 0)
}

/// Counts packets of linear samples: groups of a multiple of three octets are samples of 24 bits,
/// others of 16. (Six channels of 16 bits look like four of 24.)
pub(super) fn linear(sample: Sample, packets: &[Packet<'_>]) -> Evidence {
    let (group_len, evidence) = group_len(packets);
    let of = match group_len {
        Some(len) if len % 3 == 0 => Some(Sample::L24),
        Some(len) if len % 2 == 0 => Some(Sample::L16),
        _ => None,
    };
    if of == Some(sample) { evidence } else { Evidence::default() }
}

/// Counts packets of one octet for each tick, in the usual lengths of speech. The octets near silence
/// tell µ-law from A-law: they are the most frequent in speech.
pub(super) fn companded(sample: Sample, packets: &[Packet<'_>]) -> Evidence {
    let (group_len, evidence) = group_len(packets);
    let is_usual = |packet: &Packet<'_>| {
        SPEECH_SAMPLES.iter().any(|samples| *samples as usize == packet.payload().len())
    };
    if group_len != Some(1) || !packets.iter().all(is_usual) {
        return Evidence::default();
    }
    let near = |silence: u8| {
        let octets = packets.iter().flat_map(Packet::payload);
        octets.filter(|octet| (*octet ^ silence) & 0x7f < 16).count()
    };
    let (mu, a) = (near(Sample::Pcmu.silence()), near(Sample::Pcma.silence()));
    let is_it = if sample == Sample::Pcmu { mu > a } else { a > mu };
    if is_it { evidence } else { Evidence::default() }
}

#[cfg(test)]
mod tests {
    use rushes_proto::rtp::Header;
    use rushes_proto::{PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

    use super::super::guess;
    use super::*;

    /// Returns the guess for packets of these payloads, whose timestamps are `ticks` apart.
    fn guessed(payloads: &[Vec<u8>], ticks: u32) -> Option<Codec> {
        let payload_type = PayloadType::new(120).unwrap();
        let datagrams: Vec<Vec<u8>> = (0_u16..)
            .zip(payloads)
            .map(|(n, payload)| {
                let timestamp = RtpTimestamp(u32::MAX - 100).plus(u32::from(n) * ticks);
                let header = Header::new(payload_type, SequenceNumber(n), timestamp, Ssrc(1));
                let mut octets = vec![0; header.written_len()];
                header.write(&mut octets).unwrap();
                [&octets, &payload[..]].concat()
            })
            .collect();
        let packets: Vec<_> = datagrams.iter().map(|it| Packet::parse(it).unwrap()).collect();
        guess(&packets)
    }

    fn payloads(len: usize) -> Vec<Vec<u8>> {
        (0_u8..8).map(|n| (0..len).map(|at| n.wrapping_mul(37) ^ at as u8).collect()).collect()
    }

    #[test]
    fn octets_for_each_tick_tell_the_size_of_samples() {
        assert_eq!(guessed(&payloads(48 * 4), 48), Some(Codec::L16));
        assert_eq!(guessed(&payloads(48 * 2), 48), Some(Codec::L16));
        assert_eq!(guessed(&payloads(48 * 6), 48), Some(Codec::L24));
        assert_eq!(guessed(&payloads(6 * 192), 6), Some(Codec::L24));
        assert_eq!(guessed(&payloads(100), 48), None);
        assert_eq!(guessed(&payloads(48 * 5), 48), None);
        let mut uneven = payloads(192);
        uneven[3].truncate(190);
        uneven[6].truncate(96);
        assert_eq!(guessed(&uneven, 48), None);
    }

    #[test]
    fn quiet_octets_tell_the_two_laws_apart() {
        let speech = |silence: u8| -> Vec<Vec<u8>> {
            (0..8).map(|n| (0..160).map(|at: u8| silence ^ ((at ^ n) % 40)).collect()).collect()
        };
        assert_eq!(guessed(&speech(0xff), 160), Some(Codec::Pcmu));
        assert_eq!(guessed(&speech(0xd5), 160), Some(Codec::Pcma));
        assert_eq!(guessed(&payloads(161), 161), None, "no packet time of speech");
    }
}
