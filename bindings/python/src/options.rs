//! Converts keywords of `Session.stream` to settings of a stream.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rushes::payload::raw::{RawVideo, Sampling, Scan};
use rushes::proto::rtcp::SdesKind;
use rushes::texture::did_you_mean;
use rushes::{
    Burst, ClockRate, Codec, Delivery, ExtensionKind, ExtensionMap, Fec, FecFormat, FrameRate,
    Framing, MulticastOptions, Pacing, PayloadType, RateSettings, Recovery, RtpTimestamp,
    SequenceNumber, Ssrc, StreamBuilder,
};

use crate::error::ConfigError;
use crate::integer::{self, Integer};
use crate::security::Security;

/// The largest ratio of `fec="auto"`, as in the program.
pub(crate) const FEC_AUTO_MAX: u8 = 50;

/// A setting's value, with its name for error messages.
pub(crate) struct Setting<'a, 'py> {
    pub(crate) name: &'a str,
    pub(crate) value: Bound<'py, PyAny>,
}

impl<'py> Setting<'_, 'py> {
    pub(crate) fn wrong(&self, text: impl std::fmt::Display) -> PyErr {
        ConfigError::new_err(format!("{}: {text}", self.name))
    }

    pub(crate) fn get<T>(&self) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py>,
    {
        self.value.extract::<T>().map_err(|error| {
            let py = self.value.py();
            let error: PyErr = error.into();
            let text = format!("{}: {}", self.name, error.value(py));
            let is_range = error.is_instance_of::<PyOverflowError>(py)
                || error.is_instance_of::<PyValueError>(py);
            if is_range { ConfigError::new_err(text) } else { PyTypeError::new_err(text) }
        })
    }

    /// Returns an integer in the range of its type.
    pub(crate) fn int<T: Integer>(&self) -> PyResult<T> {
        self.within(T::LEAST, T::MOST)
    }

    /// Returns an integer from `least` to `most`.
    pub(crate) fn within<T: Integer>(&self, least: i128, most: i128) -> PyResult<T> {
        let py = self.value.py();
        integer::within(self.name, &self.value, least, most).map_err(|error| {
            let is_named = error.is_instance_of::<ConfigError>(py);
            let text = || format!("{}: {}", self.name, error.value(py));
            if is_named { error } else { PyTypeError::new_err(text()) }
        })
    }

    /// Returns the setting of `value`, one part of this setting's value, which is a tuple.
    fn part<'a>(&'a self, value: Bound<'py, PyAny>) -> Setting<'a, 'py> {
        Setting { name: self.name, value }
    }

    pub(crate) fn seconds(&self) -> PyResult<Duration> {
        let seconds = self.get::<f64>()?;
        Duration::try_from_secs_f64(seconds).map_err(|error| self.wrong(error))
    }

    pub(crate) fn parse<T: std::str::FromStr>(&self) -> PyResult<T>
    where
        T::Err: std::fmt::Display,
    {
        self.get::<String>()?.parse().map_err(|error| self.wrong(error))
    }

    fn payload_type(&self) -> PyResult<PayloadType> {
        let value = self.within(0, 127)?;
        PayloadType::checked(value).map_err(|error| self.wrong(error))
    }

    /// Returns the value of one of a set of words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> PyResult<T> {
        let word = self.get::<String>()?;
        let found = words.iter().find(|(name, _)| *name == word).map(|&(_, value)| value);
        let names = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| {
            let meant = did_you_mean(&word, words.iter().map(|(name, _)| *name));
            self.wrong(format!("{word:?} is not one of {}{meant}", names()))
        })
    }
}

/// Returns the codec with this name.
pub(crate) fn codec(name: &str) -> PyResult<Codec> {
    let is_its = |codec: &Codec| codec.name == name;
    Codec::all().find(is_its).ok_or_else(|| {
        let mut known: Vec<&str> = Codec::all().map(|codec| codec.name).collect();
        known.sort_unstable();
        let meant = did_you_mean(name, known.iter().copied());
        let known = known.join(", ");
        ConfigError::new_err(format!("{name:?} is not a format; there are {known}{meant}"))
    })
}

/// Returns a rate as a fraction, from a value with a numerator and a denominator or a
/// floating-point number.
pub(crate) fn fraction(setting: &Setting<'_, '_>) -> PyResult<Option<(u32, u32)>> {
    let value = &setting.value;
    if !value.hasattr("numerator")? {
        return Ok(None);
    }
    let part = |name| Setting { name: setting.name, value: value.getattr(name)? }.int::<u32>();
    Ok(Some((part("numerator")?, part("denominator")?)))
}

fn frame_rate(setting: &Setting<'_, '_>) -> PyResult<FrameRate> {
    let rate = match fraction(setting)? {
        Some((frames, seconds)) => FrameRate::new(frames, seconds),
        None => FrameRate::from_f64(setting.get()?),
    };
    rate.ok_or_else(|| setting.wrong("not a valid number of frames per second"))
}

/// How lines are scanned, by name.
const SCANS: [(&str, Scan); 3] = [
    ("progressive", Scan::Progressive),
    ("interlaced", Scan::Interlaced),
    ("interlaced-by-field", Scan::InterlacedByField),
];

/// Returns uncompressed video: (width, height, sampling, depth), and how lines are scanned.
pub(crate) fn raw_video<'py>(setting: &Setting<'_, 'py>) -> PyResult<RawVideo> {
    let wrong = || setting.wrong("it is (width, height, sampling, depth), and perhaps the scan");
    let parts = setting.get::<Vec<Bound<'_, PyAny>>>()?;
    let (width, height, sampling, depth, scan) = match &parts[..] {
        [width, height, sampling, depth] => (width, height, sampling, depth, None),
        [width, height, sampling, depth, scan] => (width, height, sampling, depth, Some(scan)),
        _ => return Err(wrong()),
    };
    let part = |value: &Bound<'py, PyAny>| setting.part(value.clone());
    let sampling: Sampling = part(sampling).parse()?;
    let scan = scan.map_or(Ok(Scan::Progressive), |scan| part(scan).word(&SCANS))?;
    let (depth, size) = (part(depth).int()?, (part(width).int()?, part(height).int()?));
    let video = RawVideo::new(sampling, depth, size.0, size.1);
    let video = video.and_then(|video| video.with_scan(scan));
    video.map_err(|error| setting.wrong(error))
}

/// Returns the tuple of uncompressed video, without its scan if that is progressive.
pub(crate) fn raw_video_tuple(py: Python<'_>, video: RawVideo) -> PyResult<Bound<'_, PyTuple>> {
    let sampling = video.sampling().name();
    let (width, height, depth) = (video.width(), video.height(), video.depth());
    let scan = SCANS.iter().find(|(_, scan)| *scan == video.scan());
    match scan.filter(|_| video.is_interlaced()) {
        Some((scan, _)) => (width, height, sampling, depth, *scan).into_pyobject(py),
        None => (width, height, sampling, depth).into_pyobject(py),
    }
}

fn recovery(setting: &Setting<'_, '_>) -> PyResult<Recovery> {
    if setting.value.is_instance_of::<pyo3::types::PyInt>() {
        return setting.payload_type().map(Recovery::Rtx);
    }
    let words = [("off", Recovery::Off), ("on", Recovery::On), ("verbatim", Recovery::Verbatim)];
    setting.word(&words)
}

/// Returns the repair packets: their ratio, or that and their format.
fn fec(setting: &Setting<'_, '_>) -> PyResult<Fec> {
    if !setting.value.is_instance_of::<PyTuple>() {
        return fec_ratio(setting);
    }
    let Ok([ratio, format]) = <[_; 2]>::try_from(setting.get::<Vec<Bound<'_, PyAny>>>()?) else {
        return Err(setting.wrong("it is a ratio, or (ratio, format)"));
    };
    let format = setting.part(format).word(&[
        ("flexfec", FecFormat::FlexFec),
        ("flexfec-03", FecFormat::FlexFec03),
        ("ulpfec", FecFormat::Ulp),
    ])?;
    Ok(fec_ratio(&setting.part(ratio))?.format(format))
}

fn fec_ratio(setting: &Setting<'_, '_>) -> PyResult<Fec> {
    if setting.value.is_instance_of::<pyo3::types::PyInt>() {
        return Ok(Fec::percent(setting.within(1, 100)?));
    }
    setting.word(&[("receive", Fec::receive()), ("auto", Fec::by_loss(FEC_AUTO_MAX))])
}

fn describe(mut builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<StreamBuilder> {
    let words = [
        ("name", SdesKind::Name),
        ("email", SdesKind::Email),
        ("phone", SdesKind::Phone),
        ("location", SdesKind::Location),
        ("tool", SdesKind::Tool),
        ("note", SdesKind::Note),
    ];
    for (kind, text) in setting.get::<Vec<(String, String)>>()? {
        let known = words.iter().find(|(name, _)| *name == kind);
        let known = known.ok_or_else(|| {
            let meant = did_you_mean(&kind, words.map(|(name, _)| name));
            setting.wrong(format!("{kind:?} is not an item of a source description{meant}"))
        })?;
        builder = builder.describe(known.1, &text);
    }
    Ok(builder)
}

fn multicast(setting: &Setting<'_, '_>, group: Option<IpAddr>) -> PyResult<MulticastOptions> {
    let group = group.ok_or_else(|| setting.wrong("the session has no peer"))?;
    let mut options = MulticastOptions::new(group);
    for (name, value) in setting.get::<Bound<'_, PyDict>>()? {
        let name = name.extract::<String>()?;
        let part = Setting { name: &name, value };
        match name.as_str() {
            "interface" => options.interface = Some(part.parse()?),
            "ttl" => options.ttl = part.within(0, 255)?,
            "loop_back" => options.loop_back = part.get()?,
            "sources" => options.sources = sources(&part)?,
            _ => {
                let meant = did_you_mean(&name, ["interface", "ttl", "loop_back", "sources"]);
                return Err(setting.wrong(format!("{name:?} is not a setting of multicast{meant}")));
            }
        }
    }
    Ok(options)
}

/// Returns the addresses of hosts.
fn sources(setting: &Setting<'_, '_>) -> PyResult<Vec<IpAddr>> {
    let address = |host: &String| {
        let resolved = setting.value.py().detach(|| rushes::net::resolve(host, 0));
        resolved.map(|it| it.ip()).map_err(|error| setting.wrong(error))
    };
    setting.get::<Vec<String>>()?.iter().map(address).collect()
}

/// Returns a host and, if given, a port.
fn only_from(setting: &Setting<'_, '_>) -> PyResult<(IpAddr, Option<u16>)> {
    let (host, port) = if let Ok(host) = setting.get::<String>() {
        (host, None)
    } else {
        let (host, port) = setting.get::<(String, Bound<'_, PyAny>)>()?;
        (host, Some(setting.part(port).int()?))
    };
    let resolved = setting.value.py().detach(|| rushes::net::resolve(&host, 0));
    let address = resolved.map_err(|error| setting.wrong(error))?;
    Ok((address.ip(), port))
}

/// Returns destinations, each a host and a port.
fn destinations(setting: &Setting<'_, '_>) -> PyResult<Vec<SocketAddr>> {
    let mut destinations = Vec::new();
    for (host, port) in setting.get::<Vec<(String, Bound<'_, PyAny>)>>()? {
        let port = setting.part(port).int()?;
        let resolved = setting.value.py().detach(|| rushes::net::resolve(&host, port));
        destinations.push(resolved.map_err(|error| setting.wrong(error))?);
    }
    Ok(destinations)
}

pub(crate) fn burst(setting: &Setting<'_, '_>) -> PyResult<Burst> {
    let (octets, time) = setting.get::<(Bound<'_, PyAny>, f64)>()?;
    let octets = setting.part(octets).int()?;
    let time = Duration::try_from_secs_f64(time);
    Ok(Burst { octets, time: time.map_err(|error| setting.wrong(error))? })
}

/// Adds the elements of header extensions, given by name or URI with their identifiers.
fn extensions(mut builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<StreamBuilder> {
    let kinds = ExtensionKind::ALL.map(|kind| (kind.name(), kind));
    let mut map = ExtensionMap::default();
    for (name, id) in setting.get::<Bound<'_, PyDict>>()? {
        let id = setting.part(id).int()?;
        let uri: String = setting.part(name.clone()).get()?;
        let known = ExtensionKind::of_uri(&uri);
        let elements = if known.is_none() && uri.contains(':') {
            builder = builder.extension(id, &uri);
            map.with_own(id).and(Ok(map))
        } else {
            let kind = known.map_or_else(|| setting.part(name).word(&kinds), Ok)?;
            map.with(kind, id)
        };
        map = elements.map_err(|error| setting.wrong(error))?;
    }
    Ok(builder.extensions(map))
}

/// Applies settings of media.
fn media(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    let delivery = [("access-unit", Delivery::AccessUnit), ("unit", Delivery::Unit)];
    let framing = [("annex-b", Framing::AnnexB), ("length-prefixed", Framing::LengthPrefixed)];
    Ok(Some(match setting.name {
        "payload_type" => builder.payload_type(setting.payload_type()?),
        "ssrc" => builder.ssrc(Ssrc(setting.int()?)),
        "remote_ssrc" => builder.remote_ssrc(Ssrc(setting.int()?)),
        "only_from" => {
            let (host, port) = only_from(setting)?;
            builder.only_from(host, port)
        }
        "extensions" => extensions(builder, setting)?,
        "extmap_allow_mixed" => builder.extmap_allow_mixed(setting.get()?),
        "mid" => builder.mid(&setting.get::<String>()?),
        "rid" => builder.rid(&setting.get::<String>()?),
        "clock_rate" => {
            let rate = ClockRate::new(setting.within(1, u32::MAX.into())?);
            builder.clock_rate(rate.ok_or_else(|| setting.wrong("the rate must not be 0"))?)
        }
        "channels" => builder.channels(setting.within(1, 255)?),
        "packet_time" => builder.packet_time(setting.seconds()?),
        "mtu" => builder.mtu(setting.within(100, 65_535)?),
        "frame_rate" => builder.frame_rate(frame_rate(setting)?),
        "pacing" if setting.get::<bool>()? => builder.pacing(Pacing::default()),
        "pacing" => builder.pacing(Pacing::Off),
        "pacing_share" => builder.pacing(Pacing::Share(setting.get()?)),
        "pacing_rate" => builder.pacing(Pacing::Rate(setting.int()?)),
        "burst" => builder.burst(burst(setting)?),
        "padding_limit" => builder.padding_limit(setting.within(0, 1000)?),
        "delivery" => builder.delivery(setting.word(&delivery)?),
        "framing" => builder.framing(setting.word(&framing)?),
        "frame_len_max" => builder.frame_len_max(setting.int()?),
        "raw_video" => builder.raw_video(raw_video(setting)?),
        "incomplete_frames" => builder.incomplete_frames(setting.get()?),
        "max_don_diff" => builder.max_don_diff(setting.int()?),
        "depack_buf_nalus" => builder.depack_buf_nalus(setting.int()?),
        "depack_buf_bytes" => builder.depack_buf_bytes(setting.int()?),
        "reorder_time" => builder.reorder_time(setting.seconds()?),
        "latency" => builder.latency(setting.seconds()?),
        "memory" => builder.memory(setting.int()?),
        "reorder_window" => {
            let (packets, octets) = setting.get::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let (packets, octets) = (setting.part(packets), setting.part(octets));
            builder.reorder_window(packets.within(1, 16_384)?, octets.int()?)
        }
        "probation" => builder.probation(setting.int()?),
        "sources" => {
            let (most, silence) = setting.get::<(Bound<'_, PyAny>, f64)>()?;
            let most = setting.part(most).int()?;
            let silence = Duration::try_from_secs_f64(silence);
            builder.sources(most, silence.map_err(|error| setting.wrong(error))?)
        }
        "first_packet" => {
            let (sequence, timestamp) = setting.get::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let sequence = SequenceNumber(setting.part(sequence).int()?);
            builder.first_packet(sequence, RtpTimestamp(setting.part(timestamp).int()?))
        }
        _ => return Ok(None),
    }))
}

/// Applies settings of sockets.
fn socket(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    Ok(Some(match setting.name {
        "local_port" => builder.local_port(setting.int()?),
        "remote_port" => builder.remote_port(setting.int()?),
        "also_to" => destinations(setting)?.into_iter().fold(builder, StreamBuilder::also_to),
        "socket_buffer" => builder.socket_buffer(setting.int()?),
        "spin" => builder.spin(setting.seconds()?),
        "send_timeout" => builder.send_timeout(setting.seconds()?),
        "send_path" => builder.send_path(setting.parse()?),
        "receive_path" => builder.receive_path(setting.parse()?),
        "dscp" => builder.dscp(setting.within(0, 63)?),
        "interface" => builder.interface(&setting.get::<String>()?),
        "keep_alive" => builder.keep_alive(setting.seconds()?),
        _ => return Ok(None),
    }))
}

/// Returns the settings of rate control: the minimum, the start and the maximum, and the marks of
/// packets, if any.
fn rate_control(setting: &Setting<'_, '_>) -> PyResult<RateSettings> {
    let mut parts = setting.get::<Vec<Bound<'_, PyAny>>>()?;
    let mark = if parts.len() == 4 { parts.pop() } else { None };
    let Ok([min, start, max]) = <[_; 3]>::try_from(parts) else {
        return Err(setting.wrong("it is (minimum, start, maximum), or these and a mark"));
    };
    let rate = |part| setting.part(part).int();
    let settings = RateSettings::new(rate(min)?, rate(start)?, rate(max)?);
    let settings = settings.map_err(|error| setting.wrong(error))?;
    let Some(mark) = mark else { return Ok(settings) };
    let is_l4s = setting.part(mark).word(&[("l4s", true), ("classic", false)])?;
    Ok(if is_l4s { settings.l4s(true) } else { settings.ecn(true) })
}

/// Applies settings of RTCP and recovery.
fn control(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    Ok(Some(match setting.name {
        "rtcp" => builder.rtcp(setting.get()?),
        "rtcp_mux" => builder.rtcp_mux(setting.get()?),
        "rtcp_local_port" => builder.rtcp_local_port(setting.int()?),
        "rtcp_remote_port" => builder.rtcp_remote_port(setting.int()?),
        "session_bandwidth" => builder.session_bandwidth(setting.int()?),
        "feedback" => builder.feedback(setting.get()?),
        "reduced_size" => builder.reduced_size(setting.get()?),
        "describe" => describe(builder, setting)?,
        "recovery" => builder.recovery(recovery(setting)?),
        "rtx_ssrc" => builder.rtx_ssrc(Ssrc(setting.int()?)),
        "remote_rtx_ssrc" => builder.remote_rtx_ssrc(Ssrc(setting.int()?)),
        "fec" => builder.fec(fec(setting)?),
        "report_arrivals" => builder.report_arrivals(setting.get()?),
        "report_transport_wide" => builder.report_transport_wide(setting.get()?),
        "rate_control" => builder.rate_control(rate_control(setting)?),
        "rate_priority" => builder.rate_priority(setting.within(1, 255)?),
        "circuit_breakers" => builder.circuit_breakers(setting.get()?),
        "history" => builder.history(setting.int()?),
        _ => return Ok(None),
    }))
}

/// Returns the error for a keyword that is not in the table `table` of `rushes._types`.
pub(crate) fn unknown(py: Python<'_>, name: &str, table: &str) -> PyErr {
    let known = || {
        let table = py.import("rushes._types")?.getattr(table)?;
        table.getattr("__annotations__")?.cast_into::<PyDict>()?.keys().extract::<Vec<String>>()
    };
    // Without the table, the error names only the keyword.
    let known = known().unwrap_or_default();
    let meant = did_you_mean(name, known.iter().map(String::as_str));
    let of = if table == "StreamOptions" { "a stream" } else { "texture video" };
    PyTypeError::new_err(format!("{name:?} is not a setting of {of}{meant}"))
}

/// Applies every setting of `options` to a builder; `None` stands for a setting's default.
pub(crate) fn apply(
    mut builder: StreamBuilder,
    options: Option<&Bound<'_, PyDict>>,
    peer: Option<IpAddr>,
) -> PyResult<StreamBuilder> {
    for (name, value) in options.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let name = name.extract::<String>()?;
        let setting = Setting { name: &name, value };
        builder = match name.as_str() {
            "multicast" => builder.multicast(multicast(&setting, peer)?),
            "security" => {
                let security = setting.get::<PyRef<'_, Security>>()?.security.clone();
                builder.security(security)
            }
            _ => {
                let kinds = [media, socket, control];
                let mut applied = None;
                for kind in kinds {
                    applied = kind(builder.clone(), &setting)?;
                    if applied.is_some() {
                        break;
                    }
                }
                applied.ok_or_else(|| unknown(setting.value.py(), &name, "StreamOptions"))?
            }
        };
    }
    Ok(builder)
}
