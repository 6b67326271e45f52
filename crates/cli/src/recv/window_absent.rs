//! `--window` in a program built without windows.

use crate::args::RecvArgs;
use crate::interrupt::Interrupt;
use crate::{Outcome, Usage};

pub(super) fn run(_: &RecvArgs, _: &Interrupt) -> anyhow::Result<Outcome> {
    let reason = "this program was built without windows (cargo's feature `window`); \
                  --output-file FILE needs none";
    Err(Usage(reason.to_owned()).into())
}
