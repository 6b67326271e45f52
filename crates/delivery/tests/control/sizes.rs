//! Sizes that a client requests, before it accepts the first offer and while it streams.

use std::time::Duration;

use rushes_delivery::control::{
    Abilities, Change, ClientEvent, CommandError, Message, MessageError, Offer, Reason,
    ServerEvent, State,
};

use super::ends::{Ends, offer};

const SMALL: Change = Change { format: 0, rate: None, size_max: Some((640, 360)) };

fn scalable() -> Offer {
    Offer { abilities: Abilities::SIZES, ..offer() }
}

/// Returns the second offer, of smaller pictures.
fn scaled() -> Offer {
    let mut offer = Offer { epoch: 1, ..scalable() };
    (offer.mode.width, offer.mode.height) = (640, 360);
    offer
}

/// Returns two ends of which the client has an offer, which it has not answered.
fn offered(offer: Offer) -> Ends {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, offer.clone()).unwrap();
    ends.carry();
    assert_eq!(ends.client_events(), [ClientEvent::Offered(Box::new(offer))]);
    ends.server_events();
    ends
}

fn octets(change: Change) -> Vec<u8> {
    let mut octets = Vec::new();
    Message::Change(change).write(&mut octets);
    octets
}

#[test]
fn a_size_is_requested_instead_of_accepting_the_first_offer() {
    let mut ends = offered(scalable());
    ends.client.change(SMALL).unwrap();
    ends.carry();
    assert_eq!(ends.server_events(), [ServerEvent::ChangeWanted(SMALL)]);
    assert!(ends.client.accept(ends.now, &[], &[]).is_err(), "there is no offer to accept");
    assert!(
        ends.server.offer(ends.now, scalable()).is_err(),
        "its epoch is that of the one before"
    );
    ends.server.offer(ends.now, scaled()).unwrap();
    ends.carry();
    assert_eq!(ends.client_events(), [ClientEvent::Offered(Box::new(scaled()))]);
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    for unit in 0..3 {
        ends.server.unit_bound(ends.now, unit).unwrap();
    }
    ends.carry();
    assert_eq!(ends.client_events(), [ClientEvent::Streaming { epoch: 1 }]);
    assert_eq!(ends.client.current(), Some(&scaled()));
    // While streaming it is requested again, and what follows has the next epoch.
    let own = Change { size_max: Some((0, 0)), ..SMALL };
    ends.server_events();
    ends.client.change(own).unwrap();
    ends.carry();
    assert_eq!(ends.server_events(), [ServerEvent::ChangeWanted(own)]);
    ends.server.change(ends.now, Offer { epoch: 2, ..scalable() }).unwrap();
    ends.carry();
    assert!(matches!(&ends.client_events()[..], [ClientEvent::Offered(offer)] if offer.epoch == 2));
}

#[test]
fn the_second_offer_is_the_last() {
    let mut ends = offered(scalable());
    ends.client.change(SMALL).unwrap();
    ends.carry();
    ends.server.offer(ends.now, scaled()).unwrap();
    ends.carry();
    assert!(matches!(ends.client.change(SMALL), Err(CommandError::State(State::Negotiating))));
    ends.server.handle_data(ends.now, &octets(SMALL));
    assert_eq!(ends.server.state(), State::Stopped, "a hostile client requests it again");
}

#[test]
fn a_client_that_is_offered_no_other_size_ends_in_time() {
    let mut ends = offered(scalable());
    ends.client.change(SMALL).unwrap();
    ends.carry();
    ends.server_events();
    ends.pass(Duration::from_secs(4));
    assert_eq!(ends.client.state(), State::Opening);
    ends.pass(Duration::from_secs(2));
    assert_eq!((ends.client.state(), ends.server.state()), (State::Stopped, State::Stopped));
}

#[test]
fn sizes_need_the_ability() {
    let mut ends = offered(offer());
    assert!(matches!(ends.client.change(SMALL), Err(CommandError::State(_))));
    ends.server.handle_data(ends.now, &octets(SMALL));
    assert_eq!(ends.server.state(), State::Stopped, "out of turn");
    let mut ends = Ends::streaming(offer());
    assert!(matches!(ends.client.change(SMALL), Err(CommandError::State(_))));
    ends.client.change(Change { format: 9, ..Change::default() }).unwrap();
    ends.server.handle_data(ends.now, &octets(SMALL));
    let events = ends.server_events();
    let is_out_of_turn = |end: &ServerEvent| matches!(end, ServerEvent::Stopped(end) if end.reason == Reason::OutOfTurn);
    assert!(events.last().is_some_and(is_out_of_turn), "{events:?}");
}

#[test]
fn a_largest_size_has_both_sides_or_none() {
    for (size, is_valid) in [
        ((0, 0), true),
        ((1, 32_768), true),
        ((0, 1), false),
        ((1, 0), false),
        ((1, 32_769), false),
        ((u32::MAX, u32::MAX), false),
    ] {
        let written = octets(Change { size_max: Some(size), ..Change::default() });
        let read = Message::parse(&written);
        assert_eq!(read.is_ok(), is_valid, "{size:?}: {read:?}");
    }
    let half = [&octets(Change::default())[..3], &[13], &[0; 13]].concat();
    assert!(matches!(Message::parse(&half), Err(MessageError::Truncated { .. })));
}

#[test]
fn of_two_changes_the_newer_has_the_last_word() {
    let format = Change { format: 7, ..Change::default() };
    assert_eq!(format.then(SMALL), Change { format: 7, ..SMALL });
    let large = Change { format: 9, size_max: Some((1920, 1080)), rate: None };
    assert_eq!(format.then(SMALL).then(large), large);
    assert_eq!(SMALL.then(format).size_max, SMALL.size_max);
}
