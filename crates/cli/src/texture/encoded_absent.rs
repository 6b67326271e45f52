//! `--gpu` in a program built without graphics.

use rushes::texture::Format;
use rushes::texture::source::Source;

use crate::Usage;

pub(super) fn by_gpu(_: Box<dyn Source>, _: Option<Format>) -> anyhow::Result<Box<dyn Source>> {
    let reason = "this program was built without graphics (cargo's feature `window`)";
    Err(Usage(reason.to_owned()).into())
}
