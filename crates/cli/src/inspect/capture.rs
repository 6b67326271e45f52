//! Capture files, packet by packet: pcap and pcapng, in a buffer that does not grow with the file.

use std::fmt;
use std::io::Read;
use std::time::Duration;

use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{
    Block, EnhancedPacketBlock, InterfaceDescriptionBlock, OptionCode, PcapBlockOwned, PcapError,
    create_reader,
};

use super::link::LinkType;

/// Initial size of the buffer in bytes: room for an IP packet of maximum size and the next one.
const BUFFER_LEN: usize = 160 << 10;

/// Maximum size of a record in bytes; records of UDP packets are far smaller.
const RECORD_LEN_MAX: usize = 16 << 20;

/// Maximum number of interfaces remembered per section.
const INTERFACES_MAX: usize = 4096;

/// The format of a capture file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FileFormat {
    Pcap,
    PcapNg,
}

impl FileFormat {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapNg => "pcapng",
        }
    }
}

/// One packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'c> {
    /// Its number, counted from 1 as packet analysers do.
    pub(crate) number: u64,
    /// Time of capture since 1970; simple packet blocks have none.
    pub(crate) time: Option<Duration>,
    pub(crate) link: LinkType,
    /// The captured part of the packet.
    pub(crate) data: &'c [u8],
    /// Octets of the packet on the wire.
    pub(crate) original_len: usize,
}

/// The reason why a capture cannot be read to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CaptureError {
    /// The file does not begin like any of the formats.
    NotACapture,
    /// The file ends inside a packet or block.
    CutShort { packet: u64 },
    /// A packet or block is inconsistent.
    Damaged { packet: u64 },
    /// A packet or block claims to be larger than any real one.
    TooLarge { packet: u64 },
    /// A packet names an interface that no block describes.
    NoInterface { packet: u64, interface: u32 },
    /// The operating system could not read the file.
    Unreadable { packet: u64 },
}

impl CaptureError {
    /// Returns the packet at which the error occurred, counted from 1.
    pub(crate) fn packet(self) -> Option<u64> {
        match self {
            Self::NotACapture => None,
            Self::CutShort { packet }
            | Self::Damaged { packet }
            | Self::TooLarge { packet }
            | Self::NoInterface { packet, .. }
            | Self::Unreadable { packet } => Some(packet),
        }
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACapture => f.write_str("not a capture: neither pcap nor pcapng"),
            Self::CutShort { packet } => write!(f, "the file ends inside packet {packet}"),
            Self::Damaged { packet } => write!(f, "damaged at packet {packet}"),
            Self::TooLarge { packet } => write!(
                f,
                "damaged at packet {packet}: it claims more than {} MiB",
                RECORD_LEN_MAX >> 20
            ),
            Self::NoInterface { packet, interface } => {
                write!(f, "packet {packet} is of interface {interface}, which is not described")
            }
            Self::Unreadable { packet } => write!(f, "cannot read packet {packet}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// An interface of a capture.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// Ticks of its clock in a second; `None` if the number overflows.
    resolution: Option<u64>,
    /// Seconds to add to its timestamps.
    offset: i64,
    /// Octets kept of each packet; 0 means all.
    snap_len: usize,
}

/// A capture being read.
pub(crate) struct CaptureReader {
    blocks: Box<dyn PcapReaderIterator + Send>,
    format: FileFormat,
    interfaces: Vec<Interface>,
    big_endian: bool,
    packets: u64,
    capacity: usize,
}

impl CaptureReader {
    /// Reads the file's header.
    ///
    /// # Errors
    /// [`CaptureError::NotACapture`], or [`CaptureError::Unreadable`] with packet 1.
    pub(crate) fn new(input: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let mut blocks = create_reader(BUFFER_LEN, Whole(input)).map_err(|error| match error {
            PcapError::ReadError => CaptureError::Unreadable { packet: 1 },
            _ => CaptureError::NotACapture,
        })?;
        let format = match blocks.next() {
            Ok((_, PcapBlockOwned::NG(_))) => FileFormat::PcapNg,
            Ok(_) => FileFormat::Pcap,
            Err(_) => return Err(CaptureError::NotACapture),
        };
        Ok(Self {
            blocks,
            format,
            interfaces: Vec::new(),
            big_endian: false,
            packets: 0,
            capacity: BUFFER_LEN,
        })
    }

    pub(crate) fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns the number of packets read so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of bytes of the file read so far.
    pub(crate) fn position(&self) -> u64 {
        self.blocks.consumed() as u64
    }

    /// Passes the next packet to `take`; returns `None` at the end of the file.
    ///
    /// # Errors
    /// [`CaptureError`], after which nothing more can be read.
    pub(crate) fn next_packet<T>(
        &mut self,
        mut take: impl FnMut(Captured<'_>) -> T,
    ) -> Result<Option<T>, CaptureError> {
        let packet = self.packets + 1;
        loop {
            let Self { blocks, interfaces, big_endian, .. } = self;
            let failure = match blocks.next() {
                Ok((len, block)) => {
                    let taken = match read_block(&block, interfaces, big_endian, packet)? {
                        Some(captured) => {
                            self.packets = packet;
                            Some(take(captured))
                        }
                        None => None,
                    };
                    self.blocks.consume(len);
                    if taken.is_some() {
                        return Ok(taken);
                    }
                    continue;
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => None,
                Err(PcapError::UnexpectedEof) => Some(CaptureError::CutShort { packet }),
                Err(PcapError::ReadError) => Some(CaptureError::Unreadable { packet }),
                Err(_) => Some(CaptureError::Damaged { packet }),
            };
            match failure {
                Some(error) => return Err(error),
                None => self.read_on(packet)?,
            }
        }
    }

    /// Reads more of the file into the buffer.
    fn read_on(&mut self, packet: u64) -> Result<(), CaptureError> {
        let before = self.blocks.data().len();
        if self.blocks.refill().is_err() {
            return Err(CaptureError::Unreadable { packet });
        }
        if self.blocks.data().len() > before || self.blocks.reader_exhausted() {
            return Ok(());
        }
        if self.capacity >= RECORD_LEN_MAX {
            return Err(CaptureError::TooLarge { packet });
        }
        self.capacity *= 2;
        self.blocks.grow(self.capacity);
        Ok(())
    }
}

impl fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaptureReader").field("packets", &self.packets).finish_non_exhaustive()
    }
}

/// Returns the packet in `block`, if it contains one. Other blocks describe how to read packets.
fn read_block<'b>(
    block: &'b PcapBlockOwned<'b>,
    interfaces: &mut Vec<Interface>,
    big_endian: &mut bool,
    number: u64,
) -> Result<Option<Captured<'b>>, CaptureError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution =
                if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            interfaces.push(Interface {
                // The upper bits hold the length of the frame check sequence.
                link: LinkType(header.network.0 & 0xffff),
                resolution: Some(resolution),
                offset: 0,
                snap_len: 0,
            });
            Ok(None)
        }
        PcapBlockOwned::Legacy(record) => {
            let interface = interface(interfaces, 0, number)?;
            let ticks = interface.resolution.unwrap_or(1) * u64::from(record.ts_sec)
                + u64::from(record.ts_usec);
            Ok(Some(Captured {
                number,
                time: time_of(&interface, ticks),
                link: interface.link,
                data: record.data,
                original_len: (record.origlen as usize).max(record.data.len()),
            }))
        }
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            interfaces.clear();
            *big_endian = section.big_endian();
            Ok(None)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            if interfaces.len() < INTERFACES_MAX {
                interfaces.push(describe(description, *big_endian));
            }
            Ok(None)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            enhanced(packet, interfaces, number).map(Some)
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let interface = interface(interfaces, 0, number)?;
            let data = packet.packet_data();
            let kept = if interface.snap_len == 0 { data.len() } else { interface.snap_len };
            Ok(Some(Captured {
                number,
                time: None,
                link: interface.link,
                data: &data[..kept.min(data.len())],
                original_len: packet.origlen as usize,
            }))
        }
        PcapBlockOwned::NG(_) => Ok(None),
    }
}

fn interface(
    interfaces: &[Interface],
    interface: u32,
    packet: u64,
) -> Result<Interface, CaptureError> {
    let found = interfaces.get(interface as usize).copied();
    found.ok_or(CaptureError::NoInterface { packet, interface })
}

fn enhanced<'b>(
    packet: &'b EnhancedPacketBlock<'b>,
    interfaces: &[Interface],
    number: u64,
) -> Result<Captured<'b>, CaptureError> {
    let interface = interface(interfaces, packet.if_id, number)?;
    let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
    let data = packet.packet_data();
    Ok(Captured {
        number,
        time: time_of(&interface, ticks),
        link: interface.link,
        data,
        original_len: (packet.origlen as usize).max(data.len()),
    })
}

fn describe(description: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
    let exponent = u32::from(description.if_tsresol & 0x7f);
    let resolution = if description.if_tsresol & 0x80 == 0 {
        10_u64.checked_pow(exponent)
    } else {
        1_u64.checked_shl(exponent)
    };
    let offset = description.options.iter().find(|option| option.code == OptionCode::IfTsoffset);
    let offset = offset.and_then(|option| option.value.first_chunk::<8>().copied());
    let read = if big_endian { i64::from_be_bytes } else { i64::from_le_bytes };
    Interface {
        link: LinkType(description.linktype.0),
        resolution,
        offset: offset.map_or(0, read),
        snap_len: description.snaplen as usize,
    }
}

fn time_of(interface: &Interface, ticks: u64) -> Option<Duration> {
    let resolution = interface.resolution?;
    let seconds = (ticks / resolution).checked_add_signed(interface.offset)?;
    let nanos = u128::from(ticks % resolution) * 1_000_000_000 / u128::from(resolution);
    Some(Duration::new(seconds, nanos as u32))
}

/// A reader that fills the buffer unless the input ends, because the header must be read in one
/// call.
struct Whole<R>(R);

impl<R: Read> Read for Whole<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let mut len = 0;
        while len < out.len() {
            match self.0.read(&mut out[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) if len > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(len)
    }
}
