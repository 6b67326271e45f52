//! Clients that request frames of a largest size, to which the server scales its pictures.
#![cfg(all(feature = "texture", feature = "zrtp"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::io::Cursor;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rushes::delivery::control::{
    Abilities, Accept, Change, Message, Offer, Opening, Reason, Token, VideoMode, Wishes,
};
use rushes::texture::{
    ClientOptions, ClientStatistics, Encoder, Format, FrameRate, Layout, LiveOptions, LiveSource,
    MemorySink, MulticastGroup, Scaler, ServerOptions, TextureClient, TextureFrame, TextureServer,
    Timing, Transport, fitted,
};
use rushes::zrtp::ZrtpConfig;
use rushes::{Security, Suite};
use rushes_netsim::{Loss, Path, Straying};
use texture_world::changing::{Changing, EACH, SIZES, layout, picture};
use texture_world::relay::{Between, Weather};
use texture_world::stranger::{Stranger, binding, wishes};

const HANGS: Duration = Duration::from_secs(20);
const ALL: u64 = EACH * SIZES.len() as u64;

/// A received frame.
struct Seen {
    number: u64,
    is_whole: bool,
    layout: Layout,
    octets: Vec<u8>,
}

fn serve(source: Changing, change: impl FnOnce(&mut ServerOptions)) -> TextureServer {
    let mut options = ServerOptions::default();
    (options.timing, options.units) = (Timing::EveryFrame, 3);
    change(&mut options);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap()
}

fn view(
    server: std::net::SocketAddr,
    change: impl FnOnce(&mut ClientOptions),
) -> (TextureClient, Receiver<Seen>) {
    let (told, seen) = channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let layout = *frame.shape().layout();
        let mut octets = vec![0; layout.bytes()];
        frame.copy_to(&mut octets);
        let (number, is_whole) = (frame.number(), frame.is_whole());
        let _ = told.send(Seen { number, is_whole, layout, octets });
    });
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (HANGS / 2, HANGS / 2);
    change(&mut options);
    let client = TextureClient::connect(server, Arc::new(sink), options);
    (client.unwrap(), seen)
}

/// Returns the layout of picture `number` within `max`.
fn within(number: u64, format: Format, max: (u32, u32)) -> Layout {
    let own = layout(number, format);
    let (width, height) = fitted((own.width(), own.height()), max);
    Layout::new(format, width, height).unwrap().with_colour(own.colour())
}

/// Returns picture `number` in the size of `to`, encoded to its format.
fn expected(number: u64, source: Format, to: Layout) -> Vec<u8> {
    let scaler = Scaler::new(layout(number, source), to.width(), to.height()).unwrap();
    let mut scaled = vec![0; scaler.output().bytes()];
    scaler.scale(&picture(number, source), &mut scaled).unwrap();
    let encoder = Encoder::between(*scaler.output(), to).unwrap();
    let mut frame = vec![0; to.bytes()];
    encoder.encode(&scaled, &mut frame).unwrap();
    frame
}

/// Returns the number of the picture of which a frame was made, from `next` on. Those of a session that began later, or
/// that misses some, have other numbers.
fn picture_of(frame: &Seen, max: (u32, u32), next: u64) -> Option<u64> {
    (next..next + 1_000).find(|&number| {
        let to = within(number, Format::Rgba8, max);
        frame.layout == to && frame.octets == expected(number, Format::Rgba8, to)
    })
}

/// Waits for the end of the source.
fn finish(client: TextureClient) -> ClientStatistics {
    let end = client.wait(HANGS).unwrap();
    assert!(end.text.contains("source has ended"), "{end}");
    client.stop()
}

#[test]
fn every_frame_is_scaled_from_the_first_one_on() {
    let combinations = [
        (Transport::Udp, Format::Rgba8, Format::Rgba8, true),
        (Transport::Udp, Format::Rgb24, Format::Bc1, false),
        (Transport::Tcp, Format::Rgba8, Format::Bc1, true),
        (Transport::Tcp, Format::Yuv420, Format::Yuv420, false),
        (Transport::Rtp, Format::Rgb24, Format::YCoCgBc3, false),
    ];
    for (transport, source, format, packing) in combinations {
        // The first pictures are larger than one of these sizes, and no larger than the other.
        for max in [(40, 40), (100, 100)] {
            let server = serve(Changing::new(source), |options| {
                (options.transport, options.format, options.packing) =
                    (transport, Some(format), packing);
            });
            let (client, seen) =
                view(server.local_address(), |options| options.size_max = Some(max));
            for number in 0..ALL {
                let frame = seen.recv_timeout(HANGS).unwrap();
                let name = format!("{transport} {source} {format} {max:?} {number}");
                assert!(frame.number == number && frame.is_whole, "{name}");
                let to = within(number, source, max).in_format(format);
                assert_eq!(frame.layout, to, "{name}");
                assert!(frame.octets == expected(number, source, to), "{name}");
            }
            let counts = finish(client);
            assert_eq!((counts.frames_damaged, counts.frames_lost), (0, 0), "{counts:?}");
        }
    }
}

#[test]
fn clients_of_several_sizes_have_each_their_own_and_change_it() {
    // Frames that were begun before a change still have the size before.
    let check = |seen: &Receiver<Seen>, max: (u32, u32)| {
        let mut frames = std::iter::from_fn(|| seen.recv_timeout(HANGS).ok()).take(500);
        assert!(
            frames.any(|frame| picture_of(&frame, max, 0).is_some()),
            "no frame within {max:?}"
        );
    };
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        let mut source = Changing::new(Format::Rgba8);
        source.length = u64::MAX;
        let server = serve(source, |options| options.transport = transport);
        // The last one has a single unit from then on.
        let clients = [(48, 48), (20, 100), (48, 48), (1, 1)].map(|max| {
            let (client, seen) =
                view(server.local_address(), |options| options.size_max = Some(max));
            (client, seen, max)
        });
        for (_, seen, max) in &clients {
            check(seen, *max);
        }
        for max in [(10, 10), (32, 60)] {
            for (client, seen, _) in &clients {
                client.set_size_max(Some(max));
                check(seen, max);
            }
        }
        let (client, seen, _) = &clients[3];
        client.set_size_max(None);
        let mut frames = std::iter::from_fn(|| seen.recv_timeout(HANGS).ok()).take(1_000);
        assert!(frames.any(|frame| frame.layout.width() == 320), "the source's own size");
        assert_eq!(server.counts().clients, clients.len());
    }
}

#[test]
fn a_size_and_a_format_that_are_requested_at_once_are_both_had() {
    let mut source = Changing::new(Format::Rgba8);
    source.length = u64::MAX;
    let server = serve(source, |options| options.transport = Transport::Tcp);
    let (client, seen) = view(server.local_address(), |_| {});
    client.set_size_max(Some((16, 16)));
    client.change(Some(Format::Bc1), None);
    let mut frames = std::iter::from_fn(|| seen.recv_timeout(HANGS).ok()).take(1_000);
    let is_both = |it: &Seen| it.layout.format() == Format::Bc1 && it.layout.width() <= 16;
    assert!(frames.any(|frame| is_both(&frame)));
}

/// A network with 20 ms of delay that loses, reorders and duplicates packets.
#[test]
fn frames_are_scaled_on_a_network_that_loses_packets() {
    let path = Path {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(4),
        jitter_reorders: true,
        loss: Loss::Independent(0.02),
        reordering: Straying::places(0.02, 1..=300),
        duplication: Straying::places(0.02, 1..=20),
        ..Path::default()
    };
    let mut source = Changing::new(Format::Rgba8);
    source.rate = 25;
    let server = serve(source, |options| options.transport = Transport::Udp);
    let weather = Weather { path, seed: 5, ..Weather::default() };
    let relay = Between::new(server.local_address(), weather);
    let max = (50, 50);
    let (client, seen) = view(relay.address(), |options| {
        options.size_max = Some(max);
        // The control connection has no delay here, by which the client would choose the number.
        options.slots = 8;
        options.deadline_max = HANGS / 10;
        options.deadline_min = options.deadline_max;
    });
    let counts = finish(client);
    let mut whole = 0;
    for Seen { number, is_whole, layout, octets } in seen {
        let to = within(number, Format::Rgba8, max);
        assert_eq!(layout, to, "{number}");
        assert!(!is_whole || octets == expected(number, Format::Rgba8, to), "{number}");
        whole += u64::from(is_whole);
    }
    let all = counts.frames_whole + counts.frames_damaged + counts.frames_lost;
    assert!(all == ALL && whole > ALL / 2, "{counts:?}");
}

#[test]
fn what_is_not_scaled_arrives_as_it_is() {
    let own = |server: &TextureServer, transport| {
        let (client, seen) = view(server.local_address(), |options| {
            (options.size_max, options.transport) = (Some((16, 16)), transport);
        });
        assert!(!client.is_scalable());
        client.set_size_max(Some((8, 8)));
        for _ in 0..5 {
            let frame = seen.recv_timeout(HANGS).unwrap();
            assert_eq!((frame.layout.width(), frame.layout.height()), (64, 48));
        }
    };
    let endless = |format| Changing { length: EACH, rate: 20, ..Changing::new(format) };
    // The server's own choice; pictures of blocks, and of pixels that share octets; a group.
    own(&serve(endless(Format::Rgba8), |options| options.scaling = false), None);
    own(&serve(endless(Format::Bc1), |_| {}), None);
    own(&serve(endless(Format::Rgb565), |_| {}), None);
    if cfg!(target_os = "linux") {
        let port = 20_000 + (std::process::id() % 40_000) as u16;
        let group = MulticastGroup::new(([239, 255, 77, 78], port).into());
        let server = serve(endless(Format::Rgba8), |options| options.multicast = Some(group));
        own(&server, Some(Transport::Multicast));
    }
}

#[test]
fn a_size_that_no_frame_can_have_is_none() {
    let all = [(0, 0), (0, 9), (9, 0), (u32::MAX, u32::MAX)].map(|size| (size, (64, 48)));
    for (size, expected) in all.into_iter().chain([((u32::MAX, 24), (32, 24))]) {
        let server =
            serve(Changing::new(Format::Rgba8), |options| options.transport = Transport::Tcp);
        let (client, seen) = view(server.local_address(), |options| options.size_max = Some(size));
        assert!(client.is_scalable());
        client.set_size_max(Some(size));
        for _ in 0..5 {
            let frame = seen.recv_timeout(HANGS).unwrap();
            assert_eq!((frame.layout.width(), frame.layout.height()), expected, "{size:?}");
        }
    }
}

/// Keys that are given, and those that the ends agree on while their control connection is still clear.
#[test]
fn sizes_are_requested_over_secured_connections() {
    let keys = Security::shared(Suite::AeadAes128Gcm, &[7; 28]).unwrap();
    for security in [keys, Security::Zrtp(ZrtpConfig::default())] {
        let server = serve(Changing::new(Format::Rgba8), |options| {
            options.transport = Transport::Rtp;
            options.security = Some(security.clone());
        });
        let max = (40, 40);
        let (client, seen) = view(server.local_address(), |options| {
            (options.size_max, options.security) = (Some(max), Some(security.clone()));
        });
        for number in 0..ALL {
            let frame = seen.recv_timeout(HANGS).unwrap();
            let to = within(number, Format::Rgba8, max);
            assert!(frame.number == number && frame.layout == to, "{number}");
            assert!(frame.octets == expected(number, Format::Rgba8, to), "{number}");
        }
        finish(client);
    }
}

/// Pictures of a pipe are given while they are still read.
#[test]
fn pictures_of_a_pipe_are_scaled_when_they_are_whole() {
    let layout = Layout::new(Format::Yuv420, 640, 480).unwrap();
    let picture = |number: usize| {
        (0..layout.bytes()).map(move |at| ((at * (number + 3)) >> 4) as u8).collect::<Vec<_>>()
    };
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut octets = b"YUV4MPEG2 W640 H480 F50:1 C420jpeg\n".to_vec();
        for number in 0..10 {
            octets.extend(b"FRAME\n");
            octets.extend(picture(number));
        }
        let opened = LiveSource::open(
            "pipe".as_ref(),
            LiveOptions::default(),
            move || Ok(Cursor::new(octets)),
            || false,
        );
        let mut options = ServerOptions::default();
        (options.transport, options.timing) = (transport, Timing::EveryFrame);
        let local = "127.0.0.1:0".parse().unwrap();
        let server = TextureServer::serve(local, opened.unwrap().unwrap(), options).unwrap();
        let (client, seen) =
            view(server.local_address(), |options| options.size_max = Some((320, 320)));
        let scaler = Scaler::new(layout, 320, 240).unwrap();
        for number in 0..10 {
            let frame = seen.recv_timeout(HANGS).unwrap();
            let mut scaled = vec![0; scaler.output().bytes()];
            scaler.scale(&picture(number), &mut scaled).unwrap();
            assert!(frame.octets == scaled, "{transport} {number}");
        }
        finish(client);
    }
}

#[test]
fn units_that_were_bound_before_the_second_offer_stay_bound() {
    let server = serve(Changing::new(Format::Rgba8), |_| {});
    let mut control = Stranger::connect(server.local_address());
    let offer = control.request(Wishes { abilities: Abilities::SIZES, ..wishes(Transport::Udp) });
    let _sockets = bound(&offer);
    // The format is not one of the client's: it gets the other one, and the size.
    let change = Change { format: 63, size_max: Some((32, 32)), rate: None };
    control.send(&Message::Change(change));
    let second = control.receive();
    assert!(
        matches!(&second, Some(Message::Offer(it)) if it.mode.format == offer.mode.format && it.mode.width == 32),
        "{second:?}"
    );
    accept(&mut control, 1);
    assert_eq!(control.receive(), Some(Message::Start { epoch: 1 }));
}

/// A server of an older release, which does not know sizes, is sent no request that only asks for one.
#[test]
fn an_older_server_is_sent_no_request_for_a_size() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heard, reported) = channel();
    let served = std::thread::spawn(move || {
        let mut control = Stranger::new(listener.accept().unwrap().0);
        let Some(Opening::Control(wishes)) = control.receive_opening() else {
            panic!("no opening")
        };
        assert!(wishes.abilities.contains(Abilities::SIZES));
        let rate = FrameRate { numerator: 10, denominator: 1 };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let offer = Offer {
            token: Token([1; 16]),
            epoch: 0,
            mode: VideoMode { width: 64, height: 48, rate, format: Format::Bc1.number() },
            transport: Transport::Udp,
            units: [1, 0, 0],
            stripe_rows: 12,
            payload: 1_400,
            first_frame: 0,
            ports: vec![socket.local_addr().unwrap().port()],
            ssrcs: Vec::new(),
            clock_rate: 0,
            abilities: Abilities::default(),
            colour: [0; 4],
            group: None,
        };
        control.send(&Message::Offer(Box::new(offer)));
        assert!(matches!(control.receive(), Some(Message::Accept(_))));
        control.send(&Message::Start { epoch: 0 });
        let mut received = Vec::new();
        while let Some(message) = control.receive() {
            received.push(message.name());
            let _ = heard.send(message.name());
        }
        received
    });
    let (client, _seen) = view(address, |options| options.size_max = Some((16, 16)));
    assert!(!client.is_scalable());
    client.set_size_max(Some((8, 8)));
    // The next report follows it.
    assert!(reported.recv_timeout(HANGS).is_ok() && reported.recv_timeout(HANGS).is_ok());
    client.change(Some(Format::Bc3), None);
    while reported.recv_timeout(HANGS).unwrap() != "Change" {}
    client.stop();
    let received = served.join().unwrap();
    assert_eq!(received.iter().filter(|name| **name == "Change").count(), 1, "{received:?}");
}

#[test]
fn an_older_client_is_offered_no_sizes() {
    let server = serve(Changing::new(Format::Rgba8), |_| {});
    let offer = |abilities| {
        let mut control = Stranger::connect(server.local_address());
        control.request(Wishes { abilities, ..wishes(Transport::Udp) })
    };
    let older = Abilities::RECOVERY.with(Abilities::COLOUR);
    assert_eq!(offer(older).abilities, older);
    assert_eq!(offer(Abilities::SIZES).abilities, Abilities::SIZES);
}

#[test]
fn strangers_who_request_sizes_all_the_time_disturb_nobody() {
    let mut source = Changing::new(Format::Rgba8);
    (source.length, source.live) = (u64::MAX, Some(Arc::default()));
    let server = serve(source, |options| options.timing = Timing::Live);
    let strange = Wishes { abilities: Abilities::SIZES, ..wishes(Transport::Udp) };
    let change = |size| Change { size_max: Some(size), ..Change::default() };
    // Before the first offer is accepted, a size is requested once, and twice.
    for requests in [1, 2] {
        let mut control = Stranger::connect(server.local_address());
        let offer = control.request(strange);
        assert_eq!((offer.epoch, offer.mode.width), (0, 64));
        for _ in 0..requests {
            control.send(&Message::Change(change((1, 1))));
        }
        if requests == 2 {
            let (reason, _) = control.receive_end().unwrap();
            assert_eq!(reason, Reason::OutOfTurn);
            continue;
        }
        let second = match control.receive() {
            Some(Message::Offer(second)) => second,
            other => panic!("{other:?} for a second offer"),
        };
        assert_eq!((second.epoch, second.mode.width, second.mode.height), (1, 1, 1));
        assert_eq!(second.token, offer.token);
    }
    // One that streams requests every size there is, as fast as it can, and accepts none.
    let mut control = Stranger::connect(server.local_address());
    let offer = control.request(strange);
    control.accept();
    let sockets = bound(&offer);
    while control.receive() != Some(Message::Start { epoch: 0 }) {}
    let (client, seen) = view(server.local_address(), |options| options.size_max = Some((33, 33)));
    let flood = std::thread::spawn(move || {
        for number in 0..20_000_u32 {
            let sides = (number % 300 + 1, number / 7 % 300 + 1);
            if !control.send(&Message::Change(change(sides))) {
                break;
            }
        }
        drop((control, sockets));
    });
    // Some pictures of a live source are left out, by a busy machine more.
    let mut next = 0;
    let mut check = |count| {
        for _ in 0..count {
            let frame = seen.recv_timeout(HANGS).unwrap();
            let found = picture_of(&frame, (33, 33), next);
            next = found.expect("a picture that follows those before") + 1;
        }
    };
    check(30);
    flood.join().unwrap();
    check(30);
    client.stop();
}

/// Binds a stranger's units to sockets, which read nothing.
fn bound(offer: &Offer) -> Vec<UdpSocket> {
    let sockets = (0..).zip(&offer.ports).map(|(unit, port)| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&binding(offer.token, unit), ("127.0.0.1", *port)).unwrap();
        socket
    });
    sockets.collect()
}

fn accept(control: &mut Stranger, epoch: u16) {
    let accept = Accept { epoch, ports: Vec::new(), ssrcs: Vec::new() };
    assert!(control.send(&Message::Accept(accept)));
}

#[test]
fn a_source_may_change_before_the_size_of_a_client_is_offered() {
    let mut source = Changing::new(Format::Rgba8);
    (source.length, source.live) = (u64::MAX, Some(Arc::default()));
    let server = serve(source, |options| options.timing = Timing::Live);
    let max = (16, 16);
    let fits = |offer: &Offer| {
        let size = (offer.mode.width, offer.mode.height);
        SIZES.iter().any(|&of| fitted(of, max) == size)
    };
    // The size of the pictures changes every 120 ms.
    for wait in [0, 60, 130, 190, 250, 370] {
        let mut control = Stranger::connect(server.local_address());
        let wishes = Wishes { abilities: Abilities::SIZES, ..wishes(Transport::Udp) };
        let offer = control.request(wishes);
        let _sockets = bound(&offer);
        std::thread::sleep(Duration::from_millis(wait));
        control.send(&Message::Change(Change { size_max: Some(max), ..Change::default() }));
        let mut epochs = Vec::new();
        while epochs.len() < 4 {
            match control.receive().unwrap() {
                Message::Offer(offer) => {
                    assert!(fits(&offer), "{:?}", offer.mode);
                    accept(&mut control, offer.epoch);
                }
                Message::Start { epoch } => epochs.push(epoch),
                _ => {}
            }
        }
        assert_eq!(epochs, [1, 2, 3, 4], "after {wait} ms");
    }
}

#[test]
fn strangers_who_accept_every_size_that_they_request_disturb_nobody() {
    let mut source = Changing::new(Format::Rgba8);
    (source.length, source.live) = (u64::MAX, Some(Arc::default()));
    let server = serve(source, |options| options.timing = Timing::Live);
    let (client, seen) = view(server.local_address(), |options| options.size_max = Some((33, 33)));
    let strangers = (0..2).map(|which| {
        let mut control = Stranger::connect(server.local_address());
        std::thread::spawn(move || {
            let strange = Wishes { abilities: Abilities::SIZES, ..wishes(Transport::Udp) };
            let offer = control.request(strange);
            let _sockets = bound(&offer);
            control.accept();
            let mut started = 0;
            while started < 60 {
                match control.receive().unwrap() {
                    Message::Offer(offer) => accept(&mut control, offer.epoch),
                    Message::Start { .. } => {
                        started += 1;
                        let sides = (started * 5 % 300 + 1, started * 7 % 200 + which);
                        let change = Change { size_max: Some(sides), ..Change::default() };
                        control.send(&Message::Change(change));
                    }
                    _ => {}
                }
            }
        })
    });
    let strangers: Vec<_> = strangers.collect();
    let (mut next, mut frames) = (0, 0);
    while frames < 60 || strangers.iter().any(|it| !it.is_finished()) {
        let frame = seen.recv_timeout(HANGS).unwrap();
        next = picture_of(&frame, (33, 33), next).expect("a picture that follows those before") + 1;
        frames += 1;
    }
    for stranger in strangers {
        stranger.join().unwrap();
    }
    client.stop();
}
