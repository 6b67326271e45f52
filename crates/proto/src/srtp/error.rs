//! Errors of keys, policies and packets.

use thiserror::Error;

/// Why a master key was refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum KeyError {
    /// Key and salt together have the wrong length.
    #[error("a master key and its salt have {need} octets for this suite, not {have}")]
    Len {
        /// Number of octets that the suite needs.
        need: usize,
        /// Number of octets given.
        have: usize,
    },
    /// The master key identifier is too long.
    #[error("a master key identifier has at most 128 octets, not {have}")]
    Mki {
        /// Number of octets given.
        have: usize,
    },
    /// The lifetime is zero or exceeds the number of packet indices.
    #[error(
        "the lifetime of a master key is outside 1 to 2^48 packets of SRTP or 1 to 2^31 of SRTCP"
    )]
    Lifetime,
}

/// Why a policy or a key was refused.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PolicyError {
    /// An AEAD suite always encrypts and authenticates media (RFC 7714 section 8).
    #[error("media under an AEAD suite is always encrypted and authenticated")]
    AeadIsWhole,
    /// The key derivation rate is out of range.
    #[error("the key derivation rate is outside 2^0 to 2^24")]
    DerivationRate,
    /// The key was made for a suite with other lengths.
    #[error("the master key was made for another suite")]
    KeyOfAnotherSuite,
    /// The master key identifiers of a stream must be distinct and of equal length.
    #[error("the master key identifiers of a stream must be distinct and have the same length")]
    Mki,
    /// The policy allows no source.
    #[error("at least one source must be allowed")]
    NoSources,
    /// The cryptographic library refused a session key.
    #[error("the cryptographic library refused a session key")]
    Refused,
    /// The key was used before: its key stream would repeat, and its lifetime would start again.
    #[error("the master key was used before and must not be used again")]
    SameKey,
    /// Header extensions would be encrypted by both RFC 6904 and RFC 9335.
    #[error("header extensions are encrypted by RFC 6904 or by RFC 9335 (cryptex), not by both")]
    TwiceEncrypted,
    /// The replay window is out of range.
    #[error("a replay window of {packets} packets is outside 128 to 32768")]
    Window {
        /// The requested number of packets.
        packets: usize,
    },
}

/// Why a packet was not protected.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ProtectError {
    /// The lifetime of the master key has ended (RFC 3711 section 9.2).
    #[error("the master key is used up; set another one")]
    Expired,
    /// The packet is not RTP or RTCP, or its header extension is malformed or has a profile of
    /// encrypted extensions (RFC 9335).
    #[error("the packet is malformed and cannot be protected")]
    Malformed,
    /// The sequence number of the packet was used before, or is older than the replay window: the
    /// same key stream must not be used twice.
    #[error("a packet with this sequence number has already been protected")]
    Repeated,
    /// The cryptographic library refused the packet.
    #[error("the cryptographic library refused a packet")]
    Refused,
    /// The policy allows no further source.
    #[error("more sources than the policy allows under one master key")]
    TooManySources,
}

/// Why a received packet was refused. Its index is not recorded as received.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum UnprotectError {
    /// The tag does not match: the packet is forged, damaged, clear, or under another key.
    #[error("authentication failed")]
    Authentication,
    /// The lifetime of the packet's master key has ended (RFC 3711 section 9.2).
    #[error("the packet's master key is used up")]
    Expired,
    /// The packet is too short, or its header reaches past its end.
    #[error("not a protected packet")]
    Malformed,
    /// The packet was received before, or is older than the replay window.
    #[error("the packet is a replay, or older than the replay window")]
    Replayed,
    /// The policy allows no further source.
    #[error("more sources than the policy allows under one master key")]
    TooManySources,
    /// The packet's master key identifier is unknown.
    #[error("the packet's master key identifier is unknown")]
    UnknownKey,
}
