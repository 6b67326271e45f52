//! Refusals, and the clarity of their reasons.

use std::time::{Duration, Instant};

use rushes_delivery::control::*;

use crate::ends::{Ends, changed, offer, wishes};

fn server() -> (Server, Instant) {
    let now = Instant::now();
    (Server::new(now, Timeline::new(now)), now)
}

fn stopped(server: &mut Server) -> Stopped {
    let events: Vec<_> = std::iter::from_fn(|| server.poll_event()).collect();
    let Some(ServerEvent::Stopped(stopped)) = events.last() else { panic!("{events:?}") };
    assert_eq!(server.state(), State::Stopped);
    assert_eq!(server.poll_timeout(), None);
    stopped.clone()
}

/// Returns the last of the messages in `octets`, which must contain one.
fn said(octets: &[u8]) -> Message {
    let mut rest = octets;
    loop {
        let (message, len) = Message::parse(rest).unwrap().unwrap();
        rest = &rest[len..];
        if rest.is_empty() {
            return message;
        }
    }
}

fn refuse(reason: Reason, text: &str) -> Message {
    Message::Refuse { reason, text: text.to_owned() }
}

fn stop(reason: Reason, text: &str) -> Message {
    Message::Stop { reason, text: text.to_owned() }
}

fn written(message: &Message) -> Vec<u8> {
    let mut octets = Vec::new();
    message.write(&mut octets);
    octets
}

/// Returns a server's answer to `octets` on a new connection.
fn answer(octets: &[u8]) -> Message {
    let (mut server, now) = server();
    server.handle_data(now, octets);
    assert_eq!(stopped(&mut server).by, StoppedBy::Protocol);
    said(server.poll_data())
}

#[test]
fn a_wrong_version_is_refused_and_both_are_named() {
    assert_eq!(answer(b"RSHT\0\x02"), refuse(Reason::Version, "version 2 is not 1"));
}

#[test]
fn a_stranger_is_refused_at_the_first_octet() {
    let text = "the connection does not begin with RSHT";
    assert_eq!(answer(b"GET / HTTP/1.1\r\n"), refuse(Reason::Malformed, text));
}

#[test]
fn a_format_that_the_server_does_not_have_is_refused_by_the_application() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.refuse(Reason::Format, "BC7 is not available").unwrap();
    ends.carry();
    let text = "BC7 is not available".to_owned();
    let told = Stopped { by: StoppedBy::Peer, reason: Reason::Format, text };
    assert_eq!(ends.client_events(), [ClientEvent::Stopped(told)]);
}

#[test]
fn a_silent_connection_is_closed_after_five_seconds() {
    let (mut server, now) = server();
    server.handle_timeout(now + Duration::from_millis(4999));
    assert_eq!(server.state(), State::Opening);
    assert_eq!(server.poll_timeout(), Some(now + Duration::from_secs(5)));
    server.handle_timeout(now + Duration::from_secs(5));
    assert_eq!(said(server.poll_data()), refuse(Reason::TimedOut, "no opening within 5 s"));
    assert_eq!(stopped(&mut server).by, StoppedBy::Timeout);
}

#[test]
fn an_octet_a_second_does_not_put_the_end_off() {
    let (mut server, now) = server();
    let mut opening = Vec::new();
    Opening::Control(wishes()).write(&mut opening);
    for (second, octet) in (0..).zip(&opening) {
        server.handle_data(now + Duration::from_secs(second), &[*octet]);
        assert_eq!(server.state() == State::Stopped, second >= 5);
    }
    assert_eq!(stopped(&mut server).reason, Reason::TimedOut);
}

#[test]
fn an_unfinished_message_is_no_sign_of_life() {
    let mut ends = Ends::streaming(offer());
    ends.server_events();
    let (start, ping) = (ends.now, [18, 0, 0, 12, 0, 0, 0, 0, 0]);
    for (second, octet) in (0..).zip(ping) {
        let now = start + Duration::from_secs(second);
        ends.server.handle_data(now, &[octet]);
        assert_eq!(ends.server.state() == State::Stopped, second >= 5);
    }
    assert_eq!(stopped(&mut ends.server).text, "the client was silent for 5 s");
}

#[test]
fn an_offer_that_nobody_answers_is_withdrawn() {
    let mut ends = Ends::new();
    ends.carry();
    ends.pass(Duration::from_secs(4));
    ends.server.offer(ends.now, offer()).unwrap();
    ends.pass(Duration::from_secs(4));
    assert_eq!(ends.server.state(), State::Negotiating);
    ends.pass(Duration::from_secs(1));
    assert_eq!(stopped(&mut ends.server).text, "the offer was not answered within 5 s");
    let events = ends.client_events();
    let [.., ClientEvent::Stopped(stopped)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((stopped.by, stopped.reason), (StoppedBy::Peer, Reason::TimedOut));
}

#[test]
fn units_that_are_never_bound_end_the_session_after_ten_seconds() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, offer()).unwrap();
    ends.carry();
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    ends.server.unit_bound(ends.now, 0).unwrap();
    ends.pass(Duration::from_millis(9999));
    assert_eq!(ends.server.state(), State::Binding);
    ends.pass(Duration::from_millis(1));
    assert_eq!(stopped(&mut ends.server).text, "the units were not bound within 10 s");
    assert_eq!(ends.client.state(), State::Stopped);
}

#[test]
fn a_change_that_is_not_completed_ends_the_session_although_pings_arrive() {
    let mut ends = Ends::streaming(offer());
    ends.server.change(ends.now, changed()).unwrap();
    ends.pass(Duration::from_secs(4));
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    ends.pass(Duration::from_secs(9));
    assert_eq!(ends.server.state(), State::Changing);
    ends.pass(Duration::from_secs(1));
    assert_eq!(stopped(&mut ends.server).text, "the change was not completed in time");
}

#[test]
fn a_client_that_vanishes_is_given_up_after_five_seconds_and_so_is_a_server() {
    let mut ends = Ends::streaming(offer());
    ends.server_events();
    let mut now = ends.now;
    while let Some(due) = ends.client.poll_timeout() {
        now = due;
        ends.client.handle_timeout(now);
    }
    assert_eq!(now - ends.now, Duration::from_secs(5));
    let events = ends.client_events();
    let [ClientEvent::Stopped(told)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(told.text, "the server was silent for 5 s");
    assert_eq!(ends.server.poll_timeout(), Some(now));
    ends.server.handle_timeout(now);
    assert_eq!(stopped(&mut ends.server).by, StoppedBy::Timeout);
}

#[test]
fn the_connection_of_a_unit_is_handed_over() {
    let (mut server, now) = server();
    let unit = UnitOpening { token: Token([3; 16]), unit: 4 };
    let mut octets = Vec::new();
    Opening::Unit(unit).write(&mut octets);
    server.handle_data(now, &octets);
    assert_eq!(server.poll_event(), Some(ServerEvent::Unit(unit)));
    assert_eq!((server.state(), server.poll_event()), (State::Stopped, None));
    assert!(server.poll_data().is_empty());
}

#[test]
fn absurd_offers_are_refused_by_the_client_with_the_field_that_is_wrong() {
    let refused = |absurd: Offer| {
        let mut ends = Ends::new();
        ends.client.data_sent(Opening::LEN_MAX);
        ends.client.handle_data(ends.now, &written(&Message::Offer(Box::new(absurd))));
        let Some(ClientEvent::Stopped(stopped)) = ends.client.poll_event() else { panic!() };
        assert_eq!(stopped.by, StoppedBy::Protocol);
        assert_eq!(said(ends.client.poll_data()), stop(stopped.reason, &stopped.text));
        (stopped.reason, stopped.text)
    };
    let mut wide = offer();
    wide.mode.width = u32::MAX;
    let text = "Offer: 4294967295x2160 pixels are outside 1x1 to 32768x32768";
    assert_eq!(refused(wide), (Reason::Malformed, text.to_owned()));
    let units = Offer { units: [255; 3], ..offer() };
    assert_eq!(refused(units).0, Reason::Units);
    let payload = Offer { payload: u32::MAX, ..offer() };
    assert_eq!(refused(payload).0, Reason::PacketSize);
    let mut foreign = offer();
    foreign.mode.format = 8;
    let text = "Offer: the client cannot show format 8";
    assert_eq!(refused(foreign), (Reason::Format, text.to_owned()));
    assert_eq!(refused(Offer { epoch: 7, ..offer() }).0, Reason::Malformed);
}

#[test]
fn a_server_cannot_send_messages_that_a_client_would_refuse() {
    let mut ends = Ends::new();
    let early = ends.server.offer(ends.now, offer());
    assert_eq!(early, Err(CommandError::State(State::Opening)));
    ends.carry();
    assert!(ends.server.offer(ends.now, Offer { stripe_rows: 0, ..offer() }).is_err());
    let frame = ends.server.frame(FrameNotice::default());
    assert_eq!(frame, Err(CommandError::State(State::Negotiating)));
    ends.server.offer(ends.now, offer()).unwrap();
    assert!(ends.server.refuse(Reason::Busy, "").is_err(), "an offer was made");
    assert!(ends.server.offer(ends.now, offer()).is_err(), "twice");
}

#[test]
fn messages_out_of_turn_end_the_session_with_their_name() {
    let start = Message::Start { epoch: 0 };
    let accept = Message::Accept(Accept::default());
    let ping = Message::Ping(Ping::default());
    let report = Message::Report(Report::default());
    let change = Message::Change(Change::default());
    for message in [&start, &accept, &ping, &report, &change] {
        let mut ends = Ends::new();
        ends.carry();
        ends.server.handle_data(ends.now, &written(message));
        let text = format!("unexpected {} in state negotiating", message.name());
        assert_eq!(said(ends.server.poll_data()), refuse(Reason::OutOfTurn, &text));
    }
    for message in [&start, &accept] {
        let mut ends = Ends::streaming(offer());
        ends.server.handle_data(ends.now, &written(message));
        let text = format!("unexpected {} in state streaming", message.name());
        assert_eq!(said(ends.server.poll_data()), stop(Reason::OutOfTurn, &text));
    }
    for message in [&ping, &refuse(Reason::Busy, ""), &report] {
        let mut ends = Ends::streaming(offer());
        ends.client.handle_data(ends.now, &written(message));
        let text = format!("unexpected {} in state streaming", message.name());
        assert_eq!(said(ends.client.poll_data()), stop(Reason::OutOfTurn, &text));
    }
    let mut ends = Ends::streaming(offer());
    ends.client.handle_data(ends.now, &written(&start));
    let text = "unexpected Start of epoch 0 in state streaming";
    assert_eq!(said(ends.client.poll_data()), stop(Reason::OutOfTurn, text));
}

#[test]
fn an_accept_of_another_epoch_is_refused() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, offer()).unwrap();
    let accept = Message::Accept(Accept { epoch: 1, ..Accept::default() });
    ends.server.handle_data(ends.now, &written(&accept));
    let text = "Accept: epoch 1 instead of 0";
    assert_eq!(said(ends.server.poll_data()), stop(Reason::Malformed, text));
}

#[test]
fn an_offer_cannot_be_accepted_after_the_end() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, offer()).unwrap();
    ends.carry();
    ends.client.stop(Reason::Ended, "");
    let waiting = ends.client.poll_data().len();
    let accepted = ends.client.accept(ends.now, &[], &[]);
    assert_eq!(accepted, Err(CommandError::State(State::Stopped)));
    assert_eq!(ends.client.poll_data().len(), waiting);
    ends.carry();
    let bound = ends.server.unit_bound(ends.now, 0);
    assert_eq!(bound, Err(CommandError::State(State::Stopped)));
    assert_eq!(ends.server.token(), None);
}

#[test]
fn a_million_messages_leave_nothing_behind() {
    let mut ends = Ends::streaming(offer());
    ends.carry();
    let mut flood = Vec::new();
    for n in 0..250 {
        Message::Ping(Ping { id: n, t1: 0 }).write(&mut flood);
        Message::Report(Report::default()).write(&mut flood);
        Message::Change(Change::default()).write(&mut flood);
        Message::Ping(Ping::default()).write(&mut flood);
    }
    let mut from_server = Vec::new();
    for n in 0..500 {
        let frame = FrameNotice { number: n, ..FrameNotice::default() };
        Message::Frame(frame).write(&mut from_server);
        Message::Pong(Pong::default()).write(&mut from_server);
    }
    let allocated = allocation_counter::measure(|| {
        for _ in 0..1000 {
            ends.server.handle_data(ends.now, &flood);
            ends.client.handle_data(ends.now, &from_server);
        }
    });
    assert!(allocated.bytes_max < 100 << 10, "{allocated:?}");
    assert!(ends.server.poll_data().len() < 17 << 10, "nobody read it");
    let (of_server, of_client) = (ends.server_events(), ends.client_events());
    assert!(of_server.len() <= 64 && of_client.len() <= 64);
    assert_eq!(ends.server.events_forgotten(), 500_000 - 64);
    assert_eq!(ends.client.events_forgotten(), 500_000 - 64);
    let last = FrameNotice { number: 499, ..FrameNotice::default() };
    assert_eq!(of_client.last(), Some(&ClientEvent::Frame(last)), "the newest are kept");
    assert_eq!((ends.server.state(), ends.client.state()), (State::Streaming, State::Streaming));
}
