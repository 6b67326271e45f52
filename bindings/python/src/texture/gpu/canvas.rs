//! Frames that the application draws in memory of a graphics processor, for a texture server.

use std::fmt;
use std::sync::Mutex;

use pyo3::prelude::*;
use rushes::texture::source::Source;
use rushes::texture::{Format, Layout, Rate};

use super::graphics::{Canvases, Drawing};
use super::{ExportedMemory, Gpu, Handle};
use crate::error::{ClosedError, ConfigError};
use crate::integer::arguments;
use crate::options::Setting;
use crate::texture::options::{format, rate};
use crate::wait::lock;

arguments! {
    width_of: u32 = "width";
    height_of: u32 = "height";
}

/// Frames that another graphics interface draws, such as OpenGL or CUDA: a source of one `TextureServer`.
///
/// They are drawn in memory of the graphics processor, and encoded there to `format` ("bc1",
/// "ycocg-bc3", "etc1", "etc2-rgb" or "astc-4x4"); only encoded frames leave it. `rate` (30 by
/// default) is information for clients: the program sets the pace, and a frame is sent when it was
/// drawn. The stream ends when this object is collected.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct RenderedFrames {
    canvases: Canvases,
    /// For a server, which takes it.
    source: Mutex<Option<Box<dyn Source>>>,
}

impl fmt::Debug for RenderedFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RenderedFrames").field(&self.canvases).finish()
    }
}

impl RenderedFrames {
    /// Returns the source, once.
    pub(in crate::texture) fn take_source(&self, py: Python<'_>) -> PyResult<Box<dyn Source>> {
        let taken = || {
            ConfigError::new_err(
                "source: another server was given these frames; make new RenderedFrames",
            )
        };
        py.detach(|| lock(&self.source).take()).ok_or_else(taken)
    }
}

#[pymethods]
impl RenderedFrames {
    #[new]
    #[pyo3(signature = (gpu, width, height, format = "bc1", *, rate = None, export = "opaque-fd"))]
    fn new(
        py: Python<'_>,
        gpu: &Gpu,
        #[pyo3(from_py_with = width_of)] width: u32,
        #[pyo3(from_py_with = height_of)] height: u32,
        format: &str,
        rate: Option<Bound<'_, PyAny>>,
        export: &str,
    ) -> PyResult<Self> {
        let (output, handle) = (self::format(format)?, Handle::named(export)?);
        let rate = rate.map(|value| self::rate(&Setting { name: "rate", value })).transpose()?;
        let rate = rate.unwrap_or(Rate::DEFAULT);
        Layout::new(Format::Rgba8, width, height)
            .map_err(|error| ConfigError::new_err(error.to_string()))?;
        let make = || Canvases::new(gpu.device(), handle, (width, height), output, rate);
        let (canvases, source) = py.detach(make)?;
        Ok(Self { canvases, source: Mutex::new(Some(source)) })
    }

    /// Returns memory for the pixels of the next frame. `GpuError` says why if there is none left, or an
    /// earlier frame could not be encoded.
    fn canvas(&self, py: Python<'_>) -> PyResult<Canvas> {
        let drawing = py.detach(|| self.canvases.canvas())?;
        let (layout, id) = (*drawing.layout(), drawing.id());
        Ok(Canvas { drawing: Mutex::new(Some(drawing)), layout, id })
    }

    /// Sets the size of further canvases. What was imported of earlier ones is not used again.
    fn resize(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = width_of)] width: u32,
        #[pyo3(from_py_with = height_of)] height: u32,
    ) -> PyResult<()> {
        Ok(py.detach(|| self.canvases.resize((width, height)))?)
    }
}

/// Memory of a graphics processor for the pixels of a frame: rows of RGBA8 in the colours of sRGB, from
/// the top, without gaps. Alpha is ignored.
///
/// Import it, write all pixels, and call `send()`, or drop it. The memory is used for later frames.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Canvas {
    drawing: Mutex<Option<Drawing>>,
    layout: Layout,
    id: u64,
}

fn sent() -> PyErr {
    ClosedError::new_err("the canvas was sent")
}

#[pymethods]
impl Canvas {
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

    /// The number of octets, from the start of the memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.layout.bytes()
    }

    /// A number of the memory that no other memory of this process has. Later canvases of the same size
    /// use the same memory again, so import it once for each number. A program that holds one canvas at a
    /// time has at most three.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// Returns the memory as other graphics interfaces import it.
    fn export(&self, py: Python<'_>) -> PyResult<ExportedMemory> {
        let memory = py.detach(|| lock(&self.drawing).as_ref().map(Drawing::export));
        Ok(ExportedMemory::new(memory.ok_or_else(sent)??, self.id))
    }

    /// Sends the frame, after what writes its pixels has ended, such as after `glFinish()`. It does not
    /// wait: a frame that waits to be encoded is replaced. Returns false if the server has ended.
    fn send(&self, py: Python<'_>) -> PyResult<bool> {
        let was_open = py.detach(|| Some(lock(&self.drawing).take()?.send()));
        was_open.ok_or_else(sent)
    }

    fn __repr__(&self) -> String {
        let (width, height, id) = (self.layout.width(), self.layout.height(), self.id);
        format!("<rushes.Canvas of {width}x{height} in memory {id}>")
    }
}
