//! A received texture frame.

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice};
use rushes::texture::Layout;

use super::codec;
use super::pool::Pooled;
use crate::buffer::Octets;
use crate::frame::monotonic;

/// A frame with its own memory.
pub(crate) struct Received {
    pub(super) memory: Pooled,
    pub(super) layout: Layout,
    pub(super) number: u64,
    pub(super) missing: u32,
    pub(super) first_at: Instant,
    pub(super) done_at: Instant,
}

/// A texture frame, or a picture, in main memory.
///
/// It is a buffer of its octets: `memoryview(frame)` and `numpy.asarray(frame)` read them without a
/// copy. The shape is (height, width, octets per pixel) for a format of pixels and (rows of blocks,
/// blocks per row, octets per block) for a format of blocks. It is flat for a format of three
/// planes, whose views are in `planes`.
#[pyclass(frozen, extends = Octets, module = "rushes")]
pub(crate) struct TextureFrame {
    layout: Layout,
    number: u64,
    missing: u32,
    first_at: Instant,
    done_at: Instant,
}

impl TextureFrame {
    pub(super) fn wrap(py: Python<'_>, received: Received) -> PyResult<Py<Self>> {
        let Received { memory, layout, number, missing, first_at, done_at } = received;
        let shape = match shapes(&layout)[..] {
            [shape] => shape.to_vec(),
            _ => vec![layout.bytes()],
        };
        let octets = PyClassInitializer::from(Octets::of_texture(memory, &shape));
        let frame = Self { layout, number, missing, first_at, done_at };
        Py::new(py, octets.add_subclass(frame))
    }

    /// Returns the same frame with other octets.
    pub(super) fn with_octets(&self, memory: Pooled, layout: Layout) -> Received {
        let Self { number, missing, first_at, done_at, .. } = *self;
        Received { memory, layout, number, missing, first_at, done_at }
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Returns the rows, columns and octets per element of each plane.
fn shapes(layout: &Layout) -> Vec<[usize; 3]> {
    let planes = layout.planes().iter().zip(layout.format().planes());
    planes
        .map(|(plane, made_of)| [plane.rows as usize, plane.blocks as usize, made_of.block.bytes])
        .collect()
}

#[pymethods]
impl TextureFrame {
    /// The frame's number in the stream, from 0.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// The name of the frame's format.
    #[getter]
    fn format(&self) -> &'static str {
        self.layout.format().name()
    }

    /// Width in pixels.
    #[getter]
    fn width(&self) -> u32 {
        self.layout.width()
    }

    /// Height in pixels.
    #[getter]
    fn height(&self) -> u32 {
        self.layout.height()
    }

    /// What the values stand for, by ITU-T H.273: the code points of primaries, transfer and matrix, then the
    /// full-range flag (bit 7) and the type of the chroma location. YUV has the last two and a matrix.
    #[getter]
    fn colour(&self) -> (u8, u8, u8, u8) {
        let [primaries, transfer, matrix, rest] = self.layout.colour().code_points();
        (primaries, transfer, matrix, rest)
    }

    /// Whether all packets of the frame arrived.
    #[getter]
    fn is_whole(&self) -> bool {
        self.missing == 0
    }

    /// Packets that did not arrive in time; their octets were replaced with those of the previous
    /// frame.
    #[getter]
    fn packets_missing(&self) -> u32 {
        self.missing
    }

    /// When the frame's first packet arrived, in seconds of `time.monotonic()`.
    #[getter]
    fn first_at(&self, py: Python<'_>) -> PyResult<f64> {
        monotonic(py, self.first_at)
    }

    /// When the frame's last octets were in memory, in seconds of `time.monotonic()`.
    #[getter]
    fn done_at(&self, py: Python<'_>) -> PyResult<f64> {
        monotonic(py, self.done_at)
    }

    /// A view of each plane, without a copy. A plane with pixels of one octet has the shape
    /// (height, width).
    #[getter]
    fn planes<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = slf.py();
        let layout = slf.get().layout;
        let octets = PyMemoryView::from(slf.as_any())?;
        if layout.planes().len() == 1 {
            return Ok(vec![octets.into_any()]);
        }
        let mut views = Vec::new();
        for (plane, [rows, columns, len]) in layout.planes().iter().zip(shapes(&layout)) {
            let end = (plane.offset + plane.bytes()).cast_signed();
            let part = octets.get_item(PySlice::new(py, plane.offset.cast_signed(), end, 1))?;
            let shape = if len == 1 { vec![rows, columns] } else { vec![rows, columns, len] };
            views.push(part.call_method1("cast", ("B", shape))?);
        }
        Ok(views)
    }

    /// Decodes the picture in the frame to "rgb24" or "rgba8".
    #[pyo3(signature = (pixels = "rgba8"))]
    fn decode(slf: &Bound<'_, Self>, pixels: &str) -> PyResult<Py<Self>> {
        codec::decode(slf, pixels)
    }

    fn __repr__(&self) -> String {
        let (format, width, height) = (self.format(), self.width(), self.height());
        format!("<rushes.TextureFrame {} of {format} {width}x{height}>", self.number)
    }
}
