//! Parsing of messages.

use core::net::{Ipv6Addr, SocketAddr};

use super::error::MessageError;
use super::message::{
    ACCEPT, CHANGE, Change, FRAME, FrameNotice, Message, NACK, Nack, OFFER, PING, PONG, Ping, Pong,
    REFUSE, REPORT, Report, SEALED, START, STATISTICS, STOP, ServerStatistics,
};
use super::offer::{Accept, Offer, VideoMode};
use super::reason::{Reason, TEXT_LEN_MAX, printable};
use super::transport::{Abilities, FrameRate, Token, Transport};
use super::{BODY_LEN_MAX, HEADER_LEN, SIDE_MAX, UNITS_MAX};

/// Octets of the last three fields of a report.
const REPAIRED_LEN: usize = 17;

impl Message {
    /// Parses the message at the beginning of `octets`; returns it with its length.
    ///
    /// Returns `None` if `octets` are only a part of a message.
    ///
    /// # Errors
    /// [`MessageError`]; an invalid type or length is detected as soon as the header is complete.
    pub fn parse(octets: &[u8]) -> Result<Option<(Self, usize)>, MessageError> {
        let Some((&[kind, high, middle, low], rest)) = octets.split_first_chunk() else {
            return Ok(None);
        };
        if !matches!(kind, OFFER..=SEALED | ACCEPT..=NACK) {
            return Err(MessageError::Type(kind));
        }
        let len = u32::from_be_bytes([0, high, middle, low]);
        if len as usize > BODY_LEN_MAX {
            return Err(MessageError::TooLong { kind, len });
        }
        let Some(body) = rest.get(..len as usize) else { return Ok(None) };
        let mut reader = Reader(body);
        let message = reader.message(kind)?;
        match reader.0.len() {
            0 => Ok(Some((message, HEADER_LEN + body.len()))),
            rest => Err(MessageError::Trailing(rest)),
        }
    }
}

/// The unread rest of a body.
struct Reader<'o>(&'o [u8]);

impl Reader<'_> {
    fn message(&mut self, kind: u8) -> Result<Message, MessageError> {
        Ok(match kind {
            OFFER => Message::Offer(Box::new(self.offer()?)),
            REFUSE => {
                let (reason, text) = self.end()?;
                Message::Refuse { reason, text }
            }
            STOP => {
                let (reason, text) = self.end()?;
                Message::Stop { reason, text }
            }
            SEALED => Message::Sealed(self.take("the handshake")?),
            START => Message::Start { epoch: self.u16("the epoch")? },
            FRAME => Message::Frame(self.frame()?),
            PONG => Message::Pong(Pong {
                id: self.u32("the number")?,
                t1: self.u64("t1")?,
                t2: self.u64("t2")?,
                t3: self.u64("t3")?,
            }),
            STATISTICS => Message::Statistics(self.statistics()?),
            ACCEPT => {
                let epoch = self.u16("the epoch")?;
                let (ports, ssrcs) = self.addresses()?;
                Message::Accept(Accept { epoch, ports, ssrcs })
            }
            CHANGE => {
                let format = self.u8("the format")?;
                let rate = FrameRate::wished(self.u32("the rate")?, self.u32("the rate")?);
                let rate = rate.map_err(|(n, d)| MessageError::Rate(n, d))?;
                let size_max = if self.0.is_empty() { None } else { Some(self.size_max()?) };
                Message::Change(Change { format, rate, size_max })
            }
            PING => Message::Ping(Ping { id: self.u32("the number")?, t1: self.u64("t1")? }),
            REPORT => Message::Report(self.report()?),
            NACK => Message::Nack(self.nack()?),
            kind => return Err(MessageError::Type(kind)),
        })
    }

    fn offer(&mut self) -> Result<Offer, MessageError> {
        let token = Token(self.take("the token")?);
        let epoch = self.u16("the epoch")?;
        let format = self.u8("the format")?;
        let number = self.u8("the transport")?;
        let transport = Transport::from_number(number).ok_or(MessageError::Transport(number))?;
        let (width, height) = (self.u32("the width")?, self.u32("the height")?);
        let rate =
            FrameRate { numerator: self.u32("the rate")?, denominator: self.u32("the rate")? };
        let mode = VideoMode { width, height, rate, format };
        let stripe_rows = self.u32("the stripe rows")?;
        let payload = self.u32("the payload")?;
        let clock_rate = self.u32("the clock rate")?;
        let first_frame = self.u64("the first frame")?;
        let units = self.take("the units")?;
        let (ports, ssrcs) = self.addresses()?;
        let is_sent_to_group = transport == Transport::Multicast;
        let abilities = if is_sent_to_group {
            self.u8("the abilities")?
        } else {
            self.optional().map_or(0, u8::from_be_bytes)
        };
        let abilities = Abilities(abilities);
        let has_colour = abilities.contains(Abilities::COLOUR);
        let colour = if has_colour { self.take("the colour")? } else { [0; 4] };
        let group = if is_sent_to_group { Some(self.group()?) } else { None };
        Ok(Offer {
            token,
            epoch,
            mode,
            transport,
            units,
            stripe_rows,
            payload,
            first_frame,
            ports,
            ssrcs,
            clock_rate,
            abilities,
            colour,
            group,
        })
    }

    fn size_max(&mut self) -> Result<(u32, u32), MessageError> {
        let (width, height) = (self.u32("the largest width")?, self.u32("the largest height")?);
        let sides = 1..=SIDE_MAX;
        let is_valid = sides.contains(&width) && sides.contains(&height);
        if is_valid || (width, height) == (0, 0) {
            Ok((width, height))
        } else {
            Err(MessageError::Size { width, height })
        }
    }

    fn frame(&mut self) -> Result<FrameNotice, MessageError> {
        Ok(FrameNotice {
            number: self.u64("the number")?,
            captured: self.u64("the time of capture")?,
            sent: self.u64("the time of sending")?,
            octets: self.u64("the octets")?,
            dropped: self.u64("the frames dropped")?,
        })
    }

    fn statistics(&mut self) -> Result<ServerStatistics, MessageError> {
        Ok(ServerStatistics {
            frames: self.u64("the frames")?,
            dropped: self.u64("the frames dropped")?,
            packets: self.u64("the packets")?,
            octets: self.u64("the octets")?,
            send_p50: self.u32("the times of sending")?,
            send_p99: self.u32("the times of sending")?,
        })
    }

    fn report(&mut self) -> Result<Report, MessageError> {
        let mut report = Report {
            frames: self.u64("the frames")?,
            frames_lost: self.u64("the frames lost")?,
            packets_lost: self.u64("the packets lost")?,
            late: self.u64("the late packets")?,
            duplicate: self.u64("the duplicate packets")?,
            tiles_concealed: self.u64("the tiles concealed")?,
            latency_p50: self.u32("the latencies")?,
            latency_p99: self.u32("the latencies")?,
            ..Report::default()
        };
        // With repair packets, there are three more fields, of which the last two are not both 0.
        if self.0.len() == REPAIRED_LEN && self.0[8..] != [0; REPAIRED_LEN - 8] {
            report.packets_recovered = self.u64("the packets recovered")?;
            report.packets_repaired = self.u64("the packets repaired")?;
            report.answers_in_time = self.u8("the answers in time")?;
        } else {
            report.packets_recovered = self.optional().map_or(0, u64::from_be_bytes);
        }
        Ok(report)
    }

    fn nack(&mut self) -> Result<Nack, MessageError> {
        let frame = self.u64("the frame")?;
        let count = usize::from(self.u8("the runs")?);
        let mut packets = Vec::with_capacity(count);
        let mut last = 0;
        for _ in 0..count {
            let [high, middle, low] = self.take("the runs")?;
            let start = u32::from_be_bytes([0, high, middle, low]);
            let end = start + u32::from(self.u16("the runs")?);
            if start < last || start == end || end > 1 << 24 {
                return Err(MessageError::Runs { start, end });
            }
            packets.push(start..end);
            last = end;
        }
        if packets.is_empty() {
            return Err(MessageError::Runs { start: 0, end: 0 });
        }
        Ok(Nack { frame, packets })
    }

    /// Reads a field that is absent if it is 0: ends of the first version do not know it.
    fn optional<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (octets, rest) = self.0.split_first_chunk().filter(|(octets, _)| **octets != [0; N])?;
        self.0 = rest;
        Some(*octets)
    }

    /// Reads an address, of which an IPv4 one is written as an IPv6 one (RFC 4291 section 2.5.5.2), and a port.
    fn group(&mut self) -> Result<SocketAddr, MessageError> {
        let address = Ipv6Addr::from(self.take::<16>("the group")?);
        Ok(SocketAddr::new(address.to_canonical(), self.u16("the port of the group")?))
    }

    fn addresses(&mut self) -> Result<(Vec<u16>, Vec<u32>), MessageError> {
        let count = self.count("ports")?;
        let mut ports = Vec::with_capacity(count);
        for _ in 0..count {
            ports.push(self.u16("the ports")?);
        }
        let count = self.count("synchronisation sources")?;
        let mut ssrcs = Vec::with_capacity(count);
        for _ in 0..count {
            ssrcs.push(self.u32("the synchronisation sources")?);
        }
        Ok((ports, ssrcs))
    }

    fn end(&mut self) -> Result<(Reason, String), MessageError> {
        let reason = Reason::from_number(self.u8("the reason")?);
        let len = usize::from(self.u8("the text")?);
        if len > TEXT_LEN_MAX {
            return Err(MessageError::Text);
        }
        let (text, rest) =
            self.0.split_at_checked(len).ok_or(MessageError::Truncated { field: "the text" })?;
        self.0 = rest;
        let text = str::from_utf8(text).map_err(|_| MessageError::Text)?;
        Ok((reason, printable(text)))
    }

    /// Reads the number of entries of a list and checks it before memory is allocated for them.
    fn count(&mut self, field: &'static str) -> Result<usize, MessageError> {
        let count = self.u8(field)?;
        if usize::from(count) > UNITS_MAX {
            return Err(MessageError::Count { field, count });
        }
        Ok(usize::from(count))
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, MessageError> {
        self.take(field).map(u8::from_be_bytes)
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, MessageError> {
        self.take(field).map(u16::from_be_bytes)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, MessageError> {
        self.take(field).map(u32::from_be_bytes)
    }

    fn u64(&mut self, field: &'static str) -> Result<u64, MessageError> {
        self.take(field).map(u64::from_be_bytes)
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], MessageError> {
        let (octets, rest) = self.0.split_first_chunk().ok_or(MessageError::Truncated { field })?;
        self.0 = rest;
        Ok(*octets)
    }
}
