//! Handshakes that somebody on the path, or beside it, tries to disturb or to enter.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod world;

use std::time::Duration;

use rushes_netsim::{Path, Seeded};
use rushes_webrtc::dtls::{DATAGRAM_MAX, DtlsError, Event};
use world::{CLIENT, End, SERVER, World, certificate, config, connected, epoch, pass};

/// Returns the datagrams that a handshake consists of, of one end.
fn recorded(end: usize) -> Vec<Vec<u8>> {
    let world = connected();
    world.sent.into_iter().filter(|(from, _)| *from == end).map(|(_, octets)| octets).collect()
}

/// Returns datagrams that begin like records of DTLS, and go on with noise.
fn garbage(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut random = Seeded(seed);
    let mut octets = |n: usize| {
        let len = 1 + n % 97;
        let mut datagram = vec![0; len];
        random.fill(&mut datagram);
        datagram[0] = 20 + datagram[0] % 44;
        if len > 25 {
            datagram[1..3].copy_from_slice(&[0xfe, 0xfd]);
            datagram[3..5].copy_from_slice(&[0, u8::from(n.is_multiple_of(3))]);
            datagram[11..13].copy_from_slice(&[0, (len - 13) as u8]);
            if n.is_multiple_of(2) {
                datagram[0] = 22;
                datagram[13] %= 24;
                datagram[14..25].fill(0);
                datagram[16] = (len - 25) as u8;
                datagram[24] = (len - 25) as u8;
            }
        }
        datagram
    };
    (0..count).map(&mut octets).collect()
}

#[test]
fn garbage_disturbs_no_handshake_and_no_association() {
    for seed in 0..20 {
        let noise = garbage(seed, 40);
        let mut n = 0;
        let mut middle = |_: usize, datagram: &[u8]| {
            n += 1;
            // Records that look like the handshake's own may end it, as in every version of TLS; here
            // are those that belong to none.
            let fits = |it: &&Vec<u8>| it[0] != 22;
            let before = noise.iter().filter(fits).cycle().skip(n * 7).take(10).cloned();
            before.chain([datagram.to_vec()]).collect()
        };
        let mut world = World::new(Path::default(), seed);
        world.run(&mut middle);
        world.keys();
        for (end, datagram) in (0..2).cycle().zip(&noise) {
            let now = world.now;
            let answers = world.ends[end].answers(now, datagram);
            assert!(answers.len() <= 3, "seed {seed}");
        }
        world.ends[CLIENT].association.close(world.now);
        world.run(&mut pass);
        assert!(world.ends[SERVER].is_closed(), "the association still works");
    }
}

#[test]
fn garbage_makes_no_server_deaf() {
    let mut server = End::new(config(SERVER));
    for datagram in garbage(7, 5000) {
        assert!(server.answers(epoch(), &datagram).is_empty());
    }
    let mut world = World::new(Path::default(), 1);
    world.ends[SERVER] = server;
    world.run(&mut pass);
    world.keys();
}

#[test]
fn records_after_the_handshake_cannot_fill_the_association() {
    let mut world = connected();
    for end in [CLIENT, SERVER] {
        let now = world.now;
        for n in 0..2000_u16 {
            for kind in [20, 21, 22, 23, 24, 26] {
                let mut record = vec![kind, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 40];
                record[9..11].copy_from_slice(&n.to_be_bytes());
                assert!(world.ends[end].answers(now, &record).is_empty(), "{kind} {n}");
            }
        }
    }
    world.ends[CLIENT].association.close(world.now);
    world.run(&mut pass);
    assert!(world.ends[SERVER].is_closed());
}

#[test]
fn truncated_and_extended_datagrams_are_harmless() {
    for seed in 0..10 {
        let mut random = Seeded(seed);
        let mut middle = |from: usize, datagram: &[u8]| {
            let cut = random.below(datagram.len() as u64) as usize;
            let parts = [datagram[..cut].to_vec(), [datagram, &[0; 5]].concat()];
            // Only the end itself can put its encrypted records before the noise.
            let noise = parts.into_iter().filter(|_| from == SERVER || datagram[0] == 22);
            noise.chain([datagram.to_vec()]).collect()
        };
        let mut world = World::new(Path::default(), seed);
        world.run(&mut middle);
        world.keys();
    }
}

#[test]
fn a_changed_octet_yields_no_keys_that_differ() {
    let mut complete = 0;
    for seed in 0..150 {
        let mut random = Seeded(seed);
        let at = random.below(8);
        let mut n = 0;
        let mut middle = |_: usize, datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            if n == at {
                let place = random.below(datagram.len() as u64) as usize;
                datagram[place] ^= 1 << random.below(8);
            }
            n += 1;
            vec![datagram]
        };
        let mut world = World::new(Path::default(), seed);
        world.run(&mut middle);
        if let [Some(client), Some(server)] = world.ends.each_ref().map(End::keys) {
            assert_eq!((&client.send, &client.receive), (&server.receive, &server.send));
            complete += 1;
        }
    }
    assert!(complete > 30, "only {complete} of 150");
}

#[test]
fn a_recorded_handshake_yields_no_keys() {
    for end in [CLIENT, SERVER] {
        let mut victim = End::new(config(1 - end));
        victim.collect();
        let mut now = epoch();
        for _ in 0..20 {
            for datagram in recorded(end) {
                victim.answers(now, &datagram);
                now += Duration::from_millis(10);
            }
        }
        assert!(victim.keys().is_none());
    }
}

#[test]
fn the_messages_of_two_handshakes_cannot_be_mixed() {
    // The server's messages of another handshake with the same certificates.
    for replaced in 0..2 {
        let foreign = recorded(SERVER);
        let mut n = 0;
        let mut middle = |from: usize, datagram: &[u8]| {
            if from == SERVER {
                n += 1;
                if n > replaced
                    && let Some(other) = foreign.get(n - 1)
                {
                    return vec![other.clone()];
                }
            }
            pass(from, datagram)
        };
        let mut world = World::new(Path::default(), 1);
        world.run(&mut middle);
        assert!(world.ends.iter().all(|end| end.keys().is_none()), "{replaced}");
    }
}

#[test]
fn an_end_in_the_middle_is_found_out() {
    // It speaks to each end with a certificate of its own.
    let mut world = World::new(Path::default(), 1);
    let mut to_client = config(SERVER);
    to_client.certificate = certificate(2);
    world.ends[SERVER] = End::new(to_client);
    world.run(&mut pass);
    assert!(matches!(world.ends[CLIENT].failure(), Some(DtlsError::Fingerprint { .. })));
    assert!(world.ends.iter().all(|end| end.keys().is_none()));
}

#[test]
fn a_server_sends_little_to_an_address_that_is_not_proved() {
    let hello = recorded(CLIENT).remove(0);
    let mut server = End::new(config(SERVER));
    let mut sent = 0;
    let mut now = epoch();
    let mut received = 0;
    for _ in 0..50 {
        received += hello.len();
        sent += server.answers(now, &hello).iter().map(Vec::len).sum::<usize>();
        assert!(sent <= 3 * received);
        for _ in 0..10 {
            now += Duration::from_secs(1);
            server.association.handle_timeout(now);
            assert!(server.collect().is_empty(), "nothing was received");
        }
    }
    assert!(sent > 0 && !server.association.has_proved_address());
    println!("{sent} octets for {received} octets before the cookie is returned");
}

#[test]
fn a_first_message_of_another_client_replaces_the_one_before() {
    let mut world = World::new(Path::default(), 1);
    for _ in 0..1000 {
        let hello = End::new(config(CLIENT)).collect().remove(0);
        world.ends[SERVER].answers(epoch(), &hello);
    }
    world.run(&mut pass);
    world.keys();
    assert!(world.elapsed() < Duration::from_secs(1), "without a retransmission");
}

#[test]
fn a_first_message_changes_nothing_after_the_handshake() {
    let mut world = connected();
    let others = recorded(CLIENT);
    for _ in 0..50 {
        for datagram in &others {
            let now = world.now;
            let answers = world.ends[SERVER].answers(now, datagram);
            let octets: usize = answers.iter().map(Vec::len).sum();
            assert!(octets <= 1200, "{octets}");
        }
    }
    assert_eq!(world.ends[SERVER].events.len(), 1, "{:?}", world.ends[SERVER].events);
    world.ends[CLIENT].association.close(world.now);
    world.run(&mut pass);
    assert!(world.ends[SERVER].is_closed());
}

#[test]
fn recorded_messages_of_an_association_cause_few_answers() {
    let mut world = connected();
    let (mut received, mut sent) = ([0; 2], [0; 2]);
    for _ in 0..100 {
        for (from, datagram) in world.sent.clone() {
            let now = world.now;
            let answers = world.ends[1 - from].answers(now, &datagram);
            received[1 - from] += datagram.len();
            sent[1 - from] += answers.iter().map(Vec::len).sum::<usize>();
        }
    }
    for end in [CLIENT, SERVER] {
        assert!(sent[end] < received[end] / 10, "{sent:?} for {received:?}");
    }
    assert!(world.ends.iter().all(|end| end.events.len() == 1));
}

#[test]
fn a_forged_alert_ends_no_handshake() {
    let alert = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40];
    let mut middle = |_: usize, datagram: &[u8]| vec![alert.to_vec(), datagram.to_vec()];
    let mut world = World::new(Path::default(), 1);
    world.run(&mut middle);
    world.keys();

    // If nothing else comes, it was true.
    let mut client = End::new(config(CLIENT));
    client.answers(epoch(), &alert);
    while let Some(due) = client.association.next_timeout() {
        client.association.handle_timeout(due);
        client.collect();
    }
    assert_eq!(client.events, [Event::Failed(DtlsError::Alert { description: 40 })]);
}

#[test]
fn large_datagrams_are_dropped() {
    let mut hello = recorded(CLIENT).remove(0);
    hello.resize(DATAGRAM_MAX + 1, 22);
    let mut server = End::new(config(SERVER));
    assert!(server.answers(epoch(), &hello).is_empty());
}

#[test]
fn a_client_that_stops_after_its_cookie_does_not_keep_the_server() {
    let mut world = World::new(Path::default(), 1);
    let mut n = 0;
    world.run(&mut |from, datagram| {
        n += usize::from(from == CLIENT);
        if from == CLIENT && n > 2 { Vec::new() } else { pass(from, datagram) }
    });
    assert!(world.ends[SERVER].keys().is_none());
    assert_eq!(world.ends[SERVER].association.last_error(), Some(&DtlsError::Timeout));
    world.ends[CLIENT] = End::at(world.now, config(CLIENT));
    world.run(&mut pass);
    world.keys();
    assert_eq!(world.ends[SERVER].association.last_error(), None);
}
