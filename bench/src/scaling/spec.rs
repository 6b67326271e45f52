//! The specification of a run, and the reports of its ends.

use rushes::SendPath;
use serde::{Deserialize, Serialize};

/// Octets in the IPv4 and UDP headers.
pub(crate) const IP_UDP_LEN: usize = 28;

/// Octets of the Ethernet header, which is included in a link's rate here.
pub(crate) const ETHERNET_LEN: usize = 14;

/// Octets of the headers of RTP and of an H.265 fragment in a packet.
const RTP_LEN: usize = 12 + 3;

/// The access units of a stream: an intra-coded one, then others, repeated.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Units {
    /// Octets of an access unit, on average.
    pub(crate) mean: usize,
    /// Access units from one intra-coded one to the next.
    pub(crate) group: u64,
    /// How many times as large as others an intra-coded access unit is.
    pub(crate) intra: usize,
}

impl Units {
    /// Access units of equal size.
    pub(crate) fn flat(len: usize) -> Self {
        Self { mean: len, group: 1, intra: 1 }
    }

    /// Octets of unit `n`.
    pub(crate) fn len(&self, n: u64) -> usize {
        let group = usize::try_from(self.group).unwrap_or(1);
        let other = self.mean * group / (group - 1 + self.intra);
        if n.is_multiple_of(self.group) { other * self.intra } else { other }
    }

    /// Octets of a unit on the wire, on average, Ethernet headers included.
    pub(crate) fn wire_len(&self, mtu: usize) -> f64 {
        let packets = self.mean as f64 / (mtu - IP_UDP_LEN - RTP_LEN) as f64;
        self.mean as f64 + packets * (ETHERNET_LEN + IP_UDP_LEN + RTP_LEN) as f64
    }
}

/// The times at which access units are sent.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Clock {
    /// As fast as the receiver acknowledges them: nothing is lost.
    Window,
    /// At a fixed rate per second, without acknowledgements.
    Steady(f64, Spread),
}

/// The spread of an access unit over time.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Spread {
    /// Not at all.
    Burst,
    /// Over half of the time until the next one.
    Half,
    /// At a rate in bits of UDP payload per second.
    Rate(u64),
}

/// One run of one way of sending.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Spec {
    /// The addresses of the receiver and the sender.
    pub(crate) host: String,
    pub(crate) sender: String,
    pub(crate) streams: usize,
    pub(crate) units: Units,
    /// Access units of each stream.
    pub(crate) frames: u64,
    /// Maximum length of an IP packet, in octets.
    pub(crate) mtu: usize,
    /// Octets of each socket's buffers.
    pub(crate) buffer: usize,
    /// Bare sockets, without RTP.
    pub(crate) bare: bool,
    /// Whether each batch is one message, instead of one message for each packet (`sendmmsg`).
    pub(crate) segmented: bool,
    pub(crate) clock: Clock,
    /// The ports of the receiver's streams; empty for the receiver itself.
    pub(crate) ports: Vec<u16>,
}

impl Spec {
    /// One stream on this host's loopback, as fast as possible.
    pub(crate) fn new(units: Units, frames: u64) -> Self {
        let local = "127.0.0.1".to_owned();
        Self {
            host: local.clone(),
            sender: local,
            streams: 1,
            units,
            frames,
            mtu: 1500,
            buffer: 4 << 20,
            bare: false,
            segmented: true,
            clock: Clock::Window,
            ports: Vec::new(),
        }
    }

    pub(crate) fn send_path(&self) -> SendPath {
        if self.segmented { SendPath::Gso } else { SendPath::Sendmmsg }
    }

    /// Access units of all streams.
    pub(crate) fn offered(&self) -> u64 {
        self.frames * self.streams as u64
    }
}

/// The report of an end on a run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Report {
    /// Access units sent, or received complete.
    pub(crate) frames: u64,
    /// Octets in them.
    pub(crate) octets: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// Octets passed to the kernel, including headers down to Ethernet's.
    pub(crate) wire_octets: u64,
    /// Messages dropped because the socket's buffer was full.
    pub(crate) socket_drops: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_their_size_on_average() {
        for units in [Units::flat(667_000), Units { mean: 667_000, group: 8, intra: 4 }] {
            let sum: usize = (0..16).map(|n| units.len(n)).sum();
            assert!(sum.abs_diff(16 * 667_000) < 100, "{sum}");
        }
        let units = Units { mean: 667_000, group: 8, intra: 4 };
        assert_eq!(units.len(8), 4 * units.len(9));
        assert!((Units::flat(1457).wire_len(1500) - 1514.0).abs() < 1e-9);
    }
}
