//! Which library computes the ciphers.

use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

/// The library that computes AES-GCM and AES in counter mode.
///
/// All give the same results; they differ in speed. Tags of HMAC-SHA1 are those of aws-lc and of
/// `rushes-sha1`, other hashes and key agreements those of aws-lc.
///
/// ```
/// use rushes_crypto::Backend;
///
/// println!("{}", Backend::current()); // aws-lc, or ipsec-mb and its version
/// if let Err(why) = Backend::IpsecMb.check() {
///     println!("{why}");
/// }
/// Backend::AwsLc.choose()?; // for keys from now on
/// # Ok::<(), rushes_crypto::BackendError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Backend {
    /// aws-lc, which is built in.
    AwsLc,
    /// Intel's ipsec-mb, if Rushes is built with the feature `ipsec-mb` and the library is installed.
    IpsecMb,
}

/// Why a [`Backend`] cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// This build is without it.
    #[error("this build has no ipsec-mb. Try: cargo build --features ipsec-mb")]
    NotBuilt,
    /// The library is missing here, or of no use.
    #[cfg(feature = "ipsec-mb")]
    #[error(transparent)]
    Unavailable(#[from] rushes_ipsec_mb::Unavailable),
    /// The library's results are not those of aws-lc.
    #[cfg(feature = "ipsec-mb")]
    #[error("the installed ipsec-mb computes wrong ciphertexts")]
    Wrong,
}

/// The choice for keys that are made from now on: 0 for none yet, otherwise one more than a
/// [`Backend`].
static CHOICE: AtomicU8 = AtomicU8::new(0);

impl Backend {
    /// Returns the library that computes the ciphers of keys made from now on: the one that was
    /// [chosen](Self::choose), by default the fastest that is available.
    pub fn current() -> Self {
        match CHOICE.load(Ordering::Relaxed) {
            1 => Self::AwsLc,
            2 => Self::IpsecMb,
            _ => {
                let fastest =
                    if Self::IpsecMb.check().is_ok() { Self::IpsecMb } else { Self::AwsLc };
                // Another thread's choice stays.
                let mark = fastest as u8 + 1;
                let _ = CHOICE.compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
                if CHOICE.load(Ordering::Relaxed) == 2 { Self::IpsecMb } else { Self::AwsLc }
            }
        }
    }

    /// Makes this library compute the ciphers of all keys that are made from now on, in the whole
    /// process. Keys that exist keep theirs.
    ///
    /// # Errors
    /// [`BackendError`] if the library cannot be used; the choice is then as before.
    pub fn choose(self) -> Result<(), BackendError> {
        self.check()?;
        CHOICE.store(self as u8 + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Returns why this library cannot be used.
    ///
    /// The first call loads it and compares its results with those of aws-lc, in less than ten
    /// milliseconds.
    ///
    /// # Errors
    /// [`BackendError`], the same at each call.
    pub fn check(self) -> Result<(), BackendError> {
        match self {
            Self::AwsLc => Ok(()),
            Self::IpsecMb => ipsec_mb(),
        }
    }
}

#[cfg(not(feature = "ipsec-mb"))]
fn ipsec_mb() -> Result<(), BackendError> {
    Err(BackendError::NotBuilt)
}

#[cfg(feature = "ipsec-mb")]
fn ipsec_mb() -> Result<(), BackendError> {
    use std::sync::OnceLock;
    static OUTCOME: OnceLock<Result<(), BackendError>> = OnceLock::new();
    *OUTCOME.get_or_init(|| {
        rushes_ipsec_mb::Library::get()?;
        if agree() == Some(true) { Ok(()) } else { Err(BackendError::Wrong) }
    })
}

/// Returns whether both libraries give the same results, for lengths of up to 20 blocks and that of
/// a large packet.
#[cfg(feature = "ipsec-mb")]
fn agree() -> Option<bool> {
    use crate::{Aead, CounterMode, TAG_LEN};
    let clear: [u8; 1456] = core::array::from_fn(|n| n as u8 ^ 0x5a);
    let backends = [Backend::AwsLc, Backend::IpsecMb];
    for key in [&clear[..16], &clear[..32]] {
        let [a, b] = backends.map(|backend| Aead::with(backend, key).ok());
        let aeads = [a?, b?];
        let [a, b] = backends.map(|backend| CounterMode::with(backend, key).ok());
        let ciphers = [a?, b?];
        for len in (0..320).step_by(7).chain([1400, 1456]) {
            let source = &clear[..len];
            let mut sealed = [[0; 1456 + TAG_LEN]; 2];
            let mut counted = [clear; 2];
            for n in 0..2 {
                let out = &mut sealed[n][..len + TAG_LEN];
                aeads[n].seal([9; 12], &clear[..12], &mut [], source, out).ok()?;
                ciphers[n].apply([3; 16], &mut counted[n][..len]).ok()?;
            }
            let mut opened = [0; 1456];
            let message = &sealed[0][..len + TAG_LEN];
            aeads[1].open_into([9; 12], &clear[..12], message, &mut opened[..len]).ok()?;
            if sealed[0] != sealed[1] || counted[0] != counted[1] || opened[..len] != *source {
                return Some(false);
            }
        }
    }
    Some(true)
}

impl fmt::Display for Backend {
    /// Writes the library's name and, if it is installed separately, its version.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AwsLc => f.write_str("aws-lc"),
            Self::IpsecMb => {
                f.write_str("ipsec-mb")?;
                #[cfg(feature = "ipsec-mb")]
                if let Ok(library) = rushes_ipsec_mb::Library::get() {
                    write!(f, " {}", library.version())?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_that_cannot_be_used_is_refused_and_changes_nothing() {
        let before = Backend::current();
        assert_eq!(before.choose(), Ok(()));
        match Backend::IpsecMb.choose() {
            Ok(()) => assert_eq!(Backend::current(), Backend::IpsecMb),
            Err(why) => {
                assert_eq!(Backend::IpsecMb.check(), Err(why));
                assert_eq!(Backend::current(), Backend::AwsLc);
            }
        }
        assert!(Backend::current().to_string().starts_with(match Backend::current() {
            Backend::AwsLc => "aws-lc",
            Backend::IpsecMb => "ipsec-mb",
        }));
    }
}
