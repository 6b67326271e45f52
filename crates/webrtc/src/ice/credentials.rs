//! `a=ice-ufrag` and `a=ice-pwd` (RFC 8445 section 5.3, RFC 8839 section 5.4).

use std::fmt;

/// An agent's user name fragment and password.
///
/// `Debug` does not show the password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    ufrag: String,
    password: String,
}

/// What is wrong with credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// Not 4 to 256 characters.
    #[error("ice-ufrag has {0} characters, not 4 to 256")]
    UfragLength(usize),
    /// Not 22 to 256 characters.
    #[error("ice-pwd has {0} characters, not 22 to 256")]
    PasswordLength(usize),
    /// A character other than letters, digits, `+` and `/`.
    #[error("{name} has a character other than letters, digits, + and /")]
    Character {
        /// `ice-ufrag` or `ice-pwd`.
        name: &'static str,
    },
}

/// The characters `ice-char`: 64, so that each carries 6 bits.
const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Octets of randomness behind a user name fragment: 48 bits of the 24 that it must have.
const UFRAG_OCTETS: usize = 6;

impl Credentials {
    /// Octets that [`Credentials::from_random`] takes.
    pub const RANDOM_OCTETS: usize = 24;

    /// Takes over credentials, as a description has them.
    ///
    /// # Errors
    /// If a length or a character is not one of RFC 8445 section 5.3.
    pub fn new(ufrag: &str, password: &str) -> Result<Self, CredentialsError> {
        if !(4..=256).contains(&ufrag.len()) {
            return Err(CredentialsError::UfragLength(ufrag.len()));
        }
        if !(22..=256).contains(&password.len()) {
            return Err(CredentialsError::PasswordLength(password.len()));
        }
        for (name, text) in [("ice-ufrag", ufrag), ("ice-pwd", password)] {
            if !text.bytes().all(|octet| CHARACTERS.contains(&octet)) {
                return Err(CredentialsError::Character { name });
            }
        }
        Ok(Self { ufrag: ufrag.to_owned(), password: password.to_owned() })
    }

    /// Makes credentials from random octets: a fragment of 8 characters (48 bits) and a password of 24
    /// characters (144 bits; RFC 8445 section 5.3 asks for 128).
    ///
    /// The octets must be unpredictable, and new for each session and each restart.
    pub fn from_random(octets: &[u8; Self::RANDOM_OCTETS]) -> Self {
        let (ufrag, password) = octets.split_at(UFRAG_OCTETS);
        Self { ufrag: text(ufrag), password: text(password) }
    }

    /// The user name fragment, `a=ice-ufrag`.
    pub fn ufrag(&self) -> &str {
        &self.ufrag
    }

    /// The password, `a=ice-pwd`.
    pub fn password(&self) -> &str {
        &self.password
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("ufrag", &self.ufrag).finish_non_exhaustive()
    }
}

/// Writes whole groups of three octets as four characters each.
fn text(octets: &[u8]) -> String {
    let groups = octets
        .chunks_exact(3)
        .map(|group| group.iter().fold(0_u32, |bits, octet| bits << 8 | u32::from(*octet)));
    let characters = groups.flat_map(|bits| [18, 12, 6, 0].map(|shift| bits >> shift & 63));
    characters.map(|index| char::from(CHARACTERS[index as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_octets_become_characters_without_a_loss() {
        let zeros = Credentials::from_random(&[0; 24]);
        assert_eq!((zeros.ufrag(), zeros.password()), ("AAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAAAA"));
        let ones = Credentials::from_random(&[0xFF; 24]);
        assert_eq!((ones.ufrag(), ones.password().len()), ("////////", 24));
        assert_eq!(Credentials::new(ones.ufrag(), ones.password()), Ok(ones));
    }

    #[test]
    fn lengths_and_characters_are_those_of_the_rfc() {
        let password = "a".repeat(22);
        let new = |ufrag: &str, password: &str| Credentials::new(ufrag, password).err();
        assert_eq!(new("abcd", &password), None);
        assert_eq!(new("abc", &password), Some(CredentialsError::UfragLength(3)));
        assert_eq!(new(&"a".repeat(257), &password), Some(CredentialsError::UfragLength(257)));
        assert_eq!(new("abcd", &password[1..]), Some(CredentialsError::PasswordLength(21)));
        assert_eq!(new("ab:d", &password), Some(CredentialsError::Character { name: "ice-ufrag" }));
        let spaced = format!("{password} ");
        assert_eq!(new("abcd", &spaced), Some(CredentialsError::Character { name: "ice-pwd" }));
    }

    #[test]
    fn a_password_is_not_printed() {
        let shown = format!("{:?}", Credentials::from_random(&[7; 24]));
        assert!(!shown.contains(Credentials::from_random(&[7; 24]).password()), "{shown}");
    }
}
