//! The stripes of a frame, and their distribution among the units.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rushes_delivery::control::{FrameRate, Nack};
use rushes_delivery::{MemberId, RetransmissionStatistics, Retransmissions, Stripe};
use rushes_net::Waker;

use super::super::lock;
use super::encoding::{Encoding, Picture};
use super::job::{Job, may_begin};
use super::pace::interval;
use super::packing::{Before, Packs, Refresh};
use super::scaled::ScaledPicture;
use super::shared::{Shared, Stripes};

/// Time after the last frame in which a client may request packets of it.
const LINGER: Duration = Duration::from_millis(150);

/// Time in which each stripe is sent at least once where packets may be lost, and its longest in frames.
const ROUND: Duration = Duration::from_secs(1);
const ROUND_FRAMES_MAX: u64 = 240;

/// Runs of packets that a unit sends again at once.
const RETRANSMITTED_MAX: usize = 32;

/// Frames whose notices wait for the control connection; older ones are discarded.
const NOTICES_MAX: usize = 64;

/// A frame that was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub(super) frame: u64,
    /// When the picture was available.
    pub(super) captured_at: Instant,
    /// From the capture until the first unit began.
    pub(super) waited: Duration,
    /// From the first unit's beginning to the last one's end.
    pub(super) took: Duration,
    /// Time that the units were busy, in total and (`busy_max`) for the busiest one.
    pub(super) busy: Duration,
    pub(super) busy_max: Duration,
    pub(super) octets: u64,
    pub(super) packets: u64,
    /// Repair packets.
    pub(super) repairs: u64,
    /// Pictures not encoded so far, for lack of time.
    pub(super) dropped: u64,
}

/// What a unit sends next.
pub(super) enum Task {
    Stripe(Arc<Job>, Stripe),
    /// Packets that the client requested.
    Retransmissions(Vec<(Arc<Job>, Range<u32>)>),
}

/// The work of one session: one frame at a time, in stripes that any unit may take.
pub(super) struct Work {
    state: Mutex<State>,
    /// Notified when there may be a stripe to take, or when no more follow.
    begun: Condvar,
    /// Notified when there is room for a picture.
    room: Condvar,
    /// Wakes the session's control connection.
    waker: Arc<Waker>,
    units: usize,
    /// Whether the transport is lossless.
    is_reliable: bool,
    /// Whether packets are sent again that the client requests.
    is_recovered: bool,
    /// Whether stripes may be packed.
    is_packed: bool,
    /// The work of the group, which sends the frames of a client that has joined it.
    followed: Option<Arc<Work>>,
}

/// The work of a unit on a frame.
#[derive(Clone, Copy, Default)]
struct Busy {
    /// When it took its first stripe.
    began: Option<Instant>,
    /// When it took its current stripe.
    since: Option<Instant>,
    /// Time spent on the previous stripes.
    time: Duration,
}

/// A picture that was not begun.
struct Waiting {
    picture: Picture,
    /// Of which version of the source's layout it is.
    version: u64,
    captured_at: Instant,
    /// The stripes shared with other sessions that were given the picture, in the shape at that time, and the picture
    /// in its size.
    stripes: Option<Arc<Stripes>>,
    scaled: Option<Arc<ScaledPicture>>,
}

/// A client of a group.
struct Follower {
    /// Its work, which gets a notice of each frame.
    work: Arc<Work>,
    member: MemberId,
}

#[derive(Default)]
struct State {
    job: Option<Arc<Job>>,
    begun_at: Option<Instant>,
    /// When the last frame was sent.
    sent_at: Option<Instant>,
    /// The next stripe of each tile, and the tile's number of stripes.
    tiles: Vec<(usize, usize)>,
    unsent: usize,
    /// Each unit's work on the frame.
    busy: Vec<Busy>,
    encoding: Option<Arc<Encoding>>,
    /// The version of the source's layout.
    version: u64,
    /// Repair packets for 100 packets of the frames that begin.
    fec_percent: u8,
    waiting: Option<Waiting>,
    next_frame: u64,
    dropped: u64,
    /// The interval between pictures, for a client that requested a lower rate than the source's.
    interval: Option<Duration>,
    /// The interval between the source's pictures; a picture may be early by half of it.
    source_interval: Duration,
    due: Option<Instant>,
    notices: VecDeque<Sent>,
    /// The latest frames, of which packets may be sent again.
    retransmissions: Retransmissions<Job>,
    /// The session's own client, as one that requests packets.
    own: Option<MemberId>,
    /// The counts of `retransmissions` that were taken.
    retransmissions_taken: RetransmissionStatistics,
    /// The frame before, if stripes may be packed, and the stripes that the client lacks.
    before: Option<Before>,
    refresh: BTreeSet<usize>,
    failure: Option<String>,
    /// The clients of the group.
    followers: Vec<Follower>,
    /// Whether no more pictures follow.
    has_ended: bool,
    stopped: bool,
}

impl State {
    /// Returns runs of packets that the client requested.
    fn requested(&mut self) -> Vec<(Arc<Job>, Range<u32>)> {
        let next = std::iter::from_fn(|| self.retransmissions.poll());
        next.take(RETRANSMITTED_MAX).collect()
    }

    /// Notes a frame that was sent, for the control connection.
    fn note_sent(&mut self, notice: Sent) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Returns whether a picture is due for this client, which may have requested a lower rate than
    /// the source's.
    fn is_due(&mut self, captured_at: Instant) -> bool {
        let Some(interval) = self.interval else { return true };
        let due = self.due.unwrap_or(captured_at);
        if captured_at + self.source_interval / 2 < due {
            return false;
        }
        // After a late picture, the following ones are not sent earlier.
        self.due = Some((due + interval).max(captured_at));
        true
    }
}

impl Work {
    /// Creates the work of `units` units, without a frame.
    pub(super) fn new(units: usize, waker: Arc<Waker>, is_reliable: bool) -> Self {
        let state = State { busy: vec![Busy::default(); units], ..State::default() };
        let (begun, room) = (Condvar::new(), Condvar::new());
        let (state, is_recovered, is_packed) = (Mutex::new(state), false, false);
        let followed = None;
        Self { state, begun, room, waker, units, is_reliable, is_recovered, is_packed, followed }
    }

    /// Returns the work of a client whose frames are sent by `followed`, to a group.
    pub(super) fn following(self, followed: Arc<Self>) -> Self {
        Self { followed: Some(followed), ..self }
    }

    /// Tells a client of each frame that is sent from now on, of which it may request packets.
    pub(super) fn add_follower(&self, client: Arc<Self>) {
        let mut state = lock(&self.state);
        // The clients of a group share what one of its own would have.
        if let Some(own) = state.own.take() {
            state.retransmissions.leave(own);
        }
        let member = state.retransmissions.join();
        state.followers.push(Follower { work: client, member });
    }

    /// Tells a client of no more frames.
    pub(super) fn remove_follower(&self, client: &Arc<Self>) {
        let State { followers, retransmissions, .. } = &mut *lock(&self.state);
        followers.retain(|follower| {
            let is_kept = !Arc::ptr_eq(&follower.work, client);
            if !is_kept {
                retransmissions.leave(follower.member);
            }
            is_kept
        });
    }

    /// Returns the number of the next frame.
    pub(super) fn next_frame(&self) -> u64 {
        lock(&self.state).next_frame
    }

    /// Returns the number of pictures that were not encoded so far, for lack of time.
    pub(super) fn dropped(&self) -> u64 {
        lock(&self.state).dropped
    }

    /// Returns whether no more frames follow those that have begun.
    pub(super) fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.has_ended || state.stopped
    }

    /// Returns the work with packets sent again that the client requests, if `is_recovered`.
    pub(super) fn recovered(self, is_recovered: bool) -> Self {
        {
            let mut state = lock(&self.state);
            state.own = is_recovered.then(|| state.retransmissions.join());
        }
        Self { is_recovered, ..self }
    }

    /// Returns the work with packed stripes, if `is_packed`.
    pub(super) fn packed(self, is_packed: bool) -> Self {
        Self { is_packed, ..self }
    }

    /// Sends a stripe with the next frame, even if it has not changed.
    pub(super) fn refresh(&self, stripe: usize) {
        lock(&self.state).refresh.insert(stripe);
    }

    /// Returns the stripes of the frame that begins, if they may be packed.
    fn packs(&self, state: &mut State, encoding: &Arc<Encoding>) -> Option<Packs> {
        if !self.is_packed || !encoding.shape().plan().can_pack() {
            return None;
        }
        let interval = state.interval.unwrap_or(state.source_interval).as_nanos();
        let second = ROUND.as_nanos().checked_div(interval).unwrap_or_default();
        let round = u64::try_from(second).unwrap_or(u64::MAX).clamp(1, ROUND_FRAMES_MAX);
        let round = (!self.is_reliable).then_some(round);
        let refresh = Refresh { requested: std::mem::take(&mut state.refresh), round };
        Some(Packs::new(state.next_frame, encoding, state.before.take(), refresh))
    }

    /// Sets the repair packets for 100 packets, from the next frame on.
    pub(super) fn set_fec_percent(&self, percent: u8) {
        lock(&self.state).fec_percent = percent;
    }

    /// Encodes frames with `encoding` from now on.
    pub(super) fn resume(&self, encoding: Arc<Encoding>) {
        let mut state = lock(&self.state);
        state.encoding = Some(encoding);
        drop(state);
        self.begun.notify_all();
    }

    /// Stops beginning frames, waits until the current one is sent, and returns the next frame's
    /// number.
    ///
    /// Returns `None` if that takes longer than `longest`.
    pub(super) fn pause(&self, longest: Duration) -> Option<u64> {
        if let Some(followed) = &self.followed {
            return followed.pause(longest);
        }
        let mut state = lock(&self.state);
        state.encoding = None;
        let until = Instant::now() + longest;
        while state.job.is_some() && !state.stopped {
            let left = until.checked_duration_since(Instant::now())?;
            let waited = self.room.wait_timeout(state, left);
            state = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        Some(state.next_frame)
    }

    /// Records the version of the source's layout of which the pictures that follow are. They are begun once there is
    /// an encoding for them.
    pub(super) fn note_layout(&self, version: u64) {
        lock(&self.state).version = version;
        self.wake();
    }

    /// Returns whether a frame has begun and is not sent yet.
    pub(super) fn is_sending(&self) -> bool {
        lock(&self.state).job.is_some()
    }

    /// Accepts pictures at the rate `wished` if it is below the rate `source`.
    pub(super) fn set_rate(&self, source: FrameRate, wished: FrameRate) {
        let slower = interval(wished) > interval(source);
        let mut state = lock(&self.state);
        // A picture half an interval early counts as due, because the source's clock differs from
        // the requested rate.
        state.source_interval = interval(source);
        state.interval = slower.then(|| interval(wished));
        state.due = None;
    }

    /// Accepts a picture, of which stripes may be shared with other sessions. Drops the previous one if it
    /// has not been begun.
    pub(super) fn push(&self, picture: Picture, captured_at: Instant, shared: Option<&Shared>) {
        let mut state = lock(&self.state);
        if state.stopped || state.has_ended || !state.is_due(captured_at) {
            return;
        }
        // A group with clients keeps its encoding. It sends no pictures of another layout: its clients have to connect
        // again.
        let is_behind = |it: &Arc<Encoding>| it.version() != state.version;
        if !state.followers.is_empty() && state.encoding.as_ref().is_some_and(is_behind) {
            return;
        }
        state.dropped += u64::from(state.waiting.is_some());
        let version = state.version;
        let encoding = state.encoding.as_deref().filter(|it| it.version() == version);
        let stripes = encoding.and_then(|encoding| shared?.stripes(encoding));
        let scaled = encoding.and_then(|encoding| shared?.scaled(encoding, &picture));
        state.waiting = Some(Waiting { picture, version, captured_at, stripes, scaled });
        drop(state);
        self.begun.notify_all();
    }

    /// Waits until a picture can be pushed without dropping another; returns false after `longest`.
    pub(super) fn wait_for_room(&self, longest: Duration) -> bool {
        let state = lock(&self.state);
        let full = |state: &mut State| {
            !state.stopped
                && !state.has_ended
                && (state.waiting.is_some() || state.encoding.is_none())
        };
        let waited = self.room.wait_timeout_while(state, longest, full);
        !waited.unwrap_or_else(std::sync::PoisonError::into_inner).1.timed_out()
    }

    /// Accepts no more pictures; those waiting are still sent.
    pub(super) fn end(&self) {
        lock(&self.state).has_ended = true;
        self.room.notify_all();
        self.wake();
    }

    /// Returns whether no more pictures follow, and all have been sent. A client that has lost packets
    /// has time to request those of the last frames.
    pub(super) fn is_done(&self) -> bool {
        if let Some(followed) = &self.followed {
            return followed.is_done();
        }
        let state = lock(&self.state);
        let is_lossy = state.retransmissions.statistics().requested > 0;
        let lingers = is_lossy && state.sent_at.is_some_and(|at| at.elapsed() < LINGER);
        state.has_ended && state.waiting.is_none() && state.job.is_none() && !lingers
    }

    /// Notifies the units that a picture has grown.
    pub(super) fn grown(&self) {
        // Taking the lock ensures that a unit which has just checked is waiting before it is
        // notified.
        drop(lock(&self.state));
        self.begun.notify_all();
    }

    /// Begins the picture that waits, if no frame is being sent.
    ///
    /// A unit calls it when it can send: until then a newer picture replaces the one that waits.
    fn begin(&self, state: &mut MutexGuard<'_, State>) {
        if state.job.is_some() {
            return;
        }
        let Some(encoding) = state.encoding.clone() else { return };
        // A picture of a layout that follows waits for its encoding; one of a layout before was too slow.
        let has_encoding = |waiting: &mut Waiting| waiting.version <= encoding.version();
        let Some(waiting) = state.waiting.take_if(has_encoding) else { return };
        if waiting.version < encoding.version() {
            state.dropped += 1;
            return self.room.notify_all();
        }
        let Waiting { picture, captured_at, stripes, scaled, .. } = waiting;
        let picture = encoding.prepare(picture, scaled);
        // The shape may have changed while the picture waited: it is then encoded for this session alone.
        let shared = Mutex::new(stripes.filter(|stripes| stripes.are_of(&encoding)));
        let plan = encoding.shape().plan();
        state.tiles.clear();
        state.tiles.extend((0..plan.units()).map(|unit| (0, plan.stripe_count(unit))));
        state.unsent = state.tiles.iter().map(|&(_, stripes)| stripes).sum();
        state.busy.fill(Busy::default());
        state.begun_at = Some(Instant::now());
        let may_begin = may_begin(&picture, self.is_reliable, state.source_interval);
        let frame = state.next_frame;
        let can_repair = encoding.shape().plan().can_repair();
        let fec_percent = if can_repair { state.fec_percent } else { 0 };
        let packs = self.packs(state, &encoding);
        let job =
            Job { frame, encoding, picture, captured_at, may_begin, fec_percent, shared, packs };
        let job = Arc::new(job);
        if self.is_recovered {
            state.retransmissions.begin(Instant::now(), frame, job.clone());
        }
        state.job = Some(job);
        state.next_frame += 1;
        self.begun.notify_all();
        self.room.notify_all();
    }

    /// Returns what a unit sends next: packets that the client requested, which are the most urgent,
    /// then a stripe of its own tiles, then of the tile with the most stripes left.
    ///
    /// Waits for it; returns `None` when no more follows.
    pub(super) fn take(&self, unit: usize) -> Option<Task> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            let requested = state.requested();
            if !requested.is_empty() {
                return Some(Task::Retransmissions(requested));
            }
            self.begin(&mut state);
            if let Some(tile) = self.choose(&state, unit) {
                let index = state.tiles[tile].0;
                state.tiles[tile].0 += 1;
                let job = state.job.clone()?;
                let stripe = job.encoding.shape().plan().stripe(tile, index)?;
                if let Some(busy) = state.busy.get_mut(unit) {
                    let now = Instant::now();
                    busy.began.get_or_insert(now);
                    busy.since = Some(now);
                }
                return Some(Task::Stripe(job, stripe));
            }
            state = self.begun.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Lets a unit send packets again, as far as the client may request them.
    pub(super) fn request(&self, nack: &Nack) {
        let work = self.followed.as_deref().unwrap_or(self);
        let mut state = lock(&work.state);
        let followers = &mut state.followers.iter();
        let follower = followers.find(|follower| std::ptr::eq(Arc::as_ptr(&follower.work), self));
        let Some(member) = follower.map(|follower| follower.member).or(state.own) else { return };
        let State { retransmissions, tiles, job: current, .. } = &mut *state;
        retransmissions.handle_nack(Instant::now(), (member, nack), |job, packet| {
            let is_current = current.as_ref().is_some_and(|current| current.frame == job.frame);
            let stripe = job.encoding.shape().plan().stripe_of(packet);
            // Stripes that were taken have been sent, or soon will be.
            let is_taken = |it: Stripe| tiles.get(it.unit).is_some_and(|tile| it.index < tile.0);
            !is_current || stripe.is_some_and(is_taken)
        });
        if retransmissions.is_waiting() {
            work.begun.notify_one();
        }
    }

    /// Returns packets that the client requested, for a unit that is sending a stripe.
    pub(super) fn poll_requested(&self) -> Vec<(Arc<Job>, Range<u32>)> {
        if self.is_recovered { lock(&self.state).requested() } else { Vec::new() }
    }

    /// Returns the packets that were requested and sent again since the last call, if any.
    pub(super) fn take_retransmissions(&self) -> Option<RetransmissionStatistics> {
        if let Some(followed) = &self.followed {
            return followed.take_retransmissions();
        }
        let mut state = lock(&self.state);
        let now = state.retransmissions.statistics();
        let before = std::mem::replace(&mut state.retransmissions_taken, now);
        (now != before).then(|| RetransmissionStatistics {
            requested: now.requested - before.requested,
            retransmitted: now.retransmitted - before.retransmitted,
        })
    }

    fn choose(&self, state: &State, unit: usize) -> Option<usize> {
        let job = state.job.as_ref()?;
        let left = |&tile: &usize| state.tiles[tile].1 - state.tiles[tile].0;
        let open = |tile: &usize| left(tile) > 0 && job.is_ready(*tile, state.tiles[*tile].0);
        let own = (unit..state.tiles.len()).step_by(self.units.max(1)).find(open);
        own.or_else(|| (0..state.tiles.len()).filter(open).max_by_key(left))
    }

    /// Records that a unit has sent its stripe, and ends the frame with the last one.
    pub(super) fn sent(&self, unit: usize, job: &Job) {
        let now = Instant::now();
        let mut state = lock(&self.state);
        if let Some(busy) = state.busy.get_mut(unit)
            && let Some(since) = busy.since.take()
        {
            busy.time += now.saturating_duration_since(since);
        }
        state.unsent = state.unsent.saturating_sub(1);
        if state.unsent > 0 || state.job.is_none() {
            return;
        }
        state.job = None;
        job.release();
        state.before = job.packs.as_ref().map(|packs| packs.end(job));
        let (octets, packets) = job.sent();
        state.sent_at = Some(now);
        let began = |state: &State| state.busy.iter().filter_map(|busy| busy.began).min();
        let begun_at = began(&state).or(state.begun_at).unwrap_or(now);
        let captured_at = job.captured_at;
        let busy = state.busy.iter().map(|busy| busy.time);
        let notice = Sent {
            frame: job.frame,
            captured_at,
            waited: begun_at.saturating_duration_since(captured_at),
            took: now.saturating_duration_since(begun_at),
            busy: busy.clone().sum(),
            busy_max: busy.max().unwrap_or_default(),
            octets,
            packets,
            repairs: u64::from(job.encoding.shape().plan().repairs(job.fec_percent)),
            dropped: state.dropped,
        };
        for follower in &state.followers {
            lock(&follower.work.state).note_sent(notice.clone());
        }
        state.note_sent(notice);
        drop(state);
        self.begun.notify_all();
        self.room.notify_all();
        self.wake();
    }

    /// Removes and returns the next notice of a frame that was sent.
    pub(super) fn poll_sent(&self) -> Option<Sent> {
        lock(&self.state).notices.pop_front()
    }

    /// Records the failure of a unit, which stops all.
    pub(super) fn fail(&self, why: String) {
        lock(&self.state).failure.get_or_insert(why);
        self.stop();
    }

    /// Returns the reason for which a unit failed.
    pub(super) fn failure(&self) -> Option<String> {
        let own = self.followed.as_deref().unwrap_or(self);
        lock(&own.state).failure.clone()
    }

    /// Ends the work of all units.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.begun.notify_all();
        self.room.notify_all();
        self.wake();
    }

    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Wakes the session's control connection, or those of all clients of a group, to check for changes.
    pub(super) fn wake(&self) {
        let of = |follower: &Follower| follower.work.waker.clone();
        let wakers: Vec<_> = lock(&self.state).followers.iter().map(of).collect();
        for waker in wakers {
            waker.wake();
        }
        self.waker.wake();
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of runs may have one")]
mod tests;
