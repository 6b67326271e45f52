//! A source whose pictures change their size while they are sent.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::io::Cursor;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Format, Layout, LiveOptions, LiveSource, MemorySink, MulticastGroup, Rate,
    Reason, ServerOptions, TextureClient, TextureFrame, TextureServer, Timing, Transport,
};

use rushes_netsim::{Loss, Path, Straying};
use texture_world::changing::{Changing, EACH, SIZES, layout, picture};
use texture_world::relay::{Between, Weather};

const HANGS: Duration = Duration::from_secs(20);

/// A received frame.
struct Seen {
    layout: Layout,
    octets: Vec<u8>,
}

fn view(server: &TextureServer, transport: Option<Transport>) -> (TextureClient, Receiver<Seen>) {
    let (told, seen) = channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        assert!(frame.is_whole(), "a frame is damaged");
        let layout = *frame.shape().layout();
        let mut octets = vec![0; layout.bytes()];
        frame.copy_to(&mut octets);
        let _ = told.send(Seen { layout, octets });
    });
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (HANGS / 2, HANGS / 2);
    options.transport = transport;
    let client = TextureClient::connect(server.local_address(), Arc::new(sink), options);
    (client.unwrap(), seen)
}

fn options(transport: Transport) -> ServerOptions {
    let mut options = ServerOptions::default();
    (options.transport, options.timing, options.units) = (transport, Timing::EveryFrame, 3);
    options
}

fn serve(source: Changing, options: ServerOptions) -> TextureServer {
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap()
}

#[test]
fn every_picture_arrives_in_its_size() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        for packing in [false, true] {
            let mut options = options(transport);
            options.packing = packing;
            let server = serve(Changing::new(Format::Rgba8), options);
            let (client, seen) = view(&server, None);
            for number in 0..EACH * SIZES.len() as u64 {
                let frame = seen.recv_timeout(HANGS).unwrap();
                assert_eq!(frame.layout, layout(number, Format::Rgba8), "{transport} {number}");
                assert!(frame.octets == picture(number, Format::Rgba8), "{transport} {number}");
            }
            let end = client.wait(HANGS).unwrap();
            assert!(end.text.contains("source has ended"), "{end}");
            let counts = client.stop();
            assert_eq!((counts.frames_damaged, counts.frames_lost), (0, 0), "{counts:?}");
        }
    }
}

/// A network with 20 ms of delay that loses, reorders and duplicates packets.
#[test]
fn sizes_change_on_a_network_that_loses_packets() {
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
    let server = serve(source, options(Transport::Udp));
    let weather = Weather { path, seed: 11, ..Weather::default() };
    let relay = Between::new(server.local_address(), weather);
    let (told, seen) = channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let _ = told.send((frame.number(), frame.is_whole(), *frame.shape().layout(), octets));
    });
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (HANGS / 10, HANGS / 10);
    // The control connection has no delay here, by which the client would choose the number.
    options.slots = 8;
    let client = TextureClient::connect(relay.address(), Arc::new(sink), options).unwrap();
    let end = client.wait(HANGS).unwrap();
    assert!(end.text.contains("source has ended"), "{end}");
    let counts = client.stop();
    let all = EACH * SIZES.len() as u64;
    let mut whole = 0;
    for (number, is_whole, of, octets) in seen {
        assert_eq!(of, layout(number, Format::Rgba8), "{number}");
        assert!(!is_whole || octets == picture(number, Format::Rgba8), "{number}");
        whole += u64::from(is_whole);
    }
    assert_eq!(counts.frames_whole + counts.frames_damaged + counts.frames_lost, all, "{counts:?}");
    assert!(whole > all * 2 / 3 && counts.packets_recovered > 0, "{counts:?}");
}

#[test]
fn each_client_has_the_size_of_the_source_in_its_own_format() {
    let server = serve(Changing::new(Format::Rgba8), options(Transport::Tcp));
    let mut clients = Vec::new();
    for format in [Format::Bc1, Format::Rgba8] {
        let (client, seen) = view(&server, None);
        client.change(Some(format), None);
        clients.push((client, seen, format));
    }
    for (client, seen, format) in clients {
        let end = client.wait(HANGS).unwrap();
        assert!(end.text.contains("source has ended"), "{end}");
        let all: Vec<Layout> = seen.try_iter().map(|frame| frame.layout).collect();
        assert_eq!(all.last().unwrap().format(), format);
        let mut sizes: Vec<_> =
            all.iter().map(|layout| (layout.width(), layout.height())).collect();
        sizes.dedup();
        // The second client has come later.
        assert!(SIZES.ends_with(&sizes) && sizes.len() > 1, "{sizes:?}");
    }
    assert_eq!(server.layout(), layout(EACH * 4 - 1, Format::Rgba8));
}

#[test]
fn a_live_source_sends_what_it_can_and_goes_on_in_the_new_size() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut source = Changing::new(Format::Rgba8);
        source.live = Some(Arc::default());
        // The last size stays until it was seen.
        source.length = u64::MAX;
        let mut options = options(transport);
        options.timing = Timing::Live;
        let server = serve(source, options);
        let (client, seen) = view(&server, None);
        let mut sizes = Vec::new();
        while sizes.len() < 6 {
            let Seen { layout: of, octets } = seen.recv_timeout(HANGS).unwrap();
            let number = u64::from_le_bytes(*octets.first_chunk().unwrap());
            assert_eq!(of, layout(number, Format::Rgba8));
            assert!(octets == picture(number, Format::Rgba8), "{transport} {number}");
            sizes.push(of);
            sizes.dedup();
        }
        client.stop();
    }
}

#[test]
fn a_size_that_cannot_be_sent_ends_the_stream_and_says_why() {
    /// Pictures of blocks, which are not converted.
    struct Turning(Changing);

    impl Source for Turning {
        fn layout(&self) -> &Layout {
            &self.0.layout
        }

        fn rate(&self) -> Rate {
            self.0.rate()
        }

        fn length(&self) -> Option<u64> {
            None
        }

        fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
            let format = if self.0.next < EACH { Format::Rgba8 } else { Format::Astc4x4 };
            self.0.format = format;
            self.0.next_frame()
        }

        fn rewind(&mut self) -> Result<(), SourceError> {
            self.0.rewind()
        }
    }

    let mut options = options(Transport::Tcp);
    options.format = Some(Format::Bc1);
    let source = Turning(Changing::new(Format::Rgba8));
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap();
    let (client, seen) = view(&server, None);
    let end = client.wait(HANGS).unwrap();
    assert_eq!(end.reason, Reason::Format, "{end}");
    assert!(end.text.contains("320x180 astc-4x4"), "{end}");
    assert_eq!(seen.try_iter().count(), EACH as usize);
}

#[test]
#[cfg(target_os = "linux")]
fn clients_by_multicast_are_told_to_connect_again() {
    let mut options = options(Transport::Udp);
    let port = 20_000 + (std::process::id() % 40_000) as u16;
    options.multicast = Some(MulticastGroup::new(([239, 255, 77, 77], port).into()));
    let server = serve(Changing::new(Format::Rgba8), options);
    let (client, _seen) = view(&server, Some(Transport::Multicast));
    let end = client.wait(HANGS).unwrap();
    assert_eq!(end.reason, Reason::Format, "{end}");
    assert!(end.text.contains("320x180 now: connect again"), "{end}");
    // The size may change again before frames of the next connection follow.
    let until = Instant::now() + HANGS;
    loop {
        assert!(Instant::now() < until, "no frame");
        let (client, seen) = view(&server, Some(Transport::Multicast));
        if seen.recv_timeout(HANGS / 10).is_ok() {
            break;
        }
        drop(client);
    }
}

/// A header without a frame is an error: a writer that only repeats it would be read for ever.
#[test]
fn a_pipe_has_frames_between_headers() {
    let header = b"YUV4MPEG2 W16 H8 F25:1 C420jpeg\n";
    let open = |octets: Vec<u8>| {
        let options = LiveOptions::default();
        LiveSource::open("pipe".as_ref(), options, move || Ok(Cursor::new(octets)), || false)
    };
    let frame = [&b"FRAME\n"[..], &[7; 16 * 8 * 3 / 2]].concat();
    let mut source = open([&header[..], header, &frame].concat()).unwrap().unwrap();
    assert!(source.next_frame().unwrap_err().to_string().contains("does not begin with FRAME"));
    let twice = [&header[..], &frame, header, header, &frame].concat();
    let mut source = open(twice).unwrap().unwrap();
    assert!(source.next_frame().unwrap().is_some());
    assert!(source.next_frame().unwrap_err().to_string().contains("frame 1"));
}

#[test]
fn a_pipe_begins_anew_in_another_size() {
    let mut octets = Vec::new();
    for (number, (width, height)) in [(16, 8), (8, 4), (640, 480)].into_iter().enumerate() {
        let header = format!("YUV4MPEG2 W{width} H{height} F25:1 C420jpeg\n");
        octets.extend(header.as_bytes());
        for _ in 0..3 {
            octets.extend(b"FRAME\n");
            octets.extend(vec![number as u8 + 1; width * height * 3 / 2]);
        }
    }
    let opened = LiveSource::open(
        "pipe".as_ref(),
        LiveOptions::default(),
        move || Ok(Cursor::new(octets)),
        || false,
    );
    let mut source = opened.unwrap().unwrap();
    assert_eq!((source.layout().width(), source.layout().height()), (16, 8));
    let mut seen = Vec::new();
    while let Some(frame) = source.next_frame().unwrap() {
        let layout = source.layout();
        assert!(frame.len() == layout.bytes() && frame.iter().all(|octet| *octet == frame[0]));
        seen.push((layout.width(), frame[0]));
    }
    let wanted = [(16, 1), (8, 2), (640, 3)].map(|it| [it; 3]).concat();
    assert_eq!(seen, wanted);
}
