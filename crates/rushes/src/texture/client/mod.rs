//! The client, which receives frames.

mod control;
mod drain;
mod finished;
mod frames;
mod links;
mod options;
mod reading;
mod units;

pub use options::ClientOptions;

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use rushes_delivery::control::{
    Abilities, Change, ClockEstimate, FrameRate, Offer, Reason, Stopped, StoppedBy, Transport,
};
use rushes_delivery::{AssemblyOptions, AssemblyStatistics, Decoder};
use rushes_net::{TcpSocket, Waker};
use rushes_texture::{Colour, Format, Layout, SIDE_MAX};

use self::control::Control;
use self::finished::Finished;
use self::frames::Frames;
use self::units::Shared;
use super::error::TextureError;
use super::lock;
use super::shape::TextureShape;
use super::sink::TextureSink;
use crate::setup::{Context, Session};

/// Upper limit of all timeouts in the options.
const TIMEOUT_MAX: Duration = Duration::from_secs(3_600);

/// Number of frames in memory if nothing is requested.
const SLOTS: usize = 3;

/// Maximum number of frames in memory, and octets of those beyond [`SLOTS`].
const SLOTS_MAX: usize = 8;
const SLOTS_BYTES_MAX: usize = 256 << 20;

/// How often a missing packet is requested, and the time of an answer beyond one and a half round trips.
const REQUESTS: u32 = 3;
const REQUEST_TIME: Duration = Duration::from_millis(3);

/// Receives a server's frames into a sink.
///
/// There is a thread for each unit, and one for the control connection. Dropping the client ends
/// them all and notifies the server.
pub struct TextureClient {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

/// State shared by all threads of a client.
struct Inner {
    options: ClientOptions,
    sink: Arc<dyn TextureSink>,
    epoch: Instant,
    /// The time that the control connection took to be established.
    round_trip: Duration,
    shared: Shared,
    finished: Arc<Finished>,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    shape: Option<TextureShape>,
    rate: Option<FrameRate>,
    transport: Option<Transport>,
    is_scalable: bool,
    /// The session of the units' streams, over RTP.
    session: Option<Session>,
    change: Option<Change>,
    clock: Option<ClockEstimate>,
    dropped: u64,
    /// Counters from before the shape changed.
    past: AssemblyStatistics,
    end: Option<Stopped>,
    is_over: bool,
}

/// Counters of a [`TextureClient`] since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientStatistics {
    /// Frames of which every packet arrived.
    pub frames_whole: u64,
    /// Frames delivered with concealed parts.
    pub frames_damaged: u64,
    /// Frames of which no packet arrived in time or before the end. When the stream has ended,
    /// every announced frame counts as whole, damaged or lost.
    pub frames_lost: u64,
    /// Pictures that the server was too slow to encode.
    pub frames_dropped: u64,
    /// Tiles with concealed parts.
    pub tiles_concealed: u64,
    /// Packets put in place.
    pub packets: u64,
    /// Packets that did not arrive in time.
    pub packets_lost: u64,
    /// Duplicate packets.
    pub packets_duplicate: u64,
    /// Packets that arrived after their frame had ended.
    pub packets_late: u64,
    /// Packets that belong to no frame.
    pub packets_invalid: u64,
    /// Packets that were requested because they did not arrive, each counted once
    /// ([`ClientOptions::recovery`]).
    pub packets_requested: u64,
    /// Packets that arrived after they had been requested. The others of those requested are lost, too.
    pub packets_recovered: u64,
    /// Packets that did not arrive and were computed from repair packets
    /// ([`ServerOptions::fec`](crate::texture::ServerOptions::fec)).
    pub packets_repaired: u64,
    /// Repair packets that arrived, whether or not they were needed.
    pub repairs: u64,
    /// Octets received, headers of packets included.
    pub octets: u64,
    /// Median time from capture, by the server's clock, until the frame was in memory.
    ///
    /// It covers the latest 1 024 frames.
    pub latency_p50: Option<Duration>,
    /// The 99th percentile of the same times.
    pub latency_p99: Option<Duration>,
    /// Maximum error of the latencies: half a round trip, and the clocks' drift.
    pub latency_error: Option<Duration>,
    /// Stripes that arrived packed
    /// ([`ServerOptions::packing`](crate::texture::ServerOptions::packing)).
    pub stripes_unpacked: u64,
    /// Stripes that the server reported as unchanged, and whose octets the client had.
    pub stripes_unchanged: u64,
    /// Stripes that the server reported as unchanged, but whose octets had not arrived before. Their frames are
    /// damaged.
    pub stripes_stale: u64,
}

impl fmt::Debug for TextureClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureClient").finish_non_exhaustive()
    }
}

impl TextureClient {
    /// Connects to a server; returns once the stream has begun.
    ///
    /// # Errors
    ///
    /// [`TextureError::Net`] if there is no server, [`TextureError::Ended`] if the server refuses
    /// the options or does not answer in time, or if its offer is invalid.
    pub fn connect(
        server: SocketAddr,
        sink: Arc<dyn TextureSink>,
        options: ClientOptions,
    ) -> Result<Self, TextureError> {
        crate::error::check_peer(server.ip())?;
        let span = tracing::info_span!(parent: None, "texture_client", %server);
        let entered = span.enter();
        let deadline = Instant::now() + options.connect_timeout.min(TIMEOUT_MAX);
        let begun_at = Instant::now();
        let socket = TcpSocket::connect(server, &options.tcp, deadline)?;
        let inner = Arc::new(Inner {
            options,
            sink,
            epoch: Instant::now(),
            round_trip: begun_at.elapsed(),
            shared: Shared::new(Waker::new()?),
            finished: Arc::new(Finished::default()),
            state: Mutex::new(State::default()),
            ended: Condvar::new(),
        });
        let mut control = Control::new(inner.clone(), socket)?;
        if !control.run_until_streaming() {
            let end = lock(&inner.state).end.take();
            let unknown = || TextureError::Failed("the stream did not start".into());
            return Err(end.map_or_else(unknown, TextureError::Ended));
        }
        let thread = thread::Builder::new().name("rushes-control".into());
        drop(entered);
        let run = move || span.in_scope(|| control.run());
        let thread = thread.spawn(run).map_err(TextureError::Thread)?;
        Ok(Self { inner, thread: Some(thread) })
    }

    /// Returns the shape of frames, which may change during the stream; `None` before the first
    /// offer.
    pub fn shape(&self) -> Option<TextureShape> {
        lock(&self.inner.state).shape.clone()
    }

    /// Returns the transport of units, or `None` before the first offer.
    pub fn transport(&self) -> Option<Transport> {
        lock(&self.inner.state).transport
    }

    /// Returns whether the server scales its pictures down to a largest size, if one is requested: one of an older
    /// release, one whose pictures are blocks, and one by multicast does not.
    pub fn is_scalable(&self) -> bool {
        lock(&self.inner.state).is_scalable
    }

    /// Returns the frames per second, or `None` before the first offer.
    pub fn rate(&self) -> Option<FrameRate> {
        lock(&self.inner.state).rate
    }

    /// Returns the short authentication string, for people to read to each other, if keys were
    /// agreed on by ZRTP.
    #[cfg(feature = "zrtp")]
    pub fn sas(&self) -> Option<crate::agreement::SasStatus> {
        lock(&self.inner.state).session.as_ref()?.sas()
    }

    /// Returns the estimate of the server's clock, or `None` before the first.
    pub fn clock(&self) -> Option<ClockEstimate> {
        lock(&self.inner.state).clock
    }

    /// Requests another format or rate; the server may answer with a change.
    ///
    /// A rate with a zero in it is ignored, and so is a format that is not among those of the options.
    pub fn change(&self, format: Option<Format>, rate: Option<FrameRate>) {
        let formats = self.inner.options.wishes().formats;
        let format = format.filter(|format| formats.contains(format.number()));
        let rate = rate.filter(|rate| rate.numerator > 0 && rate.denominator > 0);
        self.request(Change { format: format.map_or(0, Format::number), rate, size_max: None });
    }

    /// Requests frames of up to this size from now on, as [`ClientOptions::size_max`] does for the first ones; with
    /// `None`, those of the source's own size.
    ///
    /// Where the [server does not scale](Self::is_scalable), nothing changes.
    pub fn set_size_max(&self, size: Option<(u32, u32)>) {
        let size_max = Some(valid_size(size).unwrap_or_default());
        self.request(Change { size_max, ..Change::default() });
    }

    fn request(&self, change: Change) {
        let mut state = lock(&self.inner.state);
        state.change = Some(state.change.unwrap_or_default().then(change));
        drop(state);
        self.inner.shared.control.wake();
    }

    /// Returns the counters so far.
    pub fn statistics(&self) -> ClientStatistics {
        self.inner.statistics()
    }

    /// Removes and returns the latencies of the frames since the last call, oldest first; see
    /// [`ClientStatistics::latency_p50`]. The latest 1 024 are kept.
    pub fn take_latencies(&self) -> Vec<Duration> {
        self.inner.finished.take_latencies()
    }

    /// Waits up to `longest` for the end of the stream; returns how it ended, if it has.
    pub fn wait(&self, longest: Duration) -> Option<Stopped> {
        let state = lock(&self.inner.state);
        let waited = self.inner.ended.wait_timeout_while(state, longest, |state| !state.is_over);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.end.clone().filter(|_| state.is_over)
    }

    /// Ends the stream: notifies the server and delivers incomplete frames.
    ///
    /// The sink must neither call this nor drop the client, since it would wait for itself.
    pub fn stop(mut self) -> ClientStatistics {
        self.end();
        self.statistics()
    }

    fn end(&mut self) {
        self.inner.shared.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

/// Returns a largest size as it is sent: longer sides become [`SIDE_MAX`], and a size with a 0 in it is none.
fn valid_size(size: Option<(u32, u32)>) -> Option<(u32, u32)> {
    let (width, height) = size.filter(|&(width, height)| width > 0 && height > 0)?;
    Some((width.min(SIDE_MAX), height.min(SIDE_MAX)))
}

impl Drop for TextureClient {
    fn drop(&mut self) {
        self.end();
    }
}

impl Inner {
    /// Returns the shape of an offer's frames, or the reason to refuse it.
    fn shape_of(&self, offer: &Offer) -> Result<TextureShape, (Reason, String)> {
        let mode = offer.mode;
        let Some(format) = Format::from_number(mode.format) else {
            return Err((Reason::Format, format!("unknown format number {}", mode.format)));
        };
        let malformed = |error: &dyn fmt::Display| (Reason::Malformed, error.to_string());
        let layout =
            Layout::new(format, mode.width, mode.height).map_err(|error| malformed(&error))?;
        let colour = if offer.abilities.contains(Abilities::COLOUR) {
            Colour::from_code_points(offer.colour).ok_or_else(|| {
                let [primaries, transfer, matrix, rest] = offer.colour;
                malformed(&format!(
                    "unknown colours: primaries {primaries}, transfer {transfer}, matrix {matrix}, \
                     range and siting {rest}"
                ))
            })?
        } else {
            Colour::default()
        };
        let layout = layout.with_colour(colour);
        let max = self.options.frame_bytes_max;
        if layout.bytes() > max {
            let text = format!("frames of {} octets are over {max}", layout.bytes());
            return Err((Reason::Unsupported, text));
        }
        let planes = format.planes().len();
        let (units, none) = offer.units.split_at(planes.min(3));
        if none.iter().any(|&units| units > 0) {
            return Err(malformed(&format!("there are units for more planes than {format} has")));
        }
        let payload = offer.payload as usize;
        let shape = TextureShape::given(layout, units, offer.stripe_rows, payload);
        shape.map_err(|error| malformed(&error))
    }

    /// Uses this shape from the first frame of the offer on.
    fn begin(
        &self,
        shape: TextureShape,
        offer: &Offer,
        threads: usize,
    ) -> Result<(), (Reason, String)> {
        let recovery = offer.abilities.contains(Abilities::RECOVERY);
        let rate = offer.mode.rate;
        let options = AssemblyOptions {
            slots: self.slots(&shape, recovery.then_some(rate)),
            reliable: offer.transport == Transport::Tcp,
            recovery: recovery && offer.transport.has_datagrams(),
            fec: offer.abilities.contains(Abilities::FEC) && offer.transport.has_datagrams(),
            packing: offer.abilities.contains(Abilities::PACKING),
            first_frame: offer.first_frame,
            deadline_min: deadline_min(self.options.deadline_min, rate),
            deadline_max: self.deadline_max(),
        };
        if options.fec {
            // The tables that all decoders share take long to compute, and no packet should wait for them.
            drop(Decoder::new());
        }
        let past = self.shared.frames().map(|frames| frames.statistics()).unwrap_or_default();
        let frames = Frames::new(
            (shape.clone(), threads),
            options,
            self.sink.clone(),
            (self.finished.clone(), self.shared.control.clone(), self.shared.reading.clone()),
        );
        let frames = frames.map_err(|why| (Reason::Unsupported, why))?;
        {
            let mut state = lock(&self.state);
            state.shape = Some(shape);
            state.rate = Some(offer.mode.rate);
            state.transport = Some(offer.transport);
            state.is_scalable = offer.abilities.contains(Abilities::SIZES);
            state.past = sum(state.past, past);
        }
        self.shared.set_frames(Arc::new(frames));
        Ok(())
    }

    /// Returns the session of all units' streams, if there is one.
    fn session(&self) -> Option<Session> {
        lock(&self.state).session.clone()
    }

    /// Opens the session of all units' streams, so that they agree on keys once.
    fn open_session(&self, server: SocketAddr) -> Result<Session, TextureError> {
        let session = Context::new().session(&server.ip().to_canonical().to_string())?;
        lock(&self.state).session = Some(session.clone());
        Ok(session)
    }

    /// Returns the time limit for connections to the server.
    fn connect_timeout(&self) -> Duration {
        self.options.connect_timeout.min(TIMEOUT_MAX)
    }

    /// Returns the longest wait for missing packets.
    fn deadline_max(&self) -> Duration {
        self.options.deadline_max.min(TIMEOUT_MAX)
    }

    /// Returns the number of frames in memory; at `rate`, missing packets are requested.
    fn slots(&self, shape: &TextureShape, rate: Option<FrameRate>) -> usize {
        match (self.options.slots, rate) {
            (0, None) => SLOTS,
            (0, Some(rate)) => {
                let waits = (self.round_trip().min(TIMEOUT_MAX) * 3 / 2 + REQUEST_TIME) * REQUESTS;
                let waits = waits.min(self.deadline_max());
                SLOTS + slots_for(waits, interval(rate), shape.layout().bytes())
            }
            (slots, _) => slots,
        }
    }

    /// Returns the shortest known time of an answer of the server.
    fn round_trip(&self) -> Duration {
        let measured = lock(&self.state).clock.map(|clock| clock.round_trip);
        measured.map_or(self.round_trip, |measured| measured.min(self.round_trip))
    }

    /// Returns the time of an answer of the server as it was measured. Until it was, it is the time that
    /// the connection took, which something in between may have accepted.
    fn measured_round_trip(&self) -> Duration {
        lock(&self.state).clock.map_or(self.round_trip, |clock| clock.round_trip)
    }

    /// Returns whether the transport is lossless.
    fn is_reliable(&self) -> bool {
        lock(&self.state).transport == Some(Transport::Tcp)
    }

    fn take_change(&self) -> Option<Change> {
        lock(&self.state).change.take()
    }

    fn note_dropped(&self, dropped: u64) {
        lock(&self.state).dropped = dropped;
    }

    fn note_clock(&self, clock: ClockEstimate) {
        lock(&self.state).clock = Some(clock);
    }

    fn note_end(&self, stopped: Stopped) {
        lock(&self.state).end.get_or_insert(stopped);
    }

    /// Reports the end; all threads but the caller's have ended.
    fn finish(&self) {
        if self.shared.frames().is_some() {
            self.sink.end();
        }
        self.note_over();
    }

    /// Records that the sink panicked, also if the server has ended the stream meanwhile.
    fn note_panic(&self) {
        let (by, reason, text) =
            (StoppedBy::Own, Reason::Unsupported, "the sink panicked".to_owned());
        lock(&self.state).end = Some(Stopped { by, reason, text: text.clone() });
        self.shared.fail(text);
    }

    /// Marks the stream as over.
    fn note_over(&self) {
        let mut state = lock(&self.state);
        let default_end =
            || Stopped { by: StoppedBy::Own, reason: Reason::Ended, text: String::new() };
        state.end.get_or_insert_with(default_end);
        state.is_over = true;
        self.ended.notify_all();
    }

    /// Returns the counts of all frames so far.
    fn counts(&self) -> AssemblyStatistics {
        let now = self.shared.frames().map(|frames| frames.statistics()).unwrap_or_default();
        sum(lock(&self.state).past, now)
    }

    fn statistics(&self) -> ClientStatistics {
        let all = self.counts();
        let latencies = self.finished.latencies();
        let state = lock(&self.state);
        ClientStatistics {
            frames_whole: all.frames_whole,
            frames_damaged: all.frames_damaged,
            frames_lost: all.frames_lost,
            frames_dropped: state.dropped,
            tiles_concealed: self.finished.tiles_concealed(),
            packets: all.packets,
            packets_lost: all.packets_lost,
            packets_duplicate: all.packets_duplicate,
            packets_late: all.packets_late,
            packets_invalid: all.packets_invalid,
            packets_requested: all.packets_requested,
            packets_recovered: all.packets_recovered,
            packets_repaired: all.packets_repaired,
            repairs: all.repairs,
            octets: self.shared.octets(),
            latency_p50: latencies.p50,
            latency_p99: latencies.p99,
            latency_error: state.clock.map(|clock| clock.error),
            stripes_unpacked: all.stripes_unpacked,
            stripes_unchanged: all.stripes_unchanged,
            stripes_stale: all.stripes_stale,
        }
    }
}

/// Returns the number of further frames of `bytes` that arrive while a frame waits for packets.
///
/// Without further ones, one frame arrives while another waits, whose last packets arrive a tenth of an
/// interval before the next frame.
fn slots_for(waits: Duration, interval: Duration, bytes: usize) -> usize {
    let tenths = waits.as_nanos().saturating_mul(10).div_ceil(interval.as_nanos().max(1));
    let further = usize::try_from(tenths.saturating_sub(11).div_ceil(10)).unwrap_or(usize::MAX);
    further.min(SLOTS_MAX - SLOTS).min(SLOTS_BYTES_MAX / bytes.max(1))
}

/// Returns the shortest wait for missing packets.
fn deadline_min(wished: Duration, rate: FrameRate) -> Duration {
    if !wished.is_zero() {
        return wished;
    }
    interval(rate).clamp(Duration::from_millis(2), Duration::from_millis(100))
}

/// Returns the interval between frames.
fn interval(rate: FrameRate) -> Duration {
    Duration::from_secs(u64::from(rate.denominator)) / rate.numerator.max(1)
}

fn sum(a: AssemblyStatistics, b: AssemblyStatistics) -> AssemblyStatistics {
    AssemblyStatistics {
        frames_whole: a.frames_whole.saturating_add(b.frames_whole),
        frames_damaged: a.frames_damaged.saturating_add(b.frames_damaged),
        frames_lost: a.frames_lost.saturating_add(b.frames_lost),
        packets: a.packets.saturating_add(b.packets),
        packets_lost: a.packets_lost.saturating_add(b.packets_lost),
        packets_duplicate: a.packets_duplicate.saturating_add(b.packets_duplicate),
        packets_late: a.packets_late.saturating_add(b.packets_late),
        packets_invalid: a.packets_invalid.saturating_add(b.packets_invalid),
        packets_requested: a.packets_requested.saturating_add(b.packets_requested),
        packets_recovered: a.packets_recovered.saturating_add(b.packets_recovered),
        packets_repaired: a.packets_repaired.saturating_add(b.packets_repaired),
        repaired_late: a.repaired_late.saturating_add(b.repaired_late),
        repairs: a.repairs.saturating_add(b.repairs),
        stripes_unpacked: a.stripes_unpacked.saturating_add(b.stripes_unpacked),
        stripes_unchanged: a.stripes_unchanged.saturating_add(b.stripes_unchanged),
        stripes_stale: a.stripes_stale.saturating_add(b.stripes_stale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_memory_suffice_for_those_that_arrive_during_three_round_trips() {
        let further = |millis, fps, mebibytes: usize| {
            let interval = Duration::from_secs(1) / fps;
            slots_for(Duration::from_millis(millis), interval, mebibytes << 20)
        };
        assert_eq!(further(9, 60, 4), 0);
        assert_eq!(further(69, 60, 4), 4);
        assert_eq!(further(100, 25, 4), 2);
        assert_eq!(further(100, 240, 4), 5, "8 in all");
        assert_eq!((further(100, 240, 100), further(100, 240, 1_000)), (2, 0));
        assert_eq!(slots_for(Duration::MAX, Duration::ZERO, 0), 5);
    }
}
