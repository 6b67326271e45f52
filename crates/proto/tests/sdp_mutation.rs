//! Broken and arbitrary descriptions cause no panic and no growth; the parsed ones can be written.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use rushes_netsim::Seeded;
use rushes_proto::sdp::{
    Attribute, Crypto, DESCRIPTION_LEN_MAX, Description, LeftOut, Media, SdpError, WARNINGS_MAX,
};

/// Checks the conditions for arbitrary octets; returns whether they parse without warnings.
fn check(octets: &[u8]) -> bool {
    let Ok((description, warnings)) = Description::parse_with_warnings(octets) else {
        return false;
    };
    assert!(warnings.len() <= WARNINGS_MAX + 1);
    for media in &description.media {
        let _ = (media.supported(), media.ip(), media.rtcp_port(), media.is_secured());
        media.crypto.iter().for_each(check_crypto);
    }
    let written = description.write();
    match Description::parse_with_warnings(written.as_bytes()) {
        // Wildcard feedback is written once for each format, which may become too long.
        Ok((_, warnings)) if warnings.iter().any(|one| one.left_out == LeftOut::Rest) => {}
        Err(SdpError::TooLong { .. }) => {}
        Ok((read, warnings)) => {
            assert_eq!(read, description, "{written}");
            // Of unusable lines, only those with keys are written again.
            let keys = |media: &Media| media.attribute("crypto").is_some();
            assert!(warnings.is_empty() || description.media.iter().any(keys), "{warnings:?}");
        }
        Err(error) => panic!("{error} in what was read and written:\n{written}"),
    }
    warnings.is_empty()
}

/// Checks that a valid line keeps its meaning when it is written from its parts and parsed again.
fn check_crypto(line: &Crypto) {
    let Ok(valid) = line.valid() else { return };
    let written = Crypto::new(line.tag, &line.suite, &valid.keys, &valid.session).unwrap();
    let again = written.valid().unwrap();
    assert_eq!((&again.keys, &again.session), (&valid.keys, &valid.session));
}

const SEEDS: [&[u8]; 8] = [
    include_bytes!("sdp/browser_offer.sdp"),
    include_bytes!("sdp/crypto.sdp"),
    include_bytes!("sdp/feedback_mux.sdp"),
    include_bytes!("sdp/ffmpeg_multicast.sdp"),
    include_bytes!("sdp/ffmpeg_srtp.sdp"),
    include_bytes!("sdp/gstreamer_h264.sdp"),
    include_bytes!("sdp/gstreamer_opus.sdp"),
    include_bytes!("sdp/h266.sdp"),
];

/// Text that a mutation may insert: characters with a meaning, and values at the limits.
const PIECES: [&str; 25] = [
    "=",
    ":",
    ";",
    "/",
    " ",
    "\n",
    "\r",
    "\t",
    ",",
    "-",
    "*",
    "\u{0}",
    "é",
    "65536",
    "0",
    "255",
    "4294967296",
    "a=",
    "m=video 1 RTP/AVP 96\n",
    "c=IN IP6 ::\n",
    "a=rtcp-fb:* nack\n",
    "96 ",
    "a=ssrc:1 x:y\n",
    "a=extmap:1/sendonly urn:ietf:params:rtp-hdrext:encrypt urn:x y\n",
    "18446744073709551616",
];

fn mutate(text: &mut Vec<u8>, random: &mut Seeded) {
    for _ in 0..=random.below(4) {
        let place = random.below(text.len() as u64 + 1) as usize;
        let end = (place + random.below(12) as usize).min(text.len());
        match random.below(5) {
            0 => drop(text.drain(place..end)),
            1 if place < text.len() => text[place] = random.roll() as u8,
            2 if place < text.len() => text[place] ^= 0x20,
            3 => {
                let copy = text[place..end].to_vec();
                let to = random.below(text.len() as u64 + 1) as usize;
                text.splice(to..to, copy);
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len() as u64) as usize];
                text.splice(place..place, piece.bytes());
            }
        }
    }
}

#[test]
fn a_hundred_thousand_broken_descriptions_do_no_harm() {
    let mut random = Seeded(8866);
    let mut read = 0;
    for number in 0..100_000 {
        let mut text = SEEDS[number % SEEDS.len()].to_vec();
        mutate(&mut text, &mut random);
        read += usize::from(check(&text));
    }
    // Both outcomes must occur: valid descriptions and broken ones.
    assert!((10_000..90_000).contains(&read), "{read} of 100 000 were right");
}

#[test]
fn the_longest_lines_are_read_or_refused() {
    for line in ["m=audio 1 RTP/AVP 0", "a=fmtp:0 ", "a=ssrc:1 ", "s=", "a=rtcp-fb:* ", "=", "a"] {
        for fill in [" 1", ";x=1", ":", "9", ",AA==", "\n", "/1"] {
            let mut text = format!("v=0\nm=audio 1 RTP/AVP 0 96\na=rtpmap:96 H264/90000\n{line}");
            while text.len() + fill.len() < DESCRIPTION_LEN_MAX {
                text += fill;
            }
            check(text.as_bytes());
        }
    }
}

/// Lines that are unusable anywhere after `v=0`.
const ODD: [&str; 26] = [
    "b=AS:",
    "b=nothing",
    "c=IN IP4",
    "c=ATM NSAP 47.0091",
    "c=",
    "a=rtcp:",
    "a=rtcp:70000",
    "a=rtcp-fb:",
    "a=rtcp-fb:*",
    "a=ssrc:",
    "a=extmap:",
    "a=extmap:1",
    "a=extmap:0 urn:x",
    "a=extmap:15 urn:x",
    "a=extmap:256 urn:x",
    "a=extmap:1/sideways urn:x",
    "a=extmap:1 urn:ietf:params:rtp-hdrext:encrypt",
    "a=ssrc:4294967296 cname:x",
    "a=ssrc-group:",
    "a=ssrc-group:FID 1 x",
    "a=crypto:",
    "a=crypto:1 AES_CM_128_HMAC_SHA1_80",
    "y=0100000001",
    "yy=1",
    "no line",
    "a=x\u{1}",
];

/// Returns whether `attribute` is `line`, kept as written, as most names are at the session level.
fn is_kept(line: &str, attribute: &Attribute) -> bool {
    let text = line.strip_prefix("a=").unwrap_or_default();
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    (&attribute.name[..], &attribute.value[..]) == (name, value)
}

#[test]
fn an_odd_line_at_any_place_loses_none_of_the_others() {
    for seed in SEEDS {
        let text = String::from_utf8_lossy(seed);
        let lines: Vec<&str> = text.lines().collect();
        let (expected, none) = Description::parse_with_warnings(seed).unwrap();
        assert_eq!(none, []);
        for (odd, place) in ODD.iter().flat_map(|odd| (1..=lines.len()).map(move |at| (odd, at))) {
            let mut lines = lines.clone();
            lines.insert(place, odd);
            let text = lines.join("\n");
            let read = Description::parse_with_warnings(text.as_bytes());
            let (mut read, warnings) = read.unwrap_or_else(|error| panic!("{error}:\n{text}"));
            assert!(warnings.iter().all(|warning| warning.line == place + 1), "{warnings:?}");
            read.attributes.retain(|one| !is_kept(odd, one));
            for (media, expected) in read.media.iter_mut().zip(&expected.media) {
                media
                    .attributes
                    .retain(|one| expected.attributes.contains(one) || !is_kept(odd, one));
            }
            assert_eq!(read, expected, "{odd} as line {}", place + 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&octets);
        check(&[b"v=0\n", &octets[..]].concat());
    }

    #[test]
    fn any_lines_are_read_or_refused(
        lines in prop::collection::vec(("[a-z]", "[ -~\u{e9}]{0,40}"), 0..12),
    ) {
        let lines: Vec<String> = lines.iter().map(|(kind, text)| format!("{kind}={text}")).collect();
        let lines = lines.join("\n");
        check(format!("v=0\n{lines}").as_bytes());
        check(format!("v=0\nm=video 1 RTP/AVP 96\n{lines}").as_bytes());
    }
}
