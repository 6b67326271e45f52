//! Reassembly: where the octets of packets belong, which are missing, and when a frame has ended.

mod packing;
mod recovery;
mod repair;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::requests::Patience;
use crate::slot::{Slot, Stage};
use crate::wire::extend;
use crate::{Pace, Plan, UnitHeader};
use packing::{Held, Lack};

pub use packing::{PackedClaim, PackedLanded, PackedPlace, Unpacking};

/// Options of an [`Assembly`].
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct AssemblyOptions {
    /// Number of frames held in memory: 2 to 8. One of them is the frame handed over last, so with
    /// 2, packets of a frame wait until the previous frame has ended; with 3 they do not.
    pub slots: usize,
    /// Whether the transport is lossless (TCP). There are then no deadlines, and packets of a frame
    /// without a free slot wait.
    pub reliable: bool,
    /// Whether the sender sends packets again that are requested. Ignored if the transport is lossless
    /// or the plan has too many packets ([`Plan::can_retransmit`]).
    pub recovery: bool,
    /// Whether the sender may send repair packets. Ignored if the transport is lossless or the plan has too
    /// many packets ([`Plan::can_repair`]).
    pub fec: bool,
    /// Whether the sender may send packed stripes. Ignored if the plan has too many packets
    /// ([`Plan::can_pack`]).
    pub packing: bool,
    /// The number of the first frame.
    pub first_frame: u64,
    /// The shortest wait for missing packets.
    pub deadline_min: Duration,
    /// The longest wait for missing packets, from the latest packet of their frame on. If a newer
    /// frame needs the memory of the incomplete one, the wait is at most 100 ms.
    pub deadline_max: Duration,
}

impl Default for AssemblyOptions {
    /// Returns three slots, an unreliable transport without recovery, repair packets and packed stripes, frame 0
    /// and deadlines from 2 ms to 100 ms.
    fn default() -> Self {
        Self {
            slots: 3,
            reliable: false,
            recovery: false,
            fec: false,
            packing: false,
            first_frame: 0,
            deadline_min: Duration::from_millis(2),
            deadline_max: Duration::from_millis(100),
        }
    }
}

/// The place of a packet's octets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The index of the frame's slot.
    pub slot: usize,
    /// The unit's place in the frame.
    pub unit: usize,
    /// The range of octets within the unit.
    pub bytes: Range<usize>,
}

/// The outcome of [`Assembly::claim`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claim {
    /// Write its octets to this place, then call [`Assembly::land`].
    Place(Place),
    /// Discard the packet.
    Discard(Discard),
    /// There is no free slot for its frame yet. Hand over the frames that have ended
    /// ([`Assembly::poll_ending`]), end overdue ones, and claim the packet again.
    Blocked,
}

/// The outcome of [`Assembly::take_repair`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RepairOutcome {
    /// The packet was kept: its block lacks packets.
    Kept,
    /// The packet was discarded.
    Discarded(Discard),
    /// There is no free slot for its frame yet, as for [`Claim::Blocked`].
    Blocked,
}

/// The reason for discarding a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Discard {
    /// The packet arrived before.
    Duplicate,
    /// The frame has no packet with this number.
    Index,
    /// The frame is beyond the next one; it is accepted when more packets confirm it.
    Jump,
    /// The frame has ended.
    Late,
    /// The length differs from that in the plan.
    Length,
    /// It is a repair packet of packets that have all arrived.
    Unneeded,
}

/// The outcome of [`Assembly::land`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Landed {
    /// Whether the unit is complete.
    pub tile: bool,
    /// Whether a frame has ended: if so, call [`Assembly::poll_ending`].
    pub ended: bool,
}

/// A frame to be handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ending {
    /// The index of the frame's slot, which is not reused until [`Assembly::release`].
    pub slot: usize,
    /// The frame's number.
    pub frame: u64,
    /// Whether every packet arrived, and no stripe is stale.
    pub whole: bool,
    /// Packets that did not arrive.
    /// With packed stripes it is an estimate: of a stripe of which nothing arrived, as many as before.
    pub missing: u32,
    /// Stripes that the sender reported as unchanged, but whose octets did not arrive before.
    pub stale: u32,
    /// The slot of the previous frame, whose octets can replace missing ones.
    pub previous: Option<usize>,
    /// Arrival time of the first packet.
    pub first_at: Instant,
    /// Arrival time of the latest packet.
    pub latest_at: Instant,
}

/// Octets that did not arrive.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The unit's place in the frame.
    pub unit: usize,
    /// The range of octets within the unit.
    pub bytes: Range<usize>,
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AssemblyStatistics {
    /// Frames handed over complete.
    pub frames_whole: u64,
    /// Frames handed over with packets missing.
    pub frames_damaged: u64,
    /// Frames of which no packet arrived in time.
    pub frames_lost: u64,
    /// Packets that arrived and were given a place.
    pub packets: u64,
    /// Packets that were missing when their frame ended.
    pub packets_lost: u64,
    /// Duplicate packets.
    pub packets_duplicate: u64,
    /// Packets that arrived after their frame had ended.
    pub packets_late: u64,
    /// Packets that do not fit the plan, or whose frame number is implausible.
    pub packets_invalid: u64,
    /// Packets that were requested, each counted once.
    pub packets_requested: u64,
    /// Packets that arrived after they had been requested.
    pub packets_recovered: u64,
    /// Packets that were computed from repair packets, because they had not arrived.
    pub packets_repaired: u64,
    /// Of these, packets that arrived afterwards: the path did not lose them. Those that arrive when the memory
    /// of their frame holds another one are not noticed.
    pub repaired_late: u64,
    /// Repair packets that arrived, whether or not they were needed.
    pub repairs: u64,
    /// Stripes that arrived packed.
    pub stripes_unpacked: u64,
    /// Stripes that were reported as unchanged, and were.
    pub stripes_unchanged: u64,
    /// Stripes that were reported as unchanged, but whose octets had not arrived before.
    pub stripes_stale: u64,
}

/// Maximum number of frames by which a near frame is beyond the next one.
const NEAR_MAX: u64 = 16;

/// Consecutive packets beyond the next frame after which whole frames are assumed to be lost.
///
/// The first number is for near frames, and lower if a frame has fewer than eight times as many
/// packets; the second is for far ones.
///
/// Accepting a frame ends those before it, so one wrong header would lose as many frames as it
/// skips. A near frame may also be right, and early only because other threads are late: its
/// packets wait for the shortest deadline before they are discarded.
const NEAR_PACKETS: u32 = 3;
const FAR_PACKETS: u32 = 8;

/// The longest wait of a frame for memory that is kept for an earlier one, from that one's latest
/// packet on.
///
/// Packets of the frame that waits are not read from their socket, and nor are missing ones behind
/// them. If the wait were shorter than a thread may be late, frames would end whose packets are still
/// in another unit's socket.
const AHEAD_MAX: Duration = Duration::from_millis(100);

/// The shortest such wait, for the threads of other units to read their sockets.
const AHEAD_MIN: Duration = Duration::from_millis(20);

/// The reassembly of frames.
///
/// It holds no octets. The caller writes a packet's octets to the place that [`Assembly::claim`]
/// returns, then calls [`Assembly::land`]; other packets may be claimed in between.
#[derive(Debug)]
pub struct Assembly {
    plan: Plan,
    options: AssemblyOptions,
    slots: Vec<Slot>,
    /// Slots whose frames have ended, the oldest first.
    ended: VecDeque<usize>,
    /// The first frame that has not ended.
    oldest: u64,
    /// The frame after the newest known one.
    next: u64,
    previous: Option<usize>,
    /// The latest frame that is not accepted yet, and the number of packets that confirm it.
    candidate: (u64, u32),
    /// Arrival time of the latest packet of a frame that has not ended.
    last_arrival: Option<Instant>,
    /// When a near frame began to wait for acceptance.
    near_since: Option<Instant>,
    /// When a frame began to wait for memory that is kept for earlier frames.
    ahead_since: Option<Instant>,
    /// End of the latest hand-over, during which sockets may not have been read.
    resumed_at: Option<Instant>,
    pace: Pace,
    patience: Patience,
    /// The frame after the latest one that the sender announced: it has sent all before it.
    announced: u64,
    statistics: AssemblyStatistics,
    /// All stripes of the frame handed over last, if they may be packed.
    held: Vec<Held>,
    /// A frame with stale stripes, when it ended, and the packets of it that are to be requested.
    asks: Option<(u64, Instant, Vec<Range<u32>>)>,
}

impl Assembly {
    /// Creates an assembly for frames that are divided into packets as `plan` describes.
    pub fn new(plan: Plan, options: AssemblyOptions) -> Self {
        let packing = options.packing && plan.can_pack();
        Self {
            held: Self::no_stripes(&plan, packing),
            asks: None,
            slots: Vec::new(),
            ended: VecDeque::with_capacity(8),
            oldest: options.first_frame,
            next: options.first_frame,
            previous: None,
            candidate: (0, 0),
            last_arrival: None,
            near_since: None,
            ahead_since: None,
            resumed_at: None,
            pace: Pace::new(options.deadline_min, options.deadline_max),
            patience: Patience::default(),
            announced: 0,
            statistics: AssemblyStatistics::default(),
            options: AssemblyOptions {
                slots: options.slots.clamp(2, 8),
                recovery: options.recovery && !options.reliable && plan.can_retransmit(),
                fec: options.fec && !options.reliable && plan.can_repair(),
                packing,
                ..options
            },
            plan,
        }
    }

    /// Returns the plan of every frame.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the number of frames for which the caller must have memory.
    pub fn slots(&self) -> usize {
        self.options.slots
    }

    /// Returns the counts since the beginning.
    pub fn statistics(&self) -> AssemblyStatistics {
        self.statistics
    }

    /// Returns the average duration of frames, and their deadlines.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Reserves a packet's place of `octets` octets in its frame, or returns why to discard it.
    pub fn claim(&mut self, now: Instant, header: UnitHeader, octets: usize) -> Claim {
        let (index, is_retransmitted) = self.number(header);
        let Some(span) = self.plan.locate(index) else {
            return self.discard(Discard::Index);
        };
        if span.bytes.len() != octets {
            return self.discard(Discard::Length);
        }
        let slot = match self.slot_for(now, header.frame, (index, is_retransmitted)) {
            Ok(slot) => slot,
            Err(claim) => return claim,
        };
        if self.is_packed_stripe(slot, index)
            || !self.slots[slot].claim(index, now, is_retransmitted)
        {
            if !is_retransmitted {
                self.handle_overtaken(self.slots[slot].frame, index);
            }
            return self.discard(Discard::Duplicate);
        }
        self.note_arrival(slot, index);
        if !self.slots[slot].requests.is_empty() {
            self.handle_requested(now, (slot, index), is_retransmitted);
        }
        self.statistics.packets += 1;
        self.last_arrival = Some(now);
        Claim::Place(Place { slot, unit: span.unit, bytes: span.bytes })
    }

    /// Finds the slot of a packet's frame, by the eight bits of its number.
    fn slot_for(
        &mut self,
        now: Instant,
        frame: u8,
        (index, is_retransmitted): (u32, bool),
    ) -> Result<usize, Claim> {
        let frame = extend(self.next, frame);
        if frame < self.options.first_frame {
            return Err(self.discard(Discard::Unneeded));
        }
        if frame < self.oldest {
            if frame.saturating_add(NEAR_MAX) >= self.oldest {
                self.candidate = (0, 0);
            }
            if !is_retransmitted {
                self.handle_overtaken(frame, index);
            }
            return Err(self.discard(Discard::Late));
        }
        self.slot_of(now, frame, is_retransmitted)
    }

    fn discard(&mut self, why: Discard) -> Claim {
        let counts = &mut self.statistics;
        match why {
            Discard::Duplicate => counts.packets_duplicate += 1,
            Discard::Late => counts.packets_late += 1,
            Discard::Index | Discard::Jump | Discard::Length => counts.packets_invalid += 1,
            Discard::Unneeded => {}
        }
        Claim::Discard(why)
    }

    /// Returns the slot of a frame that has not ended.
    fn slot_of(
        &mut self,
        now: Instant,
        frame: u64,
        is_retransmitted: bool,
    ) -> Result<usize, Claim> {
        let filling = |slot: &Slot| slot.stage == Stage::Filling && slot.frame == frame;
        if let Some(slot) = self.slots.iter().position(filling) {
            self.candidate = (0, 0);
            return Ok(slot);
        }
        if is_retransmitted {
            // It was requested for a frame that has ended meanwhile.
            return Err(self.discard(Discard::Late));
        }
        let opened = self.open(now, frame);
        if opened == Err(Claim::Blocked) {
            self.last_arrival = Some(now);
        }
        opened
    }

    /// Finds a slot for a frame of which no packet has arrived yet.
    fn open(&mut self, now: Instant, frame: u64) -> Result<usize, Claim> {
        if let Some(claim) = self.check_jump(now, frame) {
            return Err(claim);
        }
        if frame - self.oldest > self.options.slots as u64 - 2 && !self.is_skipped(now) {
            return Err(Claim::Blocked);
        }
        self.ahead_since = None;
        if self.slots.len() < self.options.slots {
            self.slots.push(Slot::new(&self.plan, now, (self.options.fec, self.options.packing)));
        }
        let free = |at: usize| self.slots[at].stage == Stage::Free && Some(at) != self.previous;
        let Some(slot) = (0..self.slots.len()).find(|&at| free(at)) else {
            return Err(Claim::Blocked);
        };
        self.slots[slot].begin(frame, now);
        self.next = self.next.max(frame.saturating_add(1));
        self.candidate = (0, 0);
        Ok(slot)
    }

    /// Discards or defers a packet whose frame is too far ahead to be accepted.
    ///
    /// Packets of the same frame or of later ones confirm the frame, as small frames have too few.
    fn check_jump(&mut self, now: Instant, frame: u64) -> Option<Claim> {
        // The other slots are for frames that wait for requested packets.
        let has_memory = frame - self.oldest <= (self.options.slots as u64 - 2).min(1);
        let (before, packets) = self.candidate;
        let follows = (before..=before.saturating_add(NEAR_MAX)).contains(&frame);
        let packets = if follows { packets.saturating_add(1) } else { 1 };
        let is_near = frame <= self.next.saturating_add(NEAR_MAX);
        let near_packets = (self.plan.packets() / 8).clamp(1, NEAR_PACKETS);
        let is_right = self.options.reliable || has_memory || frame <= self.next;
        if is_right || packets >= if is_near { near_packets } else { FAR_PACKETS } {
            self.near_since = None;
            return None;
        }
        if is_near {
            let since = *self.near_since.get_or_insert(now);
            if now < since + self.options.deadline_min.min(self.options.deadline_max) {
                return Some(Claim::Blocked);
            }
            self.near_since = None;
        }
        self.candidate = (frame, packets);
        Some(self.discard(Discard::Jump))
    }

    /// Records that the sender has sent this frame and all frames before it.
    ///
    /// With recovery, packets of the frame that are still missing a while later are requested.
    ///
    /// A header carries eight bits of a frame's number, so without this call frame numbers would be
    /// wrong after an outage of 128 frames or more. It changes them only if no packet has arrived for
    /// the longest deadline, because earlier frames may otherwise still be in flight.
    pub fn note_announced(&mut self, now: Instant, frame: u64) {
        self.announced = self.announced.max(frame.saturating_add(1));
        let since = *self.last_arrival.get_or_insert(now);
        if !self.options.reliable && since + self.options.deadline_max <= now {
            self.next = self.next.max(frame.saturating_add(1));
        }
    }

    /// Returns whether earlier frames, of which no packet has arrived, are given up for the memory
    /// that is kept for them.
    fn is_skipped(&mut self, now: Instant) -> bool {
        if self.options.reliable {
            return false;
        }
        self.ahead_since.get_or_insert(now);
        self.oldest_filling().is_none() && self.ahead_deadline().is_some_and(|at| at <= now)
    }

    /// Returns when the oldest frame ends because a newer one needs its memory.
    fn ahead_deadline(&self) -> Option<Instant> {
        let since = self.ahead_since?;
        let filling = self.oldest_filling().map(|at| &self.slots[at]);
        let (first, latest) = filling.map_or((since, since), |it| (it.first_at, it.latest_at));
        let resumed = self.resumed_at.map_or(latest, |resumed| latest.max(resumed));
        let waiting = (resumed + AHEAD_MAX).max(since + AHEAD_MIN);
        Some(self.deadline(first, latest).min(waiting))
    }

    /// Returns the deadline of a frame whose first and latest packets arrived at these times.
    ///
    /// The time before the end of the latest hand-over does not count: its packets may have waited
    /// in a socket.
    fn deadline(&self, first: Instant, latest: Instant) -> Instant {
        match self.resumed_at {
            Some(resumed) => self.pace.deadline(first.max(resumed), latest.max(resumed)),
            None => self.pace.deadline(first, latest),
        }
    }

    /// Returns the deadline of a frame that is being received: at least the time at which an answer is
    /// expected for it, or for an earlier frame, which is handed over first.
    fn deadline_of(&self, slot: &Slot) -> Instant {
        let is_before = |it: &&Slot| it.stage == Stage::Filling && it.frame <= slot.frame;
        let answers = self
            .slots
            .iter()
            .filter(is_before)
            .filter_map(|it| it.requests.until.map(|until| until.min(self.longest(it))));
        answers.fold(self.deadline(slot.first_at, slot.latest_at), Instant::max)
    }

    /// Returns until when a frame waits for missing packets at most.
    fn longest(&self, slot: &Slot) -> Instant {
        let resumed = self.resumed_at.unwrap_or(slot.latest_at);
        slot.latest_at.max(resumed) + self.options.deadline_max
    }

    fn oldest_filling(&self) -> Option<usize> {
        let filling = |&at: &usize| self.slots[at].stage == Stage::Filling;
        (0..self.slots.len()).filter(filling).min_by_key(|&at| self.slots[at].frame)
    }

    /// Records that `packets` claimed packets of a unit are in place.
    pub fn land(&mut self, slot: usize, unit: usize, packets: u32) -> Landed {
        let whole = self.plan.unit_packets(unit).len() as u32;
        let total = self.plan.packets();
        let Some(it) = self.slots.get_mut(slot) else {
            return Landed { tile: false, ended: false };
        };
        let tile = it.land(unit, packets) == whole && packets > 0;
        if it.stage == Stage::Filling && it.landed() == total {
            self.advance();
        }
        Landed { tile, ended: self.is_ready() }
    }

    /// Ends complete frames in order, up to the first incomplete one.
    ///
    /// A later frame may be complete first: its packets arrived on the sockets of other units.
    fn advance(&mut self) {
        let total = self.plan.packets();
        let is_next = |slot: &Slot, oldest| {
            slot.stage == Stage::Filling && slot.frame == oldest && slot.landed() == total
        };
        while let Some(slot) = self.slots.iter().position(|slot| is_next(slot, self.oldest)) {
            self.end(slot);
        }
    }

    /// Undoes a claim, because the octets of this packet will not be written to its place.
    pub fn unclaim(&mut self, slot: usize, index: u32) {
        self.statistics.packets -= u64::from(self.release_place(slot, index));
    }

    /// Ends a frame and all frames before it: no more packets are placed in them.
    fn end(&mut self, slot: usize) {
        self.abandon_stripes(slot);
        let it = &mut self.slots[slot];
        if let Some(repairs) = &mut it.repairs {
            repairs.release();
        }
        if it.claimed() == 0 {
            // All its claims were undone, so there is nothing to hand over.
            it.stage = Stage::Free;
            let lost = it.frame.saturating_add(1).saturating_sub(self.oldest);
            self.statistics.frames_lost = self.statistics.frames_lost.saturating_add(lost);
            self.oldest = it.frame.saturating_add(1);
            self.next = self.next.max(self.oldest);
            return;
        }
        it.stage = Stage::Ended;
        if !it.requests.is_hasty {
            self.patience.handle_frame();
        }
        self.pace.handle_frame(it.latest_at.saturating_duration_since(it.first_at));
        let skipped = it.frame.saturating_sub(self.oldest);
        self.statistics.frames_lost = self.statistics.frames_lost.saturating_add(skipped);
        self.oldest = it.frame.saturating_add(1);
        self.next = self.next.max(self.oldest);
        self.ended.push_back(slot);
    }

    /// Returns whether a frame can be handed over ([`Assembly::poll_ending`]).
    pub fn is_ready(&self) -> bool {
        self.ended.front().is_some_and(|&slot| self.slots[slot].is_settled())
    }

    /// Returns the next frame to hand over; frames are returned in order, one at a time.
    ///
    /// Returns `None` while octets of the frame are still being written.
    pub fn poll_ending(&mut self) -> Option<Ending> {
        if !self.is_ready() {
            return None;
        }
        let slot = self.ended.pop_front()?;
        let Lack { missing, stale } = self.judge_stripes(slot);
        let (it, whole) = (&self.slots[slot], missing == 0 && stale == 0);
        self.statistics.packets_lost += u64::from(missing);
        if whole {
            self.statistics.frames_whole += 1;
        } else {
            self.statistics.frames_damaged += 1;
        }
        Some(Ending {
            slot,
            frame: it.frame,
            whole,
            missing,
            stale,
            previous: self.previous,
            first_at: it.first_at,
            latest_at: it.retransmitted_at.map_or(it.latest_at, |at| at.max(it.latest_at)),
        })
    }

    /// Writes the missing octets of an ended frame to `gaps`, one gap for each run of packets, and those of
    /// stale stripes.
    pub fn gaps(&self, slot: usize, gaps: &mut Vec<Gap>) {
        gaps.clear();
        let Some(it) = self.slots.get(slot) else { return };
        for unit in 0..self.plan.units() {
            let mut packets = self.plan.unit_packets(unit);
            if it.landed_of(unit) == packets.len() as u32 {
                continue;
            }
            while let Some(run) = it.missing(packets.clone()) {
                let ends = (self.plan.locate(run.start), self.plan.locate(run.end - 1));
                if let (Some(first), Some(last)) = ends {
                    gaps.push(Gap { unit, bytes: first.bytes.start..last.bytes.end });
                }
                packets.start = run.end;
            }
        }
        let missing = gaps.len();
        self.unchanged(slot, true, gaps);
        if gaps.len() > missing {
            gaps.sort_unstable_by_key(|gap| (gap.unit, gap.bytes.start));
        }
    }

    /// Marks a frame as handed over at `now`: its memory is kept as the previous frame's.
    ///
    /// Deadlines count from this call, because packets may have waited in a socket meanwhile. Do not
    /// call [`handle_timeout`](Self::handle_timeout) between
    /// [`poll_ending`](Self::poll_ending) and this call.
    pub fn release(&mut self, now: Instant, slot: usize) {
        self.resumed_at = Some(now);
        let Some(it) = self.slots.get_mut(slot) else { return };
        if it.stage == Stage::Ended && !self.ended.contains(&slot) {
            it.stage = Stage::Free;
            self.previous = Some(slot);
        }
    }

    /// Returns when to call [`Assembly::handle_timeout`] if no packet arrives earlier.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.options.reliable {
            return None;
        }
        let filling = self.slots.iter().filter(|slot| slot.stage == Stage::Filling);
        let deadlines =
            filling.flat_map(|slot| [Some(self.deadline_of(slot)), self.late_due(slot)]);
        deadlines.flatten().chain(self.ahead_deadline()).min()
    }

    /// Ends frames whose deadline has passed; returns whether a frame is ready to be handed over.
    ///
    /// With recovery, [`poll_requests_timeout`](Self::poll_requests_timeout) may be earlier than before.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if !self.options.reliable {
            self.note_late(now);
            let over = |slot: &Slot| slot.stage == Stage::Filling && self.deadline_of(slot) <= now;
            let overtaken = self.ahead_deadline().filter(|&at| at <= now);
            let oldest =
                overtaken.and_then(|_| self.oldest_filling()).map(|at| self.slots[at].frame);
            let overdue = self.slots.iter().filter(|slot| over(slot)).map(|slot| slot.frame);
            let newest = overdue.chain(oldest).max();
            while let Some(slot) = self
                .oldest_filling()
                .filter(|&at| newest.is_some_and(|newest| self.slots[at].frame <= newest))
            {
                self.end(slot);
            }
            if overtaken.is_some_and(|at| at + AHEAD_MAX <= now) {
                // The frame that waited was discarded.
                self.ahead_since = None;
            }
            self.advance();
        }
        self.is_ready()
    }

    /// Ends every frame being received and every frame before `sent`: no more packets will arrive.
    ///
    /// Frames of which no packet arrived are lost. Returns whether one is ready to be handed over.
    pub fn finish(&mut self, sent: u64) -> bool {
        while let Some(slot) = self.oldest_filling() {
            self.end(slot);
        }
        let lost = sent.saturating_sub(self.oldest);
        self.statistics.frames_lost = self.statistics.frames_lost.saturating_add(lost);
        self.oldest = self.oldest.max(sent);
        self.next = self.next.max(sent);
        self.is_ready()
    }

    /// Returns the first frame that has not ended.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Returns whether memory becomes free only if packets of the frames being received arrive.
    pub fn is_waiting(&self) -> bool {
        self.slots.iter().all(|slot| slot.stage != Stage::Ended)
    }

    /// Returns whether no frame is being received or ready to be handed over.
    pub fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.stage == Stage::Free)
    }
}
