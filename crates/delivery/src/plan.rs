//! The numbering of a frame's octets: units, stripes and packets.

mod blocks;
mod packed;

use std::fmt;
use std::ops::Range;

use crate::HEADER_BYTES;

pub use blocks::FEC_PERCENT_MAX;
pub(crate) use blocks::{Block, RepairPlace, repairs};

/// Maximum number of units of a frame.
pub const UNITS_MAX: usize = 64;

/// Maximum octets of a packet after its header.
pub const PAYLOAD_MAX: usize = 1 << 20;

/// Maximum number of packets of a frame, because packet numbers have 24 bits.
const PACKETS_MAX: u64 = 1 << 24;

/// The layout of every frame, which both ends know in advance.
///
/// A unit's octets are cut into stripes of equal length, and each stripe into packets of equal
/// length; the last stripe and the last packet may be shorter. Every stripe begins with a new
/// packet, so that it can be encoded and sent before earlier stripes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    units: Vec<Unit>,
    payload: usize,
    packets: u32,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Unit {
    first_packet: u32,
    first_block: u32,
    packets: u32,
    bytes: usize,
    stripe_bytes: usize,
    stripe_packets: u32,
}

/// The place of a packet's octets.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Span {
    /// The unit's place in the frame.
    pub unit: usize,
    /// The range of octets within the unit.
    pub bytes: Range<usize>,
}

/// A part of a unit that is encoded and sent in one piece.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stripe {
    /// The unit's place in the frame.
    pub unit: usize,
    /// The stripe's place in the unit.
    pub index: usize,
    /// The range of octets within the unit.
    pub bytes: Range<usize>,
    /// The number of its first packet in the frame.
    pub first_packet: u32,
}

/// The reason why a plan is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// There are no units, or more than [`UNITS_MAX`].
    Units(usize),
    /// A unit or a stripe has 0 octets.
    Empty {
        /// The unit's place.
        unit: usize,
    },
    /// Packets have 0 octets, or more than [`PAYLOAD_MAX`].
    Payload(usize),
    /// There are more packets than 24 bits can number.
    Packets(u64),
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units(units) => write!(f, "{units} units are not between 1 and {UNITS_MAX}"),
            Self::Empty { unit } => write!(f, "unit {unit} or its stripes have no octets"),
            Self::Payload(payload) => {
                write!(f, "{payload} octets per packet are not between 1 and {PAYLOAD_MAX}")
            }
            Self::Packets(packets) => {
                write!(f, "{packets} packets per frame exceed {PACKETS_MAX}: make packets larger")
            }
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Creates the plan of a frame from the sizes of its units and stripes.
    ///
    /// `units` are pairs: the octets of the unit and those of each of its stripes. `payload` is the
    /// octets of a packet.
    ///
    /// # Errors
    ///
    /// [`PlanError`] if a number is 0 or exceeds its limit.
    pub fn new(units: &[(usize, usize)], payload: usize) -> Result<Self, PlanError> {
        if units.is_empty() || units.len() > UNITS_MAX {
            return Err(PlanError::Units(units.len()));
        }
        if payload == 0 || payload > PAYLOAD_MAX {
            return Err(PlanError::Payload(payload));
        }
        let mut plan = Self { units: Vec::new(), payload, packets: 0, bytes: 0 };
        let mut total = 0_u64;
        for (unit, &(bytes, stripe_bytes)) in units.iter().enumerate() {
            if bytes == 0 || stripe_bytes == 0 {
                return Err(PlanError::Empty { unit });
            }
            let stripe_bytes = stripe_bytes.min(bytes);
            let stripe_packets = stripe_bytes.div_ceil(payload) as u64;
            let rest = (bytes % stripe_bytes).div_ceil(payload) as u64;
            let packets = ((bytes / stripe_bytes) as u64).saturating_mul(stripe_packets) + rest;
            let first_packet = total as u32;
            total = total.saturating_add(packets);
            if total > PACKETS_MAX {
                return Err(PlanError::Packets(total));
            }
            let (packets, stripe_packets) = (packets as u32, stripe_packets as u32);
            let first_block = plan.blocks();
            plan.units.push(Unit {
                first_packet,
                first_block,
                packets,
                bytes,
                stripe_bytes,
                stripe_packets,
            });
            plan.bytes += bytes;
        }
        plan.packets = total as u32;
        Ok(plan)
    }

    /// Returns the number of units of a frame.
    pub fn units(&self) -> usize {
        self.units.len()
    }

    /// Returns the number of packets of a frame.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns the octets of a frame.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the octets of a packet after its header; the last packet of a stripe may have fewer.
    pub fn payload(&self) -> usize {
        self.payload
    }

    /// Returns the octets of a unit; 0 if there is no such unit.
    pub fn unit_bytes(&self, unit: usize) -> usize {
        self.units.get(unit).map_or(0, |unit| unit.bytes)
    }

    /// Returns the numbers of a unit's packets.
    pub fn unit_packets(&self, unit: usize) -> Range<u32> {
        let range = |unit: &Unit| unit.first_packet..unit.first_packet + unit.packets;
        self.units.get(unit).map_or(0..0, range)
    }

    /// Returns the place of a packet's octets, if the frame has a packet with this number.
    pub fn locate(&self, index: u32) -> Option<Span> {
        if index >= self.packets {
            return None;
        }
        let at = self.units.partition_point(|unit| unit.first_packet <= index).checked_sub(1)?;
        let unit = self.units.get(at)?;
        let within = index - unit.first_packet;
        let stripe = (within / unit.stripe_packets) as usize * unit.stripe_bytes;
        let start = stripe + (within % unit.stripe_packets) as usize * self.payload;
        let end = (start + self.payload).min(stripe + unit.stripe_bytes).min(unit.bytes);
        Some(Span { unit: at, bytes: start..end })
    }

    /// Returns the number of stripes of a unit.
    pub fn stripe_count(&self, unit: usize) -> usize {
        self.units.get(unit).map_or(0, |unit| unit.bytes.div_ceil(unit.stripe_bytes))
    }

    /// Returns the stripe that contains a packet, if the frame has a packet with this number.
    pub fn stripe_of(&self, index: u32) -> Option<Stripe> {
        let at = self.locate(index)?.unit;
        let unit = self.units.get(at)?;
        self.stripe(at, ((index - unit.first_packet) / unit.stripe_packets) as usize)
    }

    /// Returns the numbers of a stripe's packets.
    pub fn stripe_packets(&self, stripe: &Stripe) -> Range<u32> {
        let packets = stripe.bytes.len().div_ceil(self.payload) as u32;
        stripe.first_packet..stripe.first_packet + packets
    }

    /// Returns whether the frame's packets can be sent again: there are numbers for that.
    ///
    /// A packet that is sent again has its number plus [`packets`](Self::packets).
    pub fn can_retransmit(&self) -> bool {
        u64::from(self.packets) * 2 <= PACKETS_MAX
    }

    /// Returns a stripe of a unit, if the unit has a stripe with this number.
    pub fn stripe(&self, unit: usize, index: usize) -> Option<Stripe> {
        let it = self.units.get(unit)?;
        let start = index.checked_mul(it.stripe_bytes).filter(|&start| start < it.bytes)?;
        let bytes = start..(start + it.stripe_bytes).min(it.bytes);
        let first_packet = it.first_packet + index as u32 * it.stripe_packets;
        Some(Stripe { unit, index, bytes, first_packet })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stripe_begins_with_a_packet_of_its_own() {
        let plan = Plan::new(&[(1_000, 250), (100, 400)], 100).unwrap();
        assert_eq!(plan.packets(), 13);
        assert_eq!(plan.locate(2), Some(Span { unit: 0, bytes: 200..250 }));
        assert_eq!(plan.locate(3), Some(Span { unit: 0, bytes: 250..350 }));
        assert_eq!(plan.locate(12), Some(Span { unit: 1, bytes: 0..100 }));
        assert_eq!(plan.locate(13), None);
        assert_eq!(plan.stripe_count(0), 4);
        let stripe = Stripe { unit: 0, index: 3, bytes: 750..1_000, first_packet: 9 };
        assert_eq!(plan.stripe(0, 3), Some(stripe));
        assert_eq!(plan.stripe(0, 4), None);
    }

    #[test]
    fn absurd_plans_are_refused() {
        assert_eq!(Plan::new(&[], 1), Err(PlanError::Units(0)));
        assert_eq!(Plan::new(&[(1, 1); 65], 1), Err(PlanError::Units(65)));
        assert_eq!(Plan::new(&[(1, 1), (0, 1)], 1), Err(PlanError::Empty { unit: 1 }));
        assert_eq!(Plan::new(&[(1, 0)], 1), Err(PlanError::Empty { unit: 0 }));
        assert_eq!(Plan::new(&[(1, 1)], 0), Err(PlanError::Payload(0)));
        let too_long = Plan::new(&[(1, 1)], PAYLOAD_MAX + 1);
        assert_eq!(too_long, Err(PlanError::Payload(PAYLOAD_MAX + 1)));
        let most = 1_usize << 24;
        assert!(Plan::new(&[(most, most)], 1).is_ok());
        let over = Plan::new(&[(most, most), (1, 1)], 1);
        assert_eq!(over, Err(PlanError::Packets((1 << 24) + 1)));
        assert!(Plan::new(&[(usize::MAX, 1), (usize::MAX, 1)], 1).is_err());
    }

    proptest! {
        #[test]
        fn packets_cover_every_octet_of_every_unit_once(
            units in prop::collection::vec((1_usize..5_000, 1_usize..3_000), 1..9),
            payload in 1_usize..2_000,
        ) {
            let plan = Plan::new(&units, payload).unwrap();
            let mut at = (0, 0);
            for index in 0..plan.packets() {
                let span = plan.locate(index).unwrap();
                prop_assert!(plan.unit_packets(span.unit).contains(&index));
                if span.unit != at.0 {
                    prop_assert_eq!(at.1, units[at.0].0);
                    at = (at.0 + 1, 0);
                }
                prop_assert_eq!((span.unit, span.bytes.start), at);
                prop_assert!(!span.bytes.is_empty() && span.bytes.len() <= payload);
                at.1 = span.bytes.end;
            }
            prop_assert_eq!(at, (units.len() - 1, units[units.len() - 1].0));
        }

        #[test]
        fn stripes_are_where_their_first_packets_are(
            units in prop::collection::vec((1_usize..5_000, 1_usize..3_000), 1..9),
            payload in 1_usize..2_000,
        ) {
            let plan = Plan::new(&units, payload).unwrap();
            for (unit, &(bytes, _)) in units.iter().enumerate() {
                let mut end = 0;
                for index in 0..plan.stripe_count(unit) {
                    let stripe = plan.stripe(unit, index).unwrap();
                    let first = plan.locate(stripe.first_packet).unwrap();
                    prop_assert_eq!((first.unit, first.bytes.start), (unit, stripe.bytes.start));
                    let packets = plan.stripe_packets(&stripe);
                    for packet in [packets.start, packets.end - 1] {
                        prop_assert_eq!(plan.stripe_of(packet), Some(stripe.clone()));
                    }
                    prop_assert_eq!(plan.locate(packets.end - 1).unwrap().bytes.end, stripe.bytes.end);
                    prop_assert_eq!(stripe.bytes.start, end);
                    end = stripe.bytes.end;
                }
                prop_assert_eq!(end, bytes);
            }
        }
    }
}
