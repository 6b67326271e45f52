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

/// Where SRTP cuts messages: what lies before is encrypted in place, and the rest from elsewhere.
#[cfg(feature = "ipsec-mb")]
const CUTS: [usize; 4] = [0, 5, 16, usize::MAX];

/// Returns whether both libraries give the same results, for lengths of up to 20 blocks and that of
/// a large packet, cut in all ways; `None` if one of them refuses.
#[cfg(feature = "ipsec-mb")]
fn agree() -> Option<bool> {
    let clear: [u8; 1456] = core::array::from_fn(|n| n as u8 ^ 0x5a);
    for len in (0..320).step_by(7).chain([1400, 1456]) {
        for key_len in [16, 24, 32] {
            let (key, source) = (&clear[..key_len], &clear[..len]);
            let counted = counter_modes_agree(key, source)?;
            // AES-GCM is not used with keys of 24 octets.
            if !counted || key_len != 24 && !aeads_agree(key, source)? {
                return Some(false);
            }
        }
    }
    Some(true)
}

#[cfg(feature = "ipsec-mb")]
fn counter_modes_agree(key: &[u8], source: &[u8]) -> Option<bool> {
    let [a, b] =
        [Backend::AwsLc, Backend::IpsecMb].map(|it| crate::CounterMode::with(it, key).ok());
    let (expecting, tested) = (a?, b?);
    let mut expected = source.to_vec();
    expecting.apply([3; 16], &mut expected).ok()?;
    for cut in CUTS {
        let mut place = source.to_vec();
        let written = cut.min(source.len());
        place[written..].fill(0);
        tested.apply_from([3; 16], &mut place, written, &source[written..]).ok()?;
        if place != expected {
            return Some(false);
        }
    }
    let mut place = source.to_vec();
    tested.apply([3; 16], &mut place).ok()?;
    Some(place == expected)
}

#[cfg(feature = "ipsec-mb")]
fn aeads_agree(key: &[u8], source: &[u8]) -> Option<bool> {
    let [a, b] = [Backend::AwsLc, Backend::IpsecMb].map(|it| crate::Aead::with(it, key).ok());
    let (expecting, tested) = (a?, b?);
    let (nonce, header, len) = ([9; 12], [7; 12], source.len());
    let mut expected = vec![0; len + crate::TAG_LEN];
    expecting.seal(nonce, &header, &mut [], source, &mut expected).ok()?;
    for cut in CUTS {
        let mut place = [source, &[0; crate::TAG_LEN]].concat();
        let (head, out) = place.split_at_mut(cut.min(len));
        tested.seal(nonce, &header, head, &source[head.len()..], out).ok()?;
        if place != expected {
            return Some(false);
        }
    }
    let mut opened = vec![0; len];
    tested.open_into(nonce, &header, &expected, &mut opened).ok()?;
    tested.open(nonce, &header, &mut expected).ok()?;
    Some(opened == source && expected[..len] == *source)
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

    /// Without the library, the tests of its ciphers would pass without it.
    #[test]
    fn the_library_that_the_tests_are_for_is_used() {
        let is_wanted = std::env::var("RUSHES_CIPHERS").is_ok_and(|value| value == "ipsec-mb");
        let outcome = Backend::IpsecMb.check();
        assert!(!is_wanted || outcome == Ok(()), "{outcome:?}");
        let used = if outcome.is_ok() { Backend::IpsecMb } else { Backend::AwsLc };
        assert_eq!(Backend::current(), used);
    }
}
