//! Encryption of whole header extensions (RFC 9335, "cryptex").
//!
//! The ciphers need contiguous octets, but the extension's profile and length, which stay clear,
//! lie between the contributing sources and the data. The packet is therefore rearranged for the
//! cipher and restored afterwards.

use super::layout::{FIXED_LEN, Layout};

/// Octets in the profile and length of a header extension.
const INTRODUCTION_LEN: usize = 4;

/// Start of the encrypted octets in a rearranged packet.
pub(super) const ENCRYPTED_FROM: usize = FIXED_LEN + INTRODUCTION_LEN;

/// The profiles of RFC 8285, each with its encrypted counterpart.
const PROFILES: [(u16, u16); 2] = [(0xbede, 0xc0de), (0x1000, 0xc2de)];

/// Returns whether a received packet is encrypted with cryptex.
pub(super) fn is_encrypted(layout: &Layout) -> bool {
    let profile = layout.extension.as_ref().map(|(profile, _)| *profile);
    PROFILES.iter().any(|(_, encrypted)| profile == Some(*encrypted))
}

/// Sets the cryptex profile; returns `false` if nothing is to be encrypted or the profile is not
/// one of RFC 8285. A packet with contributing sources and no extension gets an empty extension.
pub(super) fn mark(packet: &mut Vec<u8>, layout: &Layout) -> bool {
    let at = layout.sources_end;
    let clear = match &layout.extension {
        Some((profile, _)) => *profile,
        None if at > FIXED_LEN => {
            packet[0] |= 0x10;
            packet.splice(at..at, [0; INTRODUCTION_LEN]);
            PROFILES[0].0
        }
        None => return false,
    };
    let Some((_, encrypted)) = PROFILES.iter().find(|(known, _)| *known == clear) else {
        return false;
    };
    packet[at..at + 2].copy_from_slice(&encrypted.to_be_bytes());
    true
}

/// Restores the profile of a decrypted packet.
pub(super) fn unmark(packet: &mut [u8], layout: &Layout) {
    let at = layout.sources_end;
    let profile = layout.extension.as_ref().map(|(profile, _)| *profile);
    if let Some((clear, _)) = PROFILES.iter().find(|(_, known)| profile == Some(*known)) {
        packet[at..at + 2].copy_from_slice(&clear.to_be_bytes());
    }
}

/// Moves the extension's profile and length before the contributing sources.
pub(super) fn rearrange(packet: &mut [u8], sources_end: usize) {
    packet[FIXED_LEN..sources_end + INTRODUCTION_LEN].rotate_right(INTRODUCTION_LEN);
}

/// Reverts [`rearrange`].
pub(super) fn restore(packet: &mut [u8], sources_end: usize) {
    packet[FIXED_LEN..sources_end + INTRODUCTION_LEN].rotate_left(INTRODUCTION_LEN);
}
