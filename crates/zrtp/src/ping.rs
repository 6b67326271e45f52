//! Ping and `PingACK` (RFC 6189 sections 5.15 and 5.16).

use super::layout::{Fields, MessageError, write_message};

/// Asks which endpoint is behind a media stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// The requested version of `PingACK`.
    pub version: [u8; 4],
    /// `EndpointHash` of the sender.
    pub endpoint_hash: [u8; 8],
}

impl Ping {
    pub(super) const KIND: [u8; 8] = *b"Ping    ";

    pub(super) fn parse(mut fields: Fields<'_>) -> Result<Self, MessageError> {
        let ping = Self { version: fields.array()?, endpoint_hash: fields.array()? };
        fields.end()?;
        Ok(ping)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_message(out, Self::KIND, |out| {
            out.extend_from_slice(&self.version);
            out.extend_from_slice(&self.endpoint_hash);
        });
    }
}

/// Answers a [`Ping`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingAck {
    /// Protocol version.
    pub version: [u8; 4],
    /// `EndpointHash` of the sender of this `PingACK`.
    pub endpoint_hash: [u8; 8],
    /// `EndpointHash` in the Ping.
    pub received_hash: [u8; 8],
    /// SSRC of the packet that contained the Ping.
    pub received_ssrc: u32,
}

impl PingAck {
    pub(super) const KIND: [u8; 8] = *b"PingACK ";

    pub(super) fn parse(mut fields: Fields<'_>) -> Result<Self, MessageError> {
        let answer = Self {
            version: fields.array()?,
            endpoint_hash: fields.array()?,
            received_hash: fields.array()?,
            received_ssrc: fields.word()?,
        };
        fields.end()?;
        Ok(answer)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_message(out, Self::KIND, |out| {
            out.extend_from_slice(&self.version);
            out.extend_from_slice(&self.endpoint_hash);
            out.extend_from_slice(&self.received_hash);
            let ssrc = self.received_ssrc;
            out.extend_from_slice(&ssrc.to_be_bytes());
        });
    }
}
