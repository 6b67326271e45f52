//! A stream that changes while it runs: format, rate, and who shows it.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::sync::mpsc::channel;
use std::time::Duration;

use rushes::texture::ClientOptions;
use rushes::texture::Decoder;
use rushes::texture::Encoder;
use rushes::texture::Format;
use rushes::texture::FrameRate;
use rushes::texture::Layout;
use rushes::texture::MemorySink;
use rushes::texture::ServerOptions;
use rushes::texture::TextureClient;
use rushes::texture::TextureFrame;
use rushes::texture::TextureServer;
use rushes::texture::Timing;
use rushes::texture::Transport;
use rushes::texture::source::RawHint;
use rushes::texture::source::open;
use rushes::texture::source::read_counter;

const SECOND: Duration = Duration::from_secs(1);

struct Seen {
    number: u64,
    is_whole: bool,
    format: Format,
    octets: Vec<u8>,
}

fn pattern() -> Box<dyn rushes::texture::source::Source> {
    open("pattern:320x180@60".as_ref(), &RawHint::default()).unwrap()
}

fn serve(format: Format, transport: Transport) -> TextureServer {
    let mut options = ServerOptions::default();
    (options.format, options.transport) = (Some(format), transport);
    (options.units, options.timing) = (3, Timing::EveryFrame);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), pattern(), options).unwrap()
}

fn view(server: &TextureServer) -> (TextureClient, Receiver<Seen>) {
    let (told, seen) = channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let format = frame.shape().layout().format();
        let (number, is_whole) = (frame.number(), frame.is_whole());
        let _ = told.send(Seen { number, is_whole, format, octets });
    });
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (10 * SECOND, 10 * SECOND);
    let client = TextureClient::connect(server.local_address(), Arc::new(sink), options);
    (client.unwrap(), seen)
}

/// Frames until one of this format comes: in order, whole, and as the encoder makes them.
fn frames_until(seen: &Receiver<Seen>, format: Format, next: &mut u64) -> Vec<Format> {
    let mut source = pattern();
    let mut formats = Vec::new();
    loop {
        let frame = seen.recv_timeout(10 * SECOND).unwrap();
        assert!(frame.is_whole && frame.number == *next, "{} for {next}", frame.number);
        *next += 1;
        // The pattern's frames are the server's: it began with the client.
        source.rewind().unwrap();
        let mut picture = source.next_frame().unwrap().unwrap();
        for _ in 0..frame.number {
            picture = source.next_frame().unwrap().unwrap();
        }
        let layout = source.layout();
        let encoder = Encoder::new(layout.format(), frame.format, 320, 180).unwrap();
        let mut expected = vec![0; Layout::new(frame.format, 320, 180).unwrap().bytes()];
        encoder.encode(&picture, &mut expected).unwrap();
        assert!(frame.octets == expected, "frame {} differs", frame.number);
        formats.push(frame.format);
        if frame.format == format {
            return formats;
        }
    }
}

#[test]
fn a_client_changes_the_format_without_losing_a_frame() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        let server = serve(Format::Bc1, transport);
        let (client, seen) = view(&server);
        let mut next = 0;
        frames_until(&seen, Format::Bc1, &mut next);
        for format in [Format::YCoCgBc3, Format::Yuv420, Format::Rgb565, Format::Bc1] {
            client.change(Some(format), None);
            frames_until(&seen, format, &mut next);
            assert_eq!(client.shape().unwrap().layout().format(), format);
        }
        let statistics = client.stop();
        assert_eq!((statistics.frames_damaged, statistics.frames_lost), (0, 0), "{transport}");
    }
}

#[test]
fn a_server_changes_the_format_for_everybody() {
    let server = serve(Format::Bc1, Transport::Udp);
    let viewers = [view(&server), view(&server)];
    for (_, seen) in &viewers {
        assert_eq!(seen.recv_timeout(10 * SECOND).unwrap().format, Format::Bc1);
    }
    server.set_format(Format::Bc3).unwrap();
    for (_, seen) in &viewers {
        while seen.recv_timeout(10 * SECOND).unwrap().format != Format::Bc3 {}
    }
    // Who comes now gets it from the beginning.
    let (_client, seen) = view(&server);
    assert_eq!(seen.recv_timeout(10 * SECOND).unwrap().format, Format::Bc3);
}

#[test]
fn what_cannot_be_had_changes_nothing() {
    let server = serve(Format::Bc1, Transport::Udp);
    let (client, seen) = view(&server);
    let mut next = 0;
    frames_until(&seen, Format::Bc1, &mut next);
    client.change(Some(Format::Astc8x8), None);
    for _ in 0..10 {
        frames_until(&seen, Format::Bc1, &mut next);
    }
    assert_eq!(client.wait(Duration::ZERO), None);
}

/// The picture's number, as it is drawn into it.
fn counter(frame: &Seen) -> u32 {
    let decoder = Decoder::new(frame.format, 320, 180, Format::Rgb24).unwrap();
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut picture = vec![0; layout.bytes()];
    decoder.decode(&frame.octets, &mut picture).unwrap();
    read_counter(&layout, &picture).unwrap()
}

#[test]
fn a_slower_rate_leaves_frames_out_and_says_so_of_none() {
    let server = serve(Format::Bc1, Transport::Udp);
    let (client, seen) = view(&server);
    client.change(None, Some(FrameRate { numerator: 10, denominator: 1 }));
    while client.rate() != Some(FrameRate { numerator: 10, denominator: 1 }) {
        seen.recv_timeout(10 * SECOND).unwrap();
    }
    let counters: Vec<_> =
        (0..4).map(|_| counter(&seen.recv_timeout(10 * SECOND).unwrap())).collect();
    // Six at a time, if threads get their turns in time; never less than some.
    assert!(counters.windows(2).all(|pair| pair[1] - pair[0] > 3), "{counters:?}");
    assert_eq!(client.stop().frames_dropped, 0);
}

#[test]
fn clients_come_one_after_the_other_and_too_many_are_told() {
    let mut options = ServerOptions::default();
    options.clients_max = 2;
    let address = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(address, pattern(), options).unwrap();
    for _ in 0..3 {
        let viewers = [view(&server), view(&server)];
        for (_, seen) in &viewers {
            seen.recv_timeout(10 * SECOND).unwrap();
        }
        let sink = Arc::new(MemorySink::new(|_: &TextureFrame<'_>| {}));
        let refused =
            TextureClient::connect(server.local_address(), sink, ClientOptions::default());
        let error = refused.unwrap_err().to_string();
        assert!(error.contains("2 clients already"), "{error}");
        drop(viewers);
        while server.counts().clients > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(!server.take_ends().is_empty());
}

#[test]
fn a_client_learns_that_the_server_has_gone() {
    let server = serve(Format::Bc1, Transport::Tcp);
    let (client, seen) = view(&server);
    seen.recv_timeout(10 * SECOND).unwrap();
    drop(server);
    let end = client.wait(10 * SECOND).unwrap();
    assert!(end.text.contains("closing"), "{end}");
}
