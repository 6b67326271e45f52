//! Converts keywords to options of texture servers and clients.

use std::net::SocketAddr;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rushes::texture::{
    Adaptation, ClientOptions, Colour, Fec, Format, FrameRate, MulticastGroup, Rate, SIDE_MAX,
    ServerOptions, Timing, Transport,
};
use rushes::{Pacing, Security};

use crate::error::{ConfigError, NetError};
use crate::options::{FEC_AUTO_MAX, Setting, burst, fraction, unknown};

const TRANSPORTS: [(&str, Transport); 4] = [
    ("udp", Transport::Udp),
    ("tcp", Transport::Tcp),
    ("rtp", Transport::Rtp),
    ("multicast", Transport::Multicast),
];

const TIMINGS: [(&str, Timing); 3] =
    [("live", Timing::Live), ("every-frame", Timing::EveryFrame), ("flat-out", Timing::FlatOut)];

const ADAPTATIONS: [(&str, Adaptation); 3] = [
    ("off", Adaptation::Off),
    ("format", Adaptation::Format),
    ("format-and-rate", Adaptation::FormatAndRate),
];

/// Returns the name of a transport.
pub(super) fn name_of(transport: Transport) -> Option<&'static str> {
    TRANSPORTS.iter().find(|(_, known)| *known == transport).map(|(name, _)| *name)
}

/// Returns the address of a host and a port. Resolving a name may block.
pub(super) fn resolve(py: Python<'_>, (host, port): (String, u16)) -> PyResult<SocketAddr> {
    let address = py.detach(|| rushes::net::resolve(&host, port));
    address.map_err(|error| NetError::new_err(error.to_string()))
}

/// Returns the format with this name.
pub(super) fn format(name: &str) -> PyResult<Format> {
    name.parse().map_err(|error| ConfigError::new_err(format!("{error}")))
}

/// Converts a rate of pictures: a whole number, a fraction, or a number close to a television rate.
pub(super) fn rate(setting: &Setting<'_, '_>) -> PyResult<Rate> {
    let rate = match fraction(setting)? {
        Some((numerator, denominator)) => Rate::new(numerator, denominator),
        None => format!("{:.3}", setting.get::<f64>()?).parse(),
    };
    rate.map_err(|error| setting.wrong(error))
}

/// Converts a rate to the form that a client requests.
pub(super) fn requested_rate(rate: Rate) -> FrameRate {
    FrameRate { numerator: rate.numerator(), denominator: rate.denominator() }
}

/// Returns a largest width and height.
fn size_max(setting: &Setting<'_, '_>) -> PyResult<(u32, u32)> {
    let size = setting.get::<(u32, u32)>()?;
    let is_valid = |side: u32| (1..=SIDE_MAX).contains(&side);
    if is_valid(size.0) && is_valid(size.1) {
        return Ok(size);
    }
    Err(setting.wrong(format!("frames have sides of 1 to {SIDE_MAX} pixels")))
}

/// Returns a largest width and height to change to; `None` for (0, 0), the source's own.
pub(super) fn changed_size_max(setting: &Setting<'_, '_>) -> PyResult<Option<(u32, u32)>> {
    if setting.get::<(u32, u32)>()? == (0, 0) {
        return Ok(None);
    }
    size_max(setting).map(Some)
}

/// Returns the ratio of repair packets.
fn fec(setting: &Setting<'_, '_>) -> PyResult<Fec> {
    if setting.value.is_instance_of::<pyo3::types::PyInt>() {
        return Ok(Fec::Percent(setting.within(1, 100)?));
    }
    setting.word(&[("off", Fec::Off), ("auto", Fec::ByLoss(FEC_AUTO_MAX))])
}

/// Returns the colours of code points, as those of a frame.
fn colour(setting: &Setting<'_, '_>) -> PyResult<Colour> {
    let (primaries, transfer, matrix, rest) = setting.get::<(u8, u8, u8, u8)>()?;
    let points = [primaries, transfer, matrix, rest];
    let unknown = || setting.wrong(format!("{points:?} are not code points of known colours"));
    Colour::from_code_points(points).ok_or_else(unknown)
}

fn security(setting: &Setting<'_, '_>) -> PyResult<Option<Security>> {
    Ok(Some(setting.get::<PyRef<'_, crate::security::Security>>()?.security.clone()))
}

/// Calls `set` for each keyword that is not `None`; all keywords are in `table` of `rushes._types`.
fn each(
    keywords: Option<&Bound<'_, PyDict>>,
    table: &str,
    mut set: impl FnMut(&Setting<'_, '_>) -> PyResult<bool>,
) -> PyResult<()> {
    for (name, value) in keywords.into_iter().flatten() {
        let name = name.extract::<String>()?;
        let setting = Setting { name: &name, value };
        if !setting.value.is_none() && !set(&setting)? {
            return Err(unknown(setting.value.py(), &name, table));
        }
    }
    Ok(())
}

/// Returns the options of a server, and the colours of its source if they are stated.
pub(super) fn of_server(
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<(ServerOptions, Option<Colour>)> {
    let (mut options, mut stated) = (ServerOptions::default(), None);
    each(keywords, "TextureServerOptions", |setting| {
        match setting.name {
            "format" => options.format = Some(setting.parse()?),
            "quality" => options.quality = setting.parse()?,
            "transport" => options.transport = setting.word(&TRANSPORTS)?,
            "units" => options.units = setting.int()?,
            "payload" => options.payload = setting.int()?,
            "in_flight" => options.in_flight = setting.int()?,
            "pacing" if setting.get::<bool>()? => options.pacing = Pacing::default(),
            "pacing" => options.pacing = Pacing::Off,
            "pacing_share" => options.pacing = Pacing::Share(setting.get()?),
            "pacing_rate" => options.pacing = Pacing::Rate(setting.int()?),
            "burst" => options.burst = burst(setting)?,
            "adaptation" => options.adaptation = setting.word(&ADAPTATIONS)?,
            "recovery" => options.recovery = setting.get()?,
            "fec" => options.fec = fec(setting)?,
            "packing" => options.packing = setting.get()?,
            "scaling" => options.scaling = setting.get()?,
            "multicast" => options.multicast = Some(MulticastGroup::new(setting.parse()?)),
            "colour" => stated = Some(colour(setting)?),
            "clients_max" => options.clients_max = setting.int()?,
            "clients_per_host_max" => options.clients_per_host_max = setting.int()?,
            "timing" => options.timing = setting.word(&TIMINGS)?,
            "loop" => options.loops = setting.get()?,
            "security" => options.security = security(setting)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok((options, stated))
}

/// Returns the options of a client.
pub(super) fn of_client(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<ClientOptions> {
    let mut options = ClientOptions::default();
    each(keywords, "TextureClientOptions", |setting| {
        match setting.name {
            "formats" => {
                let names = setting.get::<Vec<String>>()?;
                let formats: PyResult<_> = names.iter().map(|name| format(name)).collect();
                options.formats = formats?;
            }
            "format" => options.format = Some(setting.parse()?),
            "transport" => options.transport = Some(setting.word(&TRANSPORTS)?),
            "units" => options.units = setting.int()?,
            "payload" => options.payload = setting.int()?,
            "rate" => options.rate = Some(requested_rate(rate(setting)?)),
            "size_max" => options.size_max = Some(size_max(setting)?),
            "frame_bytes_max" => options.frame_bytes_max = setting.int()?,
            "slots" => options.slots = setting.int()?,
            "recovery" => options.recovery = setting.get()?,
            "packing" => options.packing = setting.get()?,
            "deadline_min" => options.deadline_min = setting.seconds()?,
            "deadline_max" => options.deadline_max = setting.seconds()?,
            "connect_timeout" => options.connect_timeout = setting.seconds()?,
            "security" => options.security = security(setting)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(options)
}
