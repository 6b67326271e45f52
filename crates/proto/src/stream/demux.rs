//! Assigns the datagrams of a shared port to streams.

use crate::ssrc::{PayloadType, Ssrc};

/// The packets that a stream on a shared port takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route {
    /// The stream's payload type.
    pub payload_type: PayloadType,
    /// The SSRC of its media; without it, any SSRC that no other stream names.
    pub remote_ssrc: Option<Ssrc>,
    /// The payload types of its retransmissions and of its repair packets, if they have their own.
    /// Each with its SSRC; without it, any SSRC that no other stream names.
    pub beside: [Option<(PayloadType, Option<Ssrc>)>; 2],
}

/// The streams that share a port, distinguished by SSRC and then by payload type.
#[derive(Clone, Debug, Default)]
pub struct Demux {
    routes: Vec<(u64, Route)>,
}

impl Demux {
    /// Creates a demultiplexer without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds stream `id`; `false`, with nothing added, if another takes exactly the same packets.
    pub fn add(&mut self, id: u64, route: Route) -> bool {
        let taken = self.routes.iter().any(|(_, other)| match route.remote_ssrc {
            Some(ssrc) => other.remote_ssrc == Some(ssrc),
            None => other.remote_ssrc.is_none() && other.payload_type == route.payload_type,
        });
        if !taken {
            self.routes.push((id, route));
        }
        !taken
    }

    /// Removes stream `id`.
    pub fn remove(&mut self, id: u64) {
        self.routes.retain(|(other, _)| *other != id);
    }

    /// Returns the stream that `datagram` is for; `None` if no stream takes it.
    ///
    /// A single stream gets every datagram, because it counts those that it does not accept.
    #[inline]
    pub fn route(&self, datagram: &[u8]) -> Option<u64> {
        if let [(id, _)] = self.routes[..] {
            return Some(id);
        }
        let [_, kind, .., a, b, c, d] = datagram.first_chunk::<12>()?;
        let ssrc = Ssrc(u32::from_be_bytes([*a, *b, *c, *d]));
        let payload_type = PayloadType::from_wire(*kind);
        let beside = |route: &Route, is_it: &dyn Fn(PayloadType, Option<Ssrc>) -> bool| {
            route.beside.iter().flatten().any(|(kind, ssrc)| is_it(*kind, *ssrc))
        };
        let named = self.routes.iter().find(|(_, route)| {
            route.remote_ssrc == Some(ssrc) || beside(route, &|_, named| named == Some(ssrc))
        });
        let typed = || {
            let mut routes = self.routes.iter();
            routes.find(|(_, route)| {
                route.remote_ssrc.is_none() && route.payload_type == payload_type
            })
        };
        let typed_beside = || {
            let mut routes = self.routes.iter();
            routes.find(|(_, route)| {
                beside(route, &|kind, named| kind == payload_type && named.is_none())
            })
        };
        named.or_else(typed).or_else(typed_beside).map(|(id, _)| *id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(payload_type: u8, ssrc: u8) -> [u8; 12] {
        [0x80, payload_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, ssrc]
    }

    fn route(payload_type: PayloadType, ssrc: Option<u32>) -> Route {
        Route { payload_type, remote_ssrc: ssrc.map(Ssrc), beside: [None; 2] }
    }

    #[test]
    fn a_named_source_goes_before_a_payload_type() {
        let mut demux = Demux::new();
        assert!(demux.add(1, route(PayloadType::H265, None)));
        assert!(demux.add(2, route(PayloadType::H265, Some(7))));
        assert!(demux.add(3, route(PayloadType::OPUS, None)));
        assert_eq!(demux.route(&datagram(97, 7)), Some(2));
        assert_eq!(demux.route(&datagram(0xe1, 8)), Some(1));
        assert_eq!(demux.route(&datagram(111, 8)), Some(3));
        assert_eq!(demux.route(&datagram(96, 8)), None);
        assert_eq!(demux.route(&[0x80; 11]), None);
    }

    #[test]
    fn a_retransmission_goes_to_the_stream_that_names_its_source() {
        let mut demux = Demux::new();
        let rtx = |ssrc, rtx_ssrc: u32| Route {
            beside: [Some((PayloadType::OPUS, Some(Ssrc(rtx_ssrc)))), None],
            ..route(PayloadType::H265, Some(ssrc))
        };
        assert!(demux.add(1, rtx(7, 17)));
        assert!(demux.add(2, rtx(8, 18)));
        assert_eq!(demux.route(&datagram(111, 17)), Some(1));
        assert_eq!(demux.route(&datagram(111, 18)), Some(2));
        assert_eq!(demux.route(&datagram(111, 19)), None);
    }

    #[test]
    fn a_repair_packet_goes_to_the_stream_of_its_source_or_payload_type() {
        let mut demux = Demux::new();
        let fec = |payload_type, repair_ssrc: Option<u32>| Route {
            beside: [None, Some((PayloadType::GENERIC, repair_ssrc.map(Ssrc)))],
            ..route(payload_type, None)
        };
        assert!(demux.add(1, fec(PayloadType::H264, Some(17))));
        assert!(demux.add(2, fec(PayloadType::H265, None)));
        assert_eq!(demux.route(&datagram(99, 17)), Some(1));
        assert_eq!(demux.route(&datagram(99, 18)), Some(2));
        assert_eq!(demux.route(&datagram(98, 18)), None);
    }

    #[test]
    fn two_streams_cannot_take_the_same() {
        let mut demux = Demux::new();
        assert!(demux.add(1, route(PayloadType::H265, None)));
        assert!(!demux.add(2, route(PayloadType::H265, None)));
        assert!(demux.add(3, route(PayloadType::H265, Some(1))));
        assert!(!demux.add(4, route(PayloadType::OPUS, Some(1))));
        demux.remove(1);
        assert!(demux.add(5, route(PayloadType::H265, None)));
    }
}
