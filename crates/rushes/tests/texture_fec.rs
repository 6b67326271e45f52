//! Texture video by UDP with repair packets, from which packets that did not arrive are computed: frames
//! over a lossy path, ends that lack them, and ratios.
//!
//! `cargo test -p rushes --features texture --test texture_fec -- --ignored --nocapture` prints how many frames are
//! damaged with requests, repair packets, or both.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "texture_world/route.rs"]
mod route;
mod texture_world;

use std::net::UdpSocket;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rushes::delivery::UnitHeader;
use rushes::delivery::control::{Abilities, Message, Offer, Wishes};
use rushes::texture::{
    Adaptation, ClientOptions, ClientStatistics, Fec, Format, Layout, ServerCounts, ServerOptions,
    TextureClient, TextureServer, TextureShape, Timing, Transport,
};
use rushes_netsim::{Loss, Path, Straying};

use route::Route;
use texture_world::noise::Noise;
use texture_world::stranger::{Stranger, binding, wishes};
use texture_world::witness::{Pictures, Witness};

/// Time after which a stream counts as hung.
const HANGS: Duration = Duration::from_secs(30);

const FRAMES: u64 = 90;
const MS: Duration = Duration::from_millis(1);

/// A round trip that is longer than a client waits for missing packets.
const FAR: Duration = Duration::from_millis(150);

fn options(fec: Fec) -> ServerOptions {
    let mut options = ServerOptions::default();
    (options.units, options.adaptation, options.fec) = (2, Adaptation::Off, fec);
    // On a busy machine, every picture is sent nevertheless.
    options.timing = Timing::EveryFrame;
    options
}

/// Streams frames of 123 packets over a path with this round trip that loses this share.
fn stream(
    loss: f64,
    round_trip: Duration,
    options: ServerOptions,
) -> (ClientStatistics, ServerCounts) {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let noise = Noise::new(layout, 30, FRAMES);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
    let path = Path { delay: round_trip / 2, loss: Loss::Independent(loss), ..Path::default() };
    let route = Route::new(server.local_address(), path, 5);
    let witness = Arc::new(Witness::new(Pictures::Numbered(FRAMES)));
    let options = ClientOptions::default();
    let client = TextureClient::connect(route.address(), witness.clone(), options).unwrap();
    client.wait(HANGS).unwrap();
    let statistics = client.stop();
    let lost: u64 = route.statistics().iter().map(|unit| unit.lost).sum();
    assert_eq!(lost > 0, loss > 0.0);
    assert!(witness.seen().faults.is_empty(), "{:?}", witness.seen());
    (statistics, server.counts())
}

#[test]
fn frames_that_lost_packets_are_whole_where_no_answer_could_be_in_time() {
    for loss in [0.01, 0.05] {
        let (without, _) = stream(loss, FAR, options(Fec::Off));
        let (with, counts) = stream(loss, FAR, options(Fec::Percent(20)));
        println!("{loss}: without {without:?}");
        println!("{loss}: with {with:?} {counts:?}");
        assert_eq!((without.packets_repaired, without.repairs, with.packets_requested), (0, 0, 0));
        assert!(with.frames_damaged * 2 < without.frames_damaged, "{with:?} {without:?}");
        assert!(with.packets_repaired > 0 && with.repairs > 0 && with.repairs <= counts.repairs);
        // 13 for each unit of a frame.
        assert_eq!(counts.repairs, 26 * counts.frames);
    }
}

#[test]
fn packets_of_any_length_are_repaired() {
    for payload in [1, 477, 65_502] {
        let mut options = options(Fec::Percent(50));
        options.payload = if payload == 1 { 1_001 } else { payload };
        let (with, _) = stream(0.03, FAR, options);
        assert!(with.packets_repaired > 0, "{payload}: {with:?}");
    }
    // Repair packets of this length would not fit a datagram.
    let mut options = options(Fec::Percent(50));
    options.payload = 65_503;
    let (without, counts) = stream(0.03, FAR, options);
    assert_eq!((without.repairs, counts.repairs), (0, 0));
}

#[test]
fn a_ratio_by_loss_adds_repair_packets_only_where_packets_are_lost() {
    let (_, counts) = stream(0.0, FAR, options(Fec::ByLoss(50)));
    assert_eq!(counts.repairs, 0);
    let (with, counts) = stream(0.05, FAR, options(Fec::ByLoss(50)));
    assert!(counts.repairs > 0 && with.packets_repaired > 0, "{with:?} {counts:?}");
}

#[test]
fn packets_that_others_overtake_are_not_reported_as_lost() {
    let server = serve(Fec::Percent(20));
    let path = Path { reordering: Straying::places(0.05, 10..=40), ..Path::default() };
    let route = Route::new(server.local_address(), path, 5);
    let witness = Arc::new(Witness::new(Pictures::Round(8)));
    let options = ClientOptions::default();
    let client = TextureClient::connect(route.address(), witness, options).unwrap();
    let (mut reported, end) = (0, Instant::now() + HANGS);
    let (report, repaired) = loop {
        let repaired = client.statistics().packets_repaired;
        let report = server.reports().first().copied().unwrap_or_default();
        // The report after this many were repaired.
        if repaired > 400 && reported > 0 && report.frames > reported {
            break (report, repaired);
        }
        reported = if repaired > 400 && reported == 0 { report.frames } else { reported };
        assert!(Instant::now() < end, "{report:?} {repaired}");
        thread::sleep(5 * MS);
    };
    assert!(report.packets_repaired < repaired / 4, "{report:?} {repaired}");
    client.stop();
}

#[test]
fn a_ratio_that_is_out_of_range_is_refused() {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    for fec in [Fec::Percent(0), Fec::Percent(101), Fec::ByLoss(0), Fec::ByLoss(255)] {
        let noise = Noise::new(layout, 30, FRAMES);
        let refused = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options(fec));
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("repair packets"), "{error}");
    }
}

fn serve(fec: Fec) -> TextureServer {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut options = options(fec);
    options.loops = true;
    let noise = Noise::new(layout, 60, 8);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// Returns the offer for these abilities, and the numbers of the packets that the client is sent.
fn numbers(server: &TextureServer, abilities: Abilities) -> (Offer, Vec<u32>) {
    let mut control = Stranger::connect(server.local_address());
    let offer = control.request(Wishes { abilities, ..wishes(Transport::Udp) });
    control.accept();
    let mut sockets = Vec::new();
    for (unit, port) in (0..).zip(&offer.ports) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&binding(offer.token, unit), ("127.0.0.1", *port)).unwrap();
        socket.set_read_timeout(Some(HANGS)).unwrap();
        sockets.push(socket);
    }
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    let mut numbers = Vec::new();
    for _ in 0..200 {
        for socket in &sockets {
            let mut buffer = [0; 2_000];
            let count = socket.recv(&mut buffer).unwrap();
            numbers.push(UnitHeader::parse(*buffer[..count].first_chunk().unwrap()).index);
        }
    }
    (offer, numbers)
}

fn packets(offer: &Offer) -> u32 {
    let layout = Layout::new(Format::Rgb24, offer.mode.width, offer.mode.height).unwrap();
    let payload = offer.payload as usize;
    let shape = TextureShape::given(layout, &offer.units[..1], offer.stripe_rows, payload).unwrap();
    shape.plan().packets()
}

#[test]
fn a_client_without_the_ability_is_sent_no_repair_packets() {
    let server = serve(Fec::Percent(20));
    let (offer, numbers_of_old) = numbers(&server, Abilities::RECOVERY);
    assert_eq!(offer.abilities, Abilities::RECOVERY);
    let all = packets(&offer);
    assert!(numbers_of_old.iter().all(|number| *number < all));
    let (offer, of_new) = numbers(&server, Abilities::FEC);
    assert_eq!(offer.abilities, Abilities::FEC);
    // A stripe of 62 packets is followed by 13 repair packets.
    let repairs = |number: &&u32| **number >= 21 * all && **number < 22 * all;
    let is_repair = of_new.iter().filter(repairs).count();
    assert!(is_repair > 30 && of_new.iter().all(|number| *number < all || repairs(&number)));
    let (offer, of_new) = numbers(&serve(Fec::Off), Abilities::FEC);
    assert_eq!(offer.abilities, Abilities::default());
    assert!(of_new.iter().all(|number| *number < all));
    let mut wishes = wishes(Transport::Tcp);
    wishes.abilities = Abilities::FEC;
    let offer = Stranger::connect(server.local_address()).request(wishes);
    assert_eq!(offer.abilities, Abilities::default(), "nothing is lost over TCP");
}

#[test]
#[ignore = "takes a minute, and prints figures"]
fn figures() {
    println!("frames damaged of {FRAMES}, with a round trip of 150 ms and of 20 ms");
    for (round_trip, loss) in [(FAR, 0.01), (FAR, 0.05), (20 * MS, 0.01), (20 * MS, 0.05)] {
        for (name, recovery, fec) in [
            ("neither", false, Fec::Off),
            ("requests", true, Fec::Off),
            ("repair packets, 20 %", false, Fec::Percent(20)),
            ("both", true, Fec::Percent(20)),
            ("auto", true, Fec::ByLoss(50)),
        ] {
            let mut options = options(fec);
            options.recovery = recovery;
            let (client, server) = stream(loss, round_trip, options);
            println!(
                "{round_trip:?}, {} %, {name}: {} damaged; {} packets, {} repaired, {} recovered, {} lost, \
                 {} repair packets, {} sent again",
                loss * 100.0,
                client.frames_damaged,
                client.packets,
                client.packets_repaired,
                client.packets_recovered,
                client.packets_lost,
                server.repairs,
                server.packets_retransmitted,
            );
        }
    }
}
