//! The first octets of every connection, and of every unit's datagrams.

use super::error::OpeningError;
use super::transport::{Abilities, FormatSet, FrameRate, Token, Transport, TransportSet};
use super::{PAYLOAD_MAX, UNITS_MAX, VERSION};

/// The first octets of a connection to the server's port.
pub(super) const MAGIC: [u8; 4] = *b"RSHT";
const CONTROL: u8 = 1;
const UNIT: u8 = 2;
/// The kind of a sealed control connection, which a [`Channel`](super::Channel) reads.
pub(super) const SEALED: u8 = 3;
/// Octets of the opening of a control connection.
const CONTROL_LEN: usize = 32;
/// Octets of the opening of a unit.
const UNIT_LEN: usize = 24;
/// The bits of a transport in the octet that they share with the first four abilities.
const TRANSPORT_BITS: u8 = 0x0f;
/// The bit of the fifth ability among those of the formats.
const SIZES_BIT: u64 = 1;

/// Capabilities and requests of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Wishes {
    /// Formats that it can show.
    pub formats: FormatSet,
    /// Transports that it supports.
    pub transports: TransportSet,
    /// The number of the requested format, one of `formats`; 0 lets the server choose.
    pub format: u8,
    /// The requested transport, one of `transports`; `None` lets the server choose.
    pub transport: Option<Transport>,
    /// The requested number of units, up to 64 in all; 0 lets the server choose.
    pub units: u8,
    /// The requested octets of payload in a packet, up to 1 MiB; 0 lets the server choose.
    pub payload: u32,
    /// The requested frame rate; `None` requests all frames that the server has.
    pub rate: Option<FrameRate>,
    /// The client's abilities, of which the lowest five bits are sent.
    pub abilities: Abilities,
}

/// The unit to which a connection or a socket belongs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UnitOpening {
    /// The session's token.
    pub token: Token,
    /// The number of the unit, 0 to 63, counted through all planes.
    pub unit: u8,
}

/// The first octets of a connection, or all octets of a datagram that binds a unit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opening {
    /// A client requests a session.
    Control(Wishes),
    /// A client binds one unit of its session.
    Unit(UnitOpening),
}

impl Opening {
    /// Maximum octets of an opening.
    pub const LEN_MAX: usize = CONTROL_LEN;

    /// Parses the opening at the beginning of `octets`; returns it with its length.
    ///
    /// Returns `None` if `octets` are only a part of an opening.
    ///
    /// # Errors
    /// [`OpeningError`] as soon as an octet is invalid.
    pub fn parse(octets: &[u8]) -> Result<Option<(Self, usize)>, OpeningError> {
        if octets.iter().zip(MAGIC).any(|(octet, magic)| *octet != magic) {
            return Err(OpeningError::Magic);
        }
        let Some((&[.., high, low], rest)) = octets.split_first_chunk::<6>() else {
            return Ok(None);
        };
        let version = u16::from_be_bytes([high, low]);
        if version != VERSION {
            return Err(OpeningError::Version(version));
        }
        match (rest.first(), rest.get(1)) {
            (None, _) | (Some(&(CONTROL | UNIT)), None) => Ok(None),
            (Some(&CONTROL), Some(0)) => {
                let Some((body, _)) = rest[2..].split_first_chunk() else { return Ok(None) };
                Ok(Some((Self::Control(wishes(body)?), CONTROL_LEN)))
            }
            (Some(&CONTROL), Some(&reserved)) => Err(OpeningError::Reserved(reserved)),
            (Some(&UNIT), Some(&unit)) if usize::from(unit) >= UNITS_MAX => {
                Err(OpeningError::Units(unit))
            }
            (Some(&UNIT), Some(&unit)) => {
                let Some((token, _)) = rest[2..].split_first_chunk() else { return Ok(None) };
                Ok(Some((Self::Unit(UnitOpening { token: Token(*token), unit }), UNIT_LEN)))
            }
            (Some(&SEALED), _) => Err(OpeningError::Sealed),
            (Some(&kind), _) => Err(OpeningError::Kind(kind)),
        }
    }

    /// Appends the opening to `octets`.
    pub fn write(&self, octets: &mut Vec<u8>) {
        octets.extend(MAGIC);
        octets.extend(VERSION.to_be_bytes());
        match self {
            Self::Control(wishes) => {
                octets.extend([CONTROL, 0]);
                let sizes = u64::from(wishes.abilities.contains(Abilities::SIZES)) * SIZES_BIT;
                octets.extend((wishes.formats.0 & !SIZES_BIT | sizes).to_be_bytes());
                let transport = wishes.transport.map_or(0, Transport::number);
                let sets = wishes.transports.0 & TRANSPORT_BITS | wishes.abilities.0 << 4;
                octets.extend([sets, wishes.format, transport, wishes.units]);
                octets.extend(wishes.payload.to_be_bytes());
                let rate = wishes.rate.map_or((0, 0), |rate| (rate.numerator, rate.denominator));
                octets.extend(rate.0.to_be_bytes());
                octets.extend(rate.1.to_be_bytes());
            }
            Self::Unit(UnitOpening { token, unit }) => {
                octets.extend([UNIT, *unit]);
                octets.extend(token.0);
            }
        }
    }
}

/// Reads the wishes of a control opening, which follow its first eight octets.
fn wishes(octets: &[u8; CONTROL_LEN - 8]) -> Result<Wishes, OpeningError> {
    let &[f0, f1, f2, f3, f4, f5, f6, f7, sets, format, transport, units, ref rest @ ..] = octets;
    let &[p0, p1, p2, p3, n0, n1, n2, n3, d0, d1, d2, d3] = rest;
    let numbers = u64::from_be_bytes([f0, f1, f2, f3, f4, f5, f6, f7]);
    let formats = FormatSet(numbers & !SIZES_BIT);
    if format != 0 && !formats.contains(format) {
        return Err(OpeningError::Format(format));
    }
    let sizes = if numbers & SIZES_BIT > 0 { Abilities::SIZES } else { Abilities::default() };
    let abilities = Abilities(sets >> 4).with(sizes);
    let transports = TransportSet(sets & TRANSPORT_BITS);
    let wished = Transport::from_number(transport);
    if transport != 0 && !wished.is_some_and(|wished| transports.contains(wished)) {
        return Err(OpeningError::Transport(transport));
    }
    if usize::from(units) > UNITS_MAX {
        return Err(OpeningError::Units(units));
    }
    let payload = u32::from_be_bytes([p0, p1, p2, p3]);
    if payload > PAYLOAD_MAX {
        return Err(OpeningError::PacketSize(payload));
    }
    let numerator = u32::from_be_bytes([n0, n1, n2, n3]);
    let denominator = u32::from_be_bytes([d0, d1, d2, d3]);
    let rate = FrameRate::wished(numerator, denominator)
        .map_err(|(numerator, denominator)| OpeningError::Rate(numerator, denominator))?;
    let transport = wished;
    Ok(Wishes { formats, transports, format, transport, units, payload, rate, abilities })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> Vec<u8> {
        let wishes = Wishes {
            formats: FormatSet(1 << 9 | 1 << 7),
            transports: TransportSet::ALL,
            format: 7,
            transport: Some(Transport::Rtp),
            units: 4,
            payload: 1408,
            rate: Some(FrameRate { numerator: 60_000, denominator: 1001 }),
            abilities: Abilities::RECOVERY,
        };
        let mut octets = Vec::new();
        Opening::Control(wishes).write(&mut octets);
        octets
    }

    #[test]
    fn an_opening_is_written_as_in_the_table() {
        let octets = written();
        assert_eq!(octets[..8], *b"RSHT\0\x01\x01\0");
        assert_eq!(octets[8..20], [0, 0, 0, 0, 0, 0, 2, 128, 0x1e, 7, 3, 4]);
        assert_eq!(octets[20..], [0, 0, 5, 128, 0, 0, 234, 96, 0, 0, 3, 233]);
        let mut unit = Vec::new();
        Opening::Unit(UnitOpening { token: Token([9; 16]), unit: 63 }).write(&mut unit);
        assert_eq!(unit, [&b"RSHT\0\x01\x02\x3f"[..], &[9; 16]].concat());
    }

    #[test]
    fn the_fifth_ability_is_where_format_0_would_be() {
        let Ok(Some((Opening::Control(mut wishes), _))) = Opening::parse(&written()) else {
            panic!("it is valid");
        };
        wishes.abilities = Abilities::SIZES;
        let mut octets = Vec::new();
        Opening::Control(wishes).write(&mut octets);
        assert_eq!(octets[8..17], [0, 0, 0, 0, 0, 0, 2, 129, 0x0e]);
        assert_eq!(Opening::parse(&octets), Ok(Some((Opening::Control(wishes), 32))));
        // Without the ability it is 0, whatever the set of formats has there.
        (wishes.abilities, wishes.formats.0) = (Abilities::default(), u64::MAX);
        octets.clear();
        Opening::Control(wishes).write(&mut octets);
        assert_eq!(octets[15], 254);
    }

    #[test]
    fn an_invalid_opening_is_refused_at_its_first_invalid_octet() {
        let change = |at: usize, octet: u8| {
            let mut octets = written();
            octets[at] = octet;
            Opening::parse(&octets)
        };
        assert_eq!(Opening::parse(b"G"), Err(OpeningError::Magic));
        assert_eq!(Opening::parse(b"RSHT\0\x02"), Err(OpeningError::Version(2)));
        assert_eq!(Opening::parse(b"RSHT\0\x01\x03"), Err(OpeningError::Sealed));
        assert_eq!(Opening::parse(b"RSHT\0\x01\x04"), Err(OpeningError::Kind(4)));
        assert_eq!(Opening::parse(b"RSHT\0\x01\x02\x40"), Err(OpeningError::Units(64)));
        assert_eq!(change(7, 1), Err(OpeningError::Reserved(1)));
        assert_eq!(change(17, 8), Err(OpeningError::Format(8)));
        assert_eq!(change(18, 4), Err(OpeningError::Transport(4)));
        assert_eq!(change(16, 2), Err(OpeningError::Transport(3)), "requested but not listed");
        assert_eq!(change(19, 65), Err(OpeningError::Units(65)));
        assert_eq!(change(20, 1), Err(OpeningError::PacketSize(0x0100_0580)));
        let mut octets = written();
        octets[28..].fill(0);
        assert_eq!(Opening::parse(&octets), Err(OpeningError::Rate(60_000, 0)));
    }
}
