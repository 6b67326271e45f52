//! Format parameters of H.266 (RFC 9328 section 7.2).

use super::error::ParameterSetError;
use super::parameters::{OtherParameters, Writer, base64, flag, read_units, up_to};
use super::sequence_parameters::first_octets;
use super::warning::Problem;

/// The parameters of an H.266 stream in `a=fmtp`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct H266Parameters {
    /// `profile-id`, 0..=127; if absent, 1, the Main 10 profile.
    pub profile_id: Option<u8>,
    /// `tier-flag`; if absent, the Main tier.
    pub tier_flag: Option<bool>,
    /// `level-id`: 16 times the major and 3 times the minor number; if absent, 51, level 3.1.
    pub level_id: Option<u8>,
    /// `interop-constraints`: two flags and `general_constraints_info()`; if absent, the octet 80.
    pub interop_constraints: Option<Vec<u8>>,
    /// `sprop-max-don-diff`, 0..=32 767; if above 0, decoding order numbers are sent.
    pub max_don_diff: u16,
    /// `sprop-depack-buf-bytes`, in octets.
    pub depack_buf_bytes: Option<u32>,
    /// `sprop-dci`: the decoding capability information, without a start code.
    pub dci: Vec<Vec<u8>>,
    /// `sprop-vps`: video parameter sets.
    pub vps: Vec<Vec<u8>>,
    /// `sprop-sps`: sequence parameter sets.
    pub sps: Vec<Vec<u8>>,
    /// `sprop-pps`: picture parameter sets.
    pub pps: Vec<Vec<u8>>,
    /// `sprop-sei`: SEI messages that apply to the whole stream.
    pub sei: Vec<Vec<u8>>,
    /// Other parameters, such as `sub-profile-id` and `sprop-ols-id`.
    pub other: OtherParameters,
}

impl H266Parameters {
    /// Creates parameters for a single-layer stream with these parameter sets, each a NAL unit
    /// without a start code; a VPS is optional.
    ///
    /// Profile, tier and level are those of the first SPS. They are absent if it has no
    /// `profile_tier_level()`, as in layers above the first. `interop-constraints` are also absent
    /// if the SPS has general constraints, which each edition of H.266 may extend.
    ///
    /// # Errors
    /// [`ParameterSetError`] if there is no SPS, or the first one is too short or not an SPS.
    pub fn from_parameter_sets(
        vps: &[&[u8]],
        sps: &[&[u8]],
        pps: &[&[u8]],
    ) -> Result<Self, ParameterSetError> {
        const SPS: &str = "H.266 sequence parameter set";
        let first = sps.first().copied().unwrap_or_default();
        // Header 2, identifiers 1, sub-layers to presence flag 1, then profile_tier_level():
        // H.266 sections 7.3.2.4 and 7.3.3.1.
        let [_, header, _, flags, profile, level, constraints] = first_octets::<7>(first, SPS)?;
        let found = header >> 3;
        if found != 15 {
            return Err(ParameterSetError::NalType { expected: SPS, found });
        }
        let present = flags & 1 != 0;
        let units = |units: &[&[u8]]| units.iter().map(|unit| unit.to_vec()).collect();
        Ok(Self {
            profile_id: present.then_some(profile >> 1),
            tier_flag: present.then_some(profile & 1 != 0),
            level_id: present.then_some(level),
            interop_constraints: (present && constraints & 0x20 == 0)
                .then(|| vec![constraints & 0xc0]),
            vps: units(vps),
            sps: units(sps),
            pps: units(pps),
            ..Self::default()
        })
    }

    /// Sets the parameter `name`, in lower case, to `value`.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "profile-id" => self.profile_id = Some(up_to(value, 127)? as u8),
            "tier-flag" => self.tier_flag = Some(flag(value)?),
            "level-id" => self.level_id = Some(up_to(value, 255)? as u8),
            "interop-constraints" => self.interop_constraints = Some(base64(value)?),
            "sprop-max-don-diff" => self.max_don_diff = up_to(value, 32_767)? as u16,
            "sprop-depack-buf-bytes" => {
                self.depack_buf_bytes = Some(up_to(value, u32::MAX)?);
            }
            "sprop-dci" => read_units(&mut self.dci, value)?,
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
        to.put_some("profile-id", self.profile_id);
        to.put_some("tier-flag", self.tier_flag.map(u8::from));
        to.put_some("level-id", self.level_id);
        if let Some(constraints) = &self.interop_constraints {
            to.put_base64("interop-constraints", constraints);
        }
        to.put_some("sprop-max-don-diff", Some(self.max_don_diff).filter(|diff| *diff > 0));
        to.put_some("sprop-depack-buf-bytes", self.depack_buf_bytes);
        to.put_units("sprop-dci", &self.dci);
        to.put_units("sprop-vps", &self.vps);
        to.put_units("sprop-sps", &self.sps);
        to.put_units("sprop-pps", &self.pps);
        to.put_units("sprop-sei", &self.sei);
        to.finish(&self.other)
    }
}
