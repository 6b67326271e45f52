//! For processors without lanes, where [`Processor`] has no values.

use crate::hmac::Prepared;
use crate::{InstructionSet, Message};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Processor {}

impl Processor {
    pub(crate) fn fastest() -> Option<Self> {
        None
    }

    pub(crate) fn with(_: InstructionSet) -> Option<Self> {
        None
    }

    pub(crate) fn worthwhile(self) -> usize {
        match self {}
    }

    pub(crate) fn tags(self, _: &Prepared, _: &[Message<'_>], _: &mut [[u8; 20]]) {
        match self {}
    }
}
