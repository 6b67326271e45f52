//! Format parameters: the `name=value; …` of an `a=fmtp` line (RFC 8866 section 6.15).

use core::fmt::Display;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::line::{number_of, trim};
use super::warning::Problem;

/// Parameters without a dedicated field: name and value, in order. An absent value is empty.
pub type OtherParameters = Vec<(String, String)>;

/// Padding is written, as RFC 4648 requires, but optional when reading, because RFC 9328 section
/// 7.2 omits some of it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the parameters in `text`, as of `a=fmtp` after the payload type: names in lower case with
/// their values, of which absent ones are empty.
pub fn parameters(text: &str) -> impl Iterator<Item = (String, &str)> {
    let pairs = text.split(';').map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        (trim(name).to_ascii_lowercase(), trim(value))
    });
    pairs.filter(|(name, _)| !name.is_empty())
}

/// Appends the NAL units in `value`, in base64 and separated by commas, to `units`: all or none.
pub(super) fn read_units(units: &mut Vec<Vec<u8>>, value: &str) -> Result<(), Problem> {
    // Some peers end the list with a comma, or send the parameter without a value.
    let texts = value.split(',').map(trim).filter(|text| !text.is_empty());
    let read: Vec<Vec<u8>> = texts.map(base64).collect::<Result<_, _>>()?;
    units.extend(read);
    Ok(())
}

/// Decodes `text` from base64.
pub(super) fn base64(text: &str) -> Result<Vec<u8>, Problem> {
    BASE64.decode(text).map_err(|_| Problem::Malformed("the base64 of a format parameter"))
}

/// Decodes `text` from hexadecimal to `N` octets.
pub(super) fn base16<const N: usize>(text: &str) -> Result<[u8; N], Problem> {
    let malformed = Problem::Malformed("the hexadecimal number of a format parameter");
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let mut octets = [0; N];
    match digits {
        Some(digits) if digits.len() == 2 * N => {
            for (octet, pair) in octets.iter_mut().zip(digits.chunks_exact(2)) {
                *octet = (pair[0] << 4 | pair[1]) as u8;
            }
            Ok(octets)
        }
        _ => Err(malformed),
    }
}

/// Reads a number of decimal digits from 0 to `max`.
pub(super) fn up_to(text: &str, max: u32) -> Result<u32, Problem> {
    let what = "the number of a format parameter";
    let value: u32 = number_of(text, what)?;
    if value > max { Err(Problem::Malformed(what)) } else { Ok(value) }
}

/// Reads 0 or 1.
pub(super) fn flag(text: &str) -> Result<bool, Problem> {
    Ok(up_to(text, 1)? == 1)
}

/// Writes the parameters of one `a=fmtp` line.
#[derive(Default)]
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn put(&mut self, name: &str, value: impl Display) {
        let text = value.to_string();
        if !self.0.is_empty() {
            self.0.push_str("; ");
        }
        self.0.push_str(name);
        if !text.is_empty() {
            self.0.push('=');
            self.0.push_str(&text);
        }
    }

    /// Writes a parameter that may be absent.
    pub(super) fn put_some(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    /// Writes `name=1` if `value`; an absent flag means 0.
    pub(super) fn put_flag(&mut self, name: &str, value: bool) {
        self.put_some(name, value.then_some(1));
    }

    /// Writes octets in base64.
    pub(super) fn put_base64(&mut self, name: &str, octets: &[u8]) {
        self.put(name, BASE64.encode(octets));
    }

    /// Writes NAL units in base64, separated by commas, if there are any.
    pub(super) fn put_units(&mut self, name: &str, units: &[Vec<u8>]) {
        if !units.is_empty() {
            let units: Vec<String> = units.iter().map(|unit| BASE64.encode(unit)).collect();
            self.put(name, units.join(","));
        }
    }

    /// Writes the other parameters. Separators in them are replaced, so none can inject another.
    pub(super) fn finish(mut self, other: &OtherParameters) -> String {
        for (name, value) in other {
            self.put(&name.replace([';', '='], "_"), value.replace(';', "_"));
        }
        self.0
    }
}
