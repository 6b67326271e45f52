//! Passes pictures from the source to every session.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes_texture::source::{GrowingFrame, Live, Taker};
use rushes_texture::{Frame, Layout, Source};

use super::super::lock;
use super::encoding::Picture;
use super::shared::Shared;
use super::work::Work;
use crate::pace::sleep_until;

/// Longest wait of the thread before it checks whether to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Each faster frame reduces the remembered time of a slow one by a fraction of 1 / `TAKES_DECAY`.
const TAKES_DECAY: u32 = 16;

/// When pictures are taken from the source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Timing {
    /// At the source's rate. Slow clients miss whole frames.
    Live,
    /// At the source's rate, or more slowly if a client is slow: every session is sent every frame.
    /// A client that reads nothing delays all others until it is disconnected.
    EveryFrame,
    /// As fast as the slowest session accepts them: every session is sent every frame, as with
    /// [`EveryFrame`](Self::EveryFrame).
    FlatOut,
}

/// The sessions that receive frames.
pub(super) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

/// The layout of the source's pictures.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceLayout {
    pub(super) layout: Layout,
    /// How often it has changed.
    pub(super) version: u64,
}

struct State {
    source: SourceLayout,
    sessions: Vec<Arc<Work>>,
    stopped: bool,
    /// Whether a live source has ended.
    is_over: bool,
    failure: Option<String>,
}

impl Feed {
    /// Creates the feed of a source whose first pictures have this layout.
    pub(super) fn new(layout: Layout) -> Self {
        let source = SourceLayout { layout, version: 0 };
        let (sessions, stopped, is_over, failure) = (Vec::new(), false, false, None);
        let state = Mutex::new(State { source, sessions, stopped, is_over, failure });
        Self { state, changed: Condvar::new() }
    }

    /// Returns the layout of the pictures that are passed on now.
    pub(super) fn source(&self) -> SourceLayout {
        lock(&self.state).source
    }

    /// Records the layout of the pictures that follow. Each session offers it to its client, and its units wait
    /// until it is accepted.
    fn change(&self, layout: Layout) {
        let mut state = lock(&self.state);
        if state.source.layout == layout {
            return;
        }
        state.source = SourceLayout { layout, version: state.source.version + 1 };
        for work in &state.sessions {
            work.note_layout(state.source.version);
        }
    }

    /// Feeds a session from now on.
    pub(super) fn join(&self, work: Arc<Work>) {
        let mut state = lock(&self.state);
        if state.is_over {
            return work.end();
        }
        work.note_layout(state.source.version);
        state.sessions.push(work);
        self.changed.notify_all();
    }

    pub(super) fn leave(&self, work: &Arc<Work>) {
        let mut state = lock(&self.state);
        state.sessions.retain(|other| !Arc::ptr_eq(other, work));
        self.changed.notify_all();
    }

    /// Returns why the source failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.state).failure.clone()
    }

    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    fn sessions(&self) -> Vec<Arc<Work>> {
        lock(&self.state).sessions.clone()
    }

    /// Waits for a session; false if the server stops.
    fn wait_for_session(&self) -> bool {
        let mut state = lock(&self.state);
        while state.sessions.is_empty() && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.stopped
    }

    /// Runs until stopped. Whenever there are sessions, the source plays from its beginning; a live
    /// source plays once.
    pub(super) fn run(&self, source: &mut dyn Source, timing: Timing, loops: bool) {
        if let Some(live) = source.live() {
            return self.run_live(source, timing, live);
        }
        while self.wait_for_session() {
            let played = self.play(source, timing, loops);
            let rewound = |()| source.rewind().map_err(|error| error.to_string());
            let result = played.and_then(rewound);
            if let Err(why) = result {
                return self.fail(why);
            }
            // Clients that come are offered what the next round begins with.
            self.change(*source.layout());
        }
    }

    /// Plays the source until its end, or until no session is left.
    fn play(&self, source: &mut dyn Source, timing: Timing, loops: bool) -> Result<(), String> {
        let mut round = Round::new(self, timing);
        round.interval = (timing != Timing::FlatOut).then(|| source.rate().interval());
        loop {
            let sessions = self.sessions();
            if sessions.is_empty() || self.is_stopped() {
                return Ok(());
            }
            let more = round.pass_on(source)?;
            if !more && loops {
                source.rewind().map_err(|error| error.to_string())?;
            } else if !more {
                self.end(&sessions);
                return Ok(());
            }
        }
    }

    /// Passes on the frames of a live source until its end. Without sessions they are discarded or,
    /// if every frame must be sent, the source waits.
    fn run_live(&self, source: &mut dyn Source, timing: Timing, live: Arc<dyn Live>) {
        let mut round = Round::new(self, timing);
        round.live = Some(live);
        let is_wanted = || match timing {
            Timing::Live => !self.is_stopped(),
            Timing::EveryFrame | Timing::FlatOut => self.wait_for_session(),
        };
        while is_wanted() {
            match round.pass_on(source) {
                Ok(true) => {}
                Ok(false) => {
                    let sessions = {
                        let mut state = lock(&self.state);
                        state.is_over = true;
                        state.sessions.clone()
                    };
                    return self.end(&sessions);
                }
                Err(why) => return self.fail(why),
            }
        }
    }

    /// Waits until a picture is due, or the server stops.
    fn sleep_until(&self, due: Instant) {
        // The last part is left to the more exact timer.
        while due.saturating_duration_since(Instant::now()) > CHECK_INTERVAL && !self.is_stopped() {
            let left =
                due.saturating_duration_since(Instant::now()).saturating_sub(CHECK_INTERVAL / 2);
            let is_running = |state: &mut State| !state.stopped;
            drop(self.changed.wait_timeout_while(lock(&self.state), left, is_running));
        }
        if !self.is_stopped() {
            sleep_until(due);
        }
    }

    /// Records that the source failed.
    pub(super) fn fail(&self, why: String) {
        lock(&self.state).failure.get_or_insert(why);
        self.wake_all();
    }

    fn wait_for_room(&self, sessions: &[Arc<Work>]) {
        for work in sessions {
            while !work.wait_for_room(CHECK_INTERVAL) && !self.is_stopped() {}
        }
    }

    /// Ends sessions at the end of the source: they send the frames that they have and receive no
    /// more.
    fn end(&self, sessions: &[Arc<Work>]) {
        let has_ended = |work: &Arc<Work>| sessions.iter().any(|it| Arc::ptr_eq(it, work));
        lock(&self.state).sessions.retain(|work| !has_ended(work));
        for work in sessions {
            work.end();
        }
    }

    fn wake_all(&self) {
        for work in self.sessions() {
            work.wake();
        }
    }
}

/// Passes a source's frames to the sessions when they are due.
struct Round<'a> {
    feed: &'a Feed,
    timing: Timing,
    /// The time between frames, unless they are passed on at once.
    interval: Option<Duration>,
    due: Instant,
    /// The source as a live source, if it is one.
    live: Option<Arc<dyn Live>>,
    layout: Layout,
    /// The growing frame, and when it began.
    begun: Option<(GrowingFrame, Instant)>,
    /// Time that growing frames take.
    takes: Option<Duration>,
    /// Frames given since the last check.
    given: u64,
    /// Size of a frame with the wrong size in octets; nothing is passed on after it.
    wrong: Option<usize>,
}

impl<'a> Round<'a> {
    fn new(feed: &'a Feed, timing: Timing) -> Self {
        let (due, layout) = (Instant::now(), feed.source().layout);
        let (interval, live, begun, takes, given, wrong) = (None, None, None, None, 0, None);
        Self { feed, timing, interval, due, live, layout, begun, takes, given, wrong }
    }

    /// Passes on the source's next frame; returns false at its end.
    fn pass_on(&mut self, source: &mut dyn Source) -> Result<bool, String> {
        let more = source.give_frame(self).map_err(|error| error.to_string())?;
        self.end();
        if more && std::mem::take(&mut self.given) == 0 {
            return Err("the source reported a frame but gave none".to_owned());
        }
        match self.wrong {
            Some(have) => {
                let bytes = self.layout.bytes();
                Err(format!("the source gave a frame of {have} octets instead of {bytes}"))
            }
            None => Ok(more),
        }
    }

    fn is_right(&mut self, have: usize) -> bool {
        if have != self.layout.bytes() {
            self.wrong.get_or_insert(have);
        }
        self.wrong.is_none()
    }

    /// Ends the frame that was begun.
    fn end(&mut self) {
        let Some((frame, since)) = self.begun.take() else { return };
        self.is_right(frame.so_far());
        // The slowest recent time: it decays while others are faster.
        let before = self.takes.unwrap_or_default();
        let before = before * (TAKES_DECAY - 1) / TAKES_DECAY;
        self.takes = Some(since.elapsed().max(before));
        // A source may have omitted the last notification.
        self.grown();
    }

    fn give(&mut self, picture: &Picture) {
        let feed = self.feed;
        if self.timing != Timing::Live {
            feed.wait_for_room(&feed.sessions());
        }
        if let Some(interval) = self.interval {
            feed.sleep_until(self.due);
            // After a delay the schedule moves; later pictures are not sent faster.
            self.due = (self.due + interval).max(Instant::now());
        }
        let captured_at = self.live.as_ref().and_then(|live| live.captured_at());
        let captured_at = captured_at.unwrap_or_else(Instant::now);
        let sessions = feed.sessions();
        let shared = (sessions.len() > 1).then(Shared::default);
        for work in sessions {
            work.push(picture.clone(), captured_at, shared.as_ref());
        }
    }
}

impl Taker for Round<'_> {
    fn change(&mut self, layout: &Layout) {
        if *layout == self.layout {
            return;
        }
        self.end();
        self.layout = *layout;
        if self.timing != Timing::Live {
            // Pictures that wait must be sent in the shape before.
            self.feed.wait_for_room(&self.feed.sessions());
        }
        self.feed.change(*layout);
    }

    fn take(&mut self, frame: Frame) {
        self.end();
        self.given += 1;
        if self.is_right(frame.len()) {
            self.give(&Picture::Whole(frame));
        }
    }

    fn begin(&mut self, frame: &GrowingFrame) {
        self.end();
        self.given += 1;
        if self.is_right(frame.bytes()) {
            self.give(&Picture::Growing { frame: frame.clone(), takes: self.takes });
            self.begun = Some((frame.clone(), Instant::now()));
        }
    }

    fn grown(&mut self) {
        for work in self.feed.sessions() {
            work.grown();
        }
    }
}
