//! Session parameters of an `a=crypto` line (RFC 4568 section 6.3).

use core::fmt;

use zeroize::Zeroizing;

use super::crypto_error::CryptoError;
use super::crypto_key::{InlineKey, decimal, read_keys, write_keys};

const KDR: &str = "KDR";
const UNENCRYPTED_SRTP: &str = "UNENCRYPTED_SRTP";
const UNENCRYPTED_SRTCP: &str = "UNENCRYPTED_SRTCP";
const UNAUTHENTICATED_SRTP: &str = "UNAUTHENTICATED_SRTP";
const FEC_ORDER: &str = "FEC_ORDER";
const FEC_KEY: &str = "FEC_KEY";
const WSH: &str = "WSH";
const KNOWN: [&str; 7] =
    [KDR, UNENCRYPTED_SRTP, UNENCRYPTED_SRTCP, UNAUTHENTICATED_SRTP, FEC_ORDER, FEC_KEY, WSH];

/// Maximum length of a printed name or value of an unknown parameter: shorter than any key.
const NAME_LEN_MAX: usize = 24;

/// Deviations of an `a=crypto` line from the defaults of SRTP (RFC 4568 section 6.3).
///
/// The three `un…` parameters are negotiated: an answer repeats those of the line that it accepts.
/// The others are declarative: they describe how the author of the line sends.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "the parameters of the RFC, each on its own")]
pub struct SessionParameters {
    /// `KDR`: session keys are derived again every 2^n packets, n being 0 to 24; if absent, they
    /// are derived once. The range begins at 1 in section 6.3.1, but at 0 in the grammar of section
    /// 9.2.
    pub key_derivation_rate: Option<u8>,
    /// `UNENCRYPTED_SRTP`: SRTP packets are not encrypted.
    pub unencrypted_srtp: bool,
    /// `UNENCRYPTED_SRTCP`: SRTCP packets are not encrypted.
    pub unencrypted_srtcp: bool,
    /// `UNAUTHENTICATED_SRTP`: SRTP packets are not authenticated, which is not recommended.
    pub unauthenticated_srtp: bool,
    /// `FEC_ORDER`: whether forward error correction is applied before or after SRTP.
    pub fec_order: Option<FecOrder>,
    /// `FEC_KEY`: the master keys of a forward error correction stream; empty if absent. Only
    /// allowed if that stream has a separate address or port.
    pub fec_keys: Vec<InlineKey>,
    /// `WSH`: the number of packets that the replay window should hold, at least 64. It is a hint
    /// from the peer; a caller that follows it must limit it.
    pub window_size_hint: Option<u32>,
}

/// Whether forward error correction is applied before or after SRTP (RFC 4568 section 6.3.4).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FecOrder {
    /// `FEC_SRTP`: the sender applies it before SRTP, the receiver after SRTP; the default.
    #[default]
    FecSrtp,
    /// `SRTP_FEC`: the sender applies it after SRTP, the receiver before SRTP.
    SrtpFec,
}

impl FecOrder {
    fn name(self) -> &'static str {
        match self {
            Self::FecSrtp => "FEC_SRTP",
            Self::SrtpFec => "SRTP_FEC",
        }
    }
}

impl SessionParameters {
    pub(super) fn read(texts: &[String]) -> Result<Self, CryptoError> {
        let mut read = Self::default();
        for (index, text) in texts.iter().enumerate() {
            // A dash followed by a known name is an unknown parameter, too.
            if !text.starts_with('-') {
                let (name, _) = split(text);
                let before = texts[..index].iter();
                if before.map(|text| split(text).0).any(|other| other.eq_ignore_ascii_case(name)) {
                    return Err(CryptoError::RepeatedParameter { parameter: index + 1 });
                }
                read.read_one(index + 1, text)?;
            }
        }
        Ok(read)
    }

    fn read_one(&mut self, parameter: usize, text: &str) -> Result<(), CryptoError> {
        let (name, value) = split(text);
        let Some(name) = known(name) else {
            let name = printable(name).unwrap_or("(no name)").to_owned();
            return Err(CryptoError::UnknownParameter { parameter, name });
        };
        let wrong = |expected| CryptoError::Parameter { parameter, name, expected };
        let mut flag = |field: fn(&mut Self) -> &mut bool| {
            *field(self) = true;
            if value.is_none() { Ok(()) } else { Err(wrong("without a value")) }
        };
        match name {
            UNENCRYPTED_SRTP => return flag(|read| &mut read.unencrypted_srtp),
            UNENCRYPTED_SRTCP => return flag(|read| &mut read.unencrypted_srtcp),
            UNAUTHENTICATED_SRTP => return flag(|read| &mut read.unauthenticated_srtp),
            _ => {}
        }
        let value = value.unwrap_or_default();
        match name {
            KDR => {
                let rate = decimal(value).filter(|rate| *rate <= 24);
                self.key_derivation_rate =
                    Some(rate.ok_or_else(|| wrong("a number from 0 to 24"))?);
            }
            WSH => {
                let packets = decimal(value).filter(|packets| *packets >= 64);
                let packets = packets.ok_or_else(|| wrong("a number from 64 to 4294967295"))?;
                self.window_size_hint = Some(packets);
            }
            FEC_ORDER => {
                let mut orders = [FecOrder::FecSrtp, FecOrder::SrtpFec].into_iter();
                let order = orders.find(|order| order.name().eq_ignore_ascii_case(value));
                self.fec_order = Some(order.ok_or_else(|| wrong("FEC_SRTP or SRTP_FEC"))?);
            }
            _ => {
                let keys = read_keys(value);
                self.fec_keys =
                    keys.map_err(|(key, reason)| CryptoError::FecKey { key, reason })?;
            }
        }
        Ok(())
    }

    pub(super) fn write(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(rate) = self.key_derivation_rate {
            texts.push(format!("{KDR}={rate}"));
        }
        let flags = [
            (self.unencrypted_srtp, UNENCRYPTED_SRTP),
            (self.unencrypted_srtcp, UNENCRYPTED_SRTCP),
            (self.unauthenticated_srtp, UNAUTHENTICATED_SRTP),
        ];
        texts.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
        if let Some(order) = self.fec_order {
            texts.push(format!("{FEC_ORDER}={}", order.name()));
        }
        if !self.fec_keys.is_empty() {
            let mut text = Zeroizing::new(format!("{FEC_KEY}="));
            write_keys(&mut text, &self.fec_keys);
            texts.push(core::mem::take(&mut *text));
        }
        if let Some(packets) = self.window_size_hint {
            texts.push(format!("{WSH}={packets}"));
        }
        texts
    }
}

/// A session parameter for `Debug` output, without anything that is or may be a key.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = split(self.0);
        let harmless = |value: &str| value.len() <= NAME_LEN_MAX && known(name) != Some(FEC_KEY);
        match (printable(name), value) {
            (None, _) => f.write_str("(secret)"),
            (Some(name), None) => f.write_str(name),
            (Some(name), Some(value)) if known(name).is_some() && harmless(value) => {
                write!(f, "{name}={}", value.escape_debug())
            }
            (Some(name), Some(_)) => write!(f, "{name}=(secret)"),
        }
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)))
}

fn known(name: &str) -> Option<&'static str> {
    KNOWN.into_iter().find(|known| known.eq_ignore_ascii_case(name))
}

/// Returns `name` if it looks like a name of the RFC and is shorter than any key in base64.
fn printable(name: &str) -> Option<&str> {
    let letters = name.strip_prefix('-').unwrap_or(name).bytes();
    let fits = letters.len() > 0 && name.len() <= NAME_LEN_MAX;
    let mut letters = letters;
    let all = letters.all(|one| one.is_ascii_uppercase() || one.is_ascii_digit() || one == b'_');
    (fits && all || known(name).is_some()).then_some(name)
}
