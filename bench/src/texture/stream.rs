//! A server and a client in this process, with one frame at a time between them.

use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rushes::Pacing;
use rushes::texture::source::{Frame, Source, SourceError};
use rushes::texture::{
    ClientOptions, Format, Layout, MemorySink, Rate, SentFrame, ServerOptions, TextureClient,
    TextureFrame, TextureServer, TextureSink, Timing, Transport,
};

/// The time after which a frame counts as lost.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The configuration of a delivery.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// The layout of the pictures.
    pub(super) input: Layout,
    /// The format in which they are sent.
    pub(super) output: Format,
    pub(super) pictures: Vec<Frame>,
    pub(super) transport: Transport,
    pub(super) units: usize,
    /// Octets of a packet after its header; 0 for the default.
    pub(super) payload: usize,
    pub(super) socket_buffer: usize,
    /// Bits per second of pacing; `None` for the default.
    pub(super) bit_rate: Option<u64>,
}

/// A source that returns a picture from memory for each request.
pub(super) struct Gate {
    layout: Layout,
    pictures: Vec<Frame>,
    next: usize,
    requests: mpsc::Receiver<()>,
}

impl Source for Gate {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        Rate::DEFAULT
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let Ok(()) = self.requests.recv() else { return Ok(None) };
        let picture = self.pictures.get(self.next % self.pictures.len().max(1));
        self.next += 1;
        Ok(picture.cloned())
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        Ok(())
    }
}

/// The client's record of one frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) frame: u64,
    pub(super) is_whole: bool,
    pub(super) first_at: Instant,
    pub(super) done_at: Instant,
    /// When the sink had finished processing the frame.
    #[cfg_attr(
        not(feature = "gpu"),
        expect(dead_code, reason = "only the measurements with a GPU use it")
    )]
    pub(super) ready_at: Instant,
}

/// The channel on which sinks report frames.
pub(super) type ArrivalSender = mpsc::Sender<Arrival>;

impl Arrival {
    pub(super) fn of(frame: &TextureFrame<'_>, ready_at: Instant) -> Self {
        Self {
            frame: frame.number(),
            is_whole: frame.is_whole(),
            first_at: frame.first_at(),
            done_at: frame.done_at(),
            ready_at,
        }
    }
}

/// Returns a sink of plain memory, which reports frames at once.
pub(super) fn plain(arrival_sender: ArrivalSender) -> Arc<dyn TextureSink> {
    Arc::new(MemorySink::new(move |frame: &TextureFrame<'_>| {
        // Fails after the last turn, when the channel is closed.
        let _ = arrival_sender.send(Arrival::of(frame, frame.done_at()));
    }))
}

/// Both sides of one delivery.
pub(super) struct Stream {
    request: mpsc::Sender<()>,
    arrivals: mpsc::Receiver<Arrival>,
    client: TextureClient,
    server: TextureServer,
    requested: u64,
    sent: Vec<SentFrame>,
}

impl Stream {
    /// Opens a stream that receives into plain memory.
    pub(super) fn open(setup: &Setup) -> anyhow::Result<Self> {
        Self::open_into(setup, plain)
    }

    pub(super) fn open_into(
        setup: &Setup,
        sink: impl FnOnce(ArrivalSender) -> Arc<dyn TextureSink>,
    ) -> anyhow::Result<Self> {
        Self::open_between(setup, |gate| Ok(Box::new(gate)), sink)
    }

    /// Opens a stream with another source around the one with the pictures.
    pub(super) fn open_between(
        setup: &Setup,
        source: impl FnOnce(Gate) -> anyhow::Result<Box<dyn Source>>,
        sink: impl FnOnce(ArrivalSender) -> Arc<dyn TextureSink>,
    ) -> anyhow::Result<Self> {
        let (request, requests) = mpsc::channel();
        let gate =
            Gate { layout: setup.input, pictures: setup.pictures.clone(), next: 0, requests };
        let mut options = ServerOptions::default();
        options.format = Some(setup.output);
        options.transport = setup.transport;
        options.units = setup.units;
        options.payload = setup.payload;
        options.timing = Timing::FlatOut;
        options.pacing = match setup.bit_rate {
            None => options.pacing,
            Some(0) => Pacing::Off,
            Some(bit_rate) => Pacing::Rate(bit_rate),
        };
        options.in_flight = setup.socket_buffer;
        let buffer = setup.socket_buffer;
        (options.udp.send_buffer, options.udp.receive_buffer) = (buffer, buffer);
        (options.tcp.send_buffer, options.tcp.receive_buffer) = (buffer, buffer);
        let (udp, tcp) = (options.udp.clone(), options.tcp.clone());
        let server = TextureServer::serve(([127, 0, 0, 1], 0).into(), source(gate)?, options)?;
        let (arrival_sender, arrivals) = mpsc::channel();
        let mut options = ClientOptions::default();
        (options.udp, options.tcp) = (udp, tcp);
        let client = TextureClient::connect(server.local_address(), sink(arrival_sender), options)?;
        Ok(Self { request, arrivals, client, server, requested: 0, sent: Vec::new() })
    }

    /// Returns the octets of a packet after its header.
    pub(super) fn payload(&self) -> Option<usize> {
        Some(self.client.shape()?.plan().payload())
    }

    /// Sends one frame; returns its arrival, `None` if it did not arrive in time.
    pub(super) fn turn(&mut self) -> Option<Arrival> {
        let frame = self.requested;
        self.requested += 1;
        self.request.send(()).ok()?;
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let arrival = self.arrivals.recv_timeout(left).ok()?;
            self.sent.extend(self.server.take_frames());
            if arrival.frame == frame {
                return Some(arrival);
            }
        }
    }

    /// Ends both sides; returns the server's records of the frames.
    pub(super) fn close(mut self) -> Vec<SentFrame> {
        // The server's record of the last frame comes from the thread of the control connection.
        let until = Instant::now() + TIMEOUT;
        let is_missing =
            |sent: &[SentFrame], last: u64| sent.last().is_none_or(|sent| sent.frame < last);
        while self.requested > 0
            && is_missing(&self.sent, self.requested - 1)
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(1));
            self.sent.extend(self.server.take_frames());
        }
        self.client.stop();
        // The source waits for the next request, and ends when the channel is closed.
        drop(self.request);
        drop(self.server);
        self.sent
    }
}
