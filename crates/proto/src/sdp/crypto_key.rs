//! Master keys in the description (`inline:`, RFC 4568 section 6.1).

use core::fmt;
use core::fmt::Write;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use zeroize::Zeroizing;

use super::crypto_error::KeyError;
use super::line::number;
use super::{CRYPTO_KEYS_MAX, KEY_AND_SALT_LEN_MAX, LIFETIME_MAX, MKI_LEN_MAX};

/// Padding is written, but optional when reading, because some peers omit it. Unused bits in the
/// last character must be zero; otherwise the key was truncated.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Maximum number of characters in the base64 of [`KEY_AND_SALT_LEN_MAX`] octets.
const BASE64_LEN_MAX: usize = KEY_AND_SALT_LEN_MAX.div_ceil(3) * 4;
/// Maximum number of other characters: the method, the lifetime and an MKI of 309 digits.
const REST_LEN_MAX: usize = 350;

/// One master key of an `a=crypto` line (RFC 4568 section 6.1).
///
/// `Debug` does not print it. Key and salt are overwritten with zeros when they are dropped.
#[derive(Clone, Eq, PartialEq)]
pub struct InlineKey {
    /// The master key followed by the master salt: 1 to [`KEY_AND_SALT_LEN_MAX`] octets. The
    /// required length, and where the salt begins, depend on the suite.
    pub key_and_salt: Zeroizing<Vec<u8>>,
    /// Maximum number of SRTP packets, and of SRTCP packets, that the key may protect: 1 to
    /// [`LIFETIME_MAX`]. If absent, the maximum of the suite applies.
    pub lifetime: Option<u64>,
    /// The identifier of the key in packets. Each of several keys has one, all of the same length.
    pub mki: Option<Mki>,
}

impl InlineKey {
    /// Creates a key from a master key followed by its salt, without lifetime and MKI.
    ///
    /// The octets are copied; the caller has to erase the originals.
    pub fn new(key_and_salt: &[u8]) -> Self {
        let key_and_salt = Zeroizing::new(key_and_salt.to_vec());
        Self { key_and_salt, lifetime: None, mki: None }
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let (method, info) = text.split_once(':').ok_or(KeyError::Method)?;
        if !method.eq_ignore_ascii_case("inline") {
            return Err(KeyError::Method);
        }
        let mut fields = info.split('|').peekable();
        let key_and_salt = read_base64(fields.next().unwrap_or_default())?;
        // Only the MKI contains a colon; the lifetime before it is optional.
        let lifetime = fields.next_if(|field| !field.contains(':'));
        let lifetime = lifetime.map(|text| read_lifetime(text).ok_or(KeyError::Lifetime));
        let mki = fields.next_if(|field| field.contains(':')).map(Mki::read);
        let key = Self { key_and_salt, lifetime: lifetime.transpose()?, mki: mki.transpose()? };
        if fields.next().is_some() { Err(KeyError::Fields) } else { Ok(key) }
    }

    fn write(&self, to: &mut String) {
        to.push_str("inline:");
        BASE64.encode_string(&*self.key_and_salt, to);
        // Writing to a string cannot fail.
        let _ = match self.lifetime {
            Some(packets) if packets.is_power_of_two() => write!(to, "|2^{}", packets.ilog2()),
            Some(packets) => write!(to, "|{packets}"),
            None => Ok(()),
        };
        if let Some(mki) = &self.mki {
            let _ = write!(to, "|{mki}");
        }
    }
}

impl fmt::Debug for InlineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InlineKey")
            .field("key_and_salt", &format_args!("(secret)"))
            .field("lifetime", &self.lifetime)
            .field("mki", &self.mki)
            .finish()
    }
}

/// Reads the keys of the key parameters `text`; an error has the number of the key, counted from 1.
pub(super) fn read_keys(text: &str) -> Result<Vec<InlineKey>, (usize, KeyError)> {
    let mut keys: Vec<InlineKey> = Vec::new();
    let count = text.split(';').count();
    for (index, text) in text.split(';').enumerate() {
        let at = |reason| (index + 1, reason);
        if index == CRYPTO_KEYS_MAX {
            return Err(at(KeyError::TooMany));
        }
        let key = InlineKey::read(text).map_err(at)?;
        check_among(&key, &keys, count).map_err(at)?;
        keys.push(key);
    }
    Ok(keys)
}

/// Checks `key`, one of `count`, against the keys before it.
fn check_among(key: &InlineKey, before: &[InlineKey], count: usize) -> Result<(), KeyError> {
    if count > 1 && key.mki.is_none() {
        return Err(KeyError::NoMki);
    }
    let len = |key: &InlineKey| key.mki.as_ref().map(|mki| mki.octets().len());
    if before.first().is_some_and(|first| len(first) != len(key)) {
        return Err(KeyError::OtherMkiLength);
    }
    if before.iter().any(|other| other.mki == key.mki) {
        return Err(KeyError::RepeatedMki);
    }
    if before.iter().any(|other| other.key_and_salt == key.key_and_salt) {
        return Err(KeyError::RepeatedKey);
    }
    Ok(())
}

/// Appends `keys` to `text` in new memory that is large enough, so that no copy of a key is left
/// behind.
pub(super) fn write_keys(text: &mut Zeroizing<String>, keys: &[InlineKey]) {
    let len = |key: &InlineKey| key.key_and_salt.len().div_ceil(3) * 4 + REST_LEN_MAX;
    let mut longer = Zeroizing::new(String::new());
    longer.reserve_exact(text.len() + keys.iter().map(len).sum::<usize>());
    longer.push_str(text);
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            longer.push(';');
        }
        key.write(&mut longer);
    }
    *text = longer;
}

fn read_base64(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    if text.is_empty() || text.len() > BASE64_LEN_MAX {
        return Err(KeyError::Length);
    }
    let mut octets = Zeroizing::new(vec![0; text.len()]);
    let len = BASE64.decode_slice(text, &mut octets).map_err(|_| KeyError::Base64)?;
    octets.truncate(len);
    if (1..=KEY_AND_SALT_LEN_MAX).contains(&len) { Ok(octets) } else { Err(KeyError::Length) }
}

fn read_lifetime(text: &str) -> Option<u64> {
    let packets = match text.strip_prefix("2^") {
        Some(exponent) => 1_u64.checked_shl(decimal(exponent)?)?,
        None => decimal(text)?,
    };
    (1..=LIFETIME_MAX).contains(&packets).then_some(packets)
}

/// Reads `text` as a decimal number without leading zeroes.
pub(super) fn decimal<N: core::str::FromStr>(text: &str) -> Option<N> {
    if text.len() > 1 && text.starts_with('0') { None } else { number(text) }
}

/// A master key identifier (RFC 3711 section 3.1): the field that identifies the master key of a
/// packet.
///
/// In the description it is a positive decimal number and a length, such as `1:4`, which `Display`
/// writes. In a packet, it is that number, big-endian, in as many octets as the length.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mki(Vec<u8>);

impl Mki {
    /// Creates the identifier with these octets, as in a packet; `None` unless there are 1 to
    /// [`MKI_LEN_MAX`] octets, not all of them 0, because the number must be positive.
    pub fn new(octets: &[u8]) -> Option<Self> {
        let fits = (1..=MKI_LEN_MAX).contains(&octets.len()) && octets.iter().any(|one| *one != 0);
        fits.then(|| Self(octets.to_vec()))
    }

    /// Returns the octets, as in a packet.
    pub fn octets(&self) -> &[u8] {
        &self.0
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let (value, len) = text.split_once(':').ok_or(KeyError::MkiLength)?;
        let len = decimal(len).filter(|len| (1..=MKI_LEN_MAX).contains(len));
        let len = len.ok_or(KeyError::MkiLength)?;
        let mut octets = [0; MKI_LEN_MAX];
        let octets = &mut octets[..len];
        if value.starts_with('0') || read_integer(value, octets).is_none() {
            return Err(KeyError::MkiValue);
        }
        Self::new(octets).ok_or(KeyError::MkiValue)
    }
}

impl fmt::Display for Mki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.clone();
        let mut digits = String::new();
        while rest.iter().any(|octet| *octet != 0) {
            let mut remainder = 0;
            for octet in &mut rest {
                let dividend = remainder << 8 | u16::from(*octet);
                *octet = (dividend / 10) as u8;
                remainder = dividend % 10;
            }
            digits.insert(0, char::from(b'0' + remainder as u8));
        }
        write!(f, "{digits}:{}", self.0.len())
    }
}

/// Reads the decimal number `text` into `octets`, big-endian, which must be 0. Returns `None` if a
/// character is not a digit or the number is too large.
fn read_integer(text: &str, octets: &mut [u8]) -> Option<()> {
    for character in text.chars() {
        let mut carry = character.to_digit(10)?;
        for octet in octets.iter_mut().rev() {
            carry += u32::from(*octet) * 10;
            *octet = carry as u8;
            carry >>= 8;
        }
        if carry != 0 {
            return None;
        }
    }
    Some(())
}
