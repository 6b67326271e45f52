use super::*;

const INTERVAL: Duration = Duration::from_micros(16_667);
const NETWORK: Duration = Duration::from_millis(20);
const MILLISECOND: Duration = Duration::from_millis(1);

/// A frame on its way to the presenter.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    captured_at: Instant,
    ready_at: Instant,
    /// When the capture time becomes known.
    known_at: Option<Instant>,
}

/// A frame on the screen.
#[derive(Clone, Copy, Debug)]
struct Shown {
    number: u64,
    at: Instant,
    latency: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ready(Sent),
    Known(Sent),
}

/// Pseudorandom times below a maximum.
struct Jitter(u64);

impl Jitter {
    fn next(&mut self, max: Duration) -> Duration {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        max * ((self.0 >> 40) as u32) / (1 << 24)
    }
}

/// Returns a stream whose frames are ready `delay` after their capture; the report follows 1 ms
/// later.
fn stream(frames: u64, mut delay: impl FnMut(u64) -> Duration) -> Vec<Sent> {
    // Some systems have no times before they were started.
    let begun_at = Instant::now() + Duration::from_secs(10_000);
    let mut last = begun_at;
    let sent = |number| {
        let captured_at = begun_at + INTERVAL * u32::try_from(number).unwrap();
        // Frames are handed over in order.
        let ready_at = last.max(captured_at + delay(number));
        last = ready_at;
        Sent { number, captured_at, ready_at, known_at: Some(ready_at + MILLISECOND) }
    };
    (0..frames).map(sent).collect()
}

/// Runs a presenter until it holds nothing, and checks that it goes forward and holds few frames.
fn present(latency: Option<Duration>, stream: &[Sent]) -> Vec<Shown> {
    let mut presenter = Presenter::new(latency);
    let mut events: Vec<(Instant, Event)> = Vec::new();
    for &sent in stream {
        events.push((sent.ready_at, Event::Ready(sent)));
        events.extend(sent.known_at.map(|at| (at, Event::Known(sent))));
    }
    events.sort_by_key(|event| event.0);
    let (mut shown, mut wake): (Vec<Shown>, Option<Instant>) = (Vec::new(), None);
    let mut events = events.into_iter().peekable();
    while let Some(now) = events.peek().map(|event| event.0).into_iter().chain(wake).min() {
        if let Some((_, event)) = events.next_if(|event| event.0 <= now) {
            match event {
                Event::Ready(sent) => presenter.push(sent.number, sent.ready_at, sent),
                Event::Known(sent) => {
                    presenter.note_captured(sent.number, sent.captured_at);
                }
            }
        }
        let (frame, next) = presenter.poll(now);
        assert!(next.is_none_or(|next| next > now), "it would be asked without end");
        assert!(presenter.held.len() < HELD_MAX && presenter.times.len() <= TIMES_MAX);
        wake = next;
        if let Some(Sent { number, captured_at, .. }) = frame {
            let latency = now.saturating_duration_since(captured_at);
            shown.push(Shown { number, at: now, latency });
        }
    }
    assert!(shown.is_sorted_by(|a, b| a.number < b.number && a.at <= b.at));
    shown
}

/// Returns the mean deviation of the intervals between instants from the frame interval.
fn unevenness(instants: impl Iterator<Item = Instant> + Clone) -> Duration {
    let pairs = instants.clone().zip(instants.skip(1));
    let deviations: Vec<Duration> =
        pairs.map(|(a, b)| b.duration_since(a).abs_diff(INTERVAL)).collect();
    deviations.iter().sum::<Duration>() / u32::try_from(deviations.len()).unwrap()
}

/// Network jitter of up to 12 ms.
fn jittered(frames: u64) -> Vec<Sent> {
    let mut jitter = Jitter(1);
    stream(frames, |_| NETWORK + jitter.next(12 * MILLISECOND))
}

#[test]
fn jitter_is_not_visible() {
    let stream = jittered(600);
    let shown = present(None, &stream);
    // The first frame is shown at once, since nothing is known yet.
    let (arrived, presented) = (&stream[2..], &shown[2..]);
    assert_eq!(shown.len(), stream.len(), "no frame is left out");
    let before = unevenness(arrived.iter().map(|sent| sent.ready_at));
    let after = unevenness(presented.iter().map(|shown| shown.at));
    assert!(before > 3 * MILLISECOND && after * 20 < before, "{before:?}, {after:?}");
    for shown in &shown[64..] {
        let spare = shown.latency.checked_sub(NETWORK + INTERVAL);
        assert!(spare.is_some_and(|spare| spare < MILLISECOND), "{shown:?}");
    }
}

#[test]
fn a_fixed_latency_is_kept_exactly() {
    let latency = 50 * MILLISECOND;
    let shown = present(Some(latency), &jittered(100));
    assert_eq!(shown.len(), 100);
    // The first report arrives after the first frame, which is shown at once; the interval is known
    // with the second.
    assert!(shown[2..].iter().all(|shown| shown.latency == latency), "{shown:?}");
}

#[test]
fn a_latency_of_0_presents_each_frame_when_it_is_ready() {
    let stream = jittered(100);
    let shown = present(Some(Duration::ZERO), &stream);
    let ready: Vec<Instant> = stream.iter().map(|sent| sent.ready_at).collect();
    assert_eq!(shown.iter().map(|shown| shown.at).collect::<Vec<_>>(), ready);
}

#[test]
fn frames_without_capture_times_are_presented_when_they_are_ready() {
    for latency in [None, Some(50 * MILLISECOND)] {
        let mut stream = jittered(100);
        for sent in &mut stream {
            sent.known_at = None;
        }
        let shown = present(latency, &stream);
        let ready: Vec<Instant> = stream.iter().map(|sent| sent.ready_at).collect();
        assert_eq!(shown.iter().map(|shown| shown.at).collect::<Vec<_>>(), ready);
    }
}

#[test]
fn capture_times_that_are_late_or_lost_are_predicted() {
    let mut stream = jittered(300);
    for sent in &mut stream[10..] {
        let is_lost = sent.number % 5 != 0;
        sent.known_at = Some(sent.ready_at + 40 * MILLISECOND).filter(|_| !is_lost);
    }
    let shown = present(None, &stream);
    assert_eq!(shown.len(), stream.len());
    let after = unevenness(shown[2..].iter().map(|shown| shown.at));
    assert!(after < MILLISECOND, "{after:?}");
}

#[test]
fn a_burst_after_a_pause_does_not_raise_the_latency() {
    // Nothing arrives for 200 ms from frame 100 on, and then everything at once.
    let stream = stream(200, |number| match number {
        100..112 => NETWORK + (200 * MILLISECOND).saturating_sub(INTERVAL * (number as u32 - 100)),
        _ => NETWORK,
    });
    let shown = present(None, &stream);
    let after = shown.iter().filter(|shown| shown.number >= 112);
    assert!(after.clone().count() > 80);
    assert!(after.into_iter().all(|shown| shown.latency == NETWORK + INTERVAL));
}

#[test]
fn a_longer_path_is_followed_within_the_window_and_a_shorter_one_at_once() {
    let longer = 100 * MILLISECOND;
    let mut jitter = Jitter(2);
    let stream = stream(600, |number| {
        let further = if (200..400).contains(&number) { longer } else { Duration::ZERO };
        NETWORK + further + jitter.next(8 * MILLISECOND)
    });
    let shown = present(None, &stream);
    let part = |from: u64, to: u64| {
        let shown: Vec<Shown> =
            shown.iter().filter(|it| (from..to).contains(&it.number)).copied().collect();
        let after = unevenness(shown.iter().map(|shown| shown.at));
        assert!(after < MILLISECOND / 2, "{from}: {after:?}");
        shown
    };
    let window = TIMES_MAX as u64;
    let expected = NETWORK + INTERVAL;
    for (shown, expected) in [
        (part(window, 200), expected),
        (part(200 + window + 2, 396), expected + longer),
        // Between these, the last frames of the longer path and the first of the shorter one arrive
        // together.
        (part(430, 600), expected),
    ] {
        assert!(!shown.is_empty());
        let is_near = |shown: &Shown| shown.latency.abs_diff(expected) < 2 * MILLISECOND;
        assert!(shown.iter().all(is_near), "{shown:?}");
    }
    let presented_meanwhile = shown.iter().filter(|it| (200..200 + window).contains(&it.number));
    assert_eq!(presented_meanwhile.count() as u64, window, "late frames are shown, too");
}

#[test]
fn a_clock_that_is_set_is_followed_at_once() {
    for is_ahead in [true, false] {
        let mut stream = jittered(200);
        for sent in &mut stream[100..] {
            let wrong = Duration::from_secs(7_200);
            let set = if is_ahead {
                sent.captured_at.checked_add(wrong)
            } else {
                sent.captured_at.checked_sub(wrong)
            };
            sent.captured_at = set.unwrap();
        }
        let shown = present(None, &stream);
        let after = shown.iter().filter(|shown| shown.number >= 110).map(|shown| shown.at);
        assert_eq!(after.clone().count(), 90);
        let after = unevenness(after);
        assert!(after < MILLISECOND, "{is_ahead}: {after:?}");
    }
}

#[test]
fn an_older_frame_is_never_presented_but_a_restarted_stream_is() {
    let mut presenter = Presenter::new(None);
    let now = Instant::now();
    presenter.push(100, now, 100);
    assert_eq!(presenter.poll(now), (Some(100), None));
    presenter.push(99, now, 99);
    presenter.push(100, now, 100);
    assert_eq!(presenter.poll(now), (None, None));
    // The reports of a restarted stream may come before its frames.
    presenter.note_captured(0, now);
    presenter.push(0, now, 0);
    assert_eq!(presenter.captured_at(0), Some(now));
    assert_eq!(presenter.poll(now).0, Some(0));
}

#[test]
fn frames_are_held_within_a_limit_whatever_the_latency_is() {
    let mut presenter = Presenter::new(Some(Duration::MAX));
    let begun_at = Instant::now();
    let at = |number: u64| begun_at + INTERVAL * u32::try_from(number).unwrap();
    let most = HELD_MAX as u64;
    for number in 0..most {
        presenter.note_captured(number, at(number));
        presenter.push(number, at(number), number);
    }
    assert_eq!(presenter.poll(at(most)).0, Some(0), "the oldest makes room");
    // A window that is never drawn asks for nothing.
    for number in most..1_000 {
        presenter.push(number, at(number), number);
        assert!(presenter.held.len() <= HELD_MAX && presenter.times.len() <= TIMES_MAX);
    }
}

#[test]
fn delays_of_another_shape_do_not_count() {
    let mut presenter = Presenter::new(None);
    let stream = stream(20, |_| NETWORK);
    for sent in &stream {
        presenter.note_captured(sent.number, sent.captured_at);
        presenter.push(sent.number, sent.ready_at, ());
        presenter.poll(sent.ready_at);
    }
    presenter.forget_delays();
    let captured_at = stream[0].captured_at + INTERVAL * 20;
    presenter.note_captured(20, captured_at);
    let ready_at = captured_at + 3 * NETWORK;
    presenter.push(20, ready_at, ());
    let (_, next) = presenter.poll(ready_at);
    let held_for = next.unwrap().duration_since(ready_at);
    assert!(held_for.abs_diff(INTERVAL) < MILLISECOND, "{held_for:?}");
}

/// The control connection may stall; what it then reports at once is of no use.
#[test]
fn reports_of_frames_long_gone_change_nothing() {
    let mut presenter = Presenter::new(None);
    for sent in stream(100, |_| NETWORK) {
        presenter.push(sent.number, sent.ready_at, sent);
        presenter.note_captured(sent.number, sent.captured_at);
        presenter.poll(sent.ready_at);
    }
    let (times, interval) = (presenter.times.len(), presenter.interval());
    presenter.note_captured(7, Instant::now());
    assert_eq!((presenter.times.len(), presenter.interval()), (times, interval));
    assert_eq!(interval, Some(INTERVAL));
}

#[test]
fn a_stream_that_begins_anew_has_no_capture_times_of_the_one_before() {
    let mut presenter = Presenter::new(None);
    let before = stream(90, |_| NETWORK);
    for &sent in &before {
        presenter.push(sent.number, sent.ready_at, sent);
        presenter.note_captured(sent.number, sent.captured_at);
    }
    let first = before[0];
    presenter.push(0, first.ready_at + 2 * NETWORK, first);
    assert!((27..90).all(|number| presenter.captured_at(number).is_none()));
}
