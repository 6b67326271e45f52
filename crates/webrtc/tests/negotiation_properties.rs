//! Offer and answer of any two ends, and of texts that are damaged on the way.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, unreachable_pub, reason = "other tests use the rest")]
mod support;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use rushes_proto::sdp::{Direction, ExtensionMapping, Format, H264Parameters, MediaKind};
use rushes_webrtc::negotiation::{
    AgreedMedia, DtlsRole, Fragment, FragmentMedia, LocalFormat, LocalMedia, LocalSession,
    Negotiated, accept, answer, offer, read,
};
use support::*;

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![
        4 => Just(Direction::SendRecv),
        2 => Just(Direction::SendOnly),
        2 => Just(Direction::RecvOnly),
        1 => Just(Direction::Inactive),
    ]
}

fn profile_level_id() -> impl Strategy<Value = [u8; 3]> {
    let profile = prop::sample::select(vec![[0x42, 0xe0], [0x42, 0], [0x4d, 0], [0x64, 0]]);
    let level = prop::sample::select(vec![11_u8, 31, 40, 52]);
    (profile, level).prop_map(|([idc, flags], level)| [idc, flags, level])
}

fn video_format() -> impl Strategy<Value = Format> {
    prop_oneof![
        profile_level_id().prop_map(|id| h264(96, Some(id))),
        Just(other(96, "VP8")),
        Just(other(96, "VP9")),
        Just(other(96, "AV1")),
    ]
}

fn audio_format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(opus(96)), Just(pcmu())]
}

/// Media with these formats; their payload types are set by [`numbered`].
fn media() -> impl Strategy<Value = LocalMedia> {
    let video = (Just(MediaKind::Video), prop::collection::vec(video_format(), 1..4));
    let audio = (Just(MediaKind::Audio), prop::collection::vec(audio_format(), 1..3));
    let extensions = prop::collection::vec(0..4_usize, 0..4);
    let rest = (direction(), any::<bool>(), extensions, prop::option::of(1_u64..1 << 40));
    (prop_oneof![video, audio], rest).prop_map(|((kind, formats), rest)| {
        let (direction, with_rtx, extensions, limit) = rest;
        let is_video = kind == MediaKind::Video;
        let mut media =
            if is_video { video_of(direction, formats) } else { audio_of(direction, formats) };
        if !with_rtx {
            media.formats.iter_mut().for_each(|format| format.rtx = None);
        }
        media.extensions = extensions
            .into_iter()
            .map(|it| ExtensionMapping::new(it as u16 + 1, format!("urn:{it}")))
            .collect();
        media.extensions.dedup_by_key(|it| it.id);
        media.extensions.sort_by_key(|it| it.id);
        media.extensions.dedup_by_key(|it| it.id);
        media.receive_limit = limit;
        media
    })
}

/// Gives each format of a session a payload type of its own, from `first` on.
fn numbered(mut media: Vec<LocalMedia>, first: u8) -> Vec<LocalMedia> {
    let mut next = first;
    let mut take = || {
        let taken = number(next);
        next += 1;
        taken
    };
    for media in &mut media {
        media.formats.dedup_by(|a, b| a.format == b.format);
        for LocalFormat { format, rtx } in &mut media.formats {
            format.payload_type = take();
            *rtx = rtx.map(|_| take());
        }
    }
    media
}

fn any_session(first: u8) -> impl Strategy<Value = LocalSession> {
    let media = prop::collection::vec(media(), 1..4);
    (media, any::<[bool; 2]>()).prop_map(move |(media, [with_ice, serves])| {
        let mut session = session(numbered(media, first));
        if !with_ice {
            session.ice = None;
        }
        session.role = if serves { DtlsRole::Server } else { DtlsRole::Client };
        session
    })
}

fn mirrored(direction: Direction) -> Direction {
    match direction {
        Direction::SendOnly => Direction::RecvOnly,
        Direction::RecvOnly => Direction::SendOnly,
        same => same,
    }
}

/// Checks that both ends see one media alike.
fn check_media(here: &AgreedMedia, there: &AgreedMedia) {
    assert_eq!(here.direction, mirrored(there.direction));
    let name = |media: &AgreedMedia| media.send.remote.encoding.name().to_owned();
    assert_eq!(name(here), name(there));
    assert_eq!(here.receive.len(), 1);
    assert_eq!(there.receive.len(), 1);
    for (to, from) in [(here, there), (there, here)] {
        let (sent, received) = (&to.send, &from.receive[0]);
        assert_eq!((sent.payload_type, sent.rtx), (received.payload_type, received.rtx));
        let mut sent = sent.feedback.iter().map(ToString::to_string).collect::<Vec<_>>();
        let mut received = received.feedback.iter().map(ToString::to_string).collect::<Vec<_>>();
        sent.sort();
        received.sort();
        assert_eq!(sent, received);
        let mut ours: Vec<_> = to.extensions.iter().map(|it| (it.id, &it.uri, it.sends)).collect();
        let mut theirs: Vec<_> =
            from.extensions.iter().map(|it| (it.id, &it.uri, it.receives)).collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs);
        if to.sends() {
            assert!(from.remote_ssrc.is_some());
            assert_eq!(from.remote_rtx_ssrc.is_some(), to.send.rtx.is_some());
        }
    }
    assert_eq!(here.reduced_size, there.reduced_size);
    assert_eq!(here.extmap_allow_mixed, there.extmap_allow_mixed);
}

/// Negotiates between two ends, through texts, and checks that both agree.
fn negotiate(offerer: &LocalSession, answerer: &LocalSession) -> Option<(Negotiated, Negotiated)> {
    let offered = offer(offerer).unwrap();
    let text = offered.write();
    assert_eq!(read(&text).unwrap(), offered, "{text}");
    let (answered, there) = answer(answerer, &offered).ok()?;
    let text = answered.write();
    assert_eq!(read(&text).unwrap(), answered, "{text}");
    let here = accept(offerer, &answered).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_ne!(here.role, there.role);
    assert_eq!(here.is_bundled, there.is_bundled);
    assert_eq!(here.media.len(), there.media.len());
    for (index, (here, there)) in here.media.iter().zip(&there.media).enumerate() {
        assert_eq!((&here.mid, &here.kind), (&there.mid, &there.kind));
        match (&here.outcome, &there.outcome) {
            (Ok(here), Ok(there)) => {
                assert_eq!(here.local, index);
                check_media(here, there);
            }
            (Err(_), Err(_)) => {}
            (here, there) => panic!("{here:?}\n{there:?}\n{text}"),
        }
    }
    let ice = |it: &Negotiated| it.remote.ice.is_some();
    assert_eq!((ice(&here), ice(&there)), (offerer.ice.is_some(), offerer.ice.is_some()));
    Some((here, there))
}

fn config(cases: u32) -> ProptestConfig {
    let persistence = FileFailurePersistence::Off;
    ProptestConfig { failure_persistence: Some(Box::new(persistence)), cases, ..Default::default() }
}

/// Texts to damage.
const TEXTS: [&str; 6] = [
    include_str!("sdp/chromium_publish.sdp"),
    include_str!("sdp/chromium_simulcast.sdp"),
    include_str!("sdp/firefox_publish.sdp"),
    include_str!("sdp/pion_answer_publisher.sdp"),
    include_str!("sdp/rfc9725_offer.sdp"),
    include_str!("sdp/rfc9725_answer.sdp"),
];

fn caller() -> LocalSession {
    let way = Direction::SendRecv;
    session(vec![
        audio_of(way, vec![opus(111)]),
        video_of(way, vec![h264(96, Some(CONSTRAINED_BASELINE_3_1)), other(98, "VP8")]),
    ])
}

/// Does everything with a text of a stranger; returns how much was agreed on.
fn take(text: &str) -> usize {
    let _ = Fragment::parse(text);
    let Ok(description) = read(text) else { return 0 };
    let mut agreed = 0;
    for local in [caller(), publisher(), receiver()] {
        if let Ok((answered, negotiated)) = answer(&local, &description) {
            agreed += negotiated.agreed().count();
            let written = answered.write();
            let again = read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(again.media.len(), description.media.len(), "{written}");
            // What is written grows with our own session and the peer's m= lines only.
            assert!(written.len() <= text.len() + 8192, "{written}");
        }
        if let Ok(negotiated) = accept(&local, &description) {
            agreed += negotiated.agreed().count();
        }
    }
    agreed
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn both_ends_agree_on_the_same(offerer in any_session(96), answerer in any_session(100)) {
        negotiate(&offerer, &answerer);
    }

    #[test]
    fn two_like_ends_agree_on_all_media(mut offerer in any_session(96)) {
        for media in &mut offerer.media {
            media.direction = Direction::SendRecv;
        }
        let (_, there) = negotiate(&offerer, &offerer).expect("the same formats");
        prop_assert_eq!(there.agreed().count(), offerer.media.len());
    }

    #[test]
    fn damaged_texts_are_answered_or_refused(
        which in 0..TEXTS.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..12),
    ) {
        let mut octets = TEXTS[which].as_bytes().to_vec();
        for (place, value, edit) in edits {
            let place = place.index(octets.len().max(1)).min(octets.len().saturating_sub(1));
            match edit {
                _ if octets.is_empty() => {}
                0 => octets[place] = value,
                1 => octets.truncate(place),
                2 => { octets.remove(place); }
                _ => {
                    let end = octets.len().min(place + usize::from(value));
                    let copy = octets[place..end].to_vec();
                    octets.splice(place..place, copy);
                }
            }
        }
        take(&String::from_utf8_lossy(&octets));
    }

    #[test]
    fn lines_in_any_order_are_answered_or_refused(
        which in 0..TEXTS.len(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let mut lines: Vec<&str> = TEXTS[which].lines().collect();
        for pair in order.chunks_exact(2) {
            let (a, b) = (pair[0].index(lines.len()), pair[1].index(lines.len()));
            lines.swap(a, b);
        }
        take(&lines.join("\r\n"));
    }

    #[test]
    fn fragments_are_read_as_they_were_written(
        ufrag in prop::option::of("[a-zA-Z0-9+/]{4,8}"),
        password in prop::option::of("[a-zA-Z0-9+/]{22,24}"),
        flags in any::<[bool; 3]>(),
        media in prop::collection::vec(
            ("(audio|video) 9 RTP/AVP 0", prop::option::of("[a-z0-9]{1,4}"),
             prop::collection::vec("[0-9]{1,3} 1 udp [0-9]{1,9} 192[.]0[.]2[.]1 [0-9]{1,4} typ host", 0..4),
             any::<bool>()),
            0..4),
    ) {
        let media = media.into_iter().map(|(line, mid, candidates, end_of_candidates)| {
            FragmentMedia { line, mid, candidates, end_of_candidates }
        });
        let [is_lite, has_options, end_of_candidates] = flags;
        let media = media.collect();
        let fragment = Fragment { ufrag, password, is_lite, has_options, end_of_candidates, media };
        let written = fragment.write();
        prop_assert_eq!(Fragment::parse(&written).unwrap(), fragment, "{}", written);
    }
}

#[test]
fn the_texts_to_damage_are_agreed_on_when_they_are_whole() {
    for text in TEXTS {
        assert!(take(text) > 0, "{text}");
    }
}

#[test]
fn a_description_at_its_limits_is_answered_in_bounds() {
    // As many media, formats, groups and names as fit.
    let mids: Vec<String> = (0..64).map(|it| it.to_string()).collect();
    let group = format!("a=group:BUNDLE {}\r\n", mids.join(" "));
    let types: Vec<String> = (96..128).chain(0..32).map(|it| it.to_string()).collect();
    let media = mids.iter().map(|mid| {
        let kind = if mid.len() == 1 { "audio" } else { "video" };
        format!(
            "m={kind} 9 RTP/SAVPF {}\r\na=mid:{mid}\r\na=rtcp-mux\r\na=rtpmap:96 H264/90000\r\n\
             a=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\na=rtpmap:97 opus/48000/2\r\n",
            types.join(" ")
        )
    });
    let session = "v=0\r\ns=-\r\na=fingerprint:sha-256 AA\r\nc=IN IP4 192.0.2.7\r\n";
    let text = format!("{session}{}{}", group.repeat(64), media.collect::<String>());
    assert!(text.len() < 64 << 10);
    assert!(take(&text) > 0);
}

#[test]
fn parameters_that_only_the_stream_has_are_written_by_its_sender_only() {
    let mut film = publisher();
    let parameters = H264Parameters {
        profile_level_id: Some(CONSTRAINED_BASELINE_3_1),
        packetization_mode: 1,
        parameter_sets: vec![vec![0x67, 0x42, 0xe0, 0x1f], vec![0x68, 0xce]],
        ..H264Parameters::default()
    };
    film.media[1].formats[0].format.encoding = rushes_proto::sdp::Encoding::H264(parameters);
    let view = include_str!("sdp/chromium_view.sdp");
    let (answered, _) = answer(&film, &read(view).unwrap()).unwrap();
    assert!(answered.write().contains("sprop-parameter-sets=Z0LgHw==,aM4="));
}
