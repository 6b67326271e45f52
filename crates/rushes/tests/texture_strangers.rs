//! A texture server refuses clients that are wrong, slow, silent or hostile, with the reason, and
//! serves honest clients meanwhile and afterwards.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::io::Read;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rushes::delivery::control::{
    Accept, Change, FormatSet, FrameRate, Message, Opening, Ping, Reason, Report, Token,
    TransportSet, Wishes,
};
use rushes::texture::{
    ClientOptions, Format, Layout, ServerOptions, TextureClient, TextureError, TextureServer,
    Transport,
};

use texture_world::noise::Noise;
use texture_world::stranger::{Stranger, binding, opening, wishes};
use texture_world::witness::{Pictures, Witness};

const SECOND: Duration = Duration::from_secs(1);

/// Time after which a test counts as hung.
const HANGS: Duration = Duration::from_secs(30);

const PICTURES: u64 = 8;

fn serve() -> TextureServer {
    let layout = Layout::new(Format::Bc1, 319, 181).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.loops, options.clients_max) = (2, true, 40);
    options.clients_per_host_max = 40;
    let noise = Noise::new(layout, 50, PICTURES);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// A well-behaved client.
struct Good {
    client: TextureClient,
    witness: Arc<Witness>,
}

impl Good {
    fn connect(server: SocketAddr, transport: Transport) -> Result<Self, TextureError> {
        let witness = Arc::new(Witness::new(Pictures::Round(PICTURES)));
        let mut options = ClientOptions::default();
        options.transport = Some(transport);
        // The deadlines are so long that no packet counts as lost because a thread was scheduled
        // late.
        (options.deadline_min, options.deadline_max) = (20 * SECOND, 20 * SECOND);
        let client = TextureClient::connect(server, witness.clone(), options)?;
        Ok(Self { client, witness })
    }

    /// Waits for this number of further frames.
    fn see(&self, frames: u64) {
        let (until, enough) = (Instant::now() + HANGS, self.witness.seen().frames + frames);
        while self.witness.seen().frames < enough {
            assert!(Instant::now() < until, "no frames: {:?}", self.client.statistics());
            thread::sleep(SECOND / 200);
        }
    }

    fn end(self) {
        // A client's stop may damage a frame in flight.
        let seen = self.witness.seen();
        let statistics = self.client.stop();
        assert_eq!(seen.faults, [""; 0], "{statistics:?}");
        assert_eq!(seen.damaged, 0, "{statistics:?}");
    }
}

fn refused(stranger: &mut Stranger, reason: Reason, text: &str) {
    let end = stranger.receive_end();
    let fits = end.as_ref().is_some_and(|(why, said)| *why == reason && said.contains(text));
    assert!(fits, "{end:?}, not {reason:?} and {text}");
    assert!(stranger.receive().is_none());
}

/// Sends openings that are malformed, or that request something that the server does not have.
fn wrong_openings(server: SocketAddr) {
    let check = |octets: &[u8], reason, text: &str| {
        let mut stranger = Stranger::connect(server);
        stranger.send_octets(octets);
        refused(&mut stranger, reason, text);
    };
    check(b"GET / HTTP/1.1\r\n\r\n", Reason::Malformed, "RSHT");
    check(b"X", Reason::Malformed, "RSHT");
    check(b"RSHT\x00\x02\x01", Reason::Version, "version 2");
    check(b"RSHT\x00\x01\x09\x00", Reason::Malformed, "kind 9");
    check(b"RSHT\x00\x01\x02\x40", Reason::Units, "64");
    let wish = |change: &dyn Fn(&mut Wishes), reason, text: &str| {
        let mut wishes = wishes(Transport::Udp);
        change(&mut wishes);
        check(&opening(Opening::Control(wishes)), reason, text);
    };
    let unknown = |wishes: &mut Wishes| wishes.format = 60;
    wish(&unknown, Reason::Format, "60");
    let not_own = |wishes: &mut Wishes| (wishes.format, wishes.formats) = (7, FormatSet(1 << 9));
    wish(&not_own, Reason::Format, "7");
    let none = |wishes: &mut Wishes| wishes.formats = FormatSet(0);
    wish(&none, Reason::Format, "does not accept");
    let no_transport = |wishes: &mut Wishes| wishes.transports = TransportSet(0);
    wish(&no_transport, Reason::Transport, "transport");
    let none = |wishes: &mut Wishes| {
        (wishes.transports, wishes.transport) = (TransportSet(0), None);
    };
    wish(&none, Reason::Transport, "UDP");
    wish(&|wishes: &mut Wishes| wishes.units = 65, Reason::Units, "65");
    wish(&|wishes: &mut Wishes| wishes.payload = 1 << 20, Reason::PacketSize, "65503");
    wish(&|wishes: &mut Wishes| wishes.payload = u32::MAX, Reason::PacketSize, "1048576");
    let half = |wishes: &mut Wishes| {
        wishes.rate = Some(FrameRate { numerator: 0, denominator: 7 });
    };
    wish(&half, Reason::Malformed, "0/7");
}

/// Opens connections that send nothing or too little.
fn slow_openings(server: SocketAddr) {
    thread::scope(|scope| {
        scope.spawn(|| {
            refused(&mut Stranger::connect(server), Reason::TimedOut, "5 s");
        });
        scope.spawn(|| {
            let mut stranger = Stranger::connect(server);
            for octet in opening(Opening::Control(wishes(Transport::Udp))) {
                if !stranger.send_octets(&[octet]) {
                    break;
                }
                thread::sleep(SECOND / 4);
            }
            // Octets sent after the deadline may reset the connection before its answer is read.
            assert!(!matches!(stranger.receive(), Some(Message::Offer(_))));
        });
        scope.spawn(|| {
            let mut stranger = Stranger::connect(server);
            stranger.request(wishes(Transport::Tcp));
            refused(&mut stranger, Reason::TimedOut, "5 s");
        });
    });
}

/// Sends messages that are malformed or not allowed in the current state.
fn wrong_messages(server: SocketAddr) {
    let check = |octets: &[u8], reason, text: &str| {
        let mut stranger = Stranger::connect(server);
        stranger.request(wishes(Transport::Udp));
        stranger.send_octets(octets);
        refused(&mut stranger, reason, text);
    };
    check(&[200, 0, 0, 0], Reason::Malformed, "type 200");
    check(&[16, 0xff, 0xff, 0xff], Reason::Malformed, "4096");
    check(&[16, 0, 0, 1, 0], Reason::Malformed, "ends inside");
    let check_message = |message: &Message, reason, text: &str| {
        let mut octets = Vec::new();
        message.write(&mut octets);
        check(&octets, reason, text);
    };
    check_message(&Message::Start { epoch: 0 }, Reason::OutOfTurn, "Start");
    check_message(&Message::Report(Report::default()), Reason::OutOfTurn, "Report");
    let accept = Accept { epoch: 7, ports: Vec::new(), ssrcs: Vec::new() };
    check_message(&Message::Accept(accept), Reason::Malformed, "epoch 7");
}

/// Binds units with wrong tokens, twice, and with numbers that do not exist (TCP).
fn wrong_units(server: SocketAddr) {
    let mut control = Stranger::connect(server);
    let token = control.request(wishes(Transport::Tcp)).token;
    control.accept();
    let bind = |token: Token, unit: u8| {
        let mut stranger = Stranger::connect(server);
        stranger.send_octets(&binding(token, unit));
        stranger
    };
    let mut nearly = token;
    nearly.0[15] ^= 1;
    for wrong in [Token([0; 16]), Token([0xff; 16]), nearly] {
        refused(&mut bind(wrong, 0), Reason::Token, "no session");
    }
    refused(&mut bind(token, 2), Reason::Token, "does not exist");
    refused(&mut bind(token, 63), Reason::Token, "does not exist");
    let mut units = [bind(token, 0), bind(token, 1)];
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    refused(&mut bind(token, 0), Reason::Token, "already bound");
    // Both units get data before either is dropped: dropping one ends the session.
    for unit in &mut units {
        unit.socket.read_exact(&mut [0; 10_000]).unwrap();
    }
}

/// Sends datagrams with wrong tokens, from wrong addresses or of wrong lengths, which get no
/// answer.
fn wrong_datagrams(server: SocketAddr) {
    let mut control = Stranger::connect(server);
    let offer = control.request(wishes(Transport::Udp));
    control.accept();
    let strangers: Vec<_> = ["127.0.0.1:0", "127.0.0.2:0"].map(UdpSocket::bind).into();
    let strangers: Vec<_> = strangers.into_iter().map(Result::unwrap).collect();
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut wrong = offer.token;
    wrong.0[0] ^= 0x80;
    for (unit, port) in (0..).zip(&offer.ports) {
        let to = SocketAddr::new(server.ip(), *port);
        let right = binding(offer.token, unit);
        let mut long = right.clone();
        long.push(0);
        let mut datagrams = vec![binding(wrong, unit), binding(offer.token, unit ^ 1), long];
        datagrams.extend((0..right.len()).map(|len| right[..len].to_vec()));
        datagrams.push(opening(Opening::Control(wishes(Transport::Udp))));
        datagrams.push(vec![0xff; 9_000]);
        for datagram in datagrams {
            strangers[0].send_to(&datagram, to).unwrap();
        }
        strangers[1].send_to(&right, to).unwrap();
        own.send_to(&right, to).unwrap();
    }
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    own.set_read_timeout(Some(HANGS)).unwrap();
    let mut buffer = [0; 9_000];
    for _ in 0..100 {
        let (count, from) = own.recv_from(&mut buffer).unwrap();
        assert!(count > 4 && offer.ports.contains(&from.port()));
    }
    for stranger in strangers {
        stranger.set_nonblocking(true).unwrap();
        assert!(stranger.recv_from(&mut buffer).is_err());
    }
    control.send(&Message::Stop { reason: Reason::Ended, text: String::new() });
}

/// Starts a stream over TCP and returns its control connection and its units.
fn stream(server: SocketAddr) -> (Stranger, Vec<Stranger>) {
    let mut control = Stranger::connect(server);
    let token = control.request(wishes(Transport::Tcp)).token;
    control.accept();
    let bind = |unit| {
        let mut stranger = Stranger::connect(server);
        stranger.send_octets(&binding(token, unit));
        stranger
    };
    let units = (0..2).map(bind).collect();
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    (control, units)
}

/// Connects clients that are silent, send garbage, flood the server with requests, or vanish.
fn wrong_streams(server: SocketAddr) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _units) = stream(server);
            refused(&mut control, Reason::TimedOut, "silent for 5 s");
        });
        scope.spawn(|| {
            let (mut control, _units) = stream(server);
            control.send_octets(&[0xff; 1_000]);
            let end = control.receive_end();
            assert!(end.is_none_or(|(reason, _)| reason == Reason::Malformed));
        });
        scope.spawn(|| {
            let (mut control, units) = stream(server);
            // Frames continue during a thousand requests.
            for id in 0..1_000 {
                let rate = FrameRate { numerator: 1 + id, denominator: u32::MAX };
                control.send(&Message::Change(Change {
                    format: id as u8,
                    rate: Some(rate),
                    size_max: None,
                }));
                control.send(&Message::Ping(Ping { id, t1: u64::MAX }));
                control.send(&Message::Report(Report { frames: u64::MAX, ..Report::default() }));
            }
            drop(units);
        });
        scope.spawn(|| {
            // The client vanishes within a frame.
            let (control, mut units) = stream(server);
            units[0].socket.read_exact(&mut [0; 1_000]).unwrap();
            drop((control, units));
        });
        scope.spawn(|| {
            // One unit vanishes; the session ends with a reason.
            let (mut control, mut units) = stream(server);
            drop(units.pop());
            let end = control.receive_end();
            assert!(end.is_some_and(|(reason, _)| reason == Reason::Unsupported));
        });
    });
}

/// Watches frames until `is_over`.
fn watch(server: SocketAddr, transport: Transport, is_over: &AtomicBool) {
    let good = Good::connect(server, transport).unwrap();
    while !is_over.load(Ordering::Acquire) {
        good.see(1);
    }
    good.end();
}

#[test]
fn strangers_get_a_reason_and_harm_no_client() {
    let server = serve();
    let address = server.local_address();
    // Neither client reads or binds its units until all others are done.
    let (idle_control, idle_units) = stream(address);
    let mut unbound = Stranger::connect(address);
    unbound.request(wishes(Transport::Udp));
    unbound.accept();

    let strangers: [fn(SocketAddr); 6] = [
        wrong_openings,
        slow_openings,
        wrong_messages,
        wrong_units,
        wrong_datagrams,
        wrong_streams,
    ];
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for transport in [Transport::Udp, Transport::Tcp] {
            let is_over = &is_over;
            scope.spawn(move || watch(address, transport, is_over));
        }
        let running = strangers.map(|stranger| scope.spawn(move || stranger(address)));
        let results: Vec<_> = running.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Release);
        assert!(results.iter().all(Result::is_ok));
    });
    for transport in [Transport::Udp, Transport::Tcp] {
        let good = Good::connect(address, transport).unwrap();
        good.see(20);
        good.end();
    }
    drop((idle_control, idle_units, unbound));
    all_clients_leave(&server);
}

fn all_clients_leave(server: &TextureServer) {
    let until = Instant::now() + HANGS;
    while server.counts().clients > 0 {
        assert!(Instant::now() < until, "{:?}", server.counts());
        thread::sleep(SECOND / 200);
    }
}

#[test]
fn three_hundred_connections_at_once_stop_no_stream() {
    let server = serve();
    let address = server.local_address();
    let good = Good::connect(address, Transport::Udp).unwrap();
    good.see(2);
    let crowd: Vec<_> = (0..300).map(|_| TcpStream::connect(address)).collect();
    good.see(20);
    drop(crowd);
    // The server may not have detected yet that all clients are gone.
    let until = Instant::now() + HANGS;
    let other = loop {
        match Good::connect(address, Transport::Tcp) {
            Ok(other) => break other,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        thread::sleep(SECOND / 20);
    };
    other.see(5);
    good.see(5);
    other.end();
    good.end();
    all_clients_leave(&server);
}

#[test]
fn idle_connections_of_one_host_lock_out_no_other_host() {
    let server = serve();
    let address = server.local_address();
    let crowd: Vec<_> = (0..300).map(|_| TcpStream::connect(address)).collect();
    // All clients have the same address, which is the worst case.
    for transport in [Transport::Tcp, Transport::Udp] {
        let good = Good::connect(address, transport).unwrap();
        let more: Vec<_> = (0..300).map(|_| TcpStream::connect(address)).collect();
        good.see(10);
        drop(more);
        good.end();
    }
    drop(crowd);
    all_clients_leave(&server);
}

#[test]
fn clients_beyond_the_limit_are_asked_to_try_again() {
    let layout = Layout::new(Format::Bc1, 30, 26).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.loops, options.clients_max) = (1, true, 1);
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, Noise::new(layout, 50, PICTURES), options).unwrap();
    let good = Good::connect(server.local_address(), Transport::Udp).unwrap();
    let error = Good::connect(server.local_address(), Transport::Udp).err().unwrap();
    assert!(error.to_string().contains("already has 1 clients"), "{error}");
    good.see(3);
    good.end();
    all_clients_leave(&server);
    Good::connect(server.local_address(), Transport::Tcp).unwrap().end();
}
