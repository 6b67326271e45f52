//! Placeholder in a build without SRTP, which has no sealed connections.

use super::channel::ChannelError;

#[derive(Debug)]
pub(super) enum Sealed {}

impl Sealed {
    pub(super) fn receive(
        &mut self,
        _octets: &[u8],
        _plain: &mut Vec<u8>,
        _out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        match *self {}
    }

    pub(super) fn is_open(&self) -> bool {
        match *self {}
    }

    pub(super) fn seal(&mut self, _plain: &[u8], _out: &mut Vec<u8>) -> usize {
        match *self {}
    }

    pub(super) fn export(&self, _label: &[u8], _out: &mut [u8]) -> bool {
        match *self {}
    }
}
