//! A source on probation, whose packets are kept until it is believed (RFC 3550 appendix A.1).

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::time::Instant;

use super::event::Event;
use super::stats::{Discard, ReceiveStatistics};
use super::window::MAX_MISORDER;
use crate::payload::PacketInfo;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// The receiver's counters and events, which its sources update.
pub(super) struct Report<'r> {
    pub(super) statistics: &'r mut ReceiveStatistics,
    pub(super) events: &'r mut VecDeque<Event>,
}

/// A packet, parsed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'p> {
    pub(super) sequence: SequenceNumber,
    pub(super) info: PacketInfo,
    pub(super) payload: &'p [u8],
    /// The elements of its header extension that the frame is to have, in the two-byte form.
    pub(super) elements: &'p [u8],
}

/// A packet kept of a source on probation, or one far from a believed source's numbers.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) sequence: SequenceNumber,
    pub(super) info: PacketInfo,
    payload: Vec<u8>,
    elements: Vec<u8>,
}

impl Kept {
    pub(super) fn copy(packet: Arrived<'_>) -> Self {
        let Arrived { sequence, info, payload, elements } = packet;
        Self { sequence, info, payload: payload.to_vec(), elements: elements.to_vec() }
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns the packet as if it arrived now.
    pub(super) fn arrived(&self) -> Arrived<'_> {
        let Self { sequence, info, payload, elements } = self;
        Arrived { sequence: *sequence, info: *info, payload, elements }
    }
}

/// A source on probation. Its packets are kept until the source is believed; the algorithm of RFC
/// 3550 appendix A.1 would drop them.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) ssrc: Ssrc,
    pub(super) address: Option<SocketAddr>,
    pub(super) kept: Vec<Kept>,
    pub(super) last_heard: Instant,
}

impl Candidate {
    pub(super) fn new(ssrc: Ssrc, address: Option<SocketAddr>, now: Instant) -> Self {
        Self { ssrc, address, kept: Vec::new(), last_heard: now }
    }

    pub(super) fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    pub(super) fn kept(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Handles a packet; returns whether enough packets are close together to believe the source.
    ///
    /// The RFC requires consecutive packets. Packets close in sequence are equally good evidence,
    /// and a network that reorders the first two then causes no delay.
    pub(super) fn take(
        &mut self,
        packet: Arrived<'_>,
        probation: u8,
        report: &mut Report<'_>,
    ) -> bool {
        self.last_heard = packet.info.arrival;
        let far = |kept: &Kept| {
            u64::from(packet.sequence.distance(kept.sequence).unsigned_abs()) >= MAX_MISORDER
        };
        if self.kept.iter().any(far) {
            for _ in self.kept.drain(..) {
                report.statistics.discards.count(Discard::Probation);
            }
        }
        if self.kept.iter().any(|kept| kept.sequence == packet.sequence) {
            report.statistics.discards.count(Discard::Duplicate);
        } else {
            self.kept.push(Kept::copy(packet));
        }
        self.kept.len() >= usize::from(probation)
    }
}
