//! One media stream, and the candidates for its peer.

use core::net::SocketAddr;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::VERSION;
use super::chain::{Image, OwnChain, implicit_hash};
use super::config::Config;
use super::credit::Credit;
use super::discover::{Candidate, PendingHello};
use super::end::Ending;
use super::event::{Event, Warning};
use super::exchange::Exchange;
use super::hello::Hello;
use super::link::Link;
use super::message::Message;
use super::packet::{Content, Packet, set_sequence, write_packet};
use super::ping::{Ping, PingAck};
use super::proof::{Proofs, ping};
use super::schedule::Schedule;
use super::session::StreamId;
use super::session_state::Common;
use crate::crypto::on_erased_stack;

/// Maximum number of candidates of a stream at a time.
const CANDIDATES_MAX: usize = 8;
/// Maximum number of queued answers; the application may not be polling.
const REPLIES_MAX: usize = 64;
/// Time to wait for another candidate at the given address after one has failed there.
const FAILURE_GRACE: Duration = Duration::from_secs(1);
/// Octets of the version that are compared (RFC 6189 section 4.1.1).
pub(super) const VERSION_LEN: usize = 3;

/// One media stream.
///
/// Any host may send a Hello, so each sender of one is a candidate with a separate exchange. The
/// first candidate with a valid Confirm is the peer, and the others are dropped. A failed candidate
/// does not affect the others.
pub(super) struct Stream {
    id: StreamId,
    ssrc: u32,
    chain: OwnChain,
    /// This end's Hello.
    hello: Vec<u8>,
    /// The hash that the peer's Hello must have.
    pub(super) expected_hello: Option<Image>,
    /// The peer's address given by the application.
    given: Option<SocketAddr>,
    /// Hellos to the given address, until a Hello arrives from it.
    pending_hello: Option<PendingHello>,
    candidates: Vec<Exchange>,
    /// Whether the peer is found; it is then the only candidate.
    is_found: bool,
    proofs: Proofs,
    /// Answers that belong to no exchange.
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    sequence: u16,
    /// The ending of the last exchange with the given address, and when the stream fails with it.
    failure: Option<(Ending, Instant)>,
    /// Whether the stream has failed.
    is_over: bool,
}

impl Stream {
    /// Creates a stream; sends a Hello at once if the peer's address is given.
    pub(super) fn new(
        id: StreamId,
        (ssrc, h0): (u32, Image),
        given: Option<SocketAddr>,
        now: Instant,
        common: &mut Common,
    ) -> Self {
        let chain = OwnChain::new(h0);
        let mut stream = Self {
            id,
            ssrc,
            hello: write_hello(&chain, &common.config),
            chain,
            expected_hello: None,
            given,
            pending_hello: None,
            candidates: Vec::new(),
            is_found: false,
            proofs: Proofs::new(common.random()),
            replies: VecDeque::new(),
            // bzrtp ignores a peer whose sequence numbers have wrapped.
            sequence: u16::from_be_bytes(common.random()) / 2,
            failure: None,
            is_over: false,
        };
        if given.is_some() {
            let mut pending_hello = stream.pending_hello(Credit::unlimited(), common);
            pending_hello.link.send(&pending_hello.hello);
            pending_hello.schedule = Some(Schedule::of_hello(now, false));
            stream.pending_hello = Some(pending_hello);
        }
        stream
    }

    /// Creates the link and the Hello for an address to which nothing was sent yet.
    fn pending_hello(&self, credit: Credit, common: &mut Common) -> PendingHello {
        let packet_len_max = common.config.packet_len_max;
        let mut link = Link::new(self.ssrc, packet_len_max, common.random(), credit);
        let hello = link.prepare(self.hello.clone());
        PendingHello { link, hello, schedule: None }
    }

    /// Returns the hash of this end's Hello.
    pub(super) fn hello_hash(&self) -> Image {
        implicit_hash(&self.hello)
    }

    /// Returns the exchange with the peer, once the peer is found.
    pub(super) fn peer(&mut self) -> Option<&mut Exchange> {
        self.candidates.first_mut().filter(|_| self.is_found)
    }

    pub(super) fn handle_datagram(
        &mut self,
        now: Instant,
        from: SocketAddr,
        datagram: &[u8],
        common: &mut Common,
    ) {
        let Ok(packet) = Packet::parse(datagram) else { return };
        let (ssrc, len) = (packet.ssrc, datagram.len());
        let message = match packet.content {
            Content::Message(octets) => {
                Message::parse(octets).map(|message| (message, octets)).ok()
            }
            Content::Fragment(_) => None,
        };
        match message {
            Some((Message::Ping(ping), _)) => self.answer_ping(from, ssrc, ping),
            Some((Message::PingAck(answer), _)) => self.on_ping_ack(from, &answer),
            Some((Message::Hello(hello), octets)) if self.is_new(from, octets) => {
                let cookie = self.proofs.cookie(from);
                let candidate = Candidate { address: from, ssrc, len, hello, octets, cookie };
                self.consider(now, candidate, common);
            }
            Some((Message::Error(_), _)) if !self.has_candidate_at(from) => {
                // The sender repeats the Error until it is acknowledged.
                self.reply(from, &Message::ErrorAck);
            }
            _ => {
                for candidate in self.candidates.iter_mut().filter(|one| one.address == from) {
                    if let Some((ssrc, message)) = candidate.link.receive(&packet, len) {
                        candidate.handle_message(now, ssrc, &message, common);
                    }
                }
            }
        }
        self.update(now, common);
    }

    fn has_candidate_at(&self, address: SocketAddr) -> bool {
        self.candidates.iter().any(|one| one.address == address)
    }

    /// Returns whether no candidate at this address has sent this Hello before.
    fn is_new(&self, from: SocketAddr, octets: &[u8]) -> bool {
        let is_known = |one: &Exchange| one.address == from && one.peer.octets == octets;
        !self.candidates.iter().any(is_known)
    }

    /// Makes the sender of a Hello a candidate, if it may be the peer and there is room.
    fn consider(&mut self, now: Instant, candidate: Candidate<'_>, common: &mut Common) {
        let (from, hello) = (candidate.address, &candidate.hello);
        if self.is_over || self.is_found {
            return;
        }
        match self.expected_hello {
            Some(expected) if expected != implicit_hash(candidate.octets) => {
                return common.warn(self.id, Warning::HelloHash);
            }
            None if self.given.is_some() && !self.is_given(from) => return,
            _ => {}
        }
        // Section 4.1.1: a peer with a higher version changes to ours.
        if hello.version[..VERSION_LEN] > VERSION[..VERSION_LEN] {
            return;
        }
        // Section 4.4.3: all streams of a session have the same peer.
        if common.secured.as_ref().is_some_and(|secured| secured.peer != hello.zid) {
            return common.warn(self.id, Warning::Forged);
        }
        let mut known = self.candidates.iter_mut().filter(|one| one.address == from);
        let is_proved = if let Some(known) = known.next() {
            // Each exchange has its own credit, so an unproved address gets only one exchange.
            if !known.link.credit.is_proved() {
                return known.link.credit.receive(candidate.len);
            }
            true
        } else {
            self.is_given(from) || self.proofs.take(from)
        };
        if self.make_room(is_proved, common) {
            self.admit(now, candidate, is_proved, common);
        } else {
            self.reply(from, &ping(candidate.cookie));
        }
    }

    fn is_given(&self, address: SocketAddr) -> bool {
        // A dual-stack socket reports IPv4 addresses in their IPv6 form.
        let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        self.given.is_some_and(|given| canonical(given) == canonical(address))
    }

    fn admit(
        &mut self,
        now: Instant,
        candidate: Candidate<'_>,
        is_proved: bool,
        common: &mut Common,
    ) {
        let (address, ssrc) = (candidate.address, candidate.ssrc);
        let Hello { zid, client, .. } = candidate.hello;
        common.push_event(self.id, Event::Discovered { address, zid, client });
        let is_given = self.is_given(address);
        let pending_hello = self.pending_hello.take_if(|_| is_given).unwrap_or_else(|| {
            let credit = if is_proved { Credit::unlimited() } else { Credit::default() };
            self.pending_hello(credit, common)
        });
        let (own, chain) = ((self.id, self.ssrc), self.chain.clone());
        let mut exchange = Exchange::new(own, chain, candidate, pending_hello, now, common);
        exchange.answer_hello(now, ssrc, common);
        self.candidates.push(exchange);
    }

    /// Makes room for one more candidate; returns `false` if that is impossible. A candidate with a
    /// proved address displaces the oldest one without.
    fn make_room(&mut self, is_proved: bool, common: &mut Common) -> bool {
        if self.candidates.len() < CANDIDATES_MAX {
            return true;
        }
        let is_replaceable = |one: &Exchange| is_proved && !one.link.credit.is_proved();
        let over = self.candidates.iter().position(Exchange::is_over);
        let Some(at) = over.or_else(|| self.candidates.iter().position(is_replaceable)) else {
            return false;
        };
        common.release(self.candidates.remove(at).number);
        true
    }

    fn on_ping_ack(&mut self, from: SocketAddr, answer: &PingAck) {
        if self.is_found || !self.proofs.is_proof(from, answer) {
            return;
        }
        if !self.has_candidate_at(from) {
            self.proofs.keep(from);
        }
        for candidate in self.candidates.iter_mut().filter(|one| one.address == from) {
            candidate.on_proof();
        }
    }

    /// Answers a Ping (section 5.15): any endpoint may ask which endpoint is behind a stream.
    fn answer_ping(&mut self, from: SocketAddr, ssrc: u32, ping: Ping) {
        let mut endpoint_hash = [0; 8];
        endpoint_hash.copy_from_slice(&self.hello_hash()[..8]);
        let answer = PingAck {
            version: VERSION,
            endpoint_hash,
            received_hash: ping.endpoint_hash,
            received_ssrc: ssrc,
        };
        self.reply(from, &Message::PingAck(answer));
    }

    /// Queues one packet, which is less than three times as long as the packet that it answers.
    fn reply(&mut self, to: SocketAddr, message: &Message<'_>) {
        if self.replies.len() < REPLIES_MAX {
            let (mut octets, mut datagram) = (Vec::new(), Vec::new());
            message.write(&mut octets);
            write_packet(0, self.ssrc, &octets, &mut datagram);
            self.replies.push_back((to, datagram));
        }
    }

    /// Updates the stream from the state of its candidates.
    fn update(&mut self, now: Instant, common: &mut Common) {
        if !self.is_found && self.candidates.iter().any(Exchange::has_keys) {
            self.is_found = true;
            for other in self.candidates.extract_if(.., |one| !one.has_keys()) {
                common.release(other.number);
            }
            (self.pending_hello, self.failure) = (None, None);
        }
        for n in 0..self.candidates.len() {
            let candidate = &mut self.candidates[n];
            let Some(ending) = candidate.ending.take() else { continue };
            let address = candidate.address;
            if self.is_found {
                self.fail(ending, common);
                continue;
            }
            let Ending { error, by_peer, refusal } = ending;
            common.push_event(self.id, Event::CandidateFailed { address, error, by_peer, refusal });
            if self.is_given(address) {
                self.failure = Some((ending, now + FAILURE_GRACE));
            }
        }
    }

    fn fail(&mut self, ending: Ending, common: &mut Common) {
        let Ending { error, by_peer, refusal } = ending;
        self.is_over = true;
        (self.pending_hello, self.failure) = (None, None);
        if let Some(refusal) = refusal {
            common.push_event(self.id, Event::Refused(refusal));
        }
        common.push_event(self.id, Event::Failed { error, by_peer });
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, common: &mut Common) {
        self.repeat_hello(now, common);
        for candidate in &mut self.candidates {
            candidate.handle_timeout(now, common);
        }
        self.update(now, common);
        if let Some((ending, due)) = self.failure
            && due <= now
        {
            if self.candidates.iter().all(Exchange::is_over) {
                self.fail(ending, common);
            } else {
                self.failure = Some((ending, now + FAILURE_GRACE));
            }
        }
        // A finished exchange is kept until its Error is acknowledged.
        self.candidates.retain(|one| !one.is_over() || one.retry.is_some());
    }

    fn repeat_hello(&mut self, now: Instant, common: &mut Common) {
        let Some(PendingHello { link, hello, schedule }) = &mut self.pending_hello else { return };
        while let Some(running) = schedule
            && running.due() <= now
        {
            if running.next().is_some() {
                link.send(hello);
                continue;
            }
            *schedule = None;
            if self.candidates.iter().all(Exchange::is_over) {
                common.push_event(self.id, Event::NoPeer);
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let pending_hello =
            self.pending_hello.as_ref().and_then(|pending_hello| pending_hello.schedule.as_ref());
        let pending_hello = pending_hello.map(Schedule::due);
        let failure = self.failure.map(|(_, due)| due);
        let candidates = self.candidates.iter().filter_map(Exchange::next_timeout);
        candidates.chain(pending_hello).chain(failure).min()
    }

    /// Returns the next datagram to send, and its destination.
    pub(super) fn poll_datagram(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let next = |one: &mut Exchange| Some((one.address, one.link.poll_datagram()?));
        let mut next = self.candidates.iter_mut().find_map(next);
        if next.is_none()
            && let (Some(pending_hello), Some(given)) = (&mut self.pending_hello, self.given)
        {
            next = pending_hello.link.poll_datagram().map(|datagram| (given, datagram));
        }
        let (to, mut datagram) = next.or_else(|| self.replies.pop_front())?;
        self.sequence = self.sequence.wrapping_add(1);
        set_sequence(&mut datagram, self.sequence);
        Some((to, datagram))
    }

    /// Lets all ready candidates send a Commit.
    pub(super) fn begin(&mut self, now: Instant, common: &mut Common) {
        for n in 0..self.candidates.len() {
            let is_alone = self.is_alone(n);
            let candidate = &mut self.candidates[n];
            if is_alone && let Err(fault) = on_erased_stack(|| candidate.begin(now, common)) {
                candidate.handle_fault(now, fault, common);
            }
        }
        self.update(now, common);
    }

    /// Returns whether no other candidate has the same address. A Commit answers one Hello. If an
    /// address sent several Hellos, this end waits for the peer's Commit, which identifies the
    /// peer's Hello.
    fn is_alone(&self, n: usize) -> bool {
        let address = self.candidates[n].address;
        let may_be_peer = |one: &&Exchange| one.address == address && one.may_be_peer();
        self.candidates.iter().filter(may_be_peer).count() == 1
    }

    /// Withdraws the Commit of one exchange, because the peer's Commit on another stream prevails.
    pub(super) fn withdraw(&mut self, now: Instant, exchange: u64) {
        for candidate in self.candidates.iter_mut().filter(|one| one.number == exchange) {
            candidate.withdraw(now);
        }
    }
}

/// Writes the Hello of an endpoint whose chain is `chain`.
pub(super) fn write_hello(chain: &OwnChain, config: &Config) -> Vec<u8> {
    let mut hello = Vec::new();
    config.hello(chain.image(3)).write(&mut hello);
    chain.sign(2, &mut hello);
    hello
}
