//! ZRTP between two endpoints in virtual time.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_netsim::{Loss, Path, Seeded, Straying};
use rushes_zrtp::{
    AlgorithmList, AuthTag, Cipher, Config, Event, Hash, Kem, KemComponent, KeyAgreement,
    PeerPolicy, PeerRefusal, Role, SasType, Warning,
};
use world::middle::{kind, pass};
use world::{End, Kept, World, address, zid};

const LIMIT: Duration = Duration::from_secs(60);

fn config(octet: u8, agreement: KeyAgreement) -> Config {
    let mut config = Config::new(zid(octet));
    config.algorithms.key_agreements = AlgorithmList::new(&[agreement]).unwrap();
    config
}

fn world(configs: [Config; 2], stores: &[Kept; 2], streams: u32, path: Path, seed: u64) -> World {
    let mut seeds = Seeded(seed);
    let [one, other] = configs;
    let ends = [
        End::new(one, stores[0].clone(), seeds.roll()),
        End::new(other, stores[1].clone(), seeds.roll()),
    ];
    let mut world = World::new(ends, path, seeds.roll());
    for n in 0..streams {
        for (end, first) in [(0, 100), (1, 200)] {
            let now = world.now;
            world.ends[end].add_stream(first + n, Some(address(1 - end, n as usize)), now);
        }
    }
    world
}

fn stores() -> [Kept; 2] {
    [Kept::default(), Kept::default()]
}

fn agreements() -> Vec<KeyAgreement> {
    let mut all = KeyAgreement::CLASSICAL.to_vec();
    let has_x448 = cfg!(feature = "x448");
    all.retain(|one| !matches!(one, KeyAgreement::Prsh | KeyAgreement::Mult));
    all.retain(|one| has_x448 || *one != KeyAgreement::X448);
    for lattice in [KemComponent::MlKem768, KemComponent::Kyber512, KemComponent::MlKem1024] {
        all.push(KeyAgreement::Kem(Kem::single(lattice).unwrap()));
        let curves = [KemComponent::X25519, KemComponent::X448];
        for curve in curves.into_iter().take(1 + usize::from(has_x448)) {
            all.push(KeyAgreement::Kem(Kem::hybrid(curve, lattice).unwrap()));
        }
    }
    all
}

#[test]
fn every_key_agreement_leads_to_the_same_keys_on_both_ends() {
    for agreement in agreements() {
        let configs = [config(1, agreement), config(2, agreement)];
        let mut world = world(configs, &stores(), 3, Path::default(), 7);
        world.run_alone(LIMIT);
        world.assert_agreed();
        let keys = &world.ends[0].keys;
        assert_eq!(keys[0].as_ref().unwrap().choice.key_agreement, agreement);
        for n in 1..3 {
            let choice = keys[n].as_ref().unwrap().choice;
            assert_eq!(choice.key_agreement, KeyAgreement::Mult, "stream {n}");
            assert_ne!(keys[n].as_ref().unwrap().send, keys[n - 1].as_ref().unwrap().send);
        }
        assert!(world.ends.iter().all(|end| end.warnings().is_empty()), "{agreement:?}");
    }
}

#[test]
fn every_cipher_hash_tag_and_string_is_carried_through() {
    for hash in Hash::ALL {
        for cipher in Cipher::ALL {
            for tag in [AuthTag::Hs32, AuthTag::Hs80] {
                for sas in SasType::ALL {
                    let configs = [1, 2].map(|octet| {
                        let mut config = config(octet, KeyAgreement::X255);
                        config.algorithms.hashes = AlgorithmList::new(&[*hash]).unwrap();
                        config.algorithms.ciphers = AlgorithmList::new(&[*cipher]).unwrap();
                        config.algorithms.auth_tags = AlgorithmList::new(&[tag]).unwrap();
                        config.algorithms.sas_types = AlgorithmList::new(&[*sas]).unwrap();
                        config
                    });
                    let mut world = world(configs, &stores(), 1, Path::default(), 3);
                    world.run_alone(LIMIT);
                    world.assert_agreed();
                    let choice = world.ends[0].keys[0].as_ref().unwrap().choice;
                    let chosen = (choice.hash, choice.cipher, choice.auth_tag, choice.sas_type);
                    assert_eq!(chosen, (*hash, *cipher, tag, *sas));
                }
            }
        }
    }
}

/// Ten thousand runs over a bad path, with all algorithms in turn. Each ends within the time of the
/// schedules of RFC 6189 section 6, with the same keys and strings at both ends or, because of the
/// path, with an error.
#[test]
fn ten_thousand_runs_over_a_bad_link_end_in_the_same_keys() {
    let agreements = agreements();
    let mut random = Seeded(2026);
    let (mut agreed, mut runs) = (0, 0);
    for run in 0..10_000_u64 {
        // The slow algorithms are used in one of twenty runs.
        let quick = [KeyAgreement::X255, KeyAgreement::Ec25];
        let agreement = if run % 20 == 0 {
            agreements[(run / 20) as usize % agreements.len()]
        } else {
            quick[run as usize % 2]
        };
        let path = Path {
            jitter: Duration::from_millis(random.below(200)),
            jitter_reorders: true,
            loss: Loss::Independent(random.below(21) as f64 / 100.0),
            duplication: Straying::places(random.below(21) as f64 / 100.0, 0..=0),
            ..Path::default()
        };
        let mut configs = [config(1, agreement), config(2, agreement)];
        configs[0].is_passive = random.below(4) == 0;
        configs[0].packet_len_max = 200 + random.below(1000) as usize;
        let streams = 1 + random.below(3) as u32;
        let mut world = world(configs, &stores(), streams, path.clone(), run);
        world.run_alone(LIMIT);
        runs += 1;
        assert!(
            world.ends.iter().all(End::is_done),
            "run {run} hangs: {path:?} {:?} {:?}",
            world.ends[0].events,
            world.ends[1].events
        );
        if world.ends.iter().all(|end| end.failure().is_none()) {
            world.assert_agreed();
            agreed += 1;
        }
        let forged = world.ends.iter().flat_map(End::warnings).count();
        assert_eq!(forged, 0, "run {run}");
    }
    assert!(agreed * 1000 > runs * 995, "{agreed} of {runs}");
}

#[test]
fn both_roles_occur_and_contention_is_settled() {
    let mut initiators = [0; 2];
    for seed in 0..40 {
        // Without delay, both ends commit at once.
        let configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
        let mut world = world(configs, &stores(), 2, Path::default(), seed);
        world.run_alone(LIMIT);
        world.assert_agreed();
        for (end, count) in world.ends.iter().zip(&mut initiators) {
            *count += usize::from(end.keys[0].as_ref().unwrap().role == Role::Initiator);
        }
    }
    assert!(initiators.iter().all(|count| *count > 5), "{initiators:?}");
}

/// The ends commit on different streams. The losing Commit arrives when the other stream is secure,
/// before its sender's next message on its stream.
#[test]
fn a_commit_that_another_stream_overtook_stops_nothing() {
    let mut overtaken = 0;
    for seed in 0..40 {
        let configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
        let mut world = world(configs, &stores(), 2, Path::default(), seed);
        let mut hellos = [false; 2];
        let mut held = [None, None];
        let mut secured = 0;
        world.run(LIMIT, &mut |from, datagram| {
            let n = usize::from(datagram[11] % 2);
            let kind = kind(datagram);
            // Drops one Hello each way, so that each end first learns of the stream with its own
            // number.
            if kind == "Hello" && n == from && !std::mem::replace(&mut hellos[n], true) {
                return Vec::new();
            }
            secured += usize::from(kind == "Conf2ACK");
            match (&*kind, held[n].take()) {
                ("Commit", None) if secured == 0 => {
                    held[n] = Some((from, datagram.to_vec()));
                    Vec::new()
                }
                (_, Some((sender, commit))) if sender == from && secured > 0 => {
                    overtaken += usize::from(commit != datagram);
                    vec![commit, datagram.to_vec()]
                }
                (_, before) => {
                    held[n] = before;
                    pass(from, datagram)
                }
            }
        });
        world.assert_agreed();
    }
    assert!(overtaken >= 10, "{overtaken}");
}

#[test]
fn a_second_session_continues_the_first_and_knows_that_the_strings_were_compared() {
    let stores = stores();
    let configs = || [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
    for session in 0..4 {
        let mut world = world(configs(), &stores, 1, Path::default(), session);
        world.run_alone(LIMIT);
        world.assert_agreed();
        let verified = world.ends.each_ref().map(|end| end.session.sas().unwrap().is_verified);
        assert_eq!(verified, [session > 1; 2], "session {session}");
        assert!(world.ends.iter().all(|end| end.warnings().is_empty()));
        if session == 1 {
            assert!(world.ends.iter_mut().all(|end| end.session.verify_sas(true)));
        }
    }
}

#[test]
fn a_lost_store_is_noticed_and_kept_from_spreading_until_the_strings_are_compared() {
    let stores = stores();
    let run = |stores: &[Kept; 2], seed| {
        let configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
        let mut world = world(configs, stores, 1, Path::default(), seed);
        world.run_alone(LIMIT);
        world.assert_agreed();
        world
    };
    let mut world = run(&stores, 1);
    world.ends.iter_mut().for_each(|end| assert!(end.session.verify_sas(true)));
    let lost = [stores[0].clone(), Kept::default()];
    for seed in [2, 3] {
        let world = run(&lost, seed);
        assert_eq!(world.ends[0].warnings(), [Warning::VerifiedBefore]);
        assert!(!world.ends[0].session.sas().unwrap().is_verified);
    }
    let mut world = run(&lost, 4);
    assert_eq!(world.ends[0].warnings(), [Warning::VerifiedBefore]);
    // The other end has a secret of the second session, which this one did not keep.
    assert_eq!(world.ends[1].warnings(), [Warning::CacheMismatch]);
    world.ends.iter_mut().for_each(|end| assert!(end.session.verify_sas(true)));
    let world = run(&lost, 5);
    assert!(world.ends.iter().all(|end| end.warnings().is_empty()));
    assert!(world.ends.iter().all(|end| end.session.sas().unwrap().is_verified));
}

#[test]
fn strings_that_differ_leave_nothing_behind() {
    let stores = stores();
    let configs = || [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
    let mut first = world(configs(), &stores, 1, Path::default(), 1);
    first.run_alone(LIMIT);
    assert!(first.ends.iter_mut().all(|end| end.session.verify_sas(false)));
    let mut second = world(configs(), &stores, 1, Path::default(), 2);
    second.run_alone(LIMIT);
    assert!(second.ends.iter().all(|end| end.warnings().is_empty()));
}

#[test]
fn preshared_mode_skips_the_key_agreement_where_both_allow_it() {
    let stores = stores();
    let configs = || {
        [1, 2].map(|octet| Config {
            allows_preshared: true,
            aux_secret: Some(vec![7; 16].into()),
            ..config(octet, KeyAgreement::X255)
        })
    };
    for session in 0..3 {
        let mut world = world(configs(), &stores, 2, Path::default(), session);
        world.run_alone(LIMIT);
        world.assert_agreed();
        let choice = world.ends[0].keys[0].as_ref().unwrap().choice;
        let expected = if session == 0 { KeyAgreement::X255 } else { KeyAgreement::Prsh };
        assert_eq!(choice.key_agreement, expected, "session {session}");
    }
    // With a store that lost the secret, the ends return to a key agreement.
    let lost = [stores[0].clone(), Kept::default()];
    let mut world = world(configs(), &lost, 1, Path::default(), 9);
    world.run_alone(LIMIT);
    world.assert_agreed();
    let choice = world.ends[0].keys[0].as_ref().unwrap().choice;
    assert_eq!(choice.key_agreement, KeyAgreement::X255);
}

#[test]
fn an_auxiliary_secret_is_used_and_a_difference_is_reported() {
    for (secrets, warned) in [([7, 7], false), ([7, 8], true)] {
        let mut configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
        for (config, secret) in configs.iter_mut().zip(secrets) {
            config.aux_secret = Some(vec![secret; 20].into());
        }
        let mut world = world(configs, &stores(), 1, Path::default(), 1);
        world.run_alone(LIMIT);
        world.assert_agreed();
        for end in &world.ends {
            assert_eq!(end.warnings().contains(&Warning::AuxMismatch), warned);
        }
    }
}

/// Returns the reason for which each end refused the other, if it did.
fn refusals(configs: [Config; 2], stores: &[Kept; 2], seed: u64) -> [Option<PeerRefusal>; 2] {
    let mut world = world(configs, stores, 1, Path::default(), seed);
    world.run_alone(LIMIT);
    let refused = world.ends.each_ref().map(|end| {
        end.events.iter().find_map(|(_, event)| match event {
            Event::Refused(refusal) => Some(*refusal),
            _ => None,
        })
    });
    if refused == [None; 2] {
        world.assert_agreed();
    } else {
        assert!(world.ends.iter().all(|end| end.keys[0].is_none() && !end.secure[0]));
    }
    refused
}

#[test]
fn a_peer_without_the_secret_gets_no_key_where_one_is_required() {
    let end = |octet, secret: Option<u8>, policy| Config {
        aux_secret: secret.map(|secret| vec![secret; 20].into()),
        policy,
        allows_preshared: true,
        ..config(octet, KeyAgreement::X255)
    };
    let (any, required) = (PeerPolicy::Allow, PeerPolicy::RequireSecret);
    let refused = Some(PeerRefusal::NoSecret);
    for seed in 0..20 {
        let both = [end(1, Some(7), required), end(2, Some(7), required)];
        let stores = stores();
        for session in 0..2 {
            // The second could use Preshared mode, which does not prove that a peer has the secret.
            assert_eq!(refusals(both.clone(), &stores, seed + session), [None; 2]);
        }
        for secret in [None, Some(8)] {
            let configs = [end(1, Some(7), required), end(2, secret, any)];
            assert_eq!(refusals(configs, &self::stores(), seed)[0], refused);
            let configs = [end(1, secret, any), end(2, Some(7), required)];
            assert_eq!(refusals(configs, &self::stores(), seed)[1], refused);
        }
    }
}

#[test]
fn the_policy_refuses_peers_that_were_never_compared_or_have_changed() {
    let end = |octet, policy, preshared| Config {
        policy,
        allows_preshared: preshared,
        ..config(octet, KeyAgreement::X255)
    };
    let configs =
        |policy, preshared| [end(1, policy, preshared), end(2, PeerPolicy::Allow, preshared)];
    for (seed, preshared) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let stores = stores();
        let strict = || configs(PeerPolicy::RefuseUnverified, preshared);
        let lenient = || configs(PeerPolicy::RefuseChanged, preshared);
        assert_eq!(refusals(strict(), &stores, seed)[0], Some(PeerRefusal::Unverified));
        assert_eq!(refusals(lenient(), &stores, seed), [None; 2]);
        assert_eq!(refusals(strict(), &stores, seed)[0], Some(PeerRefusal::Unverified));
        let mut compared = world(lenient(), &stores, 1, Path::default(), seed);
        compared.run_alone(LIMIT);
        assert!(compared.ends.iter_mut().all(|end| end.session.verify_sas(true)));
        assert_eq!(refusals(strict(), &stores, seed), [None; 2]);
        assert_eq!(refusals(lenient(), &stores, seed), [None; 2]);
        // The second end has lost its secrets, or an attacker has taken its place.
        let lost = [stores[0].clone(), Kept::default()];
        for configs in [strict(), lenient()] {
            assert_eq!(refusals(configs, &lost, seed)[0], Some(PeerRefusal::Changed));
        }
        assert_eq!(refusals(configs(PeerPolicy::Allow, preshared), &lost, seed), [None; 2]);
    }
}

#[test]
fn both_ends_go_clear_and_secure_again_only_if_that_is_allowed() {
    for allows in [true, false] {
        let mut configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
        for config in &mut configs {
            config.allows_clear = allows;
        }
        let mut world = world(configs, &stores(), 1, Path::default(), 1);
        world.run_alone(LIMIT);
        world.assert_agreed();
        let before = world.ends[0].keys[0].take().unwrap();
        let (now, stream) = (world.now, world.ends[0].streams[0]);
        assert_eq!(world.ends[0].session.go_clear(now, stream), allows);
        if !allows {
            continue;
        }
        while world.step(&mut |_, datagram| vec![datagram.to_vec()]) {}
        for end in &mut world.ends {
            assert!(end.events.iter().any(|(_, event)| matches!(event, Event::Clear)));
            end.secure[0] = false;
        }
        let now = world.now;
        assert!(world.ends[1].session.go_secure(now, world.ends[1].streams[0]));
        while world.step(&mut |_, datagram| vec![datagram.to_vec()]) {}
        world.assert_agreed();
        let after = world.ends[0].keys[0].as_ref().unwrap();
        assert_ne!(before.send, after.send);
    }
}

#[test]
fn a_missing_peer_is_reported_within_four_seconds() {
    let configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
    let mut world = world(configs, &stores(), 1, Path::default(), 1);
    world.run(LIMIT, &mut |_, _| Vec::new());
    assert!(world.ends.iter().all(|end| end.failure().unwrap() == "no peer"));
    assert!(world.elapsed() < Duration::from_secs(5), "{:?}", world.elapsed());
}

fn clearing() -> World {
    let mut configs = [config(1, KeyAgreement::X255), config(2, KeyAgreement::X255)];
    for config in &mut configs {
        config.allows_clear = true;
    }
    configs[1].is_passive = true;
    world(configs, &stores(), 1, Path::default(), 1)
}

fn was_cleared(end: &End) -> bool {
    end.events.iter().any(|(_, event)| matches!(event, Event::Clear))
}

#[test]
fn an_initiator_that_missed_conf2ack_follows_a_responder_that_goes_clear() {
    let mut world = clearing();
    while !world.ends[1].is_secure() {
        world.step(&mut pass);
    }
    let (now, stream) = (world.now, world.ends[1].streams[0]);
    while world.ends[1].session.poll_datagram().is_some() {}
    assert!(world.ends[1].session.go_clear(now, stream));
    world.settle(&mut pass);
    for end in &world.ends {
        assert_eq!(end.failure(), None);
        assert!(was_cleared(end));
    }
}

#[test]
fn a_stream_is_secured_again_although_the_clearack_was_lost() {
    let mut world = clearing();
    world.settle(&mut pass);
    let (now, stream) = (world.now, world.ends[1].streams[0]);
    assert!(world.ends[1].session.go_clear(now, stream));
    while !was_cleared(&world.ends[0]) {
        world.step(&mut pass);
    }
    while world.ends[0].session.poll_datagram().is_some() {}
    for end in &mut world.ends {
        end.secure[0] = false;
    }
    let (now, stream) = (world.now, world.ends[0].streams[0]);
    assert!(world.ends[0].session.go_secure(now, stream));
    world.settle(&mut pass);
    world.assert_agreed();
}
