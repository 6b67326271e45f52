//! Messages and openings: written and parsed again, cut, and corrupted.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use proptest::prelude::*;
use rushes_delivery::control::*;

use crate::ends::{changed, offer};

fn rate() -> impl Strategy<Value = FrameRate> {
    (1..u32::MAX, 1..u32::MAX)
        .prop_map(|(numerator, denominator)| FrameRate { numerator, denominator })
}

fn transport() -> impl Strategy<Value = Transport> {
    prop_oneof![
        Just(Transport::Udp),
        Just(Transport::Tcp),
        Just(Transport::Rtp),
        Just(Transport::Multicast)
    ]
}

fn addresses() -> impl Strategy<Value = (Vec<u16>, Vec<u32>)> {
    let ssrcs = prop::collection::vec(any::<u32>(), 0..=64);
    (prop::collection::vec(any::<u16>(), 0..=64), ssrcs)
}

fn any_offer() -> impl Strategy<Value = Offer> {
    let mode = (any::<[u32; 4]>(), any::<u8>());
    let rest = (any::<u16>(), any::<[u8; 3]>(), any::<[u32; 3]>(), any::<u64>());
    let address = prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from)
    ];
    let group = (address, any::<u16>());
    let group = group.prop_map(|(address, port)| SocketAddr::new(address.to_canonical(), port));
    let rest = (rest, (any::<u8>(), any::<[u8; 4]>(), group));
    (any::<[u8; 16]>(), mode, transport(), rest, addresses()).prop_map(
        |(token, ([width, height, numerator, denominator], format), transport, rest, addresses)| {
            let (rest, (abilities, colour, group)) = rest;
            let abilities = Abilities(abilities);
            let has_colour = abilities.contains(Abilities::COLOUR);
            let (epoch, units, [stripe_rows, payload, clock_rate], first_frame) = rest;
            let (ports, ssrcs) = addresses;
            let rate = FrameRate { numerator, denominator };
            let mode = VideoMode { width, height, rate, format };
            let token = Token(token);
            Offer {
                token,
                epoch,
                mode,
                transport,
                units,
                stripe_rows,
                payload,
                first_frame,
                ports,
                ssrcs,
                clock_rate,
                abilities,
                colour: if has_colour { colour } else { [0; 4] },
                group: (transport == Transport::Multicast).then_some(group),
            }
        },
    )
}

/// Runs of packets as a request may have them.
fn runs() -> impl Strategy<Value = Vec<Range<u32>>> {
    let run = (0..1_000_u32, 1..=u32::from(u16::MAX));
    prop::collection::vec(run, 1..=NACK_RUNS_MAX).prop_map(|runs| {
        let mut end = 0;
        let run = |(gap, len): (u32, u32)| {
            let start = end + gap;
            end = start + len;
            start..end
        };
        runs.into_iter().map(run).filter(|run| run.end <= 1 << 24).collect()
    })
}

fn message() -> impl Strategy<Value = Message> {
    let text = "[a-zé ]{0,100}";
    let end = (any::<u8>(), text).prop_map(|(reason, text)| (Reason::from_number(reason), text));
    let counters = (any::<[u64; 6]>(), any::<[u32; 4]>());
    prop_oneof![
        any_offer().prop_map(|offer| Message::Offer(Box::new(offer))),
        end.clone().prop_map(|(reason, text)| Message::Refuse { reason, text }),
        end.prop_map(|(reason, text)| Message::Stop { reason, text }),
        any::<u16>().prop_map(|epoch| Message::Start { epoch }),
        any::<[u64; 5]>().prop_map(|[number, captured, sent, octets, dropped]| {
            Message::Frame(FrameNotice { number, captured, sent, octets, dropped })
        }),
        (any::<u32>(), any::<[u64; 3]>()).prop_map(|(id, [t1, t2, t3])| Message::Pong(Pong {
            id,
            t1,
            t2,
            t3
        })),
        (any::<u32>(), any::<u64>()).prop_map(|(id, t1)| Message::Ping(Ping { id, t1 })),
        counters.prop_map(|(counts, times)| {
            let [frames, dropped, packets, octets, ..] = counts;
            let [send_p50, send_p99, ..] = times;
            Message::Statistics(ServerStatistics {
                frames,
                dropped,
                packets,
                octets,
                send_p50,
                send_p99,
            })
        }),
        counters.prop_map(|(counts, [latency_p50, latency_p99, ..])| {
            let [frames, frames_lost, packets_lost, late, duplicate, tiles_concealed] = counts;
            Message::Report(Report {
                frames,
                frames_lost,
                packets_lost,
                late,
                duplicate,
                tiles_concealed,
                latency_p50,
                latency_p99,
                packets_recovered: latency_p50.into(),
                packets_repaired: latency_p99.into(),
                answers_in_time: latency_p99 as u8 % 4,
            })
        }),
        (any::<u64>(), runs()).prop_map(|(frame, packets)| Message::Nack(Nack { frame, packets })),
        (any::<u16>(), addresses()).prop_map(|(epoch, (ports, ssrcs))| Message::Accept(Accept {
            epoch,
            ports,
            ssrcs
        })),
        (any::<u8>(), prop::option::of(rate()), prop::option::of(size_max())).prop_map(
            |(format, rate, size_max)| Message::Change(Change { format, rate, size_max })
        ),
    ]
}

fn size_max() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![Just((0, 0)), (1..=32_768_u32, 1..=32_768_u32)]
}

/// Returns the message as an end of the first version writes it.
fn without_optional_fields(mut message: Message) -> Message {
    match &mut message {
        Message::Offer(offer) => offer.abilities = Abilities::default(),
        Message::Report(report) => {
            (report.packets_recovered, report.packets_repaired) = (0, 0);
            report.answers_in_time = 0;
        }
        Message::Change(change) => change.size_max = None,
        _ => {}
    }
    message
}

fn opening() -> impl Strategy<Value = Opening> {
    let sets = (any::<u64>(), any::<u8>(), prop::option::of(transport()), 0..64_u8);
    let rest = (prop::option::of(rate()), 0..32_u8);
    let control = (sets, 0..=64_u8, 0..=PAYLOAD_MAX, rest).prop_map(
        |((formats, transports, transport, format), units, payload, (rate, abilities))| {
            let formats = FormatSet(formats & !1).with(format);
            let transports = TransportSet(transports);
            let transports = transport.map_or(transports, |wished| transports.with(wished));
            let transports = TransportSet(transports.0 & 0x0f);
            Opening::Control(Wishes {
                formats,
                transports,
                format,
                transport,
                units,
                payload,
                rate,
                abilities: Abilities(abilities),
            })
        },
    );
    let unit = (any::<[u8; 16]>(), 0..64_u8)
        .prop_map(|(token, unit)| Opening::Unit(UnitOpening { token: Token(token), unit }));
    prop_oneof![control, unit]
}

fn written(message: &Message) -> Vec<u8> {
    let mut octets = Vec::new();
    message.write(&mut octets);
    octets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_read_as_it_was_written_and_its_prefixes_want_more(
        message in message(), behind: Vec<u8>,
    ) {
        let octets = written(&message);
        for len in 0..octets.len() {
            prop_assert_eq!(Message::parse(&octets[..len]), Ok(None));
        }
        let whole = [&octets[..], &behind].concat();
        prop_assert_eq!(Message::parse(&whole), Ok(Some((message, octets.len()))));
    }

    #[test]
    fn a_body_that_is_too_short_or_too_long_is_refused(message in message(), extra in 1..9_u32) {
        let message = without_optional_fields(message);
        let octets = written(&message);
        let len = octets.len() as u32 - 4;
        let mut longer = octets.clone();
        longer[1..4].copy_from_slice(&(len + extra).to_be_bytes()[1..]);
        longer.resize(octets.len() + extra as usize, 0);
        let expected = match &message {
            // The octets are those of a largest size, which a `Change` may have.
            Message::Change(change) if extra == 8 => {
                let change = Change { size_max: Some((0, 0)), ..*change };
                Ok(Some((Message::Change(change), longer.len())))
            }
            Message::Change(_) if extra < 4 => {
                Err(MessageError::Truncated { field: "the largest width" })
            }
            Message::Change(_) => Err(MessageError::Truncated { field: "the largest height" }),
            _ => Err(MessageError::Trailing(extra as usize)),
        };
        prop_assert_eq!(Message::parse(&longer), expected);
        for shorter in 0..len {
            let mut cut = octets[..4 + shorter as usize].to_vec();
            cut[1..4].copy_from_slice(&shorter.to_be_bytes()[1..]);
            let error = Message::parse(&cut).unwrap_err();
            prop_assert!(matches!(error, MessageError::Truncated { .. }), "{}", error);
        }
    }

    #[test]
    fn a_mutation_is_refused_or_read_as_written(
        message in message(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut octets = written(&message);
        for (place, octet) in mutations {
            let place = place.index(octets.len());
            octets[place] = octet;
        }
        if let Ok(Some((read, len))) = Message::parse(&octets) {
            let again = written(&read);
            prop_assert_eq!(Message::parse(&again).unwrap(), Some((read, len)));
        }
    }

    #[test]
    fn arbitrary_octets_are_read_or_refused(octets: Vec<u8>) {
        let _ = Message::parse(&octets);
        let _ = Opening::parse(&octets);
        let _ = Opening::parse(&[b"RSHT\0\x01", &octets[..]].concat());
    }

    #[test]
    fn an_opening_is_read_as_it_was_written_and_its_prefixes_want_more(
        opening in opening(), behind: Vec<u8>,
    ) {
        let mut octets = Vec::new();
        opening.write(&mut octets);
        prop_assert!(octets.len() <= Opening::LEN_MAX);
        for len in 0..octets.len() {
            prop_assert_eq!(Opening::parse(&octets[..len]), Ok(None));
        }
        let whole = [&octets[..], &behind].concat();
        prop_assert_eq!(Opening::parse(&whole), Ok(Some((opening, octets.len()))));
    }
}

#[test]
fn a_length_is_refused_before_its_body_is_waited_for() {
    let error = MessageError::TooLong { kind: 18, len: 4097 };
    assert_eq!(Message::parse(&[18, 0, 16, 1]), Err(error));
    assert_eq!(Message::parse(&[18, 0, 16, 0]), Ok(None));
    assert_eq!(Message::parse(&[9, 0, 0, 0]), Err(MessageError::Type(9)));
    assert_eq!(Message::parse(&[21, 0, 0, 0]), Err(MessageError::Type(21)));
}

#[test]
fn an_offer_is_written_as_in_the_table() {
    let octets = written(&Message::Offer(Box::new(offer())));
    assert_eq!(octets[..4], [1, 0, 0, 67]);
    assert_eq!(octets[4..20], [5; 16]);
    assert_eq!(octets[20..32], [0, 0, 7, 1, 0, 0, 15, 0, 0, 0, 8, 112]);
    assert_eq!(octets[32..52], [0, 0, 0, 60, 0, 0, 0, 1, 0, 0, 0, 36, 0, 0, 5, 128, 0, 0, 0, 0]);
    assert_eq!(octets[52..], [0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 3, 19, 137, 19, 138, 19, 139, 0]);
}

#[test]
fn fields_that_the_first_version_does_not_have_are_written_only_if_they_are_used() {
    let mut with = offer();
    with.abilities = Abilities::RECOVERY;
    let octets = written(&Message::Offer(Box::new(with.clone())));
    assert_eq!((octets[3], octets.last()), (68, Some(&1)));
    assert_eq!(Message::parse(&octets), Ok(Some((Message::Offer(Box::new(with)), 72))));
    let report = Report { packets_recovered: 258, ..Report::default() };
    let octets = written(&Message::Report(report));
    assert_eq!((octets[3], &octets[60..]), (64, &[0, 0, 0, 0, 0, 0, 1, 2][..]));
    assert_eq!(written(&Message::Report(Report::default()))[3], 56);
    let report = Report { packets_repaired: 772, answers_in_time: 3, ..Report::default() };
    let octets = written(&Message::Report(report));
    assert_eq!(octets[60..], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 3]);
    assert_eq!(Message::parse(&octets), Ok(Some((Message::Report(report), octets.len()))));
    let zeros = [&octets[..60], &[0; 17]].concat();
    assert_eq!(Message::parse(&zeros), Err(MessageError::Trailing(17)));
}

#[test]
fn a_request_for_packets_is_written_as_in_the_table_and_checked() {
    let nack = Nack { frame: 258, packets: vec![7..8, 8..65_543, 0x0001_0203..0x0001_0204] };
    let octets = written(&Message::Nack(nack.clone()));
    let runs = [0, 0, 7, 0, 1, 0, 0, 8, 0xff, 0xff, 1, 2, 3, 0, 1];
    assert_eq!(octets, [&[20, 0, 0, 24, 0, 0, 0, 0, 0, 0, 1, 2, 3][..], &runs].concat());
    assert_eq!(Message::parse(&octets), Ok(Some((Message::Nack(nack), 28))));
    let refused = |packets: &[Range<u32>]| {
        let nack = Nack { frame: 0, packets: packets.to_vec() };
        matches!(Message::parse(&written(&Message::Nack(nack))), Err(MessageError::Runs { .. }))
    };
    assert!(refused(&[]) && refused(&[3..3]));
    assert!(refused(&[5..7, 6..8]) && refused(&[5..7, 1..2]));
    let last = (1 << 24) - 1;
    assert!(!refused(&[last..last + 1]) && refused(&[last..last + 2]));
}

#[test]
fn lists_with_more_entries_than_units_are_refused_before_allocation() {
    let mut octets = written(&Message::Offer(Box::new(offer())));
    octets[4 + 59] = 65;
    assert_eq!(Message::parse(&octets), Err(MessageError::Count { field: "ports", count: 65 }));
}

#[test]
fn an_invalid_offer_is_reported_with_its_first_wrong_field() {
    let check = |change: &dyn Fn(&mut Offer)| {
        let mut offer = offer();
        change(&mut offer);
        offer.check().unwrap_err()
    };
    assert_eq!(offer().check(), Ok(()));
    let size = |width, height| OfferError::Size { width, height };
    let payload = |octets, max| OfferError::Payload { octets, max };
    assert_eq!(check(&|offer| offer.mode.format = 0), OfferError::Format(0));
    assert_eq!(check(&|offer| offer.mode.format = 64), OfferError::Format(64));
    assert_eq!(check(&|offer| offer.mode.width = 0), size(0, 2160));
    assert_eq!(check(&|offer| offer.mode.height = 32_769), size(3840, 32_769));
    assert_eq!(check(&|offer| offer.mode.rate.numerator = 0), OfferError::Rate(0, 1));
    assert_eq!(check(&|offer| offer.mode.rate.denominator = 0), OfferError::Rate(60, 0));
    assert_eq!(check(&|offer| offer.units = [0; 3]), OfferError::Units([0; 3]));
    assert_eq!(check(&|offer| offer.units = [3, 0, 1]), OfferError::Units([3, 0, 1]));
    assert_eq!(check(&|offer| offer.units = [63, 1, 1]), OfferError::Units([63, 1, 1]));
    assert_eq!(check(&|offer| offer.stripe_rows = 0), OfferError::StripeRows);
    assert_eq!(check(&|offer| offer.payload = 0), payload(0, 65_503));
    assert_eq!(check(&|offer| offer.payload = 65_504), payload(65_504, 65_503));
    assert_eq!(check(&|offer| offer.clock_rate = 90_000), OfferError::ClockRate(90_000));
    assert_eq!(check(&|offer| offer.transport = Transport::Rtp), OfferError::ClockRate(0));
    assert_eq!(check(&|offer| offer.ports[2] = 0), OfferError::Port);
    let count = |what, have, need| OfferError::Count { what, have, need };
    assert_eq!(check(&|offer| offer.ports.truncate(2)), count("ports", 2, 3));
    assert_eq!(check(&|offer| offer.transport = Transport::Tcp), count("ports", 3, 0));
    let sources = "synchronisation sources";
    assert_eq!(check(&|offer| offer.ssrcs.push(1)), count(sources, 1, 0));
    let rtp = |ssrcs: [u32; 3]| {
        let mut offer = offer();
        (offer.transport, offer.clock_rate) = (Transport::Rtp, 90_000);
        offer.ssrcs = ssrcs.to_vec();
        offer.check()
    };
    assert_eq!(rtp([1, 2, 3]), Ok(()));
    assert_eq!(rtp([1, 2, 1]), Err(OfferError::SharedSource));
}

#[test]
fn a_change_must_keep_what_existing_units_use() {
    let check = |change: &dyn Fn(&mut Offer)| {
        let mut offer = changed();
        change(&mut offer);
        offer.check_change(&self::offer())
    };
    assert_eq!(check(&|_| ()), Ok(()));
    let epoch = OfferError::Epoch { epoch: 2, expected: 1 };
    assert_eq!(check(&|offer| offer.epoch = 2), Err(epoch));
    assert_eq!(check(&|offer| offer.token.0[0] = 9), Err(OfferError::Fixed("token")));
    let fixed = |what| Err(OfferError::Fixed(what));
    assert_eq!(check(&|offer| offer.transport = Transport::Rtp), fixed("transport"));
    assert_eq!(check(&|offer| offer.ports[1] = 9), fixed("port of a unit"));
    assert_eq!(check(&|offer| offer.ports.truncate(2)), Ok(()));
    let before = Offer { epoch: u16::MAX, ..offer() };
    assert_eq!(Offer { epoch: 0, ..offer() }.check_change(&before), Ok(()), "it wraps");
    let before = Offer { first_frame: 101, ..offer() };
    assert!(changed().check_change(&before).is_err());
}

#[test]
fn colours_are_sent_with_their_ability_alone_and_never_cut() {
    let octets = |offer: Offer| {
        let mut octets = Vec::new();
        Message::Offer(Box::new(offer)).write(&mut octets);
        octets
    };
    let of_old = octets(offer());
    assert_eq!(
        octets(Offer { colour: [9; 4], ..offer() }),
        of_old,
        "an old client knows no colour"
    );
    let colour = [9, 16, 9, 0x82];
    let new = octets(Offer { abilities: Abilities::COLOUR, colour, ..offer() });
    assert_eq!(new.len(), of_old.len() + 5);
    assert_eq!(new[new.len() - 5..], [8, 9, 16, 9, 0x82]);
    for missing in 1..=4 {
        let mut cut = new[..new.len() - missing].to_vec();
        cut[3] -= missing as u8;
        let error = Message::parse(&cut).unwrap_err();
        assert_eq!(error, MessageError::Truncated { field: "the colour" });
    }
}

#[test]
fn a_group_has_an_address_and_a_port_for_each_unit_by_multicast_alone() {
    let to = |group: &str| Offer {
        transport: Transport::Multicast,
        group: Some(group.parse().unwrap()),
        ..offer()
    };
    for group in ["239.1.2.3:65533", "[ff12::7]:5000"] {
        let offer = to(group);
        assert_eq!(offer.check(), Ok(()));
        let mut octets = Vec::new();
        Message::Offer(Box::new(offer.clone())).write(&mut octets);
        assert_eq!(
            Message::parse(&octets),
            Ok(Some((Message::Offer(Box::new(offer)), octets.len())))
        );
    }
    for group in ["239.1.2.3:65534", "239.1.2.3:0", "10.1.2.3:5000", "[fe80::1]:5000"] {
        assert_eq!(to(group).check(), Err(OfferError::Group(Some(group.parse().unwrap()))));
    }
    let none = Offer { transport: Transport::Multicast, ..offer() };
    assert_eq!(none.check(), Err(OfferError::Group(None)));
    let of_udp = Offer { group: Some("239.1.2.3:5000".parse().unwrap()), ..offer() };
    assert!(matches!(of_udp.check(), Err(OfferError::Group(Some(_)))));
    let moved = Offer { epoch: 1, ..to("239.1.2.4:5000") };
    assert_eq!(moved.check_change(&to("239.1.2.3:5000")), Err(OfferError::Fixed("group")));
}
