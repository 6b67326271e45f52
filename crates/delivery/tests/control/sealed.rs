//! Connections under a secret: a peer without it gets no offer and learns nothing.

use std::time::Instant;

use rushes_delivery::control::{
    Channel, ChannelError, Client, ClientEvent, ControlSecret, Message, Opening, Reason, Server,
    ServerEvent, State, Timeline, Token,
};

use crate::ends::{offer, wishes};

pub(crate) fn secret(name: &str) -> ControlSecret {
    ControlSecret::new(&[name.as_bytes()]).unwrap()
}

/// Returns entropy whose octets are all `seed`.
pub(crate) fn entropy(seed: u8) -> impl FnMut(&mut [u8]) {
    move |out| out.fill(seed)
}

fn client_channel(name: &str, seed: u8) -> Channel {
    Channel::connect(&secret(name), &mut entropy(seed)).unwrap()
}

fn server_channel(name: &str, seed: u8) -> Channel {
    Channel::accept(&secret(name), &mut entropy(seed))
}

/// A server and a client, each with its channel, and all octets between them.
pub(crate) struct Ends {
    pub(crate) now: Instant,
    pub(crate) server: (Server, Channel),
    pub(crate) client: (Client, Channel),
    pub(crate) to_server: Vec<u8>,
    pub(crate) to_client: Vec<u8>,
    pub(crate) errors: [Option<ChannelError>; 2],
}

impl Ends {
    pub(crate) fn new(server: Channel, client: Channel) -> Self {
        let now = Instant::now();
        let timeline = Timeline::new(now);
        Self {
            now,
            server: (Server::new(now, timeline), server),
            client: (Client::new(now, timeline, wishes()), client),
            to_server: Vec::new(),
            to_client: Vec::new(),
            errors: [None, None],
        }
    }

    /// Carries all octets, `len` at a time, until neither end has any to send.
    pub(crate) fn carry(&mut self, len: usize) {
        loop {
            let (machine, channel) = &mut self.client;
            machine.data_sent(channel.send(machine.poll_data()));
            let there = take(channel, &mut self.to_server);
            self.give_server(&there, len);
            let (machine, channel) = &mut self.server;
            machine.data_sent(channel.send(machine.poll_data()));
            let back = take(channel, &mut self.to_client);
            self.give_client(&back, len);
            if there.is_empty() && back.is_empty() {
                return;
            }
        }
    }

    pub(crate) fn give_server(&mut self, octets: &[u8], len: usize) {
        let (machine, channel) = &mut self.server;
        let error = feed(channel, octets, len, |plain| machine.handle_data(self.now, plain));
        if let Some(error) = &error {
            machine.handle_failure(error);
        }
        self.errors[0] = self.errors[0].take().or(error);
    }

    pub(crate) fn give_client(&mut self, octets: &[u8], len: usize) {
        let (machine, channel) = &mut self.client;
        let error = feed(channel, octets, len, |plain| machine.handle_data(self.now, plain));
        if let Some(error) = &error {
            machine.handle_failure(error);
        }
        self.errors[1] = self.errors[1].take().or(error);
    }

    pub(crate) fn client_reason(&mut self) -> Option<Reason> {
        std::iter::from_fn(|| self.client.0.poll_event()).find_map(|event| match event {
            ClientEvent::Stopped(stopped) => Some(stopped.reason),
            _ => None,
        })
    }

    pub(crate) fn server_events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.server.0.poll_event()).collect()
    }

    /// Continues until the client has received an offer.
    pub(crate) fn offered(mut self) -> Self {
        self.carry(usize::MAX);
        assert_eq!(self.server_events(), [ServerEvent::Wants(wishes())]);
        self.server.0.offer(self.now, offer()).unwrap();
        self.carry(usize::MAX);
        let event = self.client.0.poll_event();
        assert_eq!(event, Some(ClientEvent::Offered(Box::new(offer()))));
        self
    }
}

/// Passes octets to a channel, `len` at a time, until it fails.
fn feed(
    channel: &mut Channel,
    octets: &[u8],
    len: usize,
    mut handle: impl FnMut(&[u8]),
) -> Option<ChannelError> {
    octets.chunks(len).find_map(|octets| {
        let mut plain = Vec::new();
        let outcome = channel.receive(octets, &mut plain);
        handle(&plain);
        outcome.err()
    })
}

fn take(channel: &mut Channel, wire: &mut Vec<u8>) -> Vec<u8> {
    let octets = channel.poll_data().to_vec();
    channel.data_sent(octets.len());
    wire.extend_from_slice(&octets);
    octets
}

#[test]
fn two_ends_with_the_secret_agree_and_show_nothing() {
    let ends = Ends::new(server_channel("k", 1), client_channel("k", 2)).offered();
    for wire in [&ends.to_server, &ends.to_client] {
        assert!(!wire.windows(16).any(|octets| octets == offer().token.0));
        // Of the opening of a clear connection, only the first six octets are sent.
        let mut opening = Vec::new();
        Opening::Control(wishes()).write(&mut opening);
        assert!(!wire.windows(8).any(|octets| octets == &opening[8..16]));
    }
}

#[test]
fn octets_may_come_one_by_one() {
    let mut ends = Ends::new(server_channel("k", 1), client_channel("k", 2));
    ends.carry(1);
    assert_eq!(ends.server_events(), [ServerEvent::Wants(wishes())]);
    assert_eq!(ends.errors, [None, None]);
}

#[test]
fn each_connection_has_keys_of_its_own_and_each_use_another() {
    let mut keys = Vec::new();
    for seed in [1, 3] {
        let ends = Ends::new(server_channel("k", seed), client_channel("k", seed + 1)).offered();
        for label in [&b"to the client"[..], b"to the server"] {
            let mut of_both = [[0; 28]; 2];
            assert!(ends.server.1.export(label, &mut of_both[0]));
            assert!(ends.client.1.export(label, &mut of_both[1]));
            assert_eq!(of_both[0], of_both[1]);
            keys.push(of_both[0]);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4);
    assert!(!Channel::clear().export(b"to the client", &mut [0; 28]));
    assert!(!client_channel("k", 1).export(b"to the client", &mut [0; 28]), "not agreed yet");
}

#[test]
fn a_client_without_the_secret_is_refused_before_anything_is_offered() {
    for (client, error) in [
        (Channel::clear(), ChannelError::NoKey),
        (client_channel("another", 2), ChannelError::OtherKey),
    ] {
        let mut ends = Ends::new(server_channel("k", 1), client);
        ends.carry(usize::MAX);
        assert_eq!(ends.errors[0], Some(error));
        let events = ends.server_events();
        assert!(matches!(&events[..], [ServerEvent::Stopped(_)]), "{events:?}");
        assert_eq!(ends.client_reason(), Some(Reason::Key));
        assert!(ends.to_client.len() < 100, "no more than a refusal");
    }
}

#[test]
fn a_client_with_a_secret_takes_nothing_of_a_server_that_has_none() {
    let mut ends = Ends::new(Channel::clear(), client_channel("k", 2));
    ends.carry(usize::MAX);
    assert_eq!(ends.client_reason(), Some(Reason::Key));
    // A client accepts no offer from such a server, either.
    let mut ends = Ends::new(server_channel("k", 1), client_channel("k", 2));
    let mut octets = Vec::new();
    Message::Offer(Box::new(offer())).write(&mut octets);
    ends.give_client(&octets, usize::MAX);
    assert_eq!(ends.errors[1], Some(ChannelError::NoAnswer));
    assert_eq!(ends.client.0.state(), State::Stopped);
}

#[test]
fn a_recorded_client_is_offered_nothing() {
    let recorded = Ends::new(server_channel("k", 1), client_channel("k", 2)).offered().to_server;
    let mut ends = Ends::new(server_channel("k", 9), Channel::clear());
    ends.give_server(&recorded, usize::MAX);
    assert_eq!(ends.errors[0], Some(ChannelError::Forged));
    let events = ends.server_events();
    assert!(matches!(&events[..], [ServerEvent::Stopped(_)]), "{events:?}");
}

#[test]
fn a_recorded_servers_octets_are_not_accepted() {
    let recorded = Ends::new(server_channel("k", 1), client_channel("k", 2)).offered().to_client;
    let mut ends = Ends::new(Channel::clear(), client_channel("k", 3));
    ends.give_client(&recorded, usize::MAX);
    assert_eq!(ends.errors[1], Some(ChannelError::OtherKey));
}

#[test]
fn every_changed_bit_ends_the_connection_and_is_never_an_event() {
    let honest = Ends::new(server_channel("k", 1), client_channel("k", 2)).offered();
    for bit in 0..8 * honest.to_server.len() {
        let mut octets = honest.to_server.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let mut ends = Ends::new(server_channel("k", 1), Channel::clear());
        ends.give_server(&octets, usize::MAX);
        let events = ends.server_events();
        let wants = events.iter().any(|event| matches!(event, ServerEvent::Wants(_)));
        // A length beyond the octets after it makes the server wait.
        let is_over = ends.server.0.state() == State::Stopped;
        assert!(!wants && (is_over || events.is_empty()), "bit {bit}: {events:?}");
    }
    for bit in 0..8 * honest.to_client.len() {
        let mut octets = honest.to_client.clone();
        octets[bit / 8] ^= 1 << (bit % 8);
        let mut ends = Ends::new(Channel::clear(), client_channel("k", 2));
        ends.give_client(&octets, usize::MAX);
        let offered = matches!(ends.client.0.poll_event(), Some(ClientEvent::Offered(_)));
        assert!(!offered, "bit {bit}");
    }
}

#[test]
fn a_channel_takes_no_more_than_it_has_room_for() {
    let mut ends = Ends::new(server_channel("k", 1), client_channel("k", 2)).offered();
    for channel in [&mut ends.server.1, &mut Channel::clear()] {
        let plain = vec![7; 1 << 20];
        let taken: usize = (0..100).map(|_| channel.send(&plain)).sum();
        assert!(taken <= 32 << 10, "{taken}");
        assert!(channel.poll_data().len() <= 34 << 10);
    }
}

#[test]
fn nothing_shows_a_secret() {
    let text = format!("{:?} {:?} {:?}", secret("k"), client_channel("k", 1), Token([9; 16]));
    assert!(!text.contains('9') && !text.contains("107"), "{text}");
}
