//! The time at which a packet was sent (abs-send-time).

use crate::time::NtpTime;

/// When a packet was sent, in units of 2⁻¹⁸ s: 24 bits, so that it wraps around after 64 s
/// (<https://webrtc.org/experiments/rtp-hdrext/abs-send-time>). Receivers compare such times with each
/// other only.
///
/// ```
/// use rushes_proto::NtpTime;
/// use rushes_proto::rtp::AbsSendTime;
///
/// let time = AbsSendTime::from(NtpTime((65 << 32) + (1 << 31)));
/// assert_eq!(time, AbsSendTime((1 << 18) + (1 << 17)));
/// assert_eq!(AbsSendTime::from_data(&time.to_bytes()), Some(time));
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AbsSendTime(pub u32);

impl AbsSendTime {
    /// Returns the time in the data of an element; `None` if that is not three octets.
    pub fn from_data(data: &[u8]) -> Option<Self> {
        let [a, b, c] = *data else { return None };
        Some(Self(u32::from_be_bytes([0, a, b, c])))
    }

    /// Returns the data of the element.
    pub fn to_bytes(self) -> [u8; 3] {
        let [_, a, b, c] = self.0.to_be_bytes();
        [a, b, c]
    }
}

impl From<NtpTime> for AbsSendTime {
    fn from(time: NtpTime) -> Self {
        Self((time.0 >> 14) as u32 & 0x00ff_ffff)
    }
}
