//! Frames that the application draws in memory of a graphics processor, for a texture server.

use std::ffi::c_char;

use rushes::texture::Rate;

use super::format;
use super::gpu::{Canvases, Gpu, GpuFrame, memory_handle};
use super::options::{TextureOptions, settings};
use super::server::{Pictures, TextureServer, serve, with};
use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::options::argument;
use crate::{handle, pointer};

/// Like rushes_texture_serve(), with frames of `width` by `height` pixels that the application draws in memory of a
/// graphics processor, on canvases. They are encoded there to `format` ("bc1", "ycocg-bc3", "etc1", "etc2-rgb",
/// "astc-4x4"), and only the encoded frames leave its memory. The rate, `frames` in `seconds`, is information for
/// clients: the application sets the pace. `memory` is a rushes_memory_handle.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_serve_gpu(
    local: *const c_char,
    gpu: *const Gpu,
    memory: i32,
    format: *const c_char,
    width: u32,
    height: u32,
    frames: u32,
    seconds: u32,
    options: *const TextureOptions,
    server: *mut *mut TextureServer,
) -> Status {
    guard(|| {
        pointer::write(server, std::ptr::null_mut())?;
        let (gpu, memory) = (handle::get(gpu)?, memory_handle(memory)?);
        let output = self::format(pointer::text(format)?)?;
        let rate = Rate::new(frames, seconds).map_err(|error| argument(error.to_string()))?;
        let settings = settings(options)?;
        if settings.colour.is_some() {
            return Err(argument(
                "the option `colour` is for files and pictures: canvases have that of sRGB",
            ));
        }
        let new = Canvases::new(&gpu.0, memory, (width, height), output, rate);
        let (canvases, source) = new?;
        let new = serve(local, source, settings.server, Pictures::Canvases(canvases))?;
        pointer::write(server, new)
    })
}

/// Gets a canvas, which is memory for the pixels of a server's next frame: four octets each (red, green, blue, and
/// alpha, which is ignored) in the colours of sRGB, in rows from the top without gaps. OpenGL copies them there with
/// glReadPixels() into a buffer, Vulkan with vkCmdCopyImageToBuffer().
///
/// Import the memory (rushes_gpu_frame_export()), write all pixels, and pass the canvas to rushes_gpu_frame_send(), or
/// to rushes_gpu_frame_release() if it is not to be sent. A program that holds one canvas at a time has at most three
/// memories to import, and frees them after rushes_texture_server_resize().
///
/// Returns RUSHES_ERROR_UNSUPPORTED if the server is not one of rushes_texture_serve_gpu() or there is no memory left,
/// and RUSHES_ERROR_TEXTURE if an earlier frame could not be encoded.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_canvas(
    server: *const TextureServer,
    frame: *mut *mut GpuFrame,
) -> Status {
    guard(|| {
        pointer::write(frame, std::ptr::null_mut())?;
        let canvas = canvases(server, Canvases::canvas)?;
        pointer::write(frame, handle::insert(GpuFrame::new(canvas)?)?)
    })
}

/// Sets the size of further canvases in pixels. Returns RUSHES_ERROR_UNSUPPORTED or RUSHES_ERROR_TEXTURE for a size that
/// the graphics processor or a frame cannot have; the size then remains.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_resize(
    server: *const TextureServer,
    width: u32,
    height: u32,
) -> Status {
    guard(|| canvases(server, |canvases| canvases.resize((width, height))))
}

/// Sends a canvas of rushes_texture_server_canvas(), and releases it. What writes its pixels must have ended, as after
/// glFinish() or vkWaitForFences(); Vulkan releases the buffer to VK_QUEUE_FAMILY_EXTERNAL with its last commands. It does
/// not wait: a frame that waits to be encoded is replaced by this one.
///
/// Returns RUSHES_ERROR_ENDED if the server has ended, which releases the canvas, too, and RUSHES_ERROR_UNSUPPORTED for
/// a received frame, which it does not release.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_gpu_frame_send(frame: *mut GpuFrame) -> Status {
    guard(|| {
        if !handle::get(frame)?.frame.is_canvas() {
            let message =
                "the frame was received: only those of rushes_texture_server_canvas() are sent";
            return Err(Failure::new(Status::Unsupported, message));
        }
        if handle::remove(frame)?.frame.send() {
            return Ok(());
        }
        Err(Failure::new(Status::Ended, "the server has ended"))
    })
}

fn canvases<T>(
    server: *const TextureServer,
    act: impl FnOnce(&Canvases) -> Result<T, Failure>,
) -> Result<T, Failure> {
    with(server, |_| Ok(()))?;
    let server = handle::get(server)?;
    let Pictures::Canvases(canvases) = server.pictures() else {
        let message = "the server's pictures are not drawn in memory of a graphics processor";
        return Err(Failure::new(Status::Unsupported, message));
    };
    act(canvases)
}
