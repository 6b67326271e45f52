//! Where the octets of packets go, what is missing, and when a frame has ended.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;
use std::time::Instant;

use crate::delivery::Pace;
use crate::delivery::Plan;
use crate::delivery::UnitHeader;
use crate::delivery::slot::Slot;
use crate::delivery::slot::Stage;
use crate::delivery::wire::extend;

/// How an [`Assembly`] works.
#[derive(Clone, Copy, Debug)]
pub struct AssemblyOptions {
    /// Frames that there is memory for: 2 to 8. One holds the frame handed over last, so with 2 a
    /// frame's packets wait while the one before still has time; with 3 they do not.
    pub slots: usize,
    /// Whether nothing can be lost on the way (TCP): then there are no deadlines, and a frame for
    /// which there is no slot waits.
    pub reliable: bool,
    /// The number of the first frame.
    pub first_frame: u64,
    /// The shortest wait for what is missing.
    pub deadline_min: Duration,
    /// The longest wait for what is missing.
    pub deadline_max: Duration,
}

impl Default for AssemblyOptions {
    /// Three slots, losses, frame 0, deadlines between 2 ms and 100 ms.
    fn default() -> Self {
        Self {
            slots: 3,
            reliable: false,
            first_frame: 0,
            deadline_min: Duration::from_millis(2),
            deadline_max: Duration::from_millis(100),
        }
    }
}

/// Where a packet's octets belong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    /// The frame's memory.
    pub slot: usize,
    /// The unit's place in the frame.
    pub unit: usize,
    /// Octets of the unit.
    pub bytes: Range<usize>,
}

/// What to do with a packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claim {
    /// Put its octets there, then say so ([`Assembly::land`]).
    Place(Place),
    /// Forget it.
    Discard(Discard),
    /// There is no memory for its frame yet: hand over the frames that have ended
    /// ([`Assembly::poll_ending`]), see whether others are overdue, and ask again.
    Blocked,
}

/// Why a packet is of no use.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Discard {
    /// It came before.
    Duplicate,
    /// The frame has no packet of this number.
    Index,
    /// Its frame is ahead of the one that comes next: believed when more packets say so.
    Jump,
    /// Its frame has ended.
    Late,
    /// It is longer or shorter than the plan says.
    Length,
}

/// What came of octets being in place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Landed {
    /// The unit is whole now.
    pub tile: bool,
    /// A frame has ended: ask [`Assembly::poll_ending`].
    pub ended: bool,
}

/// A frame to be handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ending {
    /// The frame's memory: untouched until [`Assembly::release`].
    pub slot: usize,
    /// The frame's number.
    pub frame: u64,
    /// Whether every packet came.
    pub whole: bool,
    /// Packets that did not come.
    pub missing: u32,
    /// The memory of the frame handed over before, which holds what is missing as it was.
    pub previous: Option<usize>,
    /// When the first packet came.
    pub first_at: Instant,
    /// When the latest packet came.
    pub latest_at: Instant,
}

/// Octets that did not come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// The unit's place in the frame.
    pub unit: usize,
    /// Octets of the unit.
    pub bytes: Range<usize>,
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AssemblyStatistics {
    /// Frames handed over of which every packet came.
    pub frames_whole: u64,
    /// Frames handed over that lack packets.
    pub frames_damaged: u64,
    /// Frames of which nothing came in time.
    pub frames_lost: u64,
    /// Packets placed.
    pub packets: u64,
    /// Packets that were missing when their frame ended.
    pub packets_lost: u64,
    /// Packets that came twice.
    pub packets_duplicate: u64,
    /// Packets that came after their frame had ended.
    pub packets_late: u64,
    /// Packets with a number, a length or a frame that cannot be.
    pub packets_invalid: u64,
}

/// Frames after the one that comes next that are near.
const NEAR_MAX: u64 = 16;

/// Packets in a row that must name frames beyond the next one until it is believed that frames
/// were lost whole: of near frames, as far as a frame has eight times as many, and of far ones.
///
/// A frame that is believed ends those before it, so that one wrong header would cost as many. A
/// near one may also be right, and seen early because other threads are late: it has the shortest
/// deadline until it is doubted.
const NEAR_PACKETS: u32 = 3;
const FAR_PACKETS: u32 = 8;

/// The frames on their way in.
///
/// It holds no octets. A packet's octets are put where [`Assembly::claim`] says, by whoever has
/// them, and [`Assembly::land`] is told; in between, other packets can be claimed.
#[derive(Debug)]
pub struct Assembly {
    plan: Plan,
    options: AssemblyOptions,
    slots: Vec<Slot>,
    /// Slots whose frames have ended, oldest first.
    ended: VecDeque<usize>,
    /// The first frame that has not ended.
    oldest: u64,
    /// The frame after the newest of which anything is known.
    next: u64,
    previous: Option<usize>,
    /// The latest frame that is not believed yet, and how many packets speak for it.
    jump: (u64, u32),
    /// When the latest packet of a frame that has not ended came.
    heard_at: Option<Instant>,
    /// Since when a near frame waits to become the next one.
    doubted_since: Option<Instant>,
    /// Since when a frame waits for those before it, of which nothing has come.
    ahead_since: Option<Instant>,
    pace: Pace,
    statistics: AssemblyStatistics,
}

impl Assembly {
    /// Knows nothing yet but what frames look like.
    pub fn new(plan: Plan, options: AssemblyOptions) -> Self {
        Self {
            slots: Vec::new(),
            ended: VecDeque::with_capacity(8),
            oldest: options.first_frame,
            next: options.first_frame,
            previous: None,
            jump: (0, 0),
            heard_at: None,
            doubted_since: None,
            ahead_since: None,
            pace: Pace::new(options.deadline_min, options.deadline_max),
            statistics: AssemblyStatistics::default(),
            options: AssemblyOptions { slots: options.slots.clamp(2, 8), ..options },
            plan,
        }
    }

    /// What frames look like.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Frames that there must be memory for.
    pub fn slots(&self) -> usize {
        self.options.slots
    }

    /// Counts since the beginning.
    pub fn statistics(&self) -> AssemblyStatistics {
        self.statistics
    }

    /// How long frames take.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Where the `octets` of a packet belong.
    pub fn claim(&mut self, now: Instant, header: UnitHeader, octets: usize) -> Claim {
        let Some(span) = self.plan.locate(header.index) else {
            return self.discard(Discard::Index);
        };
        if span.bytes.len() != octets {
            return self.discard(Discard::Length);
        }
        let frame = extend(self.next, header.frame);
        if frame < self.oldest {
            if frame.saturating_add(NEAR_MAX) >= self.oldest {
                self.jump = (0, 0);
            }
            return self.discard(Discard::Late);
        }
        let filling = |slot: &Slot| slot.stage == Stage::Filling && slot.frame == frame;
        let slot = match self.slots.iter().position(filling) {
            Some(slot) => {
                self.jump = (0, 0);
                slot
            }
            None => match self.open(now, frame) {
                Ok(slot) => slot,
                Err(claim) => {
                    if claim == Claim::Blocked {
                        self.heard_at = Some(now);
                    }
                    return claim;
                }
            },
        };
        if !self.slots[slot].claim(header.index, now) {
            return self.discard(Discard::Duplicate);
        }
        self.statistics.packets += 1;
        self.heard_at = Some(now);
        Claim::Place(Place { slot, unit: span.unit, bytes: span.bytes })
    }

    fn discard(&mut self, why: Discard) -> Claim {
        let counts = &mut self.statistics;
        match why {
            Discard::Duplicate => counts.packets_duplicate += 1,
            Discard::Late => counts.packets_late += 1,
            Discard::Index | Discard::Jump | Discard::Length => counts.packets_invalid += 1,
        }
        Claim::Discard(why)
    }

    /// Finds memory for a frame of which nothing has come yet.
    fn open(&mut self, now: Instant, frame: u64) -> Result<usize, Claim> {
        if let Some(claim) = self.doubt(now, frame) {
            return Err(claim);
        }
        if frame - self.oldest > self.options.slots as u64 - 2 && !self.is_skipped(now) {
            return Err(Claim::Blocked);
        }
        self.ahead_since = None;
        if self.slots.len() < self.options.slots {
            self.slots.push(Slot::new(&self.plan, now));
        }
        let free = |at: usize| self.slots[at].stage == Stage::Free && Some(at) != self.previous;
        let Some(slot) = (0..self.slots.len()).find(|&at| free(at)) else {
            return Err(Claim::Blocked);
        };
        self.slots[slot].begin(frame, now);
        self.next = self.next.max(frame.saturating_add(1));
        self.jump = (0, 0);
        Ok(slot)
    }

    /// What to say of a frame that is too far ahead to be believed.
    ///
    /// What speaks for it are packets of the same frame or of later ones: small frames have too few
    /// packets each.
    fn doubt(&mut self, now: Instant, frame: u64) -> Option<Claim> {
        let has_memory = frame - self.oldest <= self.options.slots as u64 - 2;
        let (before, packets) = self.jump;
        let follows = (before..=before.saturating_add(NEAR_MAX)).contains(&frame);
        let packets = if follows { packets.saturating_add(1) } else { 1 };
        let is_near = frame <= self.next.saturating_add(NEAR_MAX);
        let near_packets = (self.plan.packets() / 8).clamp(1, NEAR_PACKETS);
        let is_right = self.options.reliable || has_memory || frame <= self.next;
        if is_right || packets >= if is_near { near_packets } else { FAR_PACKETS } {
            self.doubted_since = None;
            return None;
        }
        if is_near {
            let since = *self.doubted_since.get_or_insert(now);
            if now < since + self.options.deadline_min.min(self.options.deadline_max) {
                return Some(Claim::Blocked);
            }
            self.doubted_since = None;
        }
        self.jump = (frame, packets);
        Some(self.discard(Discard::Jump))
    }

    /// Takes it that the sender has sent this frame, and those before it.
    ///
    /// A header has eight bits of a frame's number: without this, an outage of 128 frames and more
    /// would leave the numbers after it wrong. It counts only when nothing has come for as long as
    /// the longest deadline: what was sent before may else still be on its way.
    pub fn hear_of(&mut self, now: Instant, frame: u64) {
        let since = *self.heard_at.get_or_insert(now);
        if !self.options.reliable && since + self.options.deadline_max <= now {
            self.next = self.next.max(frame.saturating_add(1));
        }
    }

    /// Whether frames of which nothing has come yet, and which need memory before a later one takes
    /// it all, have had their time.
    fn is_skipped(&mut self, now: Instant) -> bool {
        if self.options.reliable || self.oldest_filling().is_some() {
            return false;
        }
        let since = *self.ahead_since.get_or_insert(now);
        self.pace.deadline(since, since) <= now
    }

    fn oldest_filling(&self) -> Option<usize> {
        let filling = |&at: &usize| self.slots[at].stage == Stage::Filling;
        (0..self.slots.len()).filter(filling).min_by_key(|&at| self.slots[at].frame)
    }

    /// Takes note that so many claimed packets of a unit are in place.
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

    /// Ends frames that are whole, as far as there are none before them that may still come.
    ///
    /// A later frame can be whole first: its packets came by the sockets of other units.
    fn advance(&mut self) {
        let total = self.plan.packets();
        let is_next = |slot: &Slot, oldest| {
            slot.stage == Stage::Filling && slot.frame == oldest && slot.landed() == total
        };
        while let Some(slot) = self.slots.iter().position(|slot| is_next(slot, self.oldest)) {
            self.end(slot);
        }
    }

    /// Takes a claim back: the octets of this packet will not be put in place.
    pub fn unclaim(&mut self, slot: usize, index: u32) {
        if let Some(it) = self.slots.get_mut(slot) {
            self.statistics.packets -= u64::from(it.unclaim(index));
        }
    }

    /// Nothing more is placed in this frame, nor in any before it.
    fn end(&mut self, slot: usize) {
        let it = &mut self.slots[slot];
        if it.claimed() == 0 {
            // What was to come was taken back: there is nothing to hand over.
            it.stage = Stage::Free;
            let lost = it.frame.saturating_add(1).saturating_sub(self.oldest);
            self.statistics.frames_lost = self.statistics.frames_lost.saturating_add(lost);
            self.oldest = it.frame.saturating_add(1);
            self.next = self.next.max(self.oldest);
            return;
        }
        it.stage = Stage::Ended;
        self.pace.handle_frame(it.latest_at.saturating_duration_since(it.first_at));
        let skipped = it.frame.saturating_sub(self.oldest);
        self.statistics.frames_lost = self.statistics.frames_lost.saturating_add(skipped);
        self.oldest = it.frame.saturating_add(1);
        self.next = self.next.max(self.oldest);
        self.ended.push_back(slot);
    }

    /// Whether a frame can be handed over ([`Assembly::poll_ending`]).
    pub fn is_ready(&self) -> bool {
        self.ended.front().is_some_and(|&slot| self.slots[slot].settled())
    }

    /// The next frame to be handed over: in the order of frames, one at a time.
    ///
    /// None while octets of it are still being put in place.
    pub fn poll_ending(&mut self) -> Option<Ending> {
        if !self.is_ready() {
            return None;
        }
        let slot = self.ended.pop_front()?;
        let it = &self.slots[slot];
        let missing = self.plan.packets() - it.claimed();
        self.statistics.packets_lost += u64::from(missing);
        if missing == 0 {
            self.statistics.frames_whole += 1;
        } else {
            self.statistics.frames_damaged += 1;
        }
        Some(Ending {
            slot,
            frame: it.frame,
            whole: missing == 0,
            missing,
            previous: self.previous,
            first_at: it.first_at,
            latest_at: it.latest_at,
        })
    }

    /// What did not come of a frame that has ended, one gap for each run of octets.
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
    }

    /// The frame was handed over: its memory is kept as the previous one's.
    pub fn release(&mut self, slot: usize) {
        let Some(it) = self.slots.get_mut(slot) else { return };
        if it.stage == Stage::Ended && !self.ended.contains(&slot) {
            it.stage = Stage::Free;
            self.previous = Some(slot);
        }
    }

    /// When to call [`Assembly::handle_timeout`], if frames stay as they are.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.options.reliable {
            return None;
        }
        let filling = self.slots.iter().filter(|slot| slot.stage == Stage::Filling);
        let times = filling.map(|slot| (slot.first_at, slot.latest_at));
        let ahead = self.ahead_since.map(|since| (since, since));
        times.chain(ahead).map(|(first, latest)| self.pace.deadline(first, latest)).min()
    }

    /// Ends the frames whose deadline is over; whether one is ready to be handed over.
    pub fn handle_timeout(&mut self, now: Instant) -> bool {
        if !self.options.reliable {
            let over = |slot: &Slot| {
                slot.stage == Stage::Filling
                    && self.pace.deadline(slot.first_at, slot.latest_at) <= now
            };
            let newest = self.slots.iter().filter(|slot| over(slot)).map(|slot| slot.frame).max();
            while let Some(slot) = self
                .oldest_filling()
                .filter(|&at| newest.is_some_and(|newest| self.slots[at].frame <= newest))
            {
                self.end(slot);
            }
            self.advance();
        }
        self.is_ready()
    }

    /// Ends every frame of which something has come, and every one before `sent`: nothing more
    /// will come. Those of which nothing came are lost. Whether one is ready to be handed over.
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

    /// The first frame that has not ended.
    pub fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Whether memory becomes free only if packets come for the frames on their way in.
    pub fn is_waiting(&self) -> bool {
        self.slots.iter().all(|slot| slot.stage != Stage::Ended)
    }

    /// Whether no frame is on its way in, and none waits to be handed over.
    pub fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.stage == Stage::Free)
    }
}
