//! Synchronisation sources and payload types.

use std::fmt;

/// A synchronisation source identifier, random and unique in its session (RFC 3550 section 8).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Ssrc(pub u32);

impl fmt::Display for Ssrc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// An RTP payload type, 0..=127 (RFC 3550 section 5.1, RFC 3551 section 6).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct PayloadType(u8);

impl PayloadType {
    /// The default for H.264.
    pub const H264: Self = Self(96);
    /// The default for H.265.
    pub const H265: Self = Self(97);
    /// The default for H.266.
    pub const H266: Self = Self(98);
    /// The default for the generic format.
    pub const GENERIC: Self = Self(99);
    /// The default for tiles of texture video.
    pub const TEXTURE: Self = Self(100);
    /// The default for Opus.
    pub const OPUS: Self = Self(111);

    /// Returns the payload type `value`; `None` above 127, and for 64..=95.
    ///
    /// On a shared port, 64..=95 with the marker bit look like RTCP packet types; RFC 5761 section
    /// 4 therefore forbids them.
    pub const fn new(value: u8) -> Option<Self> {
        if value < 64 || 96 <= value && value < 128 { Some(Self(value)) } else { None }
    }

    /// Returns the payload type `value`, or the reason why it is not one.
    ///
    /// # Errors
    /// [`PayloadTypeError`] if [`new`](Self::new) returns `None`.
    pub const fn checked(value: u8) -> Result<Self, PayloadTypeError> {
        match Self::new(value) {
            Some(payload_type) => Ok(payload_type),
            None => Err(PayloadTypeError(value)),
        }
    }

    /// Returns the payload type of a received packet, whatever its value.
    pub(crate) fn from_wire(value: u8) -> Self {
        Self(value & 0x7f)
    }

    /// Returns the seven bits on the wire.
    #[inline]
    pub fn value(self) -> u8 {
        self.0
    }
}

/// A number that is not a payload type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PayloadTypeError(pub u8);

impl fmt::Display for PayloadTypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value > 127 {
            return write!(f, "payload type {value} is outside 0 to 127; use 96 to 127");
        }
        write!(
            f,
            "payload type {value} is among 64 to 95, which look like RTCP packets on a shared port \
             (RFC 5761 section 4); use 96 to 127"
        )
    }
}

impl core::error::Error for PayloadTypeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_types_that_look_like_rtcp_are_refused() {
        for value in 0..=255 {
            let allowed = value < 64 || (96..128).contains(&value);
            assert_eq!(PayloadType::new(value).is_some(), allowed, "{value}");
            assert_eq!(PayloadType::checked(value).is_ok(), allowed, "{value}");
        }
        assert!(PayloadTypeError(72).to_string().contains("RFC 5761"));
        assert!(PayloadTypeError(128).to_string().contains("outside 0 to 127"));
    }

    #[test]
    fn an_ssrc_prints_as_in_a_packet_analyser() {
        assert_eq!(Ssrc(0x00ab_cdef).to_string(), "00abcdef");
    }
}
