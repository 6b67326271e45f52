//! The results of one run: one way of moving a sequence, at one rate.

/// The separate results of sender and receiver. Times are those of the receiver, from the first
/// octet to the last, unless only the sender was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trial {
    /// Access units to be sent.
    pub(crate) offered: u64,
    /// Access units that arrived complete.
    pub(crate) whole: u64,
    /// Octets of the access units that arrived complete, without headers of RTP and lower layers.
    pub(crate) octets: u64,
    pub(crate) seconds: f64,
    /// Access units per second that the sender reached, if it reports this.
    pub(crate) sent_rate: Option<f64>,
    /// CPU seconds of the sender, user and system; `None` where that half was not measured.
    pub(crate) send_cpu: Option<f64>,
    pub(crate) receive_cpu: Option<f64>,
}

impl Trial {
    /// Share of the access units that did not arrive complete, 0 to 1.
    pub(crate) fn loss(&self) -> f64 {
        1.0 - self.whole as f64 / self.offered.max(1) as f64
    }

    /// Payload of complete access units, in Gbit/s.
    pub(crate) fn gigabits(&self) -> f64 {
        self.octets as f64 * 8e-9 / self.seconds.max(1e-9)
    }
}
