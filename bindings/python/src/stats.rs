//! Counters for Python: a class for each of the library's.

use std::collections::BTreeMap;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rushes::net::Counters;
use rushes::proto::control::ControlStatistics;
use rushes::proto::stream::{
    ReceiveStatistics as LibraryReceived, SendStatistics as LibrarySent,
    SourceStatistics as LibrarySource,
};

/// A class with the library's counters under the library's names.
macro_rules! mirror {
    ($(#[$class_doc:meta])* $name:ident of $library:ty {
        $($(#[$doc:meta])* $field:ident: $kind:ty = $from:expr,)*
    }) => {
        $(#[$class_doc])*
        #[pyclass(frozen, module = "rushes")]
        #[derive(Clone, Debug)]
        pub(crate) struct $name { $($field: $kind,)* }

        impl $name {
            pub(crate) fn of(library: &$library) -> Self {
                Self { $($field: ($from)(library),)* }
            }
        }

        #[pymethods]
        impl $name {
            $($(#[$doc])* #[getter] fn $field(&self) -> $kind { self.$field.clone() })*

            /// Returns the counters by name, with nested objects as dictionaries.
            fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let dict = PyDict::new(py);
                $(dict.set_item(stringify!($field), to_plain(&self.$field.clone().into_bound_py_any(py)?)?)?;)*
                Ok(dict)
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let mut text = String::new();
                $(
                    let gap = if text.is_empty() { "" } else { ", " };
                    let value = self.$field.clone().into_bound_py_any(py)?.repr()?;
                    text += &format!("{gap}{}={value}", stringify!($field));
                )*
                Ok(format!("{}({text})", stringify!($name)))
            }
        }
    };
}

pub(crate) use mirror;

/// Converts a value to its form in such a dictionary.
pub(crate) fn to_plain<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(list) = value.cast::<PyList>() {
        let items = list.iter().map(|item| to_plain(&item)).collect::<PyResult<Vec<_>>>()?;
        return items.into_bound_py_any(value.py());
    }
    if value.hasattr("to_dict")? { value.call_method0("to_dict") } else { Ok(value.clone()) }
}

mirror! {
    /// Counters of sent frames and packets.
    SendStatistics of LibrarySent {
        /// Frames accepted.
        frames: u64 = |s: &LibrarySent| s.frames,
        /// Packets created.
        packets: u64 = |s: &LibrarySent| s.packets,
        /// Octets of RTP payload, payload headers included.
        payload_octets: u64 = |s: &LibrarySent| s.payload_octets,
        /// Octets of padding (`padding_limit`).
        padding_octets: u64 = |s: &LibrarySent| s.padding_octets,
        /// Octets of frames, as pushed.
        frame_octets: u64 = |s: &LibrarySent| s.frame_octets,
        /// Packets retransmitted on request; not among `packets`.
        retransmitted: u64 = |s: &LibrarySent| s.retransmitted,
        /// Frames not sent completely, because sending failed or the master key was exhausted.
        /// After each frame that was begun, a sequence number is skipped, so that receivers drop
        /// the frame.
        frames_cut: u64 = |s: &LibrarySent| s.frames_cut,
        /// NAL units omitted from the frames, because RTP cannot carry their type (such as the
        /// metadata of Dolby Vision) or because they are shorter than their header.
        units_left_out: u64 = |s: &LibrarySent| s.units_left_out,
        /// Frames of temporal layers that are not sent (`set_max_temporal_id`); not among `frames`.
        frames_left_out: u64 = |s: &LibrarySent| s.frames_left_out,
        /// Requests for packets that are no longer kept, or that were repeated too often.
        retransmissions_refused: u64 = |s: &LibrarySent| s.retransmissions_refused,
        /// Repair packets sent (`fec`); not among `packets`.
        repairs: u64 = |s: &LibrarySent| s.repairs,
    }
}

mirror! {
    /// Reception statistics of one source.
    SourceStatistics of LibrarySource {
        /// The source.
        ssrc: u32 = |s: &LibrarySource| s.ssrc.0,
        /// The host and port that the source sends from; `None` if unknown.
        address: Option<(String, u16)> = |s: &LibrarySource| s.address.map(|address| (address.ip().to_string(), address.port())),
        /// Packets accepted: those in time that are not duplicates.
        packets: u64 = |s: &LibrarySource| s.packets,
        /// Packets that were missing when the receiver stopped waiting for them.
        packets_lost: u64 = |s: &LibrarySource| s.packets_lost,
        /// Frames (or units) delivered.
        frames: u64 = |s: &LibrarySource| s.frames,
        /// Frames (or units) begun and dropped.
        frames_dropped: u64 = |s: &LibrarySource| s.frames_dropped,
        /// Packets received, including late ones and duplicates (RFC 3550 appendix A.3), but not
        /// those retransmitted in a separate stream.
        received: u64 = |s: &LibrarySource| s.received,
        /// Packets that should have arrived so far (RFC 3550 appendix A.3).
        expected: u64 = |s: &LibrarySource| s.expected,
        /// Accepted packets whose payload is unknown or invalid in the format.
        packets_unusable: u64 = |s: &LibrarySource| s.packets_unusable,
        /// Packets that routers marked instead of dropping them (CE of RFC 3168).
        packets_congested: u64 = |s: &LibrarySource| s.packets_congested,
        /// Seconds since the last packet arrived.
        silent_for: f64 = |s: &LibrarySource| s.last_heard.elapsed().as_secs_f64(),
        /// Seconds since the first packet arrived.
        known_for: f64 = |s: &LibrarySource| s.first_heard.elapsed().as_secs_f64(),
        /// Packets expected minus packets received; negative if duplicates outnumber losses (RFC
        /// 3550 appendix A.3).
        cumulative_lost: i64 = |s: &LibrarySource| s.cumulative_lost,
        /// The extended sequence number of the newest packet.
        highest: u64 = |s: &LibrarySource| s.highest.0,
        /// Interarrival jitter in ticks of the clock rate (RFC 3550 appendix A.8).
        jitter: u32 = |s: &LibrarySource| s.jitter,
        /// Interarrival jitter in seconds.
        jitter_time: f64 = |s: &LibrarySource| s.jitter_time.as_secs_f64(),
    }
}

mirror! {
    /// Counters of received frames and packets.
    ReceiveStatistics of LibraryReceived {
        /// Packets accepted: those of accepted sources, in time, that are not duplicates.
        packets: u64 = |s: &LibraryReceived| s.packets,
        /// Octets of RTP payload in these packets.
        payload_octets: u64 = |s: &LibraryReceived| s.payload_octets,
        /// Frames (or units) delivered.
        frames: u64 = |s: &LibraryReceived| s.frames,
        /// Frames (or units) begun and dropped.
        frames_dropped: u64 = |s: &LibraryReceived| s.frames_dropped,
        /// Dropped frames that were the first of their source and may lack their beginning.
        frames_unsure: u64 = |s: &LibraryReceived| s.frames_unsure,
        /// Packets that were missing when the receiver stopped waiting for them.
        packets_lost: u64 = |s: &LibraryReceived| s.packets_lost,
        /// Packets whose header extension was malformed, where elements of it were agreed on. The
        /// extension was ignored, the packet was not.
        extensions_malformed: u64 = |s: &LibraryReceived| s.extensions_malformed,
        /// Packets that arrived after a later one, without duplicates.
        reordered: u64 = |s: &LibraryReceived| s.reordered,
        /// Requests sent for missing packets, repetitions included.
        requested: u64 = |s: &LibraryReceived| s.requested,
        /// Missing packets that arrived after they were requested.
        recovered: u64 = |s: &LibraryReceived| s.recovered,
        /// Missing packets that were requested but did not arrive in time.
        unanswered: u64 = |s: &LibraryReceived| s.unanswered,
        /// Missing packets that were not requested, because an answer could not have arrived in
        /// time.
        not_requested: u64 = |s: &LibraryReceived| s.not_requested,
        /// Repair packets received (`fec`); not among `packets`.
        repairs: u64 = |s: &LibraryReceived| s.repairs,
        /// Missing packets that were recovered from repair packets.
        repaired: u64 = |s: &LibraryReceived| s.repaired,
        /// Frames dropped to free memory for other sources.
        frames_displaced: u64 = |s: &LibraryReceived| s.frames_displaced,
        /// Octets of memory held by reorder windows and unfinished frames.
        held_octets: usize = |s: &LibraryReceived| s.held_octets,
        /// Events dropped because they were not polled in time.
        events_forgotten: u64 = |s: &LibraryReceived| s.events_forgotten,
        /// Discarded datagrams by reason; a reason that has not occurred is missing.
        discards: BTreeMap<&'static str, u64> = |s: &LibraryReceived| s.discards.iter().map(|(reason, count)| (reason.name(), count)).collect(),
        /// Tracked sources that have passed their probation.
        sources: Vec<SourceStatistics> = |s: &LibraryReceived| s.sources.iter().map(SourceStatistics::of).collect(),
        /// The latest 16 sources that have ended, the newest last.
        ended: Vec<SourceStatistics> = |s: &LibraryReceived| s.ended.iter().map(SourceStatistics::of).collect(),
    }
}

mirror! {
    /// A socket's counters since it was opened; streams on one port share it.
    SocketCounters of Counters {
        /// System calls made to send.
        send_calls: u64 = |s: &Counters| s.send_calls,
        /// System calls made to receive, including those that returned nothing.
        receive_calls: u64 = |s: &Counters| s.receive_calls,
        /// Times that a thread waited on the socket.
        wait_calls: u64 = |s: &Counters| s.wait_calls,
        /// Datagrams that the system accepted for sending.
        sent_datagrams: u64 = |s: &Counters| s.sent_datagrams,
        /// Octets in these datagrams, without headers.
        sent_bytes: u64 = |s: &Counters| s.sent_bytes,
        /// Datagrams received.
        received_datagrams: u64 = |s: &Counters| s.received_datagrams,
        /// Octets in these datagrams, without headers.
        received_bytes: u64 = |s: &Counters| s.received_bytes,
        /// Times that the send buffer was full.
        buffer_full_waits: u64 = |s: &Counters| s.buffer_full_waits,
        /// ICMP port-unreachable errors.
        refused: u64 = |s: &Counters| s.refused,
        /// Datagrams dropped because they were larger than any UDP datagram can be.
        truncated: u64 = |s: &Counters| s.truncated,
        /// Messages that the kernel dropped because the receive buffer was full; one may hold a run
        /// of datagrams (Linux only).
        kernel_drops: u64 = |s: &Counters| s.kernel_drops,
    }
}

fn histogram(times: &rushes::Histogram) -> Vec<(f64, u64)> {
    let bounds = rushes::Histogram::BOUNDS.into_iter().chain([f64::INFINITY]);
    bounds.zip(times.counts().iter().copied()).collect()
}

mirror! {
    /// A stream's counters at one moment.
    Statistics of rushes::Statistics {
        /// Frames and packets sent.
        send: SendStatistics = |s: &rushes::Statistics| SendStatistics::of(&s.send),
        /// Frames and packets received, lost and discarded, in total and by source.
        receive: ReceiveStatistics = |s: &rushes::Statistics| ReceiveStatistics::of(&s.receive),
        /// System calls and datagrams of the socket; streams on one port share them.
        socket: SocketCounters = |s: &rushes::Statistics| SocketCounters::of(&s.socket),
        /// Ignored datagrams from hosts other than the session's peer; per socket.
        foreign: u64 = |s: &rushes::Statistics| s.foreign,
        /// Datagrams that no stream on the port accepts; per socket.
        unrouted: u64 = |s: &rushes::Statistics| s.unrouted,
        /// Datagrams discarded because the stream's finished frames were not pulled.
        uncollected: u64 = |s: &rushes::Statistics| s.uncollected,
        /// The times from capture to delivery of the frames that carry their capture time: the number
        /// of those that did not exceed each bound in seconds, but exceeded the bound before. The last
        /// bound is infinite.
        capture_to_delivery: Vec<(f64, u64)> = |s: &rushes::Statistics| histogram(&s.capture_to_delivery),
        /// The sum of these times, in seconds.
        capture_to_delivery_sum: f64 = |s: &rushes::Statistics| s.capture_to_delivery.sum().as_secs_f64(),
    }
}

mirror! {
    /// Counters of RTCP reports.
    RtcpStatistics of ControlStatistics {
        /// Complete reports sent.
        reports_sent: u64 = |s: &ControlStatistics| s.reports_sent,
        /// Feedback datagrams sent before the next complete report.
        feedback_sent: u64 = |s: &ControlStatistics| s.feedback_sent,
        /// Octets sent, IP and UDP headers included.
        octets_sent: u64 = |s: &ControlStatistics| s.octets_sent,
        /// Datagrams received.
        received: u64 = |s: &ControlStatistics| s.received,
        /// Octets received, IP and UDP headers included.
        octets_received: u64 = |s: &ControlStatistics| s.octets_received,
        /// Datagrams and packets that were malformed.
        malformed: u64 = |s: &ControlStatistics| s.malformed,
        /// Datagrams refused because they are not authentic. This and the following three counters
        /// are for secured streams only.
        unauthentic: u64 = |s: &ControlStatistics| s.unauthentic,
        /// Datagrams refused as replays.
        replayed: u64 = |s: &ControlStatistics| s.replayed,
        /// Datagrams refused because their master key is exhausted.
        key_expired: u64 = |s: &ControlStatistics| s.key_expired,
        /// Datagrams not sent because our master key is exhausted.
        unprotected: u64 = |s: &ControlStatistics| s.unprotected,
        /// Packets of unknown types, skipped.
        packets_unknown: u64 = |s: &ControlStatistics| s.packets_unknown,
        /// Events dropped because they were not polled in time.
        events_forgotten: u64 = |s: &ControlStatistics| s.events_forgotten,
        /// Known participants, including this one.
        members: usize = |s: &ControlStatistics| s.members,
        /// Participants that send media.
        senders: usize = |s: &ControlStatistics| s.senders,
        /// The interval between reports, before it is randomised, in seconds.
        interval: f64 = |s: &ControlStatistics| s.interval.as_secs_f64(),
    }
}
