//! Packets into the sink's memory, whichever thread they come by.

use std::sync::Arc;
use std::sync::Condvar;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::TryLockError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use rushes_proto::delivery::Assembly;
use rushes_proto::delivery::AssemblyOptions;
use rushes_proto::delivery::AssemblyStatistics;
use rushes_proto::delivery::Claim;
use rushes_proto::delivery::Ending;
use rushes_proto::delivery::Gap;
use rushes_proto::delivery::HEADER_BYTES;
use rushes_proto::delivery::Place;
use rushes_proto::delivery::UnitHeader;

use super::super::lock;
use super::super::shape::TextureShape;
use super::super::sink::Slot;
use super::super::sink::TextureFrame;
use super::super::sink::TextureSink;
use super::finished::Finished;

/// Datagrams that are claimed under one lock.
const BATCH: usize = 64;

/// How long a thread waits at a time for memory to become free.
const ROOM_PAUSE: Duration = Duration::from_millis(2);

/// The same, for a frame that is being handed over.
const HANDING_PAUSE: Duration = Duration::from_micros(200);

/// How long all units together may wait for memory that nothing but their own packets makes free.
const STUCK_MAX: Duration = Duration::from_secs(5);

/// The frames of one shape on their way into a sink.
pub(super) struct Frames {
    shape: TextureShape,
    assembly: Mutex<Assembly>,
    /// A slot became free.
    room: Condvar,
    memory: Vec<Slot>,
    /// Tiles of each memory that the sink is being told of; changed under the assembly's lock.
    telling: Vec<AtomicU32>,
    /// Whether there are no deadlines, and so nothing but packets makes memory free.
    is_reliable: bool,
    /// Units that wait for memory before they read on.
    blocked: AtomicUsize,
    /// Threads that receive.
    threads: usize,
    sink: Arc<dyn TextureSink>,
    /// The sink has memory of another shape by now: what is late is not told.
    is_over: AtomicBool,
    /// Whether the sink has a frame; changed under the assembly's lock.
    is_in_hand: AtomicBool,
    /// Held by the thread that hands frames over.
    handing: Mutex<Vec<Gap>>,
    finished: Arc<Finished>,
}

impl Frames {
    pub(super) fn new(
        (shape, threads): (TextureShape, usize),
        options: AssemblyOptions,
        sink: Arc<dyn TextureSink>,
        finished: Arc<Finished>,
    ) -> Result<Self, String> {
        let is_reliable = options.reliable;
        let assembly = Assembly::new(shape.plan().clone(), options);
        let memory = sink.begin(&shape, assembly.slots())?;
        let right = memory.len() >= assembly.slots()
            && memory.iter().all(|frame| frame.len() == shape.tiling().tiles().len());
        if !right {
            return Err("the sink gave no region for some unit of a frame".into());
        }
        let mut slots: Vec<Slot> = Vec::new();
        for frame in memory {
            slots.push(frame.into_iter().map(Mutex::new).collect());
        }
        for slot in &slots {
            for (tile, region) in shape.tiling().tiles().iter().zip(slot) {
                if lock(region).octets().len() != tile.bytes.len() {
                    return Err("the sink gave a region of the wrong size".into());
                }
            }
        }
        Ok(Self {
            shape,
            telling: slots.iter().map(|_| AtomicU32::new(0)).collect(),
            assembly: Mutex::new(assembly),
            room: Condvar::new(),
            blocked: AtomicUsize::new(0),
            is_reliable,
            threads,
            memory: slots,
            sink,
            is_over: AtomicBool::new(false),
            is_in_hand: AtomicBool::new(false),
            handing: Mutex::new(Vec::new()),
            finished,
        })
    }

    pub(super) fn statistics(&self) -> AssemblyStatistics {
        lock(&self.assembly).statistics()
    }

    /// Whether every frame before this one has been handed over.
    pub(super) fn is_past(&self, frame: u64) -> bool {
        let assembly = lock(&self.assembly);
        assembly.oldest() >= frame && assembly.is_idle()
    }

    /// The first frame that has not ended.
    pub(super) fn oldest(&self) -> u64 {
        lock(&self.assembly).oldest()
    }

    /// A claimed place will not be filled.
    pub(super) fn abandon(&self, place: &Place, index: u32) {
        let mut assembly = lock(&self.assembly);
        assembly.unclaim(place.slot, index);
        let is_ready = assembly.is_ready();
        drop(assembly);
        if is_ready {
            self.hand_over();
        }
    }

    /// The server has sent this frame.
    pub(super) fn hear_of(&self, frame: u64) {
        lock(&self.assembly).hear_of(Instant::now(), frame);
    }

    /// When [`Frames::handle_timeout`] has something to do.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        lock(&self.assembly).poll_timeout()
    }

    /// Hands over the frames whose deadline is over.
    pub(super) fn handle_timeout(&self, now: Instant) {
        let ended = lock(&self.assembly).handle_timeout(now);
        if ended {
            self.hand_over();
        }
    }

    /// Whether a sink has frames in hand, or packets wait for memory that deadlines make free.
    pub(super) fn is_busy(&self) -> bool {
        let is_told = |slot: &AtomicU32| slot.load(Ordering::Relaxed) > 0;
        let waits = !self.is_reliable && self.blocked.load(Ordering::Relaxed) > 0;
        let assembly = lock(&self.assembly);
        let is_in_hand = self.is_in_hand.load(Ordering::Relaxed) || assembly.is_ready();
        waits || is_in_hand || self.telling.iter().any(is_told)
    }

    /// Hands over every frame of which something came, and counts those before `sent` as lost of
    /// which nothing did.
    pub(super) fn finish(&self, sent: u64) {
        let ended = lock(&self.assembly).finish(sent);
        if ended {
            self.hand_over();
        }
    }

    /// The sink hears of nothing more; what it is being told is told to its end.
    pub(super) fn leave(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Puts packets, each with its header before it, where they belong.
    ///
    /// Gives up and forgets the rest when `stopped` says so.
    pub(super) fn take<'a>(
        &self,
        mut packets: impl Iterator<Item = &'a [u8]>,
        stopped: &impl Fn() -> bool,
    ) {
        let mut batch = [const { None }; BATCH];
        let mut refused = None;
        loop {
            let now = Instant::now();
            let mut claimed = 0;
            let mut blocked = false;
            {
                let mut assembly = lock(&self.assembly);
                while claimed < BATCH && !blocked {
                    let Some(packet) = refused.take().or_else(|| packets.next()) else { break };
                    match claim(&mut assembly, now, packet) {
                        Claim::Place(place) => {
                            batch[claimed] = Some((place, &packet[HEADER_BYTES..]));
                            claimed += 1;
                        }
                        Claim::Discard(_) => {}
                        Claim::Blocked => (refused, blocked) = (Some(packet), true),
                    }
                }
            }
            self.place(&mut batch[..claimed]);
            if blocked {
                self.blocked.fetch_add(1, Ordering::Relaxed);
                let goes_on = self.wait_for_room(stopped);
                self.blocked.fetch_sub(1, Ordering::Relaxed);
                if !goes_on {
                    return;
                }
            }
            if !blocked && claimed < BATCH {
                return;
            }
        }
    }

    /// Copies what was claimed, a lock for each run of one unit.
    fn place(&self, batch: &mut [Option<(Place, &[u8])>]) {
        let mut at = 0;
        while let Some(Some((first, _))) = batch.get(at) {
            let (slot, unit) = (first.slot, first.unit);
            let mut packets = 0;
            {
                let mut region = lock(&self.memory[slot][unit]);
                let octets = region.octets();
                while let Some(Some((place, from))) = batch.get(at + packets) {
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

    /// Claims the place of a packet whose octets come later; `None` if it has none.
    ///
    /// Waits for memory, until `stopped`.
    pub(super) fn claim(&self, header: UnitHeader, stopped: &impl Fn() -> bool) -> Option<Place> {
        let octets = self.shape.plan().locate(header.index)?.bytes.len();
        match lock(&self.assembly).claim(Instant::now(), header, octets) {
            Claim::Place(place) => return Some(place),
            Claim::Discard(_) => return None,
            Claim::Blocked => {}
        }
        self.blocked.fetch_add(1, Ordering::Relaxed);
        let place = self.claim_when_free(header, octets, stopped);
        self.blocked.fetch_sub(1, Ordering::Relaxed);
        place
    }

    fn claim_when_free(
        &self,
        header: UnitHeader,
        octets: usize,
        stopped: &impl Fn() -> bool,
    ) -> Option<Place> {
        let mut stuck_since = None;
        while self.wait_for_room(stopped) {
            let now = Instant::now();
            let mut assembly = lock(&self.assembly);
            match assembly.claim(now, header, octets) {
                Claim::Place(place) => return Some(place),
                Claim::Discard(_) => return None,
                Claim::Blocked => {}
            }
            let all_wait = self.blocked.load(Ordering::Relaxed) == self.threads;
            if !all_wait || !assembly.is_waiting() {
                stuck_since = None;
            } else if *stuck_since.get_or_insert(now) + STUCK_MAX <= now {
                return None;
            }
        }
        None
    }

    /// Lets a claimed place be written to.
    pub(super) fn fill<T>(&self, place: &Place, write: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut region = lock(&self.memory[place.slot][place.unit]);
        write(&mut region.octets()[place.bytes.clone()])
    }

    /// Packets of a unit are in place.
    pub(super) fn land(&self, slot: usize, unit: usize, packets: u32) {
        let mut assembly = lock(&self.assembly);
        let landed = assembly.land(slot, unit, packets);
        self.telling[slot].fetch_add(u32::from(landed.tile), Ordering::Relaxed);
        drop(assembly);
        if landed.tile {
            let _told = Told { frames: self, slot };
            lock(&self.memory[slot][unit]).filled();
            if !self.is_over() {
                self.sink.tile_ready(slot, unit);
            }
        }
        if landed.ended {
            self.hand_over();
        }
    }

    /// Whether there may be room now; false to give up.
    fn wait_for_room(&self, stopped: &impl Fn() -> bool) -> bool {
        self.handle_timeout(Instant::now());
        if stopped() {
            return false;
        }
        let assembly = lock(&self.assembly);
        let pause = if assembly.is_ready() {
            // Another thread hands a frame over, to a sink that may be slow.
            HANDING_PAUSE
        } else {
            assembly.poll_timeout().map_or(ROOM_PAUSE, |due| {
                due.saturating_duration_since(Instant::now()).min(ROOM_PAUSE)
            })
        };
        // Wakes early are welcome: the caller looks again.
        drop(self.room.wait_timeout(assembly, pause));
        true
    }

    /// Hands over the frames that have ended, unless another thread does.
    fn hand_over(&self) {
        loop {
            let Some(mut gaps) = try_lock(&self.handing) else { return };
            while let Some(ending) = self.next_ending(&mut gaps) {
                let slot = ending.slot;
                if !self.is_over() {
                    self.hand_over_one(ending, &gaps);
                }
                let mut assembly = lock(&self.assembly);
                assembly.release(slot);
                self.is_in_hand.store(false, Ordering::Relaxed);
                drop(assembly);
                self.room.notify_all();
            }
            drop(gaps);
            // What ended meanwhile was left to this thread.
            if !lock(&self.assembly).is_ready() {
                return;
            }
        }
    }

    fn next_ending(&self, gaps: &mut Vec<Gap>) -> Option<Ending> {
        let mut assembly = lock(&self.assembly);
        let ending = assembly.poll_ending()?;
        self.is_in_hand.store(true, Ordering::Relaxed);
        gaps.clear();
        if !ending.whole {
            assembly.gaps(ending.slot, gaps);
        }
        Some(ending)
    }

    /// Waits until the sink has heard of the tiles that other threads tell it of.
    fn wait_until_told(&self, slot: usize) {
        let is_telling = |_: &mut Assembly| self.telling[slot].load(Ordering::Relaxed) > 0;
        drop(self.room.wait_while(lock(&self.assembly), is_telling));
    }

    fn hand_over_one(&self, ending: Ending, gaps: &[Gap]) {
        self.wait_until_told(ending.slot);
        let memory = &self.memory[ending.slot];
        let mut units_concealed = 0;
        let is_concealed = ending.previous.is_some_and(|previous| {
            !gaps.is_empty() && self.sink.conceal(ending.slot, previous, gaps)
        });
        for (at, gap) in gaps.iter().enumerate() {
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
            if gaps.get(at + 1).is_none_or(|next| next.unit != gap.unit) {
                units_concealed += 1;
                to.filled();
                drop(to);
                self.sink.tile_ready(ending.slot, gap.unit);
            }
        }
        let done_at = Instant::now();
        self.finished.note(&ending, done_at, units_concealed);
        let shape = &self.shape;
        self.sink.frame_done(&TextureFrame { shape, ending, gaps, memory, done_at });
    }
}

/// The sink has heard of a tile when this goes, even if it panicked.
struct Told<'a> {
    frames: &'a Frames,
    slot: usize,
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        let assembly = lock(&self.frames.assembly);
        self.frames.telling[self.slot].fetch_sub(1, Ordering::Relaxed);
        drop(assembly);
        self.frames.room.notify_all();
    }
}

fn claim(assembly: &mut Assembly, now: Instant, packet: &[u8]) -> Claim {
    match packet.split_first_chunk::<HEADER_BYTES>() {
        Some((header, octets)) => assembly.claim(now, UnitHeader::parse(*header), octets.len()),
        None => assembly.claim(now, UnitHeader { frame: 0, index: u32::MAX }, 0),
    }
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
