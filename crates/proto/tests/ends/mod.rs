//! Both ends of a secured stream, and the packets between them.

#![allow(dead_code, unreachable_pub, reason = "each test uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use rushes_proto::srtp::{
    MasterKey, Policy, Protector, SrtcpProtector, SrtcpUnprotector, Suite, UnprotectError,
    Unprotector,
};

/// The SSRC of genuine packets.
pub const SSRC: u32 = 0x1234_5678;

/// Returns a key derived from `seed`, with the identifier `mki`.
pub fn master(suite: Suite, seed: u8, mki: &[u8]) -> MasterKey {
    let octets = |n: usize| (n as u8).wrapping_mul(37) ^ seed;
    let octets: Vec<u8> = (0..suite.key_and_salt_len()).map(octets).collect();
    MasterKey::new(suite, &octets).unwrap().with_mki(mki).unwrap()
}

/// Returns the suites whose packets carry tags.
pub fn authenticating() -> impl Iterator<Item = Suite> {
    Suite::ALL.into_iter().filter(|suite| suite.rtp_tag_len() > 0)
}

/// Returns a sender and a receiver of media with the same key.
pub fn pair(policy: &Policy, mki: &[u8]) -> (Protector, Unprotector) {
    let key = master(policy.suite, 7, mki);
    (Protector::new(policy, &key).unwrap(), Unprotector::new(policy, &key).unwrap())
}

/// Returns a sender and a receiver of reports with the same key.
pub fn report_pair(policy: &Policy, mki: &[u8]) -> (SrtcpProtector, SrtcpUnprotector) {
    let key = master(policy.suite, 7, mki);
    (SrtcpProtector::new(policy, &key).unwrap(), SrtcpUnprotector::new(policy, &key).unwrap())
}

/// Returns a clear packet of `ssrc` with only a header and `len` octets of payload.
pub fn plain(ssrc: u32, sequence: u16, len: usize) -> Vec<u8> {
    let mut packet = vec![0x80, 96];
    packet.extend_from_slice(&sequence.to_be_bytes());
    packet.extend_from_slice(&(u32::from(sequence) * 3000).to_be_bytes());
    packet.extend_from_slice(&ssrc.to_be_bytes());
    packet.extend((0..len).map(|n| (n * 7) as u8 ^ sequence as u8));
    packet
}

/// Returns a clear packet with every optional part: two contributing sources, a header extension
/// with elements 1 and 2, payload and padding.
pub fn full(sequence: u16) -> Vec<u8> {
    let mut packet = plain(SSRC, sequence, 0);
    packet[0] |= 0x32;
    packet.extend_from_slice(&[1, 1, 1, 1, 2, 2, 2, 2]);
    packet.extend_from_slice(&[0xbe, 0xde, 0, 2, 0x11, 9, 8, 0x20, 7, 0, 0, 0]);
    packet.extend((0..33).map(|n| n * 5));
    packet.extend_from_slice(&[0, 0, 3]);
    packet
}

/// Returns a clear compound of an empty receiver report and a description.
pub fn report(ssrc: u32) -> Vec<u8> {
    let [a, b, c, d] = ssrc.to_be_bytes();
    let mut packet = vec![0x80, 201, 0, 1, a, b, c, d];
    packet.extend_from_slice(&[0x81, 202, 0, 3, a, b, c, d, 1, 4, b'n', b'a', b'm', b'e', 0, 0]);
    packet
}

/// Protects a copy of `clear`.
pub fn protected(sender: &mut Protector, clear: &[u8]) -> Vec<u8> {
    let mut packet = clear.to_vec();
    sender.protect(&mut packet).unwrap();
    packet
}

/// Protects a copy of the report `clear`.
pub fn protected_report(sender: &mut SrtcpProtector, clear: &[u8]) -> Vec<u8> {
    let mut packet = clear.to_vec();
    sender.protect(&mut packet).unwrap();
    packet
}

/// Unprotects a copy of `packet`.
pub fn opened(receiver: &mut Unprotector, packet: &[u8]) -> Result<Vec<u8>, UnprotectError> {
    let mut packet = packet.to_vec();
    let len = receiver.unprotect(&mut packet)?;
    packet.truncate(len);
    Ok(packet)
}

/// Unprotects a copy of the report `packet`.
pub fn opened_report(
    receiver: &mut SrtcpUnprotector,
    packet: &[u8],
) -> Result<Vec<u8>, UnprotectError> {
    let mut packet = packet.to_vec();
    let len = receiver.unprotect(&mut packet)?;
    packet.truncate(len);
    Ok(packet)
}
