//! Hellos: finding out whether there is a peer, and what it can do (RFC 6189 section 4.1).

use std::time::{Duration, Instant};

use super::VERSION;
use super::chain::{PeerChain, implicit_hash};
use super::error_code::ErrorCode;
use super::event::{Event, Warning};
use super::exchange::{Exchange, Fatal, Peer, State};
use super::hello::Hello;
use super::message::Message;
use super::ping::{Ping, PingAck};
use super::schedule::Schedule;
use super::session_state::Common;
use crate::ssrc::Ssrc;

/// How long the Hello of a peer that acknowledged ours is waited for: as long as it sends some.
const HELLO_PATIENCE: Duration = Duration::from_secs(13);

/// Octets of the version that count (section 4.1.1).
const VERSION_LEN: usize = 3;

impl Exchange {
    pub(super) fn on_hello(
        &mut self,
        now: Instant,
        hello: Hello,
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fatal> {
        if matches!(self.state, State::Ended) {
            return Ok(());
        }
        if let Some(peer) = &self.peer {
            // Another one does not disturb what is under way.
            if peer.octets == octets {
                self.send_once(&Message::HelloAck);
            }
            return Ok(());
        }
        if self.expected_hello.is_some_and(|expected| expected != implicit_hash(octets)) {
            common.warn(self.id, Warning::HelloHash);
            return Ok(());
        }
        match hello.version[..VERSION_LEN].cmp(&VERSION[..VERSION_LEN]) {
            std::cmp::Ordering::Less => return Err(Fatal(ErrorCode::UnsupportedVersion)),
            std::cmp::Ordering::Greater => return Ok(()),
            std::cmp::Ordering::Equal => {}
        }
        if hello.zid == common.config.zid {
            return Err(Fatal(ErrorCode::EqualZids));
        }
        // Section 4.4.3: all streams of a session are of one peer.
        if common.secured.as_ref().is_some_and(|secured| secured.peer != hello.zid) {
            common.warn(self.id, Warning::Forged);
            return Ok(());
        }
        common.tell(self.id, Event::Discovered { zid: hello.zid, client: hello.client });
        let chain = PeerChain::new(hello.h3, octets);
        self.peer = Some(Peer { hello, octets: octets.to_vec(), chain });
        self.send_once(&Message::HelloAck);
        match &mut self.hello_schedule {
            Some(schedule) => schedule.extend(),
            // Late, but here.
            None if !self.is_acked => {
                self.hello_schedule = Some(Schedule::of_hello(now, true));
                self.link.send(&self.hello);
            }
            None => self.deadline = None,
        }
        self.begin(now, common)
    }

    pub(super) fn on_hello_ack(&mut self, now: Instant, common: &mut Common) {
        if self.is_acked {
            return;
        }
        self.note_acked();
        if self.peer.is_none() {
            self.deadline = Some(now + HELLO_PATIENCE);
        } else if let Err(Fatal(error)) = self.begin(now, common) {
            self.fail(now, error, common);
        }
    }

    /// The peer has our Hello: it says so, or sends what only follows it.
    pub(super) fn note_acked(&mut self) {
        self.is_acked = true;
        self.hello_schedule = None;
    }

    pub(super) fn say_hello(&mut self, now: Instant) {
        if !self.is_acked && matches!(self.state, State::Discovering) {
            self.hello_schedule = Some(Schedule::of_hello(now, self.peer.is_some()));
            self.link.send(&self.hello);
        }
    }

    pub(super) fn repeat_hello(&mut self, now: Instant, common: &mut Common) {
        while let Some(schedule) = &mut self.hello_schedule
            && schedule.due() <= now
        {
            if schedule.next().is_some() {
                self.link.send(&self.hello);
                continue;
            }
            self.hello_schedule = None;
            if self.peer.is_some() {
                // It is there and does not hear us.
                self.fail(now, ErrorCode::ProtocolTimeout, common);
            } else {
                self.tell_no_peer(common);
            }
        }
    }

    pub(super) fn tell_no_peer(&mut self, common: &mut Common) {
        if !std::mem::replace(&mut self.told_no_peer, true) {
            common.tell(self.id, Event::NoPeer);
        }
    }

    /// Answers a Ping (section 5.15): any endpoint may ask who is behind a stream.
    pub(super) fn on_ping(&mut self, ssrc: Ssrc, ping: Ping) {
        let hash = implicit_hash(&self.hello.message);
        let mut endpoint_hash = [0; 8];
        endpoint_hash.copy_from_slice(&hash[..8]);
        self.send_once(&Message::PingAck(PingAck {
            version: VERSION,
            endpoint_hash,
            received_hash: ping.endpoint_hash,
            received_ssrc: ssrc,
        }));
    }
}
