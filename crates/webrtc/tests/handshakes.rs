//! Handshakes between two ends over the simulated network.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_netsim::{Loss, Path, Straying};
use rushes_proto::srtp::Suite;
use rushes_webrtc::dtls::{Association, Config, DtlsError, Event, Fingerprint, HashFunction};
use world::{CLIENT, End, SERVER, World, certificate, config, connected, epoch, pass};

#[test]
fn both_ends_get_the_same_keys_and_keep_them() {
    let mut world = connected();
    let [client, server] = world.keys();
    assert_eq!(client.suite, Suite::AeadAes256Gcm);
    assert_eq!(client.suite, server.suite);
    assert_eq!((&client.send, &client.receive), (&server.receive, &server.send));
    assert_ne!(client.send, client.receive);
    assert!(!format!("{client:?}").contains(&format!("{:?}", &client.send[..4])[1..]));
    for end in &world.ends {
        assert_eq!(end.association.version(), Some("DTLS 1.3"));
        assert!(end.association.has_proved_address());
        assert_eq!(end.events.len(), 1, "{:?}", end.events);
        assert_eq!(end.association.next_timeout(), None);
    }
    world.run(&mut pass);
}

#[test]
fn every_handshake_has_other_keys() {
    let (a, b) = (connected(), connected());
    let (a, b) = (a.keys()[0], b.keys()[0]);
    assert_ne!(a.send, b.send);
}

#[test]
fn handshakes_complete_over_bad_networks() {
    let delay = Duration::from_millis(80);
    let loss = Loss::Independent(0.2);
    let duplication = Straying::time(0.3, delay..=delay * 3);
    let paths = [
        Path { delay, loss: loss.clone(), ..Path::default() },
        Path { delay, loss, duplication, ..Path::default() },
        Path { delay, jitter: delay * 3, jitter_reorders: true, ..Path::default() },
    ];
    for (n, path) in paths.into_iter().enumerate() {
        let mut complete = 0;
        for seed in 0..30 {
            let mut world = World::new(path.clone(), seed);
            world.run(&mut pass);
            let both = world.ends.each_ref().map(End::keys);
            if let [Some(client), Some(server)] = both {
                assert_eq!((&client.send, &client.receive), (&server.receive, &server.send));
                complete += 1;
            } else {
                let said = world.ends.iter().any(|end| end.failure().is_some());
                assert!(said, "path {n}, seed {seed}: nobody says why there are no keys");
            }
        }
        assert!(complete >= 29, "path {n}: {complete} of 30");
    }
}

#[test]
fn the_last_flight_is_sent_again_when_the_peer_missed_it() {
    // All that the server sends after its first encrypted flight is lost for a while.
    let mut lost = 0;
    let mut flights = 0;
    let mut world = World::new(Path::default(), 1);
    let mut middle = |from: usize, datagram: &[u8]| {
        if from == CLIENT && datagram[0] != 22 {
            flights += 1;
        }
        if from == SERVER && flights > 0 && lost < 2 {
            lost += 1;
            return Vec::new();
        }
        pass(from, datagram)
    };
    world.run(&mut middle);
    world.keys();
    assert_eq!(lost, 2);
}

#[test]
fn a_client_without_an_answer_fails_in_time_and_a_server_waits() {
    let mut world = World::new(Path::default(), 1);
    world.run(&mut |_, _| Vec::new());
    assert_eq!(world.ends[CLIENT].failure(), Some(&DtlsError::Timeout));
    assert!(world.elapsed() <= Duration::from_secs(40), "{:?}", world.elapsed());
    assert!(world.ends[SERVER].events.is_empty());
    // It still accepts a client that comes later.
    world.ends[CLIENT] = End::at(world.now, config(CLIENT));
    world.run(&mut pass);
    world.keys();
}

#[test]
fn an_unexpected_certificate_yields_no_keys_at_either_end() {
    for wrong in [CLIENT, SERVER] {
        let mut configs = [config(CLIENT), config(SERVER)];
        configs[1 - wrong].expected = vec![certificate(2).fingerprint()];
        let mut world = World::of(configs, Path::default(), 1);
        world.run(&mut pass);
        let found = certificate(wrong).fingerprint();
        let judge = &world.ends[1 - wrong];
        assert_eq!(judge.events, [Event::Failed(DtlsError::Fingerprint { found })]);
        // A client of DTLS 1.3 is complete before the server has seen its certificate.
        let other = &world.ends[wrong];
        assert!(wrong == CLIENT || other.keys().is_none(), "{:?}", other.events);
    }
}

#[test]
fn nobody_is_expected_without_a_fingerprint() {
    let nobody = Config { expected: Vec::new(), ..config(CLIENT) };
    assert_eq!(Association::new(nobody, epoch()).unwrap_err(), DtlsError::NoFingerprint);
}

#[test]
fn any_of_the_announced_certificates_is_accepted() {
    let mut configs = [config(CLIENT), config(SERVER)];
    let of = |n: usize| Fingerprint::of(HashFunction::Sha512, certificate(n).der());
    configs[CLIENT].expected = vec![of(2), of(SERVER), certificate(2).fingerprint()];
    let mut world = World::of(configs, Path::default(), 1);
    world.run(&mut pass);
    world.keys();
}

#[test]
fn the_peer_learns_that_an_association_ended() {
    for end in [CLIENT, SERVER] {
        let mut world = connected();
        world.ends[end].association.close(world.now);
        world.run(&mut pass);
        assert!(world.ends[1 - end].is_closed());
        assert!(!world.ends[end].is_closed(), "this end has asked for it");
        assert_eq!(world.ends[1 - end].association.next_timeout(), None);
    }
}
