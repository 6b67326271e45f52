//! The specification of a run.

use anyhow::{Context as _, anyhow};
use rushes::{Codec, ReceivePath, SendPath, Suite};
use serde::{Deserialize, Serialize};

use crate::sequence::Origin;

/// Octets in the IPv4 and UDP headers.
pub(crate) const IP_UDP_LEN: usize = 28;

/// Octets of the Ethernet header, which is included in a link's rate here.
pub(crate) const ETHERNET_LEN: usize = 14;

/// The path of datagrams to and from the kernel.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) enum Path {
    /// Segmented and coalesced: each batch is one message.
    Gso,
    /// A message for each packet, many in one system call.
    Sendmmsg,
    /// A system call for each packet.
    Single,
}

impl Path {
    pub(crate) const ALL: [Self; 3] = [Self::Gso, Self::Sendmmsg, Self::Single];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gso => "gso/gro",
            Self::Sendmmsg => "sendmmsg/recvmmsg",
            Self::Single => "one by one",
        }
    }

    pub(super) fn send(self) -> SendPath {
        match self {
            Self::Gso => SendPath::Gso,
            Self::Sendmmsg => SendPath::Sendmmsg,
            Self::Single => SendPath::Single,
        }
    }

    pub(super) fn receive(self) -> ReceivePath {
        match self {
            Self::Gso => ReceivePath::Gro,
            Self::Sendmmsg => ReceivePath::Recvmmsg,
            Self::Single => ReceivePath::Single,
        }
    }
}

/// The times at which access units are sent.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) enum Clock {
    /// As fast as the receiver acknowledges them: a bounded number is in transit and nothing is
    /// lost.
    Window,
    /// At a fixed rate per second, without acknowledgements.
    Steady(f64, Spread),
}

/// The spread of an access unit over time.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Spread {
    /// Not at all.
    Burst,
    /// As the library does by default: over 0.9 of the time until the next one.
    Default,
    /// At a rate in bits of UDP payload per second.
    Rate(u64),
}

/// One run of one way of sending.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent")]
pub(crate) struct Spec {
    /// The addresses of the receiver and the sender.
    pub(crate) host: String,
    pub(crate) sender: String,
    /// The name of the codec of the access units.
    pub(crate) codec: String,
    pub(crate) origin: Origin,
    pub(crate) streams: usize,
    /// Access units of each stream.
    pub(crate) frames: u64,
    pub(crate) clock: Clock,
    pub(crate) path: Path,
    /// Bare sockets, without RTP: the kernel's limit.
    pub(crate) bare: bool,
    /// The name of the suite that packets are secured with, if any.
    pub(crate) suite: Option<String>,
    /// What may be added so that packets have one length, in thousandths; `None` for the default.
    pub(crate) padding_limit: Option<u16>,
    /// Whether lost packets are requested and sent again.
    pub(crate) recovery: bool,
    /// Maximum length of an IP packet, in octets.
    pub(crate) mtu: usize,
    /// Octets of the buffers of the sender's and the receiver's sockets.
    pub(crate) buffers: [usize; 2],
    /// Whether packets after the last access unit reveal losses at the end.
    pub(crate) keep_alive: bool,
    /// Whether each end has half of the cores, instead of one.
    pub(crate) halves: bool,
    /// The ports of the receiver's streams; empty for the receiver itself.
    pub(crate) ports: Vec<u16>,
}

impl Spec {
    /// Creates the specification of one stream on loopback in the clear, as fast as possible.
    pub(crate) fn new(codec: Codec, origin: Origin, frames: u64) -> Self {
        let local = "127.0.0.1".to_owned();
        Self {
            host: local.clone(),
            sender: local,
            codec: codec.name.to_owned(),
            origin,
            streams: 1,
            frames,
            clock: Clock::Window,
            path: Path::Gso,
            bare: false,
            suite: None,
            padding_limit: None,
            recovery: false,
            mtu: 1500,
            buffers: [4 << 20; 2],
            keep_alive: false,
            halves: false,
            ports: Vec::new(),
        }
    }

    /// Returns the specification with the streams secured by `suite`, if any.
    pub(crate) fn secured(self, suite: Option<Suite>) -> Self {
        Self { suite: suite.map(|suite| suite.name().to_owned()), ..self }
    }

    pub(super) fn codec(&self) -> anyhow::Result<Codec> {
        Codec::named(&self.codec).with_context(|| format!("no codec is named {:?}", self.codec))
    }

    pub(super) fn suite(&self) -> anyhow::Result<Option<Suite>> {
        let suite = self.suite.as_deref().map(str::parse).transpose();
        suite.map_err(|_| anyhow!("no suite is named {:?}", self.suite))
    }

    /// Returns the access units per second, if they are sent at a fixed rate.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.clock {
            Clock::Window => None,
            Clock::Steady(rate, _) => Some(rate),
        }
    }
}
