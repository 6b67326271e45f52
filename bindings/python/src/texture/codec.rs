//! Local conversion of pictures to texture frames and back.

use std::sync::Arc;
use std::time::Instant;

use pyo3::prelude::*;
use rushes::texture::{Decoder, Encoder, Format, Quality};

use super::frame::{Received, TextureFrame};
use super::options::format;
use super::pool::Pool;
use crate::buffer::Octets;
use crate::error::ConfigError;
use crate::input::Input;
use crate::integer::arguments;

arguments! {
    width_of: u32 = "width";
    height_of: u32 = "height";
}

/// Returns the names of all texture formats.
#[pyfunction]
pub(crate) fn texture_formats() -> Vec<&'static str> {
    Format::ALL.iter().map(|format| format.name()).collect()
}

/// Encodes a picture of `width` by `height` pixels to a texture format, without the interpreter
/// lock. `quality` is "fast" or "high", for "bc1", "bc3" and "ycocg-bc3".
#[pyfunction]
#[pyo3(signature = (picture, width, height, to, *, pixels = "rgb24", quality = "fast"))]
pub(crate) fn encode_texture(
    py: Python<'_>,
    picture: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = width_of)] width: u32,
    #[pyo3(from_py_with = height_of)] height: u32,
    to: &str,
    pixels: &str,
    quality: &str,
) -> PyResult<Py<TextureFrame>> {
    let quality = quality.parse::<Quality>();
    let quality = quality.map_err(|error| ConfigError::new_err(format!("quality: {error}")))?;
    let encoder = Encoder::new(format(pixels)?, format(to)?, width, height);
    let encoder = encoder.map_err(|error| ConfigError::new_err(error.to_string()))?;
    let encoder = encoder.with_quality(quality);
    let picture = Input::of(picture, Vec::new())?;
    let layout = *encoder.output();
    let received = py.detach(|| {
        let mut memory = Arc::new(Pool::default()).take(layout.bytes());
        encoder.encode(picture.octets(), memory.octets_mut()).map(|()| memory)
    });
    let memory = received.map_err(|error| ConfigError::new_err(error.to_string()))?;
    let now = Instant::now();
    let frame = Received { memory, layout, number: 0, missing: 0, first_at: now, done_at: now };
    TextureFrame::wrap(py, frame)
}

/// Decodes the picture in a frame.
pub(super) fn decode(frame: &Bound<'_, TextureFrame>, pixels: &str) -> PyResult<Py<TextureFrame>> {
    let (py, this) = (frame.py(), frame.get());
    let layout = this.layout();
    let decoder = Decoder::of(*layout, format(pixels)?);
    let decoder = decoder.map_err(|error| ConfigError::new_err(error.to_string()))?;
    let layout = *decoder.output();
    let octets: Py<Octets> = frame.as_super().clone().unbind();
    let decoded = py.detach(|| {
        let mut memory = Arc::new(Pool::default()).take(layout.bytes());
        decoder.decode(octets.get().octets(), memory.octets_mut()).map(|()| memory)
    });
    let memory = decoded.map_err(|error| ConfigError::new_err(error.to_string()))?;
    TextureFrame::wrap(py, this.with_octets(memory, layout))
}
