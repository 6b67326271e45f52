//! Agents over simulated networks and NATs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod ice_world;

use std::time::Duration;

use ice_world::nat::{Kind, Nat};
use ice_world::{End, MS, SECOND, World, address, config, epoch};
use rushes_netsim::{Conditions, Path};
use rushes_webrtc::ice::Event;

fn pair(hosts: [&[&str]; 2]) -> World {
    let epoch = epoch();
    let [first, second] = hosts;
    let ends = [End::new(config(0), first, epoch), End::new(config(1), second, epoch)];
    let path = Path { delay: 20 * MS, ..Path::default() };
    World::new(ends, epoch, Conditions::both(path), 1)
}

/// Returns the times to connect over 100 seeds, from the shortest on.
fn times(conditions: impl Fn(u64) -> Conditions) -> Vec<Duration> {
    let mut times: Vec<_> = (0..100)
        .map(|seed| {
            let ends = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]).ends;
            let mut world = World::new(ends, epoch(), conditions(seed), seed);
            world.introduce();
            assert!(world.run(39 * SECOND, World::is_connected), "seed {seed}");
            world.now
        })
        .collect();
    times.sort();
    times
}

#[test]
fn two_agents_connect_over_every_kind_of_network() {
    for (name, conditions) in Conditions::all() {
        let times = times(|_| conditions.clone());
        println!("{name}: median {:?}, longest {:?}", times[50], times[99]);
        assert!(times[50] < 2 * SECOND, "{name}: {times:?}");
    }
}

#[test]
fn two_agents_connect_over_random_networks_with_loss_reordering_and_duplication() {
    let times = times(Conditions::random);
    println!("random: median {:?}, longest {:?}", times[50], times[99]);
    assert!(times[50] < 2 * SECOND, "{times:?}");
}

/// Connects two ends behind NATs; returns whether it worked.
fn behind(kinds: [Option<Kind>; 2]) -> (World, bool) {
    let epoch = epoch();
    let names = ["198.51.100.1", "203.0.113.1"];
    let hosts = [["10.0.0.2:1000"], ["10.9.0.2:2000"]];
    let ends = [0, 1].map(|n| match kinds[n] {
        Some(kind) => {
            End::new(config(n as u8), &hosts[n], epoch).behind(Nat::new(kind, names[n]), epoch)
        }
        None => End::new(config(n as u8), &[&format!("{}:1000", names[n])], epoch),
    });
    let path = Path { delay: 20 * MS, ..Path::default() };
    let mut world = World::new(ends, epoch, Conditions::both(path), 1);
    world.introduce();
    let is_connected = world.run(60 * SECOND, World::is_connected);
    (world, is_connected)
}

#[test]
fn every_pair_of_nats_is_passed_that_can_be_without_a_relay() {
    use Kind::{FullCone, PortRestricted, Symmetric};
    let all = [None, Some(FullCone), Some(PortRestricted), Some(Symmetric)];
    for first in all {
        for second in all {
            let (mut world, is_connected) = behind([first, second]);
            println!("{first:?} {second:?}: {is_connected} after {:?}", world.now);
            // A mapping for each destination, and a filter by port: neither end can know the
            // other's address in advance.
            let strict = |kind| matches!(kind, Some(Symmetric | PortRestricted));
            let is_hopeless = strict(first)
                && strict(second)
                && (first == Some(Symmetric) || second == Some(Symmetric));
            assert_eq!(is_connected, !is_hopeless, "{first:?} {second:?}");
            if is_hopeless {
                world.run(30 * SECOND, |_| false);
                for end in &world.ends {
                    assert!(end.has(&Event::Failed) && end.agent.has_failed());
                    let at = end.time_of(|event| *event == Event::Failed).unwrap();
                    assert!(at < 45 * SECOND, "{at:?}");
                }
            }
        }
    }
}

#[test]
fn candidates_that_come_late_are_checked() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.ends.iter_mut().for_each(|end| end.is_signalled = false);
    world.introduce();
    assert!(!world.run(30 * SECOND, World::is_connected));
    let now = world.instant();
    let late = "1 1 udp 2130706431 203.0.113.1 2000 typ host".parse().unwrap();
    world.ends[0].agent.add_remote(&late, now).unwrap();
    assert!(world.run(SECOND, World::is_connected), "one candidate is enough");
    assert!(world.ends.iter().all(|end| !end.has(&Event::Failed)));
}

#[test]
fn a_peer_without_candidates_is_found_by_its_checks() {
    for silent in 0..2 {
        let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
        world.ends[silent].is_signalled = false;
        world.introduce();
        assert!(world.run(10 * SECOND, World::is_connected));
        assert_eq!(
            world.ends[1 - silent].agent.selected().unwrap().1,
            world.ends[silent].agent.selected().unwrap().0
        );
    }
}

#[test]
fn one_socket_for_all_addresses_needs_not_know_where_a_datagram_arrived() {
    for is_lite in [false, true] {
        let hosts = ["198.51.100.1:1000", "198.51.100.2:1000", "198.51.100.3:1000"];
        let epoch = epoch();
        let lite = rushes_webrtc::ice::AgentConfig { is_lite, ..config(1) };
        let ends = [End::new(config(0), &hosts, epoch), End::new(lite, &hosts[1..], epoch)];
        let mut world = World::new(ends, epoch, Conditions::mobile(), 1);
        world.ends.iter_mut().for_each(|end| end.knows_local = false);
        world.introduce();
        assert!(world.run(10 * SECOND, World::is_connected));
        world.run(100 * SECOND, |_| false);
        assert!(world.is_connected());
    }
}

#[test]
fn another_path_takes_over_when_the_selected_one_falls_silent() {
    // Two addresses at the first end; the path of the one that was selected breaks.
    let mut world = pair([&["198.51.100.1:1000", "198.51.100.2:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.run(3 * SECOND, |_| false);
    let (before, peer) = world.ends[0].agent.selected().unwrap();
    assert_eq!(before, address("198.51.100.1:1000"));
    let broken = world.now;
    world.passes = |from, to| ![from, to].contains(&address("198.51.100.1:1000"));
    let other = address("198.51.100.2:1000");
    let has_moved = |world: &World| {
        world.ends[0].agent.selected() == Some((other, peer))
            && world.ends[1].agent.selected() == Some((peer, other))
    };
    assert!(world.run(20 * SECOND, has_moved), "{:?}", world.ends[0].events);
    let outage = world.now.saturating_sub(broken);
    println!("moved after {outage:?}");
    assert!(outage < 12 * SECOND, "{outage:?}");
    // Media in flight from the old address still counts for a while.
    for address in [before, other] {
        assert!(world.ends[1].agent.accepts_media_from(address));
    }
    // The new path stays.
    world.run(120 * SECOND, |_| false);
    assert!(has_moved(&world) && !world.ends[1].agent.accepts_media_from(before));
    for end in &world.ends {
        assert!(!end.has(&Event::Disconnected) && !end.has(&Event::Failed));
    }
}

#[test]
fn consent_lasts_30_seconds_without_an_answer_and_then_nothing_is_sent() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.run(100 * SECOND, |_| false);
    assert!(world.is_connected(), "checks keep consent");
    let broken = world.now;
    world.passes = |_, _| false;
    assert!(!world.run(25 * SECOND, |world| !world.is_connected()), "too early");
    assert!(world.run(10 * SECOND, |world| !world.is_connected()));
    println!("lost after {:?}", world.now.saturating_sub(broken));
    world.run(10 * SECOND, |_| false);
    assert!(world.ends.iter().all(|end| end.has(&Event::Disconnected)));
    // Consent does not come back with the path, and the agents give up.
    world.passes = |_, _| true;
    world.run(60 * SECOND, |_| false);
    assert!(world.ends.iter().all(|end| end.agent.has_failed() && end.has(&Event::Failed)));
    let sent = world.ends[0].agent.statistics().requests_sent;
    world.run(60 * SECOND, |_| false);
    assert_eq!(world.ends[0].agent.statistics().requests_sent, sent);
}

#[test]
fn an_outage_of_25_seconds_is_survived() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.run(20 * SECOND, |_| false);
    world.passes = |_, _| false;
    world.run(25 * SECOND, |_| false);
    world.passes = |_, _| true;
    world.run(60 * SECOND, |_| false);
    assert!(world.is_connected());
    assert!(world.ends.iter().all(|end| !end.has(&Event::Disconnected)));
}

#[test]
fn a_peer_that_only_asks_and_never_answers_has_no_consent() {
    // The first end's checks are lost; the second's arrive, and its answers cannot exist.
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    let far = |from, _| from != address("198.51.100.1:1000");
    world.passes = far;
    assert!(world.run(40 * SECOND, |world| !world.ends[0].agent.is_connected()));
    assert!(world.ends[0].has(&Event::Disconnected));
}

#[test]
fn silence_is_known_before_consent_ends() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    let silence = |world: &World| world.ends[0].agent.silence(world.instant());
    assert_eq!(silence(&world), None);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.run(60 * SECOND, |_| false);
    assert!(silence(&world).unwrap() < 5 * SECOND);
    world.passes = |_, _| false;
    world.run(10 * SECOND, |_| false);
    assert!(world.is_connected() && silence(&world).unwrap() > 9 * SECOND);
    world.passes = |_, _| true;
    world.run(10 * SECOND, |_| false);
    assert!(silence(&world).unwrap() < 5 * SECOND);
    world.passes = |_, _| false;
    world.run(40 * SECOND, |_| false);
    assert_eq!(silence(&world), None);
}

#[test]
fn a_restart_finds_the_path_again() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.passes = |_, _| false;
    world.run(120 * SECOND, |_| false);
    world.passes = |_, _| true;
    let now = world.instant();
    for (n, end) in world.ends.iter_mut().enumerate() {
        end.events.clear();
        end.agent.restart(ice_world::credentials(n as u8 + 2), now);
    }
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    assert!(world.ends.iter().all(|end| {
        end.events.iter().any(|(_, event)| matches!(event, Event::Selected { .. }))
    }));
}

#[test]
fn media_may_go_on_during_a_restart() {
    let mut world = pair([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    let restart = |world: &mut World, first| {
        let now = world.instant();
        for (n, end) in world.ends.iter_mut().enumerate() {
            end.agent.restart(ice_world::credentials(n as u8 + first), now);
            end.events.clear();
        }
        assert!(world.is_connected());
    };
    restart(&mut world, 2);
    // Signalling takes long: consent ends, and nothing has failed.
    assert!(world.run(40 * SECOND, |world| !world.is_connected()));
    world.run(100 * SECOND, |_| false);
    for end in &world.ends {
        assert!(end.has(&Event::Disconnected) && !end.has(&Event::Failed));
    }
    // The new credentials have not lost the path.
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    restart(&mut world, 4);
    world.introduce();
    let is_selected = |end: &End| end.time_of(|event| matches!(event, Event::Selected { .. }));
    let all = |world: &World| world.ends.iter().all(|end| is_selected(end).is_some());
    assert!(world.run(10 * SECOND, all), "the same path is selected anew");
    world.run(100 * SECOND, |_| false);
    assert!(world.ends.iter().all(|end| !end.has(&Event::Disconnected)));
}

#[test]
fn two_agents_of_the_same_role_agree() {
    for is_controlling in [false, true] {
        let epoch = epoch();
        let ends = [0, 1].map(|n| {
            let config = rushes_webrtc::ice::AgentConfig { is_controlling, ..config(n) };
            End::new(config, &[&format!("198.51.100.{n}:1000")], epoch)
        });
        let mut world = World::new(ends, epoch, Conditions::mobile(), 1);
        world.introduce();
        assert!(world.run(10 * SECOND, World::is_connected));
        let roles = world.ends.each_ref().map(|end| end.agent.is_controlling());
        assert_ne!(roles[0], roles[1]);
    }
}

#[test]
fn a_lite_agent_stays_controlled_whatever_its_peer_believes() {
    for seed in 0..20 {
        let epoch = epoch();
        let lite = |n| rushes_webrtc::ice::AgentConfig { is_lite: n == 1, ..config(n) };
        let of = |n| rushes_webrtc::ice::AgentConfig { is_controlling: n == 1, ..lite(n) };
        let config = |n| rushes_webrtc::ice::AgentConfig { random: [seed; 32], ..of(n) };
        let ends = [0, 1].map(|n| End::new(config(n), &[&format!("198.51.100.{n}:1000")], epoch));
        let mut world = World::new(ends, epoch, Conditions::mobile(), 1);
        world.ends[1].agent.set_controlling(true);
        world.introduce();
        assert!(world.run(10 * SECOND, World::is_connected));
        assert!(world.ends[0].agent.is_controlling() && !world.ends[1].agent.is_controlling());
    }
}

#[test]
fn a_lite_agent_answers_and_is_selected_and_notices_the_end() {
    let epoch = epoch();
    let lite = rushes_webrtc::ice::AgentConfig { is_lite: true, ..config(1) };
    let ends = [
        End::new(config(0), &["10.0.0.2:1000"], epoch)
            .behind(Nat::new(Kind::Symmetric, "198.51.100.1"), epoch),
        End::new(lite, &["203.0.113.1:2000"], epoch),
    ];
    let mut world = World::new(ends, epoch, Conditions::mobile(), 1);
    world.introduce();
    assert!(world.run(10 * SECOND, World::is_connected));
    world.run(100 * SECOND, |_| false);
    assert!(world.is_connected());
    assert_eq!(world.ends[1].agent.statistics().requests_sent, 0);
    world.passes = |_, _| false;
    world.run(35 * SECOND, |_| false);
    assert!(world.ends.iter().all(|end| end.has(&Event::Disconnected)));
}

/// Two ends of these addresses with 10 ms between them; the second knows none of the first's.
fn near(hosts: [&[&str]; 2]) -> World {
    let epoch = epoch();
    let [first, second] = hosts;
    let ends = [End::new(config(0), first, epoch), End::new(config(1), second, epoch)];
    let path = Path { delay: 10 * MS, ..Path::default() };
    World::new(ends, epoch, Conditions::both(path), 1)
}

#[test]
fn a_controlled_agent_needs_no_time_beyond_its_round_trips() {
    let mut world = near([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    // Offer and answer take a while, after which nothing waits.
    assert!(!world.run(20 * MS, World::is_connected));
    world.introduce();
    let is_selected = |world: &World| world.ends[1].agent.is_connected();
    assert!(world.run(SECOND, is_selected));
    // One round trip, after which the nomination waits for the pace of 50 ms, and its way.
    assert_eq!(world.now, 80 * MS);
}

#[test]
fn a_pace_that_both_ends_agree_on_shortens_the_nomination() {
    let mut world = near([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    // No pace below 5 ms is allowed.
    world.ends.iter_mut().for_each(|end| end.agent.set_pacing(Duration::ZERO));
    world.introduce();
    assert!(world.run(SECOND, |world| world.ends[1].agent.is_connected()));
    // A round trip, and the way of the nomination.
    assert!(world.now <= 35 * MS, "{:?}", world.now);
}

#[test]
fn a_nomination_that_follows_the_first_answer_is_taken_at_once() {
    let mut world = near([&["198.51.100.1:1000"], &["203.0.113.1:2000"]]);
    world.introduce();
    let is_answered = |world: &World| world.ends[1].agent.statistics().responses_received > 0;
    assert!(world.run(SECOND, is_answered));
    let sent = world.ends[1].agent.statistics().requests_sent;
    let is_selected = |world: &World| world.ends[1].agent.is_connected();
    assert!(!is_selected(&world) && world.run(SECOND, is_selected));
    assert_eq!(world.ends[1].agent.statistics().requests_sent, sent, "without another check");
}

#[test]
fn a_nominated_pair_is_checked_before_all_others() {
    let second: Vec<String> = (1..=16).map(|n| format!("203.0.113.{n}:2000")).collect();
    let second: Vec<&str> = second.iter().map(String::as_str).collect();
    let mut world = near([&["198.51.100.1:1000"], &second]);
    // Only the last pair passes, and the controlling end knows no other.
    world.passes = |from, to| [from, to].contains(&address("203.0.113.16:2000"));
    world.ends[1].is_signalled = false;
    world.introduce();
    let now = world.instant();
    let last = "1 1 udp 2130706431 203.0.113.16 2000 typ host".parse().unwrap();
    world.ends[0].agent.add_remote(&last, now).unwrap();
    assert!(world.run(SECOND, |world| world.ends[1].agent.is_connected()));
    // The others would take 750 ms.
    assert!(world.now <= 150 * MS, "{:?}", world.now);
}

#[test]
fn a_peer_that_is_late_is_found_among_addresses_that_never_answer() {
    for is_signalled in [true, false] {
        let mut world = near([
            &["198.51.100.1:1000", "198.51.100.2:1000", "198.51.100.3:1000"],
            &["203.0.113.1:2000", "203.0.113.2:2000"],
        ]);
        for (end, other) in world.ends.iter_mut().zip(1..) {
            end.is_signalled = is_signalled || other == 1;
            end.agent.set_pacing(10 * MS);
        }
        world.introduce();
        let now = world.instant();
        for end in &mut world.ends {
            for n in 1..=12 {
                let silent = format!("1 1 udp 2130706431 192.0.2.{n} 1000 typ host");
                end.agent.add_remote(&silent.parse().unwrap(), now).unwrap();
            }
        }
        // All is lost at first, and later all paths but one.
        world.passes = |_, _| false;
        assert!(!world.run(20 * SECOND, World::is_connected));
        let last = |from, to| {
            let both = [address("198.51.100.3:1000"), address("203.0.113.2:2000")];
            both.contains(&from) && both.contains(&to)
        };
        world.passes = last;
        let opened = world.now;
        assert!(world.run(19 * SECOND, World::is_connected));
        println!("found after {:?}", world.now.saturating_sub(opened));
    }
}

#[test]
fn checks_are_never_closer_than_their_pace() {
    let hosts = ["198.51.100.1:1000", "198.51.100.2:1000", "198.51.100.3:1000"];
    for seed in 0..10 {
        let ends = near([&hosts, &["203.0.113.1:2000", "203.0.113.2:2000"]]).ends;
        let mut world = World::new(ends, epoch(), Conditions::random(seed), seed);
        world.introduce();
        let (mut sent, mut last) = ([0; 2], [None; 2]);
        for ms in 0..5_000_u64 {
            world.run(MS, |_| false);
            for (n, end) in world.ends.iter().enumerate() {
                let so_far = end.agent.statistics().requests_sent;
                if so_far == sent[n] {
                    continue;
                }
                assert_eq!(so_far, sent[n] + 1, "seed {seed} at {ms} ms");
                assert!(last[n].is_none_or(|last| ms - last >= 49), "seed {seed} at {ms} ms");
                (sent[n], last[n]) = (so_far, Some(ms));
            }
        }
        assert!(sent.iter().all(|sent| *sent > 3), "{sent:?}");
    }
}
