//! Frames that are sent while they are still being made.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may")]

mod noise;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use rushes::texture::ClientOptions;
use rushes::texture::Encoder;
use rushes::texture::Format;
use rushes::texture::Layout;
use rushes::texture::Rate;
use rushes::texture::ServerOptions;
use rushes::texture::TextureClient;
use rushes::texture::TextureFrame;
use rushes::texture::TextureServer;
use rushes::texture::TextureSink;
use rushes::texture::Timing;
use rushes::texture::Transport;
use rushes::texture::source::Frame;
use rushes::texture::source::GrowingFrame;
use rushes::texture::source::Source;
use rushes::texture::source::SourceError;
use rushes::texture::source::Taker;

use noise::Noise;

const SECOND: Duration = Duration::from_secs(1);

/// Parts of a frame; the first tile of two lies in the first two of them.
const PARTS: usize = 3;

/// What a source does once the client has a frame's first tile.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Then {
    /// It makes the rest.
    Completes,
    /// It has made the rest before that.
    IsDone,
    /// It fails.
    Fails,
    /// It says that the frame is there, and it is not.
    Forgets,
}

/// A source that makes the end of a frame when its beginning has come to the client.
struct Careful {
    noise: Noise,
    tiles: mpsc::Receiver<usize>,
    then: Then,
    frame: Option<GrowingFrame>,
}

impl Source for Careful {
    fn layout(&self) -> &Layout {
        self.noise.layout()
    }

    fn rate(&self) -> Rate {
        self.noise.rate()
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
        // The same memory whenever nobody reads it.
        let frame = self.frame.take().and_then(|mut frame| frame.renew().then_some(frame));
        let frame = frame.unwrap_or_else(|| GrowingFrame::new(octets.len(), part));
        self.frame = Some(frame.clone());
        to.begin(&frame);
        for (number, octets) in octets.chunks(part).enumerate() {
            if number == PARTS - 1 && self.then != Then::IsDone {
                let tile = self.tiles.recv_timeout(10 * SECOND);
                let tile = tile.map_err(|error| SourceError::Encoder(error.to_string()))?;
                assert_eq!((tile, frame.is_whole()), (0, false));
                match self.then {
                    Then::Completes | Then::IsDone => {}
                    Then::Fails => return Err(SourceError::Encoder("no more of it".to_owned())),
                    Then::Forgets => return Ok(true),
                }
            }
            assert!(frame.add(octets));
            to.grown();
        }
        if self.then == Then::Completes {
            assert_eq!(self.tiles.recv_timeout(10 * SECOND), Ok(1));
        }
        Ok(true)
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        self.noise.rewind()
    }
}

/// Whether a frame is whole, and its octets.
type Received = (bool, Vec<u8>);

/// What tells of tiles, and of frames.
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

/// A server of such a source, and its client.
fn begin(
    then: Then,
    format: Option<Format>,
    transport: Transport,
) -> (TextureServer, TextureClient, mpsc::Receiver<Received>, Vec<Frame>) {
    let noise = Noise::new(Layout::new(Format::Rgb24, 100, 90).unwrap(), 5);
    let expected = noise.frames.clone();
    let (told, tiles) = mpsc::channel();
    let source = Careful { noise, tiles, then, frame: None };
    let mut options = ServerOptions::default();
    (options.units, options.transport, options.format) = (2, transport, format);
    options.timing = Timing::FlatOut;
    let local = "127.0.0.1:0".parse().unwrap();
    let server = TextureServer::serve(local, source, options).unwrap();
    let (seen, frames) = mpsc::channel();
    let sink = Arc::new(Watching { tiles: told, frames: seen });
    let mut options = ClientOptions::default();
    (options.deadline_min, options.deadline_max) = (10 * SECOND, 10 * SECOND);
    let client = TextureClient::connect(server.local_address(), sink, options).unwrap();
    (server, client, frames, expected)
}

#[test]
fn the_beginning_of_a_frame_arrives_before_its_end_is_made() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Rtp] {
        let (_server, client, frames, expected) = begin(Then::Completes, None, transport);
        for (number, expected) in expected.iter().enumerate() {
            let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
            assert!(is_whole && octets == **expected, "{transport}: frame {number}");
        }
        let end = client.wait(10 * SECOND).unwrap();
        assert!(end.text.contains("the source has ended"), "{transport}: {end}");
    }
}

#[test]
fn a_source_that_fails_within_a_frame_ends_the_stream() {
    for (then, words) in [
        (Then::Fails, "no more of it"),
        (Then::Forgets, "the source gave a frame of 18000 octets instead of 27000"),
    ] {
        let (server, client, frames, _) = begin(then, None, Transport::Tcp);
        let end = client.wait(20 * SECOND).unwrap();
        assert!(end.text.contains(words), "{end}");
        // What there was of it may be shown, with the rest concealed.
        assert!(frames.try_iter().all(|(is_whole, _)| !is_whole));
        // The units that wait for the rest are told, too.
        drop(server);
    }
}

#[test]
fn what_must_be_encoded_waits_for_the_whole_picture() {
    let (_server, client, frames, expected) =
        begin(Then::IsDone, Some(Format::Bc1), Transport::Tcp);
    let encoder = Encoder::new(Format::Rgb24, Format::Bc1, 100, 90).unwrap();
    for expected in expected {
        let (is_whole, octets) = frames.recv_timeout(20 * SECOND).unwrap();
        let mut blocks = vec![0; encoder.output().bytes()];
        encoder.encode(&expected, &mut blocks).unwrap();
        assert!(is_whole && octets == blocks);
    }
    assert!(client.wait(10 * SECOND).is_some());
}
