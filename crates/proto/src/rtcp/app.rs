//! APP: application-defined packets (RFC 3550 section 6.7).

use super::compound::Part;
use super::error::{RtcpError, need};
use super::report::source;
use crate::ssrc::Ssrc;

/// An application-defined packet.
#[derive(Clone, Copy, Debug)]
pub struct App<'p> {
    ssrc: Ssrc,
    subtype: u8,
    name: [u8; 4],
    data: &'p [u8],
}

impl<'p> App<'p> {
    pub(super) fn parse(part: Part<'p>) -> Result<Self, RtcpError> {
        let (ssrc, rest) = source(part.body)?;
        need("the name of an APP", 4, rest.len())?;
        let (name, data) = rest.split_at(4);
        let name = [name[0], name[1], name[2], name[3]];
        Ok(Self { ssrc, subtype: part.count, name, data })
    }

    /// Returns the sender.
    pub fn ssrc(&self) -> Ssrc {
        self.ssrc
    }

    /// Returns the subtype, which the application defines, 0..=31.
    pub fn subtype(&self) -> u8 {
        self.subtype
    }

    /// Returns the name of the application: four ASCII characters.
    pub fn name(&self) -> [u8; 4] {
        self.name
    }

    /// Returns the application's data, a multiple of four octets.
    pub fn data(&self) -> &'p [u8] {
        self.data
    }
}
