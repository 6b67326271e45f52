//! A control connection driven by hand, to a server or to a client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rushes::delivery::control::{
    Abilities, Accept, FormatSet, Message, Offer, Opening, Reason, Token, TransportSet,
    UnitOpening, Wishes,
};
use rushes::texture::Transport;

/// Returns wishes that any server can fulfil.
pub(crate) fn wishes(transport: Transport) -> Wishes {
    Wishes {
        formats: FormatSet(u64::MAX),
        transports: TransportSet::ALL,
        format: 0,
        transport: Some(transport),
        units: 2,
        payload: 0,
        rate: None,
        abilities: Abilities::default(),
    }
}

pub(crate) fn opening(opening: Opening) -> Vec<u8> {
    let mut octets = Vec::new();
    opening.write(&mut octets);
    octets
}

/// Returns the octets that bind a unit.
pub(crate) fn binding(token: Token, unit: u8) -> Vec<u8> {
    opening(Opening::Unit(UnitOpening { token, unit }))
}

pub(crate) struct Stranger {
    pub(crate) socket: TcpStream,
    unread: Vec<u8>,
}

impl Stranger {
    pub(crate) fn new(socket: TcpStream) -> Self {
        // The timeout is longer than every deadline of the tests.
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, unread: Vec::new() }
    }

    pub(crate) fn connect(server: SocketAddr) -> Self {
        Self::new(TcpStream::connect(server).unwrap())
    }

    /// Sends octets; returns `false` if the connection is closed.
    pub(crate) fn send_octets(&mut self, octets: &[u8]) -> bool {
        self.socket.write_all(octets).is_ok()
    }

    pub(crate) fn send(&mut self, message: &Message) -> bool {
        let mut octets = Vec::new();
        message.write(&mut octets);
        self.send_octets(&octets)
    }

    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        match self.socket.read(&mut buffer) {
            Ok(count @ 1..) => {
                self.unread.extend(&buffer[..count]);
                true
            }
            _ => false,
        }
    }

    /// Returns the next message, or `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some((message, len)) = Message::parse(&self.unread).unwrap() {
                self.unread.drain(..len);
                return Some(message);
            }
            if !self.read() {
                return None;
            }
        }
    }

    /// Receives the client's opening.
    pub(crate) fn receive_opening(&mut self) -> Option<Opening> {
        loop {
            if let Some((opening, len)) = Opening::parse(&self.unread).unwrap() {
                self.unread.drain(..len);
                return Some(opening);
            }
            if !self.read() {
                return None;
            }
        }
    }

    /// Skips other messages and returns the reason and text of the end.
    pub(crate) fn receive_end(&mut self) -> Option<(Reason, String)> {
        loop {
            if let Message::Refuse { reason, text } | Message::Stop { reason, text } =
                self.receive()?
            {
                return Some((reason, text));
            }
        }
    }

    /// Requests a session.
    pub(crate) fn request(&mut self, wishes: Wishes) -> Offer {
        self.send_octets(&opening(Opening::Control(wishes)));
        match self.receive() {
            Some(Message::Offer(offer)) => *offer,
            other => panic!("{other:?} for an offer"),
        }
    }

    pub(crate) fn accept(&mut self) {
        let accept = Accept { epoch: 0, ports: Vec::new(), ssrcs: Vec::new() };
        assert!(self.send(&Message::Accept(accept)));
    }
}
