//! Packets that a server sends again because clients requested them.

mod credit;
mod queues;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Plan;
use crate::control::Nack;
use credit::Credit;
use queues::Queues;

pub use credit::MemberId;

/// Maximum frames of which packets are sent again: as many as a client has in progress.
const FRAMES_MAX: usize = 8;

/// Time for which a frame is kept after the next one began. By then a client with default options has
/// given it up.
const KEPT: Duration = Duration::from_millis(150);

/// Maximum octets that frames before the latest keep in memory.
const MEMORY_MAX: usize = 64 << 20;

/// How often a packet is sent again.
const TIMES_MAX: u8 = 3;

/// Time in which a packet that was requested is sent again: requests of other members meanwhile are answered with it.
const ANSWERED: Duration = Duration::from_millis(10);

/// A frame that is kept to send packets of it again.
pub trait Planned {
    /// Returns the frame's packets.
    fn plan(&self) -> &Plan;

    /// Returns the octets that are kept in memory for this frame.
    fn memory(&self) -> usize;
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RetransmissionStatistics {
    /// Packets that clients requested.
    pub requested: u64,
    /// Packets among them that are sent again.
    pub retransmitted: u64,
}

/// The latest frames of a session, and the packets of them that its members requested: one client, or those of a group.
///
/// All members together may request a quarter as many packets as are sent, and each packet three times; how they share
/// that is in [`join`](Self::join). Everything else is ignored, so neither traffic nor memory grows with what is
/// requested. A frame is encoded by rows, so single packets of many rows take more work than their number says.
#[derive(Debug)]
pub struct Retransmissions<F> {
    frames: VecDeque<Kept<F>>,
    waiting: Queues,
    credit: Credit,
    statistics: RetransmissionStatistics,
}

#[derive(Debug)]
struct Kept<F> {
    number: u64,
    begun_at: Instant,
    frame: Arc<F>,
    /// What was requested of each packet; empty before the first request.
    packets: Vec<Requested>,
}

/// The requests of a packet, in as few octets as there are: a client chooses the number of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Requested {
    /// Who requested it last, if anybody did.
    by: MemberId,
    /// When: milliseconds after the frame began.
    at: u16,
    /// How often it was sent again.
    times: u8,
}

impl Requested {
    /// Returns whether another member has just requested the packet.
    fn is_answered(self, member: MemberId, age: u16) -> bool {
        let since = Duration::from_millis(age.saturating_sub(self.at).into());
        self.times > 0 && self.by != member && since < ANSWERED && age < u16::MAX
    }
}

impl<F: Planned> Kept<F> {
    /// Returns the octets that are kept in memory.
    fn memory(&self) -> usize {
        self.frame.memory().saturating_add(size_of_val(&self.packets[..]))
    }
}

impl<F: Planned> Default for Retransmissions<F> {
    fn default() -> Self {
        let statistics = RetransmissionStatistics::default();
        let (frames, waiting, credit) = (VecDeque::new(), Queues::default(), Credit::default());
        Self { frames, waiting, credit, statistics }
    }
}

impl<F: Planned> Retransmissions<F> {
    /// Returns the counts since the beginning.
    pub fn statistics(&self) -> RetransmissionStatistics {
        self.statistics
    }

    /// Adds a client, which may request packets.
    ///
    /// One alone may request a quarter as many packets as it is sent, and at most those of one frame at once. Several
    /// share the quarter, of which each may use as much as it leaves: one that requests everything takes nothing from
    /// the others as long as they request less than it. They are answered in turn, and a packet that one of them has
    /// just requested costs another nothing.
    pub fn join(&mut self) -> MemberId {
        self.credit.join()
    }

    /// Removes a client. What it requested is sent, as others may have requested it, too.
    pub fn leave(&mut self, member: MemberId) {
        self.credit.leave(member);
    }

    /// Keeps a frame that is sent from `now` on, instead of the oldest ones.
    pub fn begin(&mut self, now: Instant, number: u64, frame: Arc<F>) {
        self.credit.begin(u64::from(frame.plan().packets()));
        self.frames.push_back(Kept { number, begun_at: now, frame, packets: Vec::new() });
        let is_old = |frames: &VecDeque<Kept<F>>| {
            frames.get(1).is_some_and(|next| next.begun_at + KEPT <= now)
        };
        let memory = |frames: &VecDeque<Kept<F>>| -> usize {
            let before = frames.iter().rev().skip(1);
            before.fold(0, |sum, kept| sum.saturating_add(kept.memory()))
        };
        while self.frames.len() > FRAMES_MAX
            || memory(&self.frames) > MEMORY_MAX
            || is_old(&self.frames)
        {
            self.frames.pop_front();
        }
    }

    /// Handles a request that a member sent: packets that may be sent again wait to be ([`poll`](Self::poll)).
    ///
    /// `is_sent` returns whether a packet of a frame has been sent before.
    pub fn handle_nack(
        &mut self,
        now: Instant,
        (member, nack): (MemberId, &Nack),
        is_sent: impl Fn(&F, u32) -> bool,
    ) {
        let Some(kept) = self.frames.iter_mut().find(|kept| kept.number == nack.frame) else {
            return;
        };
        let packets = kept.frame.plan().packets();
        if !kept.frame.plan().can_retransmit() {
            return;
        }
        let age = now.saturating_duration_since(kept.begun_at).as_millis();
        let age = u16::try_from(age).unwrap_or(u16::MAX);
        let Some(share) = self.credit.share_of(member) else { return };
        for packet in
            nack.packets.iter().flat_map(|run| run.start.min(packets)..run.end.min(packets))
        {
            let before = kept.packets.get(packet as usize);
            let is_answered = before.is_some_and(|before| before.is_answered(member, age));
            let is_granted = if is_answered {
                self.credit.join_request(share)
            } else {
                !self.waiting.is_full(member) && self.credit.spend(share)
            };
            if !is_granted {
                return;
            }
            self.statistics.requested += 1;
            if is_answered {
                continue;
            }
            if kept.packets.is_empty() {
                kept.packets.resize(packets as usize, Requested::default());
            }
            let Some(requested) = kept.packets.get_mut(packet as usize) else { continue };
            if requested.times == TIMES_MAX || !is_sent(&kept.frame, packet) {
                continue;
            }
            *requested = Requested { by: member, at: age, times: requested.times + 1 };
            self.statistics.retransmitted += 1;
            self.waiting.push(member, kept.number, packet);
        }
    }

    /// Returns the next packets to send again, of one frame.
    pub fn poll(&mut self) -> Option<(Arc<F>, Range<u32>)> {
        loop {
            let (number, packets) = self.waiting.pop()?;
            // A frame that is no longer kept has ended at the client.
            if let Some(kept) = self.frames.iter().find(|kept| kept.number == number) {
                return Some((kept.frame.clone(), packets));
            }
        }
    }

    /// Returns whether packets wait to be sent again.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
