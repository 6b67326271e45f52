//! Frames are passed on by a thread of the sink, beside the threads that receive.
#![allow(clippy::unwrap_used, reason = "a test may")]

mod common;

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rushes::texture::source::{Preloaded, RawHint, open};
use rushes::texture::{
    ClientOptions, FrameMemory, Gap, ServerOptions, Stopped, TextureClient, TextureFrame,
    TextureServer, TextureShape, TextureSink, Timing, Transport,
};
use rushes_gpu::{GpuSink, Upload};

const HANGS: Duration = Duration::from_secs(30);

/// A sink that tells when each frame has left the receiving thread.
struct Watched {
    device: GpuSink,
    returned: Mutex<mpsc::Sender<u64>>,
}

impl TextureSink for Watched {
    fn begin(&self, shape: &TextureShape, slots: usize) -> Result<Vec<FrameMemory>, String> {
        self.device.begin(shape, slots)
    }

    fn tile_ready(&self, slot: usize, unit: usize) {
        self.device.tile_ready(slot, unit);
    }

    fn conceal(&self, slot: usize, previous: usize, gaps: &[Gap]) -> bool {
        self.device.conceal(slot, previous, gaps)
    }

    fn frame_done(&self, frame: &TextureFrame<'_>) {
        self.device.frame_done(frame);
        self.returned.lock().unwrap().send(frame.number()).unwrap();
    }

    fn end(&self) {
        self.device.end();
    }
}

/// Receives three frames with a sink, and returns how the stream ended.
fn receive(sink: Arc<dyn TextureSink>) -> Stopped {
    let mut pattern = open("pattern:64x64@100,frames=3".as_ref(), &RawHint::default()).unwrap();
    let source = Preloaded::new(&mut pattern, 1 << 20).unwrap();
    let mut options = ServerOptions::default();
    (options.transport, options.timing) = (Transport::Tcp, Timing::EveryFrame);
    let server = TextureServer::serve("127.0.0.1:0".parse().unwrap(), source, options).unwrap();
    let options = ClientOptions::default();
    let client = TextureClient::connect(server.local_address(), sink, options).unwrap();
    client.wait(HANGS).unwrap()
}

#[test]
fn a_frame_leaves_the_receiving_thread_before_it_is_passed_on() {
    for gpu in common::devices() {
        let (returned, left) = mpsc::channel();
        let (sender, passed_on) = mpsc::channel();
        let (left, sender) = (Mutex::new(left), Mutex::new(sender));
        let device = GpuSink::new(&gpu, Upload::Best, move |frame| {
            // On the receiving thread, this would wait for itself.
            let left = left.lock().unwrap().recv_timeout(HANGS);
            sender.lock().unwrap().send((frame.number, left)).unwrap();
        });
        let end = receive(Arc::new(Watched { device, returned: Mutex::new(returned) }));
        assert!(end.text.contains("source has ended"), "{end}");
        // The last frame has been passed on before the end.
        let all: Vec<_> = passed_on.try_iter().collect();
        assert_eq!(all, [(0, Ok(0)), (1, Ok(1)), (2, Ok(2))], "{}", gpu.name());
    }
}

#[test]
fn a_panic_of_the_application_ends_the_stream() {
    for gpu in common::devices() {
        for panics_at in [0, 2] {
            let sink = GpuSink::new(&gpu, Upload::Best, move |frame| {
                assert!(frame.number != panics_at, "this is meant to happen");
            });
            let end = receive(Arc::new(sink));
            assert!(end.text.contains("the sink panicked"), "{panics_at}: {end}");
        }
    }
}
