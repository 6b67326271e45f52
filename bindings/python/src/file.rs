//! Media files as sequences of frames.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyEOFError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyBytes, PyTuple};
use rushes::file::{
    MediaReader as Reader, MediaWriter as Writer, NextFrame, ReadOptions, codec_of,
};
use rushes::payload::raw::RawVideo;
use rushes::{Codec, Framing, RtpTimestamp};

use crate::buffer::{Memory, Octets};
use crate::error::{ClosedError, ConfigError, FileError};
use crate::input::Input;
use crate::integer::{arguments, optional_arguments};
use crate::log::take_level;
use crate::options::{Setting, codec, raw_video, raw_video_tuple};
use crate::wait::WAIT_SLICE;

arguments! {
    frame_len_of: usize = "frame_len";
}

optional_arguments! {
    timestamp_of: u32 = "timestamp";
}

/// Locks a mutex that other threads hold during I/O. Releases the interpreter lock while it waits.
fn attached<'a, T>(mutex: &'a Mutex<T>, py: Python<'_>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

fn failed(error: rushes::file::FileError) -> PyErr {
    FileError::new_err(error.to_string())
}

/// Returns the codec of a file, by the given format or, without one, by its name.
fn codec_for(path: &std::path::Path, format: Option<&str>) -> PyResult<Codec> {
    if let Some(format) = format {
        return codec(format);
    }
    let unknown = || {
        let path = path.display();
        ConfigError::new_err(format!("{path}: unknown file name extension; specify the format"))
    };
    codec_of(path).ok_or_else(unknown)
}

/// Returns uncompressed video from its tuple.
fn video(value: Bound<'_, PyAny>) -> PyResult<RawVideo> {
    raw_video(&Setting { name: "raw_video", value })
}

/// The frames of a media file, one by one, as `bytes`: access units of H.264, H.265 and H.266
/// (Annex B, or "length-prefixed"), Opus packets of an Ogg file, or pieces of `frame_len` octets of
/// any other file.
///
/// `format` is by default derived from the file's name. `raw_video` is the uncompressed video of a file
/// without a header. A pipe or a device, such as `/dev/stdin`, is
/// a live source: see `read`.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct MediaReader(Mutex<Reader>);

#[pymethods]
impl MediaReader {
    #[new]
    #[pyo3(
        signature = (path, format = None, *, framing = "annex-b", frame_len = 65536, raw_video = None)
    )]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        framing: &str,
        #[pyo3(from_py_with = frame_len_of)] frame_len: usize,
        raw_video: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = ReadOptions::default();
        options.framing = match framing {
            "annex-b" => Framing::AnnexB,
            "length-prefixed" => Framing::LengthPrefixed,
            other => {
                let text = format!("framing: {other:?} is not one of annex-b, length-prefixed");
                return Err(ConfigError::new_err(text));
            }
        };
        options.frame_len = frame_len;
        options.raw_video = raw_video.map(video).transpose()?;
        take_level(py);
        let codec = codec_for(&path, format)?;
        // Detached, because opening blocks on a pipe that has no writer yet.
        let reader = py.detach(|| Reader::open(&path, codec, options));
        Ok(Self(Mutex::new(reader.map_err(failed)?)))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Whether this is a live source: a pipe or a device, whose frames arrive as they are made.
    #[getter]
    fn is_live(&self, py: Python<'_>) -> bool {
        attached(&self.0, py).is_live()
    }

    /// The frame rate that the latest frame declares (H.264, H.265), as a `Fraction`; directly
    /// after opening a file, that of the first frame. `None` if it declares none.
    #[getter]
    fn frame_rate<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(rate) = attached(&self.0, py).frame_rate() else { return Ok(None) };
        let fraction = py.import("fractions")?.getattr("Fraction")?;
        fraction.call1((rate.numerator(), rate.denominator())).map(Some)
    }

    /// The uncompressed video in the file, as (width, height, sampling, depth) and, if it is interlaced,
    /// the scan; of a live source, after its first frame. `None` if it is not known.
    #[getter]
    fn raw_video<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let video = attached(&self.0, py).raw_video();
        video.map(|video| raw_video_tuple(py, video)).transpose()
    }

    /// Returns the next frame, or `None` if a live source has none within `timeout` seconds.
    ///
    /// Raises `EOFError` at the end of the file.
    fn read<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let wait = Duration::try_from_secs_f64(timeout).map_err(|_| {
            ConfigError::new_err(format!("timeout: {timeout} is not a number of seconds from 0 on"))
        })?;
        match self.next(py, Some(wait))? {
            Next::Frame(frame) => Ok(Some(frame)),
            Next::Pending => Ok(None),
            Next::End => Err(PyEOFError::new_err("the file has no more frames")),
        }
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        match self.next(py, None)? {
            Next::Frame(frame) => Ok(Some(frame)),
            Next::Pending | Next::End => Ok(None),
        }
    }
}

/// The result of waiting for the next frame.
enum Next<'py> {
    Frame(Bound<'py, PyBytes>),
    Pending,
    End,
}

impl MediaReader {
    /// Returns the next frame if there is one within `timeout`. Handles signals meanwhile.
    fn next<'py>(&self, py: Python<'py>, timeout: Option<Duration>) -> PyResult<Next<'py>> {
        let mut guard = attached(&self.0, py);
        let reader: &mut Reader = &mut guard;
        let start = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(start.elapsed()));
            let slice = left.unwrap_or(WAIT_SLICE).min(WAIT_SLICE);
            match py.detach(|| reader.next_frame_until(Instant::now() + slice)).map_err(failed)? {
                NextFrame::Frame(frame) => return Ok(Next::Frame(PyBytes::new(py, &frame.data))),
                NextFrame::End => return Ok(Next::End),
                NextFrame::Pending => py.check_signals()?,
            }
            if left.is_some_and(|left| left <= slice) {
                return Ok(Next::Pending);
            }
        }
    }
}

/// Writes frames to a media file. The file appears under its name when it is finished, and is
/// deleted otherwise. `raw_video` is the uncompressed video that is written. Leaving a `with` block
/// finishes the file, unless an exception was raised.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct MediaWriter(Mutex<Option<Writer>>);

#[pymethods]
impl MediaWriter {
    #[new]
    #[pyo3(signature = (path, format = None, *, raw_video = None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        raw_video: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let codec = codec_for(&path, format)?;
        let video = raw_video.map(video).transpose()?;
        let writer = py.detach(|| -> Result<_, rushes::file::FileError> {
            let mut writer = Writer::create(&path, codec)?;
            if let Some(video) = video {
                writer.set_raw_video(video, None)?;
            }
            Ok(writer)
        });
        Ok(Self(Mutex::new(Some(writer.map_err(failed)?))))
    }

    /// Writes one frame; `timestamp` is its sampling instant in ticks of its clock, by default that
    /// of a received frame.
    #[pyo3(signature = (frame, timestamp = None))]
    fn write(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = timestamp_of)] timestamp: Option<u32>,
    ) -> PyResult<()> {
        let own = frame.cast::<Octets>().ok().and_then(|octets| match octets.get().memory() {
            Memory::Media(frame) => Some(frame.timestamp()),
            Memory::Texture(_) => None,
        });
        let timestamp = timestamp.map(RtpTimestamp).or(own).unwrap_or(RtpTimestamp(0));
        let octets = Input::of(frame, Vec::new())?;
        let mut guard = attached(&self.0, py);
        let writer = guard.as_mut().ok_or_else(|| ClosedError::new_err("the writer is closed"))?;
        py.detach(|| writer.write(octets.octets(), timestamp)).map_err(failed)
    }

    /// Finishes the file and gives it its name.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let writer = attached(&self.0, py).take();
        py.detach(|| writer.map_or(Ok(()), Writer::finish)).map_err(failed)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if exception.get_item(0).is_ok_and(|kind| !kind.is_none()) {
            let writer = attached(&self.0, py).take();
            py.detach(|| drop(writer));
            return Ok(());
        }
        self.finish(py)
    }
}
