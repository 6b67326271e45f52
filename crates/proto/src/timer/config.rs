//! Configuration of the RTCP timing rules.

use std::time::Duration;

/// The parameters that all participants of a session must agree on, and the limits of this one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimerConfig {
    /// Session bandwidth in bit/s, including UDP and IP headers (RFC 3550 section 6.2).
    ///
    /// With 0, RTCP is off: no packet is ever due.
    pub bandwidth: u64,
    /// RTCP's share of the session bandwidth, 0..=1; default 0.05.
    ///
    /// With explicit bandwidths S for senders and R for receivers it is (S + R) / `bandwidth`.
    pub rtcp_share: f64,
    /// The senders' share of the RTCP bandwidth while there are few senders, 0..=1; default 0.25.
    ///
    /// With explicit bandwidths it is S / (S + R); 1 turns off the reports of receivers.
    pub sender_share: f64,
    /// The lower bound of the calculated interval, and the basis of every time-out; default 5 s.
    ///
    /// With [`feedback`](Self::feedback) it applies to the time-outs only.
    pub interval_min: Duration,
    /// Whether the minimum is reduced to 360 s / (`bandwidth` in kbit/s); default `false`.
    ///
    /// In a multiparty session, this applies to senders only (RFC 3550 section 6.2).
    pub reduced_minimum: bool,
    /// Whether more than two endpoints take part (RFC 8108 section 5.4.2); default `false`.
    pub multiparty: bool,
    /// Maximum number of members that are counted, at least 1; default 4096. In a larger session
    /// RTCP takes more than its share of the bandwidth.
    pub members_max: usize,
    /// The probable length of the first compound packet, in octets with UDP and IP headers;
    /// default 120.
    pub packet_len: usize,
    /// The timing rules of RTP/AVPF (RFC 4585 section 3.5); `None`, the default, is RTP/AVP.
    pub feedback: Option<FeedbackTiming>,
}

impl TimerConfig {
    /// Returns the defaults of RFC 3550 for a session of `bandwidth` bit/s.
    pub fn new(bandwidth: u64) -> Self {
        Self {
            bandwidth,
            rtcp_share: 0.05,
            sender_share: 0.25,
            interval_min: Duration::from_secs(5),
            reduced_minimum: false,
            multiparty: false,
            members_max: 4096,
            packet_len: 120,
            feedback: None,
        }
    }

    /// Clamps shares to 0..=1 and replaces NaN by the default.
    pub(super) fn in_range(mut self) -> Self {
        let within =
            |share: f64, default| if share.is_nan() { default } else { share.clamp(0.0, 1.0) };
        self.rtcp_share = within(self.rtcp_share, 0.05);
        self.sender_share = within(self.sender_share, 0.25);
        self.members_max = self.members_max.max(1);
        self
    }
}

/// The parameters of early feedback (RFC 4585 section 3.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FeedbackTiming {
    /// `T_rr_interval`: the minimum mean time between regular reports, `trr-int` in SDP; 0 is off.
    pub regular_interval_min: Duration,
    /// `T_max_fb_delay`: feedback that would be sent later than this after its event is useless.
    pub delay_max: Duration,
}
