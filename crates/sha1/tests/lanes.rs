//! Every instruction set that this machine has, against a crypto library and the cases of RFC 2202.
#![allow(clippy::unwrap_used, reason = "a test may")]

use aws_lc_rs::hmac::{Context, HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};
use rushes_sha1::{HmacLanes, InstructionSet, Message};

/// Returns every available instruction set for a key, and the default combination.
fn all(key: &[u8]) -> Vec<HmacLanes> {
    let found = |set| HmacLanes::with(set, key);
    InstructionSet::ALL.into_iter().filter_map(found).chain(HmacLanes::new(key)).collect()
}

/// Computes the tag of one message by an independent library.
fn reference(key: &[u8], message: &Message<'_>) -> [u8; 20] {
    let mut context = Context::with_key(&Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, key));
    context.update(message.body);
    context.update(&message.suffix);
    context.sign().as_ref().try_into().unwrap()
}

/// Asserts that the tags of all implementations equal those of the reference, in order.
fn check(key: &[u8], messages: &[Message<'_>]) {
    let expected: Vec<_> = messages.iter().map(|message| reference(key, message)).collect();
    for lanes in all(key) {
        let mut tags = vec![[0; 20]; messages.len()];
        lanes.tags(messages, &mut tags);
        assert_eq!(tags, expected, "{lanes:?}");
    }
}

/// Returns octets that differ by position and by `seed`.
fn octets(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|n| (seed * 131 + n * 7 + n / 256) as u8).collect()
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().as_chunks::<2>().0;
    let octet = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
    pairs.iter().map(|pair| octet(pair).unwrap()).collect()
}

#[test]
fn the_cases_of_rfc_2202_give_its_digests() {
    let counted: Vec<u8> = (1..=25).collect();
    let long = [0xaa; 80];
    let cases: [(&[u8], &[u8], &str); 7] = [
        (&[0x0b; 20], b"Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
        (b"Jefe", b"what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (&[0xaa; 20], &[0xdd; 50], "125d7342b9ac11cd91a39af48aa17b4f63f175d3"),
        (&counted, &[0xcd; 50], "4c9007f4026250c6bc8414f9bf50c86c2d7235da"),
        (&[0x0c; 20], b"Test With Truncation", "4c1a03424b55e07fe7f27be1d58bb9324a9a5a04"),
        (
            &long,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "aa4ae5e15272d00e95705637ce8a3b55ed402112",
        ),
        (
            &long,
            b"Test Using Larger Than Block-Size Key and Larger Than One Block-Size Data",
            "e8e99d0f45237d786d6bbaa7965c7808bbff1a91",
        ),
    ];
    for (key, data, digest) in cases {
        let (body, suffix) = data.split_last_chunk::<4>().unwrap();
        let messages = [Message { body, suffix: *suffix }];
        for lanes in all(key) {
            let mut tags = [[0; 20]];
            lanes.tags(&messages, &mut tags);
            assert_eq!(tags[0], hex(digest)[..], "{lanes:?}");
        }
    }
}

#[test]
fn every_length_near_the_edges_of_blocks_gives_the_tag_of_the_reference() {
    let bodies: Vec<_> =
        (0..=300).chain(1330..=1480).map(|length| octets(length, length)).collect();
    for (n, body) in bodies.iter().enumerate() {
        check(b"one key", &[Message { body, suffix: (n as u32).to_be_bytes() }]);
    }
}

#[test]
fn lanes_that_end_early_take_the_next_message() {
    let bodies: Vec<_> =
        (0..=300).chain(1330..=1480).map(|length| octets(length, length)).collect();
    let messages: Vec<_> = bodies.iter().map(|body| Message { body, suffix: [1; 4] }).collect();
    check(b"one key", &messages);
}

#[test]
fn a_message_longer_than_a_datagram_gives_the_tag_of_the_reference() {
    let bodies = [octets(1, 65_535), octets(2, 70_001), octets(3, 12)];
    let messages = bodies.each_ref().map(|body| Message { body, suffix: [2; 4] });
    check(b"one key", &messages);
}

#[test]
fn a_key_of_any_length_gives_the_tag_of_the_reference() {
    let body = octets(1, 100);
    for length in 0..=130 {
        check(&octets(length, length), &[Message { body: &body, suffix: [3; 4] }]);
    }
}

#[test]
fn messages_without_a_place_for_their_tag_are_ignored() {
    let body = octets(1, 200);
    let messages = [Message { body: &body, suffix: [4; 4] }; 20];
    for lanes in all(b"one key") {
        let mut tags = [[0; 20]; 3];
        lanes.tags(&messages, &mut tags);
        assert_eq!(tags, [reference(b"one key", &messages[0]); 3], "{lanes:?}");
    }
}

#[test]
fn places_without_a_message_are_left_as_they_were() {
    let message = Message { body: b"body", suffix: [5; 4] };
    for lanes in all(b"one key") {
        let mut tags = [[9; 20]; 3];
        lanes.tags(&[message], &mut tags);
        assert_eq!(tags, [reference(b"one key", &message), [9; 20], [9; 20]], "{lanes:?}");
        lanes.tags(&[], &mut tags);
        assert_eq!(tags[1..], [[9; 20]; 2], "{lanes:?}");
    }
}

#[test]
fn tags_are_made_without_an_allocation() {
    let body = octets(1, 1400);
    let messages = [Message { body: &body, suffix: [6; 4] }; 40];
    for lanes in all(b"one key") {
        let mut tags = [[0; 20]; 40];
        let seen = allocation_counter::measure(|| lanes.tags(&messages, &mut tags));
        assert_eq!(seen.count_total, 0, "{lanes:?}");
    }
}

#[test]
fn the_debug_output_does_not_depend_on_the_key() {
    for (one, other) in all(&[0xab; 20]).iter().zip(all(&[0xcd; 70])) {
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}

#[test]
fn lanes_exist_where_an_instruction_set_does() {
    let sets = InstructionSet::ALL.map(|set| HmacLanes::with(set, b"one key"));
    let any = sets.iter().any(Option::is_some);
    assert_eq!(HmacLanes::new(b"one key").is_some(), any);
}

proptest! {
    #[test]
    fn any_messages_of_any_lengths_give_the_tags_of_the_reference(
        key in vec(any::<u8>(), 0..=100),
        shapes in vec((0_usize..=1600, any::<[u8; 4]>()), 0..=70),
    ) {
        let body = |(n, (length, _)): (usize, &(usize, [u8; 4]))| octets(n, *length);
        let bodies: Vec<_> = shapes.iter().enumerate().map(body).collect();
        let pairs = bodies.iter().zip(&shapes);
        let messages: Vec<_> =
            pairs.map(|(body, (_, suffix))| Message { body, suffix: *suffix }).collect();
        check(&key, &messages);
    }
}
