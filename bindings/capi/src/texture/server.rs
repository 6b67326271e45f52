//! Servers of texture video.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rushes::texture::source::{RawHint, Source, open};
use rushes::texture::{ColourHint, Layout, Rate, ServerOptions};

use super::gpu::Canvases;
use super::options::{TextureOptions, settings};
use super::source::CallbackSource;
use super::{address, format};
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::hook::{Callback, Release, TextureSourceHook};
use crate::options::argument;
use crate::session::Sas;
use crate::turn::{Turn, busy};
use crate::{handle, pointer};

/// A server of texture video.
#[derive(Debug)]
pub struct TextureServer {
    server: Turn<Option<rushes::texture::TextureServer>>,
    pictures: Pictures,
}
handle_type!(TextureServer, 8, "texture server");

/// What the application supplies pictures by.
#[derive(Debug)]
pub(super) enum Pictures {
    /// It does not: they are a file's or a pattern's.
    Opened,
    Callback(Arc<Callback<TextureSourceHook>>),
    Canvases(Canvases),
}

impl TextureServer {
    pub(super) fn pictures(&self) -> &Pictures {
        &self.pictures
    }
}

/// A texture server's counters for all clients together. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct TextureServerStatistics {
    /// Clients connected now.
    pub clients: u64,
    /// Frames sent, counted for each client.
    pub frames: u64,
    /// Octets of tiles sent.
    pub octets: u64,
    /// Pictures that were not encoded, because the previous one was not yet sent.
    pub dropped: u64,
    /// Changes to a smaller format or rate, because a client reported losses.
    pub steps_down: u64,
    /// Changes to a larger one, in the absence of losses.
    pub steps_up: u64,
    /// Packets that clients requested because they did not arrive.
    pub packets_requested: u64,
    /// Packets among them that were sent again.
    pub packets_retransmitted: u64,
    /// Repair packets sent.
    pub repairs: u64,
}

pub(super) fn serve(
    local: *const c_char,
    source: impl Source + 'static,
    options: ServerOptions,
    pictures: Pictures,
) -> Result<*mut TextureServer, Failure> {
    let local = address(pointer::text(local)?)?;
    let new = rushes::texture::TextureServer::serve(local, source, options)?;
    handle::insert(TextureServer { server: Turn::new(Some(new)), pictures })
}

/// Listens on `local` ("127.0.0.1:7000"; port 0 selects a free one) and serves clients until it is
/// closed by rushes_texture_server_close(). `source` is a file (Y4M, KTX 2.0, PNG), a folder of PNG
/// images or a test pattern, "pattern:3840x2160@60". `options` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_serve(
    local: *const c_char,
    source: *const c_char,
    options: *const TextureOptions,
    server: *mut *mut TextureServer,
) -> Status {
    guard(|| {
        pointer::write(server, std::ptr::null_mut())?;
        let settings = settings(options)?;
        let colour = settings.colour.map_or_else(ColourHint::default, ColourHint::from);
        let hint = RawHint { colour, ..RawHint::default() };
        let source = open(pointer::text(source)?.as_ref(), &hint)
            .map_err(|error| Failure::new(Status::Texture, error.to_string()))?;
        let new = serve(local, source, settings.server, Pictures::Opened)?;
        pointer::write(server, new)
    })
}

/// Like rushes_texture_serve(), with pictures from the application: of `format` ("rgba8"), `width`
/// by `height` pixels, at the rate `frames` in `seconds`. `hook` is called for each picture; `user`
/// is passed to the hook, and to `release` (may be NULL) when the hook will not be called any more.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_serve_from(
    local: *const c_char,
    format: *const c_char,
    width: u32,
    height: u32,
    frames: u32,
    seconds: u32,
    hook: TextureSourceHook,
    user: *mut c_void,
    release: Release,
    options: *const TextureOptions,
    server: *mut *mut TextureServer,
) -> Status {
    let callback = Arc::new(Callback::new(hook, user, release));
    guard(|| {
        pointer::write(server, std::ptr::null_mut())?;
        if hook.is_none() {
            return Err(Failure::new(Status::Null, "the hook is null"));
        }
        let layout = Layout::new(self::format(pointer::text(format)?)?, width, height)
            .map_err(|error| argument(error.to_string()))?;
        let rate = Rate::new(frames, seconds).map_err(|error| argument(error.to_string()))?;
        let settings = settings(options)?;
        let layout = layout.with_colour(settings.colour.unwrap_or_default());
        let source = CallbackSource::new(layout, rate, callback.clone());
        let new = serve(local, source, settings.server, Pictures::Callback(callback))?;
        pointer::write(server, new)
    })
}

pub(super) fn with<T>(
    server: *const TextureServer,
    act: impl FnOnce(&rushes::texture::TextureServer) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let server = handle::get(server)?;
    let server = server.server.wait()?;
    act(server.as_ref().ok_or_else(|| Failure::new(Status::Closed, "the server was closed"))?)
}

/// Gets the TCP port that a server listens on.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_port(
    server: *const TextureServer,
    port: *mut u16,
) -> Status {
    guard(|| with(server, |server| pointer::write(port, server.local_address().port())))
}

/// Gets a server's counters; `size` is sizeof(rushes_texture_server_counts).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_statistics(
    server: *const TextureServer,
    statistics: *mut TextureServerStatistics,
    size: usize,
) -> Status {
    guard(|| {
        let counts = with(server, |server| Ok(server.counts()))?;
        let of = TextureServerStatistics {
            clients: counts.clients as u64,
            frames: counts.frames,
            octets: counts.octets,
            dropped: counts.dropped,
            steps_down: counts.steps_down,
            steps_up: counts.steps_up,
            packets_requested: counts.packets_requested,
            packets_retransmitted: counts.packets_retransmitted,
            repairs: counts.repairs,
        };
        pointer::write_prefix(statistics, size, of)
    })
}

/// Encodes to another format from now on. A client that does not accept the format keeps its own.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_set_format(
    server: *const TextureServer,
    format: *const c_char,
) -> Status {
    guard(|| {
        let format = self::format(pointer::text(format)?)?;
        with(server, |server| Ok(server.set_format(format)?))
    })
}

/// Gets the short authentication string of the client at `index` among those whose keys were agreed
/// on by ZRTP; RUSHES_TIMEOUT if there are no more than `index` such clients yet. `size` is
/// sizeof(rushes_sas).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_sas(
    server: *const TextureServer,
    index: usize,
    sas: *mut Sas,
    size: usize,
) -> Status {
    guard_with(|| {
        pointer::check(sas)?;
        let all = with(server, |server| Ok(server.sas()))?;
        let Some(status) = all.get(index) else { return Ok(Status::Timeout) };
        pointer::write_prefix(sas, size, Sas::from(status))?;
        Ok(Status::Ok)
    })
}

/// Closes a server: notifies its clients, and returns when its threads have ended. From the
/// source's own hook it returns RUSHES_ERROR_BUSY and the server stays open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_server_close(server: *mut TextureServer) -> Status {
    guard(|| {
        let owner = handle::get(server)?;
        if let Pictures::Callback(callback) = &owner.pictures
            && callback.is_running_here()
        {
            return Err(busy("a texture server cannot be closed from its source's hook"));
        }
        // The turn comes first, so that the handle stays valid if the turn is refused.
        let mut turn = owner.server.wait()?;
        handle::remove(server)?;
        let ending = turn.take();
        drop(turn);
        drop(ending);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;
    use std::sync::mpsc;

    #[test]
    fn a_server_that_cannot_be_closed_stays_open() {
        let mut server = ptr::null_mut();
        let (local, pattern) = (c"127.0.0.1:0".as_ptr(), c"pattern:64x32".as_ptr());
        let status = rushes_texture_serve(local, pattern, ptr::null(), &raw mut server);
        assert_eq!(status, Status::Ok);
        let owner = handle::get(server).unwrap();
        let call = Turn::new(());
        std::thread::scope(|scope| {
            let (started, has_started) = mpsc::channel();
            let (done, is_done) = mpsc::channel::<()>();
            scope.spawn(move || {
                let _turn = owner.server.wait().unwrap();
                started.send(()).unwrap();
                is_done.recv().unwrap();
            });
            has_started.recv().unwrap();
            // As in a hook, which must not wait.
            let _within = call.wait().unwrap();
            assert_eq!(rushes_texture_server_close(server), Status::Busy);
            done.send(()).unwrap();
        });
        assert_eq!(rushes_texture_server_close(server), Status::Ok);
        assert_eq!(rushes_texture_server_close(server), Status::Closed);
    }
}
