//! The socket and the channel of a control connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Instant;

use rushes_delivery::control::{Channel, ChannelError, Client, Server};
use rushes_net::{Interest, Read, TcpSocket};

/// The state machine of one side of a control connection.
pub(super) trait Machine {
    fn poll_data(&self) -> &[u8];
    fn data_sent(&mut self, len: usize);
    fn handle_data(&mut self, now: Instant, octets: &[u8]);
    fn handle_close(&mut self);
    fn handle_failure(&mut self, error: &ChannelError);
}

macro_rules! machine {
    ($side:ty) => {
        impl Machine for $side {
            fn poll_data(&self) -> &[u8] {
                self.poll_data()
            }

            fn data_sent(&mut self, len: usize) {
                self.data_sent(len);
            }

            fn handle_data(&mut self, now: Instant, octets: &[u8]) {
                self.handle_data(now, octets);
            }

            fn handle_close(&mut self) {
                self.handle_close();
            }

            fn handle_failure(&mut self, error: &ChannelError) {
                self.handle_failure(error);
            }
        }
    };
}

machine!(Client);
machine!(Server);

/// Transfers the octets of a [`Machine`].
pub(super) struct Wire {
    pub(super) socket: Arc<TcpSocket>,
    pub(super) channel: Channel,
    plain: Vec<u8>,
}

impl Wire {
    pub(super) fn new(socket: Arc<TcpSocket>, channel: Channel) -> Self {
        Self { socket, channel, plain: Vec::new() }
    }

    /// Returns the events to wait for on the socket.
    pub(super) fn interest(&self) -> Interest {
        if self.is_waiting() { Interest::Both } else { Interest::Readable }
    }

    /// Returns whether octets wait to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.channel.poll_data().is_empty()
    }

    /// Reads from the socket once, and hands the octets to `machine`.
    pub(super) fn read(&mut self, machine: &mut impl Machine) {
        let mut buffer = [0; 4096];
        match self.socket.read(&mut buffer) {
            Ok(Read::Octets(count)) => {
                let outcome = self.channel.receive(&buffer[..count], &mut self.plain);
                machine.handle_data(Instant::now(), &self.plain);
                self.plain.clear();
                if let Err(error) = outcome {
                    machine.handle_failure(&error);
                }
            }
            Ok(Read::Nothing) => {}
            Ok(Read::End) | Err(_) => machine.handle_close(),
        }
    }

    /// Sends as much as the socket accepts; returns false if the connection is broken.
    pub(super) fn flush(&mut self, machine: &mut impl Machine) -> bool {
        loop {
            machine.data_sent(self.channel.send(machine.poll_data()));
            if !self.is_waiting() {
                return true;
            }
            match self.socket.write_some(&[IoSlice::new(self.channel.poll_data())]) {
                Ok(0) => return true,
                Ok(count) => self.channel.data_sent(count),
                Err(_) => {
                    machine.handle_close();
                    return false;
                }
            }
        }
    }

    /// Sends the remaining octets, until `until` at the latest, and closes the connection.
    pub(super) fn finish(&mut self, machine: &mut impl Machine, until: Instant) {
        while self.flush(machine) && self.is_waiting() && Instant::now() < until {
            if self.socket.wait(Interest::Writable, Some(until), None).is_err() {
                break;
            }
        }
        self.socket.shut_down();
    }
}
