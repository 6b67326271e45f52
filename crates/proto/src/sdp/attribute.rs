//! Attributes without a dedicated field.

use core::fmt;

/// An `a=` line as written, such as `a=mid:1`, `a=control:track1` or `a=tool:…`.
///
/// `Debug` does not print the keys in `a=key-mgmt` and in a misplaced `a=crypto`.
#[derive(Clone, Eq, PartialEq)]
pub struct Attribute {
    /// The name, before the first colon.
    pub name: String,
    /// Everything after the first colon; empty if there is none.
    pub value: String,
}

impl Attribute {
    /// Creates the attribute `name` with `value`, which may be empty.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }

    /// Returns the value of the first of `attributes` called `name`, ignoring case.
    pub fn find<'a>(attributes: &'a [Self], name: &str) -> Option<&'a str> {
        let found = attributes.iter().find(|one| one.name.eq_ignore_ascii_case(name))?;
        Some(&found.value)
    }
}

impl fmt::Debug for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = ["key-mgmt", "crypto"].iter().any(|key| self.name.eq_ignore_ascii_case(key));
        let value = if secret { "(secret)" } else { &self.value };
        write!(f, "Attribute({}:{value:?})", self.name)
    }
}

/// A `b=` line: a bandwidth (RFC 8866 section 5.8).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Bandwidth {
    /// The kind of bandwidth, such as `AS`, `TIAS`, `RS` or `RR`.
    pub modifier: String,
    /// The value in the modifier's unit: kilobits per second for `AS` and `CT`, bits per second for
    /// `TIAS`, `RS` and `RR`.
    pub value: u64,
}

impl Bandwidth {
    /// Returns the bandwidth in bits per second; `None` for an unknown modifier.
    pub fn bits_per_second(&self) -> Option<u64> {
        match self.modifier.to_ascii_uppercase().as_str() {
            "AS" | "CT" => Some(self.value.saturating_mul(1000)),
            "TIAS" | "RS" | "RR" => Some(self.value),
            _ => None,
        }
    }
}
