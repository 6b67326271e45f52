//! Texture video in the memory of a graphics processor, and that memory for other graphics interfaces.

#[cfg(not(all(feature = "gpu", unix)))]
mod absent;
mod canvas;
mod exported;
#[cfg(all(feature = "gpu", unix))]
mod graphics;

#[cfg(not(all(feature = "gpu", unix)))]
use absent as graphics;

use std::time::Instant;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rushes::texture::Layout;

use crate::frame::monotonic;

pub(crate) use canvas::{Canvas, RenderedFrames};
pub(crate) use exported::ExportedMemory;
pub(super) use exported::Handle;
pub(super) use graphics::Received;
use graphics::{Descriptor, Device};

/// The identifiers of a device and its driver.
struct Uuids {
    device: [u8; 16],
    driver: [u8; 16],
}

/// A frame's properties.
struct Seen {
    layout: Layout,
    number: u64,
    missing: u32,
    /// When the first packet arrived, when all octets had, and when the device had copied them.
    times: [Instant; 3],
    id: u64,
}

/// A frame's memory, as others import it.
struct Exported {
    size: u64,
    buffer_size: u64,
    memory_type: u32,
    is_dedicated: bool,
    handle: Handle,
    descriptor: Descriptor,
}

/// The fastest graphics processor that has Vulkan. A `TextureClient` receives into its memory, and
/// `RenderedFrames` are drawn there.
///
/// A processor that the main processor emulates is used only if there is no other. `GpuError` says
/// why there is none, or how to install the package with graphics, which it has not by default.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Gpu(Device);

impl Gpu {
    pub(super) fn device(&self) -> &Device {
        &self.0
    }
}

#[pymethods]
impl Gpu {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        crate::log::take_level(py);
        Ok(Self(py.detach(Device::open)?))
    }

    /// The driver's name for it, and the interface in use.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// Its identifier, of 16 octets: Vulkan's `deviceUUID`, OpenGL's `GL_DEVICE_UUID_EXT`, CUDA's
    /// `cuDeviceGetUuid`.
    #[getter]
    fn device_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.uuids()?.device))
    }

    /// The identifier of its driver in its version, of 16 octets: Vulkan's `driverUUID`, OpenGL's
    /// `GL_DRIVER_UUID_EXT`.
    #[getter]
    fn driver_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.uuids()?.driver))
    }

    /// Whether it is emulated by the main processor.
    #[getter]
    fn is_software(&self) -> bool {
        self.0.is_software()
    }

    fn __repr__(&self) -> String {
        format!("<rushes.Gpu {}>", self.0.name())
    }
}

/// A received frame in the memory of a graphics processor.
///
/// Its octets do not change while this object lives. Afterwards the memory is used for a later
/// frame, so all work that reads it must be done by then.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct GpuFrame {
    received: Received,
    seen: Seen,
}

impl GpuFrame {
    pub(super) fn wrap(py: Python<'_>, received: Received) -> PyResult<Py<Self>> {
        let seen = received.seen();
        Py::new(py, Self { received, seen })
    }
}

#[pymethods]
impl GpuFrame {
    /// The frame's number in the stream, from 0.
    #[getter]
    fn number(&self) -> u64 {
        self.seen.number
    }

    /// The name of the frame's format.
    #[getter]
    fn format(&self) -> &'static str {
        self.seen.layout.format().name()
    }

    /// Width in pixels.
    #[getter]
    fn width(&self) -> u32 {
        self.seen.layout.width()
    }

    /// Height in pixels.
    #[getter]
    fn height(&self) -> u32 {
        self.seen.layout.height()
    }

    /// The number of octets, from the start of the memory, in the order of the format.
    #[getter]
    fn nbytes(&self) -> usize {
        self.seen.layout.bytes()
    }

    /// What the values stand for, as in `TextureFrame`.
    #[getter]
    fn colour(&self) -> (u8, u8, u8, u8) {
        let [primaries, transfer, matrix, rest] = self.seen.layout.colour().code_points();
        (primaries, transfer, matrix, rest)
    }

    /// Whether all packets of the frame arrived.
    #[getter]
    fn is_whole(&self) -> bool {
        self.seen.missing == 0
    }

    /// Packets that did not arrive in time; their octets were replaced with those of the previous
    /// frame.
    #[getter]
    fn packets_missing(&self) -> u32 {
        self.seen.missing
    }

    /// When the frame's first packet arrived, in seconds of `time.monotonic()`.
    #[getter]
    fn first_at(&self, py: Python<'_>) -> PyResult<f64> {
        monotonic(py, self.seen.times[0])
    }

    /// When the frame's last octets had arrived, in seconds of `time.monotonic()`.
    #[getter]
    fn done_at(&self, py: Python<'_>) -> PyResult<f64> {
        monotonic(py, self.seen.times[1])
    }

    /// When the graphics processor had copied all octets, in seconds of `time.monotonic()`.
    #[getter]
    fn copied_at(&self, py: Python<'_>) -> PyResult<f64> {
        monotonic(py, self.seen.times[2])
    }

    /// A number of the frame's memory that no other memory of this process has. Later frames use the
    /// same memory again, so import it once for each number.
    #[getter]
    fn id(&self) -> u64 {
        self.seen.id
    }

    /// Returns the frame's memory as other graphics interfaces import it. The graphics processor has
    /// written all octets of the frame: there is no fence to wait for.
    fn export(&self, py: Python<'_>) -> PyResult<ExportedMemory> {
        let memory = py.detach(|| self.received.export())?;
        Ok(ExportedMemory::new(memory, self.seen.id))
    }

    fn __repr__(&self) -> String {
        let (number, id) = (self.seen.number, self.seen.id);
        let (format, width, height) = (self.format(), self.width(), self.height());
        format!("<rushes.GpuFrame {number} of {format} {width}x{height} in memory {id}>")
    }
}
