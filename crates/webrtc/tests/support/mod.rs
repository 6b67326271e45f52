//! Sessions of this end, as the tests of offer and answer have them.

use rushes_proto::sdp::{
    Direction, Encoding, ExtensionMapping, Feedback, Format, H264Parameters, MediaKind,
    OpusParameters,
};
use rushes_proto::{ClockRate, PayloadType, Ssrc};
use rushes_webrtc::negotiation::{LocalFormat, LocalIce, LocalMedia, LocalSession, Msid};

pub const MID: &str = "urn:ietf:params:rtp-hdrext:sdes:mid";
pub const WIDE: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";

pub const CONSTRAINED_BASELINE_3_1: [u8; 3] = [0x42, 0xe0, 0x1f];

pub fn number(value: u8) -> PayloadType {
    PayloadType::new(value).unwrap()
}

/// H.264 of this profile and level in mode 1.
pub fn h264(payload_type: u8, profile_level_id: Option<[u8; 3]>) -> Format {
    let parameters =
        H264Parameters { profile_level_id, packetization_mode: 1, ..H264Parameters::default() };
    video(payload_type, Encoding::H264(parameters))
}

pub fn other(payload_type: u8, name: &str) -> Format {
    let encoding = Encoding::Other { name: name.to_owned(), parameters: String::new() };
    video(payload_type, encoding)
}

fn video(payload_type: u8, encoding: Encoding) -> Format {
    let mut format = Format::new(number(payload_type), encoding);
    format.feedback =
        vec![Feedback::Nack, Feedback::NackPli, Feedback::CcmFir, Feedback::TransportCc];
    format
}

pub fn opus(payload_type: u8) -> Format {
    let parameters = OpusParameters { use_in_band_fec: true, ..OpusParameters::default() };
    let mut format = Format::new(number(payload_type), Encoding::Opus(parameters));
    format.feedback = vec![Feedback::TransportCc];
    format
}

pub fn pcmu() -> Format {
    let encoding = Encoding::Other { name: "PCMU".to_owned(), parameters: String::new() };
    let mut format = Format::new(number(0), encoding);
    format.clock_rate = ClockRate::new(8000).unwrap();
    format
}

pub fn audio_of(direction: Direction, formats: Vec<Format>) -> LocalMedia {
    let formats = formats.into_iter().map(LocalFormat::new).collect();
    let mut media = LocalMedia::new(MediaKind::Audio, direction, formats);
    media.extensions = vec![ExtensionMapping::new(1, MID), ExtensionMapping::new(2, WIDE)];
    media.ssrc = Some(Ssrc(0x1111));
    media.msid = Some(Msid { stream: "rushes".to_owned(), track: None });
    media
}

/// Video in these formats, each with retransmissions under the payload type after its own.
pub fn video_of(direction: Direction, formats: Vec<Format>) -> LocalMedia {
    let with_rtx = |format: Format| LocalFormat {
        rtx: PayloadType::new(format.payload_type.value() + 1),
        format,
    };
    let formats = formats.into_iter().map(with_rtx).collect();
    let mut media = LocalMedia::new(MediaKind::Video, direction, formats);
    media.extensions = vec![ExtensionMapping::new(1, MID), ExtensionMapping::new(2, WIDE)];
    media.ssrc = Some(Ssrc(0x2222));
    media.rtx_ssrc = Some(Ssrc(0x3333));
    media.msid = Some(Msid { stream: "rushes".to_owned(), track: None });
    media
}

/// A session with ICE and this media.
pub fn session(media: Vec<LocalMedia>) -> LocalSession {
    let fingerprint = format!("sha-256 {}", ["5A"; 32].join(":"));
    let mut session = LocalSession::new(4711, "rushes@example", fingerprint);
    session.ice = Some(LocalIce {
        ufrag: "rush".to_owned(),
        password: "0123456789abcdefghijkl".to_owned(),
        candidates: vec!["1 1 udp 2130706431 192.0.2.1 5004 typ host".to_owned()],
        is_lite: false,
        trickles: false,
        pacing: None,
    });
    session.address = "192.0.2.1:5004".parse().unwrap();
    session.media = media;
    session
}

/// A session that publishes a film: constrained baseline of level 3.1, with sound.
pub fn publisher() -> LocalSession {
    let way = Direction::SendOnly;
    session(vec![
        audio_of(way, vec![opus(111)]),
        video_of(way, vec![h264(96, Some(CONSTRAINED_BASELINE_3_1))]),
    ])
}

/// A session that receives any H.264, VP8 and Opus.
pub fn receiver() -> LocalSession {
    let way = Direction::RecvOnly;
    session(vec![
        audio_of(way, vec![opus(111)]),
        video_of(way, vec![h264(96, None), other(98, "VP8")]),
    ])
}
