//! Descriptions as FFmpeg, GStreamer and browsers write them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use rushes_proto::sdp::{
    Address, Bandwidth, Description, Direction, Encoding, Feedback, Format, Media, MediaKind,
    Profile, RtcpPort, Unsupported,
};
use rushes_proto::{PayloadType, Ssrc};

/// Every file of `tests/sdp`.
const FILES: [(&str, &[u8]); 15] = [
    ("browser_offer", include_bytes!("sdp/browser_offer.sdp")),
    ("crypto", include_bytes!("sdp/crypto.sdp")),
    ("feedback_mux", include_bytes!("sdp/feedback_mux.sdp")),
    ("ffmpeg_h264", include_bytes!("sdp/ffmpeg_h264.sdp")),
    ("ffmpeg_h265", include_bytes!("sdp/ffmpeg_h265.sdp")),
    ("ffmpeg_ip6", include_bytes!("sdp/ffmpeg_ip6.sdp")),
    ("ffmpeg_multicast", include_bytes!("sdp/ffmpeg_multicast.sdp")),
    ("ffmpeg_opus", include_bytes!("sdp/ffmpeg_opus.sdp")),
    ("ffmpeg_pcmu", include_bytes!("sdp/ffmpeg_pcmu.sdp")),
    ("ffmpeg_srtp", include_bytes!("sdp/ffmpeg_srtp.sdp")),
    ("ffmpeg_two", include_bytes!("sdp/ffmpeg_two.sdp")),
    ("gstreamer_h264", include_bytes!("sdp/gstreamer_h264.sdp")),
    ("gstreamer_h265", include_bytes!("sdp/gstreamer_h265.sdp")),
    ("gstreamer_opus", include_bytes!("sdp/gstreamer_opus.sdp")),
    ("h266", include_bytes!("sdp/h266.sdp")),
];

fn read(name: &str) -> Description {
    let (_, octets) = FILES.iter().find(|(file, _)| *file == name).unwrap();
    Description::parse(octets).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn only_media(name: &str) -> Media {
    let mut description = read(name);
    assert_eq!(description.media.len(), 1, "{name}");
    description.media.remove(0)
}

fn only_format(name: &str) -> Format {
    only_media(name).supported().unwrap().clone()
}

#[test]
fn every_description_survives_a_round_trip() {
    for (name, octets) in FILES {
        let description = Description::parse(octets).unwrap();
        let written = description.write();
        assert_eq!(Description::parse(written.as_bytes()).unwrap(), description, "{name}");
        assert!(written.ends_with("\r\n") && !written.contains("\r\n\r\n"), "{name}");
        let unknown = ["a=tool", "a=mid", "a=control", "a=orient"];
        for line in unknown.iter().filter(|line| String::from_utf8_lossy(octets).contains(**line)) {
            assert!(written.contains(line), "{name}: {line}");
        }
    }
}

#[test]
fn ffmpeg_states_the_destination_of_h264_and_its_parameter_sets() {
    let description = read("ffmpeg_h264");
    assert_eq!(description.name, "No Name");
    assert!(description.attribute("TOOL").unwrap().starts_with("libavformat"));
    let media = &description.media[0];
    assert_eq!((&media.kind, media.port), (&MediaKind::Video, 5004));
    assert_eq!(media.ip().unwrap().to_string(), "127.0.0.1");
    assert_eq!((&media.rtcp, media.rtcp_port()), (&RtcpPort::Next, Some(5005)));
    assert_eq!(media.direction, Direction::SendRecv);
    let format = media.supported().unwrap();
    assert_eq!(format.clock_rate.hertz(), 90_000);
    let Encoding::H264(parameters) = &format.encoding else { panic!("{format:?}") };
    assert_eq!(parameters.packetization_mode, 1);
    assert_eq!(parameters.profile_level_id, Some([0x42, 0xc0, 0x0d]));
    let types: Vec<u8> = parameters.parameter_sets.iter().map(|set| set[0] & 0x1f).collect();
    assert_eq!(types, [7, 8]);
}

#[test]
fn ffmpeg_and_gstreamer_give_the_same_parameter_sets_of_h265() {
    let formats = ["ffmpeg_h265", "ffmpeg_multicast", "gstreamer_h265"].map(only_format);
    let [first, second, third] = formats.map(|format| match format.encoding {
        Encoding::H265(parameters) => parameters,
        other => panic!("{other:?}"),
    });
    assert_eq!(first, second);
    assert_eq!(first, third);
    assert_eq!(
        [&first.vps, &first.sps, &first.pps].map(|sets| (sets.len(), sets[0][0] >> 1)),
        [(1, 32), (1, 33), (1, 34)]
    );
    assert_eq!(first.max_don_diff, 0);
}

#[test]
fn opus_has_two_channels_whatever_its_case() {
    for name in ["ffmpeg_opus", "gstreamer_opus"] {
        let format = only_format(name);
        let Encoding::Opus(parameters) = &format.encoding else { panic!("{format:?}") };
        assert_eq!((format.clock_rate.hertz(), format.channels), (48_000, Some(2)));
        assert_eq!(parameters.sprop_stereo, name == "ffmpeg_opus");
        assert_eq!(parameters.max_capture_rate.is_some(), name == "gstreamer_opus");
    }
}

#[test]
fn multicast_has_a_time_to_live_in_ipv4_only() {
    let media = only_media("ffmpeg_multicast");
    assert_eq!((media.ip().unwrap().to_string().as_str(), media.ttl), ("239.10.1.1", Some(4)));
    let media = only_media("h266");
    assert_eq!((media.ip().unwrap().to_string().as_str(), media.ttl), ("ff3e::1234", None));
    assert_eq!(only_media("gstreamer_opus").ttl, Some(16));
}

#[test]
fn rtcp_may_have_a_port_of_its_own() {
    assert_eq!(only_media("gstreamer_opus").rtcp_port(), Some(5011));
}

#[test]
fn an_address_of_ipv6_is_read() {
    assert_eq!(only_media("ffmpeg_ip6").ip().unwrap().to_string(), "::1");
    let media = only_media("gstreamer_h265");
    assert_eq!(media.ip().unwrap().to_string(), "2001:db8::7");
}

#[test]
fn two_media_have_their_own_addresses_and_formats() {
    let description = read("ffmpeg_two");
    let supported: Vec<&str> =
        description.media.iter().map(|media| media.supported().unwrap().encoding.name()).collect();
    assert_eq!(supported, ["H264", "opus"]);
    assert!(description.media.iter().all(|media| media.address.is_some()));
    assert_eq!(description.write().matches("c=IN").count(), 1, "they share one c= line");
}

#[test]
fn a_payload_type_of_rfc_3551_needs_no_rtpmap() {
    let media = only_media("ffmpeg_pcmu");
    let pcmu = media.format(PayloadType::new(0).unwrap()).unwrap();
    assert_eq!((pcmu.encoding.name(), pcmu.clock_rate.hertz()), ("PCMU", 8000));
    assert_eq!(media.supported(), Err(Unsupported::Encoding("PCMU".to_owned())));
    assert_eq!(media.bandwidth, [Bandwidth { modifier: "AS".to_owned(), value: 64 }]);
}

#[test]
fn keys_are_read_also_where_ffmpeg_writes_the_plain_profile() {
    let media = only_media("ffmpeg_srtp");
    assert_eq!(media.profile, Profile::Avp);
    let [crypto] = &media.crypto[..] else { panic!("{media:?}") };
    assert_eq!((crypto.tag, crypto.suite.as_str()), (1, "AES_CM_128_HMAC_SHA1_80"));
    assert!(crypto.key_params.starts_with("inline:QUFB"));
}

#[test]
fn no_key_is_printed() {
    for name in ["ffmpeg_srtp", "crypto"] {
        let printed = format!("{:#?}", read(name));
        for crypto in read(name).media.iter().flat_map(|media| &media.crypto) {
            let key = crypto.key_params.strip_prefix("inline:").unwrap();
            assert!(!printed.contains(key), "{printed}");
        }
        assert!(printed.contains("(secret)"));
    }
    let misplaced = "v=0\ns=-\na=crypto:1 X inline:KEY\na=key-mgmt:mikey KEY\n";
    let printed = format!("{:?}", Description::parse(misplaced.as_bytes()).unwrap());
    assert!(!printed.contains("KEY"), "{printed}");
}

#[test]
fn gstreamer_announces_frame_rate_bandwidth_and_source() {
    let media = only_media("gstreamer_h264");
    assert_eq!(media.frame_rate, Some(30.0));
    assert_eq!(media.bandwidth[0].bits_per_second(), Some(2_097_000));
    assert_eq!(media.ssrcs[0].ssrc, Ssrc(3_401_582_790));
    assert!(media.ssrcs[0].cname.as_ref().unwrap().starts_with("user"));
    assert_eq!(media.attribute("control"), Some("stream=0"));
}

#[test]
fn parameters_and_feedback_may_precede_their_rtpmap() {
    let media = only_media("feedback_mux");
    let format = media.supported().unwrap();
    let Encoding::H264(parameters) = &format.encoding else { panic!("{format:?}") };
    assert_eq!(parameters.packetization_mode, 1);
    assert_eq!(parameters.profile_level_id, Some([0x42, 0xe0, 0x1f]));
    assert_eq!(parameters.other, [("level-asymmetry-allowed".to_owned(), "1".to_owned())]);
    assert_eq!(
        format.feedback,
        [
            Feedback::Nack,
            Feedback::NackPli,
            Feedback::CcmFir,
            Feedback::CcmTmmbr { smaxpr: Some(120) },
            Feedback::TrrInt(Duration::from_millis(100)),
            Feedback::GoogRemb,
            Feedback::TransportCc,
        ]
    );
}

#[test]
fn retransmissions_name_their_original() {
    let media = only_media("feedback_mux");
    let original = media.supported().unwrap().payload_type;
    let retransmission = media.retransmission(original).unwrap();
    assert_eq!(
        retransmission.encoding,
        Encoding::Rtx { apt: original, rtx_time: Some(Duration::from_secs(1)) }
    );
    assert_eq!(media.ssrc_groups[0].semantics, "FID");
    assert_eq!(media.ssrc_groups[0].ssrcs, [Ssrc(1001), Ssrc(1002)]);
    assert_eq!((&media.rtcp, media.rtcp_port()), (&RtcpPort::Mux, Some(5004)));
    assert!(media.reduced_size);
    assert_eq!(media.direction, Direction::SendOnly);
}

#[test]
fn a_browsers_offer_is_read_and_its_transport_refused() {
    let description = read("browser_offer");
    assert_eq!(description.name, "");
    assert_eq!(description.attribute("group"), Some("BUNDLE 0 1 2"));
    assert_eq!(description.media.len(), 3);
    for media in &description.media {
        assert!(matches!(media.supported(), Err(Unsupported::Transport(_))), "{media:?}");
    }
    assert_eq!(description.media[1].rtcp, RtcpPort::Mux);
    assert_eq!(description.media[0].ssrcs.len(), 1);
    assert_eq!(description.media[2].kind, MediaKind::Application);
}

#[test]
fn h266_with_decoding_order_numbers_is_read() {
    let format = only_format("h266");
    let Encoding::H266(parameters) = &format.encoding else { panic!("{format:?}") };
    assert_eq!((parameters.profile_id, parameters.level_id), (Some(1), Some(83)));
    assert_eq!(parameters.tier_flag, Some(false));
    assert_eq!(parameters.max_don_diff, 2);
    assert_eq!(parameters.interop_constraints, Some(vec![0x80]));
    assert_eq!(parameters.dci, [[0, 0x69, 0x40]]);
}

#[test]
fn the_origin_is_read_and_written() {
    let origin = read("crypto").origin;
    assert_eq!((origin.username.as_str(), origin.session_id), ("jdoe", 2_890_844_526));
    assert_eq!(origin.session_version, 2_890_842_807);
    assert_eq!(origin.address, Address::Ip("10.47.16.5".parse().unwrap()));
    assert!(read("crypto").write().contains("o=jdoe 2890844526 2890842807 IN IP4 10.47.16.5\r\n"));
}
