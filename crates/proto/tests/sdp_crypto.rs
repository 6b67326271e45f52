//! Keys in descriptions (RFC 4568): the examples of the RFC, and lines that it forbids.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use rushes_proto::sdp::{
    Crypto, CryptoError, Description, FecOrder, InlineKey, KeyError, LIFETIME_MAX, Mki,
    SessionParameters,
};

const SHA1_80: &str = "AES_CM_128_HMAC_SHA1_80";
const KEY: &str = "inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj";
const OTHER: &str = "inline:NzB4d1BINUAvLEw6UzF3WSJ+PSdFcGdUJShpX1Zj";

fn line(text: &str) -> Crypto {
    let text = format!("v=0\nm=video 5004 RTP/SAVP 31\na=crypto:{text}\n");
    Description::parse(text.as_bytes()).unwrap().media[0].crypto[0].clone()
}

fn keys(key_params: &str) -> Result<Vec<InlineKey>, CryptoError> {
    let (suite, key_params) = (SHA1_80.to_owned(), key_params.to_owned());
    Crypto { tag: 1, suite, key_params, session_params: Vec::new() }.keys()
}

fn session(params: &str) -> Result<SessionParameters, CryptoError> {
    line(&format!("1 {SHA1_80} {KEY} {params}")).session()
}

#[test]
fn rfc_4568_section_4_1_one_key() {
    let crypto = line(&format!("1 {SHA1_80} {KEY}|2^20|1:32 "));
    let key = &crypto.keys().unwrap()[0];
    assert_eq!(&key.key_and_salt[..], b"wDfvg&T+)xG7@fb5jU,RaA}\\|p0%*#");
    assert_eq!(key.lifetime, Some(1 << 20));
    let mki = key.mki.as_ref().unwrap();
    assert_eq!((mki.octets().len(), mki.octets()[31], mki.to_string()), (32, 1, "1:32".to_owned()));
    assert_eq!(crypto.session().unwrap(), SessionParameters::default());
}

#[test]
fn rfc_4568_section_6_1_two_keys_with_identifiers() {
    let keys = keys(&format!("{KEY}|2^20|1:4;{OTHER}|2^20|2:4")).unwrap();
    let mki = |key: &InlineKey| key.mki.as_ref().unwrap().octets().to_vec();
    assert_eq!(mki(&keys[0]), [0, 0, 0, 1]);
    assert_eq!(mki(&keys[1]), [0, 0, 0, 2]);
}

#[test]
fn rfc_4568_section_6_3_all_session_parameters() {
    let text = format!(
        "KDR=24 UNENCRYPTED_SRTP unencrypted_srtcp UNAUTHENTICATED_SRTP FEC_ORDER=SRTP_FEC \
         FEC_KEY={OTHER} WSH=64 -FUTURE=x"
    );
    let read = session(&text).unwrap();
    assert_eq!((read.key_derivation_rate, read.window_size_hint), (Some(24), Some(64)));
    assert!(read.unencrypted_srtp && read.unencrypted_srtcp && read.unauthenticated_srtp);
    assert_eq!(read.fec_order, Some(FecOrder::SrtpFec));
    assert_eq!(read.fec_keys, keys(OTHER).unwrap());
}

#[test]
fn padding_may_be_absent() {
    let padded = "inline:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
    assert_eq!(keys(padded).unwrap(), keys(padded.trim_end_matches('=')).unwrap());
}

#[test]
fn a_wrong_key_is_reported_with_its_number_and_the_reason() {
    let wrong = |key_params: &str, key, reason| {
        let error = keys(key_params).unwrap_err();
        assert_eq!(error, CryptoError::Key { key, reason }, "{key_params}");
    };
    wrong("prompt", 1, KeyError::Method);
    wrong("uri:MDEy", 1, KeyError::Method);
    wrong("inline:", 1, KeyError::Length);
    wrong("inline:MDE*", 1, KeyError::Base64);
    wrong("inline:MDF", 1, KeyError::Base64);
    wrong(&format!("inline:{}", "MDEy".repeat(43)), 1, KeyError::Length);
    for lifetime in ["0", "2^49", "2^64", "2^x", "", "01", "281474976710657", "-1"] {
        wrong(&format!("{KEY}|{lifetime}"), 1, KeyError::Lifetime);
    }
    for mki in ["0:1", "256:1", "01:1", "x:1", ":1"] {
        wrong(&format!("{KEY}|{mki}"), 1, KeyError::MkiValue);
    }
    for mki in ["1:0", "1:129", "1:", "1:x"] {
        wrong(&format!("{KEY}|{mki}"), 1, KeyError::MkiLength);
    }
    wrong(&format!("{KEY}|1:4|2^20"), 1, KeyError::Fields);
    wrong(&format!("{KEY}|1:1;{OTHER}"), 2, KeyError::NoMki);
    wrong(&format!("{KEY}|1:1;{OTHER}|2:2"), 2, KeyError::OtherMkiLength);
    wrong(&format!("{KEY}|1:1;{OTHER}|1:1"), 2, KeyError::RepeatedMki);
    wrong(&format!("{KEY}|1:1;{KEY}|2:1"), 2, KeyError::RepeatedKey);
    let many: Vec<_> = (1..=17).map(|n| format!("inline:{:04}|{n}:1", 1000 + n)).collect();
    wrong(&many.join(";"), 17, KeyError::TooMany);
}

#[test]
fn wrong_session_parameters_are_named() {
    let says = |params: &str, wanted: &str| {
        let error = session(params).unwrap_err().to_string();
        assert!(error.contains(wanted), "{params}: {error}");
    };
    says("KDR=25", "session parameter 1: KDR must be a number from 0 to 24");
    says("WSH=64 KDR", "session parameter 2: KDR must be");
    says("WSH=63", "WSH must be a number from 64");
    says("UNENCRYPTED_SRTP=1", "UNENCRYPTED_SRTP must be without a value");
    says("FEC_ORDER=NONE", "FEC_ORDER must be FEC_SRTP or SRTP_FEC");
    says("FEC_KEY=inline:*", "key 1 of FEC_KEY: its key and salt are not in base64");
    says("KDR=1 kdr=2", "session parameter 2 repeats an earlier one");
    says("NEW=1", "NEW, is not known and not optional");
    says("d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj", "(no name)");
}

#[test]
fn a_key_for_error_correction_that_is_the_streams_is_wrong() {
    let crypto = line(&format!("1 {SHA1_80} {KEY} FEC_KEY={KEY}"));
    let error = crypto.valid().unwrap_err();
    assert_eq!(error, CryptoError::FecKey { key: 1, reason: KeyError::RepeatedKey });
}

#[test]
fn nothing_shows_a_key() {
    let crypto = line(&format!("1 {SHA1_80} {KEY} FEC_KEY={OTHER} {}", &KEY[7..]));
    let shown = format!("{crypto:?} {:?} {:?}", crypto.keys(), crypto.session());
    for secret in [&KEY[7..], &OTHER[7..], "wDfvg"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    assert!(!shown.contains("119, 68"), "{shown}");
}

#[test]
fn an_offer_is_answered_with_the_first_line_that_will_do() {
    let text = format!(
        "v=0\nm=video 5004 RTP/SAVP 31\na=crypto:1 NEW {KEY}\na=crypto:2 {SHA1_80} {KEY} KDR=99\n\
         a=crypto:1 {SHA1_80} {KEY}\na=crypto:3 {SHA1_80} {OTHER}\n"
    );
    let offer = Description::parse(text.as_bytes()).unwrap();
    let chosen = offer.media[0].first_acceptable_crypto(|line| line.line.suite == SHA1_80);
    assert_eq!(chosen.unwrap().line.tag, 3);
}

#[test]
fn a_line_that_does_not_fit_the_grammar_is_not_made() {
    let made = |tag, suite, keys: &[InlineKey]| {
        Crypto::new(tag, suite, keys, &SessionParameters::default()).unwrap_err()
    };
    let key = [InlineKey::new(&[1; 30])];
    assert_eq!(made(1_000_000_000, SHA1_80, &key), CryptoError::Tag(1_000_000_000));
    assert_eq!(made(1, "a b", &key), CryptoError::Suite);
    let missing = CryptoError::Key { key: 1, reason: KeyError::Missing };
    assert_eq!(made(1, SHA1_80, &[]), missing);
}

fn inline_keys() -> impl Strategy<Value = Vec<InlineKey>> {
    let one = (prop::collection::vec(any::<u8>(), 1..=128), prop::option::of(1..=LIFETIME_MAX));
    let mki = prop::option::of((1..=128_usize, any::<u8>()));
    (prop::collection::vec(one, 1..=4), mki).prop_filter_map(
        "keys that may stand together",
        |all| {
            let (all, mki) = all;
            let named = mki.or_else(|| (all.len() > 1).then_some((1, 0)));
            let keys = all.into_iter().enumerate().map(|(index, (octets, lifetime))| {
                let mut key = InlineKey::new(&octets);
                key.lifetime = lifetime;
                key.mki = named.and_then(|(len, seed)| {
                    let mut mki = vec![seed; len];
                    mki[len - 1] = index as u8 + 1;
                    Mki::new(&mki)
                });
                key
            });
            let keys: Vec<_> = keys.collect();
            let repeats =
                |n: usize| keys[..n].iter().any(|k| k.key_and_salt == keys[n].key_and_salt);
            (!(0..keys.len()).any(repeats)).then_some(keys)
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_comes_back(
        tag in 0..1_000_000_000_u32,
        keys in inline_keys(),
        rate in prop::option::of(0..=24_u8),
        flags in any::<[bool; 3]>(),
        window in prop::option::of(64..=u32::MAX),
    ) {
        let mut session = SessionParameters::default();
        session.key_derivation_rate = rate;
        session.unencrypted_srtp = flags[0];
        session.unencrypted_srtcp = flags[1];
        session.unauthenticated_srtp = flags[2];
        session.window_size_hint = window;
        let written = Crypto::new(tag, SHA1_80, &keys, &session).unwrap();
        let mut description = Description::parse(b"v=0\nm=video 5004 RTP/SAVP 31\n").unwrap();
        description.media[0].crypto.push(written);
        let read = Description::parse(description.write().as_bytes()).unwrap();
        let valid = read.media[0].crypto[0].valid().unwrap();
        prop_assert_eq!(valid.line.tag, tag);
        prop_assert_eq!(valid.keys, keys);
        prop_assert_eq!(valid.session, session);
    }
}
