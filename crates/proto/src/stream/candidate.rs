//! A source on probation, and the packets that are kept of it (RFC 3550 appendix A.1).

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
}

/// A packet of a source on probation, or a suspect of a believed one.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) sequence: SequenceNumber,
    pub(super) info: PacketInfo,
    pub(super) payload: Vec<u8>,
}

impl Kept {
    pub(super) fn copy(packet: Arrived<'_>) -> Self {
        let Arrived { sequence, info, payload } = packet;
        Self { sequence, info, payload: payload.to_vec() }
    }
}

/// A source on probation. Its packets are kept until it is believed (RFC 3550 A.1 would drop them).
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

    /// Takes a packet; `true` once enough of them are close to each other.
    ///
    /// The RFC requires consecutive packets. Close ones are as good a sign, and a network that
    /// reorders the first two causes no delay.
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
