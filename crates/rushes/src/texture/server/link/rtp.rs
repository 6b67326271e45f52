//! Packets of a stream.

use std::time::Instant;

use rushes_delivery::{Stripe, UnitHeader};
use rushes_net::{SendError, SendErrorKind};
use rushes_proto::RtpTimestamp;

use super::super::super::transient::Outage;
use super::super::super::{rtp, transient};
use super::super::job::Job;
use super::super::pace::UnitPace;
use super::Link;
use crate::error::Error;
use crate::media::MediaStream;

/// Sends packets of a stream, secured or not.
pub(in super::super) struct RtpLink {
    stream: Box<MediaStream>,
    pace: UnitPace,
    /// A timestamp and the instant that it stands for.
    begun: (RtpTimestamp, Instant),
    outage: Outage,
}

impl RtpLink {
    pub(in super::super) fn new(
        mut stream: Box<MediaStream>,
        pace: UnitPace,
        first: RtpTimestamp,
    ) -> Self {
        stream.sender().pacer = Box::new(pace.clone());
        let (begun, outage) = ((first, Instant::now()), Outage::default());
        Self { stream, pace, begun, outage }
    }
}

impl Link for RtpLink {
    fn send(&mut self, job: &Job, (_, first): (&Stripe, u32), octets: &[u8]) -> Result<(), String> {
        let header = UnitHeader { frame: job.frame as u8, index: first };
        self.pace.begin(Instant::now(), job);
        let since = job.captured_at.saturating_duration_since(self.begun.1);
        let timestamp = self.begun.0.plus(rtp::CLOCK_RATE.ticks(since));
        let sender = self.stream.sender();
        sender.set_first_packet(u32::from_be_bytes(header.write()));
        match sender.push_frame_captured(octets, timestamp, job.captured_at) {
            Ok(()) => self.outage.end(),
            // Packets that do not fit count as lost by the network.
            Err(Error::Send(SendError { kind: SendErrorKind::BufferFull, .. })) => {}
            Err(error) if transient::of_stream(&error) => self.outage.note(&error),
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }
}
