//! Counters of a stream.

use rushes::Discard;
use rushes::proto::stream::ReceiveStatistics;

use crate::control_event::nanos;
use crate::error::Status;
use crate::guard::guard;
use crate::stream::Stream;
use crate::{handle, pointer};

/// A stream's counters at one moment. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Statistics {
    /// Frames accepted for sending.
    pub frames_sent: u64,
    /// Octets of these frames, as pushed.
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
    /// Datagrams that were discarded, for the reasons in `discarded_...`.
    pub discarded: u64,
    /// Octets of memory held for frames that are not delivered yet.
    pub held_octets: u64,
    /// Ignored datagrams from hosts other than the session's peer; per socket.
    pub foreign: u64,
    /// Datagrams that no stream on the port accepts; per socket.
    pub unrouted: u64,
    /// Datagrams discarded because finished frames were not pulled.
    pub uncollected: u64,
    /// System calls made to send. This and the following counters up to `buffer_full_waits` are per
    /// socket.
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
    /// NAL units omitted from the stream's frames, because RTP cannot carry their type.
    pub units_left_out: u64,
    /// Missing packets that were requested but did not arrive in time.
    pub unanswered: u64,
    /// Missing packets that were not requested, because an answer could not have arrived in time.
    pub not_requested: u64,
    /// Dropped frames that were the first of their source and may lack their beginning.
    pub frames_unsure: u64,
    /// Frames dropped to free memory for other sources.
    pub frames_displaced: u64,
    /// Requests for packets that are no longer kept, or that were repeated too often.
    pub retransmissions_refused: u64,
    /// Events dropped because too many were waiting.
    pub events_forgotten: u64,
    /// Datagrams that the system accepted for sending. This and the following counters up to
    /// `truncated` are per socket.
    pub sent_datagrams: u64,
    /// Octets in them, without headers.
    pub sent_octets: u64,
    /// Datagrams received.
    pub received_datagrams: u64,
    /// Octets in them, without headers.
    pub received_octets: u64,
    /// ICMP messages reporting that the destination port is closed.
    pub unreachable: u64,
    /// Datagrams dropped because they were larger than any UDP datagram can be.
    pub truncated: u64,
    /// Empty datagrams, which keep a path open (RFC 6263) and are not a fault. This and the
    /// following counters, up to `discarded_unknown_key`, add up to `discarded`.
    pub discarded_keep_alive: u64,
    /// Datagrams that are not RTP: too short, another version, or lengths beyond the end.
    pub discarded_not_rtp: u64,
    /// ZRTP, although this end does not agree on keys.
    pub discarded_zrtp: u64,
    /// RTCP on the port of RTP (RFC 5761).
    pub discarded_rtcp: u64,
    /// Packets of another payload type than the stream's.
    pub discarded_payload_type: u64,
    /// Packets of another source than the configured one.
    pub discarded_other_source: u64,
    /// Packets of sources beyond the maximum number of concurrent sources.
    pub discarded_too_many_sources: u64,
    /// Packets of sources that did not pass their probation.
    pub discarded_probation: u64,
    /// Packets with the stream's own SSRC: a collision or a loop.
    pub discarded_own_source: u64,
    /// Packets of a known source from another address.
    pub discarded_conflict: u64,
    /// Retransmissions of packets that were not missing.
    pub discarded_retransmission: u64,
    /// Packets whose sequence number is far from the others and that no further packet followed.
    pub discarded_stray: u64,
    /// Packets that were received before.
    pub discarded_duplicate: u64,
    /// Packets that arrived after the receiver had stopped waiting for them.
    pub discarded_late: u64,
    /// Packets with a payload that the format does not allow.
    pub discarded_payload: u64,
    /// Packets of a packetization mode that was not agreed on.
    pub discarded_outside_mode: u64,
    /// Fragments whose start is missing.
    pub discarded_fragment_without_start: u64,
    /// Packets of frames that are larger than the stream allows.
    pub discarded_frame_too_large: u64,
    /// Packets of a secured stream whose tag does not match: forged, damaged, in clear, or under
    /// another key.
    pub discarded_authentication: u64,
    /// Packets of a secured stream that were received before, or are older than the replay window.
    pub discarded_replayed: u64,
    /// Packets of a secured stream under an exhausted master key.
    pub discarded_key_expired: u64,
    /// Packets of a secured stream that name an unknown master key.
    pub discarded_unknown_key: u64,
    /// Packets whose header extension was malformed, where elements of it were agreed on
    /// (rushes_stream_options_extension()). The extension was ignored, the packet was not.
    pub extensions_malformed: u64,
    /// The numbers of frames by the time from their capture to their delivery, of those that carry
    /// their capture time: up to 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500 ms, 1, 2, 5, 10 s, and more.
    /// They are differences between our wall clock and that of the sender; a capture in the future
    /// counts as 0.
    pub capture_to_delivery: [u64; 15],
    /// The sum of these times, in nanoseconds.
    pub capture_to_delivery_sum: u64,
    /// Repair packets sent (rushes_stream_options_fec()); not among `packets_sent`.
    pub repairs_sent: u64,
    /// Repair packets received; not among `packets_received`.
    pub repairs_received: u64,
    /// Missing packets that were recovered from repair packets.
    pub repaired: u64,
    /// Frames of temporal layers that are not sent (rushes_stream_set_max_temporal_id()); not among
    /// `frames_sent`.
    pub frames_left_out: u64,
    /// Octets of padding sent (rushes_stream_options_padding_limit()).
    pub padding_sent: u64,
}

fn counts(times: &rushes::Histogram) -> [u64; 15] {
    let mut counts = [0; 15];
    counts.copy_from_slice(times.counts());
    counts
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
        retransmissions_refused: send.retransmissions_refused,
        events_forgotten: receive.events_forgotten,
        sent_datagrams: socket.sent_datagrams,
        sent_octets: socket.sent_bytes,
        received_datagrams: socket.received_datagrams,
        received_octets: socket.received_bytes,
        unreachable: socket.refused,
        truncated: socket.truncated,
        extensions_malformed: receive.extensions_malformed,
        capture_to_delivery: counts(&statistics.capture_to_delivery),
        capture_to_delivery_sum: nanos(statistics.capture_to_delivery.sum()),
        repairs_sent: send.repairs,
        repairs_received: receive.repairs,
        repaired: receive.repaired,
        frames_left_out: send.frames_left_out,
        padding_sent: send.padding_octets,
        ..of_discards(receive)
    }
}

/// Returns the discarded datagrams by reason; the other counters are zero.
fn of_discards(receive: &ReceiveStatistics) -> Statistics {
    let discarded = |reason| receive.discards.get(reason);
    Statistics {
        discarded_keep_alive: discarded(Discard::KeepAlive),
        discarded_not_rtp: discarded(Discard::NotRtp),
        discarded_zrtp: discarded(Discard::Zrtp),
        discarded_rtcp: discarded(Discard::Rtcp),
        discarded_payload_type: discarded(Discard::PayloadType),
        discarded_other_source: discarded(Discard::OtherSource),
        discarded_too_many_sources: discarded(Discard::TooManySources),
        discarded_probation: discarded(Discard::Probation),
        discarded_own_source: discarded(Discard::OwnSource),
        discarded_conflict: discarded(Discard::Conflict),
        discarded_retransmission: discarded(Discard::Retransmission),
        discarded_stray: discarded(Discard::Stray),
        discarded_duplicate: discarded(Discard::Duplicate),
        discarded_late: discarded(Discard::Late),
        discarded_payload: discarded(Discard::Payload),
        discarded_outside_mode: discarded(Discard::OutsideMode),
        discarded_fragment_without_start: discarded(Discard::FragmentWithoutStart),
        discarded_frame_too_large: discarded(Discard::FrameTooLarge),
        discarded_authentication: discarded(Discard::Authentication),
        discarded_replayed: discarded(Discard::Replayed),
        discarded_key_expired: discarded(Discard::KeyExpired),
        discarded_unknown_key: discarded(Discard::UnknownKey),
        ..Statistics::default()
    }
}

/// Gets the stream's counters; `size` is sizeof(rushes_statistics). May be called on any thread,
/// while others push and pull.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_counter() {
        let source = include_str!("statistics.rs");
        let (declared, filled) = ("    pub discarded_", ": discarded(Discard::");
        assert_eq!(source.matches(declared).count(), Discard::ALL.len() + 1);
        assert_eq!(source.matches(filled).count(), Discard::ALL.len() + 1);
    }
}
