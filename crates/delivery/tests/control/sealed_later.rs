//! Connections that are clear until both ends know a secret, which reveals any earlier change.

use rushes_delivery::control::{
    Channel, ChannelError, ClientEvent, FrameNotice, Message, Opening, Ping, Reason, State,
};

use crate::ends::{offer, wishes};
use crate::sealed::{Ends, entropy, secret};

fn fresh() -> Ends {
    Ends::new(Channel::clear_at_first(false), Channel::clear_at_first(true))
}

/// Returns two ends after the client's answer to the offer.
fn accepted() -> Ends {
    let mut ends = fresh().offered();
    ends.client.0.accept(ends.now, &[], &[]).unwrap();
    ends.carry(usize::MAX);
    ends
}

fn seal(ends: &mut Ends, is_client: bool, name: &str) -> Result<(), ChannelError> {
    let (channel, seed) = if is_client { (&mut ends.client.1, 1) } else { (&mut ends.server.1, 2) };
    channel.seal(&secret(name), &mut entropy(seed))
}

/// Binds all units at the server.
fn bind(ends: &mut Ends) {
    for unit in 0..3 {
        ends.server.0.unit_bound(ends.now, unit).unwrap();
    }
}

fn is_streaming(ends: &mut Ends) -> bool {
    let mut events = std::iter::from_fn(|| ends.client.0.poll_event());
    events.any(|event| matches!(event, ClientEvent::Streaming { .. }))
}

#[test]
fn the_rest_is_sealed_whichever_end_has_the_secret_first() {
    for (order, len) in
        [([true, false], usize::MAX), ([false, true], usize::MAX), ([true, false], 1)]
    {
        let mut ends = accepted();
        assert!(!ends.client.1.is_open() && ends.client.1.awaits_secret());
        let clear = [ends.to_server.len(), ends.to_client.len()];
        for is_client in order {
            seal(&mut ends, is_client, "k").unwrap();
            ends.carry(len);
        }
        assert!(ends.client.1.is_open() && ends.server.1.is_open());
        bind(&mut ends);
        ends.server
            .0
            .frame(FrameNotice { captured: 0x5a5a_5a5a, ..FrameNotice::default() })
            .unwrap();
        ends.carry(len);
        assert!(is_streaming(&mut ends), "{order:?} {len}: {:?}", ends.errors);
        // The handshake has 56 and 52 octets; no part of `Start` and `Frame` is readable.
        assert_eq!(ends.to_server[clear[0]..][..8], *b"RSHT\0\x01\x03\0");
        let sealed = &ends.to_client[clear[1] + 52..];
        assert!(!sealed.is_empty() && !sealed.windows(4).any(|octets| octets == [0x5a; 4]));
    }
}

#[test]
fn each_connection_has_keys_of_its_own_for_each_use() {
    let mut ends = accepted();
    seal(&mut ends, true, "k").unwrap();
    seal(&mut ends, false, "k").unwrap();
    ends.carry(usize::MAX);
    let mut keys = [[0; 16]; 2];
    assert!(ends.client.1.export(b"a", &mut keys[0]) && ends.server.1.export(b"a", &mut keys[1]));
    assert_eq!(keys[0], keys[1]);
}

#[test]
fn whatever_was_changed_in_the_clear_is_found_before_anything_begins() {
    let honest = accepted();
    for (is_to_server, len) in [(true, honest.to_server.len()), (false, honest.to_client.len())] {
        for bit in 0..8 * len {
            let mut ends = fresh();
            let change = |octets: &mut Vec<u8>, from: usize| {
                if (from..from + octets.len()).contains(&(bit / 8)) {
                    octets[bit / 8 - from] ^= 1 << (bit % 8);
                }
            };
            let mut sent = [0, 0];
            for step in 0..3 {
                let (machine, channel) = &mut ends.client;
                machine.data_sent(channel.send(machine.poll_data()));
                let mut octets = channel.poll_data().to_vec();
                channel.data_sent(octets.len());
                if is_to_server {
                    change(&mut octets, sent[0]);
                }
                sent[0] += octets.len();
                ends.give_server(&octets, usize::MAX);
                if step == 0 {
                    // This fails if the opening was malformed.
                    let _ = ends.server.0.offer(ends.now, offer());
                }
                let (machine, channel) = &mut ends.server;
                machine.data_sent(channel.send(machine.poll_data()));
                let mut octets = channel.poll_data().to_vec();
                channel.data_sent(octets.len());
                if !is_to_server {
                    change(&mut octets, sent[1]);
                }
                sent[1] += octets.len();
                ends.give_client(&octets, usize::MAX);
                let _ = ends.client.0.accept(ends.now, &[], &[]);
            }
            let _ = seal(&mut ends, true, "k");
            let _ = seal(&mut ends, false, "k");
            ends.carry(usize::MAX);
            assert!(!ends.server.1.is_open(), "bit {bit}, to the server: {is_to_server}");
            assert!(!is_streaming(&mut ends), "bit {bit}, to the server: {is_to_server}");
        }
    }
}

#[test]
fn another_secret_is_refused() {
    let mut ends = accepted();
    seal(&mut ends, true, "k").unwrap();
    seal(&mut ends, false, "another").unwrap();
    ends.carry(usize::MAX);
    assert_eq!(ends.errors[0], Some(ChannelError::OtherKey));
    assert_eq!(ends.client_reason(), Some(Reason::Key));
}

#[test]
fn only_messages_that_lead_to_a_secret_are_accepted_in_the_clear() {
    let write = |message: Message| {
        let mut octets = Vec::new();
        message.write(&mut octets);
        octets
    };
    for message in [Message::Start { epoch: 0 }, Message::Frame(FrameNotice::default())] {
        let mut ends = accepted();
        ends.give_client(&write(message.clone()), usize::MAX);
        assert_eq!(ends.errors[1], Some(ChannelError::Clear(message.name())));
        assert!(!is_streaming(&mut ends) && ends.client.0.state() == State::Stopped);
    }
    let mut ends = accepted();
    ends.give_server(&write(Message::Ping(Ping::default())), usize::MAX);
    assert_eq!(ends.errors[0], Some(ChannelError::Clear("Ping")));

    // The reason for the end is reported as one that anyone could have sent.
    for is_refusal in [true, false] {
        let mut ends = if is_refusal { fresh() } else { accepted() };
        let (reason, text) = (Reason::Busy, "full".to_owned());
        let message = if is_refusal {
            Message::Refuse { reason, text: text.clone() }
        } else {
            Message::Stop { reason, text: text.clone() }
        };
        ends.give_client(&write(message), usize::MAX);
        assert_eq!(ends.errors[1], Some(ChannelError::Refused { reason, text }));
        assert_eq!(ends.client_reason(), Some(Reason::Busy));
    }
}

#[test]
fn a_client_sends_nothing_more_before_the_answer() {
    let mut ends = accepted();
    seal(&mut ends, true, "k").unwrap();
    ends.carry(usize::MAX);
    assert_eq!(ends.client.1.send(b"more"), 0);
    ends.give_server(b"more", usize::MAX);
    assert_eq!(ends.errors[0], Some(ChannelError::Forged));
}

#[test]
fn octets_in_the_clear_are_limited() {
    let mut opening = Vec::new();
    Opening::Control(wishes()).write(&mut opening);
    let mut stop = Vec::new();
    Message::Stop { reason: Reason::Ended, text: "x".repeat(200) }.write(&mut stop);
    let mut channel = Channel::clear_at_first(false);
    let mut plain = Vec::new();
    channel.receive(&opening, &mut plain).unwrap();
    let ended = (0..100).find_map(|_| channel.receive(&stop, &mut plain).err());
    assert_eq!(ended, Some(ChannelError::Clear("too many octets")));
    assert!(plain.len() < 10_000);
}
