//! Parsers of raw octets.

use std::collections::HashSet;
use std::time::Instant;

use rushes::file::{
    BrowserVideo, MediaFrame, MediaReader, NextBrowserFrame, OpusHead, ReadOptions,
};
use rushes::{Codec, Context};
use rushes_proto::payload::Framing;
use rushes_proto::payload::h265::H265;
use rushes_proto::payload::h266::H266;
use rushes_proto::payload::nal::{
    AccessUnitReader, DependenceReader, NalCodec, PictureClock, PictureLookAhead, find_units,
    parameter_set_id,
};
use rushes_proto::rtp::{Header, Packet as RtpPacket};
use rushes_proto::sdp::{Crypto, Description, LeftOut, SdpError, WARNINGS_MAX};
use rushes_zrtp::{
    ConfirmPlain, Content, MESSAGE_LEN_MAX, Message, Packet, Reassembler, SasRelayPlain,
};

use crate::{depacketise, packets, zrtp_packet};

/// Reads access units of a bitstream that arrives in pieces.
pub fn access_units(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let codec = [NalCodec::H264, NalCodec::H265, NalCodec::H266][usize::from(flags % 3)];
    let framing = if flags & 0x80 == 0 { Framing::AnnexB } else { Framing::LengthPrefixed };
    let mut reader = AccessUnitReader::new(codec, framing).limit(4096);
    for piece in octets.chunks(usize::from(flags >> 3 & 7) + 1) {
        reader.feed(piece);
        while let Ok(Some(access_unit)) = reader.next_access_unit() {
            assert!(access_unit.len() <= octets.len());
        }
        if flags & 0x40 != 0 {
            reader.flush();
        }
    }
    reader.finish();
    while let Ok(Some(_)) = reader.next_access_unit() {}
}

/// Computes the presentation positions of the access units of a bitstream, which differ from each
/// other.
pub fn picture_order(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let codec = [NalCodec::H264, NalCodec::H265, NalCodec::H266][usize::from(flags % 3)];
    let framing = if flags & 0x80 == 0 { Framing::AnnexB } else { Framing::LengthPrefixed };
    let mut reader = AccessUnitReader::new(codec, framing);
    reader.feed(octets);
    reader.finish();
    let mut clock = PictureClock::new(codec);
    let mut ahead = PictureLookAhead::new(codec, usize::from(flags >> 3 & 15));
    let (mut given, mut given_ahead) = (HashSet::new(), HashSet::new());
    while let Ok(Some(access_unit)) = reader.next_access_unit() {
        assert!(given.insert(clock.push(access_unit, framing).position));
        ahead.push(access_unit, framing);
        given_ahead.extend(ahead.next_time().map(|time| time.position));
    }
    ahead.finish();
    given_ahead.extend(std::iter::from_fn(|| ahead.next_time()).map(|time| time.position));
    assert_eq!(given.len(), given_ahead.len());
}

/// Finds the NAL units of an access unit.
pub fn nal_units(octets: &[u8]) {
    let mut units = Vec::new();
    for framing in [Framing::AnnexB, Framing::LengthPrefixed] {
        if find_units(octets, framing, &mut units).is_ok() {
            assert!(units.iter().all(|unit| !octets[unit.clone()].is_empty()));
            assert!(units.windows(2).all(|pair| pair[0].end < pair[1].start));
            for codec in [NalCodec::H264, NalCodec::H265, NalCodec::H266] {
                DependenceReader::new(codec).read(octets, &units);
                for unit in &units {
                    let _ = parameter_set_id(codec, &octets[unit.clone()]);
                }
            }
        }
    }
}

/// Reads a file of Opus in Ogg.
pub fn ogg_opus(octets: &[u8]) {
    let _ = OpusHead::parse(octets);
    let octets = octets.to_vec();
    let reader = MediaReader::from_octets(octets, "fuzz", Codec::Opus, ReadOptions::default());
    let Ok(mut reader) = reader else { return };
    while let Ok(Some(_)) = reader.next_frame() {}
}

/// Reads a file of the format that the first octet selects from the table.
pub fn media_files(octets: &[u8]) {
    let Some((first, octets)) = octets.split_first() else { return };
    let codecs: Vec<Codec> = Codec::all().collect();
    let codec = codecs[usize::from(*first) % codecs.len()];
    let mut options = ReadOptions::default();
    options.frame_len = 64;
    let Ok(mut reader) = MediaReader::from_octets(octets.to_vec(), "fuzz", codec, options) else {
        return;
    };
    while let Ok(Some(frame)) = reader.next_frame() {
        assert!(is_of(octets, frame), "{codec:?}");
        let _ = (codec.is_key_frame)(&frame.data);
        let _ = (codec.describe)(&codec, &frame.data);
    }
    browser_video(octets, codec, options);
}

/// Reads a file as browsers decode it, with a request for a key frame now and then.
fn browser_video(octets: &[u8], codec: Codec, options: ReadOptions) {
    let reader = MediaReader::from_octets(octets.to_vec(), "fuzz", codec, options);
    let Ok(Ok(mut video)) = reader.map(BrowserVideo::new) else { return };
    let mut left_out = 0;
    let mut n = 0;
    loop {
        if n % 16 == 15 {
            let _ = video.request_key_frame();
        }
        match video.next_frame_until(Instant::now()) {
            Ok(NextBrowserFrame::Frame(next)) => {
                assert!(n > 0 || next.is_key);
                left_out += next.left_out_before;
                n += 1;
            }
            Ok(NextBrowserFrame::End) | Err(_) => break,
            // Frames are left out.
            Ok(NextBrowserFrame::Pending) => {}
        }
    }
    assert!(left_out <= video.left_out());
}

/// Returns whether a frame is not longer than its file: start codes may be written for shorter
/// lengths, and parameter sets repeated.
fn is_of(octets: &[u8], frame: &MediaFrame) -> bool {
    frame.data.len() <= 6 * octets.len() + 8
}

/// Reads a track of the codec that the first octet selects from a container.
pub fn containers(octets: &[u8]) {
    let Some((first, octets)) = octets.split_first() else { return };
    let codecs = [Codec::H264, Codec::H265, Codec::H266, Codec::Opus];
    let codec = codecs[usize::from(*first) % codecs.len()];
    let reader = MediaReader::from_octets(octets.to_vec(), "fuzz", codec, ReadOptions::default());
    let Ok(mut reader) = reader else { return };
    // A few octets of an index can stand for the rest of the file many times, up to a limit.
    let mut read = 0;
    while let Ok(Some(frame)) = reader.next_frame() {
        assert!(is_of(octets, frame), "{codec:?}");
        read += frame.data.len();
        assert!(read <= 64 * octets.len(), "{codec:?}");
    }
}

/// Reads payloads of units with decoding order numbers; the first octets specify how far they may
/// be interleaved.
pub fn numbered(octets: &[u8]) {
    let Some((&[format, difference, nalus], octets)) = octets.split_first_chunk() else { return };
    let max_don_diff = 1 + u16::from(difference) * if format & 1 == 0 { 1 } else { 100 };
    if format & 2 == 0 {
        let depack_buf_nalus = nalus.into();
        let format = H265 { max_don_diff, depack_buf_nalus, ..H265::default() };
        depacketise(&format, octets);
    } else {
        let depack_buf_bytes = nalus.into();
        let format = H266 { max_don_diff, depack_buf_bytes, ..H266::default() };
        depacketise(&format, octets);
    }
}

/// Parses an RTP packet.
pub fn rtp_packet(octets: &[u8]) {
    let Ok(packet) = RtpPacket::parse(octets) else { return };
    assert_eq!(packet.header_len() + packet.payload().len() + packet.padding_len(), octets.len());
    for _ in packet.contributing_sources() {}
    if let Some(elements) = packet.extension().and_then(|extension| extension.elements()) {
        for element in elements.flatten() {
            assert!(element.id != 0);
        }
    }
}

/// Parses an RTP header, which must be the same when written again.
pub fn rtp_header(octets: &[u8]) {
    let Ok(packet) = RtpPacket::parse(octets) else { return };
    let header = Header::from(&packet);
    let mut written = vec![0; header.written_len()];
    assert_eq!(header.write(&mut written), Ok(packet.header_len()));
    assert_eq!(written, octets[..packet.header_len()]);
}

/// Parses a session description, which must have the same meaning when written again.
pub fn sdp(octets: &[u8]) {
    let Ok((description, warnings)) = Description::parse_with_warnings(octets) else { return };
    assert!(warnings.len() <= WARNINGS_MAX + 1);
    for media in &description.media {
        let _ = (media.supported(), media.ip(), media.rtcp_port(), media.senders(), media.ssrc());
        let _ = Context::new().described(media);
        for line in &media.crypto {
            let Ok(valid) = line.valid() else { continue };
            let written = Crypto::new(line.tag, &line.suite, &valid.keys, &valid.session);
            let written = written.expect("a valid line can be written");
            let again = written.valid().expect("a written line is valid");
            assert_eq!((&again.keys, &again.session), (&valid.keys, &valid.session));
        }
    }
    match Description::parse_with_warnings(description.write().as_bytes()) {
        // A wildcard feedback is written once for each format, which may exceed the length limit.
        Ok((_, warnings)) if warnings.iter().any(|one| one.left_out == LeftOut::Rest) => {}
        Err(SdpError::TooLong { .. }) => {}
        Ok((read, _)) => assert_eq!(read, description),
        Err(error) => panic!("{error}"),
    }
}

/// Parses ZRTP messages, whole and in fragments.
pub fn zrtp_message(octets: &[u8]) {
    let _ = Packet::parse(octets);
    let _ = ConfirmPlain::parse(octets);
    let _ = SasRelayPlain::parse(octets);
    // A parsed message survives being written.
    if let Ok(message) = Message::parse(octets) {
        let mut written = Vec::new();
        message.write(&mut written);
        assert_eq!(Message::parse(&written), Ok(message));
    }
    let mut reassembler = Reassembler::new();
    for (kind, body) in packets(octets) {
        match Packet::parse(&zrtp_packet(kind, 2, body)).map(|packet| packet.content) {
            Ok(Content::Message(message)) => assert_eq!(message, body),
            Ok(Content::Fragment(fragment)) => {
                if let Some(message) = reassembler.push(&fragment) {
                    assert!(message.len() <= MESSAGE_LEN_MAX);
                    let _ = Message::parse(message);
                }
            }
            Err(_) => assert!(kind & 1 != 0, "a valid packet was refused"),
        }
    }
}
