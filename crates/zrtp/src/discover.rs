//! The exchange of Hellos: whether the candidate receives messages of this end, and its
//! capabilities (RFC 6189 section 4.1).

use core::net::SocketAddr;
use std::time::{Duration, Instant};

use super::VERSION;
use super::chain::{OwnChain, PeerChain};
use super::error_code::ErrorCode;
use super::exchange::{Exchange, Peer, State};
use super::hello::Hello;
use super::link::{Link, Outgoing};
use super::message::Message;
use super::proof::ping;
use super::schedule::Schedule;
use super::session::StreamId;
use super::session_state::Common;
use super::stream::VERSION_LEN;

/// Time for a candidate to commit or to answer a Hello, longer than Hellos are repeated (section
/// 6).
const HELLO_TIMEOUT: Duration = Duration::from_secs(13);

/// Octets of a `HelloACK`.
const HELLO_ACK_LEN: usize = 12;

/// The contents of a candidate's first Hello, and its address.
pub(super) struct Candidate<'a> {
    pub(super) address: SocketAddr,
    pub(super) ssrc: u32,
    /// Octets of its packet.
    pub(super) len: usize,
    pub(super) hello: Hello,
    /// The Hello as received.
    pub(super) octets: &'a [u8],
    /// The cookie in a Ping to the candidate; an answer that contains it proves the address.
    pub(super) cookie: [u8; 8],
}

/// The Hellos sent to an address before a Hello arrives from it.
pub(super) struct PendingHello {
    pub(super) link: Link,
    pub(super) hello: Outgoing,
    pub(super) schedule: Option<Schedule>,
}

impl Exchange {
    /// Creates the exchange with a new `candidate`.
    pub(super) fn new(
        (id, ssrc): (StreamId, u32),
        chain: OwnChain,
        candidate: Candidate<'_>,
        pending_hello: PendingHello,
        now: Instant,
        common: &mut Common,
    ) -> Self {
        let Candidate { address, len, hello, octets, cookie, .. } = candidate;
        let chain_of_peer = PeerChain::new(hello.h3, octets);
        let PendingHello { mut link, hello: own_hello, schedule } = pending_hello;
        link.credit.receive(len);
        Self {
            id,
            number: common.next_number(),
            ssrc,
            address,
            chain,
            hello: own_hello,
            is_acked: false,
            hello_schedule: schedule,
            peer: Peer { hello, octets: octets.to_vec(), chain: chain_of_peer },
            cookie,
            owes_ack: true,
            link,
            retry: None,
            deadline: Some(now + HELLO_TIMEOUT),
            pending_error: None,
            late_commits: 0,
            state: State::Discovering,
            ending: None,
        }
    }

    /// Answers the candidate's first Hello, received with `ssrc`.
    pub(super) fn answer_hello(&mut self, now: Instant, ssrc: u32, common: &mut Common) {
        if ssrc == self.ssrc {
            return self.defer_error(now, ErrorCode::SsrcCollision, false);
        }
        if self.peer.hello.version[..VERSION_LEN] < VERSION[..VERSION_LEN] {
            return self.fail(now, ErrorCode::UnsupportedVersion, common);
        }
        if self.peer.hello.zid == common.config.zid {
            return self.fail(now, ErrorCode::EqualZids, common);
        }
        if let Some(schedule) = &mut self.hello_schedule {
            schedule.extend();
        } else {
            self.hello_schedule = Some(Schedule::of_hello(now, true));
            self.send_hello();
        }
        self.acknowledge();
    }

    /// Handles a repeated Hello of the candidate.
    pub(super) fn on_hello(&mut self) {
        if !matches!(self.state, State::Ended) {
            self.acknowledge();
        }
    }

    /// Sends `HelloACK`, which stops the candidate's Hellos. While its address is not proved, its
    /// Hellos provide the credit for ours, so `HelloACK` waits until the credit covers one more
    /// Hello of ours.
    fn acknowledge(&mut self) {
        let len = self.link.len_of(HELLO_ACK_LEN) + self.link.len_of(self.hello.message.len());
        self.owes_ack = !self.is_acked && !self.link.credit.covers(len);
        if !self.owes_ack {
            self.link.send_once(&Message::HelloAck);
        }
    }

    pub(super) fn on_hello_ack(&mut self) {
        if self.is_acked {
            return;
        }
        self.note_acked();
        if self.owes_ack {
            self.acknowledge();
        }
    }

    /// Notes that the candidate has our Hello: it sent `HelloACK`, or a message that implies it.
    pub(super) fn note_acked(&mut self) {
        self.is_acked = true;
        self.hello_schedule = None;
    }

    /// Notes that the candidate answered a Ping, which proves that it receives at its address.
    pub(super) fn on_proof(&mut self) {
        self.link.credit.prove();
        if self.owes_ack && !self.is_over() {
            self.acknowledge();
        }
    }

    /// Sends the Hello, and a Ping if the address is not proved.
    fn send_hello(&mut self) {
        self.link.send(&self.hello);
        if !self.link.credit.is_proved() {
            self.link.send_once(&ping(self.cookie));
        }
    }

    /// Repeats the Hello when it is due. If no answer arrives, the exchange fails at its deadline.
    pub(super) fn repeat_hello(&mut self, now: Instant) {
        while let Some(schedule) = &mut self.hello_schedule
            && schedule.due() <= now
        {
            if schedule.next().is_some() {
                self.send_hello();
            } else {
                self.hello_schedule = None;
            }
        }
    }
}
