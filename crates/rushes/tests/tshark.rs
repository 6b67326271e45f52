//! Short captures of each codec, read by tshark's dissectors.
//!
//! The tests are skipped if tshark is not installed. Version 4.0 has no dissector for H.266, whose
//! packets are read as RTP only.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rushes::file::{MediaReader, ReadOptions};
use rushes::{Codec, Context, ExtensionKind, ExtensionMap, Pacing};

/// The destination port in the captures.
const PORT: u16 = 5004;

fn has_tshark() -> bool {
    skipped::have(&["tshark"])
}

fn media(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/media").join(name)
}

/// Sends a file's first frames with an MTU of 576 and returns the datagrams of each.
fn capture(name: &str, codec: Codec, frames: usize) -> Vec<Vec<Vec<u8>>> {
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let session = Context::new().session("127.0.0.1").unwrap();
    let builder = session.stream(codec).remote_port(port).mtu(576).pacing(Pacing::Off);
    let mut stream = builder.open().unwrap();
    let mut reader = MediaReader::open(&media(name), codec, ReadOptions::default()).unwrap();
    let mut captured = Vec::new();
    let mut sent = 0;
    for _ in 0..frames {
        stream.push_frame(&reader.next_frame().unwrap().unwrap().data, None).unwrap();
        let now = stream.statistics().send.packets;
        let mut buffer = [0; 2000];
        let mut datagrams = Vec::new();
        for _ in sent..now {
            let len = listener.recv(&mut buffer).unwrap();
            datagrams.push(buffer[..len].to_vec());
        }
        sent = now;
        captured.push(datagrams);
    }
    captured
}

/// Writes a capture file of UDP over IPv4 without a link layer (`LINKTYPE_RAW`).
fn write_pcap(path: &Path, datagrams: &[Vec<u8>]) {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101_u32] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for (n, datagram) in datagrams.iter().enumerate() {
        let udp_len = 8 + datagram.len() as u16;
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&(20 + udp_len).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        for word in [40_000, PORT, udp_len, 0] {
            packet.extend_from_slice(&word.to_be_bytes());
        }
        packet.extend_from_slice(datagram);
        let len = packet.len() as u32;
        for word in [0, n as u32, len, len] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    std::fs::write(path, file).unwrap();
}

/// Returns the given fields of each packet, as tshark prints them.
fn dissect(
    datagrams: &[Vec<u8>],
    payload_type: u8,
    dissector: &str,
    fields: &[&str],
) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    write_pcap(&path, datagrams);
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-d", &format!("udp.port=={PORT},rtp"), "-T", "fields"]);
    if !dissector.is_empty() {
        command.args(["-d", &format!("rtp.pt=={payload_type},{dissector}")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn tshark_reads_the_capture_time() {
    if !has_tshark() {
        return;
    }
    let listener = UdpSocket::bind("127.0.0.1:0").unwrap();
    listener.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let session = Context::new().session("127.0.0.1").unwrap();
    let fields =
        ["rtp.ext.profile", "rtp.ext.rfc5285.id", "rtp.ext.rfc5285.len", "rtp.ext.rfc5285.data"];
    let elements = [
        (ExtensionKind::AbsCaptureTime, 1, "0xbede", 8),
        (ExtensionKind::Ntp64, 14, "0xbede", 8),
        (ExtensionKind::Ntp56, 5, "0xbede", 7),
        (ExtensionKind::Ntp64, 200, "0x1000", 8),
    ];
    for (kind, id, profile, len) in elements {
        let map = ExtensionMap::default().with(kind, id).unwrap();
        let builder = session.stream(Codec::Generic).remote_port(port).extensions(map).rtcp(false);
        let mut stream = builder.open().unwrap();
        let mut datagrams = Vec::new();
        for _ in 0..2 {
            stream.push_frame(&[7; 2000], None).unwrap();
            for _ in 0..2 {
                let mut buffer = [0; 2000];
                let len = listener.recv(&mut buffer).unwrap();
                datagrams.push(buffer[..len].to_vec());
            }
        }
        let rows = dissect(&datagrams, 99, "", &fields);
        assert_eq!(rows.len(), 4);
        for (n, row) in rows.iter().enumerate() {
            let [found_profile, found_id, found_len, data] = &row[..] else { panic!("{row:?}") };
            if n % 2 == 1 {
                assert_eq!((&found_profile[..], &data[..]), ("", ""), "{kind:?}");
                continue;
            }
            let expected = (profile.to_owned(), id.to_string(), len.to_string());
            assert_eq!((found_profile.clone(), found_id.clone(), found_len.clone()), expected);
            let hex: String = data.chars().filter(char::is_ascii_hexdigit).collect();
            let packet = rushes::proto::rtp::Packet::parse(&datagrams[n]).unwrap();
            let octet = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            let octets: Vec<u8> = (0..hex.len()).step_by(2).map(octet).collect();
            let mut elements = packet.extension().unwrap().elements().unwrap();
            assert_eq!(octets, elements.next().unwrap().unwrap().data, "{kind:?}");
        }
    }
}

const RTP: [&str; 6] =
    ["rtp.version", "rtp.p_type", "rtp.seq", "rtp.marker", "rtp.timestamp", "_ws.malformed"];

/// Checks consecutive sequence numbers, one timestamp per frame, and the marker bits.
fn check_rtp(frames: &[Vec<Vec<u8>>], payload_type: u8, ticks: u32, opus: bool) {
    let datagrams: Vec<Vec<u8>> = frames.concat();
    let rows = dissect(&datagrams, payload_type, "", &RTP);
    assert_eq!(rows.len(), datagrams.len());
    let number = |row: &[String], column: usize| row[column].parse::<u32>().unwrap();
    let (first, start) = (number(&rows[0], 2), number(&rows[0], 4));
    let mut rows = rows.iter().enumerate();
    for (frame, datagrams) in frames.iter().enumerate() {
        for place in 0..datagrams.len() {
            let (n, row) = rows.next().unwrap();
            assert_eq!(&row[0], "2");
            assert_eq!(&row[1], &payload_type.to_string());
            assert_eq!(number(row, 2), (first + n as u32) & 0xffff, "sequence number");
            let last = place + 1 == datagrams.len();
            let marker = if opus { frame == 0 } else { last };
            assert_eq!(matches!(&*row[3], "1" | "True"), marker, "marker of packet {n}");
            if !opus {
                let expected = start.wrapping_add(ticks * frame as u32);
                assert_eq!(number(row, 4), expected, "timestamp");
            }
            assert_eq!(row.get(5).map_or("", |malformed| malformed), "");
        }
    }
}

/// Returns the values of one field in all packets; several values in one packet are joined by
/// commas.
fn values(frames: &[Vec<Vec<u8>>], payload_type: u8, dissector: &str, field: &str) -> Vec<String> {
    let rows = dissect(&frames.concat(), payload_type, dissector, &[field]);
    rows.into_iter().map(|mut row| row.remove(0)).collect()
}

#[test]
fn h264_is_read_as_stap_a_and_fu_a() {
    if !has_tshark() {
        return;
    }
    let frames = capture("avc_cif_60f_baseline.264", Codec::H264, 20);
    check_rtp(&frames, 96, 3000, false);
    let types = values(&frames, 96, "h264", "h264.nal_unit_hdr");
    let count =
        |name: &str| types.iter().filter(|types| types.split(',').next() == Some(name)).count();
    assert!(count("24") > 0, "STAP-A: {types:?}");
    assert!(count("28") > 10, "FU-A: {types:?}");
    let starts = values(&frames, 96, "h264", "h264.start.bit");
    let ends = values(&frames, 96, "h264", "h264.end.bit");
    let set = |bits: &[String]| bits.iter().filter(|bit| matches!(&***bit, "1" | "True")).count();
    assert!(set(&starts) > 5);
    assert_eq!(set(&starts), set(&ends));
}

#[test]
fn h265_is_read_as_aggregation_packets_and_fragmentation_units() {
    if !has_tshark() {
        return;
    }
    let frames = capture("hevc_192x128_90f_tiny_nals.265", Codec::H265, 30);
    check_rtp(&frames, 97, 3000, false);
    let types = values(&frames, 97, "h265", "h265.nal_unit_type");
    let count =
        |name: &str| types.iter().filter(|types| types.split(',').next() == Some(name)).count();
    assert!(count("48") > 20, "aggregation packets: {types:?}");
    assert!(count("49") > 0, "fragmentation units: {types:?}");
}

#[test]
fn h266_is_read_as_rtp() {
    if has_tshark() {
        let frames = capture("vvc_192x128_64f_vvenc_tiny_nals.266", Codec::H266, 30);
        check_rtp(&frames, 98, 3000, false);
    }
}

#[test]
fn opus_is_read_as_opus() {
    if !has_tshark() {
        return;
    }
    let frames = capture("opus_speech_mono_mixed_durations.opus", Codec::Opus, 60);
    check_rtp(&frames, 111, 0, true);
    let configurations = values(&frames, 111, "opus", "opus.TOC.config");
    assert!(configurations.iter().all(|configuration| !configuration.is_empty()));
}

/// Returns one datagram of each kind of RTCP.
fn reports() -> Vec<Vec<u8>> {
    use rushes::proto::rtcp::{
        Arrival, BitRateLimit, Dlrr, Ecn, Fir, ReportBlock, SdesKind, SenderInfo, Writer,
    };
    use rushes::{NtpTime, RtpTimestamp, SequenceNumber, Ssrc};

    let (own, media) = (Ssrc(0x0102_0304), Ssrc(0x0506_0708));
    let ntp = NtpTime(0xeeab_8000_4000_0000);
    let block = ReportBlock {
        ssrc: media,
        fraction_lost: 64,
        cumulative_lost: -2,
        highest: 0x0003_1234,
        jitter: 99,
        last_sender_report: 0x1122_3344,
        delay: 0x0001_0000,
    };
    let mut first = Writer::new();
    let info = SenderInfo { ntp, rtp: RtpTimestamp(77), packets: 88, octets: 9999 };
    first.sender_report(own, &info, &[block, block]);
    let items: [(SdesKind, &[u8]); 2] = [(SdesKind::Cname, b"alice"), (SdesKind::Tool, b"Rushes")];
    first.source_description(own, items);
    first.app(own, 3, *b"name", &[1, 2, 3, 4]);
    first.bye(&[own], "the end");
    let mut second = Writer::new();
    second.receiver_report(own, &[block]);
    second.nack(own, media, [100, 101, 116].map(SequenceNumber));
    second.picture_loss(own, media);
    second.full_intra_request(own, &[Fir { ssrc: media, number: 9 }]);
    let limit = BitRateLimit { ssrc: media, bit_rate: 1 << 20, overhead: 40 };
    second.bit_rate_request(own, &[limit]);
    second.bit_rate_notification(own, &[limit]);
    second.estimate(own, 3 << 20, &[media]);
    let mut third = Writer::new();
    third.receiver_report(own, &[]);
    third.reference_time(own, ntp);
    third.delays(own, &[Dlrr { ssrc: media, last_reference_time: 5, delay: 6 }]);
    let mut fourth = Writer::new();
    fourth.receiver_report(own, &[]);
    let arrival = Some((Ecn::Congestion, Arrival::Before(Duration::from_millis(250))));
    fourth.congestion(own, [(media, SequenceNumber(7), [None, arrival, None])], ntp);
    [first, second, third, fourth].iter().map(|writer| writer.bytes().to_vec()).collect()
}

#[test]
fn tshark_reads_our_reports_and_requests() {
    if !has_tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reports.pcap");
    write_pcap(&path, &reports());
    let field = |name: &str| -> Vec<String> {
        let output = Command::new("tshark")
            .args(["-r", path.to_str().unwrap(), "-d", "udp.port==5004,rtcp", "-T", "fields"])
            .args(["-E", "separator=;", "-e", name])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split([',', '\n', ';']).filter(|value| !value.is_empty()).map(str::to_owned).collect()
    };
    assert!(field("_ws.malformed").is_empty(), "{:?}", field("_ws.malformed"));
    assert!(field("rtcp.length_check").iter().all(|check| check != "0"));
    for (name, expected) in [
        ("rtcp.pt", "200 202 204 203 201 205 206 206 205 205 206 201 207 207 201 205"),
        ("rtcp.timestamp.rtp", "77"),
        ("rtcp.sender.packetcount", "88"),
        ("rtcp.sender.octetcount", "9999"),
        ("rtcp.ssrc.fraction", "64 64 64"),
        ("rtcp.ssrc.cum_nr", "-2 -2 -2"),
        ("rtcp.ssrc.high_seq", "4660 4660 4660"),
        ("rtcp.ssrc.high_cycles", "3 3 3"),
        ("rtcp.ssrc.jitter", "99 99 99"),
        ("rtcp.ssrc.dlsr", "65536 65536 65536"),
        ("rtcp.sdes.text", "alice Rushes the end"),
        ("rtcp.app.name", "name"),
        ("rtcp.app.subtype", "3"),
        ("rtcp.rtpfb.nack_pid", "100 101 116"),
        ("rtcp.rtpfb.tmmbr.fci.measuredoverhead", "40 40"),
        ("rtcp.rtpfb.tmmbr.fci.mantissa", "65536 65536"),
        ("rtcp.rtpfb.tmmbr.fci.exp", "4 4"),
        ("rtcp.xr.lrr", "5"),
        ("rtcp.psfb.fir.fci.csn", "9"),
        ("rtcp.psfb.remb.fci.number_ssrcs", "1"),
        ("rtcp.xr.bt", "4 5"),
        ("rtcp.xr.dlrr", "6"),
    ] {
        assert_eq!(field(name).join(" "), expected, "{name}");
    }
}

/// Captures all datagrams between two ends that agree on keys and then send a file.
#[cfg(feature = "zrtp")]
fn agreed(name: &str) -> (Vec<Vec<u8>>, Vec<u8>) {
    use rushes::Security;
    use rushes::zrtp::{AlgorithmList, KeyAgreement, ZrtpConfig};
    use rushes_netsim::Relay;
    use std::sync::{Arc, Mutex};

    const PATIENCE: Duration = Duration::from_secs(20);
    let stream = || {
        let session = Context::new().session("127.0.0.1").unwrap();
        let stream = session.stream(Codec::H265).mtu(576).pacing(Pacing::Off).rtcp(false);
        // tshark cannot read the fragments of longer messages.
        let mut config = ZrtpConfig::default();
        config.algorithms.key_agreements = AlgorithmList::new(&[KeyAgreement::X255]).unwrap();
        stream.security(Security::Zrtp(config))
    };
    let mut receiving = stream().begin().unwrap();
    let passed = Arc::new(Mutex::new(Vec::new()));
    let kept = passed.clone();
    let relay = Relay::to(receiving.local_address()).tap(move |passing| {
        kept.lock().unwrap().push(passing.datagram.clone());
        true
    });
    let relay = relay.start().unwrap();
    let port = relay.address().port();
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            let mut stream = receiving.wait(PATIENCE).unwrap().unwrap();
            let mut frames = Vec::new();
            while let Some(frame) = stream.pull_frame(Duration::from_secs(1)).unwrap() {
                frames.extend_from_slice(&frame);
            }
            frames
        });
        let mut sender = stream().remote_port(port).open().unwrap();
        let mut reader =
            MediaReader::open(&media(name), Codec::H265, ReadOptions::default()).unwrap();
        while let Some(frame) = reader.next_frame().unwrap() {
            sender.push_frame(&frame.data, None).unwrap();
            std::thread::sleep(Duration::from_millis(3));
        }
        let frames = receiver.join().unwrap();
        relay.finish();
        (std::mem::take(&mut *passed.lock().unwrap()), frames)
    })
}

#[test]
#[cfg(feature = "zrtp")]
fn an_agreement_and_what_follows_it_are_zrtp_and_unreadable_payloads() {
    if !has_tshark() {
        return;
    }
    let name = "hevc_192x128_90f_tiny_nals.265";
    let (datagrams, frames) = agreed(name);
    let original = std::fs::read(media(name)).unwrap();
    assert!(frames.len() * 100 > original.len() * 99, "{} octets arrived", frames.len());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture.pcap");
    write_pcap(&path, &datagrams);
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-d", &format!("udp.port=={PORT},zrtp"), "-Y", "zrtp", "-T", "fields"])
        .args(["-e", "zrtp.type", "-e", "zrtp.checksum.status", "-e", "_ws.malformed"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let kinds: Vec<&str> =
        text.lines().map(|line| line.split('\t').next().unwrap().trim()).collect();
    for kind in
        ["Hello", "HelloACK", "Commit", "DHPart1", "DHPart2", "Confirm1", "Confirm2", "Conf2ACK"]
    {
        assert!(kinds.contains(&kind), "{kind} among {kinds:?}");
    }
    let is_media = |datagram: &&Vec<u8>| !rushes::zrtp::is_zrtp(datagram);
    let media: Vec<&Vec<u8>> = datagrams.iter().filter(is_media).collect();
    assert!(media.len() > 90, "{} packets of media", media.len());
    // Eight octets of the file in a payload cannot be a coincidence.
    let known: std::collections::HashSet<&[u8]> = original.windows(8).collect();
    let readable = |datagram: &&&Vec<u8>| datagram[12..].windows(8).any(|w| known.contains(w));
    assert_eq!(media.iter().filter(readable).count(), 0);
}
