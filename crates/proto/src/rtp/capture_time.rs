//! The time at which a frame was captured, as a header extension carries it (RFC 6051 section 3.3,
//! abs-capture-time).

use crate::time::NtpTime;

/// When a frame was captured, by the clock of the system that captured it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CaptureTime {
    /// The instant on that system's wall clock.
    pub ntp: NtpTime,
    /// The sender's wall clock minus that of the capturing system, in units of 2⁻³² s, if the
    /// sender forwards media of another system and gives the offset (abs-capture-time only).
    /// Otherwise `None`: for the sender's own media, both clocks are the same.
    pub clock_offset: Option<i64>,
}

impl CaptureTime {
    /// Creates a capture time by the sender's own clock.
    pub fn new(ntp: NtpTime) -> Self {
        Self { ntp, clock_offset: None }
    }

    /// Returns the instant on the sender's wall clock, which its reports use as well.
    ///
    /// ```
    /// use rushes_proto::NtpTime;
    /// use rushes_proto::rtp::CaptureTime;
    /// let passed_on = CaptureTime { ntp: NtpTime(5 << 32), clock_offset: Some(-(1 << 32)) };
    /// assert_eq!(passed_on.by_sender(), NtpTime(4 << 32));
    /// ```
    pub fn by_sender(self) -> NtpTime {
        NtpTime(self.ntp.0.wrapping_add_signed(self.clock_offset.unwrap_or(0)))
    }
}

/// Returns the instant whose lower 56 bits are `low` that is closest to `reported` (RFC 6051
/// section 3.3: the upper 8 bits of the seconds are those of the sender's reports).
pub(super) fn complete(low: u64, reported: NtpTime) -> NtpTime {
    // The difference of the lower bits, as a signed number of 56 bits.
    let difference = (low.wrapping_sub(reported.0) << 8).cast_signed() >> 8;
    NtpTime(reported.0.wrapping_add_signed(difference))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_bits_are_those_closest_to_the_report() {
        let report = NtpTime(0x1200_0001_8000_0000);
        for near in [0x1200_0001_8000_0001, 0x11ff_ffff_0000_0000, 0x127f_0000_0000_0000_u64] {
            assert_eq!(complete(near & (u64::MAX >> 8), report), NtpTime(near), "{near:#x}");
        }
        let (wrapped, last) = (NtpTime(3), NtpTime(u64::MAX));
        assert_eq!(complete(last.0 & (u64::MAX >> 8), wrapped), last);
        assert_eq!(complete(3, last), wrapped);
    }
}
