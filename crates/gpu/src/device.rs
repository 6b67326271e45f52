//! A graphics processor, and the thread-safe handles to it.

#[cfg(feature = "window")]
use std::sync::OnceLock;
use std::sync::{Arc, Mutex, PoisonError};

use crate::draw;
use crate::error::GpuError;
use crate::export::DeviceUuids;
use crate::frame::not_exported;
use crate::mapped::uuids;
use crate::picture::PICTURE_FORMAT;

/// The graphics interface that is used to access the driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Interface {
    /// Vulkan if available, otherwise OpenGL; Metal and Direct3D 12 on systems that have them.
    #[default]
    Any,
    /// Vulkan only.
    Vulkan,
    /// OpenGL (ES) only.
    Gl,
}

/// Options for opening a device.
#[derive(Clone, Copy, Debug, Default)]
pub struct GpuOptions {
    /// The graphics interface.
    pub interface: Interface,
    /// Whether the driver's validation layers check every call, which is slow.
    ///
    /// Their findings are reported by [`Gpu::first_error`] or logged by the `log` crate under
    /// `wgpu_hal`.
    pub validate: bool,
}

/// A graphics device. Cheap to clone; all clones are the same device.
#[derive(Clone, Debug)]
pub struct Gpu {
    pub(crate) adapter: wgpu::Adapter,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    first_error: Arc<Mutex<Option<String>>>,
    #[cfg(feature = "window")]
    lost: Arc<OnceLock<String>>,
}

/// Block formats and other features that are requested if the device has them.
const WANTED: wgpu::Features = wgpu::Features::TEXTURE_COMPRESSION_BC
    .union(wgpu::Features::TEXTURE_COMPRESSION_ETC2)
    .union(wgpu::Features::TEXTURE_COMPRESSION_ASTC)
    .union(wgpu::Features::TIMESTAMP_QUERY);

impl Gpu {
    /// Opens the fastest device; software drivers are used only if there is no other.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoDriver`] or [`GpuError::NoDevice`].
    pub fn open(options: GpuOptions) -> Result<Self, GpuError> {
        let instance = Self::instance(options, None);
        Self::of_instance(&instance, None)
    }

    pub(crate) fn instance(
        options: GpuOptions,
        display: Option<Box<dyn wgpu::wgt::WgpuHasDisplayHandle>>,
    ) -> wgpu::Instance {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.display = display;
        descriptor.backends = match options.interface {
            Interface::Any => wgpu::Backends::PRIMARY | wgpu::Backends::GL,
            Interface::Vulkan => wgpu::Backends::VULKAN,
            Interface::Gl => wgpu::Backends::GL,
        };
        descriptor.flags = if options.validate {
            wgpu::InstanceFlags::VALIDATION
        } else {
            wgpu::InstanceFlags::empty()
        };
        wgpu::Instance::new(descriptor)
    }

    /// Opens a device of an instance; it can draw on `surface`, if given.
    pub(crate) fn of_instance(
        instance: &wgpu::Instance,
        surface: Option<&wgpu::Surface<'_>>,
    ) -> Result<Self, GpuError> {
        let asked = wgpu::RequestAdapterOptions {
            power_preference: wgpu::PowerPreference::HighPerformance,
            compatible_surface: surface,
            ..Default::default()
        };
        let adapter = pollster::block_on(instance.request_adapter(&asked))
            .map_err(|error| GpuError::NoDriver(error.to_string()))?;
        let asked = wgpu::DeviceDescriptor {
            label: Some("rushes"),
            required_features: adapter.features() & WANTED,
            // A frame of 4320p in RGB exceeds the default limits.
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let (device, queue) =
            pollster::block_on(adapter.request_device(&asked)).map_err(|error| {
                GpuError::NoDevice { driver: adapter.get_info().name, reason: error.to_string() }
            })?;
        if adapter.get_info().backend == wgpu::Backend::Gl {
            try_shader(&device)
                .map_err(|reason| GpuError::NoDevice { driver: adapter.get_info().name, reason })?;
        }
        let first_error = Arc::new(Mutex::new(None));
        let shared = Arc::clone(&first_error);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            tracing::error!("graphics device: {error}");
            let mut first = shared.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| error.to_string());
        }));
        #[cfg(feature = "window")]
        let lost = Arc::new(OnceLock::new());
        #[cfg(feature = "window")]
        {
            let shared = Arc::clone(&lost);
            device.set_device_lost_callback(move |_, reason| {
                tracing::error!("graphics device lost: {reason}");
                let _ = shared.set(reason);
            });
        }
        Ok(Self {
            adapter,
            device,
            queue,
            first_error,
            #[cfg(feature = "window")]
            lost,
        })
    }

    /// Uses a device of the application, so that it can draw received frames in its own scenes and
    /// send what it renders.
    ///
    /// The application keeps the device's error callbacks: [`Gpu::first_error`] returns `None`.
    /// Frames are shown by [`Path::Texture`](crate::Path::Texture) only if the device was created with the feature
    /// for their blocks, such as `TEXTURE_COMPRESSION_BC`, and frames larger than the device's
    /// limits are errors: `adapter.limits()` allow the largest.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoDevice`] if shaders of the device cannot read storage buffers.
    pub fn from_wgpu(
        adapter: &wgpu::Adapter,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
    ) -> Result<Self, GpuError> {
        try_shader(device)
            .map_err(|reason| GpuError::NoDevice { driver: adapter.get_info().name, reason })?;
        Ok(Self {
            adapter: adapter.clone(),
            device: device.clone(),
            queue: queue.clone(),
            first_error: Arc::default(),
            #[cfg(feature = "window")]
            lost: Arc::default(),
        })
    }

    /// Returns the device, on which the application can create its own resources and pipelines.
    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Returns the queue of the device, to which all work of this crate is submitted.
    pub fn queue(&self) -> &wgpu::Queue {
        &self.queue
    }

    /// Returns the driver's name for the device, and the interface in use.
    pub fn name(&self) -> String {
        let info = self.adapter.get_info();
        format!("{} ({})", info.name, info.backend)
    }

    /// Returns the identifiers of the device and its driver, by which others find the device that can import
    /// its memory ([`DeviceFrame::export`](crate::DeviceFrame::export)).
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] if the device is not used through Vulkan 1.1 or later.
    pub fn uuids(&self) -> Result<DeviceUuids, GpuError> {
        uuids(self).map_err(|reason| not_exported(self, &reason))
    }

    /// Returns whether the device is emulated by the main processor.
    pub fn is_software(&self) -> bool {
        self.adapter.get_info().device_type == wgpu::DeviceType::Cpu
    }

    /// Returns the first error that was not returned by a call, if there was one.
    pub fn first_error(&self) -> Option<String> {
        self.first_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks that the device was not lost, which other calls do not report by themselves.
    ///
    /// # Errors
    ///
    /// [`GpuError::Device`] from the moment at which it was lost.
    #[cfg(feature = "window")]
    pub(crate) fn check_lost(&self) -> Result<(), GpuError> {
        self.lost.get().map_or(Ok(()), |reason| Err(GpuError::Device(reason.clone())))
    }

    /// Waits until all submitted work is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Device`] if the device was lost.
    pub fn wait(&self) -> Result<(), GpuError> {
        let waited = self.device.poll(wgpu::PollType::wait_indefinitely());
        waited.map(drop).map_err(|error| GpuError::Device(error.to_string()))
    }

    /// Creates a command encoder to record work with.
    pub fn recorder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    /// Submits the recorded work to the device.
    pub fn submit(&self, recorder: wgpu::CommandEncoder) {
        self.queue.submit([recorder.finish()]);
    }

    /// The adapter's name, for errors.
    #[allow(clippy::misnamed_getters, reason = "users know the driver by the name of its device")]
    pub(crate) fn driver(&self) -> String {
        self.adapter.get_info().name
    }
}

/// Tries a shader that reads a storage buffer, as all shaders of this crate do.
///
/// Some OpenGL drivers claim to support storage buffers but provide a context of a version that
/// does not: NVIDIA's, if version 3.3 is requested.
fn try_shader(device: &wgpu::Device) -> Result<(), String> {
    const SOURCE: &str = "
        @group(0) @binding(0) var<storage, read> words: array<u32>;
        @vertex fn corners() -> @builtin(position) vec4f { return vec4f(); }
        @fragment fn first() -> @location(0) vec4f { return vec4f(f32(words[0])); }";
    // Some drivers reject the binding, others the shader.
    let outer = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let inner = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(SOURCE.into()),
    });
    drop(draw::pipeline(device, (&module, "first"), None, PICTURE_FORMAT.into()));
    let (inner, outer) = (pollster::block_on(inner.pop()), pollster::block_on(outer.pop()));
    let Some(error) = inner.or(outer) else { return Ok(()) };
    let text = error.to_string();
    let cause = text.lines().last().unwrap_or_default().trim();
    Err(format!("its shaders cannot read storage buffers ({cause})"))
}
