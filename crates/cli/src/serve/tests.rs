//! Sessions with real connections, on the loopback address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::peer::{Direction, Peer, PeerStream};
use rushes::{Codec, Context};
use rushes_whip::{Endpoint as _, Kind, OpenRequest, Reason, Refusal};

use super::hub::{Hub, Sample, Show, Track};
use super::queue::Next;
use super::sessions::Sessions;

/// Nothing here takes as long, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(60);
const SETS: &[u8] = b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80";
const KEY: &[u8] = b"\0\0\0\x01\x65slice";

/// Returns the sessions of a server that shows `tracks`, or otherwise what is published.
fn sessions(tracks: &[Codec], max: usize) -> (Arc<Hub>, Sessions) {
    let tracks: Vec<_> =
        tracks.iter().map(|codec| Track { codec: *codec, encoding: None }).collect();
    let takes_publisher = tracks.is_empty();
    let hub = Arc::new(Hub::new(tracks));
    (hub.clone(), Sessions::new(Context::new(), hub, takes_publisher, max))
}

fn open(sessions: &Sessions, id: &str, kind: Kind, offer: &str) -> Result<String, Refusal> {
    let local = SocketAddr::from(([127, 0, 0, 1], 80));
    sessions.open(&OpenRequest { id, kind, offer, peer: local, local })
}

/// Returns a client for H.264, and its offer.
fn client(direction: Direction) -> (Peer, String) {
    let peer = Context::new().peer().local_address("127.0.0.1").unwrap().open();
    let mut peer = peer.unwrap();
    peer.add(peer.stream(Codec::H264), direction);
    let offer = peer.offer().unwrap();
    (peer, offer)
}

fn connect(peer: &mut Peer, answer: &str) -> PeerStream {
    peer.set_answer(answer).unwrap();
    peer.connect(PATIENCE).unwrap().expect("it connects").remove(0)
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never happens");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_publisher_who_does_not_connect_gives_way_and_takes_nothing_away() {
    let (hub, sessions) = sessions(&[], 4);
    let (_first, offer) = client(Direction::SendOnly);
    open(&sessions, "first", Kind::Publish, &offer).unwrap();
    let (mut second, offer) = client(Direction::SendOnly);
    let answer = open(&sessions, "second", Kind::Publish, &offer).unwrap();
    let _stream = connect(&mut second, &answer);
    wait_until(|| hub.shown().1.len() == 1);
    wait_until(|| !sessions.is_open("first"));
    assert!(sessions.is_open("second") && hub.shown().1.len() == 1);
    let refused = open(&sessions, "third", Kind::Publish, &offer).unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
    sessions.close("second");
    wait_until(|| !sessions.is_open("second"));
    assert!(hub.shown().1.is_empty());
}

#[test]
fn one_who_publishes_is_not_ended_by_one_who_entered_before() {
    let (_hub, sessions) = sessions(&[], 4);
    let local = SocketAddr::from(([127, 0, 0, 1], 80));
    let (id, kind, offer) = ("early", Kind::Publish, "");
    let early = sessions.enter(&OpenRequest { id, kind, offer, peer: local, local }).unwrap();
    let (mut second, offer) = client(Direction::SendOnly);
    let answer = open(&sessions, "second", kind, &offer).unwrap();
    let _stream = connect(&mut second, &answer);
    let kept = sessions.keep(early.session());
    assert_eq!(kept.unwrap_err().reason, Reason::Conflict);
    assert!(sessions.is_open("second") && second.ended().is_none());
    let refused = open(&sessions, "third", kind, &offer).unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict, "the second was not told to end");
    sessions.close("second");
    wait_until(|| !sessions.is_open("second"));
}

#[test]
fn one_address_does_not_take_all_places() {
    let (_hub, sessions) = sessions(&[Codec::H264], 8);
    let enter = |id: &str, peer: &str| {
        let (_client, offer) = client(Direction::RecvOnly);
        let peer = SocketAddr::new(peer.parse().unwrap(), 1);
        let local = SocketAddr::from(([127, 0, 0, 1], 80));
        let request = OpenRequest { id, kind: Kind::Play, offer: &offer, peer, local };
        sessions.open(&request).map(drop).map_err(|refusal| refusal.reason)
    };
    // A quarter of the places, of whom no path is known; all of IPv6's 64 bits are one address.
    for (id, peer, entered) in [
        ("a", "192.0.2.1", Ok(())),
        ("b", "192.0.2.1", Ok(())),
        ("c", "::ffff:192.0.2.1", Err(Reason::TooMany)),
        ("d", "192.0.2.2", Ok(())),
        ("e", "2001:db8::1", Ok(())),
        ("f", "2001:db8::2", Ok(())),
        ("g", "2001:db8::3", Err(Reason::TooMany)),
        ("h", "2001:db8:0:1::3", Ok(())),
        ("i", "127.0.0.1", Ok(())),
        ("j", "127.0.0.1", Ok(())),
        ("k", "127.0.0.1", Err(Reason::Busy)),
    ] {
        assert_eq!(enter(id, peer), entered, "{id}");
    }
    sessions.end(PATIENCE);
}

#[test]
fn what_is_no_offer_is_malformed_and_takes_no_place() {
    let (_hub, sessions) = sessions(&[Codec::H264], 1);
    for offer in ["", "nonsense", "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video\r\n"] {
        let refused = open(&sessions, "none", Kind::Play, offer).unwrap_err();
        assert_eq!(refused.reason, Reason::Malformed, "{offer:?}: {refused}");
    }
    let (_client, offer) = client(Direction::RecvOnly);
    open(&sessions, "viewer", Kind::Play, &offer).unwrap();
    let refused = open(&sessions, "another", Kind::Play, &offer).unwrap_err();
    assert_eq!(refused.reason, Reason::Busy);
    sessions.end(PATIENCE);
    assert!(!sessions.is_open("viewer"));
}

#[test]
fn a_frame_that_cannot_be_sent_costs_no_viewer_and_the_end_is_told() {
    let (hub, sessions) = sessions(&[Codec::H264], 1);
    let (mut client, offer) = client(Direction::RecvOnly);
    let answer = open(&sessions, "viewer", Kind::Play, &offer).unwrap();
    let mut stream = connect(&mut client, &answer);
    wait_until(|| hub.counts().1 == 1);
    let key = [SETS, KEY].concat();
    let slice = b"\0\0\0\x01\x41slice".as_slice();
    let frames =
        [(&*key, true), (b"no start code", false), (slice, false), (&*key, true), (slice, false)];
    for (number, (data, is_key)) in (0..).zip(frames) {
        let (data, captured) = (data.into(), Instant::now());
        let sample =
            Sample { track: 0, data, ticks: number * 3000, captured, shown: captured, is_key };
        hub.show(Show::default(), sample);
    }
    hub.end();
    let mut received = Vec::new();
    wait_until(|| {
        let frame = stream.stream.pull_frame(Duration::from_millis(20)).unwrap();
        received.extend(frame.map(|frame| frame.data().to_vec()));
        client.ended().is_some()
    });
    assert_eq!(received, [&*key, &*key, slice]);
    assert_eq!(hub.left_out(), 2);
    sessions.drain(PATIENCE);
    assert!(!sessions.is_open("viewer"));
}

#[test]
fn viewers_who_come_late_get_the_parameter_sets_of_a_publisher() {
    let (hub, sessions) = sessions(&[], 1);
    let (mut client, offer) = client(Direction::SendOnly);
    let answer = open(&sessions, "publisher", Kind::Publish, &offer).unwrap();
    let mut stream = connect(&mut client, &answer);
    wait_until(|| !hub.shown().1.is_empty());
    // A source counts from its second packet on, and its first frame may be incomplete.
    wait_until(|| {
        stream.stream.push_frame(&[SETS, KEY].concat(), None).unwrap();
        hub.counts().0 > 0
    });
    let queue = hub.watch(hub.shown().0, None);
    let late = b"\0\0\0\x01\x65late".as_slice();
    wait_until(|| {
        stream.stream.push_frame(late, None).unwrap();
        match queue.next(|_| true) {
            Next::Sample(sample) if sample.data.ends_with(late) => {
                assert_eq!((&*sample.data, sample.is_key), (&*[SETS, late].concat(), true));
                true
            }
            _ => false,
        }
    });
    sessions.end(PATIENCE);
}

/// Shows a key frame, from which every viewer can go on.
fn show(hub: &Hub, number: u32, data: &[u8]) {
    let (data, captured) = (data.into(), Instant::now());
    let ticks = number * 3000;
    hub.show(
        Show::default(),
        Sample { track: 0, data, ticks, captured, shown: captured, is_key: true },
    );
}

/// Returns a key frame of about `len` octets.
fn key_frame(len: usize) -> Vec<u8> {
    [SETS, KEY, &vec![7; len]].concat()
}

/// A viewer that watches.
struct Watching {
    client: Peer,
    stream: PeerStream,
    /// The addresses at which the server is reached for it.
    ports: Vec<SocketAddr>,
}

impl Watching {
    fn assert_gets(&mut self, frame: &[u8]) {
        let pulled = self.stream.stream.pull_frame(PATIENCE).unwrap().expect("a frame");
        assert_eq!(pulled.data(), frame);
    }
}

/// Lets viewers enter until `all` watch.
fn watch(hub: &Hub, sessions: &Sessions, all: usize) -> Vec<Watching> {
    let viewers = (0..all).map(|number| {
        let (mut client, offer) = client(Direction::RecvOnly);
        let answer = open(sessions, &number.to_string(), Kind::Play, &offer).unwrap();
        let stream = connect(&mut client, &answer);
        Watching { client, stream, ports: ports_in(&answer) }
    });
    let viewers: Vec<_> = viewers.collect();
    wait_until(|| hub.counts().1 == all);
    viewers
}

/// Returns the addresses of the candidates in an answer.
fn ports_in(answer: &str) -> Vec<SocketAddr> {
    let candidates = answer.lines().filter_map(|line| line.strip_prefix("a=candidate:"));
    let address = |candidate: &str| {
        let fields: Vec<_> = candidate.split(' ').collect();
        SocketAddr::new(fields[4].parse().unwrap(), fields[5].parse().unwrap())
    };
    candidates.map(address).collect()
}

#[test]
fn many_viewers_get_everything_from_as_many_threads_as_cores() {
    const ALL: usize = 16;
    let (hub, sessions) = sessions(&[Codec::H264], 2 * ALL);
    let mut viewers = watch(&hub, &sessions, ALL);
    // Those who never connect are no reason for further threads.
    let waiting = (ALL..2 * ALL).map(|number| {
        let (client, offer) = client(Direction::RecvOnly);
        open(&sessions, &number.to_string(), Kind::Play, &offer).unwrap();
        client
    });
    let _waiting: Vec<_> = waiting.collect();
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(sessions.viewers.count(), cores.min(2 * ALL));
    // The second is larger than a burst, and takes some time.
    let frames = [key_frame(10), key_frame(60_000), key_frame(10)];
    for (number, frame) in (0..).zip(&frames) {
        show(&hub, number, frame);
    }
    for viewer in &mut viewers {
        for frame in &frames {
            viewer.assert_gets(frame);
        }
    }
    assert_eq!(hub.left_out(), 0);
    sessions.end(PATIENCE);
    assert!((0..2 * ALL).all(|number| !sessions.is_open(&number.to_string())));
}

#[test]
fn a_stranger_at_the_ports_of_viewers_takes_nothing_from_them() {
    let (hub, sessions) = sessions(&[Codec::H264], 4);
    let mut viewers = watch(&hub, &sessions, 4);
    let stranger = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut junk = [0_u8; 1200];
    let mut random = 1_u32;
    for number in 0..40 {
        // The first octet says which protocol a datagram claims to be of.
        for first in 0..=255 {
            for octet in &mut junk {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *octet = (random >> 24) as u8;
            }
            junk[0] = first;
            let len = random as usize % junk.len() + 1;
            for port in viewers.iter().flat_map(|viewer| &viewer.ports) {
                let _ = stranger.send_to(&junk[..len], port);
            }
        }
        let frame = key_frame(100 * number as usize);
        show(&hub, number, &frame);
        for viewer in &mut viewers {
            viewer.assert_gets(&frame);
        }
    }
    assert!(viewers.iter().all(|viewer| viewer.client.ended().is_none()));
    sessions.end(PATIENCE);
}

#[test]
fn a_viewer_who_reads_nothing_holds_up_nobody_and_one_who_leaves_is_dropped() {
    let (hub, sessions) = sessions(&[Codec::H264], 3);
    let mut viewers = watch(&hub, &sessions, 3);
    let (leaves, mut reads) = (viewers.pop().unwrap(), viewers.pop().unwrap());
    // More than the socket of the one that is left in `viewers` takes.
    let frame = key_frame(30_000);
    let mut leaves = Some(leaves);
    for number in 0..200 {
        show(&hub, number, &frame);
        reads.assert_gets(&frame);
        if number == 20 {
            leaves.take();
            wait_until(|| !sessions.is_open("2"));
            assert_eq!(hub.counts().1, 2);
        }
    }
    assert_eq!(hub.left_out(), 0);
    sessions.end(PATIENCE);
}
