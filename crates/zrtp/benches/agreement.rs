//! The time of a key agreement at one end: generating a key pair, and agreeing.
//!
//! `cargo bench -p rushes-zrtp --bench agreement`

#![allow(clippy::unwrap_used, reason = "a benchmark may")]

use divan::Bencher;
use rushes_zrtp::crypto::{Agreement, HashAlgorithm, Kem, KemKeyPair, KeyPair, Lattice};

const KEMS: &[Kem] = &[
    Kem::Alone(Lattice::MlKem768),
    Kem::X25519(Lattice::MlKem512),
    Kem::X25519(Lattice::MlKem768),
    #[cfg(feature = "x448")]
    Kem::X448(Lattice::MlKem1024),
    #[cfg(feature = "x448")]
    Kem::X448(Lattice::Kyber1024),
];

fn main() {
    divan::main();
}

/// Returns a source of octets that count upwards, which take as much time as others.
fn counting() -> impl FnMut(&mut [u8]) {
    let mut next = 1_u8;
    move |out| {
        for octet in out {
            *octet = next;
            next = next.wrapping_add(1);
        }
    }
}

#[divan::bench(args = Agreement::ALL)]
fn generate(bencher: Bencher<'_, '_>, agreement: Agreement) {
    let mut entropy = counting();
    bencher.bench_local(|| KeyPair::generate(agreement, &mut entropy).unwrap());
}

#[divan::bench(args = Agreement::ALL)]
fn agree(bencher: Bencher<'_, '_>, agreement: Agreement) {
    let peer = KeyPair::generate(agreement, &mut counting()).unwrap();
    bencher
        .with_inputs(|| KeyPair::generate(agreement, &mut counting()).unwrap())
        .bench_local_values(|pair| pair.agree(peer.public()).unwrap());
}

#[divan::bench(args = KEMS)]
fn generate_kem(bencher: Bencher<'_, '_>, kem: Kem) {
    let mut entropy = counting();
    bencher.bench_local(|| KemKeyPair::generate(kem, &mut entropy).unwrap());
}

#[divan::bench(args = KEMS)]
fn encapsulate(bencher: Bencher<'_, '_>, kem: Kem) {
    let mut entropy = counting();
    let pair = KemKeyPair::generate(kem, &mut entropy).unwrap();
    bencher.bench_local(|| {
        kem.encapsulate(HashAlgorithm::Sha384, pair.public(), &mut entropy).unwrap()
    });
}

#[divan::bench(args = KEMS)]
fn decapsulate(bencher: Bencher<'_, '_>, kem: Kem) {
    let pair = KemKeyPair::generate(kem, &mut counting()).unwrap();
    let hash = HashAlgorithm::Sha384;
    let (_, ciphertext) = kem.encapsulate(hash, pair.public(), &mut counting()).unwrap();
    bencher
        .with_inputs(|| KemKeyPair::generate(kem, &mut counting()).unwrap())
        .bench_local_values(|pair| pair.decapsulate(hash, &ciphertext).unwrap());
}
