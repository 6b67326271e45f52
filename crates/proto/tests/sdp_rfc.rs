//! The examples of the RFCs, each named.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use rushes_proto::PayloadType;
use rushes_proto::sdp::{
    Address, Description, Encoding, Feedback, Media, MediaKind, Profile, RtcpPort, Unsupported,
};

/// Parses `lines` as an RFC shows them, perhaps without `v=0`.
fn parse(lines: &str) -> Description {
    let lines = lines.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let start = if lines.trim_start().starts_with("v=0") { "" } else { "v=0\n" };
    let description = Description::parse((start.to_owned() + &lines).as_bytes()).unwrap();
    assert_eq!(Description::parse(description.write().as_bytes()).unwrap(), description);
    description
}

fn media(lines: &str) -> Media {
    parse(lines).media.remove(0)
}

fn payload_type(value: u8) -> PayloadType {
    PayloadType::new(value).unwrap()
}

#[test]
fn rfc_6184_section_8_3_an_offer_of_all_packetization_modes() {
    let media = media(
        "m=video 49170 RTP/AVP 100 99 98
        a=rtpmap:98 H264/90000
        a=fmtp:98 profile-level-id=42A01E; packetization-mode=0; sprop-parameter-sets=Z0I=
        a=rtpmap:99 H264/90000
        a=fmtp:99 profile-level-id=42A01E; packetization-mode=1; sprop-parameter-sets=Z0I=,aM4=
        a=rtpmap:100 H264/90000
        a=fmtp:100 profile-level-id=42A01E; packetization-mode=2; sprop-interleaving-depth=45",
    );
    let order: Vec<u8> = media.formats.iter().map(|format| format.payload_type.value()).collect();
    assert_eq!(order, [100, 99, 98]);
    assert_eq!(media.formats[0].supported(), Err(Unsupported::PacketizationMode(2)));
    let chosen = media.supported().unwrap();
    assert_eq!(chosen.payload_type, payload_type(99));
    let Encoding::H264(parameters) = &chosen.encoding else { panic!("{chosen:?}") };
    assert_eq!(parameters.profile_level_id, Some([0x42, 0xa0, 0x1e]));
    assert_eq!(parameters.parameter_sets, [vec![0x67, 0x42], vec![0x68, 0xce]]);
}

#[test]
fn rfc_6184_interleaved_mode_alone_is_refused_by_name() {
    let media = media(
        "m=video 49170 RTP/AVP 100 101
        a=rtpmap:100 H264/90000
        a=fmtp:100 packetization-mode=2
        a=rtpmap:101 VP8/90000",
    );
    assert_eq!(media.supported(), Err(Unsupported::PacketizationMode(2)));
}

#[test]
fn rfc_7798_section_7_2_1() {
    let media = media(
        "m=video 49170 RTP/AVP 98
        a=rtpmap:98 H265/90000
        a=fmtp:98 profile-id=1; sprop-vps=QAEMAf//",
    );
    let Encoding::H265(parameters) = &media.supported().unwrap().encoding else { panic!() };
    assert_eq!((parameters.profile_id, parameters.vps[0][0] >> 1), (Some(1), 32));
}

#[test]
fn rfc_7798_section_7_1_every_parameter_of_a_stream() {
    let media = media(
        "m=video 49170 RTP/AVP 98
        a=rtpmap:98 H265/90000
        a=fmtp:98 profile-space=0;profile-id=1;tier-flag=1;level-id=123;\
interop-constraints=B00000000000;profile-compatibility-indicator=60000000;\
tx-mode=SRST;sprop-max-don-diff=4;sprop-depack-buf-nalus=5;sprop-depack-buf-bytes=65536",
    );
    let Encoding::H265(parameters) = &media.supported().unwrap().encoding else { panic!() };
    assert_eq!(parameters.interop_constraints, Some([0xb0, 0, 0, 0, 0, 0]));
    assert_eq!(parameters.profile_compatibility, Some(0x6000_0000));
    assert_eq!((parameters.tier_flag, parameters.level_id), (Some(true), Some(123)));
    assert_eq!(parameters.max_don_diff, 4);
    assert_eq!(parameters.depack_buf_nalus, Some(5));
    assert_eq!(parameters.depack_buf_bytes, Some(65_536));
    assert!(parameters.other.is_empty());
}

#[test]
fn rfc_7798_section_7_2_5_several_streams_are_refused() {
    let media = media(
        "m=video 49170 RTP/AVP 98
        a=rtpmap:98 H265/90000
        a=fmtp:98 tx-mode=MRST",
    );
    assert_eq!(media.supported(), Err(Unsupported::TransmissionMode("MRST".to_owned())));
}

#[test]
fn rfc_9328_section_7_3_1_a_misspelt_parameter_is_no_error() {
    let media = media(
        "m=video 49170 RTP/AVP 98
        a=rtpmap:98 H266/90000
        a=fmtp:98 profile-id=1; level_id=83;",
    );
    let Encoding::H266(parameters) = &media.supported().unwrap().encoding else { panic!() };
    assert_eq!((parameters.profile_id, parameters.level_id), (Some(1), None));
    assert_eq!(parameters.other, [("level_id".to_owned(), "83".to_owned())]);
}

#[test]
fn rfc_7587_section_7_example_2() {
    let media = media(
        "m=audio 54312 RTP/AVP 101
        a=rtpmap:101 opus/48000/2
        a=fmtp:101 maxplaybackrate=16000; sprop-maxcapturerate=16000; \
maxaveragebitrate=20000; stereo=1; useinbandfec=1; usedtx=0
        a=ptime:40
        a=maxptime:40",
    );
    let Encoding::Opus(parameters) = &media.supported().unwrap().encoding else { panic!() };
    assert_eq!(parameters.max_playback_rate, Some(16_000));
    assert_eq!(parameters.max_capture_rate, Some(16_000));
    assert_eq!(parameters.max_average_bit_rate, Some(20_000));
    assert!(parameters.stereo && parameters.use_in_band_fec);
    assert!(!parameters.use_dtx && !parameters.sprop_stereo && !parameters.cbr);
    assert_eq!(media.packet_time, Some(Duration::from_millis(40)));
    assert_eq!(media.max_packet_time, Some(Duration::from_millis(40)));
}

#[test]
fn rfc_4588_section_8_6_retransmissions_in_a_session_of_their_own() {
    let description = parse(
        r"v=0
        o=mascha 2980675221 2980675778 IN IP4 host.example.net
        c=IN IP4 192.0.2.0
        a=group:FID 1 2
        m=audio 49170 RTP/AVPF 96
        a=rtpmap:96 AMR/8000
        a=fmtp:96 octet-align=1
        a=rtcp-fb:96 nack
        a=mid:1
        m=audio 49172 RTP/AVPF 97
        a=rtpmap:97 rtx/8000
        a=fmtp:97 apt=96;rtx-time=3000
        a=mid:2",
    );
    let name = "host.example.net".to_owned();
    assert_eq!(description.origin.address, Address::Name { name, ip6: false });
    assert_eq!(description.attribute("group"), Some("FID 1 2"));
    let mids = description.media.iter().map(|media| media.attribute("mid").unwrap());
    assert_eq!(mids.collect::<Vec<_>>(), ["1", "2"]);
    let rtx = &description.media[1].formats[0];
    assert_eq!(
        rtx.encoding,
        Encoding::Rtx { apt: payload_type(96), rtx_time: Some(Duration::from_secs(3)) }
    );
    assert_eq!(rtx.clock_rate.hertz(), 8000);
}

#[test]
fn rfc_4588_section_8_8_retransmissions_in_the_same_session() {
    let media = media(
        r"m=video 49170 RTP/AVPF 96 97
        a=rtpmap:96 MP4V-ES/90000
        a=rtcp-fb:96 nack
        a=fmtp:96 profile-level-id=8;config=01010000012000884006682C2090A21F
        a=rtpmap:97 rtx/90000
        a=fmtp:97 apt=96;rtx-time=3000",
    );
    assert_eq!(media.profile, Profile::Avpf);
    assert_eq!(media.retransmission(payload_type(96)).unwrap().payload_type, payload_type(97));
    assert_eq!(media.format(payload_type(96)).unwrap().feedback, [Feedback::Nack]);
    assert_eq!(media.supported(), Err(Unsupported::Encoding("MP4V-ES".to_owned())));
}

#[test]
fn rfc_4585_section_4_2_example_2_a_wildcard_holds_for_each_format() {
    let description = parse(
        "v=0
        o=alice 3203093520 3203093520 IN IP4 host.example.com
        s=Multicast video with feedback
        t=3203130148 3203137348
        m=audio 49170 RTP/AVP 0
        c=IN IP4 224.2.1.183
        a=rtpmap:0 PCMU/8000
        m=video 51372 RTP/AVPF 98 99
        c=IN IP4 224.2.1.184
        a=rtpmap:98 H263-1998/90000
        a=rtpmap:99 H261/90000
        a=rtcp-fb:* nack
        a=rtcp-fb:98 nack rpsi",
    );
    let video = &description.media[1];
    let rpsi = Feedback::Other("nack rpsi".to_owned());
    assert_eq!(video.formats[0].feedback, [Feedback::Nack, rpsi]);
    assert_eq!(video.formats[1].feedback, [Feedback::Nack]);
    assert!(description.media[0].formats[0].feedback.is_empty());
    assert_eq!(video.ip().unwrap().to_string(), "224.2.1.184");
}

#[test]
fn rfc_4585_section_4_2_example_1_a_host_name_must_be_looked_up() {
    let media = media(
        "t=0 0
        c=IN IP4 host.example.com
        m=audio 49170 RTP/AVPF 0 96
        a=rtpmap:96 telephone-event/8000
        a=fmtp:96 0-16
        a=rtcp-fb:96 nack",
    );
    assert_eq!(media.ip(), Err(Unsupported::HostName("host.example.com".to_owned())));
    let Encoding::Other { parameters, .. } = &media.formats[1].encoding else { panic!() };
    assert_eq!(parameters, "0-16");
}

#[test]
fn rfc_5104_section_7_3_example_3() {
    let media = media(
        "m=video 51372 RTP/AVPF 98
        a=rtpmap:98 H263-1998/90000
        a=rtcp-fb:98 ccm tstr
        a=rtcp-fb:98 ccm fir
        a=rtcp-fb:* ccm tmmbr smaxpr=120",
    );
    assert_eq!(
        media.formats[0].feedback,
        [
            Feedback::Other("ccm tstr".to_owned()),
            Feedback::CcmFir,
            Feedback::CcmTmmbr { smaxpr: Some(120) },
        ]
    );
}

#[test]
fn rfc_5761_section_5_1_1() {
    let media = media(
        "c=IN IP6 2001:DB8::211:24ff:fea3:7a2e
        m=audio 49170 RTP/AVP 97
        a=rtpmap:97 iLBC/8000
        a=rtcp:53020 IN IP4 192.0.2.9
        a=rtcp-mux",
    );
    assert_eq!(media.rtcp, RtcpPort::Mux);
    assert_eq!(media.ip().unwrap().to_string(), "2001:db8::211:24ff:fea3:7a2e");
}

#[test]
fn rfc_3605_section_2_1() {
    let one = media("m=audio 49170 RTP/AVP 0\na=rtcp:53020 IN IP6 2001:2345:6789:ABCD::7");
    let address = Address::Ip("2001:2345:6789:abcd::7".parse().unwrap());
    assert_eq!(one.rtcp, RtcpPort::Port(53_020, Some(address)));
    assert_eq!(media("m=audio 49170 RTP/AVP 0\na=rtcp:53020").rtcp, RtcpPort::Port(53_020, None));
}

#[test]
fn rfc_4568_section_4_media_of_another_transport_is_kept() {
    let description = Description::parse(include_bytes!("sdp/crypto.sdp")).unwrap();
    let [video, audio, whiteboard] = &description.media[..] else { panic!() };
    assert_eq!((&video.profile, video.ttl), (&Profile::Savp, Some(127)));
    assert_eq!(video.crypto[0].suite, "AES_CM_128_HMAC_SHA1_80");
    assert!(video.crypto[0].key_params.ends_with("|2^20|1:32"));
    assert_eq!(audio.crypto[0].session_params, ["KDR=16", "UNENCRYPTED_SRTCP"]);
    assert_eq!(whiteboard.kind, MediaKind::Application);
    assert_eq!(whiteboard.supported(), Err(Unsupported::Transport("udp".to_owned())));
}

#[test]
fn rfc_8866_section_5_7_layers_have_addresses_and_ports_in_a_row() {
    let media = media("m=video 49170/2 RTP/AVP 31\nc=IN IP4 233.252.0.1/127/3");
    assert_eq!((media.port_count, media.address_count, media.ttl), (2, 3, Some(127)));
    let media = self::media("m=video 49170 RTP/AVP 31\nc=IN IP6 ff00::db8:0:101/3");
    assert_eq!((media.address_count, media.ttl), (3, None));
}

#[test]
fn rfc_8888_section_6_the_arrival_of_every_packet_is_acknowledged() {
    let offer = |feedback: &str| {
        media(&format!("m=video 4 RTP/AVPF 96\na=rtpmap:96 H264/90000\na=rtcp-fb:{feedback}"))
    };
    let asked = offer("* ack ccfb");
    assert!(asked.congestion_feedback && asked.formats[0].feedback.is_empty());
    // The payload type must be the wildcard, and `ccfb` stands alone.
    for other in ["96 ack ccfb", "* ack", "* ack ccfb more", "* nack ecn"] {
        assert!(!offer(other).congestion_feedback, "{other}");
    }
}
