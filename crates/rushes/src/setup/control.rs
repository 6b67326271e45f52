//! Settings of RTCP, feedback and recovery.

use std::time::Duration;

use rushes_proto::rate::RateSettings;
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
    pub(crate) wide_arrivals: bool,
    pub(crate) rate: Option<RateSettings>,
    pub(crate) rate_priority: u8,
    pub(crate) circuit_breakers: bool,
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
            wide_arrivals: false,
            rate: None,
            rate_priority: 1,
            circuit_breakers: true,
            history: 4 << 20,
            keep_alive: None,
        }
    }
}

impl ControlSettings {
    /// Returns whether circuit breakers watch the stream. They are for unicast sessions (RFC 8083
    /// section 2), and for streams without rate control.
    pub(crate) fn breaks(&self, in_group: bool) -> bool {
        self.circuit_breakers && !in_group && self.rate.is_none()
    }

    /// Returns the timing of reports and feedback.
    pub(crate) fn timer(&self, multiparty: bool) -> TimerConfig {
        let reports = self.arrivals || self.wide_arrivals;
        let feedback = self.feedback.unwrap_or(self.recovery != Recovery::Off || reports);
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
    /// Linux, arrivals are the kernel's, which makes receiving 7 to 31 % slower, measured on the bare
    /// socket. Retransmissions (RFC 4588) are not reported.
    pub fn report_arrivals(mut self, on: bool) -> Self {
        self.control.arrivals = on;
        self
    }

    /// Sets whether the arrival of each packet is reported to the sender by its transport-wide
    /// sequence number, as browsers and their servers do ("TWCC",
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01); off by default.
    ///
    /// The packets must carry that element of header extensions
    /// ([`ExtensionKind::TransportSequence`](crate::ExtensionKind)). One report covers all streams of
    /// the port, retransmissions and repair packets too; its interval is that of
    /// [`report_arrivals`](Self::report_arrivals). It has no ECN marks: if both are set, only those of
    /// RFC 8888 are sent. A stream that is opened from a description sends these reports if it asks
    /// for them (`a=rtcp-fb:96 transport-cc`) and not for the others.
    ///
    /// [`open`](Self::open) fails with [`Error::NoTransportSequence`](crate::Error) if the element
    /// was not agreed on.
    pub fn report_transport_wide(mut self, on: bool) -> Self {
        self.control.wide_arrivals = on;
        self
    }

    /// Controls the rate of what the stream sends: `SCReAM` version 2 finds how much the path
    /// carries, with little delay in its queues, and the encoder follows its target. Off by default.
    ///
    /// The settings are bit rates of media and its [repair packets](Self::fec), in bits per second.
    /// [`Rtcp::target_rate`] is the target at any time, less what repair packets take but no less than
    /// the minimum, and each change of it by 1 % an event
    /// ([`ControlEvent::TargetRate`](crate::ControlEvent::TargetRate)). Packets are paced by the
    /// controller instead of [`pacing`](Self::pacing), in [bursts](Self::burst) of 2 ms, so that a
    /// frame above the target takes longer to send; none is dropped.
    ///
    /// The peer must [report arrivals](Self::report_arrivals); descriptions ask for it. With
    /// [transport-wide numbers](crate::ExtensionKind::TransportSequence) among the
    /// [extensions](Self::extensions), descriptions ask for reports by them, too, and the controller
    /// follows whichever the peer sends: if both, those of RFC 8888, which have marks. Without any
    /// report the target is halved after a second, and again after each further one, to the minimum
    /// ([`ControlEvent::NotReported`](crate::ControlEvent::NotReported)). Reports of arrivals
    /// are then no events. Anyone who can forge the peer's address can forge reports, and so the
    /// target within its limits, unless the stream is [secured](Self::security).
    ///
    /// Streams of a session share one controller: see [`rate_priority`](Self::rate_priority).
    /// Packets are sent as [ECT(0)](RateSettings::ecn) or [ECT(1)](RateSettings::l4s) if the
    /// settings say so, on sockets that the stream opens. A path that removes these marks does no
    /// harm: delays and losses still count. A path that drops marked packets carries nothing.
    ///
    /// ```
    /// use rushes::{Codec, Context, RateSettings};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = Context::new().session("127.0.0.1")?;
    /// let monitor = session.stream(Codec::H264).report_arrivals(true).open()?;
    /// let port = monitor.local_address().port();
    /// // From 300 kbit/s to 8 Mbit/s, at first 1 Mbit/s.
    /// let rates = RateSettings::new(300_000, 1_000_000, 8_000_000)?;
    /// let camera = session.stream(Codec::H264).remote_port(port).rate_control(rates).open()?;
    /// assert_eq!(camera.rtcp().target_rate(), Some(1_000_000));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// [`open`](Self::open) fails with [`Error::NoRtcp`](crate::Error::NoRtcp) without RTCP, and with
    /// [`Error::RateOfGroup`](crate::Error::RateOfGroup) if the peer is a multicast group.
    ///
    /// [`Rtcp::target_rate`]: crate::Rtcp::target_rate
    pub fn rate_control(mut self, settings: RateSettings) -> Self {
        self.control.rate = Some(settings);
        self
    }

    /// Sets the stream's weight among the streams of its session with
    /// [rate control](Self::rate_control), at least 1, by default 1.
    ///
    /// The target of the path is divided by weight: with 1 and 2, the second stream gets two thirds.
    /// What a stream does not get because of its maximum, or because it has sent nothing for a
    /// second, is divided among the others, and a minimum is taken from them. The path's limits are
    /// the sums of the streams'.
    ///
    /// [`open`](Self::open) fails with [`Error::RatePriority`](crate::Error::RatePriority) if it is
    /// 0.
    pub fn rate_priority(mut self, weight: u8) -> Self {
        self.control.rate_priority = weight;
        self
    }

    /// Sets whether the circuit breakers of RFC 8083 watch the stream; by default they do, unless the
    /// peer is a multicast group.
    ///
    /// They are a last resort: sending stops if the receiver's reports stop, if they show that no
    /// packet arrives, or if so many are lost that TCP would send less than a tenth, in each case for
    /// 15 s or more. A [`ControlEvent::CircuitBreaker`](crate::ControlEvent) says why;
    /// [`push_frame`](crate::MediaStream::push_frame) then returns
    /// [`Error::CircuitBreaker`](crate::Error) until [`resume`](crate::StreamSender::resume) succeeds.
    /// A receiver that never reports, as some players, or that has left with a BYE, stops nothing.
    ///
    /// Turn them off only where the network is reserved for the stream, or its losses are known not
    /// to come from congestion.
    pub fn circuit_breakers(mut self, on: bool) -> Self {
        self.control.circuit_breakers = on;
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
