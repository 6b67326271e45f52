//! Opus in Ogg: RFC 7845.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use ogg::reading::{BasePacketReader, OggPage, PageParser};
use ogg::{OggReadError, Packet, PacketWriteEndInfo, PacketWriter};
use rushes_proto::RtpTimestamp;
use rushes_proto::payload::opus::packet_duration;

use super::{Bytes, FileError, FrameReader, FrameWriter, MediaFrame, ReadOptions};

/// Samples at 48 kHz that a decoder should drop at the beginning if the encoder is not known: 80 ms
/// (RFC 7845 section 4.2).
const PRE_SKIP: u16 = 3840;

/// The first bytes of each page, and the length of its header without the segment table (RFC 3533
/// section 6).
const CAPTURE_PATTERN: &[u8] = b"OggS";
const PAGE_HEADER_LEN: usize = 27;

/// Maximum bytes of pages in which no packet ends.
const PACKET_MAX: usize = 64 << 20;

/// Maximum bytes between two pages.
const JUNK_MAX: usize = 150 << 10;

/// Maximum samples of a page: one second (RFC 7845 section 6).
const PAGE_SAMPLES: u64 = 48_000;

/// The identification header (RFC 7845 section 5.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OpusHead {
    /// Output channels, 1 to 255.
    pub channels: u8,
    /// Samples at 48 kHz to drop at the beginning.
    pub pre_skip: u16,
    /// The sample rate before encoding, in hertz; 0 if it is not known.
    pub input_rate: u32,
    /// Gain to apply, in 1/256 dB.
    pub gain: i16,
    /// Channel mapping family.
    pub mapping: u8,
}

impl OpusHead {
    /// Parses the header; `None` if `packet` is not a header of a version from 0 to 15.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let fields = packet.strip_prefix(b"OpusHead")?;
        let &[version, channels, p0, p1, r0, r1, r2, r3, g0, g1, mapping] =
            fields.first_chunk::<11>()?;
        // The upper four bits are the major version (RFC 7845 section 5.1).
        if version > 15 || channels == 0 {
            return None;
        }
        Some(Self {
            channels,
            pre_skip: u16::from_le_bytes([p0, p1]),
            input_rate: u32::from_le_bytes([r0, r1, r2, r3]),
            gain: i16::from_le_bytes([g0, g1]),
            mapping,
        })
    }

    fn write(self) -> Vec<u8> {
        let mut packet = b"OpusHead\x01".to_vec();
        packet.push(self.channels);
        packet.extend_from_slice(&self.pre_skip.to_le_bytes());
        packet.extend_from_slice(&self.input_rate.to_le_bytes());
        packet.extend_from_slice(&self.gain.to_le_bytes());
        packet.push(self.mapping);
        packet
    }
}

/// The Opus packets of an Ogg stream.
pub struct OpusReader {
    path: PathBuf,
    bytes: Bytes,
    packets: BasePacketReader,
    /// Whether a page was found.
    has_page: bool,
    /// Bytes since the last page that do not belong to one.
    junk: usize,
    /// The serial number of the current stream and its identification header.
    head: Option<(u32, OpusHead)>,
    has_tags: bool,
    number: u64,
    /// Bytes of pages since the end of the last packet.
    unfinished: usize,
}

impl OpusReader {
    /// Creates a reader of a file that is fed in pieces; errors contain `path`.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            bytes: Bytes::default(),
            packets: BasePacketReader::new(),
            has_page: false,
            junk: 0,
            head: None,
            has_tags: false,
            number: 0,
            unfinished: 0,
        }
    }

    /// Returns the identification header, or `None` before it was read.
    pub fn head(&self) -> Option<OpusHead> {
        self.head.map(|(_, head)| head)
    }

    /// Returns the next packet and its duration in ticks of 48 kHz, or `None` if more bytes are
    /// needed or, at the end of the file, if there are no more packets.
    ///
    /// # Errors
    /// [`FileError::Ogg`], [`FileError::OggOpus`] or [`FileError::OpusPacket`].
    pub fn next_packet(&mut self) -> Result<Option<(Vec<u8>, u32)>, FileError> {
        while let Some(packet) = self.next_of_any_stream()? {
            let Some((serial, _)) = self.head else {
                let head = OpusHead::parse(&packet.data).ok_or_else(|| {
                    self.not_opus("no identification header (RFC 7845 section 5.1)")
                })?;
                self.head = Some((packet.stream_serial(), head));
                continue;
            };
            if packet.stream_serial() != serial {
                // A chained stream begins when the previous one has ended, as in radio streams.
                let head = OpusHead::parse(&packet.data).filter(|_| packet.first_in_stream());
                if let Some(head) = head.filter(|_| self.has_tags) {
                    self.head = Some((packet.stream_serial(), head));
                    self.has_tags = false;
                }
                continue;
            }
            if !self.has_tags {
                if !packet.data.starts_with(b"OpusTags") {
                    return Err(self.not_opus("no comment header (RFC 7845 section 5.2)"));
                }
                self.has_tags = true;
                continue;
            }
            let number = self.number;
            self.number += 1;
            let ticks = packet_duration(&packet.data).map_err(|source| FileError::OpusPacket {
                path: self.path.clone(),
                number,
                source,
            })?;
            return Ok(Some((packet.data, ticks)));
        }
        match self.head {
            _ if !self.bytes.finished || self.has_tags => Ok(None),
            None => Err(self.not_opus("empty")),
            Some(_) => Err(self.not_opus("no comment header")),
        }
    }

    fn not_opus(&self, reason: &'static str) -> FileError {
        FileError::OggOpus { path: self.path.clone(), reason }
    }

    /// Returns the next packet of any of the file's streams.
    fn next_of_any_stream(&mut self) -> Result<Option<Packet>, FileError> {
        loop {
            if let Some(packet) = self.packets.read_packet() {
                self.unfinished = 0;
                return Ok(Some(packet));
            }
            if self.unfinished > PACKET_MAX {
                return Err(self.not_opus("a packet is larger than 64 MiB"));
            }
            let page = self.next_page().and_then(|page| {
                let Some(page) = page else { return Ok(false) };
                self.packets.push_page(page).map(|()| true)
            });
            match page {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(source) => return Err(FileError::Ogg { path: self.path.clone(), source }),
            }
        }
    }

    /// Returns the next page (RFC 3533 section 6) and skips other bytes before it.
    fn next_page(&mut self) -> Result<Option<OggPage>, OggReadError> {
        let rest = self.bytes.rest();
        let mut places = rest.windows(CAPTURE_PATTERN.len());
        let place = places.position(|window| window == CAPTURE_PATTERN);
        // The pattern may begin in the last three bytes.
        let keep = CAPTURE_PATTERN.len() - 1;
        let junk = place.unwrap_or_else(|| rest.len().saturating_sub(keep));
        self.junk += junk;
        self.bytes.skip(junk);
        let is_missing = place.is_none() && self.bytes.finished && !self.has_page;
        if self.junk > JUNK_MAX || is_missing {
            return Err(OggReadError::NoCapturePatternFound);
        }
        if place.is_none() {
            return Ok(None);
        }
        let rest = self.bytes.rest();
        let table = rest.get(PAGE_HEADER_LEN - 1).and_then(|segments| {
            rest.get(PAGE_HEADER_LEN..PAGE_HEADER_LEN + usize::from(*segments))
        });
        let len = table.map(|table| table.iter().map(|len| usize::from(*len)).sum::<usize>());
        let body = table
            .zip(len)
            .and_then(|(table, len)| rest.get(PAGE_HEADER_LEN + table.len()..)?.get(..len));
        let (Some(header), Some(table), Some(body)) = (rest.first_chunk(), table, body) else {
            let cut_off = || io::Error::from(io::ErrorKind::UnexpectedEof).into();
            return if self.bytes.finished { Err(cut_off()) } else { Ok(None) };
        };
        let (mut parser, _) = PageParser::new(*header)?;
        parser.parse_segments(table.to_vec());
        let page = parser.parse_packet_data(body.to_vec());
        let len = PAGE_HEADER_LEN + table.len() + body.len();
        self.bytes.skip(len);
        (self.has_page, self.junk) = (true, 0);
        self.unfinished += len;
        page.map(Some)
    }
}

impl std::fmt::Debug for OpusReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpusReader")
            .field("path", &self.path)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

/// Writes Opus packets to a playable Ogg stream. Packets are placed in time by their RTP
/// timestamps, so that gaps (lost packets, discontinuous transmission) stay gaps.
pub struct OpusWriter<W: Write> {
    packets: PacketWriter<'static, W>,
    serial: u32,
    has_headers: bool,
    /// The latest packet, held back because the last packet of a stream is written differently.
    held: Option<Vec<u8>>,
    /// Granule position after the held packet, in samples at 48 kHz.
    position: u64,
    page_start: u64,
    /// Packets added to pages, and packets in pages that are complete.
    packets_given: u64,
    packets_in_pages: u64,
    next_timestamp: Option<RtpTimestamp>,
}

impl<W: Write> OpusWriter<W> {
    /// Creates a writer of one stream to `output`.
    pub fn new(output: W, serial: u32) -> Self {
        Self {
            packets: PacketWriter::new(output),
            serial,
            has_headers: false,
            held: None,
            position: 0,
            page_start: 0,
            packets_given: 0,
            packets_in_pages: 0,
            next_timestamp: None,
        }
    }

    /// Marks the next packet as that of another source, with unrelated timestamps.
    fn change_source(&mut self) {
        self.next_timestamp = None;
    }

    /// Writes one packet, sampled at `timestamp`.
    ///
    /// # Errors
    /// The error of the output, or an error if the packet is not Opus.
    pub fn write(&mut self, packet: &[u8], timestamp: RtpTimestamp) -> io::Result<()> {
        let ticks = packet_duration(packet)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if !self.has_headers {
            self.has_headers = true;
            self.write_headers(packet)?;
        }
        self.write_held(PacketWriteEndInfo::NormalPacket)?;
        // A gap advances the position; a timestamp that goes back does not reduce it.
        let gap = self.next_timestamp.map_or(0, |next| timestamp.distance(next));
        self.position += u64::try_from(gap).unwrap_or(0) + u64::from(ticks);
        self.next_timestamp = Some(timestamp.plus(ticks));
        self.held = Some(packet.to_vec());
        Ok(())
    }

    /// Ends the stream and returns the output.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.end()?;
        Ok(self.packets.into_inner())
    }

    /// Ends the stream.
    fn end(&mut self) -> io::Result<()> {
        self.write_held(PacketWriteEndInfo::EndStream)?;
        self.packets.inner_mut().flush()
    }

    fn write_held(&mut self, end: PacketWriteEndInfo) -> io::Result<()> {
        let Some(packet) = self.held.take() else { return Ok(()) };
        let page_is_full = self.position - self.page_start >= PAGE_SAMPLES;
        let end = match end {
            PacketWriteEndInfo::NormalPacket if page_is_full => {
                self.page_start = self.position;
                PacketWriteEndInfo::EndPage
            }
            end => end,
        };
        let ends_page = !matches!(end, PacketWriteEndInfo::NormalPacket);
        self.packets.write_packet(packet, self.serial, end, self.position)?;
        self.packets_given += 1;
        if ends_page {
            self.packets_in_pages = self.packets_given;
        }
        Ok(())
    }

    /// Writes the headers, with the channels of the first packet (RFC 6716 section 3.1, bit s).
    fn write_headers(&mut self, packet: &[u8]) -> io::Result<()> {
        let channels = if packet.first().is_some_and(|toc| toc & 4 != 0) { 2 } else { 1 };
        let head =
            OpusHead { channels, pre_skip: PRE_SKIP, input_rate: 48_000, gain: 0, mapping: 0 };
        let mut tags = b"OpusTags".to_vec();
        let vendor = b"rushes";
        tags.extend_from_slice(&(vendor.len() as u32).to_le_bytes());
        tags.extend_from_slice(vendor);
        tags.extend_from_slice(&0_u32.to_le_bytes());
        // Each header ends its page (RFC 7845 section 3).
        for header in [head.write(), tags] {
            self.packets.write_packet(header, self.serial, PacketWriteEndInfo::EndPage, 0)?;
        }
        Ok(())
    }
}

impl<W: Write> std::fmt::Debug for OpusWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpusWriter").field("position", &self.position).finish_non_exhaustive()
    }
}

/// Reads the packets of an Ogg Opus file.
pub(in crate::format) fn reader(path: &Path, _: ReadOptions) -> Box<dyn FrameReader> {
    Box::new(OpusReader::new(path))
}

/// Writes the packets of an Ogg Opus file.
pub(in crate::format) fn writer() -> Box<dyn FrameWriter> {
    Box::new(OpusWriter::new(Vec::new(), std::process::id()))
}

impl FrameReader for OpusReader {
    fn feed(&mut self, bytes: &[u8]) {
        self.bytes.feed(bytes);
    }

    fn finish(&mut self) {
        self.bytes.finished = true;
    }

    fn next_frame(&mut self, frame: &mut MediaFrame) -> Result<bool, FileError> {
        let packet = self.next_packet()?;
        let is_packet = packet.is_some();
        if let Some((packet, ticks)) = packet {
            (frame.data, frame.duration) = (packet, Some(ticks));
        }
        Ok(is_packet)
    }

    fn buffered(&self) -> usize {
        self.bytes.rest().len()
    }
}

impl OpusWriter<Vec<u8>> {
    /// Moves the pages so far to `to`.
    fn drain(&mut self, to: &mut dyn Write) -> io::Result<()> {
        let pages = self.packets.inner_mut();
        let written = to.write_all(pages);
        pages.clear();
        written
    }
}

impl FrameWriter for OpusWriter<Vec<u8>> {
    fn write(
        &mut self,
        frame: &[u8],
        timestamp: RtpTimestamp,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        OpusWriter::write(self, frame, timestamp)?;
        self.drain(to)
    }

    fn finish(&mut self, to: &mut dyn Write) -> io::Result<()> {
        self.end()?;
        self.drain(to)
    }

    fn frames_written(&self) -> u64 {
        self.packets_in_pages
    }

    fn change_source(&mut self) {
        OpusWriter::change_source(self);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ogg::PacketReader;

    use super::*;

    fn write(packets: &[(&[u8], u32)]) -> Vec<u8> {
        let mut writer = OpusWriter::new(Vec::new(), 7);
        for (packet, timestamp) in packets {
            writer.write(packet, RtpTimestamp(*timestamp)).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let packets: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![0x0c, n, n]).collect();
        let timed: Vec<(&[u8], u32)> =
            packets.iter().zip(0..).map(|(packet, n)| (&packet[..], u32::MAX - 5000 + n)).collect();
        let file = write(&timed);
        let mut reader = OpusReader::new(Path::new("test"));
        reader.feed(&file);
        reader.finish();
        for packet in packets {
            assert_eq!(reader.next_packet().unwrap(), Some((packet, 960)));
        }
        assert_eq!(reader.next_packet().unwrap(), None);
        assert_eq!(reader.head().unwrap().channels, 2);
    }

    #[test]
    fn pieces_of_any_size_give_the_same_packets() {
        let packets: Vec<Vec<u8>> =
            (0..90_u8).map(|n| vec![0x0c; 3 * usize::from(n) + 1]).collect();
        let timed: Vec<(&[u8], u32)> =
            packets.iter().zip(0..).map(|(packet, n)| (&packet[..], 960 * n)).collect();
        let file = [b"before", &write(&timed)[..], b"OggScut"].concat();
        for len in [1, 2, 27, 28, 1000] {
            let (mut reader, mut read) = (OpusReader::new(Path::new("x.opus")), Vec::new());
            for piece in file.chunks(len) {
                reader.feed(piece);
                while let Some((packet, _)) = reader.next_packet().unwrap() {
                    read.push(packet);
                }
            }
            assert_eq!(read, packets, "{len}");
            reader.finish();
            assert!(reader.next_packet().is_err(), "the last page is cut off");
        }
    }

    #[test]
    fn a_gap_in_timestamps_is_a_gap_in_positions() {
        let file = write(&[(&[0x08, 1], 0), (&[0x08, 2], 960 + 48_000)]);
        let mut packets = PacketReader::new(Cursor::new(file));
        let mut positions = Vec::new();
        while let Some(packet) = packets.read_packet().unwrap() {
            positions.push((packet.absgp_page(), packet.last_in_stream()));
        }
        assert_eq!(positions[2..], [(960 + 48_960, false), (960 + 48_960, true)]);
    }

    #[test]
    fn chained_streams_are_read_one_after_the_other() {
        let write = |serial: u32, octet: u8| {
            let mut writer = OpusWriter::new(Vec::new(), serial);
            writer.write(&[0x08, octet], RtpTimestamp(0)).unwrap();
            writer.write(&[0x08, octet + 1], RtpTimestamp(960)).unwrap();
            writer.finish().unwrap()
        };
        let mut reader = OpusReader::new(Path::new("radio"));
        reader.feed(&[write(1, 10), write(2, 20), write(3, 30)].concat());
        reader.finish();
        let packets = std::iter::from_fn(|| reader.next_packet().unwrap());
        let found: Vec<u8> = packets.map(|(packet, _)| packet[1]).collect();
        assert_eq!(found, [10, 11, 20, 21, 30, 31]);
    }

    #[test]
    fn a_packet_without_an_end_takes_no_more_than_its_share() {
        let mut writer = PacketWriter::new(Vec::new());
        let head = OpusHead { channels: 1, pre_skip: 0, input_rate: 0, gain: 0, mapping: 0 };
        writer.write_packet(head.write(), 7, PacketWriteEndInfo::EndPage, 0).unwrap();
        let packet = vec![0; PACKET_MAX + (1 << 20)];
        writer.write_packet(packet, 7, PacketWriteEndInfo::EndPage, 0).unwrap();
        let mut reader = OpusReader::new(Path::new("long"));
        let mut error = None;
        for piece in writer.into_inner().chunks(1 << 20) {
            reader.feed(piece);
            error = reader.next_packet().err();
            if error.is_some() {
                break;
            }
        }
        assert!(error.unwrap().to_string().contains("larger than 64 MiB"));
    }

    #[test]
    fn other_files_are_errors_that_name_them() {
        let open = |octets: &[u8]| {
            let mut reader = OpusReader::new(Path::new("x.opus"));
            reader.feed(octets);
            reader.finish();
            reader.next_packet().unwrap_err().to_string()
        };
        assert!(open(b"").contains("x.opus"));
        assert!(open(b"RIFF....WAVE").contains("x.opus"));
    }
}
