//! Guesses of codecs: only those are named for which the packets are evidence.

use std::time::Duration;

use rushes::Codec;
use rushes::file::{MediaReader, ReadOptions};
use serde_json::{Value, json};

use super::{
    AVC, Bench, HEVC, OPUS, START, Sending, VVC, capture_of, inspect, media, rtp_packets, run, text,
};

/// Default payload types of Rushes, and others without a meaning.
const PAYLOAD_TYPES: [u8; 6] = [96, 97, 98, 100, 101, 111];

/// A generator of deterministic noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u8
    }

    /// Returns `head`, followed by noise up to `len` octets.
    fn after(&mut self, head: &[u8], len: usize) -> Vec<u8> {
        let mut octets = head.to_vec();
        octets.resize_with(len, || self.next());
        octets
    }
}

/// Packets as marker, timestamp and payload, 10 ms apart.
type Packets = Vec<(bool, u32, Vec<u8>)>;

fn stream(payload_type: u8, packets: &Packets) -> Vec<(Duration, Vec<u8>)> {
    let packet = |(n, (marker, timestamp, payload)): (usize, &(bool, u32, Vec<u8>))| {
        let mut packet = vec![0x80, payload_type | u8::from(*marker) << 7];
        packet.extend((n as u16 + 700).to_be_bytes());
        packet.extend(timestamp.to_be_bytes());
        packet.extend([0, 0, 0, 5]);
        packet.extend(payload);
        (START + Duration::from_millis(10) * n as u32, packet)
    };
    packets.iter().enumerate().map(packet).collect()
}

fn only_stream(packets: &[(Duration, Vec<u8>)], more: &[&str]) -> Value {
    let bench = Bench::new();
    let (report, code) = inspect(&bench.capture(&capture_of(packets).octets), more);
    assert_eq!(code, 0);
    assert_eq!(report["streams"].as_array().unwrap().len(), 1);
    report["streams"][0].clone()
}

/// Returns access units of `count` packets each at 30 Hz. `payload` returns the payload for a
/// position in the access unit.
fn pictures(count: usize, mut payload: impl FnMut(usize) -> Vec<u8>) -> Packets {
    let packet = |n: usize| (n % count + 1 == count, (n / count) as u32 * 3000, payload(n % count));
    (0..300).map(packet).collect()
}

/// Returns speech frames of `ticks`, one per packet.
fn speech(ticks: u32, mut payload: impl FnMut() -> Vec<u8>) -> Packets {
    (0..300).map(|n| (n == 0, n * ticks, payload())).collect()
}

/// Returns two digits of a telephone's keys, each reported every 20 ms and twice at its end.
fn digits() -> Packets {
    let mut packets = Vec::new();
    for (n, digit) in [5_u8, 11].into_iter().enumerate() {
        let timestamp = n as u32 * 8000;
        for report in 1..=12_u16 {
            let (end, duration) = (u8::from(report > 10) << 7, report.min(11) * 160);
            let [high, low] = duration.to_be_bytes();
            packets.push((report == 1, timestamp, vec![digit, end | 0x0a, high, low]));
        }
    }
    packets
}

#[test]
fn every_codec_is_recognised_under_any_payload_type() {
    for (name, codec) in [(AVC, "H.264"), (HEVC, "H.265"), (VVC, "H.266"), (OPUS, "Opus")] {
        for payload_type in PAYLOAD_TYPES {
            for packet_len in [200, 1200] {
                let sending = Sending { payload_type, ssrc: 9, packet_len };
                let stream = only_stream(&rtp_packets(&media(name), sending), &[]);
                assert_eq!(stream["codec"], codec, "{name} {payload_type} {packet_len}");
            }
        }
    }
}

#[test]
fn a_codec_is_recognised_from_the_middle_of_a_stream_that_lost_packets() {
    for (name, codec) in [(AVC, "H.264"), (HEVC, "H.265"), (VVC, "H.266"), (OPUS, "Opus")] {
        for payload_type in [98, 101] {
            let sending = Sending { payload_type, ssrc: 9, packet_len: 300 };
            let mut packets = rtp_packets(&media(name), sending);
            packets.drain(..17);
            let mut n = 0;
            packets.retain(|_| {
                n += 1;
                n % 11 != 0
            });
            packets.swap(20, 21);
            let stream = only_stream(&packets, &[]);
            assert_eq!(stream["codec"], codec, "{name} {payload_type}");
        }
    }
}

#[test]
fn opus_is_recognised_although_its_first_octets_are_valid_elsewhere() {
    let mut noise = Noise(0x0005);
    // These are headers of SILK, hybrid and CELT of 20 ms. Read as H.264, they are parameter sets
    // and slices.
    for toc in [0x48, 0x4c, 0x68, 0x78, 0x98, 0xb8, 0xfc] {
        for payload_type in PAYLOAD_TYPES {
            let packets = speech(960, || noise.after(&[toc], 60));
            let stream = only_stream(&stream(payload_type, &packets), &[]);
            assert_eq!(stream["codec"], "Opus", "{toc:x} {payload_type}");
            let by_default =
                if payload_type == 111 { "by default" } else { "a guess from the payloads" };
            assert_eq!(stream["codec_known"], by_default, "{toc:x} {payload_type}");
        }
    }
}

#[test]
fn telephone_events_are_recognised() {
    for payload_type in PAYLOAD_TYPES {
        let stream = only_stream(&stream(payload_type, &digits()), &[]);
        assert_eq!(stream["codec"], "telephone-event", "{payload_type}");
        assert_eq!(stream["clock_rate"], 8000);
    }
}

#[test]
fn video_of_browsers_is_recognised() {
    let mut noise = Noise(0x5eed);
    let mut any = |head: &'static [u8], len| noise.after(head, len);
    let mut all: Vec<(&str, Packets)> = Vec::new();
    // The payload descriptors are those of browsers, GStreamer and FFmpeg, with picture numbers or
    // without. The frame's own header follows.
    let vp9: [[&[u8]; 3]; 2] = [
        [&[0x8c, 0x81, 0x02, 0x82, 0x49], &[0x80, 0x81, 0x02], &[0x84, 0x81, 0x02]],
        [&[0x08, 0x82, 0x49, 0x83, 0x42], &[0x00], &[0x04]],
    ];
    for heads in vp9 {
        all.push(("VP9", pictures(3, |n| any(heads[n], 900))));
    }
    let vp8: [[&[u8]; 2]; 2] =
        [[&[0x90, 0x80, 0x11, 0x11], &[0x80, 0x80, 0x11]], [&[0x10, 0x11], &[0x00]]];
    for heads in vp8 {
        all.push(("VP8", pictures(2, |n| any(heads[n], 900))));
    }
    all.push(("AV1", pictures(2, |n| any([&[0x50_u8, 0x32][..], &[0x90]][n], 900))));
    for (name, packets) in &all {
        for payload_type in PAYLOAD_TYPES {
            let stream = only_stream(&stream(payload_type, packets), &[]);
            assert_eq!(stream["codec"], *name, "{payload_type}");
        }
    }
}

#[test]
fn uncompressed_video_is_recognised_by_its_line_headers() {
    // A line of four pixels with 24 bits in each packet (RFC 4175 section 4.2).
    let line = |n: usize| [&[0, 0, 0, 12, 0, n as u8, 0, 0][..], &[n as u8 * 9; 12]].concat();
    for payload_type in PAYLOAD_TYPES {
        let stream = only_stream(&stream(payload_type, &pictures(3, line)), &[]);
        assert_eq!(stream["codec"], "uncompressed video", "{payload_type}");
        assert_eq!(stream["frames"], 100, "{stream}");
    }
}

#[test]
fn what_is_no_known_codec_is_not_named() {
    let mut noise = Noise(0x5eed);
    let mut any = |head: &'static [u8], len| noise.after(head, len);
    let ts = pictures(4, |_| any(&[0x47, 0x01, 0x00, 0x10], 1316));
    let mut all: Vec<(&str, Packets)> = vec![("MPEG-TS", ts)];
    all.push(("AAC", speech(1024, || any(&[0, 16, 0x0b, 0x38, 0x21], 366))));
    // The requested mode and that of the frame, without padding, look like the beginning of an
    // H.264 slice.
    all.push(("AMR, packed", speech(160, || any(&[0x61, 0x9c], 18))));
    all.push(("AMR", speech(160, || any(&[0xf0, 0x3c], 33))));
    all.push(("parameter sets only", pictures(1, |_| any(&[0x68, 0xee], 40))));
    all.push(("pictures without a first slice", pictures(1, |_| any(&[0x41, 0x1a], 40))));
    all.push(("SRTP of video", pictures(3, |_| any(&[], 1100))));
    all.push(("SRTP of Opus", speech(960, || any(&[], 90))));
    for (name, packets) in &all {
        for payload_type in PAYLOAD_TYPES {
            let stream = only_stream(&stream(payload_type, packets), &[]);
            assert_eq!(stream["codec"], "unknown", "{name} {payload_type}");
            assert_eq!(stream["codec_known"], "unknown", "{name} {payload_type}");
            let random = name.starts_with("SRTP");
            assert_eq!(stream["look"]["random"], random, "{name} {payload_type}");
        }
    }
}

#[test]
fn an_unknown_stream_is_described_by_its_looks() {
    let mut noise = Noise(0x10_0c);
    let bench = Bench::new();
    let words = |packets: &Packets| {
        let path = bench.capture(&capture_of(&stream(98, packets)).octets);
        let output = text(&run(&[path.to_str().unwrap()]).stdout);
        output.lines().find(|line| line.contains("codec")).unwrap().trim().to_owned()
    };
    // The first 192 packets are examined.
    let mut n = 0;
    let video = pictures(3, |_| {
        n += 1;
        noise.after(&[0x8c], 400 + n)
    });
    let found = words(&video);
    let expected = "unknown, 401 to 592 octets (median 497) a packet, a marker on the last of each \
                    timestamp; payload type 98, assumed to run at 90000 Hz";
    assert!(found.ends_with(expected), "{found}");
    let mut audio = speech(960, || noise.after(&[], 90));
    let found = words(&audio);
    assert!(
        found.contains("unknown, perhaps encrypted, 90 octets a packet, 1 marker in"),
        "{found}"
    );
    for packet in &mut audio {
        packet.0 = false;
    }
    assert!(words(&audio).contains("a packet, no marker;"));
    for packet in &mut audio {
        packet.0 = true;
    }
    assert!(words(&audio).contains("a packet, a marker on each;"));
}

#[test]
fn the_codec_of_one_source_can_be_given() {
    let mut packets =
        rtp_packets(&media(AVC), Sending { payload_type: 96, ssrc: 7, packet_len: 400 });
    packets
        .extend(rtp_packets(&media(HEVC), Sending { payload_type: 96, ssrc: 8, packet_len: 400 }));
    packets.sort_by_key(|(time, _)| *time);
    let bench = Bench::new();
    let path = bench.capture(&capture_of(&packets).octets);
    let codecs = |more: &[&str]| {
        let (report, code) = inspect(&path, more);
        let stream = |n: usize| {
            let stream = &report["streams"][n];
            (stream["ssrc"].clone(), stream["codec"].clone(), stream["codec_known"].clone())
        };
        let mut streams = [stream(0), stream(1)];
        streams.sort_by_key(|(ssrc, ..)| ssrc.to_string());
        (streams.map(|(_, codec, known)| [codec, known]), code)
    };
    let (given, guessed) = (json!("from the command line"), json!("a guess from the payloads"));
    let first = [[json!("generic"), given.clone()], [json!("H.265"), guessed]];
    assert_eq!(codecs(&["--codec", "00000007=raw"]), (first, 0));
    // The codec of an SSRC takes precedence over that of a payload type and over that of all
    // streams.
    let both = [[json!("H.264"), given.clone()], [json!("H.265"), given.clone()]];
    let more = ["--codec", "0x7=h264", "--payload-type", "96=h265", "--codec", "opus"];
    assert_eq!(codecs(&more), (both, 0));
    assert_eq!(codecs(&["--codec", "99=h264"]).1, 1);
    let output = run(&[path.to_str().unwrap(), "--codec", "99=h264"]);
    assert!(text(&output.stderr).contains("no stream has the SSRC 99"));
}

/// Returns packets of so many samples each.
fn sound(ticks: u32, group_len: usize) -> Packets {
    let mut noise = Noise(0x50_0d);
    (0..300).map(|n| (false, n * ticks, noise.after(&[], ticks as usize * group_len))).collect()
}

#[test]
fn samples_are_recognised_by_their_number_or_by_a_static_payload_type() {
    for (payload_type, ticks, group_len, codec, known) in [
        (101, 48, 4, "L16", "a guess from the payloads"),
        (102, 48, 2, "L16", "by default"),
        (101, 6, 24, "L24", "a guess from the payloads"),
        (10, 44, 4, "L16", "by RFC 3551"),
        (11, 44, 2, "L16", "by RFC 3551"),
        (0, 160, 1, "PCMU", "by RFC 3551"),
        (8, 160, 1, "PCMA", "by RFC 3551"),
        (9, 160, 1, "G722", "by RFC 3551"),
    ] {
        let stream = only_stream(&stream(payload_type, &sound(ticks, group_len)), &[]);
        assert_eq!((&stream["codec"], &stream["codec_known"]), (&json!(codec), &json!(known)));
    }
}

#[test]
fn silence_and_a_tone_are_samples() {
    // A triangle wave with a period of 109 samples.
    let mut samples = (0_i32..).map(|n| ((n % 109 - 54).abs() * 400 - 10_800) as i16);
    let mut tone = || samples.by_ref().take(480).flat_map(i16::to_be_bytes).collect();
    let all = [
        ("L16", speech(480, || vec![0; 960])),
        ("L16", speech(480, &mut tone)),
        ("PCMA", speech(160, || vec![0xd5; 160])),
        ("PCMU", speech(160, || vec![0xff; 160])),
    ];
    for (name, packets) in &all {
        for payload_type in PAYLOAD_TYPES {
            let stream = only_stream(&stream(payload_type, packets), &[]);
            assert_eq!(stream["codec"], *name, "{payload_type}");
        }
    }
}

#[test]
fn samples_are_extracted_with_silence_for_what_was_lost() {
    let packets = sound(44, 4);
    let mut captured = stream(10, &packets);
    captured.drain(100..103);
    let bench = Bench::new();
    let (capture, copy) = (bench.capture(&capture_of(&captured).octets), bench.path("copy.wav"));
    let more = ["--extract", "5", "-o", copy.to_str().unwrap()];
    let (_, code) = inspect(&capture, &more);
    assert_eq!(code, 0);
    let mut reader = MediaReader::open(&copy, Codec::L16, ReadOptions::default()).unwrap();
    let sampling = reader.sampling().unwrap();
    assert_eq!((sampling.rate.hertz(), sampling.channels), (44_100, 2));
    let mut samples = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        samples.extend_from_slice(&frame.data);
    }
    let mut expected: Vec<Vec<u8>> = packets.into_iter().map(|(.., payload)| payload).collect();
    for lost in &mut expected[100..103] {
        lost.fill(0);
    }
    assert!(samples == expected.concat());
}
