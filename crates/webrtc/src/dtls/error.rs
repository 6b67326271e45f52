//! Errors of certificates, of what descriptions say of DTLS, and of handshakes.

use thiserror::Error;

use super::fingerprint::Fingerprint;

/// The error of a certificate that cannot be made or used.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CertificateError {
    /// No certificate could be made, for example because there were no random numbers.
    #[error("no DTLS certificate could be made")]
    Generation,
    /// The private key is not one of ECDSA in PKCS #8.
    #[error(
        "the private key of the DTLS certificate is not an ECDSA key (P-256 or P-384) in PKCS #8 DER: \
         make one with openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"
    )]
    Key,
    /// The certificate does not contain the public key that belongs to the private key.
    #[error("the DTLS certificate is not that of the private key")]
    Mismatch,
    /// The certificate is too long to send.
    #[error("a DTLS certificate of {len} octets is longer than {limit}")]
    Len {
        /// Octets of the certificate in DER.
        len: usize,
        /// The maximum.
        limit: usize,
    },
}

/// The error of an `a=fingerprint` attribute.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FingerprintError {
    /// The hash function is too weak to tell certificates apart.
    #[error("a fingerprint by {0} can be forged: use sha-256, sha-384 or sha-512")]
    Weak(&'static str),
    /// The hash function is not known.
    #[error("the hash function of the fingerprint is not known: use sha-256, sha-384 or sha-512")]
    UnknownHash,
    /// The digest is not pairs of hexadecimal digits with colons in between, as many as the hash has.
    #[error("a fingerprint by {hash} is {len} pairs of hexadecimal digits with colons in between")]
    Digest {
        /// The hash function.
        hash: &'static str,
        /// Octets of its digests.
        len: usize,
    },
    /// There is no space between the hash function and the digest.
    #[error("a fingerprint is a hash function, a space and a digest, as in \"sha-256 AB:CD:…\"")]
    Malformed,
}

/// The error of an `a=setup` attribute.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the value of a=setup is none of active, passive and actpass")]
pub struct SetupError;

/// Why a handshake failed. No keys were handed out.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DtlsError {
    /// The peer's certificate is not the one that was announced: somebody else answered.
    #[error("the peer's DTLS certificate is not the announced one; its fingerprint is {found}")]
    Fingerprint {
        /// The fingerprint of the certificate that the peer has shown.
        found: Fingerprint,
    },
    /// The peer has shown no certificate, or has none that can be used: one of RSA, for example.
    #[error(
        "the peer has shown no DTLS certificate of ECDSA (P-256 or P-384); one of RSA cannot be used: \
         let the peer make another"
    )]
    NoCertificate,
    /// No fingerprint was announced for the peer, so no certificate can be the right one.
    #[error("no fingerprint of the peer's DTLS certificate is known")]
    NoFingerprint,
    /// The peer refused by a fatal alert.
    #[error("the peer refused the DTLS handshake: alert {description} ({})", alert(*.description))]
    Alert {
        /// The description of the alert (RFC 8446 section 6).
        description: u8,
    },
    /// The peer completed the handshake without an SRTP protection profile of ours.
    #[error("the peer agreed on no SRTP protection profile (RFC 5764)")]
    NoSrtp,
    /// The peer did not answer, or stopped answering.
    #[error("the DTLS handshake was not completed in time")]
    Timeout,
    /// The peer broke the protocol, or the two ends have nothing in common.
    #[error("the DTLS handshake failed: {0}")]
    Handshake(String),
}

/// Returns the name of an alert (RFC 8446 section 6).
fn alert(description: u8) -> &'static str {
    match description {
        10 => "unexpected_message",
        20 => "bad_record_mac",
        40 => "handshake_failure; a certificate of the peer must be of ECDSA, not of RSA",
        42 => "bad_certificate",
        43 => "unsupported_certificate",
        46 => "certificate_unknown",
        47 => "illegal_parameter",
        48 => "unknown_ca",
        50 => "decode_error",
        51 => "decrypt_error",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        109 => "missing_extension",
        116 => "certificate_required",
        _ => "another reason",
    }
}
