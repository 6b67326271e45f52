//! `rushes texture serve --gpu`: frames encoded by the graphics processor while they are sent.

use rushes::texture::Format;
use rushes::texture::source::Source;
use rushes_gpu::{EncodedSource, Gpu, GpuOptions};

use crate::Usage;

/// Encodes `source` to another format.
pub(super) fn by_gpu(
    source: Box<dyn Source>,
    format: Option<Format>,
) -> anyhow::Result<Box<dyn Source>> {
    let Some(format) = format else {
        return Err(Usage("--gpu needs --format".to_owned()).into());
    };
    let gpu = Gpu::open(GpuOptions::default())?;
    Ok(Box::new(EncodedSource::new(&gpu, source, format)?))
}
