//! The checksum of ZRTP packets: CRC-32C as in SCTP (RFC 4960 appendix B).

/// The polynomial 0x1EDC6F41 with its bits reversed.
const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        let mut crc = octet as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[octet] = crc;
        octet += 1;
    }
    table
}

/// Returns the CRC-32C of `octets`, in its usual integer form.
pub(super) fn crc32c(octets: &[u8]) -> u32 {
    let crc = octets.iter().fold(u32::MAX, |crc, &octet| {
        let [low, ..] = crc.to_le_bytes();
        (crc >> 8) ^ TABLE[usize::from(low ^ octet)]
    });
    !crc
}

/// Returns the checksum as sent.
///
/// RFC 4960 appendix B swaps the octets before it sends the value in network order, so that the
/// least significant octet of the usual form is sent first.
pub(super) fn checksum(octets: &[u8]) -> [u8; 4] {
    crc32c(octets).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc_32c_is_computed() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn thirty_two_zeros_give_the_octets_of_rfc_3720() {
        // RFC 3720 appendix B.4 uses the same order of octets.
        assert_eq!(checksum(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(checksum(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
    }
}
