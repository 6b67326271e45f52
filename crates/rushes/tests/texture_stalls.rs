//! A client over TCP that stops for a while sees fresh pictures when it goes on.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Format, Layout, MemorySink, Rate, ServerOptions, TextureClient, TextureFrame,
    TextureServer, Timing, Transport,
};

/// Time after which a stream counts as hung.
const HANGS: Duration = Duration::from_secs(60);

/// A camera of 200 pictures a second, each with its number in the first octets.
struct Camera {
    layout: Layout,
    /// The number of pictures that the server has read.
    read: Arc<AtomicU64>,
}

impl Source for Camera {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::new(200, 1).unwrap()
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let mut octets = vec![0; self.layout.bytes()];
        let number = self.read.fetch_add(1, Ordering::AcqRel);
        octets[..8].copy_from_slice(&number.to_be_bytes());
        Ok(Some(Frame::new(octets)))
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// Returns the numbers of 20 pictures, and the number of those before a stall of 200 pictures.
fn pictures_around_a_stall(units: usize) -> (Vec<u64>, usize) {
    let read = Arc::new(AtomicU64::new(0));
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let camera = Camera { layout, read: read.clone() };
    let mut options = ServerOptions::default();
    (options.units, options.transport, options.timing) = (units, Transport::Tcp, Timing::Live);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), camera, options).unwrap();
    let (sender, numbers) = mpsc::channel();
    let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
        let mut octets = vec![0; frame.shape().layout().bytes()];
        frame.copy_to(&mut octets);
        let number = u64::from_be_bytes(*octets.first_chunk().unwrap());
        if frame.number() == 4 {
            let (until, since) = (read.load(Ordering::Acquire) + 200, Instant::now());
            while read.load(Ordering::Acquire) < until && since.elapsed() < HANGS {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // Nobody listens any more after the last one.
        let _ended = sender.send(number);
    });
    let client =
        TextureClient::connect(server.local_address(), Arc::new(sink), ClientOptions::default());
    let client = client.unwrap();
    let seen = (0..20).map(|_| numbers.recv_timeout(HANGS).unwrap()).collect();
    client.stop();
    (seen, 5)
}

#[test]
fn a_client_that_goes_on_sees_a_fresh_picture_after_the_few_that_it_had_received() {
    for units in [1, 3] {
        let (seen, before) = pictures_around_a_stall(units);
        let is_fresh = |pair: &[u64]| pair[1] - pair[0] > 100;
        let fresh = seen[before - 1..].windows(2).position(is_fresh);
        // The client holds two frames more than the one that it shows, the kernels of both ends about
        // three, and one has begun.
        assert!(fresh.is_some_and(|at| at <= 8), "{units} units: {seen:?}");
    }
}
