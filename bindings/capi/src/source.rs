//! The sources of a stream.

use std::ffi::c_char;

use rushes::proto::stream::SourceStatistics;

use crate::control_event::nanos;
use crate::error::{Failure, Status, out_of_range};
use crate::guard::guard;
use crate::stream::Stream;
use crate::{handle, pointer};

/// Reception statistics of one source. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Source {
    /// The source.
    pub ssrc: u32,
    /// Packets received, including late ones and duplicates.
    pub received: u64,
    /// Packets that should have arrived so far.
    pub expected: u64,
    /// Packets expected minus packets received.
    pub cumulative_lost: i64,
    /// The extended sequence number of the newest packet, with the number of wraps in the upper
    /// bits.
    pub highest: u64,
    /// Interarrival jitter (RFC 3550 appendix A.8) in nanoseconds.
    pub jitter: u64,
    /// Nanoseconds since its last packet arrived.
    pub silence: u64,
    /// Packets accepted: those in time that are not duplicates.
    pub packets: u64,
    /// Packets that were missing when the receiver stopped waiting for them.
    pub packets_lost: u64,
    /// Frames (or units) delivered.
    pub frames: u64,
    /// Frames (or units) begun and dropped.
    pub frames_dropped: u64,
    /// Accepted packets whose payload is unknown or invalid in the format.
    pub packets_unusable: u64,
    /// Packets that routers marked instead of dropping them (CE of RFC 3168).
    pub packets_congested: u64,
    /// Nanoseconds since its first packet arrived.
    pub age: u64,
    /// Interarrival jitter in ticks of the clock rate.
    pub jitter_ticks: u32,
    /// The address and port that the source sends from, such as "192.0.2.1:5004", terminated by a
    /// zero octet; empty if unknown, and after its BYE.
    pub address: [c_char; 64],
}

fn of(of: &SourceStatistics) -> Source {
    Source {
        ssrc: of.ssrc.0,
        received: of.received,
        expected: of.expected,
        cumulative_lost: of.cumulative_lost,
        highest: of.highest.0,
        jitter: nanos(of.jitter_time),
        silence: nanos(of.last_heard.elapsed()),
        packets: of.packets,
        packets_lost: of.packets_lost,
        frames: of.frames,
        frames_dropped: of.frames_dropped,
        packets_unusable: of.packets_unusable,
        packets_congested: of.packets_congested,
        age: nanos(of.first_heard.elapsed()),
        jitter_ticks: of.jitter,
        address: pointer::text_array(
            &of.address.map_or_else(String::new, |address| address.to_string()),
        ),
    }
}

/// Writes the source at `index` of a list.
fn write(
    sources: &[SourceStatistics],
    index: usize,
    source: *mut Source,
    size: usize,
) -> Result<(), Failure> {
    let found = sources.get(index).ok_or_else(|| out_of_range("sources"))?;
    pointer::write_prefix(source, size, of(found))
}

/// Gets the source at `index` among those that the stream tracks; RUSHES_ERROR_ARGUMENT if `index`
/// is out of range. `size` is sizeof(rushes_source).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_source(
    stream: *const Stream,
    index: usize,
    source: *mut Source,
    size: usize,
) -> Status {
    guard(|| {
        let statistics = handle::get(stream)?.handle.statistics();
        write(&statistics.receive.sources, index, source, size)
    })
}

/// Gets the source at `index` among the latest 16 that have ended, the newest last;
/// RUSHES_ERROR_ARGUMENT if `index` is out of range. `size` is sizeof(rushes_source).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_ended_source(
    stream: *const Stream,
    index: usize,
    source: *mut Source,
    size: usize,
) -> Status {
    guard(|| {
        let statistics = handle::get(stream)?.handle.statistics();
        write(&statistics.receive.ended, index, source, size)
    })
}
