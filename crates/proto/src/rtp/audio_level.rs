//! The level of the audio in a packet (RFC 6464).

/// The level of the audio in a packet, as its sender measured it (RFC 6464 section 3): with it, a
/// mixer selects speakers without decoding.
///
/// ```
/// use rushes_proto::rtp::AudioLevel;
///
/// let level = AudioLevel { below_overload: 42, has_voice: true };
/// assert_eq!(level.to_bytes(), [0x80 | 42]);
/// assert_eq!(AudioLevel::from_data(&level.to_bytes()), Some(level));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AudioLevel {
    /// The level in -dBov, 0..=127: decibels below the overload point of the system; 127 is silence.
    /// Higher values are written as 127.
    pub below_overload: u8,
    /// Whether the sender detected voice; `false` also if it does not detect any
    /// (`vad=off`, RFC 6464 section 4).
    pub has_voice: bool,
}

impl AudioLevel {
    /// Returns the level in the data of an element; `None` if that is not one octet.
    pub fn from_data(data: &[u8]) -> Option<Self> {
        let [octet] = *data else { return None };
        Some(Self { below_overload: octet & 0x7f, has_voice: octet & 0x80 != 0 })
    }

    /// Returns the data of the element.
    pub fn to_bytes(self) -> [u8; 1] {
        [self.below_overload.min(127) | u8::from(self.has_voice) << 7]
    }
}
