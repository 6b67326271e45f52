//! Counters and timings of a server.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rushes_delivery::RetransmissionStatistics;
use rushes_delivery::control::Stopped;

use super::super::lock;
use super::work::Sent;

/// Frames whose timings are kept.
const FRAMES_MAX: usize = 1_024;

/// Ended sessions, and refused clients, that are kept until they are taken.
const ENDS_MAX: usize = 64;

/// Counters of a [`TextureServer`](crate::texture::TextureServer) for all clients together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ServerCounts {
    /// Current sessions.
    pub clients: usize,
    /// Clients whose session this side has ended, and that have not closed their connections yet. Each counts for 10 s
    /// at most; a server that is dropped meanwhile may leave a client that lost the last message without the reason.
    pub closing: usize,
    /// Frames sent, counted for each client.
    pub frames: u64,
    /// Octets of tiles sent: to a multicast group, once for all its clients.
    pub octets: u64,
    /// Pictures that were not encoded, because the previous one was not yet sent.
    pub dropped: u64,
    /// Packets that clients requested because they did not arrive
    /// ([`ServerOptions::recovery`](crate::texture::ServerOptions::recovery)).
    pub packets_requested: u64,
    /// Packets among them that were sent again; the others had not been sent, or had been requested
    /// too often.
    pub packets_retransmitted: u64,
    /// Repair packets sent ([`ServerOptions::fec`](crate::texture::ServerOptions::fec)).
    pub repairs: u64,
    /// Changes to a smaller format or rate, because a client reported losses
    /// ([`ServerOptions::adaptation`](crate::texture::ServerOptions::adaptation)).
    pub steps_down: u64,
    /// Changes to a larger one, in the absence of losses.
    pub steps_up: u64,
}

/// Timings of one frame on the server's side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SentFrame {
    /// The frame's number.
    pub frame: u64,
    /// When the picture was available.
    pub captured_at: Instant,
    /// From the capture until the first unit began.
    pub waited: Duration,
    /// From the first unit's beginning until the last unit had sent its last octet.
    pub took: Duration,
    /// Time that a unit was busy encoding and sending, on average; waits for its turn to send
    /// ([`ServerOptions::pacing`](crate::texture::ServerOptions::pacing)) included.
    pub unit_mean: Duration,
    /// The longest time that a unit was busy.
    pub unit_max: Duration,
    /// Pictures dropped so far.
    pub dropped: u64,
}

#[derive(Default)]
pub(super) struct Tally {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counts: ServerCounts,
    frames: VecDeque<SentFrame>,
    ends: VecDeque<(SocketAddr, Stopped)>,
    refusals: VecDeque<(SocketAddr, Stopped)>,
}

impl Tally {
    /// Counts what was sent of a frame: to a group, once for all clients.
    pub(super) fn note_sent(&self, sent: &Sent, units: usize, dropped_before: u64) {
        let mut state = lock(&self.state);
        state.counts.octets += sent.octets;
        state.counts.repairs += sent.repairs;
        state.counts.dropped += sent.dropped.saturating_sub(dropped_before);
        if state.frames.len() == FRAMES_MAX {
            state.frames.pop_front();
        }
        state.frames.push_back(SentFrame {
            frame: sent.frame,
            captured_at: sent.captured_at,
            waited: sent.waited,
            took: sent.took,
            unit_mean: sent.busy / units.max(1) as u32,
            unit_max: sent.busy_max,
            dropped: sent.dropped,
        });
    }

    /// Counts a frame that a client was sent.
    pub(super) fn note_frame(&self) {
        lock(&self.state).counts.frames += 1;
    }

    /// Counts packets that a client requested, and those that are sent again.
    pub(super) fn note_retransmissions(&self, retransmissions: RetransmissionStatistics) {
        let counts = &mut lock(&self.state).counts;
        counts.packets_requested += retransmissions.requested;
        counts.packets_retransmitted += retransmissions.retransmitted;
    }

    /// Counts a change to a smaller step (`Greater`) or a larger one.
    pub(super) fn note_step(&self, step: Ordering) {
        let counts = &mut lock(&self.state).counts;
        counts.steps_down += u64::from(step == Ordering::Greater);
        counts.steps_up += u64::from(step == Ordering::Less);
    }

    pub(super) fn note_end(&self, peer: SocketAddr, stopped: &Stopped) {
        push(&mut lock(&self.state).ends, (peer, stopped.clone()));
    }

    pub(super) fn note_refusal(&self, peer: SocketAddr, stopped: Stopped) {
        push(&mut lock(&self.state).refusals, (peer, stopped));
    }

    pub(super) fn counts(&self) -> ServerCounts {
        lock(&self.state).counts
    }

    /// Removes and returns the latest frames, oldest first.
    pub(super) fn take_frames(&self) -> Vec<SentFrame> {
        lock(&self.state).frames.drain(..).collect()
    }

    pub(super) fn take_ends(&self) -> Vec<(SocketAddr, Stopped)> {
        lock(&self.state).ends.drain(..).collect()
    }

    pub(super) fn take_refusals(&self) -> Vec<(SocketAddr, Stopped)> {
        lock(&self.state).refusals.drain(..).collect()
    }
}

/// Keeps the latest [`ENDS_MAX`].
fn push<T>(ends: &mut VecDeque<T>, end: T) {
    if ends.len() == ENDS_MAX {
        ends.pop_front();
    }
    ends.push_back(end);
}
