//! Repair packets of a session.

use std::time::Instant;

use rushes_delivery::control::Report;
use rushes_delivery::{FEC_PERCENT_MAX, FecChoice, LossReport, Plan};

use crate::error::Error;

/// Forward error correction of texture video over UDP: a server adds repair packets, from which clients
/// compute packets that did not arrive, without asking for them
/// ([`ServerOptions::fec`](super::ServerOptions::fec)).
///
/// The code is Reed–Solomon over up to 256 packets of a stripe (up to 256 KiB): with m repair packets, any m lost
/// packets of them are recovered. There is at least one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Fec {
    /// No repair packets. The default.
    #[default]
    Off,
    /// So many repair packets for 100 packets, 1..=100.
    Percent(u8),
    /// As many as the losses that a client reports need, at most so many for 100 packets, 1..=100. None while nothing
    /// is lost, or if [requests](super::ServerOptions::recovery) alone can be answered in time and suffice; see
    /// [`FecChoice`].
    ByLoss(u8),
}

impl Fec {
    /// Checks the ratio.
    pub(super) fn check(self) -> Result<(), Error> {
        match self {
            Self::Off => Ok(()),
            Self::Percent(percent) | Self::ByLoss(percent) => {
                let is_valid = (1..=FEC_PERCENT_MAX).contains(&percent);
                if is_valid { Ok(()) } else { Err(Error::FecPercent { percent }) }
            }
        }
    }
}

/// The ratio of one session.
pub(super) struct SessionFec {
    percent: u8,
    choice: Option<FecChoice>,
}

impl SessionFec {
    /// Creates the ratio of a session whose client uses repair packets, if `is_used`.
    pub(super) fn new(fec: Fec, is_used: bool) -> Self {
        match fec {
            Fec::Percent(percent) if is_used => Self { percent, choice: None },
            Fec::ByLoss(max) if is_used => Self { percent: 0, choice: Some(FecChoice::new(max)) },
            _ => Self { percent: 0, choice: None },
        }
    }

    /// Returns the repair packets for 100 packets.
    pub(super) fn percent(&self) -> u8 {
        self.percent
    }

    /// Handles a client's report about the packets `sent` so far, of frames with this plan.
    pub(super) fn handle_report(&mut self, now: Instant, sent: u64, report: &Report, plan: &Plan) {
        let Some(choice) = &mut self.choice else { return };
        let report = LossReport {
            sent,
            lost: lost(report),
            unrecovered: report.packets_lost,
            answers_in_time: report.answers_in_time,
        };
        let percent = choice.handle_report(now, report, plan);
        if percent != self.percent {
            tracing::debug!(percent, "a client's losses change its repair packets");
        }
        self.percent = percent;
    }
}

/// Returns the packets that the path lost, whether or not they were recovered.
pub(super) fn lost(report: &Report) -> u64 {
    let recovered = report.packets_recovered.saturating_add(report.packets_repaired);
    report.packets_lost.saturating_add(recovered)
}
