//! Offers, answers and later candidates of a stranger.

use rushes_proto::PayloadType;
use rushes_proto::sdp::{
    Direction, Encoding, ExtensionMapping, Feedback, Format, H264Parameters, MediaKind,
    OpusParameters,
};
use rushes_webrtc::negotiation::{
    Fragment, LocalFormat, LocalIce, LocalMedia, LocalSession, accept, answer, offer, read,
};

/// Answers the text, accepts it as an answer to an offer of ours, and reads it as later candidates.
pub fn negotiate(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    if let Ok(fragment) = Fragment::parse(&text) {
        let written = fragment.write();
        let again = Fragment::parse(&written).expect("what is written can be read");
        assert_eq!(again.candidates().count(), fragment.candidates().count());
    }
    let Ok(description) = read(&text) else { return };
    for local in sessions() {
        if let Ok((answered, negotiated)) = answer(&local, &description) {
            assert_eq!(answered.media.len(), description.media.len());
            let again = read(&answered.write()).expect("what is written can be read");
            assert_eq!(again.media.len(), answered.media.len());
            assert!(negotiated.agreed().all(|(index, _)| index < local.media.len()));
        }
        let _ = accept(&local, &description);
    }
}

/// Offers and answers of ours, those of browsers and others, and a fragment.
pub fn descriptions() -> Vec<Vec<u8>> {
    let sessions = sessions();
    // That of the last session says too little of H.264 for an offer.
    let offers: Vec<_> = sessions.iter().filter_map(|local| offer(local).ok()).collect();
    let answers = offers.iter().flat_map(|offered| {
        let answers = sessions.iter().filter_map(|local| answer(local, offered).ok());
        answers.map(|(answered, _)| answered.write().into_bytes()).collect::<Vec<_>>()
    });
    let ours = offers.iter().map(|it| it.write().into_bytes()).chain(answers);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/webrtc/tests/sdp");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("the folder exists").flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    let fragment = b"a=ice-ufrag:EsAw\r\na=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1\r\nm=audio 9 RTP/AVP 0\r\n\
        a=mid:0\r\na=candidate:1 1 udp 2122260223 192.0.2.1 61764 typ host\r\na=end-of-candidates\r\n";
    ours.chain(files.iter().filter_map(|file| std::fs::read(file.path()).ok()))
        .chain([fragment.to_vec()])
        .collect()
}

/// An end that sends and receives, with ICE, one that only receives, without, and one that receives any
/// H.264.
fn sessions() -> [LocalSession; 3] {
    let number = |value| PayloadType::new(value).expect("the payload type is valid");
    let h264 = |profile_level_id| {
        Encoding::H264(H264Parameters {
            profile_level_id,
            packetization_mode: 1,
            ..H264Parameters::default()
        })
    };
    let media = |kind, direction, payload_type, encoding| {
        let mut format = Format::new(number(payload_type), encoding);
        format.feedback = vec![Feedback::Nack, Feedback::NackPli, Feedback::TransportCc];
        let rtx = Some(number(payload_type + 1));
        let mut media = LocalMedia::new(kind, direction, vec![LocalFormat { format, rtx }]);
        media.extensions.push(ExtensionMapping::new(1, "urn:ietf:params:rtp-hdrext:sdes:mid"));
        media
    };
    let ice = LocalIce {
        ufrag: "rush".to_owned(),
        password: "0123456789abcdefghijkl".to_owned(),
        candidates: vec!["1 1 udp 2130706431 192.0.2.1 5004 typ host".to_owned()],
        ..LocalIce::default()
    };
    let opus = || Encoding::Opus(OpusParameters::default());
    let receives = Direction::RecvOnly;
    [
        (Direction::SendRecv, Some([0x42, 0xe0, 0x1f]), Some(ice.clone())),
        (receives, Some([0x64, 0x00, 0x34]), None),
        (receives, None, Some(ice)),
    ]
    .map(|(direction, profile_level_id, ice)| {
        let mut local = LocalSession::new(1, "cname", "sha-256 AB:CD");
        local.ice = ice;
        local.address = ([192, 0, 2, 1], 5004).into();
        local.media = vec![
            media(MediaKind::Audio, direction, 111, opus()),
            media(MediaKind::Video, direction, 96, h264(profile_level_id)),
        ];
        local
    })
}
