//! Arbitrary descriptions, written and read again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::IpAddr;
use std::time::Duration;

use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use rushes_proto::sdp::{
    Address, Attribute, Bandwidth, Crypto, Description, Direction, Encoding, ExtensionMapping,
    Feedback, Format, H264Parameters, H265Parameters, H266Parameters, Media, MediaKind,
    OpusParameters, Origin, OtherParameters, Profile, RtcpPort, Source, SourceGroup,
};
use rushes_proto::{ClockRate, PayloadType, Ssrc};

fn word() -> impl Strategy<Value = String> {
    "[a-z][a-zA-Z0-9.@]{0,8}".prop_map(|word| "x".to_owned() + &word)
}

/// Returns a strategy for text that neither begins nor ends with a space.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z!-:é]([ a-z:=;/|é]{0,12}[a-z:=é])?"]
        .prop_filter("a dash is no name", |text| text != "-")
}

fn other() -> impl Strategy<Value = OtherParameters> {
    let value = "([a-z0-9=/]([ a-z0-9=]{0,6}[a-z0-9])?)?";
    prop::collection::vec(("x[a-z-]{0,5}", value), 0..3)
}

fn units() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..3)
}

fn payload_type() -> impl Strategy<Value = PayloadType> {
    prop_oneof![96..128_u8, 0..64_u8].prop_map(|value| PayloadType::new(value).unwrap())
}

fn h264() -> impl Strategy<Value = Encoding> {
    (option::of(any::<[u8; 3]>()), 0..=2_u8, units(), other()).prop_map(
        |(profile_level_id, packetization_mode, parameter_sets, other)| {
            Encoding::H264(H264Parameters {
                profile_level_id,
                packetization_mode,
                parameter_sets,
                other,
            })
        },
    )
}

fn h265() -> impl Strategy<Value = Encoding> {
    let profile = (option::of(0..4_u8), option::of(0..32_u8), any::<Option<bool>>());
    let general = any::<(Option<u8>, Option<[u8; 6]>, Option<u32>, Option<u32>)>();
    let mode = option::of(select(vec!["SRST".to_owned(), "MRMT".to_owned()]));
    let rest = (mode, 0..32_768_u16, option::of(0..32_768_u16), other());
    (profile, general, rest, [units(), units(), units(), units()]).prop_map(
        |(profile, general, rest, [vps, sps, pps, sei])| {
            Encoding::H265(H265Parameters {
                profile_space: profile.0,
                profile_id: profile.1,
                tier_flag: profile.2,
                level_id: general.0,
                interop_constraints: general.1,
                profile_compatibility: general.2,
                transmission_mode: rest.0,
                max_don_diff: rest.1,
                depack_buf_nalus: rest.2,
                depack_buf_bytes: general.3,
                vps,
                sps,
                pps,
                sei,
                other: rest.3,
            })
        },
    )
}

fn h266() -> impl Strategy<Value = Encoding> {
    let general = any::<(Option<bool>, Option<u8>, Option<u32>)>();
    let constraints = option::of(prop::collection::vec(any::<u8>(), 0..12));
    let rest = (option::of(0..128_u8), constraints, 0..32_768_u16, other());
    (general, rest, units(), [units(), units(), units(), units()]).prop_map(
        |(general, rest, dci, [vps, sps, pps, sei])| {
            Encoding::H266(H266Parameters {
                profile_id: rest.0,
                tier_flag: general.0,
                level_id: general.1,
                interop_constraints: rest.1,
                max_don_diff: rest.2,
                depack_buf_bytes: general.2,
                dci,
                vps,
                sps,
                pps,
                sei,
                other: rest.3,
            })
        },
    )
}

fn opus() -> impl Strategy<Value = Encoding> {
    (any::<[Option<u32>; 3]>(), any::<[bool; 5]>(), other()).prop_map(|(rates, flags, other)| {
        Encoding::Opus(OpusParameters {
            max_playback_rate: rates[0],
            max_capture_rate: rates[1],
            max_average_bit_rate: rates[2],
            stereo: flags[0],
            sprop_stereo: flags[1],
            cbr: flags[2],
            use_in_band_fec: flags[3],
            use_dtx: flags[4],
            other,
        })
    })
}

fn encoding() -> impl Strategy<Value = Encoding> {
    let time =
        any::<Option<u32>>().prop_map(|time| time.map(|ms| Duration::from_millis(ms.into())));
    prop_oneof![
        h264(),
        h265(),
        h266(),
        opus(),
        (payload_type(), time).prop_map(|(apt, rtx_time)| Encoding::Rtx { apt, rtx_time }),
        (word(), text()).prop_map(|(name, parameters)| Encoding::Other { name, parameters }),
    ]
}

fn feedback() -> impl Strategy<Value = Feedback> {
    prop_oneof![
        Just(Feedback::Nack),
        Just(Feedback::NackPli),
        Just(Feedback::CcmFir),
        any::<Option<u64>>().prop_map(|smaxpr| Feedback::CcmTmmbr { smaxpr }),
        Just(Feedback::GoogRemb),
        Just(Feedback::TransportCc),
        any::<u32>().prop_map(|ms| Feedback::TrrInt(Duration::from_millis(ms.into()))),
        "x[a-z]{0,6}( [a-z]{1,4}){0,2}".prop_map(Feedback::Other),
    ]
}

fn format() -> impl Strategy<Value = Format> {
    let rate = (1..u32::MAX).prop_map(|rate| ClockRate::new(rate).unwrap());
    let feedback = prop::collection::vec(feedback(), 0..4).prop_map(|feedback| {
        let mut unique: Vec<Feedback> = Vec::new();
        for one in feedback {
            if !unique.contains(&one) {
                unique.push(one);
            }
        }
        unique
    });
    (payload_type(), encoding(), rate, any::<Option<u8>>(), feedback).prop_map(
        |(payload_type, encoding, clock_rate, channels, feedback)| Format {
            payload_type,
            encoding,
            clock_rate,
            channels,
            feedback,
        },
    )
}

fn address() -> impl Strategy<Value = Address> {
    prop_oneof![
        any::<IpAddr>().prop_map(Address::from),
        (word(), any::<bool>()).prop_map(|(name, ip6)| Address::Name { name, ip6 }),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<Attribute>> {
    let one = (word(), text()).prop_map(|(name, value)| Attribute { name, value });
    prop::collection::vec(one, 0..3)
}

fn bandwidth() -> impl Strategy<Value = Vec<Bandwidth>> {
    let one = (select(vec!["AS", "TIAS", "X-a"]), any::<u64>());
    prop::collection::vec(
        one.prop_map(|(modifier, value)| Bandwidth { modifier: modifier.to_owned(), value }),
        0..2,
    )
}

fn crypto() -> impl Strategy<Value = Crypto> {
    let params = prop::collection::vec(word(), 0..3);
    (0..1_000_000_000_u32, word(), word(), params).prop_map(|(tag, suite, key, session_params)| {
        Crypto { tag, suite, key_params: format!("inline:{key}"), session_params }
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    prop_oneof![
        Just(Profile::Avp),
        Just(Profile::Avpf),
        Just(Profile::Savp),
        Just(Profile::Savpf),
        (any::<bool>(), any::<bool>()).prop_map(|(tcp, feedback)| Profile::Dtls { tcp, feedback }),
        (word(), "([a-z]{1,4}( [0-9]{1,3}){0,2})?")
            .prop_map(|(transport, formats)| Profile::Other { transport, formats }),
    ]
}

/// The place of media: port, number of ports, address, number of addresses, TTL, RTCP.
type Place = (u16, u16, Option<Address>, u16, Option<u8>, RtcpPort);

fn place() -> impl Strategy<Value = Place> {
    let rtcp = prop_oneof![
        Just(RtcpPort::Next),
        Just(RtcpPort::Mux),
        (any::<u16>(), option::of(address())).prop_map(|(port, host)| RtcpPort::Port(port, host)),
    ];
    let counts = (1..4_u16, 1..4_u16, any::<Option<u8>>());
    (any::<u16>(), option::of(address()), counts, rtcp).prop_map(
        |(port, address, (ports, addresses, ttl), rtcp)| {
            let ip4 = matches!(
                address,
                Some(Address::Ip(IpAddr::V4(_)) | Address::Name { ip6: false, .. })
            );
            let addresses = if address.is_some() { addresses } else { 1 };
            let ttl = ttl.or_else(|| (addresses > 1).then_some(1)).filter(|_| ip4);
            (port, ports, address, addresses, ttl, rtcp)
        },
    )
}

fn sources() -> impl Strategy<Value = (Vec<Source>, Vec<SourceGroup>)> {
    let cnames = prop::collection::btree_map(any::<u32>(), option::of(text()), 0..4);
    let group = (word(), prop::collection::vec(any::<u32>().prop_map(Ssrc), 0..3))
        .prop_map(|(semantics, ssrcs)| SourceGroup { semantics, ssrcs });
    let sources = cnames.prop_map(|cnames| {
        cnames.into_iter().map(|(ssrc, cname)| Source { ssrc: Ssrc(ssrc), cname }).collect()
    });
    (sources, prop::collection::vec(group, 0..2))
}

fn directions() -> impl Strategy<Value = Direction> {
    let directions = [Direction::SendRecv, Direction::SendOnly, Direction::RecvOnly];
    select([&directions[..], &[Direction::Inactive]].concat())
}

fn extensions() -> impl Strategy<Value = Vec<ExtensionMapping>> {
    let id = prop_oneof![1..15_u16, 16..256_u16, 4096..4352_u16];
    let one = (option::of(directions()), any::<bool>(), word(), "([a-z]{1,4}( [0-9]{1,3}){0,2})?");
    prop::collection::btree_map(id, one, 0..4).prop_map(|mappings| {
        let mapping = |(id, (direction, encrypted, uri, attributes))| {
            let mapping = ExtensionMapping::new(id, uri);
            ExtensionMapping { direction, encrypted, attributes, ..mapping }
        };
        mappings.into_iter().map(mapping).collect()
    })
}

fn media() -> impl Strategy<Value = Media> {
    let kind = prop_oneof![
        Just(MediaKind::Video),
        Just(MediaKind::Audio),
        Just(MediaKind::Application),
        word().prop_map(MediaKind::Other),
    ];
    let times = any::<[Option<u32>; 2]>();
    let rate = option::of(0.0..1e6_f64);
    let formats = prop::collection::vec(format(), 0..4);
    let crypto = prop::collection::vec(crypto(), 0..2);
    (
        (kind, place(), profile(), formats, any::<[bool; 2]>(), directions()),
        (sources(), rate, times, crypto, bandwidth(), attributes(), extensions()),
    )
        .prop_map(
            |((kind, place, profile, formats, [reduced_size, congestion], direction), rest)| {
                let mut media = Media::new(kind, place.0);
                (media.port_count, media.address, media.address_count) =
                    (place.1, place.2, place.3);
                (media.ttl, media.rtcp) = (place.4, place.5);
                if !matches!(profile, Profile::Other { .. }) {
                    for format in formats {
                        if media.format(format.payload_type).is_none() {
                            media.formats.push(format);
                        }
                    }
                }
                (media.profile, media.reduced_size, media.direction) =
                    (profile, reduced_size, direction);
                media.congestion_feedback = congestion;
                ((media.ssrcs, media.ssrc_groups), media.frame_rate) = (rest.0, rest.1);
                let [packet, max] = rest
                    .2
                    .map(|time| time.map(|nanos| Duration::from_nanos(u64::from(nanos) * 977)));
                (media.packet_time, media.max_packet_time) = (packet, max);
                (media.crypto, media.bandwidth, media.attributes) = (rest.3, rest.4, rest.5);
                media.extensions = rest.6;
                media
            },
        )
}

fn descriptions() -> impl Strategy<Value = Description> {
    let origin = (word(), any::<u64>(), any::<u64>(), address()).prop_map(
        |(username, session_id, session_version, address)| Origin {
            username,
            session_id,
            session_version,
            address,
        },
    );
    (origin, text(), bandwidth(), attributes(), prop::collection::vec(media(), 0..4)).prop_map(
        |(origin, name, bandwidth, attributes, media)| Description {
            origin,
            name,
            bandwidth,
            attributes,
            media,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_as_it_was(description in descriptions()) {
        let written = description.write();
        prop_assert_eq!(Description::parse(written.as_bytes()), Ok(description), "{}", written);
    }
}
