//! The socket and the channel of a control connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_delivery::control::{Channel, ChannelError, Client, Server};
use rushes_net::{Interest, Read, TcpSocket};

/// Maximum reads after a connection has broken.
const LAST_READS_MAX: usize = 64;

/// Longest wait for octets to skip before the reasons not to wait are checked.
const LINGER_INTERVAL: Duration = Duration::from_millis(50);

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
        self.read_some(machine);
    }

    /// Reads as [`read`](Self::read); returns whether there were octets.
    fn read_some(&mut self, machine: &mut impl Machine) -> bool {
        let mut buffer = [0; 4096];
        match self.socket.read(&mut buffer) {
            Ok(Read::Octets(count)) => {
                let outcome = self.channel.receive(&buffer[..count], &mut self.plain);
                machine.handle_data(Instant::now(), &self.plain);
                self.plain.clear();
                if let Err(error) = outcome {
                    machine.handle_failure(&error);
                }
                return true;
            }
            Ok(Read::Nothing) => {}
            Ok(Read::End) | Err(_) => machine.handle_close(),
        }
        false
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
                    // The peer may have sent the reason before it closed the connection.
                    for _ in 0..LAST_READS_MAX {
                        if !self.read_some(machine) {
                            break;
                        }
                    }
                    machine.handle_close();
                    return false;
                }
            }
        }
    }

    /// Sends the remaining octets, until `until` at the latest, and closes the connection.
    pub(super) fn finish(&mut self, machine: &mut impl Machine, until: Instant) {
        self.finish_writing(machine, until);
        self.socket.shut_down();
    }

    /// Sends the remaining octets, until `until` at the latest, and ends the direction to the peer.
    pub(super) fn finish_writing(&mut self, machine: &mut impl Machine, until: Instant) {
        while self.flush(machine) && self.is_waiting() && Instant::now() < until {
            if self.socket.wait(Interest::Writable, Some(until), None).is_err() {
                break;
            }
        }
        self.socket.end_writing();
    }

    /// Skips what the peer sends until it closes the connection, or `is_over`; returns whether the peer has.
    ///
    /// What arrives at a closed connection resets it, and then octets that the peer lost are not sent again.
    pub(super) fn linger(&self, is_over: impl Fn() -> bool) -> bool {
        let mut buffer = [0; 4096];
        while !is_over() {
            match self.socket.read(&mut buffer) {
                Ok(Read::Octets(_)) => {}
                Ok(Read::Nothing) => {
                    let check = Some(Instant::now() + LINGER_INTERVAL);
                    if self.socket.wait(Interest::Readable, check, None).is_err() {
                        return true;
                    }
                }
                Ok(Read::End) | Err(_) => return true,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rushes_net::{TcpListener, TcpOptions};

    use super::*;

    /// Has something to send, and keeps what it gets.
    #[derive(Default)]
    struct Talker {
        said: Vec<u8>,
        heard: Vec<u8>,
        is_closed: bool,
    }

    impl Machine for Talker {
        fn poll_data(&self) -> &[u8] {
            &self.said
        }

        fn data_sent(&mut self, len: usize) {
            self.said.drain(..len);
        }

        fn handle_data(&mut self, _: Instant, octets: &[u8]) {
            assert!(!self.is_closed, "octets after the end");
            self.heard.extend(octets);
        }

        fn handle_close(&mut self) {
            self.is_closed = true;
        }

        fn handle_failure(&mut self, error: &ChannelError) {
            panic!("{error}");
        }
    }

    /// A peer that closes a connection with octets that it has not read resets it.
    #[test]
    fn what_a_peer_said_before_it_reset_the_connection_is_heard() {
        let until = Instant::now() + Duration::from_secs(20);
        let options = TcpOptions::default();
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let socket = TcpSocket::connect(listener.local_address(), &options, until).unwrap();
        let peer = listener.accept(Some(until), None).unwrap().unwrap();
        let mut wire = Wire::new(Arc::new(socket), Channel::clear());
        let mut talker = Talker { said: b"unread".to_vec(), ..Talker::default() };
        assert!(wire.flush(&mut talker));
        peer.wait(Interest::Readable, Some(until), None).unwrap();
        peer.write_all(&mut [IoSlice::new(&[7; 10_000])], Some(until), None).unwrap();
        drop(peer);
        loop {
            assert!(Instant::now() < until, "the connection is not reset");
            talker.said = b"more".to_vec();
            if !wire.flush(&mut talker) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(talker.heard == [7; 10_000] && talker.is_closed, "{}", talker.heard.len());
    }

    /// A client sends reports until it hears of the end.
    #[test]
    fn what_a_peer_says_after_the_end_is_skipped_until_it_closes_the_connection() {
        let until = Instant::now() + Duration::from_secs(20);
        let options = TcpOptions::default();
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let socket = TcpSocket::connect(listener.local_address(), &options, until).unwrap();
        let peer = listener.accept(Some(until), None).unwrap().unwrap();
        let mut wire = Wire::new(Arc::new(socket), Channel::clear());
        let mut talker = Talker { said: b"the end".to_vec(), ..Talker::default() };
        wire.finish_writing(&mut talker, until);
        peer.write_all(&mut [IoSlice::new(&[7; 10_000])], Some(until), None).unwrap();
        let looks = Cell::new(0);
        assert!(!wire.linger(|| looks.replace(looks.get() + 1) > 5), "the peer has not closed it");
        let (mut heard, mut buffer) = (Vec::<u8>::new(), [0; 100]);
        loop {
            match peer.read(&mut buffer).unwrap() {
                Read::Octets(count) => heard.extend(&buffer[..count]),
                Read::Nothing => {
                    peer.wait(Interest::Readable, Some(until), None).unwrap();
                }
                Read::End => break,
            }
        }
        assert_eq!(heard, b"the end");
        drop(peer);
        assert!(wire.linger(|| Instant::now() >= until), "the peer has closed it");
    }
}
