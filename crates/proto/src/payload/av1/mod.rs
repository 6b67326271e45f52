//! AV1 in RTP: the specification of the Alliance for Open Media, *RTP Payload Format For AV1*, 1.0.0.
//!
//! A frame is a temporal unit in the low-overhead format of the AV1 bitstream specification (section
//! 5.2), as in IVF and OBU files: it begins with a temporal delimiter, and OBUs have sizes. In packets
//! there are neither; the receiver adds both. So a frame arrives as it was sent if its sizes were
//! written in the fewest octets, as encoders write them.

mod join;
mod obu;
mod split;

pub use self::join::{AggregationHeader, is_well_formed};
pub use self::obu::{ObuLen, SequenceHeader, TEMPORAL_DELIMITER, is_empty, is_key_frame, obu_len};

use self::join::Av1Depacketiser;
use self::split::Av1Packetiser;
use super::{Depacketiser, Packetiser, PayloadFormat};
use crate::time::ClockRate;

/// AV1. A frame is one temporal unit.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Av1 {}

impl PayloadFormat for Av1 {
    fn name(&self) -> &'static str {
        "AV1"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(Av1Packetiser::default())
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(Av1Depacketiser::default())
    }
}

/// Bits of the aggregation header (section 4.4): the first OBU element continues one of the packet
/// before; the last one goes on in the next packet; the packet begins a coded video sequence.
const CONTINUES: u8 = 0x80;
const GOES_ON: u8 = 0x40;
const BEGINS_SEQUENCE: u8 = 0x08;

/// The number of OBU elements in the aggregation header is shifted by this, and at most this.
const COUNT_SHIFT: u32 = 4;
const COUNT_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::builder::Delivery;
    use super::super::rig::{Listener, send};
    use super::obu::Leb128;
    use super::*;

    /// Returns an OBU with a size, as in files.
    fn obu(header: &[u8], body: &[u8]) -> Vec<u8> {
        [header, Leb128::new(body.len()).octets(), body].concat()
    }

    fn any_obu() -> impl Strategy<Value = Vec<u8>> {
        let kind = prop::sample::select(vec![1_u8, 3, 4, 5, 6, 7, 9, 15]);
        let layer = prop::option::of(prop::sample::select(vec![0_u8, 0x08, 0x20]));
        (kind, layer, prop::collection::vec(any::<u8>(), 0..400)).prop_map(|(kind, layer, body)| {
            match layer {
                Some(layer) => obu(&[kind << 3 | 6, layer], &body),
                None => obu(&[kind << 3 | 2], &body),
            }
        })
    }

    proptest! {
        #[test]
        fn temporal_units_are_received_as_they_were_sent(
            units in prop::collection::vec(prop::collection::vec(any_obu(), 1..6), 1..6),
            limit in 5_usize..200,
        ) {
            let mut packetiser = Av1::default().packetiser();
            let mut listener = Listener::new(&Av1::default(), Delivery::AccessUnit);
            // Some OBUs, as tile groups, are not the first of a temporal unit; metadata can be.
            let begin = b"\x12\0\x2a\x01m";
            let units: Vec<_> =
                units.iter().map(|obus| [&begin[..], &obus.concat()].concat()).collect();
            for (n, unit) in units.iter().enumerate() {
                for sent in send(packetiser.as_mut(), unit, limit) {
                    listener.take(&sent.octets, n as u32, sent.marker).unwrap();
                }
            }
            prop_assert_eq!(listener.frames(), units);
        }

        #[test]
        fn no_octets_break_it(payloads in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..40), 0_u32..3, any::<bool>()), 0..50,
        )) {
            let mut listener = Listener::new(&Av1::default(), Delivery::AccessUnit);
            for (payload, timestamp, marker) in &payloads {
                let _ = listener.take(payload, *timestamp, *marker);
            }
            listener.finish();
            // A size is added to each OBU, and a delimiter to each temporal unit.
            prop_assert!(listener.held() <= 50 * 40 * 6);
        }
    }
}
