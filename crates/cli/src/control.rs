//! RTCP received from peers, counted for the report at the end.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rushes::{ClockMapping, ControlEvent, Frame, MediaStream, NtpTime, RtpTimestamp, Ssrc};
use serde_json::{Value, json};

use crate::interrupt::Interrupt;
use crate::metrics::RTCP;
use crate::report::counted;
use crate::{metrics, security};

/// Interval at which the sender's clock mapping is read and the shortest latency is reset.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of goodbyes remembered.
const GOODBYES_MAX: usize = 64;

/// Maximum wait for reports on the last packet.
const LAST_REPORTS_WAIT: Duration = Duration::from_secs(1);

/// The time from a frame's capture, on the sender's wall clock, to its delivery, on the local one.
/// The clocks may differ; a constant value shows that the sender's two clocks do not drift.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    mapping: Option<ClockMapping>,
    read_at: Option<Instant>,
    shortest: Option<f64>,
    first: Option<f64>,
    last: Option<f64>,
}

impl Latency {
    /// Takes a frame that has just arrived; returns its latency in seconds, if that is known.
    pub(crate) fn take(&mut self, stream: &MediaStream, frame: &Frame) -> Option<f64> {
        let now = Instant::now();
        if self.read_at.is_none_or(|read_at| now.duration_since(read_at) >= READ_INTERVAL) {
            self.read_at = Some(now);
            self.end_interval();
            let peers = stream.rtcp().peers();
            let peer = peers.into_iter().find(|peer| peer.ssrc == frame.ssrc());
            self.mapping = peer.and_then(|peer| peer.clock);
        }
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
        self.note(self.mapping?, frame.timestamp(), NtpTime::from_unix(wall))
    }

    /// Takes a frame of `timestamp` that arrived at `now`. Ignored if the sender's clock shows no
    /// wall time.
    fn note(
        &mut self,
        mapping: ClockMapping,
        timestamp: RtpTimestamp,
        now: NtpTime,
    ) -> Option<f64> {
        let latency = mapping.latency(timestamp, now)? as f64 / 1e9;
        self.shortest = Some(self.shortest.map_or(latency, |shortest| shortest.min(latency)));
        Some(latency)
    }

    fn end_interval(&mut self) {
        if let Some(shortest) = self.shortest.take() {
            self.first.get_or_insert(shortest);
            self.last = Some(shortest);
        }
    }

    /// The shortest latency in the first and in the last second; `null` if not known.
    pub(crate) fn report(&mut self) -> Value {
        self.end_interval();
        json!({ "first_ms": self.first.map(|s| s * 1e3), "last_ms": self.last.map(|s| s * 1e3) })
    }
}

/// Requests and goodbyes of the peers.
#[derive(Debug, Default)]
pub(crate) struct RtcpSummary {
    key_frames: u64,
    packets: u64,
    reports: u64,
    /// The latest goodbyes, one per source.
    goodbyes: VecDeque<(Ssrc, String)>,
}

impl RtcpSummary {
    /// Takes the events received so far. The goodbye of the source being `written` is kept however
    /// many others arrive.
    pub(crate) fn poll(&mut self, stream: &MediaStream, written: Option<Ssrc>) {
        let rtcp = stream.rtcp();
        while let Some(event) = rtcp.poll_event() {
            security::report_control_event(&event);
            match event {
                ControlEvent::Collision { old, new } => eprintln!(
                    "rushes: another sender uses our SSRC {old} (RFC 3550 section 8.2): \
                     continuing as {new}"
                ),
                ControlEvent::KeyFrameRequested { .. } => self.key_frames += 1,
                ControlEvent::PacketsLost { sequences, .. } => {
                    self.packets += sequences.len() as u64;
                }
                ControlEvent::SenderReport { .. } | ControlEvent::ReceiverReport { .. } => {
                    self.reports += 1;
                }
                ControlEvent::Bye { from, reason } => self.note_goodbye(from, reason, written),
                _ => {}
            }
        }
    }

    fn note_goodbye(&mut self, from: Ssrc, reason: String, written: Option<Ssrc>) {
        if self.has_left(from) {
            return;
        }
        if self.goodbyes.len() >= GOODBYES_MAX {
            let oldest = self.goodbyes.iter().position(|(ssrc, _)| Some(*ssrc) != written);
            self.goodbyes.remove(oldest.unwrap_or_default());
        }
        self.goodbyes.push_back((from, reason));
    }

    /// Waits until the peers that report have reported on the last packet or have left: for a
    /// second at most, or until Ctrl-C.
    pub(crate) fn await_reports(
        &mut self,
        stream: &mut MediaStream,
        interrupt: &Interrupt,
    ) -> Result<(), rushes::Error> {
        let until = Instant::now() + LAST_REPORTS_WAIT;
        while Instant::now() < until && !interrupt.is_requested() && stream.rtcp().awaits_reports()
        {
            stream.sender().wait_until(until.min(Instant::now() + LAST_REPORTS_WAIT / 100))?;
            self.poll(stream, None);
        }
        Ok(())
    }

    /// The goodbyes only, without that of the source that was written: for the next file.
    pub(crate) fn without(mut self, written: Option<Ssrc>) -> Self {
        self.goodbyes.retain(|(ssrc, _)| Some(*ssrc) != written);
        Self { goodbyes: self.goodbyes, ..Self::default() }
    }

    /// Whether `source` has sent a goodbye.
    pub(crate) fn has_left(&self, source: Ssrc) -> bool {
        self.goodbyes.iter().any(|(ssrc, _)| *ssrc == source)
    }

    /// The counters and the state of the peers, as JSON.
    pub(crate) fn report(&self, stream: &MediaStream) -> Value {
        let statistics = stream.rtcp().statistics();
        let peers: Vec<Value> = stream
            .rtcp()
            .peers()
            .into_iter()
            .map(|peer| {
                json!({
                    "ssrc": peer.ssrc.to_string(),
                    "cname": peer.cname,
                    "packets_sent": peer.sender.map(|sender| sender.packets),
                    "octets_sent": peer.sender.map(|sender| sender.octets),
                    "wall_clock": peer.clock.map(|clock| clock.ntp.unix().as_secs_f64()),
                    "fraction_lost": peer.reported.map(|block| f64::from(block.fraction_lost) / 256.0),
                    "cumulative_lost": peer.reported.map(|block| block.cumulative_lost),
                    "jitter_ticks": peer.reported.map(|block| block.jitter),
                    "round_trip_ms": peer.round_trip.map(|time| time.as_secs_f64() * 1e3),
                })
            })
            .collect();
        let goodbyes: Vec<Value> = self
            .goodbyes
            .iter()
            .map(|(ssrc, reason)| json!({ "ssrc": ssrc.to_string(), "reason": reason }))
            .collect();
        let mut object = metrics::object(&RTCP, &statistics);
        let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
        add("reports_received", self.reports.into());
        add("key_frames_requested", self.key_frames.into());
        add("packets_requested", self.packets.into());
        add("goodbyes", goodbyes.into());
        add("peers", peers.into());
        object.into()
    }

    /// A one-line summary; empty if nothing was received.
    pub(crate) fn text(&self, stream: &MediaStream) -> String {
        let mut parts = Vec::new();
        for peer in stream.rtcp().peers() {
            if let Some(block) = peer.reported {
                parts.push(format!(
                    "peer {} lost {} of our packets",
                    peer.ssrc, block.cumulative_lost
                ));
            }
            if let Some(time) = peer.round_trip {
                parts.push(format!("round trip {:.2} ms", time.as_secs_f64() * 1e3));
            }
        }
        if self.packets > 0 {
            parts.push(format!("{} requested again", counted(self.packets, "packet")));
        }
        if self.key_frames > 0 {
            parts.push(format!("{} requested", counted(self.key_frames, "key frame")));
        }
        parts.join(", ")
    }
}

/// Packets that `source` has sent by its own count, once it has sent a goodbye.
pub(crate) fn sent_by(stream: &MediaStream, source: Ssrc) -> Option<u64> {
    let peers = stream.rtcp().peers();
    let peer = peers.into_iter().find(|peer| peer.ssrc == source && peer.left)?;
    peer.sender.map(|sender| sender.packets.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushes::proto::ClockRate;

    #[test]
    fn goodbyes_of_strangers_do_not_push_out_that_of_the_source_that_is_written() {
        let (mut summary, own) = (RtcpSummary::default(), Ssrc(1_000_000));
        for n in 0..3 * GOODBYES_MAX as u32 {
            summary.note_goodbye(Ssrc(n), String::new(), Some(own));
            summary.note_goodbye(Ssrc(7), "again".to_owned(), Some(own));
            if n == 3 {
                summary.note_goodbye(own, "done".to_owned(), Some(own));
            }
        }
        assert!(summary.has_left(own));
        assert_eq!(summary.goodbyes.len(), GOODBYES_MAX);
        let sources: std::collections::BTreeSet<_> =
            summary.goodbyes.iter().map(|(ssrc, _)| ssrc.0).collect();
        assert_eq!(sources.len(), GOODBYES_MAX, "each once");
    }

    #[test]
    fn a_clock_that_shows_no_wall_time_has_no_latency() {
        let wall = NtpTime::from_unix(Duration::from_secs(1_700_000_000));
        let mapping =
            |ntp| ClockMapping { ntp, rtp: RtpTimestamp(0), clock_rate: ClockRate::VIDEO };
        let mut latency = Latency::default();
        latency.note(mapping(wall.plus(Duration::from_secs(290_601_014))), RtpTimestamp(0), wall);
        latency.note(mapping(NtpTime(7 << 32)), RtpTimestamp(0), wall);
        assert_eq!(latency.report(), json!({ "first_ms": null, "last_ms": null }));
        latency.note(mapping(wall), RtpTimestamp(9000), wall.plus(Duration::from_millis(350)));
        let report = latency.report();
        let first = report["first_ms"].as_f64().unwrap_or_default();
        assert!((first - 250.0).abs() < 0.01, "{report}");
    }
}
