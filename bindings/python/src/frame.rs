//! A received frame.

use std::time::Instant;

use pyo3::prelude::*;

use crate::buffer::{Memory, Octets};

/// A received frame, complete: an access unit, a NAL unit or a frame as the stream's format defines
/// it.
///
/// It is a buffer of its octets: `memoryview(frame)` and `numpy.asarray(frame)` read them without a
/// copy, `bytes(frame)` copies them. Its memory returns to the stream with the frame and its last
/// view; frames that are kept do not stop a stream from receiving.
#[pyclass(frozen, extends = Octets, module = "rushes")]
pub(crate) struct Frame;

impl Frame {
    pub(crate) fn wrap(py: Python<'_>, frame: rushes::Frame) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(Octets::of_media(frame)).add_subclass(Self))
    }
}

/// The frame of a [`Frame`] object.
pub(crate) fn frame<'a>(slf: &'a Bound<'_, Frame>) -> Option<&'a rushes::Frame> {
    match slf.as_super().get().memory() {
        Memory::Media(frame) => Some(frame),
        Memory::Texture(_) => None,
    }
}

#[pymethods]
impl Frame {
    /// The sampling instant, in ticks of the stream's clock rate, modulo 2**32.
    #[getter]
    fn timestamp(slf: &Bound<'_, Self>) -> u32 {
        frame(slf).map_or(0, |frame| frame.timestamp().0)
    }

    /// The source that sent it.
    #[getter]
    fn ssrc(slf: &Bound<'_, Self>) -> u32 {
        frame(slf).map_or(0, |frame| frame.ssrc().0)
    }

    /// The number of NAL units in it; 1 for formats without NAL units.
    #[getter]
    fn units(slf: &Bound<'_, Self>) -> u32 {
        frame(slf).map_or(0, rushes::Frame::units)
    }

    /// Whether it ends an access unit; always true if whole access units are delivered.
    #[getter]
    fn marker(slf: &Bound<'_, Self>) -> bool {
        frame(slf).is_some_and(rushes::Frame::marker)
    }

    /// When its last datagram arrived, in seconds of `time.monotonic()`.
    #[getter]
    fn arrival(slf: &Bound<'_, Self>) -> PyResult<f64> {
        let arrival = frame(slf).map_or_else(Instant::now, rushes::Frame::arrival);
        monotonic(slf.py(), arrival)
    }

    /// When it was captured by its sender's wall clock, in seconds of `time.time()`, if its packets
    /// carry that (the setting `extensions`); otherwise `None`.
    #[getter]
    fn capture_time(slf: &Bound<'_, Self>) -> Option<f64> {
        let capture = frame(slf).and_then(rushes::Frame::capture_time)?;
        Some(capture.by_sender().unix().as_secs_f64())
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let len = slf.as_super().get().octets().len();
        let (timestamp, ssrc) = (Self::timestamp(slf), Self::ssrc(slf));
        format!("<rushes.Frame of {len} octets, timestamp {timestamp}, ssrc {ssrc:08x}>")
    }
}

/// A past instant in seconds of `time.monotonic()`.
pub(crate) fn monotonic(py: Python<'_>, instant: Instant) -> PyResult<f64> {
    let now: f64 = py.import("time")?.call_method0("monotonic")?.extract()?;
    Ok(now - instant.elapsed().as_secs_f64())
}

/// The instant of a time of `time.monotonic()`; no later than now.
pub(crate) fn instant(py: Python<'_>, seconds: f64) -> PyResult<Instant> {
    let now: f64 = py.import("time")?.call_method0("monotonic")?.extract()?;
    let past = crate::wait::duration(Some((now - seconds).max(0.0)))?;
    let instant = past.and_then(|past| Instant::now().checked_sub(past));
    Ok(instant.unwrap_or_else(Instant::now))
}
