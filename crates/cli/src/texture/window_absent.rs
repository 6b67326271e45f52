//! `--window` in a program built without windows.

use rushes::texture::ClientOptions;

use super::args::ViewArgs;
use crate::interrupt::Interrupt;
use crate::{Outcome, Usage};

pub(super) fn run(_: &ViewArgs, _: &Interrupt, _: ClientOptions) -> anyhow::Result<Outcome> {
    let reason = "this program was built without windows (cargo's feature `window`); --output FILE \
                  and --null need none";
    Err(Usage(reason.to_owned()).into())
}
