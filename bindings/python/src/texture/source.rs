//! Pictures supplied by Python.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyIterator;
use rushes::texture::source::{Frame, RawHint, Source, SourceError, open};
use rushes::texture::{Colour, ColourHint, Layout, Rate};

use super::gpu::RenderedFrames;
use super::options::{format, rate};
use crate::error::{ConfigError, report_unraisable};
use crate::input::Input;
use crate::integer::arguments;
use crate::options::Setting;

arguments! {
    width_of: u32 = "width";
    height_of: u32 = "height";
}

/// Pictures from Python, for a texture server: an iterable of octets, such as arrays.
///
/// Iteration begins anew when the first client connects after a time without clients: a list, or an
/// object with `__iter__`, then plays from its beginning, and a generator continues. Each picture
/// is copied once. An array of other rows and columns (the
/// first of three dimensions) changes the size of the video from there on.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Pictures {
    from: Py<PyAny>,
    layout: Layout,
    rate: Rate,
}

#[pymethods]
impl Pictures {
    #[new]
    #[pyo3(signature = (pictures, width, height, *, pixels = "rgb24", rate = None))]
    fn new(
        pictures: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = width_of)] width: u32,
        #[pyo3(from_py_with = height_of)] height: u32,
        pixels: &str,
        rate: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // An object that is not iterable is rejected now rather than at the first frame.
        if !pictures.hasattr("__iter__")? {
            pictures.try_iter()?;
        }
        let layout = Layout::new(format(pixels)?, width, height);
        let layout = layout.map_err(|error| ConfigError::new_err(error.to_string()))?;
        let rate = rate.map(|value| self::rate(&Setting { name: "rate", value })).transpose()?;
        let rate = rate.unwrap_or(Rate::DEFAULT);
        Ok(Self { from: pictures.clone().unbind(), layout, rate })
    }
}

/// Returns the source of a server: pictures from Python, frames in graphics memory, a path or a pattern. `colour` is that of the
/// pictures, or overrides all but the location of chroma of a file.
pub(super) fn of(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    colour: Option<Colour>,
) -> PyResult<Box<dyn Source>> {
    if let Ok(pictures) = source.cast::<Pictures>() {
        let pictures = pictures.get();
        let layout = pictures.layout.with_colour(colour.unwrap_or_default());
        return Ok(Box::new(PictureSource {
            pictures: pictures.from.clone_ref(py),
            iterator: None,
            layout,
            first: layout,
            rate: pictures.rate,
        }));
    }
    if let Ok(frames) = source.cast::<RenderedFrames>() {
        if colour.is_some() {
            return Err(ConfigError::new_err("colour: only for files and pictures"));
        }
        return frames.get().take_source(py);
    }
    let path: PathBuf = source.extract()?;
    let colour = colour.map_or_else(ColourHint::default, ColourHint::from);
    let hint = RawHint { colour, ..RawHint::default() };
    let opened = py.detach(|| open(&path, &hint));
    opened.map_err(|error| ConfigError::new_err(error.to_string()))
}

struct PictureSource {
    pictures: Py<PyAny>,
    iterator: Option<Py<PyIterator>>,
    layout: Layout,
    /// The layout of the first picture.
    first: Layout,
    rate: Rate,
}

impl PictureSource {
    /// Returns the layout of an array of rows, columns and channels. One of a single row may be a picture in a line.
    fn shaped(&self, shape: &[u32]) -> Option<Layout> {
        let &[rows, columns, 3 | 4] = shape else { return None };
        if rows < 2 {
            return None;
        }
        let layout = Layout::new(self.layout.format(), columns, rows).ok()?;
        Some(layout.with_colour(self.layout.colour()))
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        let iterator = if let Some(iterator) = &self.iterator {
            iterator.bind(py).clone()
        } else {
            let iterator = self.pictures.bind(py).try_iter()?;
            self.iterator = Some(iterator.clone().unbind());
            iterator
        };
        let Some(picture) = iterator.into_iter().next().transpose()? else { return Ok(None) };
        let shape = picture.getattr("shape").and_then(|shape| shape.extract::<Vec<u32>>());
        let picture = Input::of(&picture, Vec::new())?;
        let (need, have) = (self.layout.bytes(), picture.octets().len());
        if let Some(layout) = shape.ok().and_then(|shape| self.shaped(&shape))
            && layout.bytes() == have
        {
            self.layout = layout;
        } else if need != have {
            let text = format!("a picture of {have} octets, where {need} are needed");
            return Err(ConfigError::new_err(text));
        }
        Ok(Some(picture.octets().to_vec()))
    }
}

impl Source for PictureSource {
    fn layout(&self) -> &Layout {
        &self.layout
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, SourceError> {
        let next = Python::try_attach(|py| {
            self.next(py).map_err(|error| {
                let text = error.to_string();
                report_unraisable(py, error, self.pictures.bind(py));
                text
            })
        });
        match next {
            Some(Ok(picture)) => Ok(picture.map(Frame::new)),
            Some(Err(text)) => {
                let error = std::io::Error::other(text).into();
                Err(SourceError::File { path: Path::new("pictures").into(), error })
            }
            None => Ok(None),
        }
    }

    fn rewind(&mut self) -> Result<(), SourceError> {
        (self.iterator, self.layout) = (None, self.first);
        Ok(())
    }
}
