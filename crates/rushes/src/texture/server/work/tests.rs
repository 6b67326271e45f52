use std::sync::Weak;

use rushes_texture::source::GrowingFrame;
use rushes_texture::{Format, Frame, Layout};

use super::super::super::shape::TextureShape;
use super::*;

/// Returns the work of a frame with two tiles of four stripes each.
fn work(units: usize) -> Work {
    let work = Work::new(units, Arc::new(Waker::new().unwrap()), true);
    // A stripe has 256 KiB, in rows of 8 KiB.
    let layout = Layout::new(Format::Rgba8, 2_048, 256).unwrap();
    let shape = TextureShape::given(layout, &[2], 32, 1_408).unwrap();
    work.resume(Arc::new(Encoding::new(shape.layout().in_format(Format::Rgba8), shape).unwrap()));
    work
}

fn picture() -> Picture {
    Picture::Whole(Frame::new(vec![0; 2_048 * 256 * 4]))
}

fn growing(frame: &GrowingFrame) -> Picture {
    Picture::Growing { frame: frame.clone(), takes: None }
}

impl Work {
    fn take_stripe(&self, unit: usize) -> Option<(Arc<Job>, Stripe)> {
        match self.take(unit)? {
            Task::Stripe(job, stripe) => Some((job, stripe)),
            Task::Retransmissions(_) => panic!("nothing was requested"),
        }
    }

    fn has_stripe(&self, unit: usize) -> bool {
        let mut state = lock(&self.state);
        self.begin(&mut state);
        self.choose(&state, unit).is_some()
    }
}

#[test]
fn an_idle_unit_takes_over_stripes_of_another() {
    let work = work(2);
    work.push(picture(), Instant::now(), None);
    let taken: Vec<_> = (0..8).map(|_| work.take_stripe(0).unwrap().1).collect();
    let places: Vec<_> = taken.iter().map(|stripe| (stripe.unit, stripe.index)).collect();
    let own = (0..4).map(|index| (0, index));
    assert_eq!(places, own.chain((0..4).map(|index| (1, index))).collect::<Vec<_>>());
}

#[test]
fn a_waiting_picture_holds_stripes_of_its_own_shape_only() {
    let encoding = |output| {
        let shape = TextureShape::choose(output, 2_048, 256, 2, 1_408).unwrap();
        Arc::new(Encoding::new(shape.layout().in_format(Format::Rgba8), shape).unwrap())
    };
    let (own, other) = (encoding(Format::Bc1), encoding(Format::YCoCgBc3));
    let (work, shared) = (work(1), Shared::default());
    work.resume(own.clone());
    work.push(picture(), Instant::now(), Some(&shared));
    let held = [&own, &other].map(|it| Arc::downgrade(&shared.stripes(it).unwrap()));
    drop(shared);
    assert_eq!(held.each_ref().map(Weak::strong_count), [1, 0]);
    // They are of no use in another shape.
    work.resume(other);
    let (job, _) = work.take_stripe(0).unwrap();
    assert!(lock(&job.shared).is_none() && held[0].strong_count() == 0);
}

#[test]
fn a_unit_is_busy_while_it_has_a_stripe() {
    let work = work(1);
    work.push(picture(), Instant::now(), None);
    let mut longest = Duration::ZERO;
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(2));
        let before = Instant::now();
        let (job, _) = work.take_stripe(0).unwrap();
        work.sent(0, &job);
        longest += before.elapsed();
    }
    let sent = work.poll_sent().unwrap();
    assert!(sent.busy <= longest && sent.took >= Duration::from_millis(14), "{sent:?}");
}

#[test]
fn the_next_frame_begins_when_the_last_stripe_is_sent() {
    let work = work(2);
    work.push(picture(), Instant::now(), None);
    let taken: Vec<_> = (0..8).map(|at| work.take_stripe(at % 2).unwrap()).collect();
    work.push(picture(), Instant::now(), None);
    for (job, _) in &taken {
        assert!(work.poll_sent().is_none());
        work.sent(0, job);
    }
    assert_eq!(work.poll_sent().map(|sent| (sent.frame, sent.dropped)), Some((0, 0)));
    assert_eq!(work.take_stripe(0).unwrap().0.frame, 1);
}

#[test]
fn a_picture_that_was_not_begun_is_replaced_by_the_next() {
    let work = work(1);
    let begun_at = Instant::now();
    for picture_number in 1..=4 {
        work.push(picture(), begun_at + Duration::from_millis(picture_number), None);
    }
    for _ in 0..8 {
        let (job, _) = work.take_stripe(0).unwrap();
        assert_eq!((job.frame, job.captured_at - begun_at), (0, Duration::from_millis(4)));
        work.sent(0, &job);
    }
    assert_eq!(work.poll_sent().map(|sent| sent.dropped), Some(3));
}

#[test]
fn a_stripe_is_taken_once_its_rows_are_there() {
    let work = work(2);
    // Parts of three quarters of a stripe.
    let frame = GrowingFrame::new(2_048 * 256 * 4, 3 << 16);
    work.push(growing(&frame), Instant::now(), None);
    let mut taken = 0;
    while !frame.is_whole() {
        let left = frame.bytes() - frame.so_far();
        assert!(frame.add(&vec![taken as u8; left.min(3 << 16)]));
        work.grown();
        while work.has_stripe(1) {
            let (job, stripe) = work.take_stripe(1).unwrap();
            let mut scratch = Vec::new();
            let octets = job.encoding.stripe(&job.picture, &stripe, &mut scratch).unwrap();
            assert_eq!(octets.len(), 1 << 18);
            work.sent(1, &job);
            taken += 1;
        }
        // Stripes of the second tile follow those of the first.
        assert_eq!(taken, frame.so_far() >> 18);
    }
    assert_eq!((taken, work.poll_sent().map(|sent| sent.frame)), (8, Some(0)));
}

#[test]
fn who_waits_for_more_of_a_picture_is_woken() {
    let work = work(1);
    let frame = GrowingFrame::new(2_048 * 256 * 4, 1 << 18);
    work.push(growing(&frame), Instant::now(), None);
    std::thread::scope(|scope| {
        let unit =
            scope.spawn(|| (0..8).map(|_| work.take_stripe(0).unwrap().1.index).sum::<usize>());
        for _ in 0..8 {
            assert!(frame.add(&vec![0; 1 << 18]));
            work.grown();
        }
        assert_eq!(unit.join().unwrap(), 12);
    });
}

#[test]
fn no_thread_waits_for_work_that_has_stopped() {
    let work = work(1);
    work.stop();
    assert!(work.take_stripe(0).is_none());
    work.push(picture(), Instant::now(), None);
    assert!(work.take_stripe(0).is_none());
}

#[test]
fn a_pause_begins_no_frame_and_keeps_the_picture_that_waits() {
    let work = work(1);
    let encoding = lock(&work.state).encoding.clone().unwrap();
    assert_eq!(work.pause(Duration::ZERO), Some(0));
    work.push(picture(), Instant::now(), None);
    assert!(!work.wait_for_room(Duration::ZERO));
    assert_eq!(work.pause(Duration::ZERO), Some(0));
    work.resume(encoding);
    assert_eq!(work.take_stripe(0).unwrap().0.frame, 0);
}

#[test]
fn a_client_that_wishes_fewer_pictures_gets_as_many_as_it_wishes() {
    let work = work(1);
    let rate = |numerator| FrameRate { numerator, denominator: 1 };
    for (wished, expected) in [(60, 60), (50, 50), (40, 40), (30, 30), (7, 7)] {
        work.set_rate(rate(60), rate(wished));
        let start = Instant::now();
        let mut state = lock(&work.state);
        let times = (0..600).map(|frame| start + Duration::from_secs(10) / 600 * frame);
        let taken = times.filter(|&at| state.is_due(at)).count();
        assert!(taken.abs_diff(expected * 10) <= 1, "{wished}: {taken}");
    }
}

/// Returns the frame and the packets of each part that a unit sends again.
fn again(work: &Work) -> Vec<(u64, Range<u32>)> {
    match work.take(0) {
        Some(Task::Retransmissions(parts)) => {
            parts.into_iter().map(|(job, packets)| (job.frame, packets)).collect()
        }
        _ => Vec::new(),
    }
}

fn nack(frame: u64, packets: &[Range<u32>]) -> Nack {
    Nack { frame, packets: packets.to_vec() }
}

#[test]
fn requested_packets_are_sent_again_before_further_stripes() {
    let work = work(1).recovered(true);
    work.push(picture(), Instant::now(), None);
    let (job, stripe) = work.take_stripe(0).unwrap();
    let packets = job.encoding.shape().plan().stripe_packets(&stripe);
    // The second stripe was not sent yet.
    work.request(&nack(0, &[1..2, packets.end - 1..packets.end + 2]));
    assert_eq!(again(&work), [(0, 1..2), (0, packets.end - 1..packets.end)]);
    let counts = RetransmissionStatistics { requested: 4, retransmitted: 2 };
    assert_eq!((work.take_retransmissions(), work.take_retransmissions()), (Some(counts), None));
    work.sent(0, &job);
    for _ in 1..8 {
        let (job, _) = work.take_stripe(0).unwrap();
        work.sent(0, &job);
    }
    work.request(&nack(0, &[packets.end..packets.end + 2]));
    assert_eq!(again(&work), [(0, packets.end..packets.end + 2)], "the frame is kept");
}

#[test]
fn clients_of_a_group_share_what_they_may_request_until_they_leave() {
    let group = Arc::new(work(1).recovered(true));
    let [greedy, honest, other] = [(); 3].map(|()| {
        let work = Work::new(0, Arc::new(Waker::new().unwrap()), false);
        Arc::new(work.following(group.clone()))
    });
    group.add_follower(greedy.clone());
    group.add_follower(honest.clone());
    for frame in 0..20 {
        group.push(picture(), Instant::now(), None);
        for _ in 0..8 {
            let (job, _) = group.take_stripe(0).unwrap();
            group.sent(0, &job);
        }
        greedy.request(&nack(frame, &[0..u32::MAX]));
        assert!(!again(&group).is_empty());
        while lock(&group.state).retransmissions.poll().is_some() {}
    }
    let far = 1_400..1_440;
    honest.request(&nack(19, std::slice::from_ref(&far)));
    assert_eq!(again(&group), [(19, far.clone())], "the other one used everything");
    other.request(&nack(19, &[700..710]));
    group.remove_follower(&honest);
    honest.request(&nack(19, &[720..730]));
    assert!(!lock(&group.state).retransmissions.is_waiting(), "they are not in the group");
}

#[test]
fn nothing_is_kept_for_a_client_that_requests_nothing() {
    let work = work(1);
    work.push(picture(), Instant::now(), None);
    work.take_stripe(0).unwrap();
    work.request(&nack(0, &[0..1]));
    assert_eq!(work.take_retransmissions(), None);
    assert!(work.has_stripe(0));
}

#[test]
fn stripes_are_shared_until_every_session_has_sent_or_dropped_the_picture() {
    let works = [(); 2].map(|()| {
        let work = Work::new(1, Arc::new(Waker::new().unwrap()), true);
        let layout = Layout::new(Format::Bc1, 2_048, 256).unwrap();
        let shape = TextureShape::given(layout, &[1], 64, 1_408).unwrap();
        work.resume(Arc::new(
            Encoding::new(shape.layout().in_format(Format::Rgba8), shape).unwrap(),
        ));
        work
    });
    let shared = Shared::default();
    for work in &works {
        work.push(picture(), Instant::now(), Some(&shared));
    }
    drop(shared);
    let mut places = Vec::new();
    let (job, stripe) = works[0].take_stripe(0).unwrap();
    let mut note = |job: &Job, stripe: &Stripe| {
        let octets = |_: u32, octets: &[u8]| {
            places.push(octets.as_ptr() as usize);
            Ok(())
        };
        job.with_octets(stripe, &mut Vec::new(), octets).unwrap();
    };
    note(&job, &stripe);
    works[0].sent(0, &job);
    assert!(lock(&job.shared).is_none(), "a job that is kept to send packets again has none");
    let (other, stripe) = works[1].take_stripe(0).unwrap();
    let stripes = Arc::downgrade(lock(&other.shared).as_ref().unwrap());
    note(&other, &stripe);
    works[1].sent(0, &other);
    assert!(stripes.upgrade().is_none(), "all have sent it");
    assert_eq!(places[0], places[1], "it was encoded twice");
}

#[test]
fn pictures_of_a_new_layout_wait_for_their_encoding_and_those_of_an_old_one_are_dropped() {
    let encoding = |version| {
        let shape = TextureShape::choose(Format::Rgba8, 2_048, 256, 2, 1_408).unwrap();
        Arc::new(Encoding::new(*shape.layout(), shape).unwrap().with_version(version))
    };
    let work = work(1);
    work.push(picture(), Instant::now(), None);
    work.note_layout(1);
    assert!(work.has_stripe(0), "it was pushed before");
    while work.is_sending() {
        let (job, _) = work.take_stripe(0).unwrap();
        work.sent(0, &job);
    }
    work.push(picture(), Instant::now(), None);
    assert!(!work.has_stripe(0) && !work.wait_for_room(Duration::ZERO));
    work.resume(encoding(1));
    assert!(work.has_stripe(0) && work.wait_for_room(Duration::ZERO));
    while work.is_sending() {
        let (job, _) = work.take_stripe(0).unwrap();
        work.sent(0, &job);
    }
    let dropped = work.dropped();
    work.push(picture(), Instant::now(), None);
    work.resume(encoding(2));
    assert!(!work.has_stripe(0) && work.wait_for_room(Duration::ZERO), "nobody waits for it");
    assert_eq!(work.dropped(), dropped + 1);
}

#[test]
fn a_group_does_not_wait_for_an_encoding_that_it_never_gets() {
    let (work, client) = (work(1), work(1));
    work.add_follower(Arc::new(client));
    work.note_layout(1);
    work.push(picture(), Instant::now(), None);
    assert!(work.wait_for_room(Duration::ZERO) && !work.has_stripe(0));
}
