//! Format parameters of Opus (RFC 7587 section 6.1).

use super::error::SdpError;
use super::line::Line;
use super::parameters::OtherParameters;
use super::parameters::Writer;
use super::parameters::flag;
use super::parameters::parameters;
use super::parameters::up_to;

/// What `a=fmtp` says of an Opus stream. Flags are false if absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "they are the five flags of RFC 7587")]
pub struct OpusParameters {
    /// `maxplaybackrate`, in Hz: what the receiver can render; 48 000 if absent.
    pub max_playback_rate: Option<u32>,
    /// `sprop-maxcapturerate`, in Hz: what the sender is likely to capture; 48 000 if absent.
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
    /// `usedtx`: the receiver prefers that nothing is sent in silence.
    pub use_dtx: bool,
    /// All else, such as `minptime`.
    pub other: OtherParameters,
}

impl OpusParameters {
    pub(super) fn parse(line: Line<'_>, text: &str) -> Result<Self, SdpError> {
        let mut read = Self::default();
        let rate = |value| up_to(line, value, u32::MAX).map(Some);
        for (name, value) in parameters(text) {
            match name.as_str() {
                "maxplaybackrate" => read.max_playback_rate = rate(value)?,
                "sprop-maxcapturerate" => read.max_capture_rate = rate(value)?,
                "maxaveragebitrate" => read.max_average_bit_rate = rate(value)?,
                "stereo" => read.stereo = flag(line, value)?,
                "sprop-stereo" => read.sprop_stereo = flag(line, value)?,
                "cbr" => read.cbr = flag(line, value)?,
                "useinbandfec" => read.use_in_band_fec = flag(line, value)?,
                "usedtx" => read.use_dtx = flag(line, value)?,
                _ => read.other.push((name, value.to_owned())),
            }
        }
        Ok(read)
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
