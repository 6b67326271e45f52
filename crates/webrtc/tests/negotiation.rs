//! Offer and answer with the descriptions of other programs (`tests/sdp/README.md`), and rule by rule.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod support;

use rushes_proto::Ssrc;
use rushes_proto::sdp::{
    Description, Direction, Encoding, ExtensionMapping, H265Parameters, H266Parameters, MediaKind,
};
use rushes_webrtc::negotiation::{
    AgreedMedia, DtlsRole, LocalSession, Negotiated, accept, answer, offer, read,
};
use support::*;

macro_rules! text {
    ($name:literal) => {
        include_str!(concat!("sdp/", $name, ".sdp"))
    };
}

/// A session that takes part in a call: it sends and receives Opus, H.264 and VP8.
fn caller() -> LocalSession {
    let way = Direction::SendRecv;
    session(vec![
        audio_of(way, vec![opus(111)]),
        video_of(way, vec![h264(96, Some(CONSTRAINED_BASELINE_3_1)), other(98, "VP8")]),
    ])
}

/// A session that sends VP8 and Opus.
fn vp8_publisher() -> LocalSession {
    let way = Direction::SendOnly;
    session(vec![audio_of(way, vec![opus(111)]), video_of(way, vec![other(98, "VP8")])])
}

/// What a test says of each media: the outcome in few words.
fn outcomes(negotiated: &Negotiated) -> Vec<String> {
    negotiated
        .media
        .iter()
        .map(|media| match &media.outcome {
            Ok(agreed) => in_words(agreed),
            Err(refusal) => refusal.to_string(),
        })
        .collect()
}

fn in_words(agreed: &AgreedMedia) -> String {
    let way = match agreed.direction {
        Direction::SendRecv => "both",
        Direction::SendOnly => "sends",
        Direction::RecvOnly => "receives",
        Direction::Inactive => "idle",
    };
    let format = if agreed.sends() { &agreed.send } else { &agreed.receive[0] };
    let name = format.remote.encoding.name();
    let rtx = format.rtx.map(|rtx| format!(" rtx {}", rtx.value())).unwrap_or_default();
    format!("{way} {name} {}{rtx}", format.payload_type.value())
}

/// Answers `text`, checks the answer as text, and returns both.
fn answered(local: &LocalSession, text: &str) -> (Description, Negotiated) {
    let offered = read(text).unwrap();
    let (description, negotiated) =
        answer(local, &offered).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let written = description.write();
    assert_eq!(read(&written).unwrap(), description, "{written}");
    assert_eq!(description.media.len(), offered.media.len());
    for ((theirs, ours), media) in
        offered.media.iter().zip(&description.media).zip(&negotiated.media)
    {
        assert_eq!((&ours.kind, &ours.profile), (&theirs.kind, &theirs.profile));
        assert_eq!(ours.attribute("mid"), theirs.attribute("mid"));
        assert_eq!(media.outcome.is_err(), ours.port == 0, "{written}");
        assert!(ours.formats.iter().all(|it| theirs.format(it.payload_type).is_some()));
    }
    (description, negotiated)
}

const REFUSED_DATA: &str = "application is not supported, only audio and video are";

#[test]
fn offers_of_other_programs_are_answered() {
    let both_send = |kind: &str| {
        format!(
            "the peer only {kind}s, and so does this end; one of them must change its direction"
        )
    };
    let table: [(&str, LocalSession, &[&str]); 14] = [
        (
            text!("chromium_publish"),
            receiver(),
            &["receives opus 111", "receives H264 102 rtx 103"],
        ),
        (text!("chromium_publish"), caller(), &["both opus 111", "both H264 108 rtx 109"]),
        (text!("chromium_view"), publisher(), &["sends opus 111", "sends H264 108 rtx 109"]),
        (text!("chromium_view"), vp8_publisher(), &["sends opus 111", "sends VP8 96 rtx 97"]),
        (text!("chromium_simulcast"), receiver(), &["receives H264 102 rtx 103", REFUSED_DATA]),
        (text!("firefox_publish"), receiver(), &["receives opus 109", "receives VP8 120 rtx 124"]),
        (text!("firefox_view"), caller(), &["sends opus 109", "sends VP8 120 rtx 124"]),
        (text!("firefox_simulcast"), receiver(), &["receives VP8 120 rtx 124", REFUSED_DATA]),
        (text!("aiortc_publish"), caller(), &["both opus 96", "both H264 101 rtx 102"]),
        (text!("aiortc_view"), vp8_publisher(), &["sends opus 96", "sends VP8 97 rtx 98"]),
        (text!("pion_publish"), receiver(), &["receives opus 111", "receives H264 102 rtx 103"]),
        (text!("pion_view"), publisher(), &["sends opus 111", "sends H264 106 rtx 107"]),
        (text!("gstreamer_publish"), caller(), &["both opus 97", "both H264 96"]),
        (text!("rfc9725_offer"), receiver(), &["receives opus 111", "receives VP8 96 rtx 97"]),
    ];
    for (text, local, expected) in table {
        let (_, negotiated) = answered(&local, text);
        assert_eq!(outcomes(&negotiated), expected, "{text}");
        assert!(negotiated.is_bundled);
        assert_eq!(negotiated.role, DtlsRole::Client);
        let ice = negotiated.remote.ice.unwrap();
        assert!(ice.trickle || text.contains("aiortc") || !text.contains("trickle"), "{text}");
        assert!(ice.candidates.iter().all(|it| it.split(' ').nth(1) == Some("1")));
        assert!(negotiated.remote.fingerprints[0].starts_with("sha-256 "));
    }
    let error = answer(&receiver(), &read(text!("chromium_view")).unwrap()).unwrap_err();
    assert!(error.to_string().contains(&both_send("receive")), "{error}");
}

#[test]
fn answers_of_other_programs_are_accepted() {
    let way = Direction::RecvOnly;
    let mut viewer = receiver();
    viewer.media[1] = video_of(way, vec![h264(96, Some([0x42, 0xe0, 0x34])), other(98, "VP8")]);
    let refused = "the peer refuses it (port 0)";
    let publishes: &[&str] = &["sends opus 111", "sends H264 96 rtx 97"];
    let views: &[&str] = &["receives opus 111", "receives H264 96 rtx 97"];
    let table: [(&str, &LocalSession, &[&str]); 12] = [
        (text!("chromium_answer_publisher"), &publisher(), publishes),
        (text!("chromium_answer_receiver"), &viewer, views),
        (text!("firefox_answer_publisher"), &publisher(), &["sends opus 111", refused]),
        (
            text!("firefox_answer_receiver"),
            &viewer,
            &["receives opus 111", "receives VP8 98 rtx 99"],
        ),
        (text!("aiortc_answer_publisher"), &publisher(), publishes),
        (text!("aiortc_answer_receiver"), &viewer, views),
        (text!("pion_answer_publisher"), &publisher(), publishes),
        (text!("pion_answer_receiver"), &viewer, views),
        (text!("livekit_answer_publisher"), &publisher(), publishes),
        (text!("mediamtx_answer_publisher"), &publisher(), &["sends opus 111", "sends H264 96"]),
        (text!("gstreamer_answer_publisher"), &publisher(), &["sends opus 111", "sends H264 96"]),
        (text!("rfc9725_answer"), &vp8_publisher(), &["sends opus 111", "sends VP8 96 rtx 97"]),
    ];
    for (text, local, expected) in table {
        let negotiated = accept(local, &read(text).unwrap()).unwrap();
        assert_eq!(outcomes(&negotiated), expected, "{text}");
        let is_whip = text.contains("setup:passive");
        let role = if is_whip { DtlsRole::Client } else { DtlsRole::Server };
        assert_eq!(negotiated.role, role);
    }
}

#[test]
fn what_a_browser_says_of_its_streams_is_returned() {
    let (_, negotiated) = answered(&receiver(), text!("chromium_publish"));
    let video = negotiated.media[1].outcome.as_ref().unwrap();
    assert_eq!(video.remote_ssrc, Some(Ssrc(3_528_897_290)));
    assert_eq!(video.remote_rtx_ssrc, Some(Ssrc(3_236_089_486)));
    assert_eq!(video.remote_cname.as_deref(), Some("Qkrx8XbAnf9Ei2G1"));
    let msid = video.remote_msid.as_ref().unwrap();
    assert_eq!(msid.stream, "4713fa83-8082-4b1c-a90c-0d558fef8944");
    assert_eq!(msid.track.as_deref(), Some("94fc2c20-cc15-47dd-91f5-17709e1f576e"));
    let feedback: Vec<String> = video.send.feedback.iter().map(ToString::to_string).collect();
    assert_eq!(feedback, ["transport-cc", "ccm fir", "nack", "nack pli"]);
    let extensions: Vec<_> = video.extensions.iter().map(|it| (it.id, it.uri.as_str())).collect();
    assert_eq!(extensions, [(4, MID), (3, WIDE)]);
    assert!(video.extensions.iter().all(|it| it.receives && !it.sends));
    assert!(video.reduced_size && video.extmap_allow_mixed);
}

#[test]
fn simulcast_and_restrictions_are_not_answered() {
    let offered = text!("chromium_simulcast");
    assert!(offered.contains("a=simulcast:send h;m;l"));
    let (description, _) = answered(&receiver(), offered);
    let written = description.write();
    assert!(!written.contains("a=simulcast") && !written.contains("a=rid"), "{written}");
}

#[test]
fn a_level_that_the_peer_does_not_name_is_reported_and_refused_if_wanted() {
    let mut film = publisher();
    film.media[1] = video_of(Direction::SendOnly, vec![h264(96, Some([0x42, 0xe0, 0x28]))]);
    let (description, negotiated) = answered(&film, text!("chromium_view"));
    let video = negotiated.media[1].outcome.as_ref().unwrap();
    let expected = "the peer decodes H.264 constrained baseline up to level 3.1, our stream is \
                    constrained baseline 4.0";
    assert_eq!(video.shortfall.as_ref().unwrap().to_string(), expected);
    // Levels may differ, so that the answer names ours.
    let Encoding::H264(parameters) = &description.media[1].formats[0].encoding else { panic!() };
    assert_eq!(parameters.profile_level_id, Some([0x42, 0xe0, 0x28]));
    film.strict_levels = true;
    let (_, negotiated) = answered(&film, text!("chromium_view"));
    assert_eq!(outcomes(&negotiated), ["sends opus 111", expected]);
}

#[test]
fn a_profile_that_the_peer_does_not_decode_is_refused_in_words() {
    let mut film = publisher();
    film.media[1] = video_of(Direction::SendOnly, vec![h264(96, Some([0x64, 0x00, 0x28]))]);
    let (_, negotiated) = answered(&film, text!("aiortc_view"));
    let expected = "the peer decodes H.264 baseline up to level 3.1, our stream is high 4.0";
    assert_eq!(outcomes(&negotiated)[1], expected);
}

#[test]
fn an_answer_without_a_profile_has_that_of_the_offer() {
    let mut film = publisher();
    film.media[1] = video_of(Direction::SendOnly, vec![h264(96, Some([0x64, 0x00, 0x28]))]);
    film.strict_levels = true;
    let text = text!("gstreamer_answer_publisher");
    assert!(!text.contains("profile-level-id"));
    let negotiated = accept(&film, &read(text).unwrap()).unwrap();
    assert_eq!(outcomes(&negotiated), ["sends opus 111", "sends H264 96"]);
}

/// An offer of one video, with these lines below it.
fn plain_offer(session_lines: &str, lines: &str) -> String {
    format!(
        "v=0\r\no=- 1 1 IN IP4 192.0.2.7\r\ns=-\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\n\
         a=fingerprint:sha-256 AA:BB\r\n{session_lines}\
         m=video 6000 UDP/TLS/RTP/SAVPF 96 97 98\r\na=rtpmap:96 H264/90000\r\n\
         a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\na=rtpmap:97 rtx/90000\r\n\
         a=fmtp:97 apt=96\r\na=rtpmap:98 VP8/90000\r\na=rtcp-mux\r\na=setup:actpass\r\n{lines}"
    )
}

/// A session without ICE that sends and receives H.264 and PCMU.
fn plain() -> LocalSession {
    let way = Direction::SendRecv;
    let video = video_of(way, vec![h264(96, Some(CONSTRAINED_BASELINE_3_1))]);
    let mut session = session(vec![video, audio_of(way, vec![pcmu()])]);
    session.ice = None;
    session
}

#[test]
fn one_media_without_bundle_and_ice_is_answered_in_kind() {
    let (description, negotiated) = answered(&plain(), &plain_offer("", ""));
    assert_eq!(outcomes(&negotiated), ["both H264 96 rtx 97"]);
    assert!(!negotiated.is_bundled && negotiated.remote.ice.is_none());
    assert_eq!(negotiated.remote.address, Some("192.0.2.7:6000".parse().unwrap()));
    let written = description.write();
    assert!(!written.contains("a=group") && !written.contains("ice-"), "{written}");
    assert!(!written.contains("a=mid"), "{written}");
}

#[test]
fn an_end_with_ice_answers_a_peer_without_it_without() {
    let (description, negotiated) = answered(&caller(), &plain_offer("", ""));
    assert!(negotiated.remote.ice.is_none());
    assert!(!description.write().contains("ice-"));
}

#[test]
fn further_media_without_bundle_is_refused() {
    let audio = "m=audio 6002 RTP/SAVPF 0\r\na=rtcp-mux\r\na=setup:actpass\r\n";
    let (_, negotiated) = answered(&plain(), &plain_offer("", audio));
    let expected =
        "it is not in the BUNDLE group of the media that is used; add it to a=group:BUNDLE";
    assert_eq!(outcomes(&negotiated), ["both H264 96 rtx 97", expected]);
}

#[test]
fn the_next_media_of_a_group_has_the_transport_if_the_first_is_refused() {
    let other = "a=mid:v\r\nm=audio 6002 UDP/TLS/RTP/SAVPF 0\r\na=rtcp-mux\r\na=setup:passive\r\n\
                 a=mid:a\r\na=fingerprint:sha-256 CC:DD\r\n";
    let text = plain_offer("a=group:BUNDLE v a\r\n", other);
    let mut local = plain();
    local.media.remove(0);
    local.role = DtlsRole::Server;
    let (description, negotiated) = answered(&local, &text);
    assert_eq!(outcomes(&negotiated), ["no further video is wanted here", "both PCMU 0"]);
    assert_eq!(description.attribute("group"), Some("BUNDLE a"));
    assert_eq!(negotiated.remote.fingerprints, ["sha-256 CC:DD"]);
    assert_eq!(negotiated.remote.address, Some("192.0.2.7:6002".parse().unwrap()));
    assert_eq!(negotiated.role, DtlsRole::Client, "the audio's a=setup:passive holds");
}

#[test]
fn a_first_media_that_is_not_wanted_carries_the_transport_of_media_without_one() {
    let mut local = receiver();
    local.media.remove(0);
    let offered = read(text!("firefox_publish")).unwrap();
    let (description, negotiated) = answer(&local, &offered).unwrap();
    assert_eq!(
        outcomes(&negotiated),
        ["no further audio is wanted here", "receives VP8 120 rtx 124"]
    );
    assert_eq!(description.attribute("group"), Some("BUNDLE 0 1"));
    let audio = &description.media[0];
    assert_eq!((audio.direction, audio.port), (Direction::Inactive, 5004));
    assert!(audio.attribute("candidate").is_some());
}

#[test]
fn roles_follow_from_both_setups() {
    use DtlsRole::{Client, Server};
    let table = [
        ("actpass", Client, Client, "active"),
        ("actpass", Server, Server, "passive"),
        ("active", Client, Server, "passive"),
        ("passive", Server, Client, "active"),
    ];
    for (offered, preferred, role, written) in table {
        let text = plain_offer("", "").replace("actpass", offered);
        let mut local = plain();
        local.role = preferred;
        let (description, negotiated) = answered(&local, &text);
        assert_eq!(negotiated.role, role, "{offered}");
        assert_eq!(description.media[0].attribute("setup"), Some(written));
    }
}

#[test]
fn directions_of_both_ends_meet() {
    use Direction::{Inactive, RecvOnly, SendOnly, SendRecv};
    // Rows: the peer's; columns: ours, in the order of `ways`.
    let ways = [SendRecv, SendOnly, RecvOnly, Inactive];
    let table = [
        (SendRecv, [Some(SendRecv), Some(SendOnly), Some(RecvOnly), Some(Inactive)]),
        (SendOnly, [Some(RecvOnly), None, Some(RecvOnly), Some(Inactive)]),
        (RecvOnly, [Some(SendOnly), Some(SendOnly), None, Some(Inactive)]),
        (Inactive, [Some(Inactive); 4]),
    ];
    for (theirs, row) in table {
        for (ours, expected) in ways.into_iter().zip(row) {
            let mut local = plain();
            local.media[0].direction = ours;
            let mut offered = read(&plain_offer("", "")).unwrap();
            offered.media[0].direction = theirs;
            let found = answer(&local, &offered).ok();
            let found = found.map(|(description, _)| description.media[0].direction);
            assert_eq!(found, expected, "{theirs:?} {ours:?}");
        }
    }
}

#[test]
fn mistakes_of_the_peer_are_named_with_their_media() {
    let ice = |ufrag, password| format!("a=ice-ufrag:{ufrag}\r\na=ice-pwd:{password}\r\n");
    let twice = "a=mid:1\r\nm=audio 6002 UDP/TLS/RTP/SAVPF 0\r\na=mid:1\r\n";
    let table = [
        (
            plain_offer("", "").replace("a=rtcp-mux\r\n", ""),
            "media 1 (video): it has no a=rtcp-mux",
        ),
        (
            plain_offer("", "").replace("a=fingerprint", "a=x"),
            "media 1 (video) has no a=fingerprint",
        ),
        (
            plain_offer("", "").replace("actpass", "holdconn"),
            "media 1 (video) has a=setup:holdconn",
        ),
        (plain_offer("", "").replace("UDP/TLS/", "MSRP/"), "the transport MSRP/RTP/SAVPF is not"),
        (
            plain_offer("", "").replace("packetization-mode=1;", "packetization-mode=2;"),
            "packetization-mode=2 only",
        ),
        (plain_offer("", "").replace("H264", "H263"), "the peer has H263, VP8, this end has H264"),
        (plain_offer("", "").replace("6000", "0"), "the peer refuses it (port 0)"),
        (
            plain_offer("", "").replace("c=IN IP4 192.0.2.7", "c=IN IP4 0.0.0.0"),
            "has neither ICE nor",
        ),
        (plain_offer("", &ice("abcd", "tooshort")), "a=ice-pwd of 22 to 256"),
        (plain_offer("", &ice("abcd", "0123456789abcdefghijkl")), "media 1 (video) uses ICE"),
        (plain_offer("", twice), "media 1 (video, mid 1) and media 2 (audio, mid 1) have the same"),
        (plain_offer("", "").replace("m=video", "m=text"), "text is not supported, only audio"),
    ];
    for (text, expected) in table {
        let error = answer(&plain(), &read(&text).unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}\n{text}");
    }
    let error = read(&plain_offer("", "m=audio x RTP/AVP 0\r\n")).unwrap_err().to_string();
    assert!(error.starts_with("1 of the 2 m= lines cannot be read"), "{error}");
    let empty = read("v=0\r\ns=-\r\n").unwrap();
    let error = answer(&plain(), &empty).unwrap_err().to_string();
    assert_eq!(error, "nothing can be sent or received: the description has no media");
}

#[test]
fn answers_that_do_not_belong_to_the_offer_are_refused() {
    let local = publisher();
    let text = text!("chromium_answer_publisher");
    let cut = text.split("m=video").next().unwrap();
    let swapped =
        text.replace("m=audio", "m=x").replace("m=video", "m=audio").replace("m=x", "m=video");
    let table = [
        (cut.to_owned(), "the answer has 1 m= lines, the offer 2"),
        (
            swapped,
            "media 1 (video, mid 0) of the answer stands where the offer has media 1 (audio, mid 0)",
        ),
        (text.replace("setup:active", "setup:actpass"), "an answer needs active or passive"),
        (text.replace("a=fingerprint", "a=x"), "media 1 (audio, mid 0) has no a=fingerprint"),
    ];
    for (text, expected) in table {
        let error = accept(&local, &read(&text).unwrap()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let without = text.replace("a=group:BUNDLE 0 1\r\n", "");
    let negotiated = accept(&local, &read(&without).unwrap()).unwrap();
    assert!(outcomes(&negotiated)[1].starts_with("it is not in the BUNDLE group"));
}

#[test]
fn payload_types_of_an_answer_hold_for_its_direction() {
    let mut local = caller();
    local.media.remove(0);
    let mut peer = local.clone();
    peer.media[0] = video_of(Direction::SendRecv, vec![h264(116, Some(CONSTRAINED_BASELINE_3_1))]);
    let (mut description, _) = answer(&peer, &offer(&local).unwrap()).unwrap();
    // A peer may have its own numbers (RFC 3264 section 6.1).
    let written = description.write().replace("96", "116").replace(" 97", " 117");
    description = read(&written.replace(":97", ":117")).unwrap();
    let negotiated = accept(&local, &description).unwrap();
    let video = negotiated.media[0].outcome.as_ref().unwrap();
    assert_eq!((video.send.payload_type, video.send.rtx), (number(116), Some(number(117))));
    let received = &video.receive[0];
    assert_eq!((received.payload_type, received.rtx), (number(96), Some(number(97))));
}

#[test]
fn identifiers_of_header_extensions_are_those_of_the_offer() {
    let ours = vec![
        ExtensionMapping::new(1, "urn:a"),
        ExtensionMapping::new(2, "urn:b"),
        ExtensionMapping::new(3, "urn:c"),
        ExtensionMapping::new(4, "urn:d"),
    ];
    let lines = "a=extmap:5 urn:b\r\na=extmap:20 urn:a\r\na=extmap:4097 urn:c\r\n\
                 a=extmap:7 urn:ietf:params:rtp-hdrext:encrypt urn:d\r\na=extmap:1 urn:other\r\n";
    for (mixed, expected) in
        [("", &[(5, "urn:b")][..]), ("a=extmap-allow-mixed\r\n", &[(20, "urn:a"), (5, "urn:b")])]
    {
        let mut local = plain();
        local.media[0].extensions.clone_from(&ours);
        let (description, negotiated) =
            answered(&local, &plain_offer("", &format!("{lines}{mixed}")));
        let agreed = &negotiated.media[0].outcome.as_ref().unwrap().extensions;
        let agreed: Vec<_> = agreed.iter().map(|it| (it.id, it.uri.as_str())).collect();
        assert_eq!(agreed, expected);
        assert_eq!(description.media[0].extensions.len(), expected.len());
    }
    let mut local = plain();
    local.media[0].extensions.clone_from(&ours);
    let lines = "a=extmap:5/sendonly urn:b\r\na=extmap:6/inactive urn:a\r\n";
    let (description, negotiated) = answered(&local, &plain_offer("", lines));
    let agreed = &negotiated.media[0].outcome.as_ref().unwrap().extensions;
    assert!(agreed.len() == 1 && agreed[0].receives && !agreed[0].sends);
    assert!(description.write().contains("a=extmap:5/recvonly urn:b\r\n"));
}

#[test]
fn limits_of_the_peer_are_returned_and_ours_are_written() {
    let lines = "b=AS:800\r\nb=TIAS:700000\r\na=ptime:20\r\na=maxptime:40\r\n";
    let mut local = plain();
    local.media[0].receive_limit = Some(1_234_567);
    let (description, negotiated) = answered(&local, &plain_offer("", lines));
    let video = negotiated.media[0].outcome.as_ref().unwrap();
    assert_eq!(video.send_limit, Some(700_000));
    assert_eq!(video.packet_time.unwrap().as_millis(), 20);
    assert_eq!(video.max_packet_time.unwrap().as_millis(), 40);
    let written = description.write();
    assert!(written.contains("b=AS:1235\r\nb=TIAS:1234567\r\n"), "{written}");
}

#[test]
fn changed_credentials_are_an_ice_restart() {
    let (_, before) = answered(&receiver(), text!("chromium_publish"));
    let (_, same) = answered(&receiver(), text!("chromium_publish"));
    assert!(!before.remote.is_restarted_by(&same.remote));
    let text = text!("chromium_publish").replace("a=ice-ufrag:MSBZ", "a=ice-ufrag:Next");
    let (_, after) = answered(&receiver(), &text);
    assert!(before.remote.is_restarted_by(&after.remote));
}

#[test]
fn sessions_that_cannot_be_described_are_refused_before_they_are_offered() {
    let way = Direction::SendOnly;
    let mut twice = publisher();
    twice.media[1] = video_of(way, vec![other(96, "VP9"), other(96, "VP8")]);
    let mut other_type = publisher();
    other_type.media[1] = video_of(way, vec![other(111, "VP8")]);
    let mut identifiers = publisher();
    identifiers.media[1].extensions = vec![ExtensionMapping::new(1, "urn:a")];
    let mut mids = publisher();
    mids.media[1].mid = Some("0".to_owned());
    let mut data = publisher();
    data.media[0].kind = MediaKind::Application;
    let table = [
        (session(Vec::new()), "media 1 of this end: an offer has 1 to 64 media, not 0"),
        (twice, "media 2 of this end: payload type 96 is used twice"),
        (other_type, "media 2 of this end: payload type 111 is used twice"),
        (identifiers, "media 2 of this end: identifier 1 is used for two header extensions"),
        (mids, "media 2 of this end: another media has the mid 0, too"),
        (receiver(), "media 2 of this end: an offer of H.264 needs a profile_level_id"),
        (data, "media 1 of this end: only audio and video are supported"),
    ];
    for (local, expected) in table {
        let error = offer(&local).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn formats_are_the_same_if_their_packets_are() {
    let encoded = |encoding| {
        let mut format = other(96, "");
        format.encoding = encoding;
        format
    };
    let h265 = |parameters| encoded(Encoding::H265(parameters));
    let any = H265Parameters::default();
    let main = H265Parameters { profile_id: Some(1), ..any.clone() };
    let table = [
        (other(96, "VP9"), "VP9/90000", "", true),
        (other(96, "vp9"), "VP9/90000", "profile-id=0", true),
        (other(96, "VP9"), "VP9/90000", "profile-id=2", false),
        (other(96, "AV1"), "AV1/90000", "level-idx=5;profile=0;tier=0", true),
        (other(96, "AV1"), "AV1/90000", "profile=1", false),
        (other(96, "VP8"), "VP8/90000", "max-fs=12288", true),
        (other(96, "VP8"), "VP8/48000", "", false),
        (other(96, "VP8"), "VP9/90000", "", false),
        (h265(any.clone()), "H265/90000", "profile-id=2", true),
        (h265(main.clone()), "H265/90000", "", true),
        (h265(main), "H265/90000", "profile-id=2", false),
        (h265(any), "H265/90000", "tx-mode=MRST", false),
        (encoded(Encoding::H266(H266Parameters::default())), "H266/90000", "", true),
        (opus(96), "opus/48000/2", "", true),
        (opus(96), "OPUS/48000", "", true),
        (opus(96), "opus/24000/2", "", false),
        (pcmu(), "PCMU/8000", "", true),
        (pcmu(), "PCMU/8000/1", "", true),
        (pcmu(), "PCMU/8000/2", "", false),
    ];
    for (ours, map, parameters, expected) in table {
        let lines = format!("a=rtpmap:96 {map}\r\na=fmtp:96 {parameters}\r\n");
        let text = format!(
            "v=0\r\ns=-\r\nc=IN IP4 192.0.2.7\r\na=fingerprint:sha-256 AA\r\na=setup:actpass\r\n\
             m=video 6000 UDP/TLS/RTP/SAVPF 96\r\na=rtcp-mux\r\n{lines}"
        );
        let mut local = plain();
        local.media[0] = video_of(Direction::SendRecv, vec![ours]);
        let found = answer(&local, &read(&text).unwrap());
        assert_eq!(found.is_ok(), expected, "{lines}");
        let Ok((description, _)) = found else { continue };
        let Encoding::Other { parameters: written, .. } = &description.media[0].formats[0].encoding
        else {
            continue;
        };
        let is_identified = parameters.contains("profile");
        assert_eq!(written, if is_identified { parameters } else { "" });
    }
}

#[test]
fn a_peer_that_takes_mode_0_only_is_answered_so() {
    let text = plain_offer("", "").replace("packetization-mode=1;", "");
    for direction in [Direction::SendOnly, Direction::RecvOnly] {
        let mut local = plain();
        local.media[0].direction = direction;
        let found = answer(&local, &read(&text).unwrap()).ok();
        let mode = found.map(|(description, _)| match &description.media[0].formats[0].encoding {
            Encoding::H264(parameters) => parameters.packetization_mode,
            other => panic!("{other:?}"),
        });
        assert_eq!(mode, Some(0));
    }
}

#[test]
fn reports_of_arrivals_are_agreed_on_if_both_ends_have_them() {
    let line = "a=rtcp-fb:* ack ccfb\r\n";
    for (ours, theirs) in [(true, line), (true, ""), (false, line)] {
        let mut local = plain();
        local.media[0].congestion_feedback = ours;
        let (description, negotiated) = answered(&local, &plain_offer("", theirs));
        let expected = ours && !theirs.is_empty();
        assert_eq!(negotiated.agreed().all(|(_, it)| it.congestion_feedback), expected);
        assert_eq!(description.write().contains(line), expected);
    }
}

#[test]
fn an_answer_that_moves_a_header_extension_loses_it() {
    let text = text!("chromium_answer_publisher").replace("a=extmap:1 ", "a=extmap:5 ");
    let negotiated = accept(&publisher(), &read(&text).unwrap()).unwrap();
    for (_, media) in negotiated.agreed() {
        let uris: Vec<&str> = media.extensions.iter().map(|it| it.uri.as_str()).collect();
        assert_eq!(uris, [WIDE]);
    }
}

#[test]
fn bundled_media_may_not_give_a_payload_type_two_meanings() {
    let audio = "a=mid:v\r\nm=audio 6002 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 opus/48000/2\r\n\
                 a=rtcp-mux\r\na=setup:actpass\r\na=mid:a\r\n";
    let text = plain_offer("a=group:BUNDLE v a\r\n", audio);
    let mut local = plain();
    local.media[1] = audio_of(Direction::SendRecv, vec![opus(111)]);
    let (_, negotiated) = answered(&local, &text);
    let expected = "payload type 96 means another format in other media of the BUNDLE group";
    assert_eq!(outcomes(&negotiated), ["both H264 96 rtx 97", expected]);
}

#[test]
fn media_that_an_answer_refuses_and_leaves_in_the_group_has_no_transport() {
    let text = text!("chromium_answer_publisher");
    let refused = text.replace("m=audio 9", "m=audio 0");
    let negotiated = accept(&publisher(), &read(&refused).unwrap()).unwrap();
    let expected = ["the peer refuses it (port 0)", "sends H264 96 rtx 97"];
    assert_eq!(outcomes(&negotiated), expected);
    assert!(negotiated.remote.ice.is_some());
}

#[test]
fn the_time_between_checks_is_proposed_and_read() {
    use std::time::Duration;
    let mut local = publisher();
    assert!(!offer(&local).unwrap().write().contains("ice-pacing"));
    local.ice.as_mut().unwrap().pacing = Some(Duration::from_millis(10));
    let offered = offer(&local).unwrap().write();
    assert!(offered.contains("a=ice-pacing:10\r\n"), "{offered}");
    let pacing = |offer: &str| {
        let (_, agreed) = answer(&receiver(), &read(offer).unwrap()).unwrap();
        agreed.remote.ice.unwrap().pacing
    };
    assert_eq!(pacing(&offered), Some(Duration::from_millis(10)));
    for bad in ["", "-1", "+1", "1 0", "ten", "12345678901", "99999999999999999999999"] {
        assert_eq!(pacing(&offered.replace("ice-pacing:10", &format!("ice-pacing:{bad}"))), None);
    }
    assert_eq!(
        pacing(&offered.replace("ice-pacing:10", "ice-pacing:9999999999")),
        Some(Duration::from_millis(9_999_999_999))
    );
}

#[test]
fn refused_media_has_the_transport_but_no_port_and_no_part_in_the_group() {
    let silent = session(vec![video_of(Direction::RecvOnly, vec![h264(96, None)])]);
    let (answer, _) = answer(&silent, &offer(&publisher()).unwrap()).unwrap();
    assert_eq!(answer.attribute("group"), Some("BUNDLE 1"));
    let [sound, video] = &answer.media[..] else { panic!("{answer:?}") };
    assert_eq!((sound.port, video.port), (0, 5004));
    for name in ["ice-ufrag", "ice-pwd", "fingerprint", "setup"] {
        assert!(sound.attribute(name).is_some(), "GStreamer refuses an answer without {name}");
        assert_eq!(sound.attribute(name), video.attribute(name));
    }
    assert_eq!(sound.attribute("candidate"), None);
}
