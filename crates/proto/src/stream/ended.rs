//! Sources that have ended: their counters, and which late packets still belong to them.

use std::collections::VecDeque;

use super::inbound::Inbound;
use super::stats::SourceStatistics;
use super::window::{OLD_RUN, PacketRun, SILENCE, extend_old_run};
use crate::payload::PacketInfo;
use crate::repair::RepairCounts;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;

/// Maximum number of ended sources that are remembered individually.
const REMEMBERED_MAX: usize = 16;

/// The sources that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Frames of all ended sources: delivered and dropped.
    pub(super) frames: u64,
    pub(super) frames_dropped: u64,
    pub(super) repairs: RepairCounts,
    /// The sources that ended last, the newest at the back.
    pub(super) last: VecDeque<EndedSource>,
}

/// A source that has ended.
#[derive(Debug)]
pub(super) struct EndedSource {
    pub(super) statistics: SourceStatistics,
    run: PacketRun,
    /// The packet that would continue a run of old packets, and the length of that run.
    old_run: (SequenceNumber, u16),
}

impl Ended {
    pub(super) fn add(&mut self, source: &Inbound) {
        let statistics = source.statistics();
        self.frames += statistics.frames;
        self.frames_dropped += statistics.frames_dropped;
        self.repairs += source.repairs();
        if self.last.len() >= REMEMBERED_MAX {
            self.last.pop_front();
        }
        let old_run = (SequenceNumber(0), 0);
        self.last.push_back(EndedSource { statistics, run: source.run(), old_run });
    }

    /// Returns whether a source sent this packet before it ended; such a packet must not start the
    /// source again. The exception is a long run of consecutive old packets after a silence: the
    /// source is repeating its stream.
    pub(super) fn includes(
        &mut self,
        ssrc: Ssrc,
        sequence: SequenceNumber,
        info: &PacketInfo,
    ) -> bool {
        let is_its = |source: &&mut EndedSource| {
            source.statistics.ssrc == ssrc && source.run.includes(sequence, info.timestamp)
        };
        let Some(source) = self.last.iter_mut().find(is_its) else { return false };
        source.old_run = extend_old_run(source.old_run, sequence);
        let (_, count) = source.old_run;
        let silence = info.arrival.saturating_duration_since(source.statistics.last_heard);
        count < OLD_RUN || silence < SILENCE
    }
}
