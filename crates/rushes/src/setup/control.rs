//! Settings of RTCP, feedback and recovery.

use std::time::Duration;

use rushes_proto::rtcp::SdesKind;
use rushes_proto::timer::{FeedbackTiming, TimerConfig};
use rushes_proto::{PayloadType, Ssrc};

use super::builder::StreamBuilder;
use super::fec::Fec;

/// Minimum interval of complete reports while feedback may be sent at any time.
const REGULAR_INTERVAL: Duration = Duration::from_secs(1);

/// Time for which feedback is useful.
const FEEDBACK_DELAY: Duration = Duration::from_millis(500);

/// The way in which lost packets are requested and retransmitted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Recovery {
    /// Lost packets are not requested.
    #[default]
    Off,
    /// Retransmissions are sent in a separate stream (RFC 4588).
    ///
    /// The payload type is 223 minus the stream's, limited to 96..=127: 127 for 96, 126 for 97, and
    /// so on.
    On,
    /// Retransmissions are sent in a separate stream with this payload type.
    Rtx(PayloadType),
    /// Packets are repeated unchanged in their own stream, for peers that send NACKs but do not
    /// support RFC 4588.
    Verbatim,
}

impl Recovery {
    /// Returns the payload type of retransmissions of `media`.
    pub(crate) fn payload_type(self, media: PayloadType) -> Option<PayloadType> {
        match self {
            Self::Off | Self::Verbatim => None,
            Self::On => PayloadType::new(223_u8.wrapping_sub(media.value()).clamp(96, 127)),
            Self::Rtx(payload_type) => Some(payload_type),
        }
    }
}

/// The RTCP settings of a stream.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub(crate) struct ControlSettings {
    pub(crate) rtcp: bool,
    pub(crate) mux: bool,
    pub(crate) local_port: Option<u16>,
    pub(crate) remote_port: Option<u16>,
    pub(crate) bandwidth: u64,
    pub(crate) feedback: Option<bool>,
    pub(crate) reduced_size: bool,
    pub(crate) description: Vec<(SdesKind, String)>,
    pub(crate) recovery: Recovery,
    pub(crate) rtx_ssrc: Option<Ssrc>,
    pub(crate) remote_rtx_ssrc: Option<Ssrc>,
    pub(crate) fec: Option<Fec>,
    pub(crate) fec_ssrc: Option<Ssrc>,
    pub(crate) remote_fec_ssrc: Option<Ssrc>,
    pub(crate) arrivals: bool,
    pub(crate) history: usize,
    pub(crate) keep_alive: Option<Duration>,
}

impl Default for ControlSettings {
    fn default() -> Self {
        Self {
            rtcp: true,
            mux: false,
            local_port: None,
            remote_port: None,
            bandwidth: 10_000_000,
            feedback: None,
            reduced_size: false,
            description: Vec::new(),
            recovery: Recovery::Off,
            rtx_ssrc: None,
            remote_rtx_ssrc: None,
            fec: None,
            fec_ssrc: None,
            remote_fec_ssrc: None,
            arrivals: false,
            history: 4 << 20,
            keep_alive: None,
        }
    }
}

impl ControlSettings {
    /// Returns the timing of reports and feedback.
    pub(crate) fn timer(&self, multiparty: bool) -> TimerConfig {
        let feedback = self.feedback.unwrap_or(self.recovery != Recovery::Off || self.arrivals);
        TimerConfig {
            feedback: feedback.then_some(FeedbackTiming {
                regular_interval_min: REGULAR_INTERVAL,
                delay_max: FEEDBACK_DELAY,
            }),
            multiparty,
            ..TimerConfig::new(self.bandwidth)
        }
    }
}

impl StreamBuilder {
    /// Sets whether RTCP is sent and read; by default it is, on the port above the stream's.
    pub fn rtcp(mut self, on: bool) -> Self {
        self.control.rtcp = on;
        self
    }

    /// Sets whether RTCP shares the stream's port (RFC 5761); by default it does not. Both sides
    /// must agree.
    pub fn rtcp_mux(mut self, on: bool) -> Self {
        self.control.mux = on;
        self
    }

    /// Sets the local port for RTCP; by default the stream's port plus one.
    pub fn rtcp_local_port(mut self, port: u16) -> Self {
        self.control.local_port = Some(port);
        self
    }

    /// Sets the peer's port for RTCP; by default the port of its stream plus one.
    pub fn rtcp_remote_port(mut self, port: u16) -> Self {
        self.control.remote_port = Some(port);
        self
    }

    /// Sets the session's bandwidth in bits per second; RTCP takes at most 5 % of it (RFC 3550
    /// section 6.2). By default 10 Mbit/s. All participants should use the same value.
    pub fn session_bandwidth(mut self, bits_per_second: u64) -> Self {
        self.control.bandwidth = bits_per_second;
        self
    }

    /// Sets whether requests are sent at once (the profile AVPF, RFC 4585) rather than with the
    /// next report; by default only with [`recovery`](Self::recovery) or
    /// [`report_arrivals`](Self::report_arrivals).
    pub fn feedback(mut self, on: bool) -> Self {
        self.control.feedback = Some(on);
        self
    }

    /// Sets whether feedback may be sent without a preceding report in the datagram (RFC 5506);
    /// off by default. Both sides must agree.
    pub fn reduced_size(mut self, on: bool) -> Self {
        self.control.reduced_size = on;
        self
    }

    /// Sets an SDES item of this participant, sent in reports besides its canonical name: a name, a
    /// tool, a location (RFC 3550 section 6.5); at most 255 octets.
    pub fn describe(mut self, kind: SdesKind, text: &str) -> Self {
        self.control.description.push((kind, text.to_owned()));
        self
    }

    /// Sets whether lost packets are requested and retransmitted; off by default. Both sides
    /// must agree and need RTCP.
    ///
    /// A frame may then wait longer for a missing packet: see [`latency`](Self::latency). On a path
    /// without losses no additional packets are sent.
    pub fn recovery(mut self, recovery: Recovery) -> Self {
        self.control.recovery = recovery;
        self
    }

    /// Sets the SSRC of the retransmissions that the stream sends (RFC 4588), which must not be
    /// that of its media; random by default. Only with [`Recovery::On`] and [`Recovery::Rtx`].
    pub fn rtx_ssrc(mut self, ssrc: Ssrc) -> Self {
        self.control.rtx_ssrc = Some(ssrc);
        self
    }

    /// Accepts retransmissions only from this SSRC, which must differ from that of the media. By
    /// default any is accepted. Only with [`Recovery::On`] and [`Recovery::Rtx`].
    pub fn remote_rtx_ssrc(mut self, ssrc: Ssrc) -> Self {
        self.control.remote_rtx_ssrc = Some(ssrc);
        self
    }

    /// Sets whether the arrival and the ECN mark of each packet are reported to the sender
    /// (RFC 8888); off by default. The sender gets
    /// [`ControlEvent::Arrivals`](crate::ControlEvent::Arrivals), for its congestion controller.
    ///
    /// A report covers 16 packets, but is sent after 10 ms at the earliest and 40 ms at the latest;
    /// none if no packet has arrived, and fewer if RTCP's share of the
    /// [bandwidth](Self::session_bandwidth) is used up. Descriptions ask for these reports
    /// (`a=rtcp-fb:* ack ccfb`), and a stream that is opened from such a description sends them. On
    /// Linux, arrivals are the kernel's, which makes receiving 7 to 31 % dearer, measured on the bare
    /// socket. Retransmissions (RFC 4588) are not reported.
    pub fn report_arrivals(mut self, on: bool) -> Self {
        self.control.arrivals = on;
        self
    }

    /// Sets the octets of sent packets that are kept for retransmission, by default 4 MiB; only
    /// with [`recovery`](Self::recovery).
    pub fn history(mut self, octets: usize) -> Self {
        self.control.history = octets;
        self
    }

    /// Sends an empty datagram at once and whenever nothing was sent for `interval`, so that
    /// address translators keep the path to this end open (RFC 6263 section 4.1); by default never.
    /// It needs a remote port, and a thread that pulls or waits.
    pub fn keep_alive(mut self, interval: Duration) -> Self {
        // A year is practically unlimited, and does not overflow an `Instant`.
        let longest = Duration::from_secs(365 * 24 * 3600);
        self.control.keep_alive = Some(interval.clamp(Duration::from_millis(10), longest));
        self
    }
}
