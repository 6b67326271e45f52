//! RTCP received from peers, counted for the report at the end.

use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rushes::{CaptureTime, ClockMapping, ControlEvent, Frame, MediaStream, NtpTime, Ssrc};
use serde_json::{Value, json};

use crate::interrupt::Interrupt;
use crate::latency::Latencies;
use crate::metrics::RTCP;
use crate::report::counted;
use crate::{metrics, security};

/// Interval at which the sender's clock mapping is read and the shortest latency is reset.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// A capture further from its delivery than this was by a clock that is not set, or that counts from elsewhere.
const CLOCK_ERROR: Duration = Duration::from_secs(30);

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
    /// Of all frames; a capture in the future counts as 0.
    all: Latencies,
    /// The number of frames that were captured in the future, as those of a file that are sent
    /// before they are presented.
    ahead: u64,
    /// The frames that carry their capture time themselves.
    carried: u64,
}

impl Latency {
    /// Measures a frame that has just arrived; returns its latency in seconds if it is known.
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
        let carried = frame.capture_time().map(CaptureTime::by_sender);
        self.carried += u64::from(carried.is_some());
        let captured = carried.or_else(|| Some(self.mapping?.to_ntp(frame.timestamp())))?;
        self.note(captured, NtpTime::from_unix(wall))
    }

    /// Measures a frame that was `captured` by the sender's clock and arrived at `now`. Does nothing
    /// if the sender's clock is far from ours, thus no wall clock: the latency is unknown then.
    fn note(&mut self, captured: NtpTime, now: NtpTime) -> Option<f64> {
        let nanos = now.nanos_since(captured);
        if u128::from(nanos.unsigned_abs()) >= CLOCK_ERROR.as_nanos() {
            return None;
        }
        self.all.count(Duration::from_nanos(u64::try_from(nanos).unwrap_or(0)));
        self.ahead += u64::from(nanos < 0);
        let latency = nanos as f64 / 1e9;
        self.shortest = Some(self.shortest.map_or(latency, |shortest| shortest.min(latency)));
        Some(latency)
    }

    fn end_interval(&mut self) {
        if let Some(shortest) = self.shortest.take() {
            self.first.get_or_insert(shortest);
            self.last = Some(shortest);
        }
    }

    /// Returns the shortest latency in the first and in the last second, and those that half and
    /// 99 % of the frames did not exceed, as JSON; `null` if unknown.
    pub(crate) fn report(&mut self) -> Value {
        self.end_interval();
        let [p50, p99, most] = self
            .quantiles()
            .map_or([None; 3], |all| all.map(|latency| Some(latency.as_secs_f64() * 1e3)));
        json!({
            "first_ms": self.first.map(|s| s * 1e3),
            "last_ms": self.last.map(|s| s * 1e3),
            "frames": self.all.total(),
            "frames_with_capture_time": self.carried,
            "frames_before_capture": self.ahead,
            "p50_ms": p50,
            "p99_ms": p99,
            "most_ms": most,
        })
    }

    /// Returns a summary of one line; empty if the latency is unknown, or if most frames arrived
    /// before they were captured.
    pub(crate) fn text(&self) -> String {
        let quantiles = self.quantiles().filter(|_| self.ahead * 2 <= self.all.total());
        let Some(all) = quantiles else { return String::new() };
        let [p50, p99, most] = all.map(|latency| latency.as_secs_f64() * 1e3);
        format!(
            "capture to delivery: {p50:.1} / {p99:.1} / {most:.1} ms (p50 / p99 / most), by the \
             sender's clock"
        )
    }

    /// Returns the latencies that half and 99 % of the frames did not exceed, and the longest.
    fn quantiles(&self) -> Option<[Duration; 3]> {
        let all = [self.all.quantile(0.5), self.all.quantile(0.99), self.all.most()];
        (self.all.total() > 0).then_some(all)
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
    /// Returns how many key frames were requested so far.
    pub(crate) fn key_frames(&self) -> u64 {
        self.key_frames
    }

    /// Handles the events received so far. Keeps the goodbye of the source being `written`, even if
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
                ControlEvent::NotReported => eprintln!(
                    "rushes: the receiver does not report arrivals, which --max-rate needs: start it \
                     with recv --report-arrivals, or by the description of --sdp"
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

    /// Waits until every reporting peer has reported on the last packet or has left; at most for a
    /// second, or until Ctrl-C.
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

    /// Returns whether a peer has reported.
    pub(crate) fn has_reports(&self) -> bool {
        self.reports > 0 || !self.goodbyes.is_empty()
    }

    /// Keeps only the goodbyes, without that of the source that was `written`, for the next file.
    pub(crate) fn without(mut self, written: Option<Ssrc>) -> Self {
        self.goodbyes.retain(|(ssrc, _)| Some(*ssrc) != written);
        Self { goodbyes: self.goodbyes, ..Self::default() }
    }

    /// Returns whether `source` has sent a goodbye.
    pub(crate) fn has_left(&self, source: Ssrc) -> bool {
        self.goodbyes.iter().any(|(ssrc, _)| *ssrc == source)
    }

    /// Returns the counters and the state of the peers, as JSON.
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

    /// Returns a one-line summary; empty if nothing was received.
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

/// Returns the number of packets that `source` has sent by its own count, if it has sent a goodbye.
pub(crate) fn sent_by(stream: &MediaStream, source: Ssrc) -> Option<u64> {
    let peers = stream.rtcp().peers();
    let peer = peers.into_iter().find(|peer| peer.ssrc == source && peer.left)?;
    peer.sender.map(|sender| sender.packets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let mut latency = Latency::default();
        latency.note(wall.plus(Duration::from_secs(290_601_014)), wall);
        latency.note(NtpTime(7 << 32), wall);
        latency.note(wall, wall.plus(Duration::from_secs(60)));
        let report = latency.report();
        assert_eq!((&report["first_ms"], &report["p50_ms"]), (&Value::Null, &Value::Null));
        assert_eq!(latency.text(), "");
        latency.note(wall, wall.plus(Duration::from_millis(250)));
        latency.note(wall.plus(Duration::from_millis(1)), wall);
        let report = latency.report();
        assert_eq!((&report["frames"], &report["p50_ms"]), (&json!(2), &json!(0.0)));
        assert_eq!(report["most_ms"], json!(250.0));
        assert!(latency.text().contains(" 0.0 / 250.0 / 250.0 ms"), "{}", latency.text());
        // As of a film with B-pictures.
        latency.note(wall.plus(Duration::from_millis(66)), wall);
        assert_eq!(latency.report()["frames_before_capture"], json!(2));
        assert_eq!(latency.text(), "");
    }
}
