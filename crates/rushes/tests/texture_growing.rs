//! Frames that are sent while they are still growing.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod noise;

use std::sync::{Arc, mpsc};
use std::time::Duration;

use rushes::texture::source::{Frame, GrowingFrame, Source, SourceError, Taker};
use rushes::texture::{
    ClientOptions, Encoder, Format, Layout, Rate, ServerOptions, TextureClient, TextureFrame,
    TextureServer, TextureSink, Timing, Transport,
};

use noise::Noise;

const SECOND: Duration = Duration::from_secs(1);

/// Parts of a frame. The first of its two tiles is in the first two parts.
const PARTS: usize = 3;

/// The event that a source waits for before it adds a frame's last part.
enum Until {
    /// The client has received the first tile.
    Tile(mpsc::Receiver<usize>),
    /// A message from the test; fails if the sender is dropped.
    Signal(mpsc::Receiver<()>),
    /// The source waits for this time before each part.
    Passed(Duration),
}

/// The action of a source after the wait.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Then {
    /// Adds the rest of the frame.
    Completes,
    /// Adds the rest without reporting it.
    Hides,
    /// Returns an error.
    Fails,
    /// Reports the frame as complete without completing it.
    Forgets,
}

/// A source that adds the end of a frame some time after its beginning.
struct Slow {
    noise: Noise,
    until: Until,
    then: Then,
    frame: Option<GrowingFrame>,
}

impl Slow {
    fn wait(&self, part: usize) -> Result<(), SourceError> {
        let failed = |error: &dyn ToString| SourceError::Encoder(error.to_string());
        match &self.until {
            Until::Tile(tiles) if part == PARTS - 1 => {
                let tile = tiles.recv_timeout(10 * SECOND).map_err(|error| failed(&error))?;
                assert_eq!(tile, 0);
            }
            Until::Signal(signal) if part == PARTS - 1 => {
                signal.recv_timeout(10 * SECOND).map_err(|error| failed(&error))?;
            }
            Until::Passed(time) => std::thread::sleep(*time),
            Until::Tile(_) | Until::Signal(_) => {}
        }
        Ok(())
    }
}

impl Source for Slow {
    fn layout(&self) -> &Layout {
        self.noise.layout()
    }

    fn rate(&self) -> Rate {
        Rate::new(10, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        self.noise.length()
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        Err(SourceError::Encoder("a frame was asked for as a whole".to_owned()))
    }

    fn give_frame(&mut self, to: &mut dyn Taker) -> Result<bool, SourceError> {
        let Some(octets) = self.noise.next_frame()? else { return Ok(false) };
        let part = octets.len().div_ceil(PARTS);
        // The memory is reused whenever no reader holds it.
        let frame = self.frame.take().and_then(|mut frame| frame.renew().then_some(frame));
        let frame = frame.unwrap_or_else(|| GrowingFrame::new(octets.len(), part));
        self.frame = Some(frame.clone());
        to.begin(&frame);
        for (number, octets) in octets.chunks(part).enumerate() {
            self.wait(number)?;
            if number == PARTS - 1 {
                assert!(!frame.is_whole());
                match self.then {
                    Then::Completes | Then::Hides => {}
                    Then::Fails => return Err(SourceError::Encoder("no more of it".to_owned())),
                    Then::Forgets => return Ok(true),
                }
            }
            assert!(frame.add(octets));
            if self.then != Then::Hides {
                to.grown();
            }
        }
        if let (Until::Tile(tiles), Then::Completes) = (&self.until, self.then) {
            assert_eq!(tiles.recv_timeout(10 * SECOND), Ok(1));
        }
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.noise.rewind()
    }
}

/// Whether a frame is whole, and its octets.
type Received = (bool, Vec<u8>);

/// A sink that reports tiles and frames to the test.
struct Watching {
    tiles: mpsc::Sender<usize>,
    frames: mpsc::Sender<Received>,
}

impl TextureSink for Watching {
    fn tile_ready(&self, _: usize, unit: usize) {
        let _ = self.tiles.send(unit);
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let _ = self.frames.send((frame.is_whole(), octets));
    }
}

fn noise() -> Noise {
    Noise::new(Layout::new(Format::Rgb24, 100, 90).unwrap(), 5)
}

/// A server with 2 units and a slow source.
fn serve(until: Until, then: Then, mut options: ServerOptions) -> TextureServer {
    let source = Slow { noise: noise(), until, then, frame: None };
    options.units = 2;
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap()
}

fn by(transport: Transport, timing: Timing) -> ServerOptions {
    let mut options = ServerOptions::default();
    (options.transport, options.timing) = (transport, timing);
    options
}

/// A client and the channel of its frames; tiles go to `tiles`.
fn view(
    server: &TextureServer,
    tiles: mpsc::Sender<usize>,
) -> (TextureClient, mpsc::Receiver<Received>) {
    view_with(server, tiles, ClientOptions::default())
}

fn view_with(
    server: &TextureServer,
    tiles: mpsc::Sender<usize>,
    options: ClientOptions,
) -> (TextureClient, mpsc::Receiver<Received>) {
    let (frames, seen) = mpsc::channel();
    let sink = Arc::new(Watching { tiles, frames });
    (TextureClient::connect(server.local_address(), sink, options).unwrap(), seen)
}

#[test]
fn the_beginning_of_a_frame_arrives_before_its_end_is_made() {
    let (ready, tiles) = mpsc::channel();
    let options = by(Transport::Tcp, Timing::FlatOut);
    let server = serve(Until::Tile(tiles), Then::Completes, options);
    let (client, frames) = view(&server, ready);
    for (number, expected) in noise().frames.iter().enumerate() {
        let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
        assert!(is_whole && octets == **expected, "frame {number}");
    }
    let end = client.wait(10 * SECOND).unwrap();
    assert!(end.text.contains("the source has ended"), "{end}");
}

#[test]
fn a_slowly_growing_frame_is_dropped_by_no_client() {
    // Each part takes longer than the client waits for it, and this wait is longer than the delay
    // of a thread. The first tile needs two of the three parts.
    let (pause, patience) = (Duration::from_millis(320), Duration::from_millis(280));
    let ways = [(Transport::Udp, Timing::Live), (Transport::Rtp, Timing::EveryFrame)];
    let check = |(transport, timing)| {
        let server = serve(Until::Passed(pause), Then::Completes, by(transport, timing));
        let mut options = ClientOptions::default();
        (options.deadline_min, options.deadline_max) = (patience, patience);
        let (client, frames) = view_with(&server, mpsc::channel().0, options);
        for (number, expected) in noise().frames.iter().enumerate() {
            let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
            assert!(is_whole && octets == **expected, "{transport}: frame {number}");
        }
        assert!(client.wait(10 * SECOND).is_some());
    };
    std::thread::scope(|scope| {
        ways.map(|way| scope.spawn(move || check(way))).map(|one| one.join().unwrap())
    });
}

#[test]
fn clients_join_and_leave_and_formats_change_within_a_frame() {
    let (go, signal) = mpsc::channel();
    let mut options = by(Transport::Tcp, Timing::FlatOut);
    options.loops = true;
    let server = serve(Until::Signal(signal), Then::Completes, options);
    let (tiles, first_tiles) = mpsc::channel();
    let (first, first_frames) = view(&server, tiles);
    assert_eq!(first_tiles.recv_timeout(20 * SECOND), Ok(0));
    // While the source waits, another client connects.
    let (tiles, second_tiles) = mpsc::channel();
    let (second, second_frames) = view(&server, tiles);
    let expected = noise().frames;
    let is_one_of = |(is_whole, octets): Received| {
        assert!(is_whole && expected.iter().any(|frame| **frame == octets));
    };
    // Its units report tiles independently. When there are more first tiles than second ones, the
    // client has the beginning of a frame.
    let mut begun = 0_i32;
    let mut until_within_a_frame = || loop {
        let tile = second_tiles.recv_timeout(20 * SECOND).unwrap();
        begun += if tile == 0 { 1 } else { -1 };
        if begun > 0 {
            break;
        }
    };
    go.send(()).unwrap();
    is_one_of(first_frames.recv_timeout(20 * SECOND).unwrap());
    // The second client gets the beginning of the next frame at once; then the first client leaves.
    until_within_a_frame();
    drop(first);
    go.send(()).unwrap();
    is_one_of(second_frames.recv_timeout(20 * SECOND).unwrap());
    // The format changes in the middle of the following frame.
    until_within_a_frame();
    server.set_format(Format::Bc1).unwrap();
    let encoder = Encoder::new(Format::Rgb24, Format::Bc1, 100, 90).unwrap();
    let blocks = expected.iter().map(|frame| {
        let mut blocks = vec![0; encoder.output().bytes()];
        encoder.encode(frame, &mut blocks).unwrap();
        blocks
    });
    let blocks: Vec<_> = blocks.collect();
    loop {
        go.send(()).unwrap();
        let (is_whole, octets) = second_frames.recv_timeout(20 * SECOND).unwrap();
        assert!(is_whole);
        if octets.len() == encoder.output().bytes() {
            assert!(blocks.contains(&octets));
            break;
        }
        assert!(expected.iter().any(|frame| **frame == octets));
    }
    // The source waits again and fails when its channel is dropped, so that the server need not
    // wait.
    drop(go);
    drop(server);
    assert!(second.wait(10 * SECOND).is_some());
}

#[test]
fn a_source_that_fails_within_a_frame_ends_the_stream() {
    for (then, words) in [
        (Then::Fails, "no more of it"),
        (Then::Forgets, "the source gave a frame of 18000 octets instead of 27000"),
    ] {
        let (ready, tiles) = mpsc::channel();
        let server = serve(Until::Tile(tiles), then, by(Transport::Tcp, Timing::FlatOut));
        let (client, frames) = view(&server, ready);
        let end = client.wait(20 * SECOND).unwrap();
        assert!(end.text.contains(words), "{end}");
        // The frame may be shown with its beginning, the rest being concealed.
        assert!(frames.try_iter().all(|(is_whole, _)| !is_whole));
        // Units that wait for the rest are woken, too.
        drop(server);
    }
}

#[test]
fn a_source_need_not_say_that_a_frame_has_grown() {
    let options = by(Transport::Tcp, Timing::EveryFrame);
    let server = serve(Until::Passed(Duration::ZERO), Then::Hides, options);
    let (client, frames) = view(&server, mpsc::channel().0);
    for expected in noise().frames {
        let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
        assert!(is_whole && octets == *expected);
    }
    assert!(client.wait(10 * SECOND).is_some());
}

/// A source that falsely reports a frame as complete.
struct Liar(Layout);

impl Source for Liar {
    fn layout(&self) -> &Layout {
        &self.0
    }

    fn rate(&self) -> Rate {
        Rate::DEFAULT
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        Ok(None)
    }

    fn give_frame(&mut self, _: &mut dyn Taker) -> Result<bool, SourceError> {
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

#[test]
fn a_source_that_returns_no_frame_is_detected() {
    let source = Liar(Layout::new(Format::Rgb24, 8, 8).unwrap());
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, source, ServerOptions::default()).unwrap();
    let (client, _frames) = view(&server, mpsc::channel().0);
    let end = client.wait(20 * SECOND).unwrap();
    assert!(end.text.contains("gave none"), "{end}");
}
