//! Keywords of `Session.stream`, as settings of a stream.

use std::net::IpAddr;
use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rushes::proto::rtcp::SdesKind;
use rushes::{
    ClockRate, Codec, Delivery, FrameRate, Framing, MulticastOptions, Pacing, PayloadType,
    Recovery, RtpTimestamp, SequenceNumber, Ssrc, StreamBuilder,
};

use crate::error::ConfigError;
use crate::security::Security;

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
        let value = self.get::<u8>()?;
        PayloadType::new(value).ok_or_else(|| self.wrong(format!("{value} is outside 0 to 127")))
    }

    /// One of a set of words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> PyResult<T> {
        let word = self.get::<String>()?;
        let found = words.iter().find(|(name, _)| *name == word).map(|&(_, value)| value);
        let names = || words.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| self.wrong(format!("{word:?} is not one of {}", names())))
    }
}

/// The codec with this name.
pub(crate) fn codec(name: &str) -> PyResult<Codec> {
    let is_its = |codec: &Codec| codec.name == name;
    Codec::all().find(is_its).ok_or_else(|| {
        let mut known: Vec<&str> = Codec::all().map(|codec| codec.name).collect();
        known.sort_unstable();
        ConfigError::new_err(format!("{name:?} is not a format; there are {}", known.join(", ")))
    })
}

/// A rate as a fraction: anything with a numerator and a denominator, or a floating-point number.
pub(crate) fn fraction(setting: &Setting<'_, '_>) -> PyResult<Option<(u32, u32)>> {
    let value = &setting.value;
    if !value.hasattr("numerator")? {
        return Ok(None);
    }
    let part = |name| Setting { name: setting.name, value: value.getattr(name)? }.get::<u32>();
    Ok(Some((part("numerator")?, part("denominator")?)))
}

fn frame_rate(setting: &Setting<'_, '_>) -> PyResult<FrameRate> {
    let rate = match fraction(setting)? {
        Some((frames, seconds)) => FrameRate::new(frames, seconds),
        None => FrameRate::from_f64(setting.get()?),
    };
    rate.ok_or_else(|| setting.wrong("not a valid number of frames per second"))
}

fn recovery(setting: &Setting<'_, '_>) -> PyResult<Recovery> {
    if setting.value.is_instance_of::<pyo3::types::PyInt>() {
        return setting.payload_type().map(Recovery::Rtx);
    }
    let words = [("off", Recovery::Off), ("on", Recovery::On), ("verbatim", Recovery::Verbatim)];
    setting.word(&words)
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
            setting.wrong(format!("{kind:?} is not an item of a source description"))
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
            "ttl" => options.ttl = part.get()?,
            "loop_back" => options.loop_back = part.get()?,
            _ => return Err(setting.wrong(format!("{name:?} is not a setting of multicast"))),
        }
    }
    Ok(options)
}

/// A host, or a host and a port.
fn only_from(setting: &Setting<'_, '_>) -> PyResult<(IpAddr, Option<u16>)> {
    let (host, port) = match setting.get::<String>() {
        Ok(host) => (host, None),
        Err(_) => setting.get::<(String, u16)>().map(|(host, port)| (host, Some(port)))?,
    };
    let resolved = setting.value.py().detach(|| rushes::net::resolve(&host, 0));
    let address = resolved.map_err(|error| setting.wrong(error))?;
    Ok((address.ip(), port))
}

/// Settings of media.
fn media(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    let delivery = [("access-unit", Delivery::AccessUnit), ("unit", Delivery::Unit)];
    let framing = [("annex-b", Framing::AnnexB), ("length-prefixed", Framing::LengthPrefixed)];
    Ok(Some(match setting.name {
        "payload_type" => builder.payload_type(setting.payload_type()?),
        "ssrc" => builder.ssrc(Ssrc(setting.get()?)),
        "remote_ssrc" => builder.remote_ssrc(Ssrc(setting.get()?)),
        "only_from" => {
            let (host, port) = only_from(setting)?;
            builder.only_from(host, port)
        }
        "clock_rate" => {
            let rate = ClockRate::new(setting.get()?);
            builder.clock_rate(rate.ok_or_else(|| setting.wrong("the rate must not be 0"))?)
        }
        "mtu" => builder.mtu(setting.get()?),
        "frame_rate" => builder.frame_rate(frame_rate(setting)?),
        "pacing" if setting.get::<bool>()? => builder.pacing(Pacing::default()),
        "pacing" => builder.pacing(Pacing::Off),
        "pacing_share" => builder.pacing(Pacing::Share(setting.get()?)),
        "pacing_rate" => builder.pacing(Pacing::Rate(setting.get()?)),
        "delivery" => builder.delivery(setting.word(&delivery)?),
        "framing" => builder.framing(setting.word(&framing)?),
        "frame_len_max" => builder.frame_len_max(setting.get()?),
        "max_don_diff" => builder.max_don_diff(setting.get()?),
        "depack_buf_nalus" => builder.depack_buf_nalus(setting.get()?),
        "depack_buf_bytes" => builder.depack_buf_bytes(setting.get()?),
        "reorder_time" => builder.reorder_time(setting.seconds()?),
        "latency" => builder.latency(setting.seconds()?),
        "memory" => builder.memory(setting.get()?),
        "reorder_window" => {
            let (packets, octets) = setting.get()?;
            builder.reorder_window(packets, octets)
        }
        "probation" => builder.probation(setting.get()?),
        "sources" => {
            let (most, silence) = setting.get::<(usize, f64)>()?;
            let silence = Duration::try_from_secs_f64(silence);
            builder.sources(most, silence.map_err(|error| setting.wrong(error))?)
        }
        "first_packet" => {
            let (sequence, timestamp) = setting.get()?;
            builder.first_packet(SequenceNumber(sequence), RtpTimestamp(timestamp))
        }
        _ => return Ok(None),
    }))
}

/// Settings of sockets.
fn socket(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    Ok(Some(match setting.name {
        "local_port" => builder.local_port(setting.get()?),
        "remote_port" => builder.remote_port(setting.get()?),
        "socket_buffer" => builder.socket_buffer(setting.get()?),
        "spin" => builder.spin(setting.seconds()?),
        "send_timeout" => builder.send_timeout(setting.seconds()?),
        "send_path" => builder.send_path(setting.parse()?),
        "receive_path" => builder.receive_path(setting.parse()?),
        "zero_copy" => builder.zero_copy(setting.get()?),
        "dscp" => builder.dscp(setting.get()?),
        "interface" => builder.interface(&setting.get::<String>()?),
        "keep_alive" => builder.keep_alive(setting.seconds()?),
        _ => return Ok(None),
    }))
}

/// Settings of RTCP and recovery.
fn control(builder: StreamBuilder, setting: &Setting<'_, '_>) -> PyResult<Option<StreamBuilder>> {
    Ok(Some(match setting.name {
        "rtcp" => builder.rtcp(setting.get()?),
        "rtcp_mux" => builder.rtcp_mux(setting.get()?),
        "rtcp_local_port" => builder.rtcp_local_port(setting.get()?),
        "rtcp_remote_port" => builder.rtcp_remote_port(setting.get()?),
        "session_bandwidth" => builder.session_bandwidth(setting.get()?),
        "feedback" => builder.feedback(setting.get()?),
        "reduced_size" => builder.reduced_size(setting.get()?),
        "describe" => describe(builder, setting)?,
        "recovery" => builder.recovery(recovery(setting)?),
        "rtx_ssrc" => builder.rtx_ssrc(Ssrc(setting.get()?)),
        "remote_rtx_ssrc" => builder.remote_rtx_ssrc(Ssrc(setting.get()?)),
        "report_arrivals" => builder.report_arrivals(setting.get()?),
        "history" => builder.history(setting.get()?),
        _ => return Ok(None),
    }))
}

/// A builder with every setting of `options`; `None` stands for a setting's default.
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
                let unknown =
                    || PyTypeError::new_err(format!("{name:?} is not a setting of a stream"));
                applied.ok_or_else(unknown)?
            }
        };
    }
    Ok(builder)
}
