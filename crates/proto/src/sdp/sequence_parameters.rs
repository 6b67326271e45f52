//! The first octets of a sequence parameter set, which contain profile and level in each standard.

use super::error::ParameterSetError;

/// Returns the first `N` octets of the NAL unit `unit`, including its header, without the octets of
/// value 3 that prevent start codes (00 00 03, H.264 section 7.4.1, H.265 and H.266 section 7.4.2).
pub(super) fn first_octets<const N: usize>(
    unit: &[u8],
    name: &'static str,
) -> Result<[u8; N], ParameterSetError> {
    let mut octets = [0; N];
    let mut len = 0;
    let mut zeros = 0;
    for &octet in unit {
        if len == N {
            break;
        }
        if zeros >= 2 && octet == 3 {
            zeros = 0;
            continue;
        }
        zeros = if octet == 0 { zeros + 1 } else { 0 };
        octets[len] = octet;
        len += 1;
    }
    if len == N { Ok(octets) } else { Err(ParameterSetError::Truncated(name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_prevention_octets_are_left_out() {
        let unit = [1, 0, 0, 3, 0, 0, 3, 3, 0, 3, 9];
        assert_eq!(first_octets::<9>(&unit, "x"), Ok([1, 0, 0, 0, 0, 3, 0, 3, 9]));
    }

    #[test]
    fn a_short_unit_is_an_error() {
        assert_eq!(first_octets::<4>(&[1, 0, 0, 3], "x"), Err(ParameterSetError::Truncated("x")));
    }
}
