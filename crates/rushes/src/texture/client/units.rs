//! The threads that receive: one for each unit's socket.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rushes_delivery::control::Reason;
use rushes_delivery::{
    CREDIT_BYTES, Creditor, HEADER_BYTES, PACKING_BYTES, PackedClaim, PackedPlace, Place,
    UnitHeader,
};
use rushes_net::{Interest, Read, TcpSocket, UdpSocket, Waker};
use rushes_proto::payload::PackedFrames;
use rushes_proto::stream::Discard;

use super::super::rtp::PendingStream;
use super::super::{lock, transient};
use super::frames::{Frames, Reception};
use super::reading::Reading;
use crate::media::MediaStream;

/// Longest wait of a thread before it checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The same for waits that cannot be woken.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// State shared by the receiving threads of a client.
pub(super) struct Shared {
    /// The frames of the current shape; `None` before the first.
    frames: Mutex<Option<Arc<Frames>>>,
    stopped: AtomicBool,
    failure: Mutex<Option<(Reason, String)>>,
    /// When the server closed a unit's connection.
    closed_at: Mutex<Option<Instant>>,
    octets: AtomicU64,
    pub(super) reading: Arc<Reading>,
    /// Wakes the thread of the control connection.
    pub(super) control: Arc<Waker>,
}

impl Shared {
    pub(super) fn new(control: Waker) -> Self {
        Self {
            frames: Mutex::new(None),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
            closed_at: Mutex::new(None),
            octets: AtomicU64::new(0),
            reading: Arc::default(),
            control: Arc::new(control),
        }
    }

    pub(super) fn frames(&self) -> Option<Arc<Frames>> {
        lock(&self.frames).clone()
    }

    pub(super) fn set_frames(&self, frames: Arc<Frames>) {
        *lock(&self.frames) = Some(frames);
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.control.wake();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Records the failure of a unit, which ends the stream.
    pub(super) fn fail(&self, why: String) {
        self.fail_for(Reason::Unsupported, why);
    }

    fn fail_for(&self, reason: Reason, why: String) {
        lock(&self.failure).get_or_insert((reason, why));
        self.control.wake();
    }

    pub(super) fn failure(&self) -> Option<(Reason, String)> {
        lock(&self.failure).clone()
    }

    /// Records the end of a unit's connection, whose reason the control connection should report.
    fn close(&self) {
        lock(&self.closed_at).get_or_insert_with(Instant::now);
        self.control.wake();
    }

    /// Returns when the server closed a unit's connection, or `None` if it is open.
    pub(super) fn closed_at(&self) -> Option<Instant> {
        *lock(&self.closed_at)
    }

    /// Returns the number of octets received, including headers.
    pub(super) fn octets(&self) -> u64 {
        self.octets.load(Ordering::Relaxed)
    }
}

/// Receives datagrams from an address until the client stops, and sends credits there, if there is a creditor.
pub(super) fn receive_datagrams(
    (shared, unit): (&Shared, usize),
    socket: &UdpSocket,
    (server, mut creditor): (SocketAddr, Option<Creditor>),
    waker: &Waker,
) {
    let mut arena = socket.arena();
    let mut queue = socket.send_queue();
    let has_fec = shared.frames().is_some_and(|frames| frames.has_fec());
    let mut reception = Reception::new(has_fec);
    let stopped = || shared.is_stopped();
    while !stopped() {
        let due = shared.frames().and_then(|frames| frames.poll_timeout(Some(unit)));
        let began = Instant::now();
        let deadline = due.unwrap_or(began + CHECK_INTERVAL);
        let datagrams = match socket.receive(&mut arena, deadline, Some(waker)) {
            Ok(datagrams) => datagrams,
            Err(error) if transient::of_socket(&error) => continue,
            Err(error) => return shared.fail(error.to_string()),
        };
        // The frames may have changed meanwhile.
        let Some(frames) = shared.frames() else { continue };
        let is_drained = datagrams.is_drained();
        let (mut octets, mut latest) = (0, None::<UnitHeader>);
        // Any host can send to a group; only the server's packets are read.
        let is_of_server =
            |from: &SocketAddr| (from.ip(), from.port()) == (server.ip(), server.port());
        let datagrams = datagrams.filter(|it| creditor.is_some() || is_of_server(it.from));
        let packets = datagrams.map(|datagram| {
            octets += datagram.data.len();
            let header = datagram.data.first_chunk().map(|it| UnitHeader::parse(*it));
            // Credits name packets that were sent in order, by which the server knows what arrived.
            latest = header.filter(|it| frames.is_in_order(*it)).or(latest);
            &*datagram.data
        });
        frames.take(Some(unit), packets, (Some(&mut reception), &stopped));
        shared.octets.fetch_add(octets as u64, Ordering::Relaxed);
        let credit = latest.zip(creditor.as_mut());
        if let Some(credit) = credit.and_then(|(latest, creditor)| creditor.note(latest, octets)) {
            let lengths = [CREDIT_BYTES as u16];
            // A lost credit is followed by others.
            let _ = socket.send(&mut queue, &credit.write(), &lengths, server, Instant::now());
        }
        // Packets that wait in the socket are read before their frame ends.
        if due.is_some_and(|due| due <= began) {
            frames.handle_timeout(began, is_drained.then_some(unit));
        }
    }
}

/// Receives chunks until the client or the server stops.
pub(super) fn receive_chunks(shared: &Shared, socket: &TcpSocket, waker: &Waker) {
    let mut chunks = Chunks::default();
    let mut notified = 1;
    let stopped = || shared.is_stopped();
    while !stopped() {
        match chunks.receive(shared, socket, &stopped) {
            Ok(Progress::Some) => {}
            Ok(Progress::None) => {
                // The thread wakes once for a chunk, not for each part of it.
                let wanted = chunks.wanted();
                if wanted != notified {
                    socket.set_low_water(wanted);
                    notified = wanted;
                }
                let deadline = Instant::now() + CHECK_INTERVAL;
                if let Err(error) = socket.wait(Interest::Readable, Some(deadline), Some(waker)) {
                    return shared.fail(error.to_string());
                }
            }
            Ok(Progress::End) => return shared.close(),
            Err(why) => return shared.fail(why),
        }
    }
}

/// The state of the chunk being read.
#[derive(Default)]
struct Chunks {
    /// The header, and the packing of a packed stripe.
    header: [u8; HEADER_BYTES + PACKING_BYTES],
    header_filled: usize,
    /// Octets of the header that is being read beyond those of any other: the packing.
    has_packing: bool,
    /// The place of the chunk's octets, and the number of octets read.
    open: Option<(Arc<Frames>, Open, usize)>,
}

/// The place of a chunk's octets.
enum Open {
    /// In the frame, with the number of the packet.
    Plain(Place, u32),
    /// In the stage.
    Staged(PackedPlace),
}

impl Open {
    fn len(&self) -> usize {
        match self {
            Self::Plain(place, _) => place.bytes.len(),
            Self::Staged(place) => place.bytes.len(),
        }
    }

    fn fill<T>(&self, frames: &Frames, write: impl FnOnce(&mut [u8]) -> T) -> T {
        match self {
            Self::Plain(place, _) => frames.fill(place, write),
            Self::Staged(place) => frames.fill_stage(place, write),
        }
    }

    /// Records that all octets are there; returns false if they are not those of a stripe.
    fn land(&self, frames: &Frames) -> bool {
        match self {
            Self::Plain(place, _) => {
                frames.land(place.slot, place.unit, 1);
                true
            }
            Self::Staged(place) => frames.land_staged(place),
        }
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        match self.open.take() {
            Some((frames, Open::Plain(place, index), _)) => frames.abandon(&place, index),
            Some((frames, Open::Staged(place), _)) => frames.abandon_staged(&place),
            None => {}
        }
    }
}

enum Progress {
    Some,
    None,
    End,
}

impl Chunks {
    /// Returns the number of octets missing from the header or chunk being read.
    fn wanted(&self) -> usize {
        let header = self.header_len() - self.header_filled;
        self.open.as_ref().map_or(header, |(_, place, filled)| place.len() - filled)
    }

    fn header_len(&self) -> usize {
        HEADER_BYTES + if self.has_packing { PACKING_BYTES } else { 0 }
    }

    /// Reads once.
    fn receive(
        &mut self,
        shared: &Shared,
        socket: &TcpSocket,
        stopped: &impl Fn() -> bool,
    ) -> Result<Progress, String> {
        let Some((frames, place, filled)) = &mut self.open else {
            return self.receive_header(shared, socket, stopped);
        };
        let read = place.fill(frames, |octets| socket.read(&mut octets[*filled..]));
        let count = match read.map_err(|error| error.to_string())? {
            Read::Octets(count) => count,
            Read::Nothing => return Ok(Progress::None),
            Read::End => return Err("the server closed a connection within a frame".into()),
        };
        *filled += count;
        shared.octets.fetch_add(count as u64, Ordering::Relaxed);
        if *filled == place.len() {
            let (frames, place, _) = self.open.take().into_iter().next().ok_or("no chunk")?;
            if !place.land(&frames) {
                return Err("the server sent a packed stripe that cannot be unpacked".into());
            }
        }
        Ok(Progress::Some)
    }

    fn receive_header(
        &mut self,
        shared: &Shared,
        socket: &TcpSocket,
        stopped: &impl Fn() -> bool,
    ) -> Result<Progress, String> {
        let len = self.header_len();
        let into = &mut self.header[self.header_filled..len];
        match socket.read(into).map_err(|error| error.to_string())? {
            Read::Octets(count) => self.header_filled += count,
            Read::Nothing => return Ok(Progress::None),
            Read::End if self.header_filled == 0 => return Ok(Progress::End),
            Read::End => return Err("the server closed a connection within a frame".into()),
        }
        if self.header_filled < len {
            return Ok(Progress::Some);
        }
        let [a, b, c, d, packing @ ..] = self.header;
        let header = UnitHeader::parse([a, b, c, d]);
        let frames = shared.frames().ok_or("the server sent data before the stream began")?;
        if !self.has_packing && frames.is_packed(header).is_some() {
            self.has_packing = true;
            return Ok(Progress::Some);
        }
        let is_packed = std::mem::take(&mut self.has_packing);
        self.header_filled = 0;
        let open = if is_packed {
            let claimed = frames.claim_packed(header, packing, stopped);
            claimed.map(|claimed| match claimed {
                PackedClaim::Stage(place) => Some(Open::Staged(place)),
                PackedClaim::Unchanged(_) | PackedClaim::Nothing(_) => None,
            })
        } else {
            frames.claim(header, stopped).map(|place| Some(Open::Plain(place, header.index)))
        };
        match open {
            Some(open) => self.open = open.map(|open| (frames, open, 0)),
            // The chunk's length is unknown, so the rest of the connection cannot be parsed.
            None if stopped() => {}
            None => return Err("the server sent a chunk that the frame does not have".into()),
        }
        Ok(Progress::Some)
    }
}

/// Receives packets of a stream until the client stops.
pub(super) fn receive_stream(shared: &Shared, pending: PendingStream) {
    let stopped = || shared.is_stopped();
    let mut stream = match pending.wait(&stopped) {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => return shared.fail(error.to_string()),
    };
    // The thread of the control connection seals it under the streams' keys.
    shared.control.wake();
    let mut packets = PackedFrames::new();
    while !stopped() {
        let due = shared.frames().and_then(|frames| frames.poll_timeout(None));
        let check = Instant::now() + POLL_INTERVAL;
        let until = due.map_or(check, |due| due.min(check));
        match stream.receiver().and_then(|receiver| receiver.pull_packed(until, &mut packets)) {
            Err(error) if !transient::of_stream(&error) => return shared.fail(error.to_string()),
            Ok(()) | Err(_) => {}
        }
        if packets.is_empty() && is_offered_keys(&stream) {
            let why = "the server agrees on keys (ZRTP), and this side does not";
            return shared.fail_for(Reason::Key, why.into());
        }
        let Some(frames) = shared.frames() else { continue };
        frames.take(None, packets.iter(), (None, &stopped));
        shared.octets.fetch_add(packets.octets() as u64, Ordering::Relaxed);
        if due.is_some() {
            frames.handle_timeout(Instant::now(), None);
        }
    }
}

/// Returns whether the server sent ZRTP although this side has no key agreement. Packets of
/// strangers have no effect after the stream has begun.
fn is_offered_keys(stream: &MediaStream) -> bool {
    let receive = stream.statistics().receive;
    receive.packets == 0 && receive.discards.iter().any(|(reason, _)| reason == Discard::Zrtp)
}
