//! Keys in the description (`a=crypto`, RFC 4568): the line as written, and its meaning for SRTP.

use core::fmt;

use zeroize::{Zeroize, Zeroizing};

use super::crypto_error::{CryptoError, KeyError};
use super::crypto_key::{InlineKey, read_keys, write_keys};
use super::crypto_session::{SessionParameters, Shown};
use super::line::{next, number_of};
use super::warning::Problem;

/// An `a=crypto` line: a cipher suite and keys for it.
///
/// The fields contain the line as written, even if it is not valid for SRTP; [`keys`](Self::keys)
/// and [`session`](Self::session) interpret it.
///
/// `Debug` prints no key. Key and session parameters are overwritten with zeros when they are
/// dropped. The caller has to erase the text of the description, after reading or writing it.
#[derive(Clone, Eq, PartialEq)]
pub struct Crypto {
    /// A number that distinguishes the lines of one media; at most nine digits.
    pub tag: u32,
    /// The cipher suite, such as `AES_CM_128_HMAC_SHA1_80`.
    pub suite: String,
    /// The key parameters, such as `inline:` and a master key with its salt in base64.
    pub key_params: String,
    /// The session parameters, such as `KDR=16` or `UNENCRYPTED_SRTCP`.
    pub session_params: Vec<String>,
}

impl Crypto {
    /// Creates the line that offers `keys` for `suite`.
    ///
    /// # Errors
    /// Those of [`valid`](Self::valid) for the line.
    pub fn new(
        tag: u32,
        suite: &str,
        keys: &[InlineKey],
        session: &SessionParameters,
    ) -> Result<Self, CryptoError> {
        if keys.is_empty() {
            return Err(CryptoError::Key { key: 1, reason: KeyError::Missing });
        }
        let mut key_params = Zeroizing::new(String::new());
        write_keys(&mut key_params, keys);
        let line = Self {
            tag,
            suite: suite.to_owned(),
            key_params: core::mem::take(&mut *key_params),
            session_params: session.write(),
        };
        line.valid()?;
        Ok(line)
    }

    /// Returns the master keys (section 6.1), at most [`CRYPTO_KEYS_MAX`](super::CRYPTO_KEYS_MAX).
    ///
    /// The caller must check that the suite allows their length and lifetime. The padding of
    /// base64, which the RFC requires, may be missing.
    ///
    /// # Errors
    /// [`CryptoError::Key`], with the number of the invalid key and the reason.
    pub fn keys(&self) -> Result<Vec<InlineKey>, CryptoError> {
        read_keys(&self.key_params).map_err(|(key, reason)| CryptoError::Key { key, reason })
    }

    /// Returns the session parameters (section 6.3). Unknown parameters that begin with `-` are
    /// ignored, as section 6.3.7 allows.
    ///
    /// # Errors
    /// [`CryptoError::UnknownParameter`] for any other unknown parameter, which makes the line
    /// invalid; [`CryptoError::Parameter`], [`CryptoError::FecKey`] and
    /// [`CryptoError::RepeatedParameter`] for known parameters that are invalid.
    pub fn session(&self) -> Result<SessionParameters, CryptoError> {
        SessionParameters::read(&self.session_params)
    }

    /// Returns keys and session parameters together.
    ///
    /// # Errors
    /// [`CryptoError::Tag`] and [`CryptoError::Suite`] if these do not fit the grammar of section
    /// 9.1, the errors of [`keys`](Self::keys) and [`session`](Self::session), and
    /// [`KeyError::RepeatedKey`] for a key of `FEC_KEY` that is also one of the master keys
    /// (section 6.3.5).
    pub fn valid(&self) -> Result<ValidCrypto<'_>, CryptoError> {
        if self.tag > 999_999_999 {
            return Err(CryptoError::Tag(self.tag));
        }
        let mut letters = self.suite.bytes();
        if self.suite.is_empty() || !letters.all(|one| one.is_ascii_alphanumeric() || one == b'_') {
            return Err(CryptoError::Suite);
        }
        let (keys, session) = (self.keys()?, self.session()?);
        let mut fec_keys = session.fec_keys.iter();
        let repeated =
            fec_keys.position(|fec| keys.iter().any(|key| key.key_and_salt == fec.key_and_salt));
        if let Some(index) = repeated {
            return Err(CryptoError::FecKey { key: index + 1, reason: KeyError::RepeatedKey });
        }
        Ok(ValidCrypto { line: self, keys, session })
    }

    pub(super) fn parse(value: &str) -> Result<Self, Problem> {
        let mut fields = value.split_ascii_whitespace();
        let tag = next(&mut fields, "the tag of a=crypto")?;
        if tag.len() > 9 {
            return Err(Problem::Malformed("the tag of a=crypto"));
        }
        let tag = number_of(tag, "the tag of a=crypto")?;
        let suite = next(&mut fields, "the suite of a=crypto")?.to_owned();
        let what = "the key parameters of a=crypto";
        let key_params = next(&mut fields, what)?;
        if !key_params.split(';').all(|part| part.contains(':')) {
            return Err(Problem::Malformed(what));
        }
        let session_params = fields.map(str::to_owned).collect();
        Ok(Self { tag, suite, key_params: key_params.to_owned(), session_params })
    }

    fn erase(&mut self) {
        self.key_params.zeroize();
        self.session_params.zeroize();
    }
}

impl Drop for Crypto {
    fn drop(&mut self) {
        self.erase();
    }
}

impl fmt::Debug for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session_params: Vec<_> = self.session_params.iter().map(|text| Shown(text)).collect();
        f.debug_struct("Crypto")
            .field("tag", &self.tag)
            .field("suite", &self.suite)
            .field("key_params", &format_args!("(secret)"))
            .field("session_params", &session_params)
            .finish()
    }
}

/// An `a=crypto` line that is valid for SRTP, with its keys and session parameters.
///
/// `Debug` prints no key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ValidCrypto<'a> {
    /// The line, which contains the suite and the tag for the answer.
    pub line: &'a Crypto,
    /// The master keys: one, or several that each have an MKI.
    pub keys: Vec<InlineKey>,
    /// The session parameters.
    pub session: SessionParameters,
}

impl<'a> ValidCrypto<'a> {
    /// Returns the first of `lines` that is valid and for which `accepts` returns true.
    pub(super) fn first(
        lines: &'a [Crypto],
        mut accepts: impl FnMut(&ValidCrypto<'a>) -> bool,
    ) -> Option<Self> {
        lines.iter().enumerate().find_map(|(index, line)| {
            let valid = line.valid().ok().filter(&mut accepts)?;
            let repeated = lines[..index].iter().any(|other| other.tag == line.tag);
            (!repeated).then_some(valid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_an_erased_line() {
        let key_params = "inline:QUFB".to_owned();
        let session_params = vec!["FEC_KEY=inline:QkJC".to_owned()];
        let mut line = Crypto { tag: 1, suite: "X".to_owned(), key_params, session_params };
        line.erase();
        assert!(line.key_params.is_empty() && line.session_params.is_empty());
    }
}
