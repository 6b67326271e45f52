//! Arbitrary reports for the congestion controller.

use std::time::{Duration, Instant};

use rushes_proto::rate::{PacketFeedback, RateController, RateSettings, WideClock};
use rushes_proto::rtcp::{Compound, Packet};
use rushes_proto::{SequenceNumber, Ssrc};

/// The source of the packets that are sent.
const SSRC: Ssrc = Ssrc(0x0102_0304);

/// Sends packets and handles the reports of `octets`, each with a length before it.
pub fn control(mut octets: &[u8]) {
    let Ok(settings) = RateSettings::new(100_000, 300_000, 5_000_000) else { return };
    let mut now = Instant::now();
    let mut controller = RateController::new(settings, now);
    let mut sequence = SequenceNumber(0xfff0);
    let mut clock = WideClock::default();
    while let Some((&len, rest)) = octets.split_first() {
        for octets in 0..usize::from(len >> 3) {
            controller.handle_sent(now, SSRC, sequence, octets * 50);
            sequence = sequence.plus(1);
        }
        now += Duration::from_millis(u64::from(len));
        controller.handle_timeout(now);
        let (report, rest) = rest.split_at(rest.len().min(usize::from(len)));
        octets = rest;
        feed(&mut controller, &mut clock, now, report);
        assert!((100_000..=5_000_000).contains(&controller.target_rate()));
        assert!((50_000..=30_000_000).contains(&controller.pacing_rate()));
    }
}

fn feed(controller: &mut RateController, clock: &mut WideClock, now: Instant, report: &[u8]) {
    let Ok(compound) = Compound::parse(report) else { return };
    for packet in compound.packets() {
        let Ok(Packet::TransportFeedback(feedback)) = packet else { continue };
        if let Some(wide) = feedback.transport_wide() {
            let packets = wide.packets().map(|packet| clock.feedback(SSRC, packet));
            controller.handle_feedback(now, packets);
        }
        let Some(congestion) = feedback.congestion() else { continue };
        let instant = congestion.instant();
        for block in congestion.blocks() {
            let packets = block.packets();
            let packets = packets.map(|it| PacketFeedback::from_report(block.ssrc, instant, it));
            controller.handle_feedback(now, packets);
        }
    }
}
