//! Packets of texture video that did not arrive are requested and sent again (UDP), if both ends have
//! that ability: frames over a lossy path, ends that lack it, and clients that request too much.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]

#[path = "texture_world/route.rs"]
mod route;
mod texture_world;

use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rushes::delivery::UnitHeader;
use rushes::delivery::control::{
    Abilities, Message, Nack, Offer, Opening, Reason, VideoMode, Wishes,
};
use rushes::texture::{
    Adaptation, ClientOptions, ClientStatistics, Format, FrameRate, Layout, ServerCounts,
    ServerOptions, TextureClient, TextureServer, TextureShape, Timing, Transport,
};
use rushes_netsim::{Loss, Path};

use route::Route;
use texture_world::noise::Noise;
use texture_world::stranger::{Stranger, binding, wishes};
use texture_world::witness::{Pictures, Witness};

/// Time after which a stream counts as hung.
const HANGS: Duration = Duration::from_secs(30);

const FRAMES: u64 = 90;
const MS: Duration = Duration::from_millis(1);

/// Streams frames of 123 packets over a path with a round trip of 20 ms that loses this share.
fn stream(loss: f64, at_server: bool, at_client: bool) -> (ClientStatistics, ServerCounts) {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.recovery, options.adaptation) = (2, at_server, Adaptation::Off);
    // The number of a frame is that of its picture if none is dropped.
    options.timing = Timing::EveryFrame;
    let noise = Noise::new(layout, 30, FRAMES);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let path = Path { delay: 10 * MS, loss: Loss::Independent(loss), ..Path::default() };
    let route = Route::new(server.local_address(), path, 5);
    let witness = Arc::new(Witness::new(Pictures::Numbered(FRAMES)));
    let mut options = ClientOptions::default();
    options.recovery = at_client;
    let client = TextureClient::connect(route.address(), witness.clone(), options).unwrap();
    client.wait(HANGS).unwrap();
    let statistics = client.stop();
    let lost: u64 = route.statistics().iter().map(|unit| unit.lost).sum();
    assert!(lost > 0 && witness.seen().faults.is_empty(), "{lost} {:?}", witness.seen().faults);
    (statistics, server.counts())
}

#[test]
fn frames_that_lost_packets_are_whole_if_both_ends_recover_them() {
    for loss in [0.01, 0.05] {
        let (without, _) = stream(loss, true, false);
        let (with, counts) = stream(loss, true, true);
        println!("{loss}: without {without:?}");
        println!("{loss}: with {with:?} {counts:?}");
        // On a busy machine some answers are late.
        assert!(with.frames_damaged * 2 < without.frames_damaged, "{with:?} {without:?}");
        assert!(with.packets_recovered > 0 && with.packets_recovered <= with.packets_requested);
        assert!(counts.packets_retransmitted > 0 && counts.packets_requested > 0, "{counts:?}");
    }
}

#[test]
fn nothing_is_requested_unless_both_ends_recover() {
    for (at_server, at_client) in [(true, false), (false, true)] {
        let (statistics, counts) = stream(0.05, at_server, at_client);
        assert_eq!((statistics.packets_requested, statistics.packets_recovered), (0, 0));
        assert_eq!((counts.packets_requested, counts.packets_retransmitted), (0, 0));
        assert!(statistics.frames_damaged > 0);
    }
}

fn serve() -> TextureServer {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.loops) = (2, true);
    let noise = Noise::new(layout, 60, 8);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// Returns a stranger's control connection with the offer for these abilities, and its units' sockets
/// once the stream has begun.
fn connect(server: &TextureServer, abilities: Abilities) -> (Stranger, Offer, Vec<UdpSocket>) {
    let mut control = Stranger::connect(server.local_address());
    let offer = control.request(Wishes { abilities, ..wishes(Transport::Udp) });
    control.accept();
    let mut sockets = Vec::new();
    for (unit, port) in (0..).zip(&offer.ports) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&binding(offer.token, unit), ("127.0.0.1", *port)).unwrap();
        socket.set_read_timeout(Some(100 * MS)).unwrap();
        sockets.push(socket);
    }
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    (control, offer, sockets)
}

fn packets(offer: &Offer) -> u32 {
    let VideoMode { width, height, format, .. } = offer.mode;
    let layout = Layout::new(Format::from_number(format).unwrap(), width, height).unwrap();
    let units = &offer.units[..1];
    let payload = offer.payload as usize;
    let shape = TextureShape::given(layout, units, offer.stripe_rows, payload).unwrap();
    shape.plan().packets()
}

#[test]
fn a_client_that_requests_everything_is_sent_a_quarter_and_harms_no_other() {
    let server = serve();
    let witness = Arc::new(Witness::new(Pictures::Round(8)));
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (HANGS, HANGS);
    let good = TextureClient::connect(server.local_address(), witness.clone(), options).unwrap();

    let (mut control, offer, sockets) = connect(&server, Abilities::RECOVERY);
    assert_eq!(offer.abilities, Abilities::RECOVERY);
    let all = packets(&offer);
    let is_over = AtomicBool::new(false);
    // Returns the number of packets that were sent again.
    let receive = |socket: UdpSocket| {
        let (mut buffer, mut again) = ([0; 2_000], 0_u64);
        while !is_over.load(Ordering::Acquire) {
            let Ok(count) = socket.recv(&mut buffer) else { continue };
            let header = UnitHeader::parse(*buffer[..count].first_chunk().unwrap());
            assert!(header.index < 2 * all, "{header:?}");
            again += u64::from(header.index >= all);
        }
        again
    };
    let (again, frames) = thread::scope(|scope| {
        let receive = &receive;
        let units: Vec<_> =
            sockets.into_iter().map(|socket| scope.spawn(move || receive(socket))).collect();
        let mut frames = 0;
        while frames < 60 {
            match control.receive() {
                Some(Message::Frame(notice)) => {
                    frames = notice.number + 1;
                    for frame in [notice.number, notice.number + 1, 0, u64::MAX] {
                        for packets in [vec![0..65_535], (0..200).map(|at| at..at + 1).collect()] {
                            control.send(&Message::Nack(Nack { frame, packets }));
                        }
                    }
                }
                Some(Message::Statistics(_)) => {}
                other => panic!("{other:?}"),
            }
        }
        is_over.store(true, Ordering::Release);
        (units.into_iter().map(|unit| unit.join().unwrap()).sum::<u64>(), frames)
    });
    // A quarter of each frame, and one frame at once; some frames were sent before the last notice.
    let most = (frames + 8) * u64::from(all) / 4 + u64::from(all);
    assert!(again > 0 && again <= most, "{again} of {most}");
    let counts = server.counts();
    assert!(counts.packets_retransmitted <= counts.packets_requested, "{counts:?}");
    let (seen, statistics) = (witness.seen(), good.statistics());
    assert!(seen.frames > 20 && seen.faults.is_empty(), "{seen:?}");
    assert_eq!((seen.damaged, statistics.frames_lost), (0, 0), "{statistics:?}");
}

#[test]
fn a_client_without_the_ability_has_an_offer_without_it_and_must_not_request() {
    let server = serve();
    let (mut control, offer, _sockets) = connect(&server, Abilities::default());
    assert_eq!(offer.abilities, Abilities::default());
    control.send(&Message::Nack(Nack { frame: 0, packets: vec![0..1] }));
    let (reason, text) = control.receive_end().unwrap();
    assert!(reason == Reason::OutOfTurn && text.contains("Nack"), "{text}");
    // Abilities that the server does not know are ignored.
    let (_, offer, _sockets) = connect(&server, Abilities(0b0110));
    assert_eq!(offer.abilities, Abilities::default());
    let mut wishes = wishes(Transport::Tcp);
    wishes.abilities = Abilities::RECOVERY;
    let offer = Stranger::connect(server.local_address()).request(wishes);
    assert_eq!(offer.abilities, Abilities::default(), "nothing is lost over TCP");
}

/// Serves frames of three packets by hand, of which the second is lost; returns what the client requests.
fn requests(abilities: Abilities) -> Vec<Nack> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut control = Stranger::new(listener.accept().unwrap().0);
            let Some(Opening::Control(wishes)) = control.receive_opening() else { panic!() };
            let all = [Abilities::FEC, Abilities::PACKING, Abilities::COLOUR, Abilities::SIZES];
            let all = all.into_iter().fold(Abilities::RECOVERY, Abilities::with);
            assert_eq!(wishes.abilities, all);
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let rate = FrameRate { numerator: 50, denominator: 1 };
            let format = Format::Bc1.number();
            control.send(&Message::Offer(Box::new(Offer {
                token: rushes::delivery::control::Token([7; 16]),
                epoch: 0,
                mode: VideoMode { width: 60, height: 64, rate, format },
                transport: Transport::Udp,
                units: [1, 0, 0],
                stripe_rows: 100,
                payload: 640,
                first_frame: 0,
                ports: vec![socket.local_addr().unwrap().port()],
                ssrcs: Vec::new(),
                clock_rate: 0,
                abilities,
                colour: [0; 4],
                group: None,
            })));
            assert!(matches!(control.receive(), Some(Message::Accept(_))));
            let (_, unit) = socket.recv_from(&mut [0; 100]).unwrap();
            control.send(&Message::Start { epoch: 0 });
            let mut nacks = Vec::new();
            for index in [0, 2] {
                let header = UnitHeader { frame: 0, index }.write();
                socket.send_to(&[&header[..], &[5; 640]].concat(), unit).unwrap();
            }
            // Reports are sent all the time.
            let mut reports = 0;
            while reports < 3 {
                match control.receive().unwrap() {
                    Message::Nack(nack) => nacks.push(nack),
                    Message::Report(_) => reports += 1,
                    _ => {}
                }
            }
            control.send(&Message::Stop { reason: Reason::Ended, text: String::new() });
            nacks
        });
        let witness = Arc::new(Witness::new(Pictures::Round(1)));
        let client = TextureClient::connect(address, witness, ClientOptions::default()).unwrap();
        let until = Instant::now() + HANGS;
        let nacks = server.join().unwrap();
        client.wait(until - Instant::now()).unwrap();
        let statistics = client.stop();
        assert_eq!(statistics.packets_requested, u64::from(!nacks.is_empty()), "{statistics:?}");
        nacks
    })
}

#[test]
fn a_client_requests_a_packet_three_times_and_only_from_a_server_that_offers_it() {
    let nack = Nack { frame: 0, packets: vec![1..2] };
    assert_eq!(requests(Abilities::RECOVERY), [nack.clone(), nack.clone(), nack]);
    assert_eq!(requests(Abilities::default()), []);
}
