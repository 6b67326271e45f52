//! RTCP for the application.

use std::sync::Arc;
use std::time::Instant;

#[cfg(doc)]
use rushes_proto::control::ClockMapping;
use rushes_proto::control::{
    AppData, ControlEvent, ControlStatistics, KeyFrameRequest, RemoteStatistics,
};
use rushes_proto::payload::Frame;
use rushes_proto::rtcp::BitRateLimit;
use rushes_proto::{RtpTimestamp, Ssrc};

use super::Attached;
use crate::error::Error;

/// A stream's RTCP: the reports of its peers, and the requests to them.
///
/// Reports are sent automatically by the thread that pulls, pushes or runs the stream's hook, as
/// often as RFC 3550 section 6.2 allows. Cheap to clone; clones share the stream.
#[derive(Clone, Debug)]
pub struct Rtcp {
    pub(crate) attached: Arc<Attached>,
}

impl Rtcp {
    /// Sets a function that is called with every report and request, on the thread that reads the
    /// stream's port. It may call the stream. Without a function, events are queued for
    /// [`poll_event`](Self::poll_event).
    ///
    /// A hook that owns a clone of this handle keeps the stream's RTCP alive after the stream is
    /// dropped; a hook that only passes its events on does not.
    pub fn on_event(&self, hook: impl FnMut(ControlEvent) + Send + 'static) {
        self.attached.reporter.events.set_hook(Box::new(hook));
        self.attached.reporter.events.dispatch();
    }

    /// Returns the next report or request. The last 256 are kept, and the last 32 before the
    /// first call.
    pub fn poll_event(&self) -> Option<ControlEvent> {
        self.attached.reporter.events.poll()
    }

    /// Returns the state of each peer: its name, its clocks, its last report, the round-trip time.
    pub fn peers(&self) -> Vec<RemoteStatistics> {
        self.attached.reporter.with(|participant| participant.remotes()).unwrap_or_default()
    }

    /// Returns the nanoseconds since the media of `timestamp` was captured: the latency of a frame
    /// that was just received.
    ///
    /// The value is the difference between our clock and the clock in the reports of `source`; it
    /// is negative if the source's clock is ahead. `None` before its first report, and if the
    /// clocks are an hour or more apart, since some peers do not report wall-clock time. See
    /// [`ClockMapping::latency`].
    pub fn capture_latency(&self, source: Ssrc, timestamp: RtpTimestamp) -> Option<i64> {
        let now = Instant::now();
        self.attached.reporter.with(|participant| {
            let peer = participant.remotes().into_iter().find(|peer| peer.ssrc == source)?;
            peer.clock?.latency(timestamp, participant.ntp(now))
        })?
    }

    /// Returns the nanoseconds since `frame` was captured, negative if the source's clock is ahead of ours.
    ///
    /// This is the time that the [frame carries](Frame::capture_time), or else that of the reports
    /// of its source: see [`capture_latency`](Self::capture_latency), also for `None`.
    pub fn frame_latency(&self, frame: &Frame) -> Option<i64> {
        match frame.capture_time() {
            Some(capture) => self.attached.latency(capture, Instant::now()),
            None => self.capture_latency(frame.ssrc(), frame.timestamp()),
        }
    }

    /// Returns whether the reports on the last packet sent are incomplete: a peer that has reported
    /// on our media before, and has not left, has not reported on it yet. Until then the losses in
    /// [`peers`](Self::peers) are not final.
    pub fn awaits_reports(&self) -> bool {
        let Some(last) = self.attached.outbox().sent().last_sequence else { return false };
        let is_behind = |peer: &RemoteStatistics| {
            let highest = peer.reported.filter(|_| !peer.left).map(|block| block.highest as u16);
            highest.is_some_and(|highest| highest != last.0)
        };
        self.peers().iter().any(is_behind)
    }

    /// Returns the bit rate that the encoder should produce, in bits per second; `None` without
    /// [rate control](crate::StreamBuilder::rate_control). Changes of it are
    /// [events](ControlEvent::TargetRate).
    pub fn target_rate(&self) -> Option<u64> {
        self.attached.rate_statistics().map(|rate| rate.target)
    }

    /// Returns the counters of sent and received reports.
    pub fn statistics(&self) -> ControlStatistics {
        self.attached.reporter.with(|participant| participant.statistics()).unwrap_or_default()
    }

    /// Requests a key frame from every media source: PLI after lost pictures, FIR for a new viewer.
    ///
    /// With feedback on (see [`StreamBuilder::feedback`](crate::StreamBuilder::feedback)) it is
    /// sent at once, otherwise with the next report, up to some seconds later.
    ///
    /// # Errors
    /// [`Error::NoRtcp`].
    pub fn request_key_frame(&self, request: KeyFrameRequest) -> Result<(), Error> {
        let sources: Vec<Ssrc> = {
            let receiver = self.attached.inbox().lock();
            receiver.receptions().map(|source| source.ssrc).collect()
        };
        self.act(|participant, now| {
            for media in sources {
                participant.request_key_frame(now, media, request);
            }
        })
    }

    /// Requests a limit of the bit rate from a media source (TMMBR, RFC 5104 section 4.2.1).
    ///
    /// # Errors
    /// [`Error::NoRtcp`].
    pub fn request_bit_rate(&self, limit: BitRateLimit) -> Result<(), Error> {
        self.act(|participant, now| participant.request_bit_rate(now, limit))
    }

    /// Sends media sources an estimate of the path's total capacity, in bits per second (REMB).
    ///
    /// # Errors
    /// [`Error::NoRtcp`].
    pub fn send_estimate(&self, bit_rate: u64, sources: &[Ssrc]) -> Result<(), Error> {
        self.act(|participant, now| participant.send_estimate(now, bit_rate, sources))
    }

    /// Sends an APP packet with the next report.
    ///
    /// # Errors
    /// [`Error::NoRtcp`], or [`Error::RtcpBusy`] if 64 APP packets are queued already.
    pub fn send_app(&self, app: AppData) -> Result<(), Error> {
        let mut added = false;
        self.act(|participant, _| added = participant.send_app(app))?;
        if added { Ok(()) } else { Err(Error::RtcpBusy) }
    }

    /// Sends BYE; immediately if there are fewer than 50 members (RFC 3550 section 6.3.7). Dropping
    /// the stream also sends BYE, without a reason.
    ///
    /// # Errors
    /// [`Error::NoRtcp`].
    pub fn send_bye(&self, reason: &str) -> Result<(), Error> {
        let Attached { port, reporter, .. } = &*self.attached;
        reporter.with(|_| ()).ok_or(Error::NoRtcp)?;
        reporter.leave(port, Instant::now(), reason);
        port.serve_now(&reporter.inbox);
        Ok(())
    }

    /// Calls `act`, then sends the packets that may be sent at once.
    fn act(
        &self,
        act: impl FnOnce(&mut rushes_proto::control::Participant, Instant),
    ) -> Result<(), Error> {
        let now = Instant::now();
        let Attached { port, reporter, .. } = &*self.attached;
        reporter.with(|participant| act(participant, now)).ok_or(Error::NoRtcp)?;
        port.serve_now(&reporter.inbox);
        Ok(())
    }
}
