//! Format parameters of Opus (RFC 7587 section 6.1).

use super::parameters::{OtherParameters, Writer, flag, up_to};
use super::warning::Problem;

/// The parameters of an Opus stream in `a=fmtp`. Flags are false if absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "they are the five flags of RFC 7587")]
pub struct OpusParameters {
    /// `maxplaybackrate`, in Hz: the maximum rate that the receiver can render; if absent, 48 000.
    pub max_playback_rate: Option<u32>,
    /// `sprop-maxcapturerate`, in Hz: the maximum sampling rate that the sender is likely to
    /// capture; if absent, 48 000.
    pub max_capture_rate: Option<u32>,
    /// `maxaveragebitrate`, in bits per second.
    pub max_average_bit_rate: Option<u32>,
    /// `stereo`: the receiver prefers stereo.
    pub stereo: bool,
    /// `sprop-stereo`: the sender is likely to send stereo.
    pub sprop_stereo: bool,
    /// `cbr`: the receiver prefers a constant bit rate.
    pub cbr: bool,
    /// `useinbandfec`: the receiver can use forward error correction inside the packets.
    pub use_in_band_fec: bool,
    /// `usedtx`: the receiver prefers that the sender sends nothing during silence.
    pub use_dtx: bool,
    /// Other parameters, such as `minptime`.
    pub other: OtherParameters,
}

impl OpusParameters {
    /// Sets the parameter `name`, in lower case, to `value`.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        let rate = |value| up_to(value, u32::MAX).map(Some);
        match name {
            "maxplaybackrate" => self.max_playback_rate = rate(value)?,
            "sprop-maxcapturerate" => self.max_capture_rate = rate(value)?,
            "maxaveragebitrate" => self.max_average_bit_rate = rate(value)?,
            "stereo" => self.stereo = flag(value)?,
            "sprop-stereo" => self.sprop_stereo = flag(value)?,
            "cbr" => self.cbr = flag(value)?,
            "useinbandfec" => self.use_in_band_fec = flag(value)?,
            "usedtx" => self.use_dtx = flag(value)?,
            _ => self.other.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    pub(super) fn write(&self) -> String {
        let mut to = Writer::default();
        to.put_some("maxplaybackrate", self.max_playback_rate);
        to.put_some("sprop-maxcapturerate", self.max_capture_rate);
        to.put_some("maxaveragebitrate", self.max_average_bit_rate);
        to.put_flag("stereo", self.stereo);
        to.put_flag("sprop-stereo", self.sprop_stereo);
        to.put_flag("cbr", self.cbr);
        to.put_flag("useinbandfec", self.use_in_band_fec);
        to.put_flag("usedtx", self.use_dtx);
        to.finish(&self.other)
    }
}
