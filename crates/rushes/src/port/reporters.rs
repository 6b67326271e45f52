//! The RTCP of a port's streams: whom a datagram concerns, and when each stream is due.
//!
//! On a port with a few streams all of them get every datagram: they form one RTP session. On one with
//! many, a datagram is passed to the streams that its SSRCs concern: those that send under them, receive
//! media from them, or know them by earlier reports. Each stream then takes part in a session of its own
//! with its peer, with its own share of bandwidth, so that the sum stays within that of all streams.
//!
//! **Invariant:** the work for one datagram has a bound that does not grow with the number of streams.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rushes_proto::Ssrc;

use super::named::add_named;
use super::{Port, Reports};

/// Number of streams up to which all of them get every datagram.
const ALL_MAX: usize = 8;

/// Maximum number of streams that get one datagram because it names them, on a port with more.
const TARGETS_MAX: usize = 64;

/// Maximum number of streams that are remembered for one SSRC.
const OF_SSRC_MAX: usize = 64;

/// Number of streams that get a datagram which concerns none of them, as far as is known, or which those
/// that it concerns refuse: first such as send to its address, then the next ones in turn. The first report
/// of a peer that sends no media may have to be repeated.
const CONTACTS_MAX: usize = 32;

/// The time of something that is not due.
pub(super) const NEVER: u64 = u64::MAX;

/// One stream's RTCP.
#[derive(Debug)]
struct Entry {
    reports: Arc<dyn Reports>,
    /// Nanoseconds after the port's epoch.
    due: u64,
    /// The SSRCs by which it is found.
    ssrcs: Vec<Ssrc>,
    /// The addresses of its peer, as far as they are configured.
    addresses: Vec<SocketAddr>,
    /// The number of the last datagram for which it was chosen.
    chosen: u64,
}

/// A datagram on a port.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived<'d> {
    pub(super) port: &'d Port,
    pub(super) now: Instant,
    pub(super) from: SocketAddr,
    pub(super) datagram: &'d [u8],
}

/// The RTCP of all streams.
#[derive(Debug)]
pub(super) struct Reporters {
    /// By their places, which are given out again.
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    /// The places that are taken.
    live: BTreeSet<usize>,
    /// Those that an SSRC concerns.
    by_ssrc: HashMap<Ssrc, Vec<usize>>,
    by_address: BTreeSet<(SocketAddr, usize)>,
    /// When each is due that is due at all.
    due: BTreeSet<(u64, usize)>,
    /// When the protocol beside RTP is due.
    pub(super) side_due: u64,
    /// The number of the datagram that is being passed on, and the streams that get it.
    number: u64,
    chosen: Vec<usize>,
    named: Vec<Ssrc>,
    addresses: Vec<SocketAddr>,
    /// The place from which streams get datagrams that concern none.
    next_contact: usize,
}

impl Default for Reporters {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            live: BTreeSet::new(),
            by_ssrc: HashMap::new(),
            by_address: BTreeSet::new(),
            due: BTreeSet::new(),
            side_due: NEVER,
            number: 0,
            chosen: Vec::new(),
            named: Vec::new(),
            addresses: Vec::new(),
            next_contact: 0,
        }
    }
}

impl Reporters {
    /// Adds the RTCP of a stream, which is due at once; returns its place.
    pub(super) fn add(&mut self, reports: Arc<dyn Reports>) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let (ssrcs, addresses) = (Vec::new(), Vec::new());
        let entry = Entry { reports, due: NEVER, ssrcs, addresses, chosen: 0 };
        self.entries[place] = Some(entry);
        self.live.insert(place);
        self.index(place);
        self.set_due(place, 0);
        place
    }

    pub(super) fn remove(&mut self, place: usize) {
        let Some(entry) = self.entries.get_mut(place).and_then(Option::take) else { return };
        self.due.remove(&(entry.due, place));
        self.live.remove(&place);
        self.free.push(place);
        for ssrc in entry.ssrcs {
            self.forget(ssrc, place);
        }
        for address in entry.addresses {
            self.by_address.remove(&(address, place));
        }
    }

    /// Makes a stream due at `due`, unless it is due earlier.
    pub(super) fn set_due(&mut self, place: usize, due: u64) {
        let Some(Some(entry)) = self.entries.get_mut(place) else { return };
        if due < entry.due {
            self.due.remove(&(entry.due, place));
            entry.due = due;
            self.due.insert((due, place));
        }
    }

    /// Returns when anything is due.
    pub(super) fn first_due(&self) -> u64 {
        self.due.first().map_or(NEVER, |(due, _)| *due).min(self.side_due)
    }

    /// Returns a stream that is due at `now`, and its place; from then on it is not due.
    pub(super) fn take_due(&mut self, now: u64) -> Option<(usize, Arc<dyn Reports>)> {
        let place = self.due.first().filter(|(due, _)| *due <= now)?.1;
        self.due.pop_first();
        let entry = self.entries.get_mut(place)?.as_mut()?;
        entry.due = NEVER;
        Some((place, entry.reports.clone()))
    }

    /// Notes that a stream was served at `now`, and when it is due next: never again at `now`, so that
    /// others are served. Does nothing if the stream has left.
    pub(super) fn note_served(
        &mut self,
        (place, reports): (usize, &Arc<dyn Reports>),
        now: u64,
        due: Option<u64>,
    ) {
        let entry = self.entries.get(place).and_then(Option::as_ref);
        if entry.is_some_and(|entry| Arc::ptr_eq(&entry.reports, reports)) {
            self.index(place);
            if let Some(due) = due {
                self.set_due(place, due.max(now.saturating_add(1)));
            }
        }
    }

    /// Passes a datagram to the streams that it concerns.
    pub(super) fn handle(&mut self, arrived: Arrived<'_>) {
        self.number += 1;
        self.chosen.clear();
        let are_few = self.live.len() <= ALL_MAX;
        if are_few {
            self.chosen.extend(&self.live);
        } else {
            let mut named = self.take_named();
            add_named(arrived.datagram, &mut named);
            self.choose(named);
        }
        let is_accepted = self.pass_from(0, arrived, are_few);
        // Streams whose peers have the same SSRC have keys of their own.
        if !is_accepted && !are_few {
            let passed = self.chosen.len();
            self.contact(arrived);
            self.pass_from(passed, arrived, are_few);
        }
    }

    /// Passes a datagram to the chosen streams from the `n`th on; returns whether any has accepted it.
    fn pass_from(&mut self, mut n: usize, arrived: Arrived<'_>, are_few: bool) -> bool {
        let mut is_accepted = false;
        // What an encrypted datagram names is known when a stream has decrypted it.
        while let Some(place) = self.chosen.get(n).copied() {
            n += 1;
            is_accepted |= self.pass(place, arrived, are_few).is_some();
        }
        is_accepted
    }

    /// Passes a datagram to the streams of its address in turn, or if none accepts it, to all in turn: it
    /// is perhaps the first of their peer.
    fn contact(&mut self, arrived: Arrived<'_>) {
        // They have turns of their own, without a state for each address: another start each time.
        let spread = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let start = spread as usize % self.entries.len().max(1);
        let (is_accepted, _) = self.contact_each(arrived, start, |all, from| {
            let of_address = |places| all.by_address.range(places).next().map(|(_, place)| *place);
            let next = of_address((arrived.from, from)..=(arrived.from, usize::MAX));
            next.or_else(|| of_address((arrived.from, 0)..=(arrived.from, usize::MAX)))
        });
        if !is_accepted {
            let (_, end) = self.contact_each(arrived, self.next_contact, |all, from| {
                all.live.range(from..).next().or_else(|| all.live.first()).copied()
            });
            self.next_contact = end;
        }
    }

    /// Passes a datagram to streams, until one that is secured accepts it: to that which `next` returns for
    /// `from`, then for the place after it, and so on. Returns whether any has accepted it, and the place
    /// after the last one.
    fn contact_each(
        &mut self,
        arrived: Arrived<'_>,
        mut from: usize,
        next: impl Fn(&Self, usize) -> Option<usize>,
    ) -> (bool, usize) {
        let mut is_accepted = false;
        for _ in 0..CONTACTS_MAX.min(self.live.len()) {
            let Some(place) = next(self, from) else { break };
            from = place + 1;
            if !self.mark(place) {
                continue;
            }
            let outcome = self.pass(place, arrived, false);
            is_accepted |= outcome.is_some();
            if outcome == Some(true) {
                break;
            }
        }
        (is_accepted, from)
    }

    /// Passes a datagram to one stream; returns whether the stream is secured if it has accepted it.
    fn pass(&mut self, place: usize, arrived: Arrived<'_>, are_few: bool) -> Option<bool> {
        let reports = self.entries.get(place)?.as_ref()?.reports.clone();
        let Arrived { port, now, from, datagram } = arrived;
        let (mut is_secured, mut named) = (false, self.take_named());
        let is_accepted = reports.handle_datagram(port, now, from, datagram, &mut |clear| {
            is_secured = true;
            if !are_few {
                add_named(clear, &mut named);
            }
        });
        self.choose(named);
        if is_accepted || reports.has_events() {
            self.set_due(place, 0);
        }
        if !is_accepted {
            return None;
        }
        self.index(place);
        Some(is_secured)
    }

    /// Returns an empty list, for [`choose`](Self::choose).
    fn take_named(&mut self) -> Vec<Ssrc> {
        let mut named = std::mem::take(&mut self.named);
        named.clear();
        named
    }

    /// Chooses the streams that these SSRCs concern.
    fn choose(&mut self, named: Vec<Ssrc>) {
        for ssrc in &named {
            let Some(places) = self.by_ssrc.get(ssrc) else { continue };
            for place in places {
                let Some(Some(entry)) = self.entries.get_mut(*place) else { continue };
                if entry.chosen != self.number && self.chosen.len() < TARGETS_MAX {
                    entry.chosen = self.number;
                    self.chosen.push(*place);
                }
            }
        }
        self.named = named;
    }

    /// Marks a stream as chosen for the current datagram; returns whether it was not.
    fn mark(&mut self, place: usize) -> bool {
        let Some(Some(entry)) = self.entries.get_mut(place) else { return false };
        std::mem::replace(&mut entry.chosen, self.number) != self.number
    }

    /// Notes the SSRCs that concern a stream now, and the addresses of its peer.
    fn index(&mut self, place: usize) {
        let Some(Some(entry)) = self.entries.get_mut(place) else { return };
        let mut now = std::mem::take(&mut self.addresses);
        now.clear();
        entry.reports.add_addresses(&mut now);
        now.sort_unstable();
        now.dedup();
        if now != entry.addresses {
            let before = std::mem::replace(&mut entry.addresses, now.clone());
            for address in before {
                self.by_address.remove(&(address, place));
            }
            self.by_address.extend(now.iter().map(|address| (*address, place)));
        }
        self.addresses = now;
        self.index_ssrcs(place);
    }

    fn index_ssrcs(&mut self, place: usize) {
        let mut now = self.take_named();
        let Some(Some(entry)) = self.entries.get_mut(place) else { return };
        entry.reports.add_ssrcs(&mut now);
        now.sort_unstable();
        now.dedup();
        if now == entry.ssrcs {
            self.named = now;
            return;
        }
        let before = std::mem::take(&mut entry.ssrcs);
        for ssrc in before.iter().filter(|ssrc| now.binary_search(ssrc).is_err()) {
            self.forget(*ssrc, place);
        }
        // Where there is no room, the next call tries again.
        now.retain(|ssrc| before.binary_search(ssrc).is_ok() || self.remember(*ssrc, place));
        if let Some(Some(entry)) = self.entries.get_mut(place) {
            entry.ssrcs.clone_from(&now);
        }
        self.named = now;
    }

    /// Notes that an SSRC concerns a stream; `false` if it concerns too many others.
    fn remember(&mut self, ssrc: Ssrc, place: usize) -> bool {
        let places = self.by_ssrc.entry(ssrc).or_default();
        let has_room = places.len() < OF_SSRC_MAX;
        if has_room {
            places.push(place);
        }
        has_room
    }

    fn forget(&mut self, ssrc: Ssrc, place: usize) {
        let Some(places) = self.by_ssrc.get_mut(&ssrc) else { return };
        places.retain(|other| *other != place);
        if places.is_empty() {
            self.by_ssrc.remove(&ssrc);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    use rushes_net::{SocketOptions, UdpSocket};
    use rushes_proto::payload::generic::Generic;
    use rushes_proto::rtcp::Writer;
    use rushes_proto::stream::{Receiver, ReceiverConfig};
    use rushes_proto::{ClockRate, PayloadType};

    use super::*;
    use crate::lock::lock;
    use crate::port::{Control, Inbox, Sources};

    /// A stream with an SSRC of its own that counts its datagrams.
    #[derive(Debug)]
    struct Counting {
        inbox: Arc<Inbox>,
        own: Ssrc,
        /// Those that report to it.
        known: Mutex<Vec<Ssrc>>,
        datagrams: Mutex<usize>,
        peer: Mutex<Option<SocketAddr>>,
        refuses: AtomicBool,
    }

    impl Reports for Counting {
        fn handle_datagram(
            &self,
            _: &Port,
            _: Instant,
            _: SocketAddr,
            _: &[u8],
            _: &mut dyn FnMut(&[u8]),
        ) -> bool {
            *lock(&self.datagrams) += 1;
            !self.refuses.load(Relaxed)
        }

        fn add_addresses(&self, addresses: &mut Vec<SocketAddr>) {
            addresses.extend(*lock(&self.peer));
        }

        fn add_ssrcs(&self, ssrcs: &mut Vec<Ssrc>) {
            ssrcs.push(self.own);
            ssrcs.extend(lock(&self.known).iter());
        }

        fn inbox(&self) -> &Inbox {
            &self.inbox
        }

        fn serve(&self, _: &Port, _: Instant) -> Option<Instant> {
            None
        }

        fn has_events(&self) -> bool {
            false
        }

        fn dispatch(&self) {}
    }

    fn port() -> Port {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let socket = UdpSocket::bind(local, &SocketOptions::default()).unwrap();
        let sources = Sources { hosts: Vec::new(), only_of_media: false };
        Port::new(socket, Control::Muxed, Vec::new(), sources).unwrap()
    }

    /// Streams with the SSRCs from 0 on.
    fn streams(port: &Port, count: usize) -> (Reporters, Vec<Arc<Counting>>) {
        let mut reporters = Reporters::default();
        let stream = |n| {
            let config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
            let receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
            let inbox = port.add(None, receiver).unwrap();
            let own = Ssrc(n as u32);
            Arc::new(Counting {
                inbox,
                own,
                known: Mutex::default(),
                datagrams: Mutex::default(),
                peer: Mutex::default(),
                refuses: AtomicBool::new(false),
            })
        };
        let all: Vec<_> = (0..count).map(stream).collect();
        for stream in &all {
            reporters.add(stream.clone());
        }
        (reporters, all)
    }

    /// Passes a receiver report of `from` on `media`; returns the streams that got it.
    fn report(
        port: &Port,
        (reporters, streams): &mut (Reporters, Vec<Arc<Counting>>),
        from: u32,
        media: Option<u32>,
    ) -> Vec<usize> {
        let mut writer = Writer::new();
        writer.receiver_report(Ssrc(from), &[]);
        if let Some(media) = media {
            writer.picture_loss(Ssrc(from), Ssrc(media));
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 9));
        let datagram = writer.bytes();
        reporters.handle(Arrived { port, now: Instant::now(), from: address, datagram });
        let got = |stream: &Arc<Counting>| std::mem::take(&mut *lock(&stream.datagrams)) > 0;
        (0..streams.len()).filter(|n| got(&streams[*n])).collect()
    }

    #[test]
    fn a_datagram_reaches_the_streams_that_it_names() {
        let port = port();
        let mut all = streams(&port, 1000);
        assert_eq!(report(&port, &mut all, 5000, Some(7)), [7]);
        lock(&all.1[7].known).push(Ssrc(5000));
        assert_eq!(report(&port, &mut all, 5000, Some(7)), [7]);
        // It is known from now on, without a report on the media.
        assert_eq!(report(&port, &mut all, 5000, None), [7]);
        lock(&all.1[7].known).clear();
        report(&port, &mut all, 6000, Some(7));
        assert!(report(&port, &mut all, 5000, None).len() > 1);
    }

    #[test]
    fn a_datagram_that_concerns_no_stream_reaches_all_in_turn() {
        let port = port();
        let mut all = streams(&port, 100);
        all.0.remove(50);
        let mut reached = Vec::new();
        for _ in 0..4 {
            let few = report(&port, &mut all, 5000, None);
            assert!(few.len() <= CONTACTS_MAX);
            reached.extend(few);
        }
        reached.sort_unstable();
        reached.dedup();
        assert_eq!(reached.len(), 99);
        assert!(!reached.contains(&50));
    }

    #[test]
    fn one_datagram_reaches_no_more_than_a_limit() {
        let port = port();
        let mut all = streams(&port, 1000);
        all.1.iter().for_each(|stream| lock(&stream.known).push(Ssrc(5000)));
        (0..1000).for_each(|n| all.0.index(n));
        assert_eq!(report(&port, &mut all, 5000, None).len(), OF_SSRC_MAX);
        (0..1000).for_each(|n| all.0.remove(n));
        assert!(all.0.by_ssrc.is_empty() && all.0.due.is_empty() && all.0.live.is_empty());
    }

    #[test]
    fn a_stream_that_found_no_room_is_known_when_there_is() {
        let port = port();
        let mut all = streams(&port, OF_SSRC_MAX + 1);
        all.1.iter().for_each(|stream| lock(&stream.known).push(Ssrc(5000)));
        (0..=OF_SSRC_MAX).for_each(|n| all.0.index(n));
        assert!(!report(&port, &mut all, 5000, None).contains(&OF_SSRC_MAX));
        all.0.remove(0);
        all.0.index(OF_SSRC_MAX);
        assert!(report(&port, &mut all, 5000, None).contains(&OF_SSRC_MAX));
    }

    #[test]
    fn a_datagram_that_its_streams_refuse_is_offered_to_others() {
        let port = port();
        let mut all = streams(&port, 20);
        all.1.iter().for_each(|stream| stream.refuses.store(true, Relaxed));
        lock(&all.1[3].known).push(Ssrc(5000));
        all.0.index(3);
        assert_eq!(report(&port, &mut all, 5000, None).len(), 20);
        all.1[3].refuses.store(false, Relaxed);
        assert_eq!(report(&port, &mut all, 5000, None), [3]);
    }

    #[test]
    fn the_first_datagram_of_an_address_reaches_the_streams_that_send_there() {
        let port = port();
        let mut all = streams(&port, 1000);
        *lock(&all.1[700].peer) = Some(SocketAddr::from(([127, 0, 0, 1], 9)));
        all.0.index(700);
        assert_eq!(report(&port, &mut all, 5000, None), [700]);
        all.1[700].refuses.store(true, Relaxed);
        assert!(report(&port, &mut all, 5000, None).len() > 1);
        *lock(&all.1[700].peer) = None;
        all.0.index(700);
        assert!(all.0.by_address.is_empty());
    }

    /// A stream that leaves while its reports are being sent, as if another thread had closed it.
    #[derive(Debug)]
    struct Leaving {
        port: Arc<Port>,
        inbox: Arc<Inbox>,
        could_lock: Arc<AtomicBool>,
    }

    impl Drop for Leaving {
        fn drop(&mut self) {
            self.could_lock.store(self.port.reports.try_lock().is_ok(), Relaxed);
        }
    }

    impl Reports for Leaving {
        fn handle_datagram(
            &self,
            _: &Port,
            _: Instant,
            _: SocketAddr,
            _: &[u8],
            _: &mut dyn FnMut(&[u8]),
        ) -> bool {
            false
        }

        fn add_ssrcs(&self, _: &mut Vec<Ssrc>) {}

        fn add_addresses(&self, _: &mut Vec<SocketAddr>) {}

        fn inbox(&self) -> &Inbox {
            &self.inbox
        }

        fn serve(&self, port: &Port, _: Instant) -> Option<Instant> {
            lock(&port.reports).remove(self.inbox.place()?);
            None
        }

        fn has_events(&self) -> bool {
            false
        }

        fn dispatch(&self) {}
    }

    #[test]
    fn the_last_handle_of_a_stream_is_dropped_without_the_lock() {
        let port = Arc::new(port());
        let config = ReceiverConfig::new(PayloadType::GENERIC, ClockRate::VIDEO);
        let receiver = Receiver::new(Arc::new(Generic::default()), config).unwrap();
        let inbox = port.add(None, receiver).unwrap();
        let could_lock = Arc::new(AtomicBool::new(false));
        let leaving = Leaving { port: port.clone(), inbox, could_lock: could_lock.clone() };
        let leaving: Arc<dyn Reports> = Arc::new(leaving);
        let place = lock(&port.reports).add(leaving.clone());
        leaving.inbox().set_place(place);
        drop(leaving);
        port.due_at(port.epoch());
        port.serve(Instant::now());
        assert!(could_lock.load(Relaxed));
    }

    #[test]
    fn on_a_port_with_few_streams_all_of_them_get_everything() {
        let port = port();
        let mut all = streams(&port, ALL_MAX);
        assert_eq!(report(&port, &mut all, 5000, Some(7)).len(), ALL_MAX);
    }

    #[test]
    fn only_streams_that_are_due_are_served() {
        let port = port();
        let (mut reporters, _streams) = streams(&port, 3);
        for _ in 0..3 {
            assert!(reporters.take_due(0).is_some());
        }
        assert!(reporters.take_due(u64::MAX - 1).is_none() && reporters.first_due() == NEVER);
        reporters.set_due(2, 30);
        reporters.set_due(1, 20);
        reporters.set_due(1, 40);
        assert_eq!(reporters.first_due(), 20);
        assert!(reporters.take_due(19).is_none());
        let (place, reports) = reporters.take_due(35).unwrap();
        assert_eq!(place, 1);
        // Served at that time, it is not due again at it.
        reporters.note_served((place, &reports), 35, Some(0));
        assert_eq!(reporters.take_due(35).unwrap().0, 2);
        assert!(reporters.take_due(35).is_none());
        assert_eq!(reporters.first_due(), 36);
    }
}
