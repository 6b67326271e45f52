//! Events of a stream or a client name it by their span.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::{Debug, Write};
use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rushes::{Codec, Context, MediaStream};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Much longer than loopback needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// The spans made, the spans entered, and each event with the span that it was emitted in.
#[derive(Debug, Default)]
struct Seen {
    spans: Vec<String>,
    entered: Vec<usize>,
    events: Vec<(String, Option<String>)>,
}

static SEEN: Mutex<Seen> =
    Mutex::new(Seen { spans: Vec::new(), entered: Vec::new(), events: Vec::new() });

struct Collector;

#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

fn seen<T>(look: impl FnOnce(&mut Seen) -> T) -> T {
    look(&mut SEEN.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Only this thread uses the streams, so one list of entered spans is enough.
impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut text = Text(span.metadata().name().to_owned());
        span.record(&mut text);
        seen(|seen| {
            seen.spans.push(text.0);
            Id::from_u64(seen.spans.len() as u64)
        })
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        seen(|seen| {
            let span = seen.entered.last().map(|n| seen.spans[*n].clone());
            seen.events.push((text.0, span));
        });
    }

    fn enter(&self, span: &Id) {
        seen(|seen| seen.entered.push(span.into_u64() as usize - 1));
    }

    fn exit(&self, _: &Id) {
        seen(|seen| seen.entered.pop());
    }
}

/// The span of the event that a malformed report to `stream` causes.
fn span_of_a_malformed_report(stream: &mut MediaStream, others: &mut MediaStream) -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = stream.local_address().port() + 1;
    let end = Instant::now() + PATIENCE;
    loop {
        socket.send_to(&[0x80, 200, 0, 9, 1, 2, 3, 4], ("127.0.0.1", port)).unwrap();
        let _ = stream.pull_frame(Duration::from_millis(10)).unwrap();
        let _ = others.pull_frame(Duration::ZERO).unwrap();
        let found = seen(|seen| {
            let mut events = seen.events.drain(..);
            events.find(|(text, _)| text.contains("is not RTCP")).map(|(_, span)| span)
        });
        if let Some(span) = found {
            return span.unwrap();
        }
        assert!(Instant::now() < end, "{:?}", seen(|seen| format!("{seen:?}")));
    }
}

#[test]
fn an_event_of_one_of_several_streams_is_in_the_span_of_that_stream() {
    tracing::subscriber::set_global_default(Collector).unwrap();
    let session = Context::new().session("127.0.0.1").unwrap();
    let open = || {
        // RTCP is on the next port, which must be free.
        let mut tries = (0..50).filter_map(|_| session.stream(Codec::Generic).open().ok());
        tries.next().unwrap()
    };
    let (mut first, mut second) = (open(), open());
    for _ in 0..2 {
        let span = span_of_a_malformed_report(&mut first, &mut second);
        let expected = format!("stream local={} ssrc={}", first.local_address(), first.ssrc());
        assert_eq!(span, expected);
        std::mem::swap(&mut first, &mut second);
    }
    assert!(seen(|seen| seen.entered.is_empty()), "every span is left");
}
