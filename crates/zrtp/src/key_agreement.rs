//! The key agreement types and the lengths of their public values (RFC 6189 section 5.1.5, draft
//! section "Key Agreement Type Block").

use super::algorithm::Algorithm;
use super::error_code::ErrorCode;

/// A key agreement type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyAgreement {
    /// "DH3k": the 3072-bit group of RFC 3526.
    Dh3k,
    /// "DH2k": the 2048-bit group of RFC 3526.
    Dh2k,
    /// "EC25": P-256.
    Ec25,
    /// "EC38": P-384.
    Ec38,
    /// "EC52": P-521.
    Ec52,
    /// "X255": X25519 (RFC 7748).
    X255,
    /// "X448": X448 (RFC 7748). Needs the feature `x448`.
    X448,
    /// "Prsh": a secret shared earlier; no public values.
    Prsh,
    /// "Mult": the session key of another stream; no public values.
    Mult,
    /// Key encapsulation by one mechanism, or by several together.
    Kem(Kem),
}

impl KeyAgreement {
    /// All types except those of key encapsulation.
    pub const CLASSICAL: [Self; 9] = [
        Self::Dh3k,
        Self::Dh2k,
        Self::Ec25,
        Self::Ec38,
        Self::Ec52,
        Self::X255,
        Self::X448,
        Self::Prsh,
        Self::Mult,
    ];

    /// Returns whether it is X448 or contains X448.
    pub(super) fn has_x448(self) -> bool {
        match self {
            Self::X448 => true,
            Self::Kem(kem) => kem.components().any(|one| one == KemComponent::X448),
            _ => false,
        }
    }

    /// Returns the octets of the initiator's public value `pvi`, which is in `DHPart2` or, with key
    /// encapsulation (the public key), in Commit; 0 for Prsh and Mult.
    pub fn initiator_len(self) -> usize {
        match self {
            Self::Kem(kem) => kem.public_key_len(),
            _ => self.value_len(),
        }
    }

    /// Returns the octets of the responder's public value `pvr`, which is in `DHPart1` or, with key
    /// encapsulation (the cipher text), in `KEMPart1`; 0 for Prsh and Mult.
    pub fn responder_len(self) -> usize {
        match self {
            Self::Kem(kem) => kem.cipher_text_len(),
            _ => self.value_len(),
        }
    }

    /// Returns the octets of either public value of a Diffie-Hellman type (RFC 6189 table 5).
    const fn value_len(self) -> usize {
        match self {
            Self::Dh3k => 384,
            Self::Dh2k => 256,
            Self::Ec25 => 64,
            Self::Ec38 => 96,
            Self::Ec52 => 132,
            Self::X255 => 32,
            Self::X448 => 56,
            Self::Prsh | Self::Mult | Self::Kem(_) => 0,
        }
    }
}

impl Algorithm for KeyAgreement {
    const MANDATORY: &'static [Self] = &[Self::Dh3k];
    const UNSUPPORTED: ErrorCode = ErrorCode::KeyExchange;
    const FILLER: Self = Self::Dh3k;

    fn code(self) -> [u8; 4] {
        match self {
            Self::Dh3k => *b"DH3k",
            Self::Dh2k => *b"DH2k",
            Self::Ec25 => *b"EC25",
            Self::Ec38 => *b"EC38",
            Self::Ec52 => *b"EC52",
            Self::X255 => *b"X255",
            Self::X448 => *b"X448",
            Self::Prsh => *b"Prsh",
            Self::Mult => *b"Mult",
            Self::Kem(kem) => kem.code(),
        }
    }

    fn from_code(code: [u8; 4]) -> Option<Self> {
        let classical = Self::CLASSICAL.into_iter().find(|known| known.code() == code);
        classical.or_else(|| Kem::from_code(code).map(Self::Kem))
    }
}

/// Defines [`KemComponent`] from rows of name, family letter, level, long type block, lengths.
macro_rules! components {
    ($($name:ident = $family:literal $level:literal, $code:expr, $key:literal, $text:literal,
       $meaning:literal;)*) => {
        /// One mechanism of key encapsulation.
        ///
        /// In messages, its values are padded with zeros to a whole word.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum KemComponent {
            $(#[doc = concat!($meaning, ".")] $name,)*
        }

        impl KemComponent {
            /// All mechanisms; those of elliptic curves are first.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the octets of a public key.
            pub const fn public_key_len(self) -> usize {
                match self { $(Self::$name => $key,)* }
            }

            /// Returns the octets of a cipher text.
            pub const fn cipher_text_len(self) -> usize {
                match self { $(Self::$name => $text,)* }
            }

            /// Returns the short type block: letter of the family and digit of the level.
            const fn short(self) -> [u8; 2] {
                match self { $(Self::$name => [$family, $level],)* }
            }

            /// Returns the type block of the mechanism alone; `None` for elliptic curves.
            const fn long(self) -> Option<[u8; 4]> {
                match self { $(Self::$name => $code,)* }
            }
        }
    };
}

components! {
    X25519 = b'X' b'1', None, 32, 32, "X25519 as a mechanism of key encapsulation";
    X448 = b'X' b'3', None, 56, 56, "X448 as a mechanism of key encapsulation";
    Kyber512 = b'K' b'1', Some(*b"KYB1"), 800, 768, "Kyber512 of round 3";
    Kyber768 = b'K' b'2', Some(*b"KYB2"), 1184, 1088, "Kyber768 of round 3";
    Kyber1024 = b'K' b'3', Some(*b"KYB3"), 1568, 1568, "Kyber1024 of round 3";
    MlKem512 = b'M' b'1', Some(*b"MLK1"), 800, 768, "ML-KEM-512 of FIPS 203, not in the draft";
    MlKem768 = b'M' b'2', Some(*b"MLK2"), 1184, 1088, "ML-KEM-768 of FIPS 203, not in the draft";
    MlKem1024 = b'M' b'3', Some(*b"MLK3"), 1568, 1568,
        "ML-KEM-1024 of FIPS 203, not in the draft";
    BikeL1 = b'B' b'1', Some(*b"BIK1"), 1541, 1573, "BIKE-L1";
    BikeL3 = b'B' b'2', Some(*b"BIK2"), 3083, 3115, "BIKE-L3";
    BikeL5 = b'B' b'3', Some(*b"BIK3"), 5122, 5154, "BIKE-L5";
    Hqc128 = b'H' b'1', Some(*b"HQC1"), 2249, 4433, "HQC-128 of round 4";
    Hqc192 = b'H' b'2', Some(*b"HQC2"), 4522, 8978, "HQC-192 of round 4";
    Hqc256 = b'H' b'3', Some(*b"HQC3"), 7245, 14_421, "HQC-256 of round 4";
    Ntru509 = b'N' b'1', Some(*b"NTR1"), 699, 699, "NTRU-HPS 2048-509";
    Ntru677 = b'N' b'2', Some(*b"NTR2"), 930, 930, "NTRU-HPS 2048-677";
    Ntru821 = b'N' b'3', Some(*b"NTR3"), 1230, 1230, "NTRU-HPS 4096-821";
    LightSaber = b'A' b'1', Some(*b"SAB1"), 672, 736, "LightSaber";
    Saber = b'A' b'2', Some(*b"SAB2"), 992, 1088, "Saber";
    FireSaber = b'A' b'3', Some(*b"SAB3"), 1312, 1472, "FireSaber";
}

impl KemComponent {
    const fn is_elliptic(self) -> bool {
        matches!(self, Self::X25519 | Self::X448)
    }

    fn of_short(short: [u8; 2]) -> Option<Self> {
        Self::ALL.iter().copied().find(|component| component.short() == short)
    }
}

/// One mechanism of key encapsulation, or several combined (draft section "Hybrid KEM
/// designation"): one post-quantum mechanism, or an elliptic curve with one or two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kem {
    first: KemComponent,
    second: Option<KemComponent>,
    third: Option<KemComponent>,
}

impl Kem {
    /// "X1M2": X25519 with ML-KEM-768.
    pub const X25519_ML_KEM_768: Self =
        Self { first: KemComponent::X25519, second: Some(KemComponent::MlKem768), third: None };
    /// "X3M3": X448 with ML-KEM-1024. Needs the feature `x448`.
    pub const X448_ML_KEM_1024: Self =
        Self { first: KemComponent::X448, second: Some(KemComponent::MlKem1024), third: None };

    /// Creates a mechanism alone; `None` for an elliptic curve, which has no type block.
    pub fn single(component: KemComponent) -> Option<Self> {
        component.long().map(|_| Self { first: component, second: None, third: None })
    }

    /// Creates an elliptic curve with one post-quantum mechanism; `None` for other kinds.
    pub fn hybrid(curve: KemComponent, second: KemComponent) -> Option<Self> {
        let fits = curve.is_elliptic() && !second.is_elliptic();
        fits.then_some(Self { first: curve, second: Some(second), third: None })
    }

    /// Creates an elliptic curve with two post-quantum mechanisms of different families; `None`
    /// unless all three have the same level, because the type block has one digit for them.
    pub fn triple(curve: KemComponent, second: KemComponent, third: KemComponent) -> Option<Self> {
        let hybrid = Self::hybrid(curve, second)?;
        let ([_, a], [family, b], [other, c]) = (curve.short(), second.short(), third.short());
        let fits = a == b && b == c && !third.is_elliptic() && family != other;
        fits.then_some(Self { third: Some(third), ..hybrid })
    }

    /// Returns the mechanisms in the order of their values.
    pub fn components(self) -> impl Iterator<Item = KemComponent> {
        [Some(self.first), self.second, self.third].into_iter().flatten()
    }

    /// Returns the octets of all public keys together.
    pub fn public_key_len(self) -> usize {
        self.components().map(KemComponent::public_key_len).sum()
    }

    /// Returns the octets of all cipher texts together.
    pub fn cipher_text_len(self) -> usize {
        self.components().map(KemComponent::cipher_text_len).sum()
    }

    fn code(self) -> [u8; 4] {
        let [family, level] = self.first.short();
        match (self.second.map(KemComponent::short), self.third.map(KemComponent::short)) {
            (Some([second, _]), Some([third, _])) => [family, second, third, level],
            (Some([second, its_level]), None) => [family, level, second, its_level],
            (None, _) => self.first.long().unwrap_or_default(),
        }
    }

    fn from_code(code: [u8; 4]) -> Option<Self> {
        let single = KemComponent::ALL.iter().find(|component| component.long() == Some(code));
        if let Some(&component) = single {
            return Self::single(component);
        }
        let [a, b, c, d] = code;
        if b.is_ascii_digit() {
            let curve = KemComponent::of_short([a, b])?;
            return Self::hybrid(curve, KemComponent::of_short([c, d])?);
        }
        let [curve, second, third] = [a, b, c].map(|family| KemComponent::of_short([family, d]));
        Self::triple(curve?, second?, third?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MESSAGE_LEN_MAX;

    /// Returns every combination that has a type block.
    fn all() -> Vec<KeyAgreement> {
        let mut kems = Vec::new();
        for &a in KemComponent::ALL {
            kems.extend(Kem::single(a));
            for &b in KemComponent::ALL {
                kems.extend(Kem::hybrid(a, b));
                kems.extend(KemComponent::ALL.iter().filter_map(|&c| Kem::triple(a, b, c)));
            }
        }
        let kems = kems.into_iter().map(KeyAgreement::Kem);
        KeyAgreement::CLASSICAL.into_iter().chain(kems).collect()
    }

    #[test]
    fn every_type_survives_its_code() {
        let all = all();
        assert_eq!(all.len(), 9 + 18 + 2 * 18 + 2 * 6 * 5);
        for agreement in all {
            let code = agreement.code();
            assert_eq!(KeyAgreement::from_code(code), Some(agreement), "{code:?}");
        }
    }

    #[test]
    fn every_public_value_fits_the_longest_message() {
        // Commit adds 116 octets, KEMPart1 adds 84.
        for agreement in all() {
            assert!(agreement.initiator_len() + 119 <= MESSAGE_LEN_MAX);
            assert!(agreement.responder_len() + 87 <= MESSAGE_LEN_MAX);
        }
    }

    #[test]
    fn the_examples_of_the_draft_are_read() {
        use KemComponent::{Hqc128, Hqc256, Kyber512, Kyber1024, Saber, X448, X25519};
        let read = |code| match KeyAgreement::from_code(code) {
            Some(KeyAgreement::Kem(kem)) => kem.components().collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(read(*b"X1K1"), [X25519, Kyber512]);
        assert_eq!(read(*b"X3A2"), [X448, Saber]);
        assert_eq!(read(*b"XKH1"), [X25519, Kyber512, Hqc128]);
        assert_eq!(read(*b"XKH3"), [X448, Kyber1024, Hqc256]);
    }

    #[test]
    fn combinations_without_a_designation_are_unknown() {
        for code in [*b"K1X1", *b"X2B3", *b"XKK1", *b"XKH2", *b"K1H1", *b"X1X3", *b"X1  ", [0; 4]] {
            assert_eq!(KeyAgreement::from_code(code), None, "{code:?}");
        }
    }

    #[test]
    fn lengths_are_those_of_table_5_and_fips_203() {
        assert_eq!(KeyAgreement::Dh3k.initiator_len(), 96 * 4);
        assert_eq!(KeyAgreement::Ec52.responder_len(), 33 * 4);
        let hybrid = KeyAgreement::Kem(Kem::X25519_ML_KEM_768);
        assert_eq!(hybrid.code(), *b"X1M2");
        assert_eq!((hybrid.initiator_len(), hybrid.responder_len()), (1216, 1120));
        assert_eq!(KeyAgreement::Kem(Kem::X448_ML_KEM_1024).code(), *b"X3M3");
    }
}
