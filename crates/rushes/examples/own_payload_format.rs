//! A custom payload format for lines of text: a packet holds all whole lines that fit.

use std::sync::Arc;
use std::time::Duration;

use rushes::payload::{
    Depacketiser, Fragment, FrameBuilder, FrameError, PacketInfo, Packetiser, PayloadError,
    PayloadFormat,
};
use rushes::{ClockRate, Context, PayloadType};

/// Text of several lines. A frame is a text, and a packet holds some of its lines.
#[derive(Debug)]
struct Lines;

impl PayloadFormat for Lines {
    fn name(&self) -> &'static str {
        "X-LINES"
    }

    fn clock_rate(&self) -> ClockRate {
        ClockRate::VIDEO
    }

    fn packetiser(&self) -> Box<dyn Packetiser> {
        Box::new(LinePacketiser { sent: 0, limit: 0 })
    }

    fn depacketiser(&self) -> Box<dyn Depacketiser> {
        Box::new(LineDepacketiser)
    }
}

struct LinePacketiser {
    sent: usize,
    limit: usize,
}

impl Packetiser for LinePacketiser {
    fn start(&mut self, frame: &[u8], limit: usize) -> Result<(), FrameError> {
        if frame.split_inclusive(|octet| *octet == b'\n').any(|line| line.len() > limit) {
            return Err(FrameError::Other("a line is longer than a packet"));
        }
        (self.sent, self.limit) = (0, limit);
        Ok(())
    }

    fn next(&mut self, frame: &[u8], fragment: &mut Fragment) -> bool {
        let rest = &frame[self.sent..];
        let room = &rest[..rest.len().min(self.limit)];
        let end = match room.iter().rposition(|octet| *octet == b'\n') {
            Some(newline) if room.len() < rest.len() => newline + 1,
            _ => room.len(),
        };
        if end == 0 {
            return false;
        }
        fragment.push_frame(self.sent..self.sent + end);
        self.sent += end;
        fragment.set_marker(self.sent == frame.len());
        true
    }
}

struct LineDepacketiser;

impl Depacketiser for LineDepacketiser {
    fn push(
        &mut self,
        payload: &[u8],
        _packet: PacketInfo,
        frame: &mut FrameBuilder,
    ) -> Result<(), PayloadError> {
        if std::str::from_utf8(payload).is_err() {
            return Err(PayloadError::Other("not UTF-8"));
        }
        frame.push_unit(payload)
    }

    fn lost(&mut self) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let payload_type = PayloadType::new(100).ok_or("not a payload type")?;
    let session = Context::new().session("127.0.0.1")?;
    let mut receiver = session.stream_of(Arc::new(Lines), payload_type).probation(1).open()?;
    let port = receiver.local_address().port();
    let mut sender =
        session.stream_of(Arc::new(Lines), payload_type).remote_port(port).mtu(100).open()?;

    let poem = "Rushes are plants of wet places,\nand the first prints of a film,\n\
                seen in haste the same evening\nby those who shot it.\n";
    sender.push_frame(poem.as_bytes(), None)?;
    let frame = receiver.pull_frame(Duration::from_secs(1))?.ok_or("nothing came")?;
    print!("{}", std::str::from_utf8(&frame)?);
    println!("({} packets)", sender.statistics().send.packets);
    Ok(())
}
