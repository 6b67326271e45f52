//! A stream whose format, rate and viewers change while it runs.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rushes::texture::source::{RawHint, open, read_counter};
use rushes::texture::{
    ClientOptions, Decoder, Encoder, Format, FrameMemory, FrameRate, Layout, MemorySink, Quality,
    ServerOptions, TextureClient, TextureFrame, TextureServer, TextureShape, TextureSink, Timing,
    Transport, plain_memory,
};

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
    serve_in(Quality::default(), format, transport)
}

fn serve_in(quality: Quality, format: Format, transport: Transport) -> TextureServer {
    let mut options = ServerOptions::default();
    options.quality = quality;
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

/// Receives frames until one has this format. Every frame must be in order, complete and equal to
/// the encoded one.
fn frames_until(seen: &Receiver<Seen>, format: Format, next: &mut u64) -> Vec<Format> {
    frames_in(Quality::default(), seen, format, next)
}

/// Receives frames, as [`frames_until`], that are encoded in this quality.
fn frames_in(
    quality: Quality,
    seen: &Receiver<Seen>,
    format: Format,
    next: &mut u64,
) -> Vec<Format> {
    let mut source = pattern();
    let mut formats = Vec::new();
    loop {
        let frame = seen.recv_timeout(10 * SECOND).unwrap();
        assert!(frame.is_whole && frame.number == *next, "{} for {next}", frame.number);
        *next += 1;
        // The server's pattern began with the client, so the frame numbers are equal.
        source.rewind().unwrap();
        let mut picture = source.next_frame().unwrap().unwrap();
        for _ in 0..frame.number {
            picture = source.next_frame().unwrap().unwrap();
        }
        let layout = source.layout();
        let encoder = Encoder::new(layout.format(), frame.format, 320, 180).unwrap();
        let encoder = encoder.with_quality(quality);
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
        // Read before the stop, which damages a frame in flight.
        let statistics = client.statistics();
        client.stop();
        assert_eq!((statistics.frames_damaged, statistics.frames_lost), (0, 0), "{transport}");
    }
}

#[test]
fn every_format_is_encoded_in_the_quality_of_the_options() {
    let server = serve_in(Quality::High, Format::Bc1, Transport::Tcp);
    let (client, seen) = view(&server);
    let mut next = 0;
    frames_in(Quality::High, &seen, Format::Bc1, &mut next);
    for format in [Format::YCoCgBc3, Format::Yuv420, Format::Bc3] {
        client.change(Some(format), None);
        frames_in(Quality::High, &seen, format, &mut next);
    }
    client.stop();
}

/// A sink that is slow once, and counts frames of a shape that has been replaced.
struct SlowOnce {
    format: Mutex<Option<Format>>,
    frames: AtomicU32,
    late: AtomicU32,
    is_slow: AtomicBool,
    told: Sender<Format>,
}

impl TextureSink for SlowOnce {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        *self.format.lock().unwrap() = Some(shape.layout().format());
        Ok(plain_memory(shape, slots))
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        let format = frame.shape().layout().format();
        let is_late = *self.format.lock().unwrap() != Some(format);
        self.late.fetch_add(u32::from(is_late), Relaxed);
        let _ = self.told.send(format);
        if self.frames.fetch_add(1, Relaxed) == 1 {
            // The pause is longer than the client waits for the sink.
            self.is_slow.store(true, Relaxed);
            std::thread::sleep(5 * SECOND / 2);
            self.is_slow.store(false, Relaxed);
        }
    }
}

#[test]
fn frames_that_waited_for_a_slow_sink_are_not_reported_after_the_next_shape() {
    let server = serve(Format::Bc1, Transport::Udp);
    let (told, formats) = channel();
    let (format, is_slow) = (Mutex::default(), AtomicBool::default());
    let (frames, late) = (AtomicU32::default(), AtomicU32::default());
    let sink = Arc::new(SlowOnce { format, frames, late, is_slow, told });
    let options = ClientOptions::default();
    let client = TextureClient::connect(server.local_address(), sink.clone(), options).unwrap();
    for _ in 0..2 {
        assert_eq!(formats.recv_timeout(10 * SECOND), Ok(Format::Bc1));
    }
    // More frames of the old shape arrive meanwhile and wait for the sink.
    while client.statistics().packets < 3 * u64::from(client.shape().unwrap().plan().packets()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.change(Some(Format::Bc3), None);
    while formats.recv_timeout(10 * SECOND).unwrap() != Format::Bc3 {}
    // Waiting frames, if any, would be delivered when the sink returns.
    while sink.is_slow.load(Relaxed) {
        std::thread::sleep(Duration::from_millis(1));
    }
    formats.recv_timeout(10 * SECOND).unwrap();
    client.stop();
    assert_eq!(sink.late.load(Relaxed), 0);
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
    // A client that connects now gets the new format from the beginning.
    let (_client, seen) = view(&server);
    assert_eq!(seen.recv_timeout(10 * SECOND).unwrap().format, Format::Bc3);
}

#[test]
fn an_impossible_request_changes_nothing() {
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

/// The number that is drawn into the picture.
fn counter(frame: &Seen) -> u32 {
    let decoder = Decoder::new(frame.format, 320, 180, Format::Rgb24).unwrap();
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let mut picture = vec![0; layout.bytes()];
    decoder.decode(&frame.octets, &mut picture).unwrap();
    read_counter(&layout, &picture).unwrap()
}

#[test]
fn a_slower_rate_omits_frames_and_reports_none_as_dropped() {
    let server = serve(Format::Bc1, Transport::Udp);
    let (client, seen) = view(&server);
    client.change(None, Some(FrameRate { numerator: 10, denominator: 1 }));
    while client.rate() != Some(FrameRate { numerator: 10, denominator: 1 }) {
        seen.recv_timeout(10 * SECOND).unwrap();
    }
    // Drops frames from before the change of rate.
    seen.try_iter().for_each(drop);
    let counters: Vec<_> =
        (0..9).map(|_| counter(&seen.recv_timeout(10 * SECOND).unwrap())).collect();
    // The steps are six, except where a thread was scheduled late.
    let steps: Vec<_> = counters.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    assert!(steps.iter().all(|&step| step > 0), "{counters:?}");
    assert!(steps.iter().filter(|&&step| step > 3).count() > steps.len() / 2, "{counters:?}");
    assert_eq!(client.stop().frames_dropped, 0);
}

#[test]
fn clients_join_one_after_the_other_and_too_many_are_refused() {
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
        assert!(error.contains("already has 2 clients"), "{error}");
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
