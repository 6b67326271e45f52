//! The application's interface to RTCP.

use std::cell::RefCell;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rushes::proto::control::RemoteStatistics;
use rushes::proto::rtcp::BitRateLimit;
use rushes::{AppData, KeyFrameRequest, RtpTimestamp, Ssrc};

use crate::error::{ConfigError, Failure};
use crate::events;
use crate::frame::Frame;
use crate::integer::{arguments, integer, within};
use crate::stats::RtcpStatistics;
use crate::stream::{Stream, call, callable};
use crate::wait::Call;

arguments! {
    ssrc_of: u32 = "ssrc";
    timestamp_of: u32 = "timestamp";
    bit_rate_of: u64 = "bit_rate";
    overhead_of: u16 = "overhead";
}

fn sources_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
    let sources = value.extract::<Vec<Bound<'_, PyAny>>>()?;
    sources.iter().map(|source| integer("sources", source)).collect()
}

fn subtype_of(value: &Bound<'_, PyAny>) -> PyResult<u8> {
    within("subtype", value, 0, 31)
}

/// A stream's RTCP: reports of its peers, and requests to them; `Stream.rtcp`.
///
/// Reports are sent automatically, on the thread that pulls, pushes or runs the stream's hook.
#[pyclass(frozen, module = "rushes")]
pub(crate) struct Rtcp {
    pub(crate) stream: Py<Stream>,
}

impl Rtcp {
    fn act<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&rushes::Rtcp) -> Result<T, rushes::Error> + Send,
    ) -> PyResult<T> {
        let inner = &self.stream.get().inner;
        Ok(py.detach(|| {
            let rtcp = inner.handle()?.rtcp;
            let _call = Call::begin();
            Ok::<_, Failure>(act(&rtcp)?)
        })?)
    }
}

thread_local! {
    /// The streams whose hooks are running on this thread, by address.
    static RUNNING_HOOKS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks that a hook of a stream is running.
struct HookGuard;

impl HookGuard {
    fn begin(stream: usize) -> Self {
        RUNNING_HOOKS.with_borrow_mut(|streams| streams.push(stream));
        Self
    }

    /// Returns whether setting a hook of this stream might wait for a thread that waits for this
    /// one.
    fn may_deadlock(stream: usize) -> bool {
        RUNNING_HOOKS.with_borrow(|streams| {
            let runs_hooks = Call::is_running() || !streams.is_empty();
            runs_hooks && !streams.contains(&stream)
        })
    }
}

impl Drop for HookGuard {
    fn drop(&mut self) {
        RUNNING_HOOKS.with_borrow_mut(Vec::pop);
    }
}

#[pymethods]
impl Rtcp {
    /// Sets a function that receives every report and request, on the thread that reads the
    /// stream's port. Without a function, events are queued for `poll_event`. If a previous hook is
    /// running, this waits until it returns. A hook that runs within a call may replace only the
    /// hook of its own stream.
    fn on_event(&self, py: Python<'_>, hook: &Bound<'_, PyAny>) -> PyResult<()> {
        let hook = callable(hook)?;
        let stream = Arc::as_ptr(&self.stream.get().inner) as usize;
        if HookGuard::may_deadlock(stream) {
            return Err(Failure::Reentered.into());
        }
        let take = move |event| {
            let _guard = HookGuard::begin(stream);
            call(&hook, |py| events::of_rtcp(py, &event));
        };
        self.act(py, |rtcp| {
            rtcp.on_event(take);
            Ok(())
        })
    }

    /// Returns the next report or request, or `None`. The last 256 are kept, and the last 32
    /// before the first call.
    fn poll_event(&self, py: Python<'_>) -> PyResult<Option<events::Event>> {
        let event = self.act(py, |rtcp| Ok(rtcp.poll_event()))?;
        event.map(|event| events::of_rtcp(py, &event)).transpose()
    }

    /// Returns the state of each peer.
    fn peers(&self, py: Python<'_>) -> PyResult<Vec<Peer>> {
        let peers = self.act(py, |rtcp| Ok(rtcp.peers()))?;
        Ok(peers.into_iter().map(Peer).collect())
    }

    /// Returns the seconds since media of `timestamp` was captured: the difference between our
    /// clock and the one in the source's reports. `None` before its first report, and if the clocks
    /// are an hour or more apart, because some sources do not report wall-clock time.
    fn capture_latency(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = ssrc_of)] ssrc: u32,
        #[pyo3(from_py_with = timestamp_of)] timestamp: u32,
    ) -> PyResult<Option<f64>> {
        let timestamp = RtpTimestamp(timestamp);
        let nanos = self.act(py, |rtcp| Ok(rtcp.capture_latency(Ssrc(ssrc), timestamp)))?;
        Ok(nanos.map(|nanos| nanos as f64 / 1e9))
    }

    /// Returns the seconds since a frame of the stream was captured, by the time that it carries
    /// (`Frame.capture_time`) or else as `capture_latency`.
    fn frame_latency(&self, py: Python<'_>, frame: &Bound<'_, Frame>) -> PyResult<Option<f64>> {
        let Some(frame) = crate::frame::frame(frame) else { return Ok(None) };
        let nanos = self.act(py, |rtcp| Ok(rtcp.frame_latency(frame)))?;
        Ok(nanos.map(|nanos| nanos as f64 / 1e9))
    }

    /// Returns the counters of sent and received reports.
    fn statistics(&self, py: Python<'_>) -> PyResult<RtcpStatistics> {
        self.act(py, |rtcp| Ok(RtcpStatistics::of(&rtcp.statistics())))
    }

    /// The bit rate that the encoder should produce, in bits per second; `None` without rate
    /// control.
    #[getter]
    fn target_rate(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.act(py, |rtcp| Ok(rtcp.target_rate()))
    }

    /// Requests a key frame from every media source: "pli" for lost pictures, "fir" for a new
    /// viewer.
    #[pyo3(signature = (request = "pli"))]
    fn request_key_frame(&self, py: Python<'_>, request: &str) -> PyResult<()> {
        let request = match request {
            "pli" => KeyFrameRequest::PictureLoss,
            "fir" => KeyFrameRequest::FullIntra,
            other => return Err(ConfigError::new_err(format!("{other:?} is not one of pli, fir"))),
        };
        self.act(py, |rtcp| rtcp.request_key_frame(request))
    }

    /// Requests that a source limit its bit rate in bits per second (TMMBR); `overhead` header
    /// octets, 0 to 511, count for each packet.
    #[pyo3(signature = (ssrc, bit_rate, *, overhead = 0))]
    fn request_bit_rate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = ssrc_of)] ssrc: u32,
        #[pyo3(from_py_with = bit_rate_of)] bit_rate: u64,
        #[pyo3(from_py_with = overhead_of)] overhead: u16,
    ) -> PyResult<()> {
        let limit = BitRateLimit { ssrc: Ssrc(ssrc), bit_rate, overhead };
        self.act(py, |rtcp| rtcp.request_bit_rate(limit))
    }

    /// Sends sources an estimate of the bit rate that the path can carry for all of them together,
    /// in bits per second (REMB).
    fn send_estimate(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = bit_rate_of)] bit_rate: u64,
        #[pyo3(from_py_with = sources_of)] sources: Vec<u32>,
    ) -> PyResult<()> {
        let sources: Vec<Ssrc> = sources.into_iter().map(Ssrc).collect();
        self.act(py, |rtcp| rtcp.send_estimate(bit_rate, &sources))
    }

    /// Sends an application-defined packet with the next report: `name` is four ASCII characters,
    /// `subtype` 0 to 31.
    #[pyo3(signature = (name, data, *, subtype = 0))]
    fn send_app(
        &self,
        py: Python<'_>,
        name: &str,
        data: &[u8],
        #[pyo3(from_py_with = subtype_of)] subtype: u8,
    ) -> PyResult<()> {
        let four = name.as_bytes().try_into().ok().filter(|_| name.is_ascii());
        let wrong = || ConfigError::new_err(format!("name: {name:?} is not four ASCII characters"));
        let app = AppData { subtype, name: four.ok_or_else(wrong)?, data: data.to_vec() };
        self.act(py, |rtcp| rtcp.send_app(app))
    }

    /// Leaves the session: sends BYE. Closing the stream also sends BYE, without a reason.
    #[pyo3(signature = (reason = ""))]
    fn send_bye(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        self.act(py, |rtcp| rtcp.send_bye(reason))
    }
}

/// The state of another participant.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Peer(RemoteStatistics);

#[pymethods]
impl Peer {
    /// The SSRC of the participant.
    #[getter]
    fn ssrc(&self) -> u32 {
        self.0.ssrc.0
    }

    /// Whether the participant sent BYE.
    #[getter]
    fn left(&self) -> bool {
        self.0.left
    }

    /// The canonical name; empty until the participant announces it.
    #[getter]
    fn cname(&self) -> &str {
        &self.0.cname
    }

    /// The last round-trip time to the participant, in seconds.
    #[getter]
    fn round_trip(&self) -> Option<f64> {
        self.0.round_trip.map(|time| time.as_secs_f64())
    }

    /// The last sender report: `wall_clock`, `timestamp`, `packets`, `octets`.
    #[getter]
    fn sender<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.0.sender.as_ref().map(|info| events::sender(py, info)).transpose()
    }

    /// The last report about our media: `ssrc`, `fraction_lost` from 0 to 1, `cumulative_lost`,
    /// `highest`, `jitter`.
    #[getter]
    fn reported<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.0.reported.as_ref().map(|block| events::report(py, block)).transpose()
    }

    /// Returns when media of `timestamp` was captured, by the participant's wall clock in seconds
    /// since 1970; `None` before its first report. Streams with the same canonical name share that
    /// clock.
    fn wall_clock(&self, #[pyo3(from_py_with = timestamp_of)] timestamp: u32) -> Option<f64> {
        Some(self.0.clock?.to_ntp(RtpTimestamp(timestamp)).unix().as_secs_f64())
    }

    fn __repr__(&self) -> String {
        format!("<rushes.Peer {:08x} {:?}>", self.0.ssrc.0, self.0.cname)
    }
}
