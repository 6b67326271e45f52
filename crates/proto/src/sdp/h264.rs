//! Format parameters of H.264 (RFC 6184 section 8.1).

use super::error::ParameterSetError;
use super::parameters::{OtherParameters, Writer, base16, read_units, up_to};
use super::sequence_parameters::first_octets;
use super::warning::Problem;

/// The parameters of an H.264 stream in `a=fmtp`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct H264Parameters {
    /// `profile-level-id`: `profile_idc`, the octet of constraint flags, `level_idc`. If absent,
    /// Baseline at level 1 (42 00 0a) applies.
    pub profile_level_id: Option<[u8; 3]>,
    /// `packetization-mode`: 0 single NAL unit mode, 1 non-interleaved, 2 interleaved.
    pub packetization_mode: u8,
    /// `sprop-parameter-sets`: sequence and picture parameter sets, without start codes.
    pub parameter_sets: Vec<Vec<u8>>,
    /// Other parameters, such as `level-asymmetry-allowed`.
    pub other: OtherParameters,
}

impl H264Parameters {
    /// Creates parameters for a stream with these parameter sets, each a NAL unit without a start
    /// code, in non-interleaved mode. The profile and level are those of the first SPS.
    ///
    /// # Errors
    /// [`ParameterSetError`] if `sps` is empty, or its first entry is too short or not an SPS.
    pub fn from_parameter_sets(sps: &[&[u8]], pps: &[&[u8]]) -> Result<Self, ParameterSetError> {
        const SPS: &str = "H.264 sequence parameter set";
        let first = sps.first().copied().unwrap_or_default();
        let [header, profile_level_id @ ..] = first_octets::<4>(first, SPS)?;
        if header & 0x1f != 7 {
            return Err(ParameterSetError::NalType { expected: SPS, found: header & 0x1f });
        }
        Ok(Self {
            profile_level_id: Some(profile_level_id),
            packetization_mode: 1,
            parameter_sets: sps.iter().chain(pps).map(|unit| unit.to_vec()).collect(),
            other: OtherParameters::new(),
        })
    }

    /// Sets the parameter `name`, in lower case, to `value`.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "profile-level-id" => self.profile_level_id = Some(base16(value)?),
            "packetization-mode" => self.packetization_mode = up_to(value, 255)? as u8,
            "sprop-parameter-sets" => read_units(&mut self.parameter_sets, value)?,
            _ => self.other.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    pub(super) fn write(&self) -> String {
        let mut to = Writer::default();
        if self.packetization_mode != 0 {
            to.put("packetization-mode", self.packetization_mode);
        }
        let id = self.profile_level_id.map(|[a, b, c]| format!("{a:02X}{b:02X}{c:02X}"));
        to.put_some("profile-level-id", id);
        to.put_units("sprop-parameter-sets", &self.parameter_sets);
        to.finish(&self.other)
    }
}
