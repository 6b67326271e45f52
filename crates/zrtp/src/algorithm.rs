//! The algorithms that Hello offers and Commit selects, by their type blocks of four characters
//! (RFC 6189 sections 5.1.2 to 5.1.6).

use std::fmt::Debug;

use super::error_code::ErrorCode;

/// Maximum number of algorithms of one kind in a Hello.
pub const LIST_LEN_MAX: usize = 7;

/// A kind of algorithms, each of which has a type block.
pub trait Algorithm: Copy + Debug + Eq + 'static {
    /// The algorithms that every endpoint supports, listed or not.
    const MANDATORY: &'static [Self];
    /// The error that answers a Commit with an unknown algorithm of this kind.
    const UNSUPPORTED: ErrorCode;
    /// The value of the unused places in a list.
    const FILLER: Self;

    /// Returns the type block.
    fn code(self) -> [u8; 4];

    /// Returns the algorithm of a type block; `None` if it is unknown.
    fn from_code(code: [u8; 4]) -> Option<Self>;
}

/// Defines an enum of algorithms from rows of name, type block and meaning.
macro_rules! algorithms {
    ($(#[$doc:meta])* $kind:ident, [$first:ident $(, $more:ident)*], $error:ident;
     $($name:ident = $code:literal, $meaning:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $kind {
            $(#[doc = concat!($meaning, ".")] $name,)*
        }

        impl $kind {
            /// All known algorithms of this kind.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }

        impl Algorithm for $kind {
            const MANDATORY: &'static [Self] = &[Self::$first $(, Self::$more)*];
            const UNSUPPORTED: ErrorCode = ErrorCode::$error;
            const FILLER: Self = Self::$first;

            fn code(self) -> [u8; 4] {
                match self {
                    $(Self::$name => *$code,)*
                }
            }

            fn from_code(code: [u8; 4]) -> Option<Self> {
                match &code {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

algorithms! {
    /// The negotiated hash, which is also that of the MACs (RFC 6189 section 5.1.2).
    Hash, [S256], HashType;
    S256 = b"S256", "SHA-256";
    S384 = b"S384", "SHA-384";
}

impl Hash {
    /// Returns the octets of a hash value.
    #[allow(clippy::len_without_is_empty, reason = "a hash value is never empty")]
    pub const fn len(self) -> usize {
        match self {
            Self::S256 => 32,
            Self::S384 => 48,
        }
    }
}

algorithms! {
    /// The block cipher of Confirm messages and of SRTP (RFC 6189 section 5.1.3).
    Cipher, [Aes1], CipherType;
    Aes1 = b"AES1", "AES with 128-bit keys";
    Aes2 = b"AES2", "AES with 192-bit keys";
    Aes3 = b"AES3", "AES with 256-bit keys";
}

impl Cipher {
    /// Returns the octets of a key.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes1 => 16,
            Self::Aes2 => 24,
            Self::Aes3 => 32,
        }
    }
}

algorithms! {
    /// The authentication tag of SRTP (RFC 6189 section 5.1.4).
    AuthTag, [Hs32, Hs80], AuthTag;
    Hs32 = b"HS32", "32-bit tag of HMAC-SHA1";
    Hs80 = b"HS80", "80-bit tag of HMAC-SHA1";
    Sk32 = b"SK32", "32-bit tag of Skein-512-MAC";
    Sk64 = b"SK64", "64-bit tag of Skein-512-MAC";
}

impl AuthTag {
    /// Returns the octets of a tag.
    pub const fn tag_len(self) -> usize {
        match self {
            Self::Hs32 | Self::Sk32 => 4,
            Self::Sk64 => 8,
            Self::Hs80 => 10,
        }
    }

    /// Returns the octets of a key.
    pub const fn key_len(self) -> usize {
        match self {
            Self::Hs32 | Self::Hs80 => 20,
            Self::Sk32 | Self::Sk64 => 32,
        }
    }
}

algorithms! {
    /// The rendering of the short authentication string (RFC 6189 section 5.1.6).
    SasType, [B32], SasScheme;
    B32 = b"B32 ", "Four characters of base32";
    B256 = b"B256", "Two words of the PGP word list";
}

/// Up to seven algorithms of one kind, the preferred one first (RFC 6189 section 5.2).
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmList<T> {
    items: [T; LIST_LEN_MAX],
    len: usize,
}

impl<T: Algorithm> AlgorithmList<T> {
    /// The empty list, which means only the mandatory algorithms.
    pub const EMPTY: Self = Self { items: [T::FILLER; LIST_LEN_MAX], len: 0 };

    /// Creates a list of `items`; `None` if there are more than [`LIST_LEN_MAX`].
    pub fn new(items: &[T]) -> Option<Self> {
        let mut list = Self::EMPTY;
        list.items.get_mut(..items.len())?.copy_from_slice(items);
        list.len = items.len();
        Some(list)
    }

    /// Appends `item`; returns `false` if the list is full.
    pub fn push(&mut self, item: T) -> bool {
        let place = self.items.get_mut(self.len);
        let free = place.is_some();
        if let Some(place) = place {
            *place = item;
            self.len += 1;
        }
        free
    }

    /// Returns the algorithms as listed.
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.len).unwrap_or_default()
    }

    /// Returns the algorithms as listed, then the mandatory ones that are not listed (RFC 6189
    /// section 5.2: "implicitly added to the end of the list").
    pub fn with_mandatory(&self) -> impl Iterator<Item = T> {
        let missing = T::MANDATORY.iter().filter(|item| !self.as_slice().contains(item));
        self.as_slice().iter().chain(missing).copied()
    }
}

impl<T: Algorithm> Default for AlgorithmList<T> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl<T: Algorithm> PartialEq for AlgorithmList<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Algorithm> Eq for AlgorithmList<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives<T: Algorithm>(all: &[T]) {
        for &algorithm in all {
            assert_eq!(T::from_code(algorithm.code()), Some(algorithm));
        }
    }

    #[test]
    fn every_algorithm_survives_its_code() {
        survives(Hash::ALL);
        survives(Cipher::ALL);
        survives(AuthTag::ALL);
        survives(SasType::ALL);
    }

    #[test]
    fn codes_that_are_not_built_are_unknown() {
        assert_eq!(Hash::from_code(*b"N256"), None);
        assert_eq!(Hash::from_code(*b"N384"), None);
        assert_eq!(Cipher::from_code(*b"2FS1"), None);
        assert_eq!(SasType::from_code(*b"B32\0"), None);
    }

    #[test]
    fn a_list_takes_seven_and_no_more() {
        let mut list = AlgorithmList::EMPTY;
        for _ in 0..7 {
            assert!(list.push(Cipher::Aes3));
        }
        assert!(!list.push(Cipher::Aes1));
        assert_eq!(list.as_slice(), [Cipher::Aes3; 7]);
        assert_eq!(AlgorithmList::new(&[Cipher::Aes1; 8]), None);
    }

    #[test]
    fn mandatory_algorithms_are_last_unless_listed() {
        let list = AlgorithmList::new(&[AuthTag::Sk64, AuthTag::Hs80]).unwrap();
        let all: Vec<_> = list.with_mandatory().collect();
        assert_eq!(all, [AuthTag::Sk64, AuthTag::Hs80, AuthTag::Hs32]);
        assert_eq!(AlgorithmList::<Hash>::EMPTY.with_mandatory().next(), Some(Hash::S256));
    }
}
