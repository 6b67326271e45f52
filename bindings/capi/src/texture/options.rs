//! Settings of texture servers and clients.

use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rushes::texture::{
    Adaptation, ClientOptions, Colour, Fec, MulticastGroup, SIDE_MAX, ServerOptions, Timing,
    UnknownQuality,
};
use rushes::{Burst, Pacing};

use super::{format, transport};
use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::handle::handle_type;
use crate::options::argument;
use crate::options_security::Secrets;
use crate::{handle, pointer};

/// Settings of texture servers and clients. Each has a working default.
#[derive(Debug, Default)]
pub struct TextureOptions(Mutex<TextureSettings>);
handle_type!(TextureOptions, 7, "texture's options");

#[derive(Clone, Debug, Default)]
pub(super) struct TextureSettings {
    pub(super) server: ServerOptions,
    pub(super) client: ClientOptions,
    pub(super) colour: Option<Colour>,
    secrets: Secrets,
}

/// Returns a copy of the current settings, or the defaults for null.
pub(super) fn settings(options: *const TextureOptions) -> Result<TextureSettings, Failure> {
    if options.is_null() {
        return Ok(TextureSettings::default());
    }
    let options = handle::get(options)?;
    let mut settings = options.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    settings.server.security = settings.secrets.security();
    settings.client.security = settings.secrets.security();
    Ok(settings)
}

fn change(
    options: *const TextureOptions,
    act: impl FnOnce(&mut TextureSettings) -> Result<(), Failure>,
) -> Status {
    guard(|| {
        let options = handle::get(options)?;
        let mut settings = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut settings)
    })
}

/// When a texture server takes pictures from its source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum TextureTiming {
    /// At the source's rate. A slow client misses whole frames.
    Live = 0,
    /// At the source's rate or more slowly, so that every client is sent every frame.
    EveryFrame = 1,
    /// As fast as the slowest client accepts them.
    FlatOut = 2,
}

/// What a texture server changes when a client reports lost packets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum TextureAdaptation {
    /// Nothing.
    Off = 0,
    /// The format, to ycocg-bc3 and then to bc1.
    Format = 1,
    /// The format, then the frame rate, to a half and to a quarter.
    FormatAndRate = 2,
}

/// Creates settings of texture servers and clients; close them with rushes_texture_options_close().
/// They may be used more than once.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_new(options: *mut *mut TextureOptions) -> Status {
    guard(|| {
        pointer::write(options, std::ptr::null_mut())?;
        pointer::write(options, handle::insert(TextureOptions::default())?)
    })
}

/// Closes settings. Servers and clients made with them stay open.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_close(options: *mut TextureOptions) -> Status {
    guard(|| handle::remove(options).map(drop))
}

/// The format that a server encodes to for clients that request none, or that a client requests:
/// "bc1", "bc3", "ycocg-bc3", "rgb24", "rgba8", "rgb565", "yuv420", "yuv422", "ycocg420", "etc1",
/// "etc2", "astc-4x4", and so on. By default the source's own.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_format(
    options: *const TextureOptions,
    format: *const c_char,
) -> Status {
    change(options, |settings| {
        let format = self::format(pointer::text(format)?)?;
        settings.server.format = Some(format);
        settings.client.format = Some(format);
        Ok(())
    })
}

/// How near to the pictures a server's "bc1", "bc3" and "ycocg-bc3" are: "fast", the default, or
/// "high", which takes several times as long and helps coloured text most; RUSHES_ERROR_ARGUMENT for
/// any other name.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_quality(
    options: *const TextureOptions,
    quality: *const c_char,
) -> Status {
    change(options, |settings| {
        let name = pointer::text(quality)?;
        let wrong = |error: UnknownQuality| argument(format!("{name:?} is not a quality: {error}"));
        settings.server.quality = name.parse().map_err(wrong)?;
        Ok(())
    })
}

/// The transport of the tiles: "udp", "tcp", "rtp" or, if the server has a group, "multicast". By default the
/// client lets the server choose, and the server chooses UDP. With keys it is RTP.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_transport(
    options: *const TextureOptions,
    transport: *const c_char,
) -> Status {
    change(options, |settings| {
        let transport = self::transport(pointer::text(transport)?)?;
        settings.server.transport = transport;
        settings.client.transport = Some(transport);
        Ok(())
    })
}

/// The multicast group to which a server sends frames once, for all clients that request the transport
/// "multicast": its address, and the port of the first tile ("239.255.0.1:7100"); each further tile has the next
/// port. Frames are not encrypted, stay on this network, and leave through the interface of the first client.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_multicast(
    options: *const TextureOptions,
    group: *const c_char,
) -> Status {
    change(options, |settings| {
        let text = pointer::text(group)?;
        let wrong =
            |_| argument(format!("{text:?} is not a group and a port; type \"239.255.0.1:7100\""));
        settings.server.multicast = Some(MulticastGroup::new(text.parse().map_err(wrong)?));
        Ok(())
    })
}

/// The number of tiles of a frame, 1 to 64; each has a socket and a thread on both sides. By
/// default the client lets the server choose, and the server uses the number of its processors, at
/// most 8.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_units(
    options: *const TextureOptions,
    units: u8,
) -> Status {
    change(options, |settings| {
        if !(1..=64).contains(&units) {
            return Err(argument(format!("a tile count of {units} is outside 1 to 64")));
        }
        settings.server.units = units.into();
        settings.client.units = units;
        Ok(())
    })
}

/// When a server takes pictures from its source: a rushes_texture_timing; live by default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_timing(
    options: *const TextureOptions,
    timing: i32,
) -> Status {
    change(options, |settings| {
        settings.server.timing = match timing {
            0 => Timing::Live,
            1 => Timing::EveryFrame,
            2 => Timing::FlatOut,
            _ => return Err(argument(format!("{timing} is not a texture timing"))),
        };
        Ok(())
    })
}

/// Whether a server's source restarts at its end; by default its end ends the sessions.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_loops(options: *const TextureOptions, on: bool) -> Status {
    change(options, |settings| {
        settings.server.loops = on;
        Ok(())
    })
}

/// Sends a frame as fast as the client can receive it, over UDP and RTP.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_pacing_off(options: *const TextureOptions) -> Status {
    change(options, |settings| {
        settings.server.pacing = Pacing::Off;
        Ok(())
    })
}

/// Spreads the tiles of a frame, together, over a share of the frame interval, 0.01 to 1; 0.9 by
/// default. With the flat-out timing UDP is not paced then, and RTP at 10 Gbit/s.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_pacing_share(
    options: *const TextureOptions,
    share: f32,
) -> Status {
    change(options, |settings| {
        settings.server.pacing = Pacing::Share(share);
        Ok(())
    })
}

/// Sends all tiles to one client together at this rate, in bits of UDP payload per second; a server
/// with a rate of 0 cannot be opened.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_pacing_rate(
    options: *const TextureOptions,
    bits_per_second: u64,
) -> Status {
    change(options, |settings| {
        settings.server.pacing = Pacing::Rate(bits_per_second);
        Ok(())
    })
}

/// The largest burst of a paced server, as rushes_stream_options_burst().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_burst(
    options: *const TextureOptions,
    octets: usize,
    time: u64,
) -> Status {
    change(options, |settings| {
        settings.server.burst = Burst { octets, time: Duration::from_nanos(time) };
        Ok(())
    })
}

/// What changes when a client reports lost packets (UDP and RTP, with the live timing): a
/// rushes_texture_adaptation; format and rate by default. What a client requested is kept.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_adaptation(
    options: *const TextureOptions,
    adaptation: i32,
) -> Status {
    change(options, |settings| {
        settings.server.adaptation = match adaptation {
            0 => Adaptation::Off,
            1 => Adaptation::Format,
            2 => Adaptation::FormatAndRate,
            _ => return Err(argument(format!("{adaptation} is not a texture adaptation"))),
        };
        Ok(())
    })
}

/// Neither requests packets that did not arrive (a client) nor sends them again (a server), over UDP; on
/// by default, if both ends have it.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_recovery_off(options: *const TextureOptions) -> Status {
    change(options, |settings| {
        (settings.server.recovery, settings.client.recovery) = (false, false);
        Ok(())
    })
}

/// Repair packets of a server, over UDP: `mode` is a rushes_fec_mode, and `percent` their number for 100
/// packets, 1 to 100, or the largest; a server with another cannot be opened. Clients use them anyway;
/// with RUSHES_FEC_MODE_RECEIVE, the default, the server sends none. By loss there are as many as the
/// losses that a client reports need, and none if requests alone suffice.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_fec(
    options: *const TextureOptions,
    mode: i32,
    percent: u8,
) -> Status {
    change(options, |settings| {
        settings.server.fec = match mode {
            0 => Fec::Off,
            1 => Fec::Percent(percent),
            2 => Fec::ByLoss(percent),
            _ => return Err(argument(format!("{mode} is not a mode of error correction"))),
        };
        Ok(())
    })
}

/// Whether a server packs stripes for clients that can unpack them, off by default, and whether a client can
/// unpack them, on by default. Stripes whose pixels are those of the frame before are not sent, and others are LZ4
/// blocks where that saves half at least; a server with repair packets packs none.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_packing(
    options: *const TextureOptions,
    on: bool,
) -> Status {
    change(options, |settings| {
        (settings.server.packing, settings.client.packing) = (on, on);
        Ok(())
    })
}

/// The largest width and height of a client's frames in pixels, by default those of the server's source. The server
/// scales larger pictures down, with the same ratio of the sides, unless they are blocks or RGB 5:6:5 already or it is
/// of an older release: see rushes_texture_frame's size. RUSHES_ERROR_ARGUMENT for a side of 0 or over 32768.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_size_max(
    options: *const TextureOptions,
    width: u32,
    height: u32,
) -> Status {
    change(options, |settings| {
        let sides = 1..=SIDE_MAX;
        if !sides.contains(&width) || !sides.contains(&height) {
            return Err(argument(format!("frames cannot have {width}x{height} pixels")));
        }
        settings.client.size_max = Some((width, height));
        Ok(())
    })
}

/// Whether a server scales pictures down for clients that request a largest size, on by default. Each size takes
/// time for each picture.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_scaling(
    options: *const TextureOptions,
    on: bool,
) -> Status {
    change(options, |settings| {
        settings.server.scaling = on;
        Ok(())
    })
}

/// What the values of a server's pictures stand for. `colour` points to four octets, which are copied: the
/// code points of rushes_texture_frame's `colour`, in its order; RUSHES_ERROR_ARGUMENT for unknown ones. The
/// pictures of rushes_texture_serve_from() have BT.709, limited range and chroma in the centre by default. Of a
/// file, all but the location of chroma is overridden. Formats without YUV have no matrix, range and location.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_colour(
    options: *const TextureOptions,
    colour: *const u8,
) -> Status {
    change(options, |settings| {
        let points = pointer::slice(colour, 4)?;
        let known = points.try_into().ok().and_then(Colour::from_code_points);
        let unknown = || argument(format!("{points:?} are not code points of known colours"));
        settings.colour = Some(known.ok_or_else(unknown)?);
        Ok(())
    })
}

/// Maximum number of concurrent clients from one host, 4 by default. A host is an IPv4 address, or
/// an IPv6 network of 64 bits.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_clients_per_host_max(
    options: *const TextureOptions,
    clients: usize,
) -> Status {
    change(options, |settings| {
        settings.server.clients_per_host_max = clients;
        Ok(())
    })
}

/// Maximum number of concurrent clients of a server, 8 by default.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_clients_max(
    options: *const TextureOptions,
    clients: usize,
) -> Status {
    change(options, |settings| {
        settings.server.clients_max = clients;
        Ok(())
    })
}

/// Frames that a client holds in memory, 2 to 8; by default 3, and with recovery over UDP those that
/// arrive while a frame waits for packets that are sent again.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_slots(
    options: *const TextureOptions,
    slots: usize,
) -> Status {
    change(options, |settings| {
        if !(2..=8).contains(&slots) {
            return Err(argument(format!("a slot count of {slots} is outside 2 to 8")));
        }
        settings.client.slots = slots;
        Ok(())
    })
}

/// Secures sessions with a key that both ends have; see rushes_stream_options_srtp(). Both ends
/// prove that they have the key before any offer is made. The control connection is encrypted under
/// new keys, from which those of the media are derived.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_srtp(
    options: *const TextureOptions,
    suite: i32,
    key: *const u8,
    len: usize,
) -> Status {
    change(options, |settings| settings.secrets.set_keys(suite, pointer::slice(key, len)?, None))
}

/// Lets both ends agree on keys (ZRTP). `cache` is a file for secrets of earlier sessions, or NULL.
/// The control connection is unencrypted until the keys are agreed on, and encrypted from then on.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_texture_options_zrtp(
    options: *const TextureOptions,
    cache: *const c_char,
) -> Status {
    change(options, |settings| {
        let cache = pointer::optional_text(cache)?.map(Into::into);
        settings.secrets.set_zrtp().cache = cache;
        Ok(())
    })
}
