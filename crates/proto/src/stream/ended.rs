//! Sources that have ended: what was counted of them, and which packets are theirs still.

use std::collections::VecDeque;

use super::inbound::Inbound;
use super::stats::SourceStatistics;
use super::window::Former;
use crate::repair::RepairCounts;
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::RtpTimestamp;

/// Sources that are remembered one by one.
const REMEMBERED_MAX: usize = 16;

/// The sources that have ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Frames of all of them: delivered, dropped.
    pub(super) frames: u64,
    pub(super) frames_dropped: u64,
    pub(super) repairs: RepairCounts,
    /// The newest, and where each had come to.
    pub(super) last: VecDeque<(SourceStatistics, Former)>,
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
        self.last.push_back((statistics, source.run()));
    }

    /// Whether a packet is one that a source sent before it ended: it must not begin it anew.
    pub(super) fn includes(
        &self,
        ssrc: Ssrc,
        sequence: SequenceNumber,
        timestamp: RtpTimestamp,
    ) -> bool {
        let mut runs = self.last.iter().filter(|(source, _)| source.ssrc == ssrc);
        runs.any(|(_, run)| run.includes(sequence, timestamp))
    }
}
