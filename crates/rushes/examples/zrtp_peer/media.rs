//! Media under the keys agreed on by ZRTP.

use std::error::Error;
use std::time::{Duration, Instant};

use rushes::zrtp::StreamKeys;
use rushes_proto::srtp::{
    MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite, Unprotector,
};

use super::wire::Wire;

/// The interval between the requested packets.
const QUICK: Duration = Duration::from_millis(10);
/// The interval between later packets, for a peer that obtains its keys late.
const SLOW: Duration = Duration::from_millis(50);

/// Packets sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) sent: u32,
    pub(crate) ok: u32,
    pub(crate) bad: u32,
    pub(crate) rtcp_ok: u32,
    pub(crate) rtcp_bad: u32,
}

/// One stream's media.
pub(crate) struct Media {
    ssrc: u32,
    protector: Protector,
    unprotector: Unprotector,
    rtcp_protector: SrtcpProtector,
    rtcp_unprotector: SrtcpUnprotector,
    next: Option<Instant>,
    pub(crate) counters: Counters,
}

impl Media {
    pub(crate) fn new(ssrc: u32, keys: &StreamKeys) -> Result<Self, Box<dyn Error>> {
        let suite: Suite = keys.suite.parse()?;
        let policy = Policy::new(suite);
        let (send, receive) =
            (MasterKey::new(suite, &keys.send)?, MasterKey::new(suite, &keys.receive)?);
        Ok(Self {
            ssrc,
            protector: Protector::new(&policy, &send)?,
            unprotector: Unprotector::new(&policy, &receive)?,
            rtcp_protector: SrtcpProtector::new(&policy, &send)?,
            rtcp_unprotector: SrtcpUnprotector::new(&policy, &receive)?,
            next: None,
            counters: Counters::default(),
        })
    }

    /// Sends a packet if one is due, the first `many` of them quickly.
    pub(crate) fn send(&mut self, now: Instant, many: u32, wire: &Wire) {
        if self.next.is_some_and(|next| next > now) {
            return;
        }
        let n = self.counters.sent;
        self.next = Some(now + if n < many { QUICK } else { SLOW });
        let mut packet = vec![0x80, 96];
        packet.extend_from_slice(&(1000_u16.wrapping_add(n as u16)).to_be_bytes());
        packet.extend_from_slice(&(90_000_u32.wrapping_add(n.wrapping_mul(3000))).to_be_bytes());
        packet.extend_from_slice(&self.ssrc.to_be_bytes());
        packet.extend_from_slice(format!("packet {n}").as_bytes());
        if self.protector.protect(&mut packet).is_ok() {
            wire.send(&packet);
            self.counters.sent += 1;
        }
        if n == 0 {
            // The report is an empty receiver report.
            let mut report = vec![0x80, 201, 0, 1];
            report.extend_from_slice(&self.ssrc.to_be_bytes());
            if self.rtcp_protector.protect(&mut report).is_ok() {
                wire.send(&report);
            }
        }
    }

    /// Handles a datagram that is not ZRTP; returns `true` if it is authentic.
    pub(crate) fn receive(&mut self, datagram: &mut [u8]) -> bool {
        let is_rtcp = datagram.get(1).is_some_and(|kind| (192..=223).contains(kind));
        let is_authentic = if is_rtcp {
            self.rtcp_unprotector.unprotect(datagram).is_ok()
        } else {
            self.unprotector.unprotect(datagram).is_ok()
        };
        let counters = &mut self.counters;
        let counter = match (is_rtcp, is_authentic) {
            (false, true) => &mut counters.ok,
            (false, false) => &mut counters.bad,
            (true, true) => &mut counters.rtcp_ok,
            (true, false) => &mut counters.rtcp_bad,
        };
        *counter += 1;
        is_authentic
    }
}
