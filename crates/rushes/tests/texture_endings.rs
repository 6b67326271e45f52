//! Slow and failing sinks, units that come and go, and the state at the end of a stream.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod noise;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use rushes::Pacing;
use rushes::texture::source::{Frame, RawHint, Source, SourceError, open};
use rushes::texture::{
    ClientOptions, Format, FrameRate, Layout, MemorySink, ServerOptions, TextureClient,
    TextureFrame, TextureServer, TextureSink, Timing, Transport,
};

use noise::Noise;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn pattern(name: &str) -> Box<dyn Source> {
    open(name.as_ref(), &RawHint::default()).unwrap()
}

fn serve(source: impl Source + 'static, set: impl FnOnce(&mut ServerOptions)) -> TextureServer {
    let mut options = ServerOptions::default();
    options.units = 2;
    set(&mut options);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap()
}

/// A sink that sleeps for `pause` on every frame, and counts them.
fn slow(pause: Duration) -> (Arc<dyn TextureSink>, Arc<AtomicU64>) {
    let frames = Arc::new(AtomicU64::new(0));
    let counted = frames.clone();
    let sink = MemorySink::new(move |_: &TextureFrame<'_>| {
        thread::sleep(pause);
        counted.fetch_add(1, Ordering::Relaxed);
    });
    (Arc::new(sink), frames)
}

fn view(server: &TextureServer, sink: Arc<dyn TextureSink>) -> TextureClient {
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (10 * SECOND, 10 * SECOND);
    TextureClient::connect(server.local_address(), sink, options).unwrap()
}

/// Waits until `is_so` returns true, or fails after 20 seconds.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = Instant::now() + 20 * SECOND;
    while !is_so() {
        assert!(Instant::now() < until, "{what}: never");
        thread::sleep(MS);
    }
}

fn format_of(client: &TextureClient) -> Format {
    client.shape().unwrap().layout().format()
}

#[test]
fn a_format_changes_behind_a_second_and_more_of_frames_that_wait() {
    let server = serve(pattern("pattern:640x360@60,rgba8"), |options| {
        options.transport = Transport::Tcp;
        options.timing = Timing::FlatOut;
    });
    let (sink, frames) = slow(60 * MS);
    let client = view(&server, sink);
    wait_until("frames", || frames.load(Ordering::Relaxed) > 3);
    server.set_format(Format::Bc1).unwrap();
    wait_until("a change", || {
        assert_eq!(client.wait(Duration::ZERO), None);
        format_of(&client) == Format::Bc1
    });
    let before = frames.load(Ordering::Relaxed);
    wait_until("frames after the change", || frames.load(Ordering::Relaxed) > before + 3);
    let statistics = client.statistics();
    assert_eq!((statistics.frames_lost, statistics.frames_dropped), (0, 0));
}

#[test]
fn a_client_keeps_its_format_if_it_does_not_accept_another() {
    let server = serve(pattern("pattern:64x64@60"), |_| {});
    let mut options = ClientOptions::default();
    options.formats = vec![Format::Rgb24];
    let (sink, frames) = slow(Duration::ZERO);
    let client = TextureClient::connect(server.local_address(), sink, options).unwrap();
    server.set_format(Format::Bc1).unwrap();
    let before = frames.load(Ordering::Relaxed);
    wait_until("frames", || frames.load(Ordering::Relaxed) > before + 5);
    assert_eq!((format_of(&client), client.wait(Duration::ZERO)), (Format::Rgb24, None));
    assert!(server.set_format(Format::Astc8x8).is_err());
}

#[test]
fn every_frame_of_a_source_that_ends_reaches_a_slow_sink() {
    let noise = Noise::new(Layout::new(Format::Rgba8, 640, 360).unwrap(), 40);
    let server = serve(noise, |options| {
        options.transport = Transport::Tcp;
        options.timing = Timing::FlatOut;
    });
    let (sink, frames) = slow(50 * MS);
    let client = view(&server, sink);
    assert!(client.wait(20 * SECOND).is_some_and(|end| end.text.contains("source has ended")));
    assert_eq!(frames.load(Ordering::Relaxed), 40);
    assert_eq!(client.statistics().frames_whole, 40);
}

#[test]
fn the_last_frames_are_sent_however_slow_the_path_is() {
    let noise = Noise::new(Layout::new(Format::Rgba8, 1_280, 720).unwrap(), 3);
    let server = serve(noise, |options| {
        // A frame takes three seconds.
        (options.in_flight, options.pacing) = (1, Pacing::Rate(9_600_000));
        options.timing = Timing::FlatOut;
    });
    let (sink, frames) = slow(Duration::ZERO);
    let client = view(&server, sink);
    assert!(client.wait(60 * SECOND).is_some_and(|end| end.text.contains("source has ended")));
    let statistics = client.stop();
    assert_eq!((statistics.frames_whole, frames.load(Ordering::Relaxed)), (3, 3));
}

#[test]
fn a_server_closes_however_slow_its_pace_is() {
    for transport in [Transport::Udp, Transport::Rtp] {
        let server = serve(pattern("pattern:640x360@60,rgba8"), |options| {
            // A packet takes about 0.2 s, and a stripe of them half a minute.
            (options.transport, options.pacing) = (transport, Pacing::Rate(64_000));
        });
        let client = view(&server, slow(Duration::ZERO).0);
        wait_until("packets", || client.statistics().packets > 1);
        let (closed, close) = channel();
        thread::spawn(move || {
            drop(server);
            closed.send(())
        });
        assert_eq!(close.recv_timeout(20 * SECOND), Ok(()), "{transport}");
    }
}

#[test]
fn a_sink_that_panics_ends_the_stream() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        let server = serve(pattern("pattern:64x64@60"), |options| options.transport = transport);
        let sink = MemorySink::new(|frame: &TextureFrame<'_>| {
            assert!(frame.number() < 3, "this sink breaks on purpose");
        });
        let client = view(&server, Arc::new(sink));
        assert!(client.wait(10 * SECOND).is_some(), "{transport}");
        drop(client);
        wait_until("the session's end", || server.counts().clients == 0);
    }
}

#[test]
fn units_are_removed_and_added_with_the_format() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        // 32 rows of pixels are enough for 16 units of RGBA, but their 8 rows of blocks only for 8.
        let server = serve(pattern("pattern:64x32@60,rgba8"), |options| {
            (options.transport, options.units) = (transport, 16);
            options.timing = Timing::EveryFrame;
        });
        let (sink, frames) = slow(Duration::ZERO);
        let client = view(&server, sink);
        for format in [Format::Bc1, Format::Rgba8, Format::Bc1] {
            server.set_format(format).unwrap();
            wait_until("a change", || {
                assert_eq!(client.wait(Duration::ZERO), None, "{transport}");
                format_of(&client) == format
            });
            let before = frames.load(Ordering::Relaxed);
            wait_until("frames", || frames.load(Ordering::Relaxed) > before + 5);
        }
        assert_eq!(client.stop().frames_dropped, 0, "{transport}");
    }
}

#[test]
fn a_client_that_stops_within_a_frame_delivers_what_it_received() {
    let noise = Noise::new(Layout::new(Format::Rgba8, 1_280, 720).unwrap(), 4);
    let server = serve(noise, |options| {
        (options.transport, options.pacing) = (Transport::Tcp, Pacing::default());
        options.timing = Timing::FlatOut;
    });
    let (sink, frames) = slow(Duration::ZERO);
    let client = view(&server, sink);
    let statistics = client.stop();
    let handed_over = frames.load(Ordering::Relaxed);
    assert_eq!(statistics.frames_whole + statistics.frames_damaged, handed_over);
}

#[test]
fn a_small_window_does_not_stop_datagrams() {
    let server = serve(pattern("pattern:1280x720@60,rgba8"), |options| {
        (options.in_flight, options.timing) = (1, Timing::FlatOut);
    });
    let (sink, frames) = slow(Duration::ZERO);
    let _client = view(&server, sink);
    wait_until("frames", || frames.load(Ordering::Relaxed) > 60);
}

/// A source with a rate of one frame an hour.
struct Rare(Box<dyn Source>);

impl Source for Rare {
    fn layout(&self) -> &Layout {
        self.0.layout()
    }

    fn rate(&self) -> rushes::texture::Rate {
        rushes::texture::Rate::new(1, 3_600).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        self.0.next_frame()
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.0.rewind()
    }
}

#[test]
fn a_server_of_a_rare_source_can_be_dropped() {
    let server = serve(Rare(pattern("pattern:64x64@60")), |_| {});
    let (sink, frames) = slow(Duration::ZERO);
    let client = view(&server, sink);
    wait_until("the first frame", || frames.load(Ordering::Relaxed) > 0);
    drop(server);
    assert!(client.wait(10 * SECOND).is_some());
}

/// A source whose frames are too short.
struct Short(Layout);

impl Source for Short {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn rate(&self) -> rushes::texture::Rate {
        rushes::texture::Rate::new(60, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        Ok(Some(Frame::new(vec![0; 7])))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

#[test]
fn a_frame_of_the_wrong_size_ends_the_stream_with_its_size() {
    let server = serve(Short(Layout::new(Format::Rgba8, 64, 64).unwrap()), |_| {});
    let (sink, _) = slow(Duration::ZERO);
    let client = view(&server, sink);
    let end = client.wait(10 * SECOND).unwrap();
    assert!(end.text.contains("7 octets instead of 16384"), "{end}");
}

#[test]
fn any_duration_may_be_wished() {
    let server = serve(pattern("pattern:64x64@60"), |_| {});
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (Duration::MAX, Duration::MAX);
    options.connect_timeout = Duration::MAX;
    let (sink, frames) = slow(Duration::ZERO);
    let client = TextureClient::connect(server.local_address(), sink, options).unwrap();
    wait_until("frames", || frames.load(Ordering::Relaxed) > 3);
    let rate = FrameRate { numerator: 5, denominator: 0 };
    client.change(None, Some(rate));
    let before = frames.load(Ordering::Relaxed);
    wait_until("frames", || frames.load(Ordering::Relaxed) > before + 3);
}
