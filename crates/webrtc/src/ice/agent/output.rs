//! What `is` wants to send and to say.

use is::IceAgentEvent;

use super::super::checks::Check;
use super::super::interface::{Event, Transmit};
use super::super::paths::Path;
use super::super::stun::{Class, Message};
use super::{Agent, MAX_OUTBOX};

impl Agent {
    /// Takes over all outputs of `is`.
    pub(super) fn collect(&mut self) {
        while let Some(transmit) = self.inner.poll_transmit() {
            let path = Path { local: transmit.source, remote: transmit.destination };
            let datagram: Vec<u8> = transmit.contents.into();
            let binding = Message::binding(&datagram);
            let request = binding.filter(|binding| binding.class() == Class::Request);
            if request.is_some() {
                if !self.may_check(path, datagram.len()) {
                    continue;
                }
                self.pace();
            }
            if self.outbox.len() >= MAX_OUTBOX || self.paths.is_lost(path) {
                continue;
            }
            if let Some(request) = request {
                self.peer.checks.push(Check { id: request.id(), path, sent: self.now });
                self.statistics.requests_sent += 1;
            }
            match &mut self.turn {
                Some(turn) if turn.relay() == Some(path.local) => {
                    turn.send(path.remote, &datagram, self.now);
                }
                _ => {
                    let Path { local, remote: to } = path;
                    self.outbox.push_back(Transmit { local, to, datagram });
                }
            }
        }
        self.collect_of_relay();
        while let Some(event) = self.inner.poll_event() {
            if let IceAgentEvent::NominatedSend { source, destination, .. } = event {
                self.select(Path { local: source, remote: destination });
            }
        }
    }

    /// Returns whether a check may be sent: to an address that has answered, or within the octets for all others.
    fn may_check(&mut self, path: Path, octets: usize) -> bool {
        let is_asked = self.peer.has_asked(path);
        self.accepts_media_from(path.remote) || self.unproved.take(octets, is_asked, self.now)
    }

    pub(super) fn select(&mut self, path: Path) {
        if self.paths.is_lost(path) {
            return;
        }
        let since = self.paths.last(path).unwrap_or(self.now);
        self.gather.settle();
        self.settle_relay(path);
        if self.watch.select(path, since) {
            self.events.push_back(Event::Selected { local: path.local, remote: path.remote });
        }
    }
}
