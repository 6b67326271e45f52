//! Explicit congestion notification (RFC 3168).

/// The explicit congestion notification mark of a packet (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ecn {
    /// Not capable, or unknown.
    #[default]
    NotCapable,
    /// Capable, ECT(1).
    CapableOne,
    /// Capable, ECT(0).
    CapableZero,
    /// Congestion experienced.
    Congestion,
}

impl Ecn {
    /// Returns the codepoint in the lower two bits of `bits`.
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotCapable,
            1 => Self::CapableOne,
            2 => Self::CapableZero,
            _ => Self::Congestion,
        }
    }
}
