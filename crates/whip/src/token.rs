//! Bearer tokens (RFC 6750).

use std::fmt;
use std::str::FromStr;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Maximum length of a token; the head of a request has a limit of 16 KiB.
const LEN_MAX: usize = 4096;

/// A secret that a client shows to an endpoint in each request (RFC 9725 section 4.7.1).
///
/// It is erased when it is dropped, and its `Debug` form does not contain it.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// The token as text, for an `Authorization` header field.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares with a token that a client sent, in a time that depends on the lengths only.
    pub(crate) fn matches(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl FromStr for Token {
    type Err = TokenError;

    /// Takes visible ASCII characters.
    ///
    /// RFC 6750 section 2.1 has fewer, but services exist whose tokens have colons.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        if text.is_empty() {
            return Err(TokenError::Empty);
        }
        if text.len() > LEN_MAX {
            return Err(TokenError::Long(text.len()));
        }
        match text.chars().find(|c| !c.is_ascii_graphic()) {
            Some(c) => Err(TokenError::Character(c)),
            None => Ok(Self(Zeroizing::new(text.to_owned()))),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a text is not a token.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It has no characters.
    #[error("the token is empty")]
    Empty,
    /// It has this many bytes.
    #[error("the token has {0} characters; the maximum is 4096")]
    Long(usize),
    /// It has a character that is not visible ASCII.
    #[error("the token has the character {0:?}; use letters, digits and ASCII punctuation only")]
    Character(char),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_token_matches() {
        let token: Token = "se:cret".parse().unwrap();
        assert!(token.matches("se:cret"));
        for other in ["", "se:cre", "se:crets", "SE:CRET"] {
            assert!(!token.matches(other), "{other}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }

    #[test]
    fn tokens_that_would_end_a_header_field_are_refused() {
        let error = |text: &str| text.parse::<Token>().unwrap_err();
        assert_eq!(error(""), TokenError::Empty);
        assert_eq!(error("a\r\nX: y"), TokenError::Character('\r'));
        assert_eq!(error("a b"), TokenError::Character(' '));
        assert_eq!(error("é"), TokenError::Character('é'));
        assert_eq!(error(&"a".repeat(4097)), TokenError::Long(4097));
        assert!("a".repeat(4096).parse::<Token>().is_ok());
    }
}
