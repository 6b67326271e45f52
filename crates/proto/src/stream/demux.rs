//! Assigns the datagrams of a shared port to streams.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

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

/// A property of packets by which streams take them.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Key {
    /// The SSRC is that of media, of retransmissions or of repair packets.
    Named(Ssrc),
    /// The SSRC is that of media.
    Media(Ssrc),
    /// The payload type is that of media of an SSRC that no stream names.
    Typed(PayloadType),
    /// It is that of retransmissions or repair packets of such an SSRC.
    TypedBeside(PayloadType),
}

impl Route {
    /// Returns the SSRCs that the route names.
    pub fn named(&self) -> impl Iterator<Item = Ssrc> + use<> {
        let beside = self.beside.into_iter().flatten().filter_map(|(_, ssrc)| ssrc);
        self.remote_ssrc.into_iter().chain(beside)
    }

    /// Returns the key that no other stream on the port may have.
    fn own_key(&self) -> Key {
        self.remote_ssrc.map_or(Key::Typed(self.payload_type), Key::Media)
    }

    fn keys(&self) -> impl Iterator<Item = Key> + use<> {
        let unnamed = |(kind, ssrc): (PayloadType, Option<Ssrc>)| {
            ssrc.is_none().then_some(Key::TypedBeside(kind))
        };
        let beside = self.beside.into_iter().flatten().filter_map(unnamed);
        std::iter::once(self.own_key()).chain(self.named().map(Key::Named)).chain(beside)
    }
}

/// The streams with one key, each with its place in the order in which they were added. The first takes the
/// packets; it lies in the table itself, so that finding it reads no further memory.
#[derive(Clone, Debug)]
struct Takers {
    first: (u64, u64),
    others: BTreeMap<u64, u64>,
}

/// The streams that share a port, distinguished by SSRC and then by payload type.
///
/// The time to find a stream does not grow with their number, nor does that to add or remove one,
/// beyond the depth of a tree.
#[derive(Clone, Debug, Default)]
pub struct Demux {
    /// Each stream, with its place in the order in which they were added.
    routes: BTreeMap<u64, (u64, Route)>,
    /// The streams with a key.
    takers: HashMap<Key, Takers>,
    /// The only stream, if there is one.
    only: Option<u64>,
    added: u64,
}

impl Demux {
    /// Creates a demultiplexer without streams.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds stream `id`; `false`, with nothing added, if another takes exactly the same packets, or if
    /// `id` has been added already.
    pub fn add(&mut self, id: u64, route: Route) -> bool {
        if self.takers.contains_key(&route.own_key()) || self.routes.contains_key(&id) {
            return false;
        }
        let place = self.added;
        self.added += 1;
        self.routes.insert(id, (place, route));
        for key in route.keys() {
            match self.takers.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(Takers { first: (place, id), others: BTreeMap::new() });
                }
                // A route may have a key twice.
                Entry::Occupied(entry) if entry.get().first.0 == place => {}
                Entry::Occupied(mut entry) => {
                    entry.get_mut().others.insert(place, id);
                }
            }
        }
        self.find_only();
        true
    }

    /// Removes stream `id`.
    pub fn remove(&mut self, id: u64) {
        let Some((place, route)) = self.routes.remove(&id) else { return };
        for key in route.keys() {
            let Some(takers) = self.takers.get_mut(&key) else { continue };
            if takers.first.0 != place {
                takers.others.remove(&place);
            } else if let Some(next) = takers.others.pop_first() {
                takers.first = next;
            } else {
                self.takers.remove(&key);
            }
        }
        self.find_only();
    }

    fn find_only(&mut self) {
        let is_only = self.routes.len() == 1;
        self.only = self.routes.first_key_value().map(|(id, _)| *id).filter(|_| is_only);
    }

    /// Returns the stream that `datagram` is for; `None` if no stream takes it.
    ///
    /// A single stream gets every datagram, because it counts those that it does not accept.
    #[inline]
    pub fn route(&self, datagram: &[u8]) -> Option<u64> {
        if self.only.is_some() {
            return self.only;
        }
        let [_, kind, .., a, b, c, d] = datagram.first_chunk::<12>()?;
        let ssrc = Ssrc(u32::from_be_bytes([*a, *b, *c, *d]));
        let payload_type = PayloadType::from_wire(*kind);
        self.first(Key::Named(ssrc))
            .or_else(|| self.first(Key::Typed(payload_type)))
            .or_else(|| self.first(Key::TypedBeside(payload_type)))
    }

    fn first(&self, key: Key) -> Option<u64> {
        self.takers.get(&key).map(|takers| takers.first.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// The plain algorithm: every route is looked at.
    #[derive(Default)]
    struct Naive(Vec<(u64, Route)>);

    impl Naive {
        fn add(&mut self, id: u64, route: Route) -> bool {
            let taken = self.0.iter().any(|(_, other)| match route.remote_ssrc {
                Some(ssrc) => other.remote_ssrc == Some(ssrc),
                None => other.remote_ssrc.is_none() && other.payload_type == route.payload_type,
            });
            if !taken {
                self.0.push((id, route));
            }
            !taken
        }

        fn route(&self, payload_type: PayloadType, ssrc: Ssrc) -> Option<u64> {
            if let [(id, _)] = self.0[..] {
                return Some(id);
            }
            let find = |is_it: &dyn Fn(&Route) -> bool| {
                self.0.iter().find(|(_, route)| is_it(route)).map(|(id, _)| *id)
            };
            let beside = |route: &Route, wanted: (Option<PayloadType>, Option<Ssrc>)| {
                let mut beside = route.beside.iter().flatten();
                beside.any(|(kind, named)| {
                    *named == wanted.1 && wanted.0.is_none_or(|wanted| wanted == *kind)
                })
            };
            find(&|route| route.remote_ssrc == Some(ssrc) || beside(route, (None, Some(ssrc))))
                .or_else(|| {
                    find(&|route| route.remote_ssrc.is_none() && route.payload_type == payload_type)
                })
                .or_else(|| find(&|route| beside(route, (Some(payload_type), None))))
        }
    }

    fn any_type() -> impl Strategy<Value = PayloadType> {
        (96_u8..100).prop_map(|value| PayloadType::new(value).unwrap())
    }

    fn any_ssrc() -> impl Strategy<Value = Option<Ssrc>> {
        prop::option::of((0_u32..6).prop_map(Ssrc))
    }

    fn any_route() -> impl Strategy<Value = Route> {
        let beside = || prop::option::of((any_type(), any_ssrc()));
        (any_type(), any_ssrc(), beside(), beside()).prop_map(|(payload_type, ssrc, a, b)| Route {
            payload_type,
            remote_ssrc: ssrc,
            beside: [a, b],
        })
    }

    proptest! {
        #[test]
        fn datagrams_go_where_the_plain_algorithm_sends_them(
            changes in prop::collection::vec((any::<bool>(), 0_u64..8, any_route()), 1..60),
        ) {
            let (mut demux, mut naive, mut next) = (Demux::new(), Naive::default(), 0);
            for (adds, id, route) in changes {
                if adds {
                    prop_assert_eq!(demux.add(next, route), naive.add(next, route));
                    next += 1;
                } else if let Some((id, _)) = naive.0.get(id as usize).copied() {
                    demux.remove(id);
                    naive.0.retain(|(other, _)| *other != id);
                }
                for (kind, ssrc) in (96..100).flat_map(|kind| (0..6).map(move |ssrc| (kind, ssrc))) {
                    let expected =
                        naive.route(PayloadType::new(kind).unwrap(), Ssrc(u32::from(ssrc)));
                    prop_assert_eq!(demux.route(&datagram(kind, ssrc)), expected);
                }
            }
        }
    }

    #[test]
    fn what_was_removed_leaves_nothing_behind() {
        let mut demux = Demux::new();
        for n in 0..1000 {
            assert!(demux.add(u64::from(n), route(PayloadType::OPUS, Some(n))));
        }
        assert!(!demux.add(7, route(PayloadType::OPUS, Some(1000))));
        (0..1000).for_each(|id| demux.remove(id));
        assert!(demux.takers.is_empty() && demux.routes.is_empty() && demux.only.is_none());
    }
}
