//! Keys in the description (`a=crypto`, RFC 4568), taken apart but not understood.

use core::fmt;

use super::error::SdpError;
use super::line::Line;

/// An `a=crypto` line: a cipher suite and a key for it.
///
/// `Debug` does not print the key.
#[derive(Clone, Eq, PartialEq)]
pub struct Crypto {
    /// Tells the lines of one media apart; up to nine digits.
    pub tag: u32,
    /// The cipher suite, such as `AES_CM_128_HMAC_SHA1_80`.
    pub suite: String,
    /// The key parameters, such as `inline:` and a master key with its salt in base64.
    pub key_params: String,
    /// The session parameters, such as `KDR=16` or `UNENCRYPTED_SRTCP`.
    pub session_params: Vec<String>,
}

impl Crypto {
    pub(super) fn parse(line: Line<'_>, value: &str) -> Result<Self, SdpError> {
        let mut fields = value.split_ascii_whitespace();
        let mut next = |what| fields.next().ok_or_else(|| line.malformed(what));
        let tag = next("the tag of a=crypto")?;
        if tag.len() > 9 {
            return Err(line.malformed("the tag of a=crypto"));
        }
        let tag = line.number(tag, "the tag of a=crypto")?;
        let suite = next("the suite of a=crypto")?.to_owned();
        let key_params = next("the key parameters of a=crypto")?;
        if !key_params.split(';').all(|part| part.contains(':')) {
            return Err(line.malformed("the key parameters of a=crypto"));
        }
        let session_params = fields.map(str::to_owned).collect();
        Ok(Self { tag, suite, key_params: key_params.to_owned(), session_params })
    }
}

impl fmt::Debug for Crypto {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crypto")
            .field("tag", &self.tag)
            .field("suite", &self.suite)
            .field("key_params", &format_args!("(secret)"))
            .field("session_params", &self.session_params)
            .finish()
    }
}
