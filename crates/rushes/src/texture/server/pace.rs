//! Pacing of a session: the units of a frame share one schedule.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rushes_delivery::HEADER_BYTES;
use rushes_delivery::control::FrameRate;

use super::super::lock;
use super::job::Job;
use super::work::Work;
use crate::error::Error;
use crate::pace::{Burst, Pace, Pacer, Pacing};

/// The schedule of a session's bursts, whichever unit sends them.
pub(super) struct SessionPace {
    /// The maximum octets of a burst; `None` without pacing.
    burst_len: Option<usize>,
    is_exact: bool,
    state: Mutex<State>,
}

struct State {
    pacer: Pacer,
    /// The frame being sent.
    frame: Option<u64>,
}

impl SessionPace {
    /// Creates a schedule for frames at `rate`.
    pub(super) fn new((pacing, burst): (Pacing, Burst), rate: FrameRate) -> Result<Self, Error> {
        let pacer = Pacer::new(pacing, burst, Some(interval(rate)), Instant::now())?;
        let (burst_len, is_exact) = (pacer.burst_len(), pacer.is_exact());
        Ok(Self { burst_len, is_exact, state: Mutex::new(State { pacer, frame: None }) })
    }

    /// Sets the rate of the frames that begin from now on.
    pub(super) fn set_rate(&self, rate: FrameRate) {
        lock(&self.state).pacer.set_interval(interval(rate));
    }
}

/// Returns the time between frames.
pub(super) fn interval(rate: FrameRate) -> Duration {
    Duration::from_secs(u64::from(rate.denominator)) / rate.numerator.max(1)
}

/// One unit's access to the schedule.
#[derive(Clone)]
pub(super) struct UnitPace {
    session: Arc<SessionPace>,
    work: Arc<Work>,
}

impl UnitPace {
    pub(super) fn new(session: Arc<SessionPace>, work: Arc<Work>) -> Self {
        Self { session, work }
    }

    /// Begins to send a stripe of a frame at `now`: with the frame's first stripe, the frame begins.
    pub(super) fn begin(&self, now: Instant, job: &Job) {
        if self.session.burst_len.is_none() {
            return;
        }
        let plan = job.encoding.shape().plan();
        let headers = HEADER_BYTES * plan.packets() as usize;
        let mut state = lock(&self.session.state);
        if state.frame.replace(job.frame) != Some(job.frame) {
            let repairs = plan.repair_octets(job.fec_percent);
            state.pacer.start(now, plan.bytes() + headers + repairs);
        }
    }
}

impl UnitPace {
    /// Returns the work of the session.
    pub(super) fn work(&self) -> &Work {
        &self.work
    }

    /// Returns when a burst is due that is not a part of the frame being sent.
    pub(super) fn due_beyond(&self, now: Instant, len: usize) -> Option<Instant> {
        self.session.burst_len?;
        lock(&self.session.state).pacer.due_beyond(now, len)
    }
}

impl fmt::Debug for UnitPace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitPace").finish_non_exhaustive()
    }
}

impl Pace for UnitPace {
    /// Does nothing: to a stream, a stripe is a frame, but it is a part of one here.
    fn start(&mut self, _: Instant, _: usize) {}

    fn burst_len(&self) -> Option<usize> {
        self.session.burst_len
    }

    fn due(&mut self, now: Instant, len: usize) -> Option<Instant> {
        self.session.burst_len?;
        lock(&self.session.state).pacer.due(now, len)
    }

    /// Waits until a burst is due, or the session ends.
    fn wait(&self, due: Instant, goes_on: &mut dyn FnMut() -> bool) -> bool {
        crate::pace::wait(due, self.session.is_exact, || !self.work.is_stopped() && goes_on())
    }
}

#[cfg(test)]
mod tests {
    use rushes_net::Waker;
    use rushes_texture::{Format, Frame};

    use super::super::super::shape::TextureShape;
    use super::super::encoding::{Encoding, Picture};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn job(frame: u64) -> Job {
        let shape = TextureShape::choose(Format::Rgba8, 1_024, 1_024, 4, 1_408).unwrap();
        let encoding =
            Arc::new(Encoding::new(shape.layout().in_format(Format::Rgba8), shape).unwrap());
        let picture = Picture::Whole(Frame::new(vec![0; 4 << 20]));
        let (captured_at, may_begin, fec_percent) = (Instant::now(), true, 0);
        let shared = Mutex::default();
        let packs = None;
        Job { frame, encoding, picture, captured_at, may_begin, fec_percent, shared, packs }
    }

    fn units(pacing: Pacing) -> (Arc<SessionPace>, Vec<UnitPace>) {
        let rate = FrameRate { numerator: 50, denominator: 1 };
        let session = Arc::new(SessionPace::new((pacing, Burst::default()), rate).unwrap());
        let work = Arc::new(Work::new(4, Arc::new(Waker::new().unwrap()), false));
        let unit = || UnitPace::new(session.clone(), work.clone());
        (session.clone(), (0..4).map(|_| unit()).collect())
    }

    /// Returns when the last of a frame's bursts is due, if four units send them in turn.
    fn last_due(units: &mut [UnitPace], frame: u64, octets: usize, start: Instant) -> Duration {
        let mut last = start;
        for at in 0..octets / (32 << 10) {
            let unit = at % 4;
            units[unit].begin(start, &job(frame));
            last = units[unit].due(start, 32 << 10).unwrap_or(last);
        }
        last - start
    }

    #[test]
    fn all_units_together_spread_a_frame_over_a_share_of_its_interval() {
        let (session, mut units) = units(Pacing::default());
        let start = Instant::now();
        let last = last_due(&mut units, 0, 4 << 20, start);
        assert!(last > 17 * MS && last <= 19 * MS, "{last:?}");
        session.set_rate(FrameRate { numerator: 25, denominator: 1 });
        let last = last_due(&mut units, 1, 4 << 20, start + 20 * MS);
        assert!(last > 35 * MS && last <= 40 * MS, "{last:?}");
    }

    #[test]
    fn all_units_together_keep_a_rate_within_a_few_bursts() {
        let (_, mut units) = units(Pacing::Rate(80_000_000));
        let start = Instant::now();
        let mut due = 0;
        // At 10 octets in a microsecond, 100 000 octets take 10 ms.
        for at in 0..32 {
            let unit = at % 4;
            units[unit].begin(start, &job(0));
            let wait = units[unit].due(start, 10_000).map_or(0, |due| (due - start).as_micros());
            due += u128::from(wait <= 10_000);
        }
        assert_eq!(due, 11);
    }

    #[test]
    fn a_unit_does_not_wait_for_its_turn_after_the_end() {
        let (_, units) = units(Pacing::Rate(1));
        units[0].work.stop();
        assert!(!units[0].wait(Instant::now() + Duration::from_secs(1 << 20), &mut || true));
    }
}
