//! Server-reflexive candidates, in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ice_world;

use std::time::{Duration, Instant};

use ice_world::{MS, SECOND, SERVER, address, config, credentials, epoch, nat};
use rushes_webrtc::ice::{
    Agent, AgentConfig, AgentError, CandidateKind, Event, Transmit, ufrags_of,
};

const HOST: &str = "10.0.0.2:1000";
const OUTSIDE: &str = "198.51.100.1:40000";

fn agent(now: Instant) -> Agent {
    let mut agent = Agent::new(config(0), now);
    agent.add_local(address(HOST), now).unwrap();
    agent.add_stun_server(address(SERVER), now).unwrap();
    agent
}

/// Runs an agent alone; returns when it sent what, since `epoch`.
fn run(
    agent: &mut Agent,
    epoch: Instant,
    from: Duration,
    to: Duration,
) -> Vec<(Duration, Transmit)> {
    let mut sent = Vec::new();
    let mut now = from;
    while now < to {
        agent.handle_timeout(epoch + now);
        sent.extend(std::iter::from_fn(|| agent.poll_datagram()).map(|transmit| (now, transmit)));
        let next = agent.next_timeout().map_or(to, |at| at - epoch);
        assert!(next > now, "what is due has been done");
        now = next;
    }
    sent
}

fn found(agent: &mut Agent) -> Vec<(CandidateKind, String)> {
    let events = std::iter::from_fn(|| agent.poll_event());
    let candidates = events.filter_map(|event| match event {
        Event::LocalCandidate(candidate) => Some(candidate),
        _ => None,
    });
    candidates.map(|candidate| (candidate.kind(), candidate.to_string())).collect()
}

#[test]
fn a_request_is_repeated_as_rfc_8489_says_and_then_given_up() {
    let epoch = epoch();
    let mut agent = agent(epoch);
    assert!(agent.is_gathering());
    let sent = run(&mut agent, epoch, Duration::ZERO, 100 * SECOND);
    let times: Vec<_> = sent.iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [0, 500, 1500, 3500, 7500, 15_500, 31_500]);
    let first = &sent[0].1;
    assert_eq!((first.local, first.to), (address(HOST), address(SERVER)));
    assert!(sent.iter().all(|(_, transmit)| transmit == first), "one transaction");
    assert!(!agent.is_gathering());
}

#[test]
fn the_servers_answer_is_a_candidate_with_its_base() {
    let epoch = epoch();
    let mut agent = agent(epoch);
    let request = run(&mut agent, epoch, Duration::ZERO, MS).remove(0).1.datagram;
    let response = nat::answer(&request, address(OUTSIDE));
    let mut handle = |from: &str, response: &[u8]| {
        agent.handle_datagram(epoch, address(HOST), address(from), response)
    };
    assert!(!handle("192.0.2.2:3478", &response), "from elsewhere");
    let mut guessed = response.clone();
    guessed[19] ^= 1;
    assert!(!handle(SERVER, &guessed), "another transaction");
    assert!(handle(SERVER, &response));
    assert!(!handle(SERVER, &response), "a second time");
    assert!(!agent.is_gathering());
    let found = found(&mut agent);
    let kinds: Vec<_> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [CandidateKind::Host, CandidateKind::ServerReflexive]);
    let end = " 198.51.100.1 40000 typ srflx raddr 10.0.0.2 rport 1000 ufrag ";
    assert!(found[1].1.contains(end), "{}", found[1].1);
    let all = agent.local_candidates();
    assert!(all[0].priority() > all[1].priority() && all[0].foundation() != all[1].foundation());
}

#[test]
fn a_server_is_asked_again_until_a_pair_is_selected() {
    let epoch = epoch();
    let mut agent = agent(epoch);
    let mut ids = Vec::new();
    let mut now = Duration::ZERO;
    for wait in [Duration::ZERO, 15 * SECOND, 15 * SECOND, 15 * SECOND] {
        let mut sent = run(&mut agent, epoch, now, now + wait + MS);
        assert_eq!(sent.len(), 1);
        let (at, transmit) = sent.remove(0);
        assert_eq!(at, now + wait);
        ids.push(transmit.datagram[8..20].to_vec());
        let response = nat::answer(&transmit.datagram, address(OUTSIDE));
        assert!(agent.handle_datagram(epoch + at, address(HOST), address(SERVER), &response));
        now = at;
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "each transaction has its own identifier");
    assert_eq!(found(&mut agent).len(), 2, "the candidate is known");
}

#[test]
fn an_error_and_an_address_that_is_no_news_add_nothing() {
    let epoch = epoch();
    for seen in [None, Some(HOST), Some("0.0.0.0:1"), Some("224.0.0.1:1")] {
        let mut agent = agent(epoch);
        let request = run(&mut agent, epoch, Duration::ZERO, MS).remove(0).1.datagram;
        let response = match seen {
            Some(seen) => nat::answer(&request, address(seen)),
            None => [&[1, 0x11, 0, 8], &request[4..20], &[0, 9, 0, 4, 0, 0, 5, 0]].concat(),
        };
        assert!(agent.handle_datagram(epoch, address(HOST), address(SERVER), &response));
        assert!(!agent.is_gathering());
        assert_eq!(found(&mut agent).len(), 1, "{seen:?}");
    }
}

#[test]
fn a_server_that_sees_another_address_each_time_makes_32_candidates() {
    let epoch = epoch();
    let mut agent = agent(epoch);
    let mut now = Duration::ZERO;
    for n in 0..60 {
        let sent = run(&mut agent, epoch, now, now + 15 * SECOND + MS);
        let (at, transmit) = sent.into_iter().next_back().unwrap();
        let seen = address(&format!("198.51.100.1:{}", 20_000 + n));
        let response = nat::answer(&transmit.datagram, seen);
        assert!(agent.handle_datagram(epoch + at, address(HOST), address(SERVER), &response));
        now = at;
    }
    assert_eq!(found(&mut agent).len(), 33);
    assert_eq!(agent.local_candidates().len(), 33);
}

#[test]
fn servers_are_asked_from_every_address_of_their_kind_at_a_pace() {
    let epoch = epoch();
    let mut agent = Agent::new(config(0), epoch);
    for n in 2..5 {
        agent.add_local(address(&format!("10.0.0.{n}:1000")), epoch).unwrap();
    }
    agent.add_local(address("[2001:db8::2]:1000"), epoch).unwrap();
    agent.add_stun_server(address(SERVER), epoch).unwrap();
    agent.add_local(address("10.0.0.9:1000"), epoch).unwrap();
    let sent = run(&mut agent, epoch, Duration::ZERO, 400 * MS);
    let times: Vec<_> = sent.iter().map(|(at, _)| at.as_millis()).collect();
    assert_eq!(times, [0, 50, 100, 150]);
    assert!(sent.iter().all(|(_, transmit)| ufrags_of(&transmit.datagram).is_none()));
    assert!(sent.iter().all(|(_, transmit)| transmit.local.is_ipv4()));
}

#[test]
fn a_restart_announces_all_candidates_and_asks_the_servers_again() {
    let epoch = epoch();
    let mut agent = agent(epoch);
    let request = run(&mut agent, epoch, Duration::ZERO, MS).remove(0).1.datagram;
    let response = nat::answer(&request, address(OUTSIDE));
    assert!(agent.handle_datagram(epoch, address(HOST), address(SERVER), &response));
    assert_eq!(found(&mut agent).len(), 2);
    agent.restart(credentials(5), epoch + SECOND);
    assert!(agent.is_gathering());
    let request = run(&mut agent, epoch, SECOND, SECOND + MS).remove(0).1.datagram;
    let response = nat::answer(&request, address(OUTSIDE));
    assert!(agent.handle_datagram(epoch + SECOND, address(HOST), address(SERVER), &response));
    let found = found(&mut agent);
    assert_eq!(found.len(), 2);
    let ufrag = credentials(5).ufrag().to_owned();
    assert!(found.iter().all(|(_, text)| text.ends_with(&format!(" ufrag {ufrag}"))), "{found:?}");
}

#[test]
fn a_lite_agent_asks_no_server() {
    let epoch = epoch();
    let mut agent = Agent::new(AgentConfig { is_lite: true, ..config(0) }, epoch);
    assert_eq!(agent.add_stun_server(address(SERVER), epoch), Err(AgentError::Lite));
}

#[test]
fn addresses_that_cannot_be_candidates_are_refused() {
    let epoch = epoch();
    let mut agent = Agent::new(config(0), epoch);
    for text in
        ["0.0.0.0:1", "10.0.0.1:0", "224.0.0.1:1", "255.255.255.255:1", "[::]:1", "[ff02::1]:1"]
    {
        assert_eq!(agent.add_local(address(text), epoch), Err(AgentError::Address(address(text))));
        let refused = agent.add_stun_server(address(text), epoch);
        assert_eq!(refused, Err(AgentError::Address(address(text))));
    }
    // The same address twice is one candidate.
    for _ in 0..2 {
        agent.add_local(address("127.0.0.1:1"), epoch).unwrap();
    }
    assert_eq!(agent.local_candidates().len(), 1);
}
