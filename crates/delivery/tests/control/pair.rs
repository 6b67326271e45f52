//! Server and client together: undisturbed, and over a wire that splits, delays and breaks.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rushes_delivery::control::*;

use crate::ends::{Ends, changed, offer};
use rushes_netsim::Seeded;

#[test]
fn frames_are_announced_once_all_units_are_bound() {
    let mut ends = Ends::streaming(offer());
    let frame = FrameNotice { number: 3, captured: 4, sent: 5, octets: 6, dropped: 7 };
    ends.server.frame(frame).unwrap();
    let statistics = ServerStatistics { frames: 1, ..ServerStatistics::default() };
    ends.server.statistics(statistics).unwrap();
    let report = Report { frames: 1, latency_p99: 900, ..Report::default() };
    ends.client.report(report).unwrap();
    ends.carry();
    let events = ends.client_events();
    assert_eq!(events, [ClientEvent::Frame(frame), ClientEvent::Statistics(statistics)]);
    assert_eq!(ends.server_events(), [ServerEvent::Report(report)]);
    assert_eq!(ends.server.current(), ends.client.current());
}

#[test]
fn packets_are_requested_if_both_ends_have_that_ability() {
    let nack = Nack { frame: 3, packets: vec![1..2, 5..9] };
    let mut ends = Ends::streaming(Offer { abilities: Abilities::RECOVERY, ..offer() });
    ends.client.nack(nack.clone()).unwrap();
    ends.carry();
    assert_eq!(ends.server_events(), [ServerEvent::Nack(nack.clone())]);
    let mut ends = Ends::streaming(offer());
    assert!(matches!(ends.client.nack(nack.clone()), Err(CommandError::State(_))));
    let mut octets = Vec::new();
    Message::Nack(nack).write(&mut octets);
    ends.server.handle_data(ends.now, &octets);
    assert_eq!(ends.server.state(), State::Stopped, "out of turn");
}

#[test]
fn a_flood_of_requests_for_packets_replaces_no_other_event() {
    let mut ends = Ends::streaming(Offer { abilities: Abilities::RECOVERY, ..offer() });
    let change = Change { format: 2, ..Change::default() };
    let mut octets = Vec::new();
    Message::Change(change).write(&mut octets);
    for frame in 0..100 {
        Message::Nack(Nack { frame, packets: vec![1..2] }).write(&mut octets);
    }
    ends.server.handle_data(ends.now, &octets);
    let events = ends.server_events();
    assert_eq!(events[0], ServerEvent::ChangeWanted(change));
    let latest = Nack { frame: 99, packets: vec![1..2] };
    assert_eq!(events.last(), Some(&ServerEvent::Nack(latest)));
}

#[test]
fn a_client_refuses_abilities_that_it_did_not_announce() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, Offer { abilities: Abilities(3), ..offer() }).unwrap();
    ends.carry();
    let events = ends.client_events();
    assert!(matches!(&events[..], [ClientEvent::Stopped(end)] if end.reason == Reason::Malformed));
}

#[test]
fn the_last_frame_is_announced_before_the_end_even_if_the_client_does_not_read() {
    let mut ends = Ends::streaming(offer());
    let mut told = Vec::new();
    for number in 0..1_000 {
        if ends.server.frame(FrameNotice { number, ..FrameNotice::default() }).is_ok() {
            told.push(number);
        }
    }
    assert!(told.len() < 1_000);
    ends.server.stop(Reason::Ended, "");
    ends.carry();
    let events = ends.client_events();
    let last = events.iter().rev().find_map(|event| match event {
        ClientEvent::Frame(frame) => Some(frame.number),
        _ => None,
    });
    assert_eq!(last, Some(999));
    assert!(matches!(events.last(), Some(ClientEvent::Stopped(_))));
}

#[test]
fn frames_are_announced_without_allocation() {
    let mut ends = Ends::streaming(offer());
    let Ends { now, server, client } = &mut ends;
    let mut announce = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            *now += Duration::from_millis(16);
            server.frame(FrameNotice { number, ..FrameNotice::default() }).unwrap();
            client.handle_data(*now, server.poll_data());
            server.data_sent(server.poll_data().len());
            server.handle_data(*now, client.poll_data());
            client.data_sent(client.poll_data().len());
            assert!(matches!(client.poll_event(), Some(ClientEvent::Frame(_))));
        }
    };
    announce(0..1000);
    let allocated = allocation_counter::measure(|| announce(1000..2000));
    assert_eq!(allocated.count_total, 0, "pings and pongs included");
}

#[test]
fn units_may_be_bound_before_the_accept_arrives_and_more_than_once() {
    let mut ends = Ends::new();
    ends.carry();
    ends.server.offer(ends.now, offer()).unwrap();
    assert_eq!(ends.server.unit_bound(ends.now, 2), Ok(true));
    assert_eq!(ends.server.unit_bound(ends.now, 2), Ok(false));
    assert_eq!(ends.server.unit_bound(ends.now, 3), Err(CommandError::Unit(3)));
    ends.server.unit_bound(ends.now, 0).unwrap();
    ends.carry();
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    assert_eq!(ends.server.state(), State::Binding);
    ends.server.unit_bound(ends.now, 1).unwrap();
    assert_eq!(ends.server.state(), State::Streaming);
    assert_eq!(ends.server.unit_bound(ends.now, 1), Ok(false), "a datagram that was late");
}

#[test]
fn over_rtp_the_client_sends_its_ports_and_sources() {
    let mut ends = Ends::new();
    ends.carry();
    let mut rtp = offer();
    (rtp.transport, rtp.clock_rate) = (Transport::Rtp, 90_000);
    rtp.ssrcs = [1, 2, 3].to_vec();
    ends.server.offer(ends.now, rtp).unwrap();
    ends.carry();
    let (ports, ssrcs) = ([7001, 7002, 7003], [8, 9, 10]);
    assert!(ends.client.accept(ends.now, &ports[..2], &ssrcs).is_err());
    ends.client.accept(ends.now, &ports, &ssrcs).unwrap();
    ends.carry();
    let accept = Accept { epoch: 0, ports: ports.to_vec(), ssrcs: ssrcs.to_vec() };
    assert_eq!(ends.server_events().last(), Some(&ServerEvent::Accepted(accept)));
}

#[test]
fn a_change_is_negotiated_while_frames_of_the_old_offer_continue() {
    let mut ends = Ends::streaming(offer());
    let wish = Change { format: 9, ..Change::default() };
    ends.client.change(wish).unwrap();
    ends.carry();
    assert_eq!(ends.server_events(), [ServerEvent::ChangeWanted(wish)]);
    ends.server.change(ends.now, changed()).unwrap();
    ends.carry();
    assert_eq!(ends.client_events(), [ClientEvent::Offered(Box::new(changed()))]);
    let frame = |number| FrameNotice { number, ..FrameNotice::default() };
    ends.server.frame(frame(99)).unwrap();
    assert_eq!(ends.server.frame(frame(100)), Err(CommandError::Frame(100)));
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    assert_eq!(ends.client_events(), [ClientEvent::Frame(frame(99))]);
    assert_eq!(ends.client.current().unwrap().epoch, 0);
    for unit in [3, 4] {
        assert_eq!(ends.server.state(), State::Changing);
        ends.server.unit_bound(ends.now, unit).unwrap();
    }
    ends.server.frame(frame(100)).unwrap();
    ends.carry();
    let events = [ClientEvent::Streaming { epoch: 1 }, ClientEvent::Frame(frame(100))];
    assert_eq!(ends.client_events(), events);
    assert_eq!(ends.client.current(), Some(&changed()));
    ends.pass(Duration::from_secs(60));
    assert_eq!(ends.server.state(), State::Streaming);
}

#[test]
fn units_stay_bound_that_a_change_leaves_out() {
    let mut ends = Ends::streaming(offer());
    let mut fewer = changed();
    fewer.units = [1, 0, 0];
    fewer.ports.truncate(1);
    ends.server.change(ends.now, fewer).unwrap();
    ends.carry();
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    assert_eq!(ends.server.state(), State::Streaming);
    let more = Offer { epoch: 2, ..changed() };
    ends.server.change(ends.now, more).unwrap();
    ends.carry();
    ends.client.accept(ends.now, &[], &[]).unwrap();
    ends.carry();
    assert_eq!(ends.server.state(), State::Changing);
    for unit in 0..5 {
        // Some units were already bound at the beginning.
        assert_eq!(ends.server.unit_bound(ends.now, unit), Ok(unit >= 3));
    }
    assert_eq!(ends.server.state(), State::Streaming);
}

#[test]
fn a_change_that_crosses_a_request_is_answered_and_the_request_is_reported() {
    let mut ends = Ends::streaming(offer());
    let wish = Change { format: 7, ..Change::default() };
    ends.client.change(wish).unwrap();
    ends.server.change(ends.now, changed()).unwrap();
    ends.carry();
    assert_eq!(ends.server_events(), [ServerEvent::ChangeWanted(wish)]);
    assert_eq!(ends.client_events(), [ClientEvent::Offered(Box::new(changed()))]);
}

#[test]
fn two_that_stop_at_once_both_stop_by_their_own_word() {
    let mut ends = Ends::streaming(offer());
    ends.server.stop(Reason::Ended, "the film is over");
    ends.client.stop(Reason::Ended, "the window was closed");
    ends.carry();
    let own = |text: &str| Stopped { by: StoppedBy::Own, reason: Reason::Ended, text: text.into() };
    assert_eq!(ends.server_events(), [ServerEvent::Stopped(own("the film is over"))]);
    assert_eq!(ends.client_events(), [ClientEvent::Stopped(own("the window was closed"))]);
    assert_eq!((ends.server.poll_timeout(), ends.client.poll_timeout()), (None, None));
}

#[test]
fn a_stop_is_reported_to_the_other_side_with_its_reason() {
    let mut ends = Ends::streaming(offer());
    ends.client.stop(Reason::Other(200), "tired\x1b[0m");
    ends.carry();
    let stopped =
        Stopped { by: StoppedBy::Peer, reason: Reason::Other(200), text: "tired [0m".to_owned() };
    assert_eq!(ends.server_events(), [ServerEvent::Stopped(stopped)]);
    ends.server.stop(Reason::Ended, "");
    ends.server.handle_close();
    assert!(ends.server.poll_data().is_empty() && ends.server_events().is_empty());
}

#[test]
fn the_clock_of_the_server_is_known_after_the_first_ping() {
    assert_eq!(Ends::new().client.clock(Instant::now()), None);
    let mut ends = Ends::streaming(offer());
    let estimate = ends.client.clock(ends.now).unwrap();
    assert_eq!((estimate.offset, estimate.round_trip), (5_000_000, Duration::ZERO));
    ends.pass(Duration::from_secs(20));
    assert_eq!(ends.server.state(), State::Streaming, "pings keep it alive");
}

/// The octets in flight in one direction, with their times of arrival.
#[derive(Default)]
struct Wire(VecDeque<(Instant, Vec<u8>)>);

impl Wire {
    fn send(&mut self, random: &mut Seeded, now: Instant, octets: &[u8]) -> usize {
        let len = random.below(octets.len() as u64 + 1) as usize;
        let arrival = now + Duration::from_millis(random.below(40));
        let arrival = self.0.back().map_or(arrival, |(last, _)| arrival.max(*last));
        if len > 0 {
            self.0.push_back((arrival, octets[..len].to_vec()));
        }
        len
    }

    fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.0.front().filter(|(arrival, _)| *arrival <= now)?;
        self.0.pop_front().map(|(_, octets)| octets)
    }
}

/// Runs a session over a wire that splits and delays, and breaks when `octets` have arrived.
fn session(seed: u64, octets: u64) -> (Ends, Vec<ServerEvent>, Vec<ClientEvent>) {
    let mut random = Seeded(seed);
    let mut ends = Ends::new();
    let (mut up, mut down) = (Wire::default(), Wire::default());
    let (mut of_server, mut of_client) = (Vec::new(), Vec::new());
    let mut left = octets;
    for step in 0..3000 {
        let len = up.send(&mut random, ends.now, ends.client.poll_data());
        ends.client.data_sent(len);
        let len = down.send(&mut random, ends.now, ends.server.poll_data());
        ends.server.data_sent(len);
        ends.now += Duration::from_millis(random.below(10));
        while let Some(octets) = up.arrived(ends.now) {
            let octets = &octets[..octets.len().min(left as usize)];
            left -= octets.len() as u64;
            ends.server.handle_data(ends.now, octets);
        }
        while let Some(octets) = down.arrived(ends.now) {
            let octets = &octets[..octets.len().min(left as usize)];
            left -= octets.len() as u64;
            ends.client.handle_data(ends.now, octets);
        }
        if left == 0 {
            ends.server.handle_close();
            ends.client.handle_close();
        }
        ends.server.handle_timeout(ends.now);
        ends.client.handle_timeout(ends.now);
        for event in ends.server_events() {
            match &event {
                // The server may have stopped meanwhile.
                ServerEvent::Wants(_) => drop(ends.server.offer(ends.now, offer())),
                ServerEvent::ChangeWanted(_) => drop(ends.server.change(ends.now, changed())),
                _ => {}
            }
            of_server.push(event);
        }
        for event in ends.client_events() {
            if let ClientEvent::Offered(offer) = &event {
                let _ = ends.client.accept(ends.now, &[], &[]);
                for unit in 0..offer.unit_count() as u8 {
                    let _ = ends.server.unit_bound(ends.now, unit);
                }
            }
            of_client.push(event);
        }
        if step % 10 == 0 {
            let _ = ends.server.frame(FrameNotice { number: step, ..FrameNotice::default() });
        }
        if step == 1000 {
            let _ = ends.client.change(Change { format: 9, ..Change::default() });
        }
        if step == 2000 {
            ends.client.stop(Reason::Ended, "seen enough");
        }
    }
    (ends, of_server, of_client)
}

#[test]
fn a_session_over_a_wire_that_splits_and_delays_has_the_usual_events() {
    for seed in 0..50 {
        let (_, of_server, of_client) = session(seed, u64::MAX);
        let text = "seen enough".to_owned();
        let reason = Reason::Ended;
        let by_peer = Stopped { by: StoppedBy::Peer, reason, text: text.clone() };
        assert_eq!(of_server.last(), Some(&ServerEvent::Stopped(by_peer)));
        let own = Stopped { by: StoppedBy::Own, reason, text };
        assert_eq!(of_client.last(), Some(&ClientEvent::Stopped(own)));
        let epochs: Vec<_> = of_client
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Streaming { epoch } => Some(*epoch),
                _ => None,
            })
            .collect();
        assert_eq!(epochs, [0, 1]);
        let frames = of_client.iter().filter(|event| matches!(event, ClientEvent::Frame(_)));
        // One frame is sent every ten steps of 2000, except during the start and the change.
        assert!(frames.count() > 90);
    }
}

#[test]
fn a_connection_that_breaks_at_any_octet_stops_both_sides_once() {
    for octets in 0..900 {
        let (ends, of_server, of_client) = session(octets, octets);
        assert_eq!((ends.server.state(), ends.client.state()), (State::Stopped, State::Stopped));
        let stops = |is_stop: usize, of: &str| assert_eq!(is_stop, 1, "{of} at octet {octets}");
        let is_stop = |event: &&ServerEvent| matches!(event, ServerEvent::Stopped(_));
        stops(of_server.iter().filter(is_stop).count(), "server");
        let is_stop = |event: &&ClientEvent| matches!(event, ClientEvent::Stopped(_));
        stops(of_client.iter().filter(is_stop).count(), "client");
    }
}
