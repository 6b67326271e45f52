//! What `is` wants to send and to say.

use is::IceAgentEvent;

use super::super::checks::Check;
use super::super::interface::{Event, Transmit};
use super::super::paths::Path;
use super::super::stun::{Binding, Class};
use super::{Agent, MAX_OUTBOX};

impl Agent {
    /// Takes over all outputs of `is`.
    pub(super) fn collect(&mut self) {
        while let Some(transmit) = self.inner.poll_transmit() {
            let path = Path { local: transmit.source, remote: transmit.destination };
            let datagram: Vec<u8> = transmit.contents.into();
            if self.outbox.len() >= MAX_OUTBOX || self.paths.is_lost(path) {
                continue;
            }
            let binding = Binding::parse(&datagram);
            if let Some(request) = binding.filter(|binding| binding.class() == Class::Request) {
                self.peer.checks.push(Check { id: request.id(), path, sent: self.now });
                self.statistics.requests_sent += 1;
            }
            self.outbox.push_back(Transmit { local: path.local, to: path.remote, datagram });
        }
        while let Some(event) = self.inner.poll_event() {
            if let IceAgentEvent::NominatedSend { source, destination, .. } = event {
                self.select(Path { local: source, remote: destination });
            }
        }
    }

    fn select(&mut self, path: Path) {
        if self.paths.is_lost(path) {
            return;
        }
        let since = self.paths.last(path).unwrap_or(self.now);
        self.gather.settle();
        if self.watch.select(path, since) {
            self.events.push_back(Event::Selected { local: path.local, remote: path.remote });
        }
    }
}
