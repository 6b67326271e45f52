//! Format parameters of H.265 (RFC 7798 section 7.1).

use super::error::ParameterSetError;
use super::parameters::{OtherParameters, Writer, base16, flag, read_units, up_to};
use super::sequence_parameters::first_octets;
use super::warning::Problem;

/// The parameters of an H.265 stream in `a=fmtp`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct H265Parameters {
    /// `profile-space`, 0..=3; if absent, 0.
    pub profile_space: Option<u8>,
    /// `profile-id`, 0..=31; if absent, 1, the Main profile.
    pub profile_id: Option<u8>,
    /// `tier-flag`; if absent, the Main tier.
    pub tier_flag: Option<bool>,
    /// `level-id`: 30 times the level; if absent, 93, level 3.1.
    pub level_id: Option<u8>,
    /// `interop-constraints`: 48 bits after the compatibility flags in the SPS; if absent,
    /// b00000000000.
    pub interop_constraints: Option<[u8; 6]>,
    /// `profile-compatibility-indicator`: the flag of profile 0 is the highest bit.
    pub profile_compatibility: Option<u32>,
    /// `tx-mode`; if absent, `SRST`.
    pub transmission_mode: Option<String>,
    /// `sprop-max-don-diff`, 0..=32 767; if above 0, decoding order numbers are sent.
    pub max_don_diff: u16,
    /// `sprop-depack-buf-nalus`, 0..=32 767, in NAL units.
    pub depack_buf_nalus: Option<u16>,
    /// `sprop-depack-buf-bytes`, in octets.
    pub depack_buf_bytes: Option<u32>,
    /// `sprop-vps`: video parameter sets, without start codes.
    pub vps: Vec<Vec<u8>>,
    /// `sprop-sps`: sequence parameter sets.
    pub sps: Vec<Vec<u8>>,
    /// `sprop-pps`: picture parameter sets.
    pub pps: Vec<Vec<u8>>,
    /// `sprop-sei`: SEI messages that apply to the whole stream.
    pub sei: Vec<Vec<u8>>,
    /// Other parameters.
    pub other: OtherParameters,
}

impl H265Parameters {
    /// Creates parameters for a stream with these parameter sets, each a NAL unit without a start
    /// code. Profile, tier, level and constraints are those of the first SPS.
    ///
    /// # Errors
    /// [`ParameterSetError`] if there is no SPS, or the first one is too short or not an SPS.
    pub fn from_parameter_sets(
        vps: &[&[u8]],
        sps: &[&[u8]],
        pps: &[&[u8]],
    ) -> Result<Self, ParameterSetError> {
        const SPS: &str = "H.265 sequence parameter set";
        let first = sps.first().copied().unwrap_or_default();
        // Header 2, identifier and sub-layers 1, then profile_tier_level(): H.265 section 7.3.3.
        let [header, _, _, profile, general @ .., level_id] = first_octets::<15>(first, SPS)?;
        let found = (header >> 1) & 0x3f;
        if found != 33 {
            return Err(ParameterSetError::NalType { expected: SPS, found });
        }
        let [c0, c1, c2, c3, constraints @ ..]: [u8; 10] = general;
        let units = |units: &[&[u8]]| units.iter().map(|unit| unit.to_vec()).collect();
        Ok(Self {
            profile_space: Some(profile >> 6),
            tier_flag: Some(profile & 0x20 != 0),
            profile_id: Some(profile & 0x1f),
            profile_compatibility: Some(u32::from_be_bytes([c0, c1, c2, c3])),
            interop_constraints: Some(constraints),
            level_id: Some(level_id),
            vps: units(vps),
            sps: units(sps),
            pps: units(pps),
            ..Self::default()
        })
    }

    /// Sets the parameter `name`, in lower case, to `value`.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "profile-space" => self.profile_space = Some(up_to(value, 3)? as u8),
            "profile-id" => self.profile_id = Some(up_to(value, 31)? as u8),
            "tier-flag" => self.tier_flag = Some(flag(value)?),
            "level-id" => self.level_id = Some(up_to(value, 255)? as u8),
            "interop-constraints" => self.interop_constraints = Some(base16(value)?),
            "profile-compatibility-indicator" => {
                self.profile_compatibility = Some(u32::from_be_bytes(base16(value)?));
            }
            "tx-mode" => self.transmission_mode = Some(value.to_owned()),
            "sprop-max-don-diff" => self.max_don_diff = up_to(value, 32_767)? as u16,
            "sprop-depack-buf-nalus" => {
                self.depack_buf_nalus = Some(up_to(value, 32_767)? as u16);
            }
            "sprop-depack-buf-bytes" => {
                self.depack_buf_bytes = Some(up_to(value, u32::MAX)?);
            }
            "sprop-vps" => read_units(&mut self.vps, value)?,
            "sprop-sps" => read_units(&mut self.sps, value)?,
            "sprop-pps" => read_units(&mut self.pps, value)?,
            "sprop-sei" => read_units(&mut self.sei, value)?,
            _ => self.other.push((name.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    pub(super) fn write(&self) -> String {
        let mut to = Writer::default();
        to.put_some("profile-space", self.profile_space);
        to.put_some("profile-id", self.profile_id);
        to.put_some("tier-flag", self.tier_flag.map(u8::from));
        to.put_some("level-id", self.level_id);
        let constraints = self.interop_constraints.map(|[a, b, c, d, e, f]| {
            format!("{:012X}", u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
        });
        to.put_some("interop-constraints", constraints);
        let compatibility = self.profile_compatibility.map(|flags| format!("{flags:08X}"));
        to.put_some("profile-compatibility-indicator", compatibility);
        let mode = self.transmission_mode.as_ref().map(|mode| mode.replace(';', "_"));
        to.put_some("tx-mode", mode);
        to.put_some("sprop-max-don-diff", Some(self.max_don_diff).filter(|diff| *diff > 0));
        to.put_some("sprop-depack-buf-nalus", self.depack_buf_nalus);
        to.put_some("sprop-depack-buf-bytes", self.depack_buf_bytes);
        to.put_units("sprop-vps", &self.vps);
        to.put_units("sprop-sps", &self.sps);
        to.put_units("sprop-pps", &self.pps);
        to.put_units("sprop-sei", &self.sei);
        to.finish(&self.other)
    }
}
