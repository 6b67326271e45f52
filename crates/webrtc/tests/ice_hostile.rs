//! What strangers, replays and bad peers can do to an agent.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ice_world;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use ice_world::forge::{self, Check};
use ice_world::{End, MS, SECOND, World, address, config, credentials, epoch};
use proptest::prelude::*;
use rushes_netsim::{Conditions, Path};
use rushes_webrtc::ice::{
    Agent, AgentConfig, AgentError, Candidate, Credentials, Event, Transmit, ufrags_of,
};

const HOST: &str = "203.0.113.1:2000";
const PEER: &str = "198.51.100.1:1000";

/// A controlled agent that knows its peer's credentials and address.
fn agent(is_lite: bool, now: Instant) -> Agent {
    let config = AgentConfig { is_lite, ..config(1) };
    let mut agent = Agent::new(config, now);
    agent.add_local(address(HOST), now).unwrap();
    agent.set_remote_credentials(&credentials(0), now).unwrap();
    agent
}

fn right() -> Check {
    Check::right(&credentials(1), &credentials(0))
}

fn stranger(n: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(0x0800_0000 + n), 1024))
}

fn sent(agent: &mut Agent) -> Vec<Transmit> {
    std::iter::from_fn(|| agent.poll_datagram()).collect()
}

/// Returns the checks that an agent sends within a second.
fn checks(agent: &mut Agent, now: Instant) -> Vec<Transmit> {
    for n in 0..20 {
        agent.handle_timeout(now + 50 * MS * n);
    }
    let is_request = |transmit: &Transmit| ufrags_of(&transmit.datagram).is_some();
    sent(agent).into_iter().filter(is_request).collect()
}

#[test]
fn a_check_is_answered_by_no_more_octets_than_it_has() {
    let now = epoch();
    let mut agent = agent(false, now);
    let check = right().write();
    assert!(agent.handle_datagram(now, address(HOST), address(PEER), &check));
    let sent = sent(&mut agent);
    assert_eq!((sent.len(), sent[0].to, sent[0].local), (1, address(PEER), address(HOST)));
    assert!(sent[0].datagram.len() <= check.len());
}

#[test]
fn nothing_is_answered_before_the_peers_credentials_are_known() {
    let now = epoch();
    let mut agent = Agent::new(config(1), now);
    agent.add_local(address(HOST), now).unwrap();
    for _ in 0..1000 {
        agent.handle_datagram(now, address(HOST), address(PEER), &right().write());
    }
    agent.handle_timeout(now + 100 * MS);
    assert!(sent(&mut agent).is_empty());
    agent.set_remote_credentials(&credentials(0), now + SECOND).unwrap();
    agent.handle_timeout(now + SECOND);
    let sent = sent(&mut agent);
    assert!((1..=9).contains(&sent.len()), "kept requests are answered: {}", sent.len());
}

#[test]
fn what_is_not_authentic_has_no_effect() {
    let now = epoch();
    for is_lite in [false, true] {
        let mut agent = agent(is_lite, now);
        let nominates = Check { use_candidate: true, ..right() };
        let wrong = [
            Check { password: None, ..nominates.clone() },
            Check { password: Some("guessguessguessguessguess".to_owned()), ..nominates.clone() },
            Check { user_name: "abcdefgh:hgfedcba".to_owned(), ..nominates.clone() },
            Check { user_name: format!("{}:hgfedcba", credentials(1).ufrag()), ..nominates },
        ];
        for check in wrong {
            assert!(!agent.handle_datagram(now, address(HOST), address(PEER), &check.write()));
        }
        let to_nobody = address("203.0.113.9:2000");
        assert!(!agent.handle_datagram(now, to_nobody, address(PEER), &right().write()));
        agent.handle_timeout(now + 100 * MS);
        assert!(sent(&mut agent).is_empty());
        assert!(agent.statistics().refused == 5 && !agent.is_connected());
        assert!(!agent.accepts_media_from(address(PEER)));
    }
}

#[test]
fn only_the_peers_own_response_to_a_check_counts() {
    let now = epoch();
    let mut agent = agent(false, now);
    let check = Check { use_candidate: true, ..right() };
    assert!(agent.handle_datagram(now, address(HOST), address(PEER), &check.write()));
    let request = checks(&mut agent, now).remove(0).datagram;
    let password = credentials(0).password().to_owned();
    let later = now + SECOND;
    let mut handle = |from: &str, octets: &[u8]| {
        agent.handle_datagram(later, address(HOST), address(from), octets)
    };
    let mapped = address(HOST);
    assert!(!handle(PEER, &forge::response(&request, mapped, None)));
    assert!(!handle(PEER, &forge::response(&request, mapped, Some("guessguessguessguess"))));
    let other = right().write();
    assert!(!handle(PEER, &forge::response(&other, mapped, Some(&password))), "unknown id");
    let right = forge::response(&request, mapped, Some(&password));
    assert!(!handle("198.51.100.9:1000", &right), "from elsewhere");
    assert!(handle(PEER, &right));
    assert!(!handle(PEER, &right), "a second time");
    assert!(agent.is_connected());
    assert_eq!(agent.statistics().responses_received, 1);
}

#[test]
fn an_authentic_403_ends_consent_at_once() {
    let now = epoch();
    let mut agent = agent(false, now);
    let check = Check { use_candidate: true, ..right() };
    assert!(agent.handle_datagram(now, address(HOST), address(PEER), &check.write()));
    let password = credentials(0).password().to_owned();
    let sent = checks(&mut agent, now);
    let octets = forge::response(&sent[0].datagram, address(HOST), Some(&password));
    assert!(agent.handle_datagram(now + SECOND, address(HOST), address(PEER), &octets));
    assert!(agent.is_connected());
    for (password, ends) in [("guessguessguessguessguess", false), (&password[..], true)] {
        let octets = forge::error(&sent[1].datagram, 403, Some(password));
        agent.handle_datagram(now + SECOND, address(HOST), address(PEER), &octets);
        assert_eq!(agent.is_connected(), !ends);
    }
    assert!(std::iter::from_fn(|| agent.poll_event()).any(|event| event == Event::Disconnected));
}

#[test]
fn a_million_datagrams_of_strangers_take_no_memory_and_get_no_answer() {
    let now = epoch();
    let mut agent = agent(false, now);
    let forged = Check { password: Some("guessguessguessguessguess".to_owned()), ..right() };
    let forged = forged.write();
    let used = allocation_counter::measure(|| {
        for n in 0..1_000_000 {
            assert!(!agent.handle_datagram(now, address(HOST), stranger(n), &forged));
        }
    });
    assert!(used.bytes_max < 4096 && used.bytes_current <= 0, "{used:?}");
    assert!(sent(&mut agent).is_empty());
}

#[test]
fn copies_of_a_check_from_elsewhere_have_no_effect() {
    let now = epoch();
    for is_lite in [false, true] {
        let mut agent = agent(is_lite, now);
        let check = Check { use_candidate: true, ..right() }.write();
        assert!(agent.handle_datagram(now, address(HOST), address(PEER), &check));
        sent(&mut agent);
        for n in 0..1000 {
            assert!(!agent.handle_datagram(now, address(HOST), stranger(n), &check));
        }
        assert!(checks(&mut agent, now).iter().all(|transmit| transmit.to == address(PEER)));
        assert_eq!(agent.selected().is_some(), is_lite);
    }
}

#[test]
fn a_peer_at_a_million_addresses_takes_bounded_memory_and_gets_bounded_checks() {
    let now = epoch();
    let mut agent = agent(false, now);
    let mut hosts = vec![address(HOST)];
    for n in 1..16 {
        hosts.push(SocketAddr::from(([10, 0, 0, n], 1)));
        agent.add_local(hosts[n as usize], now).unwrap();
    }
    let mut replies = 0;
    let used = allocation_counter::measure(|| {
        for n in 0..200_000 {
            let check = Check { use_candidate: n % 2 == 0, ..right() }.write();
            agent.handle_datagram(now, hosts[n as usize % 16], stranger(n / 16), &check);
            replies += sent(&mut agent).len();
        }
    });
    assert!(used.bytes_current < 600_000, "{used:?}");
    assert_eq!(replies, 200);
    let checks = checks(&mut agent, now);
    assert!(checks.len() <= 20, "one each 50 ms: {}", checks.len());
}

/// Runs an agent for some time; returns the octets of checks that it sends meanwhile.
fn octets_of_checks(agent: &mut Agent, now: &mut Instant, time: std::time::Duration) -> usize {
    let end = *now + time;
    let mut octets = 0;
    while *now < end {
        agent.handle_timeout(*now);
        octets += sent(agent).iter().map(|transmit| transmit.datagram.len()).sum::<usize>();
        *now = agent.next_timeout().unwrap_or(end).max(*now + MS).min(end);
    }
    octets
}

#[test]
fn a_victim_whose_addresses_a_peer_names_gets_few_checks() {
    for ufrag in ["shorter", &"longest".repeat(17)] {
        let mut now = epoch();
        let mut agent = Agent::new(AgentConfig { is_controlling: true, ..config(1) }, now);
        agent.set_pacing(10 * MS);
        for n in 1..=4 {
            agent.add_local(SocketAddr::from(([10, 0, 0, n], 1)), now).unwrap();
        }
        let peer = Credentials::new(ufrag, &"a".repeat(22)).unwrap();
        let mut total = 0;
        // With each restart the peer names them anew.
        for restart in 0..10 {
            agent.restart(credentials(restart), now);
            agent.set_remote_credentials(&peer, now).unwrap();
            for port in 1000..1100 {
                let candidate = format!("1 1 udp 2130706431 198.51.100.9 {port} typ host");
                agent.add_remote(&candidate.parse().unwrap(), now).unwrap();
            }
            total += octets_of_checks(&mut agent, &mut now, 40 * SECOND);
            assert!(agent.has_failed());
            let limit = 8_000 + 400 * 40 * (usize::from(restart) + 1);
            assert!((2_000..limit).contains(&total), "{total} octets after {restart} restarts");
        }
    }
}

#[test]
fn no_password_is_printed() {
    let now = epoch();
    let agent = agent(false, now);
    for shown in [format!("{agent:?}"), format!("{:?}", config(1))] {
        for credentials in [credentials(0), credentials(1)] {
            assert!(!shown.contains(credentials.password()), "{shown}");
        }
        assert!(!shown.contains("1, 1, 1, 1"), "{shown}");
    }
}

#[test]
fn answers_that_are_not_fetched_are_limited() {
    let now = epoch();
    let mut agent = agent(false, now);
    for _ in 0..10_000 {
        agent.handle_datagram(now, address(HOST), address(PEER), &right().write());
    }
    assert_eq!(sent(&mut agent).len(), 256);
}

#[test]
fn candidates_without_end_are_refused() {
    let now = epoch();
    let mut agent = agent(false, now);
    let candidate = |n| -> Candidate {
        format!("1 1 udp 2130706431 {} 1000 typ host", stranger(n).ip()).parse().unwrap()
    };
    for n in 0..100 {
        agent.add_remote(&candidate(n), now).unwrap();
    }
    // Known ones change nothing; new ones are too many.
    for n in 0..100 {
        agent.add_remote(&candidate(n), now).unwrap();
    }
    let refused = agent.add_remote(&candidate(100), now);
    assert_eq!(refused, Err(AgentError::TooMany { what: "remote candidates", limit: 100 }));
    for n in 1..16 {
        agent.add_local(SocketAddr::from(([10, 0, 0, n], 1)), now).unwrap();
    }
    let refused = agent.add_local(address("10.0.0.99:1"), now);
    assert_eq!(refused, Err(AgentError::TooMany { what: "host candidates", limit: 16 }));
    for n in 0..8 {
        agent.add_stun_server(stranger(n), now).unwrap();
    }
    let refused = agent.add_stun_server(stranger(9), now);
    assert_eq!(refused, Err(AgentError::TooMany { what: "STUN servers", limit: 8 }));
    agent.end_of_candidates();
    assert_eq!(agent.add_remote(&candidate(0), now), Err(AgentError::AfterEnd));
}

#[test]
fn a_known_candidate_again_and_again_takes_no_memory() {
    let now = epoch();
    let mut agent = agent(false, now);
    let candidate = |kind| -> Candidate {
        format!("1 1 udp 2130706431 {} 1000 typ {kind}", stranger(1).ip()).parse().unwrap()
    };
    let known = ["host", "srflx", "prflx", "relay"].map(candidate);
    agent.add_remote(&known[0], now).unwrap();
    let used = allocation_counter::measure(|| {
        for n in 0..100_000 {
            agent.add_remote(&known[n % 4], now).unwrap();
        }
    });
    assert!(used.bytes_current < 10_000, "{used:?}");
}

#[test]
fn a_peer_that_claims_another_mapped_address_each_time_takes_no_memory() {
    let mut now = epoch();
    let mut agent = agent(false, now);
    let check = Check { use_candidate: true, ..right() };
    assert!(agent.handle_datagram(now, address(HOST), address(PEER), &check.write()));
    let password = credentials(0).password().to_owned();
    let mut n = 0;
    let mut run = |seconds| {
        for _ in 0..seconds {
            now += SECOND;
            agent.handle_timeout(now);
            for check in sent(&mut agent).iter().filter(|t| ufrags_of(&t.datagram).is_some()) {
                n += 1;
                let octets = forge::response(&check.datagram, stranger(n), Some(&password));
                assert!(agent.handle_datagram(now, address(HOST), address(PEER), &octets));
            }
        }
        assert!(agent.is_connected());
    };
    run(100);
    let used = allocation_counter::measure(|| run(4000));
    assert!(n > 1000 && used.bytes_current < 10_000, "{n} {used:?}");
}

#[test]
fn a_user_name_that_cannot_be_written_is_refused() {
    let now = epoch();
    let mut agent = agent(false, now);
    let password = "a".repeat(22);
    let fits = Credentials::new(&"a".repeat(119), &password).unwrap();
    assert_eq!(agent.set_remote_credentials(&fits, now), Ok(()));
    let long = Credentials::new(&"a".repeat(120), &password).unwrap();
    let refused = agent.set_remote_credentials(&long, now);
    assert_eq!(refused, Err(AgentError::UserName { length: 129, limit: 128 }));
    // The longest that is taken can be sent.
    agent.set_remote_credentials(&fits, now).unwrap();
    let candidate = "1 1 udp 1 198.51.100.1 1000 typ host".parse().unwrap();
    agent.add_remote(&candidate, now).unwrap();
    assert!(!checks(&mut agent, now).is_empty());
}

#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let epoch = epoch();
    let now = epoch + 100 * SECOND;
    let mut agent = agent(false, now);
    agent.add_stun_server(address(ice_world::SERVER), now).unwrap();
    let check = Check { use_candidate: true, ..right() };
    for seconds in [100, 10, 90, 50] {
        let then = epoch + seconds * SECOND;
        agent.handle_datagram(then, address(HOST), address(PEER), &check.write());
        agent.handle_timeout(then);
        agent.next_timeout();
    }
}

#[test]
fn fragments_of_user_names_are_found_in_requests_only() {
    let check = right().write();
    let (to, of) = ufrags_of(&check).unwrap();
    assert_eq!((to, of), (credentials(1).ufrag(), credentials(0).ufrag()));
    let used = allocation_counter::measure(|| assert!(ufrags_of(&check).is_some()));
    assert_eq!(used.count_total, 0);
    assert_eq!(ufrags_of(&forge::response(&check, address(HOST), Some("password"))), None);
    let nameless = Check { user_name: "nobody".to_owned(), ..right() };
    assert_eq!(ufrags_of(&nameless.write()), None);
    for len in 0..check.len() {
        assert_eq!(ufrags_of(&check[..len]), None);
    }
}

/// Changes an octet of a message, or cuts it.
fn changed(
    octets: &[u8],
    at: prop::sample::Index,
    to: u8,
    cut: Option<prop::sample::Index>,
) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let at = at.index(octets.len());
    octets[at] = to;
    if let Some(cut) = cut {
        octets.truncate(cut.index(octets.len()));
    }
    octets
}

proptest! {
    #[test]
    fn no_octets_have_an_effect_unless_they_are_authentic(
        octets in prop::collection::vec(any::<u8>(), 0..200),
        at: prop::sample::Index, to: u8, cut: Option<prop::sample::Index>,
    ) {
        let now = epoch();
        let mut agent = agent(false, now);
        assert!(!agent.handle_datagram(now, address(HOST), address(PEER), &octets));
        let check = Check { use_candidate: true, ..right() }.write();
        let octets = changed(&check, at, to, cut);
        let is_accepted = agent.handle_datagram(now, address(HOST), address(PEER), &octets);
        // Only the fingerprint, which follows MESSAGE-INTEGRITY, and ignored bits may differ.
        prop_assert!(!is_accepted || octets.len() == check.len());
        prop_assert_eq!(sent(&mut agent).len(), usize::from(is_accepted));
    }

    #[test]
    fn no_text_panics_as_a_candidate(text in "\\PC{0,100}") {
        let _ = text.parse::<Candidate>();
    }

    #[test]
    fn a_candidate_is_read_as_it_was_written(
        foundation in "[a-zA-Z0-9+/]{1,32}", priority in 1..i32::MAX as u32,
        ip: std::net::IpAddr, port in 1_u16..,
        kind in prop::sample::select(vec!["host", "srflx raddr 0.0.0.0 rport 9", "prflx", "relay"]),
    ) {
        let text = format!("{foundation} 1 udp {priority} {ip} {port} typ {kind}");
        if let Ok(candidate) = text.parse::<Candidate>() {
            prop_assert_eq!(candidate.to_string(), text.clone());
            prop_assert_eq!(format!("candidate:{text}").parse::<Candidate>().unwrap(), candidate);
        } else {
            prop_assert!(ip.is_unspecified() || ip.is_multicast() || ip == Ipv4Addr::BROADCAST);
        }
    }
}

#[test]
fn two_agents_get_past_a_flood_of_strangers() {
    let start = epoch();
    let ends = [End::new(config(0), &[PEER], start), End::new(config(1), &[HOST], start)];
    let path = Path { delay: 20 * MS, ..Path::default() };
    let mut world = World::new(ends, start, Conditions::both(path), 1);
    world.introduce();
    let forged = Check { password: None, ..right() }.write();
    while !world.is_connected() && world.now < 5 * SECOND {
        let (to, now) = (address(HOST), world.instant());
        for n in 0..1000 {
            world.ends[1].agent.handle_datagram(now, to, stranger(n), &forged);
        }
        world.run(10 * MS, World::is_connected);
    }
    assert!(world.is_connected());
}
