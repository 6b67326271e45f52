//! The state of a stream's RTCP: its counters, its peers and their clocks.

use std::ffi::c_char;

use crate::control_event::{ReportBlock, nanos};
use crate::error::{Status, out_of_range};
use crate::frame::Frame;
use crate::guard::{guard, guard_with};
use crate::stream::Stream;
use crate::{handle, pointer};

/// Counters of a stream's RTCP. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RtcpStatistics {
    /// Complete reports sent.
    pub reports_sent: u64,
    /// Feedback datagrams sent before the next complete report.
    pub feedback_sent: u64,
    /// Octets sent, IP and UDP headers included.
    pub octets_sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Octets received, IP and UDP headers included.
    pub octets_received: u64,
    /// Datagrams and packets that were malformed.
    pub malformed: u64,
    /// Datagrams refused because they are not authentic. This and the following three counters are
    /// for secured streams only.
    pub unauthentic: u64,
    /// Datagrams refused as replays.
    pub replayed: u64,
    /// Datagrams refused because their master key is exhausted.
    pub key_expired: u64,
    /// Datagrams not sent because our master key is exhausted.
    pub unprotected: u64,
    /// Packets of unknown types, skipped.
    pub packets_unknown: u64,
    /// Events dropped because too many were waiting.
    pub events_forgotten: u64,
    /// Known participants, including this one.
    pub members: u64,
    /// Participants that send media.
    pub senders: u64,
    /// Nanoseconds between reports, before the interval is randomised.
    pub interval: u64,
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
    /// The last round-trip time to the peer in nanoseconds; 0 if it is not known.
    pub round_trip: u64,
    /// The peer's canonical name, terminated by a zero octet; empty until the peer announces it.
    pub cname: [c_char; 256],
}

/// Gets the counters of the stream's RTCP; `size` is sizeof(rushes_rtcp_statistics). May be called
/// on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_rtcp_statistics(
    stream: *const Stream,
    statistics: *mut RtcpStatistics,
    size: usize,
) -> Status {
    guard(|| {
        let of = handle::get(stream)?.rtcp.statistics();
        let statistics_of = RtcpStatistics {
            reports_sent: of.reports_sent,
            feedback_sent: of.feedback_sent,
            octets_sent: of.octets_sent,
            received: of.received,
            octets_received: of.octets_received,
            malformed: of.malformed,
            unauthentic: of.unauthentic,
            replayed: of.replayed,
            key_expired: of.key_expired,
            unprotected: of.unprotected,
            packets_unknown: of.packets_unknown,
            events_forgotten: of.events_forgotten,
            members: of.members as u64,
            senders: of.senders as u64,
            interval: nanos(of.interval),
        };
        pointer::write_prefix(statistics, size, statistics_of)
    })
}

/// Gets the peer at `index` among those that the stream's RTCP knows; RUSHES_ERROR_ARGUMENT if
/// `index` is out of range. `size` is sizeof(rushes_peer).
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

/// Gets the capture time of a frame of the source `ssrc` on the sender's wall clock, as an NTP
/// timestamp (RFC 5905). All streams of one sender have the same clock. RUSHES_TIMEOUT before its
/// first sender report.
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

/// Gets the nanoseconds since a frame of the source `ssrc` was captured: the difference between our
/// wall clock and the sender's, negative if the sender's is ahead. RUSHES_TIMEOUT before its first
/// sender report, and if the clocks are an hour or more apart, because some senders do not report
/// wall-clock time.
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

/// Nanoseconds from the capture of a frame of the stream to now, by the time that the frame carries
/// or else by its sender's reports; otherwise as rushes_stream_capture_latency().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_frame_latency(
    stream: *const Stream,
    frame: *const Frame,
    latency: *mut i64,
) -> Status {
    guard_with(|| {
        pointer::check(latency)?;
        let frame = handle::get(frame)?;
        let known = handle::get(stream)?.rtcp.frame_latency(frame.frame());
        let Some(nanos) = known else { return Ok(Status::Timeout) };
        pointer::write(latency, nanos)?;
        Ok(Status::Ok)
    })
}
