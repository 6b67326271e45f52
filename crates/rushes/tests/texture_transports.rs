//! Frames arrive unchanged, in every format, size, number of units and transport.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod noise;

use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use rushes::texture::{
    ClientOptions, Colour, ColourRange, Format, Layout, Matrix, MemorySink, Primaries,
    ServerOptions, Siting, TextureClient, TextureFrame, TextureServer, TextureSink, Timing,
    Transfer, Transport,
};

use noise::Noise;

const SECOND: Duration = Duration::from_secs(1);

fn check(format: Format, size: (u32, u32), units: usize, transport: Transport) {
    // The client is told the colours; a layout drops those that its format does not have.
    let colour = Colour {
        matrix: Matrix::Bt601,
        range: ColourRange::Full,
        siting: Siting::Left,
        transfer: Transfer::Pq,
        primaries: Primaries::Bt2020,
    };
    let layout = Layout::new(format, size.0, size.1).unwrap().with_colour(colour);
    let noise = Noise::new(layout, 4);
    let expected = noise.frames.clone();
    let mut options = ServerOptions::default();
    // A datagram that does not fit in the socket's buffer is lost, so large frames are paced.
    let is_large = transport != Transport::Tcp && layout.bytes() > 1 << 20;
    let timing = if is_large { Timing::EveryFrame } else { Timing::FlatOut };
    (options.units, options.transport, options.timing) = (units, transport, timing);
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, noise, options).unwrap();

    let (told, frames) = mpsc::channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        assert_eq!(*frame.shape().layout(), layout);
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let _ = told.send((frame.number(), frame.is_whole(), octets));
    });
    let address = server.local_address();
    let mut options = ClientOptions::default();
    // The deadlines are so long that no packet counts as lost because a thread was scheduled late.
    (options.deadline_min, options.deadline_max) = (10 * SECOND, 10 * SECOND);
    let client = TextureClient::connect(address, Arc::new(sink), options).unwrap();
    let what = format!("{format} {size:?} {units} units {transport}");
    for (number, expected) in expected.iter().enumerate() {
        let received = frames.recv_timeout(10 * SECOND);
        let (frame, whole, octets) = received
            .unwrap_or_else(|_| panic!("{what}: no frame {number}: {:?}", client.statistics()));
        let seen = client.statistics();
        let is_next = frame == number as u64 && whole;
        assert!(is_next, "{what}: frame {frame} for {number}, whole: {whole}, {seen:?}");
        assert!(octets == **expected, "{what}: frame {frame} differs");
    }
    let end = client.wait(10 * SECOND).unwrap_or_else(|| panic!("{what}: no end"));
    assert!(end.text.contains("source has ended"), "{what}: {end}");
    assert_eq!(client.statistics().frames_whole, 4, "{what}");
}

/// Checks every format at an odd size in 1 to 16 units, where 16 exceeds its rows of blocks, and a
/// single pixel in some numbers of units.
fn check_small(transport: Transport) {
    for format in Format::ALL {
        for units in 1..=16 {
            check(format, (30, 26), units, transport);
        }
        for units in [1, 2, 7, 16] {
            check(format, (1, 1), units, transport);
        }
    }
}

/// Checks every format at an odd size of many packets and stripes. The number of units varies, so
/// that no socket has to buffer more than the system allows while its reader waits.
fn check_large(transport: Transport) {
    for (turn, format) in Format::ALL.into_iter().enumerate() {
        check(format, (1_918, 1_078), 1 + (turn * 5 + 5) % 16, transport);
    }
}

#[test]
fn every_format_and_small_size_in_any_number_of_units_arrives_by_udp() {
    check_small(Transport::Udp);
}

#[test]
fn every_format_and_small_size_in_any_number_of_units_arrives_by_tcp() {
    check_small(Transport::Tcp);
}

#[test]
fn every_format_and_small_size_in_any_number_of_units_arrives_by_rtp() {
    check_small(Transport::Rtp);
}

#[test]
fn large_frames_of_every_format_and_an_odd_size_arrive_by_every_transport() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        check_large(transport);
    }
}

/// Passes on the times of captures.
struct Captures(Mutex<mpsc::Sender<(u64, Instant)>>);

impl TextureSink for Captures {
    fn frame_done(&self, _: &TextureFrame<'_>) {}

    fn captured(&self, number: u64, at: Instant) {
        let _ = self.0.lock().unwrap().send((number, at));
    }
}

#[test]
fn the_sink_learns_by_its_own_clock_when_frames_were_captured() {
    // The server's clock has another beginning.
    let begun_at = Instant::now();
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        let noise = Noise::new(Layout::new(Format::Bc1, 64, 64).unwrap(), 1_000);
        let mut options = ServerOptions::default();
        (options.transport, options.timing) = (transport, Timing::EveryFrame);
        let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap();
        let (sender, captures) = mpsc::channel();
        let sink = Arc::new(Captures(Mutex::new(sender)));
        let address = server.local_address();
        let client = TextureClient::connect(address, sink, ClientOptions::default()).unwrap();
        let mut next = 0;
        for _ in 0..5 {
            let (number, at) = captures.recv_timeout(10 * SECOND).unwrap();
            assert!(number >= next, "{transport}: {number} after {next}");
            next = number + 1;
            let is_plausible = at + SECOND > begun_at && at < Instant::now() + SECOND;
            assert!(is_plausible, "{transport}: {at:?} is not between {begun_at:?} and now");
        }
        client.stop();
    }
}
