//! Arbitrary octets as RTP packets, and arbitrary headers written and read again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use rushes_proto::rtp::{
    CaptureTime, Element, Elements, Extension, ExtensionForm, ExtensionKind, ExtensionMap, Header,
    HeaderExtension, Packet, write_elements,
};
use rushes_proto::{NtpTime, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

/// Returns a strategy for octets that often look like a packet.
fn octets() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![3 => 0x80..=0xbf_u8, 1 => any::<u8>()];
    (head, prop::collection::vec(prop_oneof![1 => 0..4_u8, 2 => any::<u8>()], 0..120))
        .prop_map(|(head, rest)| [&[head][..], &rest].concat())
}

fn headers() -> impl Strategy<Value = Header> {
    let extension = (any::<u16>(), prop::collection::vec(any::<u32>(), 0..20));
    (
        any::<(bool, u16, u32, u32)>(),
        (0..64_u8).prop_map(|value| PayloadType::new(value).unwrap()),
        prop::collection::vec(any::<u32>().prop_map(Ssrc), 0..=15),
        prop::option::of(extension),
    )
        .prop_map(|((marker, sequence, timestamp, ssrc), payload_type, sources, extension)| {
            let (sequence, timestamp) = (SequenceNumber(sequence), RtpTimestamp(timestamp));
            Header {
                marker,
                contributing_sources: sources,
                extension: extension.map(|(profile, words)| HeaderExtension {
                    profile,
                    data: words.into_iter().flat_map(u32::to_be_bytes).collect(),
                }),
                ..Header::new(payload_type, sequence, timestamp, Ssrc(ssrc))
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn octets_are_a_packet_whose_parts_add_up_or_an_error(octets in octets()) {
        if let Ok(packet) = Packet::parse(&octets) {
            let sum = packet.header_len() + packet.payload().len() + packet.padding_len();
            prop_assert_eq!(sum, octets.len());
            prop_assert!(packet.contributing_sources().len() <= 15);
            if let Some(extension) = packet.extension() {
                let all = (1..).zip(ExtensionKind::ALL);
                let map = all.fold(ExtensionMap::default(), |map, (id, kind)| {
                    map.with(kind, id).unwrap()
                });
                let _ = map.capture_time(extension, Some(NtpTime(1)));
            }
            if let Some(elements) = packet.extension().and_then(|extension| extension.elements()) {
                prop_assert!(elements.count() <= octets.len());
            }
        }
    }

    #[test]
    fn headers_are_read_as_they_were_written(
        header in headers(), payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut octets = vec![0xa5; header.written_len()];
        prop_assert_eq!(header.write(&mut octets), Ok(octets.len()));
        octets.extend_from_slice(&payload);
        let packet = Packet::parse(&octets).unwrap();
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert_eq!(Header::from(&packet), header);
    }

    #[test]
    fn capture_times_are_read_as_they_were_written(
        ids in prop::array::uniform3(prop_oneof![1..15_u8, 16..=255_u8]),
        ntp in any::<u64>(), offset in any::<Option<i64>>(), drift in -1_000_000_000..1_000_000_000_i64,
    ) {
        let all = ids.into_iter().zip(ExtensionKind::ALL);
        let map = all.fold(ExtensionMap::default(), |map, (id, kind)| {
            map.with(kind, id).unwrap_or(map)
        });
        let capture = CaptureTime { ntp: NtpTime(ntp), clock_offset: offset };
        let mut data = Vec::new();
        map.write(capture, &mut data).unwrap();
        let extension = Extension { profile: map.form().profile(), data: &data };
        let reported = NtpTime(capture.by_sender().0.wrapping_add_signed(drift << 20));
        let read = map.capture_time(extension, Some(reported)).unwrap().unwrap();
        prop_assert_eq!(read, capture);
    }

    #[test]
    fn elements_are_read_as_they_were_written(
        elements in prop::collection::vec(
            (1..15_u8, prop::collection::vec(any::<u8>(), 1..=16)), 0..10),
        two_byte in any::<bool>(),
    ) {
        let form = if two_byte { ExtensionForm::TwoByte } else { ExtensionForm::OneByte };
        let elements: Vec<Element<'_>> =
            elements.iter().map(|(id, data)| Element { id: *id, data }).collect();
        let mut octets = Vec::new();
        write_elements(form, &elements, &mut octets).unwrap();
        let read: Vec<Element<'_>> =
            Elements::new(form.profile(), &octets).unwrap().map(Result::unwrap).collect();
        prop_assert_eq!(read, elements);
    }

    #[test]
    fn any_octets_as_elements_end(octets in prop::collection::vec(any::<u8>(), 0..100), two in any::<bool>()) {
        let form = if two { ExtensionForm::TwoByte } else { ExtensionForm::OneByte };
        let elements = Elements::new(form.profile(), &octets).unwrap();
        prop_assert!(elements.count() <= octets.len());
    }
}
