//! Places packets from all threads in the sink's memory.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use rushes_delivery::{
    Assembly, AssemblyOptions, AssemblyStatistics, Claim, Decoder, Discard, Ending, Gap, GapFinder,
    HEADER_BYTES, Landed, PACKING_BYTES, PackedClaim, PackedLanded, PackedPlace, Place,
    RepairOutcome, UnitHeader,
};
use rushes_net::Waker;

use super::super::lock;
use super::super::packing::unpack;
use super::super::shape::TextureShape;
use super::super::sink::{Slot, TextureFrame, TextureSink};
use super::finished::Finished;
use super::reading::Reading;

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

    /// Claims the place of a packet whose octets follow. Returns `None` if the packet must be
    /// discarded.
    ///
    /// Waits for memory until `stopped` returns true.
    pub(super) fn claim(&self, header: UnitHeader, stopped: &impl Fn() -> bool) -> Option<Place> {
        let octets = self.shape.plan().locate(header.index)?.bytes.len();
        let claim = |assembly: &mut Assembly| match assembly.claim(Instant::now(), header, octets) {
            Claim::Place(place) => Ok(Some(place)),
            Claim::Discard(_) => Ok(None),
            Claim::Blocked => Err(()),
        };
        self.claim_with(claim, stopped)
    }

    /// Claims something, waiting for memory while `claim` fails.
    fn claim_with<T>(
        &self,
        claim: impl Fn(&mut Assembly) -> Result<Option<T>, ()>,
        stopped: &impl Fn() -> bool,
    ) -> Option<T> {
        if let Ok(claimed) = claim(&mut lock(&self.assembly)) {
            return claimed;
        }
        self.blocked.fetch_add(1, Ordering::Relaxed);
        let claimed = self.claim_when_free(claim, stopped);
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        claimed
    }

    fn claim_when_free<T>(
        &self,
        claim: impl Fn(&mut Assembly) -> Result<Option<T>, ()>,
        stopped: &impl Fn() -> bool,
    ) -> Option<T> {
        let mut stuck_since = None;
        while self.wait_for_room(None, stopped) {
            let now = Instant::now();
            let mut assembly = lock(&self.assembly);
            if let Ok(claimed) = claim(&mut assembly) {
                return claimed;
            }
            let all_waiting = self.blocked.load(Ordering::Relaxed) == self.threads;
            if !all_waiting || !assembly.is_waiting() {
                stuck_since = None;
            } else if *stuck_since.get_or_insert(now) + STUCK_MAX <= now {
                return None;
            }
        }
        None
    }

    /// Calls `write` with the memory of a claimed place.
    pub(super) fn fill<T>(&self, place: &Place, write: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut region = lock(&self.memory[place.slot][place.unit]);
        write(&mut region.octets()[place.bytes.clone()])
    }

    /// Claims the place of a packed stripe's packet, whose octets follow; tells how many. Returns `None` if
    /// the packet must be discarded.
    ///
    /// Waits for memory until `stopped` returns true.
    pub(super) fn claim_packed(
        &self,
        header: UnitHeader,
        packing: [u8; PACKING_BYTES],
        stopped: &impl Fn() -> bool,
    ) -> Option<PackedClaim> {
        let octets = lock(&self.assembly).packed_len(header, packing)?;
        let claim = |assembly: &mut Assembly| match assembly.claim_packed(
            Instant::now(),
            (header, packing),
            octets,
        ) {
            PackedClaim::Nothing(Claim::Blocked) => Err(()),
            PackedClaim::Nothing(_) => Ok(None),
            claimed => Ok(Some(claimed)),
        };
        let claimed = self.claim_with(claim, stopped)?;
        if let PackedClaim::Unchanged(Landed { ended: true, .. }) = claimed {
            self.hand_over();
        }
        Some(claimed)
    }

    /// Calls `write` with the place of a packet in the stage.
    pub(super) fn fill_stage<T>(
        &self,
        place: &PackedPlace,
        write: impl FnOnce(&mut [u8]) -> T,
    ) -> T {
        let mut stage = lock(&self.stages[place.slot][place.unit]);
        write(&mut stage[place.bytes.clone()])
    }

    /// Records that a packet's octets are in the stage; unpacks its stripe if they are the last ones.
    /// Returns false if that is impossible.
    pub(super) fn land_staged(&self, place: &PackedPlace) -> bool {
        let landed = lock(&self.assembly).land_packed(place);
        let unpacking = match landed {
            PackedLanded::Waiting(landed) => {
                if landed.ended {
                    self.hand_over();
                }
                return true;
            }
            PackedLanded::Unpack(unpacking) => unpacking,
        };
        let (slot, unit) = (place.slot, place.unit);
        let is_unpacked = {
            let stage = lock(&self.stages[slot][unit]);
            let mut region = lock(&self.memory[slot][unit]);
            let to = &mut region.octets()[unpacking.stripe.bytes.clone()];
            unpack(unpacking.packing, &stage[unpacking.staged.clone()], to)
        };
        self.land_by(slot, unit, |assembly| assembly.land_unpacked(&unpacking, is_unpacked));
        is_unpacked
    }

    /// Releases a claimed place of the stage, which will not be filled.
    pub(super) fn abandon_staged(&self, place: &PackedPlace) {
        let mut assembly = lock(&self.assembly);
        assembly.unclaim_packed(place);
        let is_ready = assembly.is_ready();
        drop(assembly);
        if is_ready {
            self.hand_over();
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

    /// Delivers the frames that have ended, unless another thread is doing so.
    fn hand_over(&self) {
        loop {
            let Some(mut handover) = try_lock(&self.handover) else { return };
            while let Some(ending) = self.next_ending(&mut handover) {
                let _delivery = Delivery { frames: self, slot: ending.slot };
                if !self.is_over() {
                    self.hand_over_one(ending, &handover);
                }
            }
            drop(handover);
            // Other threads left frames that ended meanwhile to this one.
            if !lock(&self.assembly).is_ready() {
                return;
            }
        }
    }

    fn next_ending(&self, handover: &mut Handover) -> Option<Ending> {
        let mut assembly = lock(&self.assembly);
        let ending = assembly.poll_ending()?;
        self.is_delivering.store(true, Ordering::Relaxed);
        let Handover { gaps, copies } = handover;
        gaps.clear();
        if !ending.whole {
            assembly.gaps(ending.slot, gaps);
        }
        assembly.kept(ending.slot, copies);
        copies.extend_from_slice(gaps);
        copies.sort_unstable_by_key(|copy| (copy.unit, copy.bytes.start));
        Some(ending)
    }

    /// Waits until other threads have reported their tiles of a slot to the sink.
    fn wait_for_tile_reports(&self, slot: usize) {
        let is_reporting = |_: &mut Assembly| self.tile_reports[slot].load(Ordering::Relaxed) > 0;
        drop(self.room.wait_while(lock(&self.assembly), is_reporting));
    }

    fn hand_over_one(&self, ending: Ending, handover: &Handover) {
        let Handover { gaps, copies } = handover;
        self.wait_for_tile_reports(ending.slot);
        let memory = &self.memory[ending.slot];
        let is_concealed = ending.previous.is_some_and(|previous| {
            !copies.is_empty() && self.sink.conceal(ending.slot, previous, copies)
        });
        for (at, gap) in copies.iter().enumerate() {
            let mut to = lock(&memory[gap.unit]);
            if !is_concealed {
                let octets = &mut to.octets()[gap.bytes.clone()];
                match ending.previous {
                    Some(slot) => {
                        let mut from = lock(&self.memory[slot][gap.unit]);
                        octets.copy_from_slice(&from.octets()[gap.bytes.clone()]);
                    }
                    None => octets.fill(0),
                }
            }
            if copies.get(at + 1).is_none_or(|next| next.unit != gap.unit) {
                to.filled();
                drop(to);
                self.sink.tile_ready(ending.slot, gap.unit);
            }
        }
        let done_at = Instant::now();
        let units_concealed = gaps.chunk_by(|one, next| one.unit == next.unit).count() as u64;
        self.finished.note(&ending, done_at, units_concealed);
        let shape = &self.shape;
        self.sink.frame_done(&TextureFrame { shape, ending, gaps, memory, done_at });
    }
}

/// What a frame takes from the one before.
#[derive(Default)]
struct Handover {
    /// Octets that did not arrive.
    gaps: Vec<Gap>,
    /// These, and those of unchanged stripes.
    copies: Vec<Gap>,
}

/// A packet's octets, and their place.
enum Placed<'a> {
    Plain(Place, &'a [u8]),
    /// In the stage.
    Staged(PackedPlace, &'a [u8]),
}

/// Ends a frame's delivery to the sink when dropped, even by a panic: deadlines count again.
struct Delivery<'a> {
    frames: &'a Frames,
    slot: usize,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let mut assembly = lock(&self.frames.assembly);
        assembly.release(Instant::now(), self.slot);
        self.frames.is_delivering.store(false, Ordering::Relaxed);
        // Missing packets of other frames may be due now.
        let is_missing = assembly.poll_requests_timeout().is_some();
        drop(assembly);
        if is_missing {
            self.frames.requester.wake();
        }
        self.frames.room.notify_all();
    }
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

/// What the packets of one socket show, and the memory to compute those that are missing.
pub(super) struct Reception {
    finder: GapFinder,
    decoder: Option<Decoder>,
}

impl Reception {
    /// Creates the state of a socket; the server may send repair packets if `has_fec`.
    pub(super) fn new(has_fec: bool) -> Self {
        Self { finder: GapFinder::new(has_fec), decoder: has_fec.then(Decoder::new) }
    }
}

/// What becomes of a packet.
enum Claimed {
    /// It has a place.
    Packet(Place),
    /// It has a place in the stage.
    Staged(PackedPlace),
    /// It tells its stripe as unchanged.
    Unchanged(Landed),
    /// It is a repair packet, which arrived for the first time.
    Repair,
    /// It is discarded.
    Nothing,
    /// There is no memory for it yet.
    Blocked,
}

fn claim(assembly: &mut Assembly, now: Instant, packet: &[u8]) -> Claimed {
    let (header, octets) = match packet.split_first_chunk::<HEADER_BYTES>() {
        Some((header, octets)) => (UnitHeader::parse(*header), octets),
        None => (UnitHeader { frame: 0, index: u32::MAX }, packet),
    };
    if assembly.is_repair(header) {
        return match assembly.take_repair(now, header, octets) {
            RepairOutcome::Kept | RepairOutcome::Discarded(Discard::Unneeded) => Claimed::Repair,
            RepairOutcome::Discarded(_) => Claimed::Nothing,
            RepairOutcome::Blocked => Claimed::Blocked,
        };
    }
    if assembly.is_packed(header)
        && let Some((packing, octets)) = octets.split_first_chunk()
    {
        return match assembly.claim_packed(now, (header, *packing), octets.len()) {
            PackedClaim::Stage(place) => Claimed::Staged(place),
            PackedClaim::Unchanged(landed) => Claimed::Unchanged(landed),
            PackedClaim::Nothing(Claim::Blocked) => Claimed::Blocked,
            PackedClaim::Nothing(_) => Claimed::Nothing,
        };
    }
    match assembly.claim(now, header, octets.len()) {
        Claim::Place(place) => Claimed::Packet(place),
        Claim::Discard(_) => Claimed::Nothing,
        Claim::Blocked => Claimed::Blocked,
    }
}

/// Notes the packets that are missing before one that arrived. Returns whether one may be due to be
/// requested earlier than any other.
fn find_gaps(
    assembly: &mut Assembly,
    now: Instant,
    (finder, packet): (Option<&mut GapFinder>, &[u8]),
) -> bool {
    let header = packet.first_chunk().map(|header| UnitHeader::parse(*header));
    let (Some(finder), Some(header)) = (finder, header) else { return false };
    let gaps = if assembly.is_in_order(header) {
        finder.handle_packet(assembly.plan(), assembly.unpacked(header))
    } else if assembly.is_repair(header) {
        finder.handle_repair(assembly.plan(), header)
    } else {
        None
    };
    gaps.is_some_and(|gaps| assembly.handle_gaps(now, gaps))
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
