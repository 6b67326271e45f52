//! Packed stripes: frames arrive unchanged by every transport in a few octets, and what a lossy path
//! leaves stale is told as such, and healed.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "texture_world/route.rs"]
mod route;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    Adaptation, ClientOptions, ClientStatistics, Encoder, Format, Layout, MemorySink, Rate,
    ServerOptions, TextureClient, TextureFrame, TextureServer, Timing, Transport,
};
use rushes_netsim::{Loss, Path};

use route::Route;

const SECOND: Duration = Duration::from_secs(1);
const DELAY: Duration = Duration::from_millis(5);
const HANGS: Duration = Duration::from_secs(30);
const SIZE: (u32, u32) = (512, 256);
const FRAMES: u64 = 64;
/// Frames after which nothing is lost any more, and frames by which all stripes must have come again.
const LOSSY_FRAMES: u64 = 48;
const HEALED_BY: u64 = 600;

/// A desktop: what looks like text, a square that moves, and a band of noise in every fourth frame.
struct Desk {
    layout: Layout,
    next: u64,
    /// Whether a frame is whole again; the source goes on until then.
    is_healed: Arc<AtomicBool>,
}

impl Desk {
    fn new(is_healed: Arc<AtomicBool>) -> Self {
        let layout = Layout::new(Format::Rgba8, SIZE.0, SIZE.1).unwrap();
        Self { layout, next: 0, is_healed }
    }

    fn picture(number: u64) -> Vec<u8> {
        let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut octets = Vec::with_capacity((SIZE.0 * SIZE.1 * 4) as usize);
        let left = (number * 8 % 400) as u32;
        for y in 0..SIZE.1 {
            for x in 0..SIZE.0 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let is_text = y % 16 < 9 && (x / 3 * 7 + y / 16 * 5) % 11 < 3;
                let is_square = (100..140).contains(&y) && (left..left + 40).contains(&x);
                let pixel = match (number % 4 == 3 && y >= 224, is_square, is_text) {
                    (true, ..) => ((state >> 32) as u32 | 0xff).to_be_bytes(),
                    (_, true, _) => [200, 40, 40, 255],
                    (.., true) => [20, 20, 20, 255],
                    _ => [240, 240, 240, 255],
                };
                octets.extend_from_slice(&pixel);
            }
        }
        octets
    }
}

impl Source for Desk {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::new(60, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        self.next += 1;
        let is_healed = self.is_healed.load(Ordering::Relaxed);
        let frames = if is_healed { FRAMES } else { HEALED_BY };
        Ok((self.next <= frames).then(|| Frame::new(Self::picture(self.next - 1))))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.next = 0;
        Ok(())
    }
}

/// What a sink saw of a frame: its number, whether it is whole, and its octets.
type Seen = (u64, bool, Vec<u8>);

/// Returns the frames that a client received, and its counts; through a lossy path if there is one.
fn stream(
    format: Format,
    transport: Transport,
    is_packed: [bool; 2],
    loss: Option<f64>,
) -> (Vec<Seen>, ClientStatistics) {
    let mut options = ServerOptions::default();
    (options.format, options.transport, options.units) = (Some(format), transport, 2);
    (options.packing, options.adaptation) = (is_packed[0], Adaptation::Off);
    options.timing = Timing::EveryFrame;
    let local = "127.0.0.1:0".parse().unwrap();
    let is_healed = Arc::new(AtomicBool::new(loss.is_none()));
    let server = TextureServer::serve(local, Desk::new(is_healed.clone()), options).unwrap();
    let route = loss.map(|loss| {
        let path = Path { delay: DELAY, loss: Loss::Independent(loss), ..Path::default() };
        Arc::new(Route::new(server.local_address(), path, 7))
    });
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let (seen, route) = (seen.clone(), route.clone());
        let lossless_from = Mutex::new(None);
        MemorySink::new(move |frame: &TextureFrame<'_>| {
            let mut octets = vec![0; frame.shape().layout().bytes()];
            frame.copy_to(&mut octets);
            assert_eq!(frame.is_whole(), frame.concealed().is_empty());
            assert_eq!(frame.is_whole(), frame.packets_missing() == 0);
            seen.lock().unwrap().push((frame.number(), frame.is_whole(), octets));
            let Some(route) = &route else { return };
            let mut from = lossless_from.lock().unwrap();
            if let Some(from) = *from {
                let is_whole = frame.number() > from && frame.is_whole();
                is_healed.fetch_or(is_whole, Ordering::Relaxed);
            } else if frame.number() >= LOSSY_FRAMES {
                route.set_path(&Path { delay: DELAY, ..Path::default() });
                *from = Some(frame.number());
            }
        })
    };
    let mut options = ClientOptions::default();
    options.packing = is_packed[1];
    if loss.is_none() {
        // No packet counts as lost because a thread was scheduled late.
        (options.deadline_min, options.deadline_max) = (10 * SECOND, 10 * SECOND);
    }
    let address = route.as_ref().map_or_else(|| server.local_address(), |route| route.address());
    let client = TextureClient::connect(address, Arc::new(sink), options).unwrap();
    client.wait(HANGS).unwrap();
    let statistics = client.stop();
    if let Some(route) = &route {
        assert!(route.statistics().iter().any(|unit| unit.lost > 0), "nothing was lost");
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen, statistics)
}

/// Returns the octets of a frame as they are without a network.
fn expected(format: Format, number: u64) -> Vec<u8> {
    let encoder = Encoder::new(Format::Rgba8, format, SIZE.0, SIZE.1).unwrap();
    let mut octets = vec![0; encoder.output().bytes()];
    let rows = 0..encoder.output().planes()[0].rows;
    encoder.encode_rows(&Desk::picture(number), 0, rows, &mut octets).unwrap();
    octets
}

#[test]
fn frames_arrive_unchanged_by_every_transport_in_a_few_octets() {
    let check = |format, transport| {
        let (seen, counts) = stream(format, transport, [true, true], None);
        println!("{format} {transport}: {counts:?}");
        assert_eq!((seen.len() as u64, counts.frames_whole), (FRAMES, FRAMES), "{counts:?}");
        for (number, is_whole, octets) in &seen {
            let is_right = *octets == expected(format, *number);
            assert!(*is_whole && is_right, "{format} {transport}: frame {number}");
        }
        let all = seen[0].2.len() as u64 * FRAMES;
        assert!(counts.octets * 4 < all, "{format} {transport}: {} of {all}", counts.octets);
    };
    std::thread::scope(|scope| {
        for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
            scope.spawn(move || check(Format::Bc1, transport));
        }
        scope.spawn(move || check(Format::Rgba8, Transport::Tcp));
    });
}

#[test]
fn an_end_that_does_not_pack_gets_stripes_as_they_are() {
    for is_packed in [[true, false], [false, true]] {
        let (seen, counts) = stream(Format::Bc1, Transport::Udp, is_packed, None);
        assert_eq!(counts.frames_whole, FRAMES, "{counts:?}");
        assert!(counts.octets > seen[0].2.len() as u64 * FRAMES, "{counts:?}");
    }
}

#[test]
fn what_a_lossy_path_leaves_stale_is_never_taken_for_fresh_and_heals() {
    let check = |transport, loss| {
        let (seen, counts) = stream(Format::Bc1, transport, [true, true], Some(loss));
        println!("{transport} {loss}: {counts:?}");
        for (number, is_whole, octets) in &seen {
            let is_right = *octets == expected(Format::Bc1, *number);
            assert!(!is_whole || is_right, "{transport} {loss}: frame {number}");
        }
        assert!(counts.frames_damaged > 0 || loss < 0.1, "nothing was lost: {counts:?}");
        // Over RTP nothing is requested.
        let is_requested = counts.packets_requested > 0;
        assert!(!is_requested || transport == Transport::Udp, "{counts:?}");
        assert!(is_requested || transport == Transport::Rtp || loss < 0.1, "{counts:?}");
        // What was stale came again.
        let is_healed = |(number, is_whole, _): &Seen| *number > LOSSY_FRAMES && *is_whole;
        assert!(seen.iter().any(is_healed), "{counts:?}");
    };
    std::thread::scope(|scope| {
        for transport in [Transport::Udp, Transport::Rtp] {
            for loss in [0.05, 0.3] {
                scope.spawn(move || check(transport, loss));
            }
        }
    });
}
