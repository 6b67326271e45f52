//! ECN marks of received packets in the reports to their sender (RFC 8888).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::{Duration, Instant};

use rushes::proto::rtcp::{Compound, Ecn, Packet};
use rushes::proto::rtp::Header;
use rushes::proto::{PayloadType, RtpTimestamp, SequenceNumber, Ssrc};
use rushes::{Codec, Context};
use rushes_net::{SocketOptions, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn the_mark_of_each_packet_is_reported() {
    let builder = Context::new()
        .session("127.0.0.1")
        .unwrap()
        .stream(Codec::Generic)
        .probation(1)
        .rtcp_mux(true);
    let mut receiver =
        builder.payload_type(PayloadType::new(96).unwrap()).report_arrivals(true).open().unwrap();
    let options = SocketOptions { ecn: 1, ..Default::default() };
    let sender = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
    let (mut queue, mut arena) = (sender.send_queue(), sender.arena());
    let deadline = Instant::now() + PATIENCE;
    for sequence in 0..u16::MAX {
        let mut header = Header::new(
            PayloadType::new(96).unwrap(),
            SequenceNumber(sequence),
            RtpTimestamp(0),
            Ssrc(1),
        );
        header.marker = true;
        let mut datagram = [0; 13];
        header.write(&mut datagram).unwrap();
        let to = receiver.local_address();
        sender.send(&mut queue, &datagram, &[13], to, deadline).unwrap();
        receiver.pull_frame(Duration::from_millis(10)).unwrap();
        for datagram in sender.receive(&mut arena, Instant::now(), None).unwrap() {
            for packet in Compound::parse(datagram.data).unwrap().packets() {
                let Ok(Packet::TransportFeedback(feedback)) = packet else { continue };
                let Some(report) = feedback.congestion() else { continue };
                let block = report.blocks().next().unwrap();
                let mut marks = block.packets().filter_map(|packet| packet.arrival);
                if marks.any(|(ecn, _)| ecn == Ecn::CapableOne) {
                    return;
                }
            }
        }
        assert!(Instant::now() < deadline, "no report with a mark");
    }
}
