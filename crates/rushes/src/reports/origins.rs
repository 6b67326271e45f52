//! The addresses from which media sources report.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_proto::Ssrc;
use rushes_proto::rtcp::{Compound, Packet};

/// The silence of a source at one address after which its reports may come from another port: five
/// of the shortest regular intervals (RFC 3550 section 6.3.5).
const MOVE_AFTER: Duration = Duration::from_secs(25);

/// Maximum number of sources remembered; more than a receiver follows. The oldest is replaced.
const SOURCES_MAX: usize = 64;

/// The address from which one source reports.
#[derive(Debug)]
struct Origin {
    ssrc: Ssrc,
    address: SocketAddr,
    last_report: Instant,
}

/// The addresses from which media sources report (RFC 3550 section 8.2): reports from elsewhere are
/// accepted only if they are authenticated.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    list: Vec<Origin>,
}

impl Origins {
    /// Returns whether a report of `ssrc` that arrived from `from` at `now` is the source's own.
    /// `expected` is the RTCP address derived from that of its media.
    ///
    /// Another host is never admitted. Another port of the same host is admitted until the source
    /// reports from the expected one, since some senders use a separate socket for RTCP.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        ssrc: Ssrc,
        expected: SocketAddr,
        from: SocketAddr,
    ) -> bool {
        if from.ip() != expected.ip() {
            return false;
        }
        let origin = Origin { ssrc, address: from, last_report: now };
        let Some(n) = self.list.iter().position(|known| known.ssrc == ssrc) else {
            if self.list.len() >= SOURCES_MAX {
                self.list.remove(0);
            }
            self.list.push(origin);
            return true;
        };
        let known = &mut self.list[n];
        let is_silent = now.saturating_duration_since(known.last_report) >= MOVE_AFTER;
        let is_own = from == expected || from == known.address || is_silent;
        if is_own {
            *known = origin;
        }
        is_own
    }

    /// Forgets a source that has left: it may return from another address.
    pub(crate) fn forget(&mut self, ssrc: Ssrc) {
        self.list.retain(|known| known.ssrc != ssrc);
    }
}

/// Returns whether `is_accepted` returns `true` for every participant that an RTCP datagram reports
/// for.
///
/// Feedback is exempt: some peers write the SSRC of the media there.
pub(crate) fn all_reporters(datagram: &[u8], mut is_accepted: impl FnMut(Ssrc) -> bool) -> bool {
    let Ok(compound) = Compound::parse(datagram) else { return true };
    compound.packets().flatten().all(|packet| match packet {
        Packet::SenderReport(report) => is_accepted(report.ssrc()),
        Packet::ReceiverReport(report) => is_accepted(report.ssrc()),
        Packet::ExtendedReport(report) => is_accepted(report.ssrc()),
        Packet::App(app) => is_accepted(app.ssrc()),
        Packet::SourceDescription(description) => {
            description.chunks().all(|chunk| is_accepted(chunk.ssrc()))
        }
        Packet::Bye(bye) => bye.sources().all(&mut is_accepted),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAMERA: Ssrc = Ssrc(7);

    fn address(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    #[test]
    fn reports_for_a_source_from_another_host_are_refused() {
        let (now, mut origins) = (Instant::now(), Origins::default());
        assert!(!origins.admit(now, CAMERA, address(1, 5005), address(2, 5005)));
        assert!(origins.admit(now, CAMERA, address(1, 5005), address(1, 5005)));
        let later = now + MOVE_AFTER * 2;
        assert!(!origins.admit(later, CAMERA, address(1, 5005), address(2, 5005)));
    }

    #[test]
    fn a_source_may_report_from_a_port_of_its_own_and_keeps_to_it() {
        let (now, mut origins) = (Instant::now(), Origins::default());
        assert!(origins.admit(now, CAMERA, address(1, 5005), address(1, 40_000)));
        assert!(!origins.admit(now, CAMERA, address(1, 5005), address(1, 40_001)));
        assert!(origins.admit(now, CAMERA, address(1, 5005), address(1, 40_000)));
        // The expected port is always accepted, and from then on no other.
        assert!(origins.admit(now, CAMERA, address(1, 5005), address(1, 5005)));
        assert!(!origins.admit(now, CAMERA, address(1, 5005), address(1, 40_000)));
        assert!(origins.admit(now + MOVE_AFTER, CAMERA, address(1, 5005), address(1, 40_000)));
        origins.forget(CAMERA);
        assert!(origins.admit(now + MOVE_AFTER, CAMERA, address(1, 5005), address(1, 40_001)));
    }

    #[test]
    fn a_thousand_sources_take_no_more_room_than_there_is() {
        let (now, mut origins) = (Instant::now(), Origins::default());
        for ssrc in 0..1000 {
            assert!(origins.admit(now, Ssrc(ssrc), address(1, 5005), address(1, 5005)));
        }
        assert_eq!(origins.list.len(), SOURCES_MAX);
    }
}
