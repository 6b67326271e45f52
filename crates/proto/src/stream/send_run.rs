//! The fast path of sent packets that differ only in their part of the frame, as most packets of a
//! large frame do: all fragments of a unit but the first and the last.

use super::send::{Sender, Written};
use crate::batch::Batch;
use crate::payload::MAX_OWN_OCTETS;
use crate::rtp::HEADER_LEN;
use crate::time::RtpTimestamp;

impl Sender {
    /// Writes the packets of the next payloads, at most `most`, if they are a
    /// [`Run`](crate::payload::Run) and need only be copied; otherwise returns `None`. An
    /// invalid run is refused.
    #[inline]
    pub(super) fn write_run(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        batch: &mut Batch,
        most: usize,
    ) -> Option<Written> {
        // A cleared fragment has no marker bit, and a run never has one.
        self.fragment.clear();
        let is_plain = self.protector.is_none() && !self.has_elements_due();
        if !is_plain || self.has_fec_work() || most == 0 {
            return None;
        }
        let run = self.packetiser.next_run(frame, most)?;
        if !run.is_valid(most, self.config.packet_len_max - HEADER_LEN, frame) {
            return Some(Written::Refused);
        }
        let mut head = [0; HEADER_LEN + MAX_OWN_OCTETS];
        head[..HEADER_LEN].copy_from_slice(&self.header(timestamp));
        head[HEADER_LEN..].copy_from_slice(&run.own);
        let head_len = HEADER_LEN + run.own_len;
        let len = head_len + run.len;
        for payload in frame[run.start..].chunks_exact(run.len).take(run.count) {
            let position = batch.position();
            let Some(packet) = batch.place(len) else { break };
            head[2..4].copy_from_slice(&self.sequence.sequence().0.to_be_bytes());
            // The head is written in one store of constant length if the packet has room for it;
            // the payload then overwrites the end of that store.
            match packet.first_chunk_mut() {
                Some(place) => *place = head,
                None => packet[..head_len].copy_from_slice(&head[..head_len]),
            }
            packet[head_len..].copy_from_slice(payload);
            if let Some(repair) = &mut self.repair {
                repair.history.note(self.sequence.sequence(), position, len);
            }
            self.sequence = self.sequence.plus(1);
        }
        if let Some(extending) = &mut self.extending {
            extending.note_written();
        }
        self.statistics.packets += run.count as u64;
        self.statistics.payload_octets += (run.count * (run.own_len + run.len)) as u64;
        Some(Written::Placed)
    }
}

#[cfg(test)]
mod tests {
    use crate::payload::{Fragment, FrameError, Packetiser, Run};
    use crate::stream::SenderConfig;
    use crate::time::FrameRate;
    use crate::{Batch, ClockRate, PayloadType, RtpTimestamp, SequenceNumber, Ssrc};

    use super::Sender;

    /// A format that returns this run repeatedly.
    struct FaultyFormat(Run);

    impl Packetiser for FaultyFormat {
        fn start(&mut self, _: &[u8], _: usize) -> Result<(), FrameError> {
            Ok(())
        }

        fn next(&mut self, _: &[u8], _: &mut Fragment) -> bool {
            false
        }

        fn next_run(&mut self, _: &[u8], _: usize) -> Option<Run> {
            Some(self.0)
        }
    }

    #[test]
    fn a_run_that_a_format_must_not_make_cuts_its_frame() {
        let valid = Run { own: [0; 8], own_len: 3, start: 0, len: 100, count: 2 };
        let frame = [7; 1000];
        assert!(valid.is_valid(2, 103, &frame));
        for run in [
            Run { count: 0, ..valid },
            Run { count: usize::MAX, ..valid },
            Run { len: 0, ..valid },
            Run { len: usize::MAX, ..valid },
            Run { own_len: 9, ..valid },
            Run { start: 801, ..valid },
            Run { start: usize::MAX, ..valid },
        ] {
            assert!(!run.is_valid(2, 103, &frame), "{run:?}");
            let config = SenderConfig {
                ssrc: Ssrc(1),
                payload_type: PayloadType::H265,
                first_sequence: SequenceNumber(1),
                first_timestamp: RtpTimestamp(1),
                clock_rate: ClockRate::VIDEO,
                frame_rate: FrameRate::DEFAULT,
                packet_len_max: 1200,
            };
            let mut sender = Sender::new(Box::new(FaultyFormat(run)), config).unwrap();
            let mut batch = Batch::new();
            let mut outgoing = sender.push(&frame, None).unwrap();
            assert!(!outgoing.fill(&mut batch) && !outgoing.fill(&mut batch), "{run:?}");
            drop(outgoing);
            assert_eq!(sender.statistics().frames_cut, 1, "{run:?}");
        }
    }
}
