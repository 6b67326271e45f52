//! Events of streams and of RTCP.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rushes::proto::rtcp::{Arrival, PacketReport, ReportBlock, SenderInfo};
use rushes::{ControlEvent, KeyFrameRequest};

/// An event of a stream, or a report or request of a peer by RTCP.
///
/// `kind` is the name of the event, `ssrc` the source or participant that it concerns, if any, and
/// `details` contains its other properties by name; the page "from Python" lists them.
/// `event["packets"]` is short for `event.details["packets"]`.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Event {
    kind: &'static str,
    ssrc: Option<u32>,
    details: Py<PyDict>,
}

#[pymethods]
impl Event {
    /// The kind of event, in lower-case words joined by hyphens.
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// The source or participant that it concerns, if any.
    #[getter]
    fn ssrc(&self) -> Option<u32> {
        self.ssrc
    }

    /// All other details, by name.
    #[getter]
    fn details(&self, py: Python<'_>) -> Py<PyDict> {
        self.details.clone_ref(py)
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.details.bind(py).as_any().get_item(name)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let whose = self.ssrc.map_or_else(String::new, |ssrc| format!(" of {ssrc:08x}"));
        Ok(format!("<rushes.Event {}{whose} {}>", self.kind, self.details.bind(py).repr()?))
    }
}

/// An event under construction.
struct Draft<'py>(&'static str, Option<u32>, Bound<'py, PyDict>);

impl<'py> Draft<'py> {
    fn new(py: Python<'py>, kind: &'static str, ssrc: Option<rushes::Ssrc>) -> Self {
        Self(kind, ssrc.map(|ssrc| ssrc.0), PyDict::new(py))
    }

    fn with(self, name: &str, value: impl IntoPyObjectExt<'py>) -> PyResult<Self> {
        self.2.set_item(name, value.into_bound_py_any(self.2.py())?)?;
        Ok(self)
    }

    fn done(self) -> Event {
        Event { kind: self.0, ssrc: self.1, details: self.2.unbind() }
    }
}

/// Converts an event of a receiver.
pub(crate) fn of_stream(py: Python<'_>, event: &rushes::Event) -> PyResult<Event> {
    use rushes::Event as E;
    let draft = |kind, ssrc| Draft::new(py, kind, ssrc);
    Ok(match *event {
        E::FrameDropped { ssrc, timestamp } => {
            draft("frame-dropped", Some(ssrc)).with("timestamp", timestamp.0)?
        }
        E::Conflict { ssrc } => draft("conflict", Some(ssrc)),
        E::KeyExpiring { left } => draft("key-expiring", None).with("left", left)?,
        E::KeyExpired => draft("key-expired", None),
        E::PacketsLost { ssrc, first, packets } => {
            draft("packets-lost", Some(ssrc)).with("first", first.0)?.with("packets", packets)?
        }
        E::OtherPayloadType { payload_type, address, packets } => {
            let address = address.map(|address| address.to_string());
            draft("other-payload-type", None)
                .with("payload_type", payload_type)?
                .with("address", address)?
                .with("packets", packets)?
        }
        E::Refused { reason, packets } => {
            draft("refused", None).with("reason", reason.name())?.with("packets", packets)?
        }
        E::SourceEnded { ssrc } => draft("source-ended", Some(ssrc)),
        E::SourceRestarted { ssrc } => draft("source-restarted", Some(ssrc)),
        E::SourceStarted { ssrc } => draft("source-started", Some(ssrc)),
        _ => draft("other", None).with("text", format!("{event:?}"))?,
    }
    .done())
}

/// Creates the event of a socket that cannot be read.
pub(crate) fn of_error(py: Python<'_>, error: &rushes::Error) -> PyResult<Event> {
    Ok(Draft::new(py, "unreadable", None).with("text", error.to_string())?.done())
}

/// Converts an event of RTCP.
pub(crate) fn of_rtcp(py: Python<'_>, event: &ControlEvent) -> PyResult<Event> {
    use ControlEvent as E;
    let draft = |kind, ssrc: &rushes::Ssrc| Draft::new(py, kind, Some(*ssrc));
    let without_ssrc = |kind| Draft::new(py, kind, None);
    Ok(match event {
        E::SenderReport { from, info } => {
            draft("sender-report", from).with("sender", sender(py, info)?)?
        }
        E::ReceiverReport { from, block, round_trip } => draft("receiver-report", from)
            .with("report", report(py, block)?)?
            .with("round_trip", round_trip.map(|time| time.as_secs_f64()))?,
        E::RoundTrip { from, round_trip } => {
            draft("round-trip", from).with("round_trip", round_trip.as_secs_f64())?
        }
        E::SourceDescription { from, items } => {
            let texts = PyDict::new(py);
            for (kind, text) in items {
                texts.set_item(format!("{kind:?}").to_lowercase(), text)?;
            }
            draft("source-description", from).with("items", texts)?
        }
        E::Bye { from, reason } => draft("bye", from).with("reason", reason.as_str())?,
        E::TimedOut { from } => draft("timed-out", from),
        E::App { from, subtype, name, data } => draft("app", from)
            .with("subtype", *subtype)?
            .with("name", String::from_utf8_lossy(name).into_owned())?
            .with("data", PyBytes::new(py, data))?,
        E::KeyFrameRequested { from, request } => {
            let name = if *request == KeyFrameRequest::FullIntra { "fir" } else { "pli" };
            draft("key-frame-requested", from).with("request", name)?
        }
        E::PacketsLost { from, sequences } => {
            let sequences: Vec<u16> = sequences.iter().map(|sequence| sequence.0).collect();
            draft("packets-lost", from).with("sequences", sequences)?
        }
        E::BitRateRequested { from, limit } => {
            draft("bit-rate-requested", from).with("bit_rate", limit.bit_rate)?
        }
        E::Estimate { from, bit_rate } => draft("estimate", from).with("bit_rate", *bit_rate)?,
        E::Arrivals { from, instant, packets } => {
            let packets: Vec<_> = packets.iter().map(arrival).collect();
            draft("arrivals", from).with("instant", *instant)?.with("packets", packets)?
        }
        E::WideArrivals { from, number, packets } => {
            let packets: Vec<_> = packets
                .iter()
                .map(|packet| {
                    let time = packet.arrival.flatten().map(|time| f64::from(time.0) / 4000.0);
                    (packet.sequence.0, packet.arrival.is_some(), time)
                })
                .collect();
            draft("wide-arrivals", from).with("number", *number)?.with("packets", packets)?
        }
        E::BitRateNotified { from, limits } => {
            let limits: Vec<_> =
                limits.iter().map(|limit| (limit.ssrc.0, limit.bit_rate, limit.overhead)).collect();
            draft("bit-rate-notified", from).with("limits", limits)?
        }
        E::Refused { datagrams } => without_ssrc("refused").with("datagrams", *datagrams)?,
        E::KeyExpiring { left } => without_ssrc("key-expiring").with("left", *left)?,
        E::KeyExpired => without_ssrc("key-expired"),
        E::Collision { old, new } => draft("collision", new).with("old", old.0)?,
        E::Loop { ssrc } => draft("loop", ssrc),
        E::TargetRate { bit_rate } => without_ssrc("target-rate").with("bit_rate", *bit_rate)?,
        E::NotReported => without_ssrc("not-reported"),
        E::CircuitBreaker(breaker) => {
            without_ssrc("circuit-breaker").with("reason", breaker.to_string())?
        }
        _ => without_ssrc("other").with("text", format!("{event:?}"))?,
    }
    .done())
}

/// Returns a packet's sequence number, whether it arrived, the seconds from its arrival to the
/// instant of the report, if known, and its ECN codepoint.
fn arrival(packet: &PacketReport) -> (u16, bool, Option<f64>, u8) {
    let sequence = packet.sequence.0;
    match packet.arrival {
        Some((ecn, Arrival::Before(time))) => (sequence, true, Some(time.as_secs_f64()), ecn as u8),
        Some((ecn, _)) => (sequence, true, None, ecn as u8),
        None => (sequence, false, None, 0),
    }
}

/// Converts a sender report to a dictionary.
pub(crate) fn sender<'py>(py: Python<'py>, info: &SenderInfo) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("wall_clock", info.ntp.unix().as_secs_f64())?;
    dict.set_item("timestamp", info.rtp.0)?;
    dict.set_item("packets", info.packets)?;
    dict.set_item("octets", info.octets)?;
    Ok(dict)
}

/// Converts a receiver's report on our media to a dictionary.
pub(crate) fn report<'py>(py: Python<'py>, block: &ReportBlock) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("ssrc", block.ssrc.0)?;
    dict.set_item("fraction_lost", f64::from(block.fraction_lost) / 256.0)?;
    dict.set_item("cumulative_lost", block.cumulative_lost)?;
    dict.set_item("highest", block.highest)?;
    dict.set_item("jitter", block.jitter)?;
    Ok(dict)
}
