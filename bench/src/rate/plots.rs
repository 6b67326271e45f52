//! A case over time: rates beside the capacity, and the time in the queue.

use std::ops::Range;

use rushes_netsim::rate::{Case, Flow};

use super::Played;
use super::controller::Library;
use crate::report::{Across, Plot, Series, quantile};

/// Number of points of a line, at most twice as many.
const POINTS: usize = 50;

/// Returns the two plots of a case.
pub(super) fn plots(played: &Played) -> [Plot; 2] {
    let Played { case, controlled, fixed } = played;
    let name = format!("rate-{}", case.name.replace(", ", "-").replace(' ', ""));
    let title = format!("{}: {}", case.name, case.title);
    let media = || controlled.iter().filter(|flow| flow.is_media());
    let mut rates: Vec<_> = media().zip(1..).map(|(flow, n)| sent(case, flow, n)).collect();
    if controlled.iter().any(|flow| !flow.is_media()) {
        rates.push(tcp(case, controlled));
    }
    rates.push(capacity(case, 0));
    if case.is_two_way() {
        rates.push(capacity(case, 1));
    }
    let queues = [("rate control", controlled), ("fixed rate", fixed)];
    let queues = queues.map(|(name, flows)| queued(case, name, flows));
    let across = || Across::Linear;
    let rates = Plot::new(
        format!("{name}-sent"),
        format!("{title}: rates"),
        ["time (s)", "sent (kbit/s)"],
        across(),
        rates,
    );
    let queues = Plot::new(
        format!("{name}-queue"),
        format!("{title}: queue"),
        ["time (s)", "p95 of the time in the queue (ms)"],
        across(),
        queues,
    );
    [rates, queues]
}

/// Returns the ranges of seconds of which a point each is drawn.
fn spans(case: &Case) -> impl Iterator<Item = Range<usize>> {
    let (seconds, step) = (case.seconds as usize, (case.seconds as usize / POINTS).max(1));
    (0..seconds / step).map(move |n| n * step..(n + 1) * step)
}

/// Returns the place of a range on the axis of time.
fn middle(span: &Range<usize>) -> f64 {
    (span.start + span.end) as f64 / 2.0
}

fn sent(case: &Case, flow: &Flow<Library>, number: usize) -> Series {
    let name = if case.name == "5.5" {
        format!("flow of {} ms", flow.delay().as_millis())
    } else {
        format!("flow {number}")
    };
    let spans = spans(case).filter(|span| span.end > flow.begins());
    Series::new(name, spans.map(|span| (middle(&span), flow.sent_rate(span) as f64)))
}

fn tcp(case: &Case, flows: &[Flow<Library>]) -> Series {
    let rate = |span: Range<usize>| {
        let flows = flows.iter().filter(|flow| !flow.is_media());
        flows.map(|flow| flow.sent_rate(span.clone())).sum::<usize>() as f64
    };
    Series::new("TCP", spans(case).map(|span| (middle(&span), rate(span))))
}

fn capacity(case: &Case, way: usize) -> Series {
    let name = match (case.is_two_way(), way) {
        (false, _) => "capacity",
        (true, 0) => "capacity there",
        (true, _) => "capacity back",
    };
    let points = spans(case).map(|span| (middle(&span), case.capacity(way, span.start) as f64));
    Series::new(name, points).reference(true)
}

fn queued(case: &Case, name: &str, flows: &[Flow<Library>]) -> Series {
    let point = |span: Range<usize>| {
        let media = flows.iter().filter(|flow| flow.is_media());
        let times = media.flat_map(|flow| flow.queued(span.clone()));
        let times: Vec<_> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        Some((middle(&span), quantile(&times, 0.95)?))
    };
    Series::new(name, spans(case).filter_map(point))
}
