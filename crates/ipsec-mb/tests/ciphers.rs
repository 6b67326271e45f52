//! The library's ciphers beside those of aws-lc, and its structures beside the installed header.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use rushes_ipsec_mb::{BLOCK_LEN, CounterMode, Gcm, Library, TAG_LEN, Unavailable};

/// Returns the library; where it is missing, the running test is skipped.
fn library() -> Option<&'static Library> {
    match Library::get() {
        Ok(library) => return Some(library),
        Err(Unavailable::NotFound) => skipped::missing("ipsec-mb", "libipsec-mb1"),
        Err(why) => skipped::not_here(why),
    }
    None
}

fn octets(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|n| (n * 7) as u8 ^ seed).collect()
}

/// Lengths around every border of the kernels, up to 96 blocks, and some of packets.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=1536).chain([4095, 4096, 4097, 8999, 65_507])
}

#[test]
fn sealed_messages_are_those_of_aws_lc() {
    let Some(library) = library() else { return };
    for (algorithm, key_len) in [(&AES_128_GCM, 16), (&AES_256_GCM, 32)] {
        let key = octets(key_len, 0x2d);
        let ours = Gcm::new(library, &key).unwrap();
        let theirs = LessSafeKey::new(UnboundKey::new(algorithm, &key).unwrap());
        for len in lengths() {
            let (clear, header, nonce) = (octets(len, 1), octets(len % 40, 2), [len as u8; 12]);
            let mut expected = clear.clone();
            let (at, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(&header));
            theirs.seal_in_place_append_tag(at, aad, &mut expected).unwrap();
            // The first octets in place, the rest from elsewhere.
            for cut in [0, len.min(BLOCK_LEN), len.min(5), len / 2, len] {
                let (mut head, mut out) = (clear[..cut].to_vec(), vec![0; len - cut + TAG_LEN]);
                assert!(ours.seal(nonce, &header, &mut head, &clear[cut..], &mut out));
                assert!([&head[..], &out].concat() == expected, "{len} octets cut at {cut}");
            }
            let (sealed, tag) = expected.split_at(len);
            let mut opened = vec![0; len];
            assert_eq!(ours.open_into(nonce, &header, sealed, &mut opened).unwrap(), tag);
            let mut place = sealed.to_vec();
            assert_eq!(ours.open(nonce, &header, &mut place).unwrap(), tag);
            assert!(opened == clear && place == clear, "{len}");
        }
    }
}

#[test]
fn the_key_stream_is_that_of_aws_lc() {
    let Some(library) = library() else { return };
    for (algorithm, key_len) in [(&AES_128, 16), (&AES_192, 24), (&AES_256, 32)] {
        let key = octets(key_len, 0x3c);
        let ours = CounterMode::new(library, &key).unwrap();
        let theirs = EncryptingKey::ctr(UnboundCipherKey::new(algorithm, &key).unwrap()).unwrap();
        for len in lengths() {
            let mut start = [0xfe; BLOCK_LEN];
            start[12..].copy_from_slice(&(len as u32).to_be_bytes());
            let (clear, mut expected) = (octets(len, 3), octets(len, 3));
            if len > 0 {
                let context = EncryptionContext::Iv128(FixedLength::from(&start));
                theirs.less_safe_encrypt(&mut expected, context).unwrap();
            }
            let (mut place, mut out) = (clear.clone(), vec![0; len]);
            assert!(ours.apply(start, &mut place) && ours.apply_into(start, &clear, &mut out));
            assert!(place == expected && out == expected, "{len}");
        }
    }
}

#[test]
fn what_the_library_would_get_wrong_is_refused_and_changes_nothing() {
    let Some(library) = library() else { return };
    assert!([0, 15, 17, 33].iter().all(|len| Gcm::new(library, &octets(*len, 0)).is_none()));
    assert!(
        [0, 15, 17, 33].iter().all(|len| CounterMode::new(library, &octets(*len, 0)).is_none())
    );
    let (gcm, cipher) = (Gcm::new(library, &[1; 16]).unwrap(), CounterMode::new(library, &[1; 16]));
    let (cipher, mut out) = (cipher.unwrap(), [7; 20]);
    assert!(!gcm.seal([0; 12], &[], &mut [], &[0; 5], &mut out));
    assert!(gcm.open_into([0; 12], &[], &[0; 5], &mut out).is_none());
    assert!(!cipher.apply_into([0; 16], &[0; 5], &mut out));
    // The last 32 bits of the counter would overflow into the others.
    assert!(!cipher.apply([0xff; 16], &mut out));
    assert_eq!(out, [7; 20]);
}

#[test]
fn threads_that_come_and_go_have_managers_of_their_own() {
    let Some(library) = library() else { return };
    let cipher = CounterMode::new(library, &[9; 16]).unwrap();
    let apply = || {
        let mut data = octets(1400, 0);
        assert!(cipher.apply([5; 16], &mut data));
        data
    };
    let expected = apply();
    for _ in 0..20 {
        std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(apply));
            assert!(threads.into_iter().all(|thread| thread.join().unwrap() == expected));
        });
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_structures_are_those_of_the_installed_header() {
    use std::process::Command;

    if !std::path::Path::new("/usr/include/intel-ipsec-mb.h").exists() {
        return skipped::missing("intel-ipsec-mb.h", "libipsec-mb-dev");
    }
    let checks = rushes_ipsec_mb::LAYOUT
        .map(|(what, value)| format!("_Static_assert(({what}) == {value}, \"{what}\");\n"));
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("ipsec-mb-layout.c");
    let text = format!("#include <stddef.h>\n#include <intel-ipsec-mb.h>\n{}", checks.concat());
    std::fs::write(&source, text).unwrap();
    let compiler = Command::new("cc").arg("-fsyntax-only").arg(&source).output();
    let Ok(output) = compiler else { return skipped::missing("cc", "gcc") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
