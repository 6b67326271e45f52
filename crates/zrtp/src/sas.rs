//! The short authentication string as displayed to people (RFC 6189 section 5.1.6).

use std::fmt;
use std::fmt::Write as _;

use super::algorithm::SasType;
use super::sas_words::{EVEN, ODD};

/// The alphabet of base32 in RFC 6189.
const ALPHABET: &[u8; 32] = b"ybndrfg8ejkmcpqxot1uwisza345h769";

/// A rendered short authentication string. It is displayed as four characters, or as two words
/// with a space between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sas {
    /// "B32 ": the leftmost 20 bits.
    Base32([char; 4]),
    /// "B256": the leftmost 16 bits, a word for each octet.
    Base256([&'static str; 2]),
}

impl Sas {
    /// Renders `sas_value`, the leftmost 32 bits of the sashash (section 4.5.2).
    pub fn render(sas_type: SasType, sas_value: u32) -> Self {
        match sas_type {
            SasType::B32 => Self::Base32([27, 22, 17, 12].map(|shift| {
                let quintet = sas_value >> shift & 31;
                char::from(ALPHABET[quintet as usize])
            })),
            SasType::B256 => {
                let [even, odd, ..] = sas_value.to_be_bytes();
                Self::Base256([EVEN[usize::from(even)], ODD[usize::from(odd)]])
            }
        }
    }
}

impl fmt::Display for Sas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base32(characters) => {
                characters.iter().try_for_each(|&character| f.write_char(character))
            }
            Self::Base256([even, odd]) => write!(f, "{even} {odd}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn base32_reads_the_leftmost_twenty_bits() {
        let render = |value| Sas::render(SasType::B32, value).to_string();
        assert_eq!(render(0), "yyyy");
        assert_eq!(render(u32::MAX), "9999");
        // The value has the quintets 1, 2, 3 and 4, and twelve bits that are not rendered.
        assert_eq!(render(0x0886_4fff), "bndr");
    }

    #[test]
    fn words_are_those_of_the_pgp_word_list() {
        let render = |value: u32| Sas::render(SasType::B256, value << 16).to_string();
        assert_eq!(render(0x0000), "aardvark adroitness");
        assert_eq!(render(0xffff), "Zulu Yucatan");
        assert_eq!(render(0xe582), "topmost Istanbul");
        assert_eq!(render(0x94f9), "Pluto Waterloo");
        assert_eq!(render(0x8080), "merit intention");
        assert_eq!(render(0x47d5), "dashboard specialist");
    }

    /// Returns the neighbours that are not in alphabetical order.
    fn descents(list: &[&'static str]) -> Vec<[&'static str; 2]> {
        let pairs = list.windows(2).filter_map(|pair| pair.first_chunk::<2>().copied());
        pairs.filter(|[a, b]| a.to_lowercase() >= b.to_lowercase()).collect()
    }

    #[test]
    fn each_list_has_256_words_in_the_order_of_the_alphabet() {
        for list in [&EVEN, &ODD] {
            let words: BTreeSet<_> = list.iter().map(|word| word.to_lowercase()).collect();
            assert_eq!(words.len(), 256);
        }
        assert!(descents(&EVEN).is_empty());
        // In the published list, only this pair is out of order.
        assert_eq!(descents(&ODD), [["applicant", "Apollo"]]);
    }

    #[test]
    fn no_word_is_in_both_lists() {
        let even: BTreeSet<_> = EVEN.into_iter().collect();
        assert!(ODD.iter().all(|word| !even.contains(word)));
    }
}
