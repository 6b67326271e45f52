//! Names of the cipher suites that an `a=crypto` line may ask for.
//!
//! A name here is a known one, which does not say that Rushes supports it: `F8_128_HMAC_SHA1_80`
//! is known and not supported. How long key and salt of a suite are is for SRTP to know.

/// AES in counter mode with a tag of 80 bits (RFC 4568 section 6.2.1).
pub const AES_CM_128_HMAC_SHA1_80: &str = "AES_CM_128_HMAC_SHA1_80";
/// AES in counter mode with a tag of 32 bits (RFC 4568 section 6.2.2).
pub const AES_CM_128_HMAC_SHA1_32: &str = "AES_CM_128_HMAC_SHA1_32";
/// AES in f8 mode with a tag of 80 bits (RFC 4568 section 6.2.3); not supported.
///
/// The grammar in section 9.2 calls it `F8_128_HMAC_SHA1_32`, which nothing defines.
pub const F8_128_HMAC_SHA1_80: &str = "F8_128_HMAC_SHA1_80";
/// AES with 192 bits in counter mode with a tag of 80 bits (RFC 6188 section 4).
pub const AES_192_CM_HMAC_SHA1_80: &str = "AES_192_CM_HMAC_SHA1_80";
/// AES with 192 bits in counter mode with a tag of 32 bits (RFC 6188 section 4).
pub const AES_192_CM_HMAC_SHA1_32: &str = "AES_192_CM_HMAC_SHA1_32";
/// AES with 256 bits in counter mode with a tag of 80 bits (RFC 6188 section 4).
pub const AES_256_CM_HMAC_SHA1_80: &str = "AES_256_CM_HMAC_SHA1_80";
/// AES with 256 bits in counter mode with a tag of 32 bits (RFC 6188 section 4).
pub const AES_256_CM_HMAC_SHA1_32: &str = "AES_256_CM_HMAC_SHA1_32";
/// AES with 128 bits in Galois/counter mode (RFC 7714 section 14.1).
pub const AEAD_AES_128_GCM: &str = "AEAD_AES_128_GCM";
/// AES with 256 bits in Galois/counter mode (RFC 7714 section 14.1).
pub const AEAD_AES_256_GCM: &str = "AEAD_AES_256_GCM";

/// All names above.
pub const KNOWN: [&str; 9] = [
    AES_CM_128_HMAC_SHA1_80,
    AES_CM_128_HMAC_SHA1_32,
    F8_128_HMAC_SHA1_80,
    AES_192_CM_HMAC_SHA1_80,
    AES_192_CM_HMAC_SHA1_32,
    AES_256_CM_HMAC_SHA1_80,
    AES_256_CM_HMAC_SHA1_32,
    AEAD_AES_128_GCM,
    AEAD_AES_256_GCM,
];
