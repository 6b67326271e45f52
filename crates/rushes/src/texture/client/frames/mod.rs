//! Places packets from all threads in the sink's memory.

mod claim;
mod connection;
mod hand_over;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rushes_delivery::{
    Assembly, AssemblyOptions, AssemblyStatistics, Decoder, HEADER_BYTES, Landed, PACKING_BYTES,
    PackedPlace, Place, UnitHeader,
};
use rushes_net::Waker;

use self::claim::{Claimed, claim, find_gaps};
use self::hand_over::Handover;
use super::super::lock;
use super::super::shape::TextureShape;
use super::super::sink::{Slot, TextureSink};
use super::finished::Finished;
use super::reading::Reading;

pub(super) use self::claim::Reception;

/// Datagrams claimed under one lock.
const BATCH: usize = 64;

/// Interval at which a thread checks for free memory.
const ROOM_PAUSE: Duration = Duration::from_millis(2);

/// The same while a frame is being delivered.
const HANDOVER_PAUSE: Duration = Duration::from_micros(200);

/// Time limit for a deadlock, in which all units wait for memory that only their own packets can
/// free.
const STUCK_MAX: Duration = Duration::from_secs(5);

/// Frames of one shape that are being received into a sink.
pub(super) struct Frames {
    shape: TextureShape,
    assembly: Mutex<Assembly>,
    /// Notified when a slot becomes free, or a tile has been reported.
    room: Condvar,
    memory: Vec<Slot>,
    /// The stage of each slot and unit: the octets of packed stripes. Empty if there are none.
    stages: Vec<Vec<Mutex<Vec<u8>>>>,
    /// Running reports of tiles of each slot to the sink; changed under the assembly's lock.
    tile_reports: Vec<AtomicU32>,
    /// Whether the transport is lossless: frames have no deadlines, so that only packets free
    /// memory.
    is_reliable: bool,
    /// Whether the server may send repair packets.
    has_fec: bool,
    /// Units that wait for memory before they continue to read.
    blocked: AtomicUsize,
    /// Number of receiving threads.
    threads: usize,
    sink: Arc<dyn TextureSink>,
    /// Whether the sink has memory of another shape already; late tiles and frames are then not
    /// reported.
    is_over: AtomicBool,
    /// Whether the sink is handling a frame; changed under the assembly's lock.
    is_delivering: AtomicBool,
    /// Locked by the thread that is delivering frames.
    handover: Mutex<Handover>,
    finished: Arc<Finished>,
    /// Wakes the thread that requests missing packets.
    requester: Arc<Waker>,
    reading: Arc<Reading>,
}

impl Frames {
    pub(super) fn new(
        (shape, threads): (TextureShape, usize),
        options: AssemblyOptions,
        sink: Arc<dyn TextureSink>,
        (finished, requester, reading): (Arc<Finished>, Arc<Waker>, Arc<Reading>),
    ) -> Result<Self, String> {
        let (is_reliable, has_fec) = (options.reliable, options.fec);
        let has_packing = options.packing && shape.plan().can_pack();
        let assembly = Assembly::new(shape.plan().clone(), options);
        let memory = sink.begin(&shape, assembly.slots())?;
        let right = memory.len() >= assembly.slots()
            && memory.iter().all(|frame| frame.len() == shape.tiling().tiles().len());
        if !right {
            return Err("the sink returned no region for a unit of a frame".into());
        }
        let mut slots: Vec<Slot> = Vec::new();
        for frame in memory {
            slots.push(frame.into_iter().map(Mutex::new).collect());
        }
        for slot in &slots {
            for (tile, region) in shape.tiling().tiles().iter().zip(slot) {
                if lock(region).octets().len() != tile.bytes.len() {
                    return Err("the sink returned a region of the wrong size".into());
                }
            }
        }
        let stage = |tile: &rushes_texture::Tile| Mutex::new(vec![0; tile.bytes.len()]);
        let staged = if has_packing { slots.len() } else { 0 };
        let stages = (0..staged).map(|_| shape.tiling().tiles().iter().map(stage).collect());
        Ok(Self {
            stages: stages.collect(),
            shape,
            tile_reports: slots.iter().map(|_| AtomicU32::new(0)).collect(),
            assembly: Mutex::new(assembly),
            room: Condvar::new(),
            blocked: AtomicUsize::new(0),
            is_reliable,
            has_fec,
            threads,
            memory: slots,
            sink,
            is_over: AtomicBool::new(false),
            is_delivering: AtomicBool::new(false),
            handover: Mutex::default(),
            finished,
            requester,
            reading,
        })
    }

    pub(super) fn statistics(&self) -> AssemblyStatistics {
        lock(&self.assembly).statistics()
    }

    /// Returns whether this is the header of a packet that was sent in order.
    pub(super) fn is_in_order(&self, header: UnitHeader) -> bool {
        let plan = self.shape.plan();
        header.index < plan.packets() || self.is_packed(header).is_some_and(|again| !again)
    }

    /// Returns whether a packed stripe's packet was sent again; `None` if it is not the header of one.
    pub(super) fn is_packed(&self, header: UnitHeader) -> Option<bool> {
        let packed = self.shape.plan().packed_number(header.index);
        packed.filter(|_| !self.stages.is_empty()).map(|(_, again)| again)
    }

    /// Returns whether the server may send repair packets.
    pub(super) fn has_fec(&self) -> bool {
        self.has_fec
    }

    /// Returns how many requests of a packet, one after the other, can be answered in time for its frame.
    pub(super) fn answers_in_time(&self, round_trip: Duration) -> u8 {
        lock(&self.assembly).answers_in_time(round_trip)
    }

    /// Returns whether every frame before this one has been delivered.
    pub(super) fn is_past(&self, frame: u64) -> bool {
        let assembly = lock(&self.assembly);
        assembly.oldest() >= frame && assembly.is_idle()
    }

    /// Returns the number of the first frame that has not ended.
    pub(super) fn oldest(&self) -> u64 {
        lock(&self.assembly).oldest()
    }

    /// Releases a claimed place, which will not be filled.
    pub(super) fn abandon(&self, place: &Place, index: u32) {
        let mut assembly = lock(&self.assembly);
        assembly.unclaim(place.slot, index);
        let is_ready = assembly.is_ready();
        drop(assembly);
        if is_ready {
            self.hand_over();
        }
    }

    /// Records that the server has sent this frame.
    pub(super) fn note_announced(&self, frame: u64) {
        lock(&self.assembly).note_announced(Instant::now(), frame);
    }

    /// Returns when the thread of `unit` is to call [`Frames::handle_timeout`]; `None` while a frame is being
    /// delivered, because the thread that does so does not read its socket.
    pub(super) fn poll_timeout(&self, unit: Option<usize>) -> Option<Instant> {
        let assembly = lock(&self.assembly);
        if self.is_delivering.load(Ordering::Relaxed) {
            return None;
        }
        let deadline = assembly.poll_timeout()?;
        Some(unit.map_or(deadline, |unit| self.reading.due(unit, deadline)))
    }

    /// Returns when to call [`Frames::poll_requests`]; `None` if no packet is known to be missing.
    pub(super) fn poll_requests_timeout(&self) -> Option<Instant> {
        lock(&self.assembly).poll_requests_timeout()
    }

    /// Writes packets of one frame that are to be requested to `packets`; returns the frame's number,
    /// or `None` if there are no more.
    pub(super) fn poll_requests(
        &self,
        now: Instant,
        round_trip: Duration,
        packets: &mut Vec<Range<u32>>,
    ) -> Option<u64> {
        lock(&self.assembly).poll_requests(now, round_trip, packets)
    }

    /// Delivers the frames whose deadline has passed, unless a frame is being delivered. `read` is a unit for which
    /// they need not wait: it has read everything that had arrived at `now`, or reads nothing until memory is free.
    pub(super) fn handle_timeout(&self, now: Instant, read: Option<usize>) {
        if let Some(unit) = read {
            self.reading.note(unit, now);
        }
        let mut assembly = lock(&self.assembly);
        if self.is_delivering.load(Ordering::Relaxed) {
            return;
        }
        assembly.note_late(now);
        let ended = assembly.handle_timeout(self.reading.until(now));
        let is_missing = assembly.poll_requests_timeout().is_some_and(|due| due <= now);
        let passed = assembly.poll_timeout().filter(|deadline| *deadline <= now);
        drop(assembly);
        if is_missing {
            self.requester.wake();
        }
        if let Some(deadline) = passed {
            self.reading.wake(deadline);
        }
        if ended {
            self.hand_over();
        }
    }

    /// Returns whether the sink is being called, or packets wait for memory that a deadline will
    /// free.
    pub(super) fn is_busy(&self) -> bool {
        let is_reporting = |slot: &AtomicU32| slot.load(Ordering::Relaxed) > 0;
        let waits = !self.is_reliable && self.blocked.load(Ordering::Relaxed) > 0;
        let assembly = lock(&self.assembly);
        let is_delivering = self.is_delivering.load(Ordering::Relaxed) || assembly.is_ready();
        waits || is_delivering || self.tile_reports.iter().any(is_reporting)
    }

    /// Delivers every frame being received; the other frames before `sent` count as lost.
    pub(super) fn finish(&self, sent: u64) {
        let ended = lock(&self.assembly).finish(sent);
        if ended {
            self.hand_over();
        }
    }

    /// Ends the calls to the sink; running ones are completed.
    pub(super) fn detach_sink(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Puts packets of a socket, each after its header, in place. `unit` is that of deadlines that wait for its
    /// thread; `socket` finds packets that are missing, and computes them from repair packets.
    ///
    /// Discards the rest once `stopped` returns true.
    pub(super) fn take<'a>(
        &self,
        unit: Option<usize>,
        mut packets: impl Iterator<Item = &'a [u8]>,
        (mut socket, stopped): (Option<&mut Reception>, &impl Fn() -> bool),
    ) {
        let mut batch: [Option<Placed<'_>>; BATCH] = [const { None }; BATCH];
        let mut refused = None;
        loop {
            let now = Instant::now();
            let mut claimed = 0;
            let (mut blocked, mut is_missing, mut is_over) = (false, false, false);
            {
                let mut assembly = lock(&self.assembly);
                while claimed < BATCH && !blocked {
                    let Some(packet) = refused.take().or_else(|| packets.next()) else { break };
                    let finder = socket.as_deref_mut().map(|socket| &mut socket.finder);
                    match claim(&mut assembly, now, packet) {
                        Claimed::Packet(place) => {
                            batch[claimed] = Some(Placed::Plain(place, &packet[HEADER_BYTES..]));
                            claimed += 1;
                            is_missing |= find_gaps(&mut assembly, now, (finder, packet));
                        }
                        Claimed::Staged(place) => {
                            let octets = &packet[HEADER_BYTES + PACKING_BYTES..];
                            batch[claimed] = Some(Placed::Staged(place, octets));
                            claimed += 1;
                            is_missing |= find_gaps(&mut assembly, now, (finder, packet));
                        }
                        Claimed::Unchanged(landed) => {
                            is_over |= landed.ended;
                            is_missing |= find_gaps(&mut assembly, now, (finder, packet));
                        }
                        Claimed::Repair => {
                            is_missing |= find_gaps(&mut assembly, now, (finder, packet));
                        }
                        Claimed::Nothing => {}
                        Claimed::Blocked => (refused, blocked) = (Some(packet), true),
                    }
                }
            }
            if is_missing {
                self.requester.wake();
            }
            self.place(&batch[..claimed]);
            if is_over {
                self.hand_over();
            }
            if let Some(decoder) = socket.as_deref_mut().and_then(|it| it.decoder.as_mut()) {
                self.repair(decoder);
            }
            if blocked {
                self.blocked.fetch_add(1, Ordering::Relaxed);
                let continues = self.wait_for_room(unit, stopped);
                self.blocked.fetch_sub(1, Ordering::Relaxed);
                if !continues {
                    return;
                }
            }
            if !blocked && claimed < BATCH {
                return;
            }
        }
    }

    /// Copies claimed packets, under one lock for each run of a unit.
    fn place(&self, batch: &[Option<Placed<'_>>]) {
        let mut at = 0;
        while let Some(Some(first)) = batch.get(at) {
            let first = match first {
                Placed::Plain(place, _) => place,
                Placed::Staged(place, octets) => {
                    self.fill_stage(place, |stage| stage.copy_from_slice(octets));
                    // A stripe that cannot be unpacked counts as lost.
                    self.land_staged(place);
                    at += 1;
                    continue;
                }
            };
            let (slot, unit) = (first.slot, first.unit);
            let mut packets = 0;
            {
                let mut region = lock(&self.memory[slot][unit]);
                let octets = region.octets();
                while let Some(Some(Placed::Plain(place, from))) = batch.get(at + packets) {
                    if (place.slot, place.unit) != (slot, unit) {
                        break;
                    }
                    octets[place.bytes.clone()].copy_from_slice(from);
                    packets += 1;
                }
            }
            at += packets;
            self.land(slot, unit, packets as u32);
        }
    }

    /// Computes lost packets from the repair packets of their blocks, as far as these suffice.
    fn repair(&self, decoder: &mut Decoder) {
        loop {
            let Some(repair) = lock(&self.assembly).poll_repair(decoder) else { return };
            let mut region = lock(&self.memory[repair.slot][repair.unit]);
            let is_computed = decoder.repair(self.shape.plan(), &repair, region.octets());
            drop(region);
            self.land_by(repair.slot, repair.unit, |assembly| {
                assembly.land_repair(&repair, is_computed)
            });
        }
    }

    /// Records that packets of a unit are in place.
    pub(super) fn land(&self, slot: usize, unit: usize, packets: u32) {
        self.land_by(slot, unit, |assembly| assembly.land(slot, unit, packets));
    }

    fn land_by(&self, slot: usize, unit: usize, land: impl FnOnce(&mut Assembly) -> Landed) {
        let mut assembly = lock(&self.assembly);
        let landed = land(&mut assembly);
        self.tile_reports[slot].fetch_add(u32::from(landed.tile), Ordering::Relaxed);
        drop(assembly);
        if landed.tile {
            let _report = TileReport { frames: self, slot };
            lock(&self.memory[slot][unit]).filled();
            if !self.is_over() {
                self.sink.tile_ready(slot, unit);
            }
        }
        if landed.ended {
            self.hand_over();
        }
    }

    /// Waits for free memory; returns false when `stopped` returns true.
    ///
    /// Deadlines do not wait for `unit` meanwhile, which reads nothing until memory is free.
    fn wait_for_room(&self, unit: Option<usize>, stopped: &impl Fn() -> bool) -> bool {
        self.handle_timeout(Instant::now(), unit);
        if stopped() {
            return false;
        }
        let assembly = lock(&self.assembly);
        let pause = if assembly.is_ready() || self.is_delivering.load(Ordering::Relaxed) {
            // Another thread is delivering a frame to a sink that may be slow.
            HANDOVER_PAUSE
        } else {
            let due = assembly.poll_timeout();
            let due = due.map(|due| unit.map_or(due, |unit| self.reading.due(unit, due)));
            due.map_or(ROOM_PAUSE, |due| {
                due.saturating_duration_since(Instant::now()).min(ROOM_PAUSE)
            })
        };
        // Early wakeups do no harm: the caller checks again.
        drop(self.room.wait_timeout(assembly, pause));
        true
    }
}

/// A packet's octets, and their place.
enum Placed<'a> {
    Plain(Place, &'a [u8]),
    /// In the stage.
    Staged(PackedPlace, &'a [u8]),
}

/// Ends a tile's report to the sink when dropped, even by a panic.
struct TileReport<'a> {
    frames: &'a Frames,
    slot: usize,
}

impl Drop for TileReport<'_> {
    fn drop(&mut self) {
        let assembly = lock(&self.frames.assembly);
        self.frames.tile_reports[self.slot].fetch_sub(1, Ordering::Relaxed);
        drop(assembly);
        self.frames.room.notify_all();
    }
}
