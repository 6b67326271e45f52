//! A received frame.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::buffer::{Memory, Octets};

/// A received frame, complete: an access unit, a NAL unit or a frame as the stream's format defines
/// it.
///
/// It is a buffer of its octets: `memoryview(frame)` and `numpy.asarray(frame)` read them without a
/// copy, `bytes(frame)` copies them. The stream reuses the memory when the frame and its last view
/// are gone; kept frames do not stop a stream from receiving.
#[pyclass(frozen, extends = Octets, module = "rushes")]
pub(crate) struct Frame;

impl Frame {
    pub(crate) fn wrap(py: Python<'_>, frame: rushes::Frame) -> PyResult<Py<Self>> {
        Py::new(py, PyClassInitializer::from(Octets::of_media(frame)).add_subclass(Self))
    }
}

/// Returns the frame of a [`Frame`] object.
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

    /// The SSRC of the source that sent the frame.
    #[getter]
    fn ssrc(slf: &Bound<'_, Self>) -> u32 {
        frame(slf).map_or(0, |frame| frame.ssrc().0)
    }

    /// The number of NAL units in the frame; 1 for formats without NAL units.
    #[getter]
    fn units(slf: &Bound<'_, Self>) -> u32 {
        frame(slf).map_or(0, rushes::Frame::units)
    }

    /// Whether the frame ends an access unit; always true if whole access units are delivered.
    #[getter]
    fn marker(slf: &Bound<'_, Self>) -> bool {
        frame(slf).is_some_and(rushes::Frame::marker)
    }

    /// The ranges of octets that did not arrive, as (begin, end), in order; they contain zeros. Empty for
    /// a whole frame, as all are without the setting `incomplete_frames`.
    #[getter]
    fn missing(slf: &Bound<'_, Self>) -> Vec<(usize, usize)> {
        let missing = frame(slf).map(rushes::Frame::missing).unwrap_or_default();
        missing.iter().map(|range| (range.start, range.end)).collect()
    }

    /// Whether this is the second field of a frame of interlaced uncompressed video.
    #[getter]
    fn is_second_field(slf: &Bound<'_, Self>) -> bool {
        frame(slf).is_some_and(rushes::Frame::is_second_field)
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

    /// The temporal and the highest spatial layer of the frame, if its headers or packets tell them;
    /// otherwise `None`. Layer 0 is the base; a frame needs none of a higher temporal layer.
    #[getter]
    fn layers(slf: &Bound<'_, Self>) -> Option<(u8, u8)> {
        let layers = frame(slf).and_then(rushes::Frame::layers)?;
        Some((layers.temporal_id, layers.spatial_id))
    }

    /// Whether the frame needs no earlier one of its own temporal layer, so that a receiver of the
    /// layers below can begin with that layer here; false if its layers are not told.
    #[getter]
    fn begins_layer(slf: &Bound<'_, Self>) -> bool {
        frame(slf).and_then(rushes::Frame::layers).is_some_and(|layers| layers.begins_layer)
    }

    /// Whether no later frame of a higher temporal layer needs one of that layer before this frame;
    /// false if its layers are not told.
    #[getter]
    fn begins_higher(slf: &Bound<'_, Self>) -> bool {
        frame(slf).and_then(rushes::Frame::layers).is_some_and(|layers| layers.begins_higher)
    }

    /// The elements of header extensions that its first packet carried, by identifier, of those in
    /// the setting `extensions`; capture times and transport-wide numbers are not among them.
    #[getter]
    fn first_elements<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        elements(slf.py(), frame(slf).iter().flat_map(|frame| frame.first_elements()))
    }

    /// The elements that its last packet carried, by identifier.
    #[getter]
    fn last_elements<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        elements(slf.py(), frame(slf).iter().flat_map(|frame| frame.last_elements()))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let len = slf.as_super().get().octets().len();
        let (timestamp, ssrc) = (Self::timestamp(slf), Self::ssrc(slf));
        format!("<rushes.Frame of {len} octets, timestamp {timestamp}, ssrc {ssrc:08x}>")
    }
}

fn elements<'py, 'f>(
    py: Python<'py>,
    elements: impl Iterator<Item = rushes::Element<'f>>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for element in elements {
        all.set_item(element.id, PyBytes::new(py, element.data))?;
    }
    Ok(all)
}

/// Converts a past instant to seconds of `time.monotonic()`.
pub(crate) fn monotonic(py: Python<'_>, instant: Instant) -> PyResult<f64> {
    let now: f64 = py.import("time")?.call_method0("monotonic")?.extract()?;
    Ok(now - instant.elapsed().as_secs_f64())
}

/// Converts seconds of `time.monotonic()` to an instant, which is at most now.
pub(crate) fn instant(py: Python<'_>, seconds: f64) -> PyResult<Instant> {
    let now: f64 = py.import("time")?.call_method0("monotonic")?.extract()?;
    let past = crate::wait::duration(Some((now - seconds).max(0.0)))?;
    let instant = past.and_then(|past| Instant::now().checked_sub(past));
    Ok(instant.unwrap_or_else(Instant::now))
}
