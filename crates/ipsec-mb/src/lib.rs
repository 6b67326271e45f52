//! AES-GCM and AES in counter mode by Intel's library ipsec-mb, if it is installed.
//!
//! **What it is.** ipsec-mb has kernels for processors with vector AES (VAES with AVX-512) that take
//! half the time of those in general libraries for packets of 1 400 octets. This crate loads it at
//! run time (Debian's package `libipsec-mb1`), checks its version, and calls it. Nothing of it is
//! needed to build.
//!
//! **What it is not.** It implements no cipher, and does nothing where the library, or such a
//! processor, is missing: [`Library::get`] says why, and the caller uses another library.
//!
//! ```
//! use rushes_ipsec_mb::{Gcm, Library};
//!
//! match Library::get() {
//!     Ok(library) => {
//!         let key = Gcm::new(library, &[7; 16]).expect("a key of 16 octets");
//!         let mut sealed = [0; 5 + 16];
//!         assert!(key.seal([0; 12], b"header", &mut [], b"hello", &mut sealed));
//!     }
//!     Err(why) => println!("{why}"),
//! }
//! ```
//!
//! # Map
//!
//! | file | contents |
//! |---|---|
//! | `library.rs` | the library loaded, its structures, and every call of it: the only unsafe code |
//! | `absent.rs` | other systems and processors: no library |
#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "absent.rs"]
mod library;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[allow(unsafe_code, reason = "loads a library written in C, and calls it")]
mod library;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[doc(hidden)]
pub use library::LAYOUT;
pub use library::{CounterMode, Gcm, Library};

use std::fmt;

use thiserror::Error;

/// Octets in a nonce of AES-GCM.
pub const NONCE_LEN: usize = 12;

/// Octets in a tag of AES-GCM.
pub const TAG_LEN: usize = 16;

/// Octets in a block of AES.
pub const BLOCK_LEN: usize = 16;

/// The version of the library.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version {
    /// The first part; versions with another one have other structures.
    pub major: u8,
    /// The second part.
    pub minor: u8,
    /// The third part.
    pub patch: u8,
}

impl Version {
    /// The first and second parts of the versions whose structures were compared with those here: they
    /// agree in all that is used. 1.3 is the one of Debian 12.
    pub const KNOWN: [(u8, u8); 4] = [(1, 3), (1, 4), (1, 5), (2, 0)];

    /// Returns whether the structures of this version are known here, as those of the versions
    /// [`KNOWN`](Self::KNOWN).
    #[must_use]
    pub fn is_known(self) -> bool {
        Self::KNOWN.contains(&(self.major, self.minor))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The reason why the library cannot be used.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum Unavailable {
    /// This system or processor is another one than Linux on x86-64.
    #[error("ipsec-mb is used on Linux on x86-64 only")]
    Platform,
    /// The library is not installed, or lacks a function.
    #[error("ipsec-mb is not installed. Try: apt install libipsec-mb1")]
    NotFound,
    /// The library has a version whose structures are not known here.
    #[error("ipsec-mb {0} is not known: 1.3, 1.4, 1.5 and 2.0 are")]
    Version(Version),
    /// The processor lacks VAES, VPCLMULQDQ or AVX-512, without which the library is not faster.
    #[error("this processor has no vector AES with AVX-512")]
    Processor,
    /// The library was built without the option that erases keys from registers and stacks.
    #[error("this build of ipsec-mb does not erase keys (SAFE_DATA)")]
    Erasure,
    /// The library refused to start, or its test of itself has failed.
    #[error("ipsec-mb could not be started")]
    Refused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_with_other_structures_are_refused() {
        let version = |major, minor, patch| Version { major, minor, patch };
        let known = [version(1, 3, 0), version(1, 5, 9), version(2, 0, 2)];
        assert!(known.into_iter().all(Version::is_known));
        let unknown = [(1, 2, 9), (0, 55, 0), (1, 6, 0), (2, 1, 0), (3, 0, 0)];
        assert!(!unknown.into_iter().any(|(a, b, c)| version(a, b, c).is_known()));
        let text = Unavailable::Version(version(1, 2, 1)).to_string();
        let known = Version::KNOWN.map(|(major, minor)| format!("{major}.{minor}"));
        let (last, others) = known.split_last().unwrap();
        let known = format!("{} and {last}", others.join(", "));
        assert_eq!(text, format!("ipsec-mb 1.2.1 is not known: {known} are"));
    }
}
