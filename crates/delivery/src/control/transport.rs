//! Tokens, formats, transports and rates, with their numbers on the wire.

use core::fmt;

/// Sixteen random octets that identify a session, so that no third party can bind its units.
///
/// Comparison takes constant time; `Debug` prints none of it.
#[derive(Clone, Copy, Eq)]
pub struct Token(pub [u8; 16]);

#[allow(clippy::missing_fields_in_debug, reason = "a token is a secret")]
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(other.0).fold(0, |sum, (own, other)| sum | (own ^ other)) == 0
    }
}

/// The transport of units; the numbers are those on the wire.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Transport {
    /// 1: datagrams, each with a unit header.
    Udp,
    /// 2: one connection for each unit.
    Tcp,
    /// 3: RTP packets over UDP.
    Rtp,
    /// 4: datagrams as by [`Udp`](Self::Udp), sent once to a multicast group for all its clients. Only a client
    /// that requests it is offered it.
    Multicast,
}

impl Transport {
    /// Returns the number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Self::Udp => 1,
            Self::Tcp => 2,
            Self::Rtp => 3,
            Self::Multicast => 4,
        }
    }

    /// Returns whether packets are datagrams with unit headers.
    pub fn has_datagrams(self) -> bool {
        matches!(self, Self::Udp | Self::Multicast)
    }

    /// Returns the transport with this number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Udp),
            2 => Some(Self::Tcp),
            3 => Some(Self::Rtp),
            4 => Some(Self::Multicast),
            _ => None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Rtp => "RTP",
            Self::Multicast => "multicast",
        })
    }
}

/// Transports of a client: bit n stands for transport n, 1 to 3, and bit 0 for transport 4.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TransportSet(pub u8);

impl TransportSet {
    /// All transports but multicast, which a client lists only if it requests it.
    pub const ALL: Self = Self(0b1110);

    /// Returns the set with `transport` added.
    pub fn with(self, transport: Transport) -> Self {
        Self(self.0 | Self::bit(transport))
    }

    /// Returns whether `transport` is in it.
    pub fn contains(self, transport: Transport) -> bool {
        self.0 & Self::bit(transport) != 0
    }

    fn bit(transport: Transport) -> u8 {
        match transport {
            Transport::Multicast => 1,
            other => 1 << other.number(),
        }
    }
}

/// What an end can do beyond the first version of this protocol; other bits have no meaning and are kept.
///
/// A client announces its abilities, of which its opening carries five bits; a server offers those of
/// them that it has. An older end announces and offers fewer, or none.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Abilities(pub u8);

impl Abilities {
    /// Bit 0: packets that did not arrive are requested and sent again (UDP).
    pub const RECOVERY: Self = Self(1);
    /// Bit 1: the server may send repair packets, from which packets that did not arrive are computed
    /// (UDP).
    pub const FEC: Self = Self(2);
    /// Bit 2: the server may send packed stripes: reported as unchanged, or as an LZ4 block.
    pub const PACKING: Self = Self(4);
    /// Bit 3: the offer contains what the values of frames stand for
    /// ([`Offer::colour`](super::Offer::colour)).
    pub const COLOUR: Self = Self(8);
    /// Bit 4: the client may request pictures up to a size, to which the server scales them down
    /// ([`Change::size_max`](super::Change::size_max)).
    pub const SIZES: Self = Self(16);

    /// Returns those of both.
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns whether all of `others` are in it.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

/// Formats that a client can show: bit n stands for format n, 1 to 63; bit 0 is none of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FormatSet(pub u64);

impl FormatSet {
    /// Returns the set with format `number` added; a number outside 1 to 63 changes nothing.
    pub fn with(self, number: u8) -> Self {
        if (1..64).contains(&number) { Self(self.0 | 1 << number) } else { self }
    }

    /// Returns whether format `number` is in it.
    pub fn contains(self, number: u8) -> bool {
        (1..64).contains(&number) && self.0 >> number & 1 == 1
    }
}

/// Frames per second, as a fraction: 60000/1001, 25/1.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct FrameRate {
    /// Number of frames, 1 or more.
    pub numerator: u32,
    /// The seconds in which there are so many frames, 1 or more.
    pub denominator: u32,
}

impl FrameRate {
    /// Returns the rate of a pair on the wire, where 0/0 means none; an error if one number is 0.
    pub(super) fn wished(numerator: u32, denominator: u32) -> Result<Option<Self>, (u32, u32)> {
        match (numerator, denominator) {
            (0, 0) => Ok(None),
            (0, _) | (_, 0) => Err((numerator, denominator)),
            _ => Ok(Some(Self { numerator, denominator })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_printed() {
        assert_eq!(format!("{:?}", Token([7; 16])), "Token(..)");
        let mut other = [7; 16];
        other[15] = 6;
        assert!(Token([7; 16]) == Token([7; 16]) && Token([7; 16]) != Token(other));
    }

    #[test]
    fn sets_hold_the_numbers_that_the_wire_has() {
        let formats = FormatSet::default().with(1).with(63).with(0).with(64);
        assert_eq!(formats, FormatSet(1 << 63 | 2));
        assert!(formats.contains(63) && !formats.contains(0) && !formats.contains(64));
        assert!(!FormatSet(u64::MAX).contains(255));
        let transports = TransportSet::default().with(Transport::Rtp);
        assert!(transports.contains(Transport::Rtp) && !transports.contains(Transport::Udp));
        assert_eq!(TransportSet::default().with(Transport::Multicast), TransportSet(1));
        assert!(!TransportSet(0b1110).contains(Transport::Multicast));
        for number in 1..=4 {
            assert_eq!(Transport::from_number(number).unwrap().number(), number);
        }
        assert_eq!((Transport::from_number(0), Transport::from_number(5)), (None, None));
    }
}
