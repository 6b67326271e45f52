//! A stream on its port, shared by all its handles.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rushes_proto::NtpTime;
use rushes_proto::control::ClockMapping;
use rushes_proto::rtp::CaptureTime;

use super::reporter::Reporter;
use crate::error::Error;
use crate::pace::sleep_until;
use crate::port::{Inbox, Outbox, Port, Reports};
use crate::stats::{RateStatistics, Statistics};

/// A stream that is attached to its port. When the last handle is dropped, the stream sends BYE and
/// leaves the port.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) port: Arc<Port>,
    pub(crate) reporter: Arc<Reporter>,
    /// An instant, and the wall-clock time at it.
    wall_clock: (Instant, NtpTime),
}

impl Attached {
    pub(crate) fn new(port: Arc<Port>, reporter: Reporter, wall_clock: (Instant, NtpTime)) -> Self {
        let reporter = Arc::new(reporter);
        let reports: Arc<dyn Reports> = reporter.clone();
        port.add_reports(&reports);
        Self { port, reporter, wall_clock }
    }

    /// The wall-clock time at `at`, as in our reports.
    pub(crate) fn ntp(&self, at: Instant) -> NtpTime {
        let (instant, ntp) = self.wall_clock;
        if at >= instant { ntp.plus(at - instant) } else { ntp.minus(instant - at) }
    }

    /// Nanoseconds from `capture` to `now`; `None` if they are an hour or more apart, since then
    /// one of the clocks does not show wall-clock time.
    pub(crate) fn latency(&self, capture: CaptureTime, now: Instant) -> Option<i64> {
        let nanos = self.ntp(now).nanos_since(capture.by_sender());
        (u128::from(nanos.unsigned_abs()) < ClockMapping::OFFSET_MAX.as_nanos()).then_some(nanos)
    }

    pub(crate) fn inbox(&self) -> &Inbox {
        &self.reporter.inbox
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.reporter.outbox
    }

    pub(crate) fn local_address(&self) -> SocketAddr {
        self.port.local_address()
    }

    /// Returns the stream's counters.
    pub(crate) fn statistics(&self) -> Statistics {
        let (foreign, unrouted) = self.port.ignored();
        Statistics {
            send: self.outbox().sent().statistics,
            receive: self.inbox().lock().statistics(),
            socket: self.port.socket().counters(),
            foreign,
            unrouted,
            uncollected: self.inbox().uncollected(),
            capture_to_delivery: self.inbox().latencies().clone(),
            rate: self.rate_statistics(),
        }
    }

    pub(crate) fn rate_statistics(&self) -> Option<RateStatistics> {
        self.outbox().rate.as_ref().map(|rate| rate.statistics(Instant::now()))
    }

    /// Answers requests and reports until `deadline`.
    pub(crate) fn wait_until(&self, deadline: Instant) -> Result<(), Error> {
        if !self.port.has_control() {
            sleep_until(deadline);
            return Ok(());
        }
        self.port.run_until(deadline)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let reports: Arc<dyn Reports> = self.reporter.clone();
        self.port.remove_reports(&reports);
        self.inbox().watches().note();
        self.reporter.leave(&self.port, Instant::now(), "");
    }
}
