//! The library's controller in a case.

use std::time::{Duration, Instant};

use rushes_netsim::rate::{Controller, Report};
use rushes_proto::rate::{PacketFeedback, RateController, RateSettings};
use rushes_proto::rtcp::{Arrival, Ecn, PacketReport};
use rushes_proto::{SequenceNumber, Ssrc};

/// The source of the packets.
const MEDIA: Ssrc = Ssrc(1);

/// The library's controller, with reports of RFC 8888.
#[derive(Clone, Debug)]
pub(super) struct Library {
    controller: RateController,
    start: Instant,
}

impl Library {
    /// Creates the controller of a flow that begins at `begins`.
    pub(super) fn new(settings: RateSettings, start: Instant, begins: Duration) -> Self {
        Self { controller: RateController::new(settings, start + begins), start }
    }
}

impl Controller for Library {
    fn handle_frame(&mut self, now: Duration, octets: usize, waited: Duration) {
        self.controller.handle_frame(self.start + now, octets, waited);
    }

    fn handle_sent(&mut self, now: Duration, sequence: u16, octets: usize) {
        let sequence = SequenceNumber(sequence);
        self.controller.handle_sent(self.start + now, MEDIA, sequence, octets);
    }

    fn handle_report(&mut self, now: Duration, report: &Report) {
        #[allow(clippy::cast_sign_loss, reason = "times are not negative")]
        let instant = (report.instant.as_secs_f64() * 65_536.0) as u32;
        let packets = report.arrivals.iter().zip(0..).map(|(arrival, n)| {
            let before = |at| (Ecn::NotCapable, Arrival::Before(report.instant.saturating_sub(at)));
            let sequence = SequenceNumber(report.begin).plus(n);
            let report = PacketReport { sequence, arrival: arrival.map(before) };
            PacketFeedback::from_report(MEDIA, instant, report)
        });
        self.controller.handle_feedback(self.start + now, packets);
    }

    fn handle_timeout(&mut self, now: Duration) {
        self.controller.handle_timeout(self.start + now);
    }

    fn target_rate(&self) -> u64 {
        self.controller.target_rate()
    }

    fn pacing_rate(&self) -> u64 {
        self.controller.pacing_rate()
    }
}
