//! Where the reports of each media source come from.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rushes_proto::Ssrc;
use rushes_proto::rtcp::{Compound, Packet};

/// How long a source must be silent at one address before its reports may come from another port:
/// five of the shortest regular intervals (RFC 3550 section 6.3.5).
const MOVE_AFTER: Duration = Duration::from_secs(25);

/// Sources remembered; more than a receiver follows. The oldest gives way.
const SOURCES_MAX: usize = 64;

/// The address from which one source reports.
#[derive(Debug)]
struct Origin {
    ssrc: Ssrc,
    address: SocketAddr,
    heard: Instant,
}

/// The addresses from which media sources report (RFC 3550 section 8.2): reports from elsewhere
/// count only if they are authentic.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    list: Vec<Origin>,
}

impl Origins {
    /// Whether a report of `ssrc` that came from `from` at `now` is the source's own. `expected` is
    /// the address that its media suggests.
    ///
    /// Another host is never admitted. Another port of the same host is, until the source reports
    /// from the expected one: some senders use a separate socket for RTCP.
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
        let origin = Origin { ssrc, address: from, heard: now };
        let Some(n) = self.list.iter().position(|known| known.ssrc == ssrc) else {
            if self.list.len() >= SOURCES_MAX {
                self.list.remove(0);
            }
            self.list.push(origin);
            return true;
        };
        let known = &mut self.list[n];
        let is_silent = now.saturating_duration_since(known.heard) >= MOVE_AFTER;
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

/// Calls `of` for every participant that an RTCP datagram reports for, until it returns `false`;
/// returns whether it never did. Feedback is exempt: some peers write the SSRC of the media there.
pub(crate) fn all_senders(datagram: &[u8], mut of: impl FnMut(Ssrc) -> bool) -> bool {
    let Ok(compound) = Compound::parse(datagram) else { return true };
    compound.packets().flatten().all(|packet| match packet {
        Packet::SenderReport(report) => of(report.ssrc()),
        Packet::ReceiverReport(report) => of(report.ssrc()),
        Packet::ExtendedReport(report) => of(report.ssrc()),
        Packet::App(app) => of(app.ssrc()),
        Packet::SourceDescription(description) => {
            description.chunks().all(|chunk| of(chunk.ssrc()))
        }
        Packet::Bye(bye) => bye.sources().all(&mut of),
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
    fn nobody_speaks_for_a_source_from_another_host() {
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
        // The expected port is always right, and then it is the one to keep to.
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
