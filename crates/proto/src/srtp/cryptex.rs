//! Whole header extensions encrypted (RFC 9335, "cryptex").
//!
//! The ciphers want one run of octets, but the four that introduce the extension stay clear and
//! lie between the contributing sources and the data. So the packet is rearranged meanwhile.

use super::layout::{FIXED_LEN, Layout};

/// Octets that introduce a header extension.
const INTRODUCTION_LEN: usize = 4;

/// Where the encrypted octets begin while a packet is rearranged.
pub(super) const ENCRYPTED_FROM: usize = FIXED_LEN + INTRODUCTION_LEN;

/// The profiles of RFC 8285, and what they are called once encrypted.
const PROFILES: [(u16, u16); 2] = [(0xbede, 0xc0de), (0x1000, 0xc2de)];

/// Whether a received packet is encrypted so.
pub(super) fn is_encrypted(layout: &Layout) -> bool {
    let profile = layout.extension.as_ref().map(|(profile, _)| *profile);
    PROFILES.iter().any(|(_, encrypted)| profile == Some(*encrypted))
}

/// Marks a packet to be encrypted so, giving it an empty extension if it has contributing sources
/// only; `false` if there is nothing to encrypt, or an extension of another kind.
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

/// Gives a decrypted packet its own profile back.
pub(super) fn unmark(packet: &mut [u8], layout: &Layout) {
    let at = layout.sources_end;
    let profile = layout.extension.as_ref().map(|(profile, _)| *profile);
    if let Some((clear, _)) = PROFILES.iter().find(|(_, known)| profile == Some(*known)) {
        packet[at..at + 2].copy_from_slice(&clear.to_be_bytes());
    }
}

/// Moves the extension's introduction before the contributing sources.
pub(super) fn rearrange(packet: &mut [u8], sources_end: usize) {
    packet[FIXED_LEN..sources_end + INTRODUCTION_LEN].rotate_right(INTRODUCTION_LEN);
}

/// Moves it back.
pub(super) fn restore(packet: &mut [u8], sources_end: usize) {
    packet[FIXED_LEN..sources_end + INTRODUCTION_LEN].rotate_left(INTRODUCTION_LEN);
}
