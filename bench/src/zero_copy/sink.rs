//! A device that discards all packets, in a network namespace.

use std::fs::File;
use std::os::fd::AsFd;

use anyhow::Context as _;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;

use crate::hosts::{Namespace, ip};

/// Addresses reserved for benchmarks (RFC 2544).
pub(super) const NEAR: &str = "198.18.0.1";
pub(super) const FAR: &str = "198.18.0.2";

const DEVICE: &str = "sink0";

pub(super) struct Sink(Namespace);

impl Sink {
    pub(super) fn new() -> anyhow::Result<Self> {
        let name = Namespace::add(format!("rushes-sink-{}", std::process::id()))?;
        let add = |kind| ip(&format!("-n {name} link add {DEVICE} type {kind}"));
        add("ifb").or_else(|_| add("dummy"))?;
        ip(&format!("-n {name} address add {NEAR}/15 dev {DEVICE}"))?;
        ip(&format!("-n {name} link set {DEVICE} arp off up"))?;
        Ok(Self(name))
    }

    /// Moves this thread into the namespace permanently.
    pub(super) fn enter(&self) -> anyhow::Result<()> {
        let path = format!("/run/netns/{}", self.0);
        let file = File::open(&path).with_context(|| format!("cannot open {path}"))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .with_context(|| format!("cannot enter {path}"))
    }

    /// Messages that the device has discarded.
    pub(super) fn messages(&self) -> anyhow::Result<u64> {
        let text = ip(&format!("-n {} -j -s link show dev {DEVICE}", self.0))?;
        let links: Value = serde_json::from_slice(&text)?;
        let count = |way: &str, what: &str| links[0]["stats64"][way][what].as_u64().unwrap_or(0);
        // An `ifb` counts them as dropped, a `dummy` as sent.
        Ok(count("tx", "packets").max(count("rx", "dropped")))
    }
}
