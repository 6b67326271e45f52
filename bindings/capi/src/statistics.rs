//! Counters of a stream, its sources and its RTCP peers.

use std::ffi::c_char;

use crate::control_event::{ReportBlock, nanos};
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::stream::Stream;
use crate::{handle, pointer};

/// A stream's counters at one moment. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Statistics {
    /// Frames accepted for sending.
    pub frames_sent: u64,
    /// Octets of them, as given.
    pub frame_octets_sent: u64,
    /// Packets created.
    pub packets_sent: u64,
    /// Octets of RTP payload in them.
    pub payload_octets_sent: u64,
    /// Packets retransmitted on request.
    pub retransmitted: u64,
    /// Frames (or NAL units) delivered.
    pub frames_received: u64,
    /// Frames (or NAL units) begun and dropped.
    pub frames_dropped: u64,
    /// Packets accepted.
    pub packets_received: u64,
    /// Octets of RTP payload in them.
    pub payload_octets_received: u64,
    /// Packets that were missing when the receiver stopped waiting for them.
    pub packets_lost: u64,
    /// Packets that arrived after a later one.
    pub packets_reordered: u64,
    /// Requests sent for missing packets.
    pub requested: u64,
    /// Missing packets that arrived after they were requested.
    pub recovered: u64,
    /// Datagrams that were discarded.
    pub discarded: u64,
    /// Octets of memory held for frames that are not delivered yet.
    pub held_octets: u64,
    /// Datagrams from hosts other than the session's peer, ignored; by socket.
    pub foreign: u64,
    /// Datagrams that no stream on the port accepts; by socket.
    pub unrouted: u64,
    /// Datagrams discarded because finished frames were not pulled.
    pub uncollected: u64,
    /// System calls made to send; by socket, like the following counters up to `buffer_full_waits`.
    pub send_calls: u64,
    /// System calls made to receive.
    pub receive_calls: u64,
    /// Times that a thread waited on the socket.
    pub wait_calls: u64,
    /// Messages that the kernel dropped because the receive buffer was full (Linux).
    pub kernel_drops: u64,
    /// Times that the send buffer was full.
    pub buffer_full_waits: u64,
    /// Frames that were not sent completely.
    pub frames_cut: u64,
    /// NAL units omitted from the stream's frames, because their type has no place in RTP.
    pub units_left_out: u64,
    /// Missing packets that were requested and did not arrive in time.
    pub unanswered: u64,
    /// Missing packets that were not requested, because an answer could not have arrived in time.
    pub not_requested: u64,
    /// Dropped frames that were the first of their source and may lack their beginning.
    pub frames_unsure: u64,
    /// Frames dropped to free memory for other sources.
    pub frames_displaced: u64,
}

/// Reception statistics of one source. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Source {
    /// The source.
    pub ssrc: u32,
    /// Packets received, late ones and duplicates included.
    pub received: u64,
    /// Packets that should have arrived so far.
    pub expected: u64,
    /// Packets expected less those received.
    pub cumulative_lost: i64,
    /// The extended sequence number of the newest packet, with the wraps in the upper bits.
    pub highest: u64,
    /// Interarrival jitter (RFC 3550 appendix A.8) in nanoseconds.
    pub jitter: u64,
    /// Nanoseconds since its last packet arrived.
    pub silence: u64,
    /// Packets accepted: in time and not duplicates.
    pub packets: u64,
    /// Packets that were missing when the receiver stopped waiting for them.
    pub packets_lost: u64,
    /// Frames (or units) delivered.
    pub frames: u64,
    /// Frames (or units) begun and dropped.
    pub frames_dropped: u64,
}

/// RTCP state of one peer. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Peer {
    /// Its synchronisation source.
    pub ssrc: u32,
    /// Whether it sent BYE.
    pub has_left: bool,
    /// Whether it has reported about our media: `report`.
    pub has_reported: bool,
    /// Its last report about our media.
    pub report: ReportBlock,
    /// The last round-trip time to it in nanoseconds; 0 if it is not known.
    pub round_trip: u64,
    /// Its canonical name, with a zero octet at its end; empty until the peer announces it.
    pub cname: [c_char; 256],
}

fn of(statistics: &rushes::Statistics) -> Statistics {
    let rushes::Statistics { send, receive, socket, .. } = statistics;
    Statistics {
        frames_sent: send.frames,
        frame_octets_sent: send.frame_octets,
        packets_sent: send.packets,
        payload_octets_sent: send.payload_octets,
        retransmitted: send.retransmitted,
        frames_received: receive.frames,
        frames_dropped: receive.frames_dropped,
        packets_received: receive.packets,
        payload_octets_received: receive.payload_octets,
        packets_lost: receive.packets_lost,
        packets_reordered: receive.reordered,
        requested: receive.requested,
        recovered: receive.recovered,
        discarded: receive.discards.total(),
        held_octets: receive.held_octets as u64,
        foreign: statistics.foreign,
        unrouted: statistics.unrouted,
        uncollected: statistics.uncollected,
        send_calls: socket.send_calls,
        receive_calls: socket.receive_calls,
        wait_calls: socket.wait_calls,
        kernel_drops: socket.kernel_drops,
        buffer_full_waits: socket.buffer_full_waits,
        frames_cut: send.frames_cut,
        units_left_out: send.units_left_out,
        unanswered: receive.unanswered,
        not_requested: receive.not_requested,
        frames_unsure: receive.frames_unsure,
        frames_displaced: receive.frames_displaced,
    }
}

/// The stream's counters; `size` is sizeof(rushes_statistics). May be called on any thread, while
/// others push and pull.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_statistics(
    stream: *const Stream,
    statistics: *mut Statistics,
    size: usize,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        pointer::write_prefix(statistics, size, of(&stream.handle.statistics()))
    })
}

/// The number of datagrams discarded for the reason named `reason`, such as "duplicate", "late" or
/// "authentication failed"; 0 for an unknown reason.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_discarded(
    stream: *const Stream,
    reason: *const c_char,
    count: *mut u64,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        let reason = pointer::text(reason)?;
        let discards = stream.handle.statistics().receive.discards;
        let found = discards.iter().find(|(known, _)| known.name() == reason);
        pointer::write(count, found.map_or(0, |(_, count)| count))
    })
}

/// The source at `index` among those that the stream tracks; RUSHES_ERROR_ARGUMENT if `index` is
/// out of range. `size` is sizeof(rushes_source).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_source(
    stream: *const Stream,
    index: usize,
    source: *mut Source,
    size: usize,
) -> Status {
    guard(|| {
        let statistics = handle::get(stream)?.handle.statistics();
        let of = statistics.receive.sources.get(index).ok_or_else(|| out_of_range("sources"))?;
        let source_of = Source {
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
        };
        pointer::write_prefix(source, size, source_of)
    })
}

/// The peer at `index` among those that the stream's RTCP knows; RUSHES_ERROR_ARGUMENT if `index`
/// is out of range. `size` is sizeof(rushes_peer).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_peer(
    stream: *const Stream,
    index: usize,
    peer: *mut Peer,
    size: usize,
) -> Status {
    guard(|| {
        let peers = handle::get(stream)?.rtcp.peers();
        let of = peers.get(index).ok_or_else(|| out_of_range("peers"))?;
        let peer_of = Peer {
            ssrc: of.ssrc.0,
            has_left: of.left,
            has_reported: of.reported.is_some(),
            report: of.reported.as_ref().map(ReportBlock::from).unwrap_or_default(),
            round_trip: of.round_trip.map_or(0, nanos),
            cname: pointer::text_array(&of.cname),
        };
        pointer::write_prefix(peer, size, peer_of)
    })
}

/// When a frame of the source `ssrc` was captured, by the sender's wall clock: an NTP timestamp
/// (RFC 5905), by the same clock for all streams of one sender. RUSHES_TIMEOUT before its first
/// sender report.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_capture_time(
    stream: *const Stream,
    ssrc: u32,
    timestamp: u32,
    ntp: *mut u64,
) -> Status {
    guard_with(|| {
        pointer::check(ntp)?;
        let peers = handle::get(stream)?.rtcp.peers();
        let peer = peers.iter().find(|peer| peer.ssrc.0 == ssrc);
        let Some(clock) = peer.and_then(|peer| peer.clock) else { return Ok(Status::Timeout) };
        pointer::write(ntp, clock.to_ntp(rushes::RtpTimestamp(timestamp)).0)?;
        Ok(Status::Ok)
    })
}

/// Nanoseconds since a frame of the source `ssrc` was captured, by the sender's wall clock and ours;
/// negative if the sender's is ahead. RUSHES_TIMEOUT before its first sender report, and if the
/// clocks are an hour or more apart: some senders do not report wall-clock time.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_capture_latency(
    stream: *const Stream,
    ssrc: u32,
    timestamp: u32,
    latency: *mut i64,
) -> Status {
    guard_with(|| {
        pointer::check(latency)?;
        let rtcp = &handle::get(stream)?.rtcp;
        let timestamp = rushes::RtpTimestamp(timestamp);
        let known = rtcp.capture_latency(rushes::Ssrc(ssrc), timestamp);
        let Some(nanos) = known else { return Ok(Status::Timeout) };
        pointer::write(latency, nanos)?;
        Ok(Status::Ok)
    })
}

fn out_of_range(what: &str) -> Failure {
    Failure::new(Status::Argument, format!("the index is out of range: there are fewer {what}"))
}
