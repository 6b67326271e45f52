//! The parts that the tests of all formats share: sending and receiving.

use std::ops::Range;
use std::time::Instant;

use super::builder::{Delivery, FrameBuilder, FrameSettings, Framing};
use super::error::PayloadError;
use super::fragment::{Fragment, Piece, Run};
use super::frame::Frame;
use super::layers::Layers;
use super::pool::FramePool;
use super::{Depacketiser, PacketInfo, Packetiser, PayloadFormat};
use crate::ecn::Ecn;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// A payload as it is sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Sent {
    pub(super) octets: Vec<u8>,
    pub(super) marker: bool,
    /// The octets of the frame that it contains.
    pub(super) ranges: Vec<Range<usize>>,
}

/// Returns an access unit of `units` with start codes.
pub(super) fn annex_b(units: &[Vec<u8>]) -> Vec<u8> {
    units.iter().flat_map(|unit| [&[0, 0, 0, 1], &unit[..]].concat()).collect()
}

/// Returns the payloads of `frame`, each of at most `limit` octets. Some are made one by one and
/// others in runs, which must make no difference.
pub(super) fn send(packetiser: &mut dyn Packetiser, frame: &[u8], limit: usize) -> Vec<Sent> {
    packetiser.start(frame, limit).unwrap();
    let mut fragment = Fragment::default();
    let mut sent = Vec::new();
    loop {
        let most = sent.len() % 4;
        if let Some(run) = packetiser.next_run(frame, most) {
            assert!((1..=most).contains(&run.count), "{run:?}");
            sent.extend(of_run(run, frame));
            continue;
        }
        if !packetiser.next(frame, &mut fragment) {
            break;
        }
        let mut octets = vec![0; fragment.len()];
        fragment.write(frame, &mut octets);
        assert!((1..=limit).contains(&octets.len()), "{} octets of {limit}", octets.len());
        let ranges = fragment.pieces().iter().filter_map(|piece| match *piece {
            Piece::Frame { start, end } => Some(start..end),
            Piece::Own { .. } => None,
        });
        sent.push(Sent { octets, marker: fragment.marker(), ranges: ranges.collect() });
        fragment.clear();
    }
    assert!(!packetiser.next(frame, &mut fragment), "a payload after the last of a frame");
    assert_eq!(packetiser.next_run(frame, 9), None, "a payload after the last of a frame");
    sent
}

fn of_run(run: Run, frame: &[u8]) -> impl Iterator<Item = Sent> {
    let own = run.own[..run.own_len].to_vec();
    (0..run.count).map(move |n| {
        let start = run.start + n * run.len;
        let range = start..start + run.len;
        let octets = [&own[..], &frame[range.clone()]].concat();
        Sent { octets, marker: false, ranges: vec![range] }
    })
}

/// Returns the payloads of an access unit of `units`, from a new packetiser of `format`.
pub(super) fn send_units(format: &dyn PayloadFormat, units: &[&[u8]], limit: usize) -> Vec<Sent> {
    let units: Vec<Vec<u8>> = units.iter().map(|unit| unit.to_vec()).collect();
    send(format.packetiser().as_mut(), &annex_b(&units), limit)
}

/// The receiving side of one source.
pub(super) struct Listener {
    depacketiser: Box<dyn Depacketiser>,
    builder: FrameBuilder,
    pool: FramePool,
    arrival: Instant,
}

impl Listener {
    pub(super) fn new(format: &dyn PayloadFormat, delivery: Delivery) -> Self {
        Self::with(format, FrameSettings { delivery, ..FrameSettings::default() })
    }

    pub(super) fn with(format: &dyn PayloadFormat, settings: FrameSettings) -> Self {
        assert_eq!(settings.framing, Framing::AnnexB);
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let arrival = Instant::now();
        let pool = FramePool::new();
        Self {
            depacketiser: format.depacketiser(),
            builder: FrameBuilder::new(format, settings, pool.clone()),
            pool,
            arrival,
        }
    }

    /// Handles a payload as a stream does.
    pub(super) fn take(
        &mut self,
        octets: &[u8],
        timestamp: u32,
        marker: bool,
    ) -> Result<(), PayloadError> {
        let (ssrc, timestamp) = (Ssrc(1), RtpTimestamp(timestamp));
        let (arrival, stamp, ecn) = (self.arrival, self.arrival, Ecn::NotCapable);
        let packet = PacketInfo { ssrc, timestamp, marker, arrival, stamp, ecn, captured: None };
        self.builder.begin_packet(packet);
        let outcome = self.depacketiser.push(octets, packet, &mut self.builder);
        if outcome.is_err() {
            self.depacketiser.lost();
            self.builder.damage();
        }
        self.builder.end_packet();
        outcome
    }

    pub(super) fn lose(&mut self, packets: u64) {
        self.depacketiser.lost();
        self.builder.lost(packets);
    }

    /// Ends the source, as its BYE does.
    pub(super) fn finish(&mut self) {
        self.depacketiser.finish(&mut self.builder);
        self.builder.finish_source();
    }

    /// Returns the number of frames, or units, dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.builder.dropped()
    }

    /// Returns the timestamps and octets of the frames completed since the last call.
    pub(super) fn timed_frames(&mut self) -> Vec<(u32, Vec<u8>)> {
        let frames = std::iter::from_fn(|| self.builder.pop());
        frames.map(|frame| (frame.timestamp().0, frame.to_vec())).collect()
    }

    /// Returns the octets of memory that is kept for later frames.
    pub(super) fn kept(&self) -> usize {
        self.pool.kept_octets()
    }

    /// Returns the approximate octets in frames and units not yet delivered.
    pub(super) fn held(&self) -> usize {
        self.builder.held_len() + self.depacketiser.held_len()
    }

    /// Returns the frames completed since the last call.
    pub(super) fn frames(&mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.builder.pop()).map(|frame| frame.to_vec()).collect()
    }

    /// Returns the layers of the frames completed since the last call.
    pub(super) fn layers(&mut self) -> Vec<Option<Layers>> {
        std::iter::from_fn(|| self.builder.pop()).map(|frame| frame.layers()).collect()
    }

    /// Returns the next completed frame.
    pub(super) fn pop(&mut self) -> Option<Frame> {
        self.builder.pop()
    }

    /// Like [`frames`](Self::frames) without start codes, for units delivered one by one.
    pub(super) fn units(&mut self) -> Vec<Vec<u8>> {
        self.frames().iter().map(|frame| frame[4..].to_vec()).collect()
    }
}

/// Receives one `payload` alone; returns the outcome and the units delivered.
pub(super) fn receive_one(
    format: &dyn PayloadFormat,
    payload: &[u8],
) -> (Result<(), PayloadError>, Vec<Vec<u8>>) {
    let mut listener = Listener::new(format, Delivery::Unit);
    let outcome = listener.take(payload, 0, true);
    listener.finish();
    (outcome, listener.units())
}

/// Receives several payloads of one access unit; returns the units delivered, or the first error.
pub(super) fn receive_all(
    format: &dyn PayloadFormat,
    payloads: &[&[u8]],
) -> Result<Vec<Vec<u8>>, PayloadError> {
    let mut listener = Listener::new(format, Delivery::Unit);
    payloads.iter().try_for_each(|payload| listener.take(payload, 0, false))?;
    listener.finish();
    Ok(listener.units())
}
