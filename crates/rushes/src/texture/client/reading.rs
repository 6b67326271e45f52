//! Until when the sockets of the units have been read (UDP).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rushes_net::Waker;

use super::super::lock;

/// The longest time that deadlines wait for a thread that does not read its socket.
const LATE_MAX: Duration = Duration::from_millis(100);

/// The time until which each unit has read everything that had arrived.
///
/// A deadline ends frames of all units, so it has passed only once all of them have read their sockets since:
/// packets that a frame lacks may wait there for a thread that is late. Units over RTP, whose waits nothing ends, are
/// not among them. Nor do frames wait of which nothing was read while later ones need their memory.
#[derive(Default)]
pub(super) struct Reading(Mutex<Vec<Unit>>);

struct Unit {
    until: Instant,
    /// The latest deadline for which the thread was woken.
    woken_for: Option<Instant>,
    /// Ends the thread's wait.
    waker: Arc<Waker>,
}

impl Reading {
    /// Adds the next unit, whose socket is opened at `now`.
    pub(super) fn add(&self, now: Instant, waker: Arc<Waker>) {
        lock(&self.0).push(Unit { until: now, woken_for: None, waker });
    }

    /// Records that deadlines before `now` need not wait for `unit`.
    pub(super) fn note(&self, unit: usize, now: Instant) {
        if let Some(unit) = lock(&self.0).get_mut(unit) {
            unit.until = unit.until.max(now);
        }
    }

    /// Returns the time of which deadlines have passed at `now`: all units have read what arrived before it, or
    /// one of them is too late.
    pub(super) fn until(&self, now: Instant) -> Instant {
        let units = lock(&self.0);
        let until = units.iter().map(|unit| unit.until).min().unwrap_or(now);
        now.checked_sub(LATE_MAX).map_or(until, |latest| until.max(latest)).min(now)
    }

    /// Returns when `unit` is to look at a deadline: when it has waited long enough for the others, if only they
    /// have not read since.
    pub(super) fn due(&self, unit: usize, deadline: Instant) -> Instant {
        let units = lock(&self.0);
        let has_read = |unit: &Unit| unit.until >= deadline;
        let waits = units.get(unit).is_some_and(has_read) && !units.iter().all(has_read);
        if waits { deadline + LATE_MAX } else { deadline }
    }

    /// Wakes the threads that have not read since `deadline`, once each.
    pub(super) fn wake(&self, deadline: Instant) {
        for unit in lock(&self.0).iter_mut() {
            let is_woken = unit.woken_for.is_some_and(|before| before >= deadline);
            if unit.until >= deadline || is_woken {
                continue;
            }
            unit.woken_for = Some(deadline);
            unit.waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rushes_delivery::{AssemblyOptions, UnitHeader};
    use rushes_net::{SocketOptions, UdpSocket};
    use rushes_texture::Format;

    use super::super::super::shape::TextureShape;
    use super::super::super::sink::{MemorySink, TextureFrame};
    use super::super::frames::Frames;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Two units' frames, of which each that was delivered is noted as whole or not.
    struct Rig {
        shape: TextureShape,
        frames: Frames,
        delivered: Arc<Mutex<Vec<bool>>>,
    }

    impl Rig {
        fn new() -> Self {
            let shape = TextureShape::choose(Format::Rgba8, 64, 64, 2, 1_024).unwrap();
            let reading = Arc::new(Reading::default());
            for _ in 0..2 {
                reading.add(Instant::now(), Arc::new(Waker::new().unwrap()));
            }
            let delivered = Arc::new(Mutex::new(Vec::new()));
            let seen = delivered.clone();
            let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
                lock(&seen).push(frame.is_whole());
            });
            let options = AssemblyOptions {
                deadline_min: 20 * MS,
                deadline_max: 20 * MS,
                ..AssemblyOptions::default()
            };
            let waker = Arc::new(Waker::new().unwrap());
            let state = (Arc::default(), waker, reading);
            let sink = Arc::new(sink);
            let frames = Frames::new((shape.clone(), 2), options, sink, state).unwrap();
            Self { shape, frames, delivered }
        }

        /// Gives all packets of a unit of the first frame to the thread that reads its socket.
        fn read(&self, unit: usize) {
            let plan = self.shape.plan();
            let packets = plan.unit_packets(unit).map(|index| {
                let mut packet = UnitHeader { frame: 0, index }.write().to_vec();
                packet.resize(packet.len() + plan.locate(index).unwrap().bytes.len(), 7);
                packet
            });
            let packets: Vec<_> = packets.collect();
            self.frames.take(Some(unit), packets.iter().map(Vec::as_slice), (None, &|| false));
        }

        /// Returns a time soon after the deadline of the frame.
        fn passed(&self) -> Instant {
            self.frames.poll_timeout(None).unwrap() + 30 * MS
        }

        fn delivered(&self) -> Vec<bool> {
            lock(&self.delivered).clone()
        }
    }

    #[test]
    fn a_frame_waits_for_a_thread_that_has_not_read_its_socket() {
        let rig = Rig::new();
        rig.read(0);
        let passed = rig.passed();
        rig.frames.handle_timeout(passed, Some(0));
        assert_eq!(rig.delivered(), [], "its packets may wait in the other socket");
        // The thread need not look again soon, the other has to.
        assert!(rig.frames.poll_timeout(Some(0)).unwrap() > passed);
        assert!(rig.frames.poll_timeout(Some(1)).unwrap() < passed);
        rig.read(1);
        rig.frames.handle_timeout(passed, Some(1));
        assert_eq!(rig.delivered(), [true]);
    }

    #[test]
    fn a_frame_ends_once_all_sockets_were_read_after_its_deadline() {
        let rig = Rig::new();
        rig.read(0);
        let passed = rig.passed();
        rig.frames.handle_timeout(passed, Some(0));
        rig.frames.handle_timeout(passed, Some(1));
        assert_eq!(rig.delivered(), [false]);
    }

    #[test]
    fn a_frame_does_not_wait_long_for_a_thread_that_never_reads() {
        let rig = Rig::new();
        rig.read(0);
        rig.frames.handle_timeout(rig.passed(), Some(0));
        let due = rig.frames.poll_timeout(Some(0)).unwrap();
        rig.frames.handle_timeout(due.checked_sub(MS).unwrap(), Some(0));
        assert_eq!(rig.delivered(), []);
        rig.frames.handle_timeout(due, Some(0));
        assert_eq!(rig.delivered(), [false]);
    }

    #[test]
    fn a_socket_that_still_holds_packets_does_not_count_as_read() {
        let rig = Rig::new();
        rig.read(0);
        let passed = rig.passed();
        rig.frames.handle_timeout(passed, Some(1));
        rig.frames.handle_timeout(passed, None);
        assert_eq!(rig.delivered(), []);
        assert!(rig.frames.poll_timeout(Some(0)).unwrap() < passed, "it has not read");
    }

    #[test]
    fn threads_that_have_not_read_are_woken_once_for_a_deadline() {
        let (reading, now) = (Reading::default(), Instant::now());
        let wakers = [(); 2].map(|()| Arc::new(Waker::new().unwrap()));
        for waker in &wakers {
            reading.add(now, waker.clone());
        }
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &SocketOptions::default());
        let (socket, mut arena) = {
            let socket = socket.unwrap();
            let arena = socket.arena();
            (socket, arena)
        };
        let mut waits = |waker: &Waker, millis| {
            let deadline = Instant::now() + Duration::from_millis(millis);
            assert!(socket.receive(&mut arena, deadline, Some(waker)).unwrap().is_empty());
            Instant::now() >= deadline
        };
        reading.note(0, now + MS);
        reading.wake(now + MS);
        assert!(!waits(&wakers[1], 60_000));
        reading.wake(now + MS);
        assert!(waits(&wakers[0], 1) && waits(&wakers[1], 1));
        reading.wake(now + 2 * MS);
        assert!(!waits(&wakers[0], 60_000) && !waits(&wakers[1], 60_000));
    }
}
