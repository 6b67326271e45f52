//! Session keys from a master key (RFC 3711 section 4.3).

use zeroize::Zeroizing;

use super::error::PolicyError;
use super::master::MasterKey;
use rushes_crypto::CounterMode;

/// The purpose of a derived key (RFC 3711 section 4.3.2, RFC 6904 section 2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(super) enum Label {
    RtpCipher = 0,
    RtpAuthentication = 1,
    RtpSalt = 2,
    RtcpCipher = 3,
    RtcpAuthentication = 4,
    RtcpSalt = 5,
    HeaderCipher = 6,
    HeaderSalt = 7,
}

/// The pseudo-random function of RFC 3711 section 4.3.3, under one master key.
pub(super) struct Derivation {
    cipher: CounterMode,
    salt: Zeroizing<[u8; 14]>,
}

impl Derivation {
    pub(super) fn new(master: &MasterKey) -> Result<Self, PolicyError> {
        let cipher = CounterMode::new(master.key()).map_err(|_| PolicyError::Refused)?;
        Ok(Self { cipher, salt: master.salt() })
    }

    /// Returns `len` octets for `label`; `r` is the packet index divided by the key derivation
    /// rate, at most 48 bits.
    pub(super) fn derive(
        &self,
        label: Label,
        r: u64,
        len: usize,
    ) -> Result<Zeroizing<Vec<u8>>, PolicyError> {
        let mut x = Zeroizing::new([0; 16]);
        x[..14].copy_from_slice(&*self.salt);
        x[7] ^= label as u8;
        for (octet, r) in x[8..14].iter_mut().zip(&r.to_be_bytes()[2..]) {
            *octet ^= r;
        }
        let mut derived = Zeroizing::new(vec![0; len]);
        self.cipher.apply(*x, &mut derived).map_err(|_| PolicyError::Refused)?;
        Ok(derived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::srtp::suite::Suite;

    fn octets(hex: &str) -> Vec<u8> {
        let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
        hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    fn derive(suite: Suite, key: &str, label: Label, len: usize) -> Vec<u8> {
        let master = MasterKey::new(suite, &octets(key)).unwrap();
        Derivation::new(&master).unwrap().derive(label, 0, len).unwrap().to_vec()
    }

    /// RFC 3711 appendix B.3.
    #[test]
    fn the_keys_of_rfc_3711_are_derived() {
        let of = |label, len| {
            let key = "e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6";
            derive(Suite::AesCm128HmacSha1_80, key, label, len)
        };
        assert_eq!(of(Label::RtpCipher, 16), octets("c61e7a93744f39ee10734afe3ff7a087"));
        assert_eq!(of(Label::RtpSalt, 14), octets("30cbbc08863d8c85d49db34a9ae1"));
        let authentication = "cebe321f6ff7716b6fd4ab49af256a156d38baa4";
        assert_eq!(of(Label::RtpAuthentication, 20), octets(authentication));
    }

    /// RFC 6188 sections 7.2 and 7.4.
    #[test]
    fn the_longer_keys_of_rfc_6188_are_derived() {
        let key = "f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6\
                   3b04803de51ee7c96423ab5b78d2";
        let of = |label, len| derive(Suite::AesCm256HmacSha1_80, key, label, len);
        let cipher = "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4";
        assert_eq!(of(Label::RtpCipher, 32), octets(cipher));
        assert_eq!(of(Label::RtpSalt, 14), octets("fa31791685ca444a9e07c6c64e93"));

        let key = "73edc66c4fa15776fb57f9505c17136550ffda71f3e8e5f1\
                   c8522f3acd4ce86d5add78edbb11";
        let of = |label, len| derive(Suite::AesCm192HmacSha1_80, key, label, len);
        let cipher = "31874736a8f1143870c26e4857d8a5b2c4a354407faadabb";
        assert_eq!(of(Label::RtpCipher, 24), octets(cipher));
        let authentication = "355b10973cd95b9eacf4061c7e1a7151e7cfbfcb";
        assert_eq!(of(Label::RtpAuthentication, 20), octets(authentication));
    }

    /// RFC 6904 appendix A.1.
    #[test]
    fn the_header_keys_of_rfc_6904_are_derived() {
        let of = |label, len| {
            let key = "e1f97a0d3e018be0d64fa32c06de41390ec675ad498afeebb6960b3aabe6";
            derive(Suite::AesCm128HmacSha1_80, key, label, len)
        };
        assert_eq!(of(Label::HeaderCipher, 16), octets("549752054d6fb708622c4a2e596a1b93"));
        assert_eq!(of(Label::HeaderSalt, 14), octets("ab01818174c40d39a3781f7c2d27"));
    }
}
