//! The streams of a capture: groups datagrams and rejects those that form no stream.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes::file::FileError;
use rushes::proto::rtp::Packet;
use rushes::{SequenceNumber, Ssrc};

use super::codec::Encodings;
use super::extract::Extraction;
use super::guess::guess;
use super::live::Live;

/// Maximum number of streams; the packets of others are only counted.
pub(crate) const STREAMS_MAX: usize = 1024;

/// Maximum number of sources that are not streams yet; the oldest is dropped.
const CANDIDATES_MAX: usize = 1024;

/// Number of packets with different, close sequence numbers that make a stream.
const PACKETS_MIN: usize = 3;

/// Maximum distance between these sequence numbers.
const DISTANCE_MAX: u16 = 100;

/// Packets and octets that are examined to guess the codec.
const PROBE_PACKETS: usize = 192;
const PROBE_OCTETS: usize = 256 << 10;

/// The key of a stream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) ssrc: Ssrc,
}

/// An RTP datagram as it was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'d> {
    pub(crate) time: Option<Duration>,
    /// The capture time on the virtual clock.
    pub(crate) now: Instant,
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) datagram: &'d [u8],
    /// Octets of the IP packets that carried the datagram.
    pub(crate) wire_len: usize,
    /// Whether the whole datagram was captured.
    pub(crate) whole: bool,
}

/// A datagram that is kept until its stream or codec is known.
#[derive(Debug)]
struct Kept {
    time: Option<Duration>,
    now: Instant,
    datagram: Vec<u8>,
    wire_len: usize,
    whole: bool,
    sequence: SequenceNumber,
}

/// Counters of a stream that do not depend on its codec.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) packets: u64,
    pub(crate) wire_octets: u64,
    pub(crate) largest: usize,
    pub(crate) markers: u64,
    /// Packets cut by the capture.
    pub(crate) cut: u64,
    pub(crate) first: Option<Duration>,
    pub(crate) last: Option<Duration>,
    pub(crate) payload_types: BTreeMap<u8, u64>,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) key: Key,
    pub(crate) tally: Tally,
    /// Packets kept until the codec is known.
    kept: Vec<Kept>,
    kept_octets: usize,
    pub(crate) live: Option<Live>,
}

/// Settings for reading streams.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) encodings: Encodings,
    pub(crate) reorder_time: Duration,
}

/// All streams.
#[derive(Debug)]
pub(crate) struct Streams {
    settings: Settings,
    pub(crate) extraction: Option<Extraction>,
    pub(crate) all: Vec<Stream>,
    places: HashMap<Key, usize>,
    candidates: HashMap<Key, Vec<Kept>>,
    order: VecDeque<Key>,
    /// Packets that look like RTP but belong to no stream.
    pub(crate) unclaimed: u64,
    /// Packets of streams beyond the maximum number.
    pub(crate) beyond: u64,
}

impl Streams {
    pub(crate) fn new(settings: Settings, extraction: Option<Extraction>) -> Self {
        Self {
            settings,
            extraction,
            all: Vec::new(),
            places: HashMap::new(),
            candidates: HashMap::new(),
            order: VecDeque::new(),
            unclaimed: 0,
            beyond: 0,
        }
    }

    /// Takes a datagram that looks like RTP.
    ///
    /// # Errors
    /// If the stream to be extracted cannot be written.
    pub(crate) fn take(&mut self, arrival: Arrival<'_>) -> Result<(), FileError> {
        let Ok(packet) = Packet::parse(arrival.datagram) else { return Ok(()) };
        let Arrival { source, destination, .. } = arrival;
        let key = Key { source, destination, ssrc: packet.ssrc() };
        if let Some(place) = self.places.get(&key) {
            let stream = &mut self.all[*place];
            return stream.take(arrival, &packet, &self.settings, self.extraction.as_mut());
        }
        if self.all.len() >= STREAMS_MAX {
            self.beyond += 1;
            return Ok(());
        }
        let Some(kept) = self.consider(key, arrival, &packet) else { return Ok(()) };
        self.places.insert(key, self.all.len());
        let mut stream = Stream::new(key);
        for Kept { time, now, datagram, wire_len, whole, .. } in kept {
            let datagram = datagram.as_slice();
            let arrival = Arrival { time, now, source, destination, datagram, wire_len, whole };
            if let Ok(packet) = Packet::parse(datagram) {
                stream.take(arrival, &packet, &self.settings, self.extraction.as_mut())?;
            }
        }
        self.all.push(stream);
        Ok(())
    }

    /// Ends all streams.
    ///
    /// # Errors
    /// If the stream to be extracted cannot be written.
    pub(crate) fn finish(&mut self) -> Result<(), FileError> {
        self.unclaimed += self.candidates.drain().map(|(_, kept)| kept.len() as u64).sum::<u64>();
        for stream in &mut self.all {
            stream.go_live(&self.settings, self.extraction.as_mut())?;
            let extraction = self.extraction.as_mut().and_then(|one| one.of(stream.key));
            if let Some(live) = &mut stream.live {
                live.finish(extraction)?;
            }
        }
        Ok(())
    }

    /// Keeps a packet of a source that is not a stream yet; returns all its packets when it becomes
    /// one.
    fn consider(
        &mut self,
        key: Key,
        arrival: Arrival<'_>,
        packet: &Packet<'_>,
    ) -> Option<Vec<Kept>> {
        let mut kept = self.candidates.remove(&key).unwrap_or_else(|| {
            self.order.push_back(key);
            Vec::new()
        });
        let sequence = packet.sequence();
        let far = |kept: &Kept| sequence.distance(kept.sequence).unsigned_abs() > DISTANCE_MAX;
        if kept.iter().any(far) {
            self.unclaimed += kept.len() as u64;
            kept.clear();
        }
        if kept.iter().filter(|kept| kept.sequence == sequence).count() > 1 {
            // One packet repeated many times is not a stream.
            self.unclaimed += 1;
        } else {
            kept.push(Kept::copy(arrival, sequence));
        }
        let mut sequences: Vec<u16> = kept.iter().map(|kept| kept.sequence.0).collect();
        sequences.sort_unstable();
        sequences.dedup();
        if sequences.len() >= PACKETS_MIN {
            self.order.retain(|other| *other != key);
            return Some(kept);
        }
        self.candidates.insert(key, kept);
        if self.candidates.len() > CANDIDATES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            let kept = self.candidates.remove(&oldest);
            self.unclaimed += kept.map_or(0, |kept| kept.len() as u64);
        }
        None
    }
}

impl Kept {
    fn copy(arrival: Arrival<'_>, sequence: SequenceNumber) -> Self {
        let Arrival { time, now, datagram, wire_len, whole, .. } = arrival;
        Self { time, now, datagram: datagram.to_vec(), wire_len, whole, sequence }
    }
}

impl Stream {
    fn new(key: Key) -> Self {
        Self { key, tally: Tally::default(), kept: Vec::new(), kept_octets: 0, live: None }
    }

    fn take(
        &mut self,
        arrival: Arrival<'_>,
        packet: &Packet<'_>,
        settings: &Settings,
        extraction: Option<&mut Extraction>,
    ) -> Result<(), FileError> {
        self.tally.take(arrival, packet);
        if let Some(live) = &mut self.live {
            let extraction = extraction.and_then(|one| one.of(self.key));
            return live.take(arrival.now, arrival.datagram, arrival.whole, extraction);
        }
        self.kept.push(Kept::copy(arrival, packet.sequence()));
        self.kept_octets += arrival.datagram.len();
        let given = settings.encodings.given(self.key.ssrc, packet.payload_type()).is_some();
        if (given && self.kept.len() >= PACKETS_MIN)
            || self.kept.len() >= PROBE_PACKETS
            || self.kept_octets >= PROBE_OCTETS
        {
            return self.go_live(settings, extraction);
        }
        Ok(())
    }

    /// Finds the codec and passes the kept packets to the receiver.
    fn go_live(
        &mut self,
        settings: &Settings,
        mut extraction: Option<&mut Extraction>,
    ) -> Result<(), FileError> {
        if self.live.is_some() {
            return Ok(());
        }
        let most = self.tally.payload_types.iter().max_by_key(|(_, packets)| **packets);
        let Some((&payload_type, _)) = most else { return Ok(()) };
        let kept = std::mem::take(&mut self.kept);
        let whole: Vec<&[u8]> =
            kept.iter().filter(|kept| kept.whole).map(|kept| &kept.datagram[..]).collect();
        let given = settings.encodings.given(self.key.ssrc, payload_type);
        let encoding = given.unwrap_or_else(|| guess(payload_type, &whole));
        if let Some(extraction) = &mut extraction {
            extraction.consider(self.key, &encoding);
        }
        let Some(mut live) =
            Live::new(self.key.ssrc, payload_type, encoding, settings.reorder_time)
        else {
            return Ok(());
        };
        for Kept { now, datagram, whole, .. } in &kept {
            let extraction = extraction.as_mut().and_then(|one| one.of(self.key));
            live.take(*now, datagram, *whole, extraction)?;
        }
        self.live = Some(live);
        Ok(())
    }
}

impl Tally {
    fn take(&mut self, arrival: Arrival<'_>, packet: &Packet<'_>) {
        self.packets += 1;
        self.wire_octets += arrival.wire_len as u64;
        self.largest = self.largest.max(arrival.wire_len);
        self.markers += u64::from(packet.marker());
        self.cut += u64::from(!arrival.whole);
        self.first = self.first.or(arrival.time);
        self.last = self.last.max(arrival.time);
        *self.payload_types.entry(packet.payload_type()).or_default() += 1;
    }

    /// Returns the time from the first packet to the last.
    pub(crate) fn duration(&self) -> Duration {
        let (first, last) = (self.first.unwrap_or_default(), self.last.unwrap_or_default());
        last.saturating_sub(first)
    }
}
