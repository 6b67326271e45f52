//! Feedback and packets to be sent with the next report, or before it.

use super::event::KeyFrameRequest;
use std::time::Instant;

use crate::ecn::Ecn;
use crate::rtcp::{Arrival, BitRateLimit, Dlrr, Fir, Writer, pack_nacks};
use crate::seq::SequenceNumber;
use crate::ssrc::Ssrc;
use crate::time::NtpTime;

/// Maximum number of waiting entries of each kind; further ones are dropped.
const WAITING_MAX: usize = 64;

/// Maximum number of packets of one source that one NACK requests.
const SEQUENCES_MAX: usize = 1024;

/// Octets of a NACK before its entries, and of each entry.
const NACK_HEAD_LEN: usize = 12;
const NACK_LEN: usize = 4;

/// Octets before the answers to reference times, and of each answer.
const DELAYS_HEAD_LEN: usize = 12;
const DELAY_LEN: usize = 12;

/// Octets of an arrival report on one source, without the arrivals.
const ARRIVALS_HEAD_LEN: usize = 20;

/// If fewer arrivals than this fit, and more are to be reported, they wait for another datagram.
const ARRIVALS_MIN: usize = 4;

/// A source, and the arrivals of its packets from a sequence number on.
type SourceArrivals = (Ssrc, SequenceNumber, Vec<Option<(Instant, Ecn)>>);

/// Maximum number of arrivals in one report (RFC 8888 section 3.1).
const REPORTS_MAX: usize = 16_384;

/// Maximum number of arrivals of one source that wait together.
const MERGED_MAX: usize = 2048;

/// Octets of transport-wide feedback before its packet chunks, with padding.
const WIDE_HEAD_LEN: usize = 28;

/// Arrivals by transport-wide sequence number that wait to be written.
#[derive(Debug, Default)]
struct WideArrivals {
    /// One of the sources.
    media: Ssrc,
    begin: SequenceNumber,
    times: Vec<Option<Instant>>,
    /// The instant from which times are counted.
    epoch: Option<Instant>,
    /// The number of the next report.
    number: u8,
}

/// An application-defined packet to send.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AppData {
    /// The subtype, which the application defines, 0..=31.
    pub subtype: u8,
    /// The name of the application: four ASCII characters.
    pub name: [u8; 4],
    /// Its data, padded with zeros to a multiple of four octets.
    pub data: Vec<u8>,
}

/// Waiting feedback and application-defined packets.
#[derive(Debug, Default)]
pub(super) struct Pending {
    missing: Vec<(Ssrc, Vec<SequenceNumber>)>,
    key_frames: Vec<(Ssrc, KeyFrameRequest, u8)>,
    bit_rates: Vec<BitRateLimit>,
    /// Our answer to requests for a bit rate: the limits in force, if they are to be sent.
    pub(super) limits: Option<Vec<BitRateLimit>>,
    /// Whether a reference time is waiting for its first answer.
    pub(super) delays: bool,
    estimate: Option<(u64, Vec<Ssrc>)>,
    apps: Vec<AppData>,
    arrivals: Vec<SourceArrivals>,
    wide: WideArrivals,
    /// Lists of sequence numbers to be reused.
    spare: Vec<Vec<SequenceNumber>>,
}

impl Pending {
    /// Returns whether anything that justifies early feedback is waiting.
    pub(super) fn is_urgent(&self) -> bool {
        !(self.missing.is_empty() && self.key_frames.is_empty() && self.bit_rates.is_empty())
            || self.limits.is_some()
            || self.delays
            || self.estimate.is_some()
            || !self.arrivals.is_empty()
            || !self.wide.times.is_empty()
    }

    /// Requests packets of `media`, given in order.
    pub(super) fn request_packets(&mut self, media: Ssrc, sequences: &[SequenceNumber]) {
        let n = match self.missing.iter().position(|(ssrc, _)| *ssrc == media) {
            Some(n) => n,
            None if self.missing.len() >= WAITING_MAX => return,
            None => {
                self.missing.push((media, self.spare.pop().unwrap_or_default()));
                self.missing.len() - 1
            }
        };
        let waiting = &mut self.missing[n].1;
        let room = SEQUENCES_MAX.saturating_sub(waiting.len());
        for sequence in sequences.iter().take(room) {
            if !waiting.contains(sequence) {
                waiting.push(*sequence);
            }
        }
        // The numbers are ordered by distance, so that they fit in few NACKs.
        if let Some(first) = waiting.first().copied() {
            waiting.sort_by_key(|sequence| sequence.distance(first));
        }
    }

    pub(super) fn request_key_frame(&mut self, media: Ssrc, request: KeyFrameRequest, number: u8) {
        self.key_frames.retain(|(ssrc, _, _)| *ssrc != media);
        if self.key_frames.len() < WAITING_MAX {
            self.key_frames.push((media, request, number));
        }
    }

    pub(super) fn request_bit_rate(&mut self, limit: BitRateLimit) {
        self.bit_rates.retain(|other| other.ssrc != limit.ssrc);
        if self.bit_rates.len() < WAITING_MAX {
            self.bit_rates.push(limit);
        }
    }

    pub(super) fn estimate(&mut self, bit_rate: u64, sources: &[Ssrc]) {
        self.estimate = Some((bit_rate, sources[..sources.len().min(WAITING_MAX)].to_vec()));
    }

    /// Reports the arrival times of the packets of `media` from `begin` on.
    pub(super) fn report_arrivals(
        &mut self,
        media: Ssrc,
        begin: SequenceNumber,
        times: &[Option<(Instant, Ecn)>],
    ) {
        if times.is_empty() {
            return;
        }
        let continues = |(of, from, held): &&mut SourceArrivals| {
            *of == media && begin.0 == from.0.wrapping_add(held.len() as u16)
        };
        let held = self.arrivals.iter_mut().rfind(continues).map(|(_, _, held)| held);
        if let Some(held) = held.filter(|held| held.len() + times.len() <= MERGED_MAX) {
            held.extend_from_slice(times);
            return;
        }
        if self.arrivals.len() >= WAITING_MAX {
            // A source cannot push out the reports on another one by gaps in its sequence numbers.
            let longest = (0..WAITING_MAX).max_by_key(|&at| self.arrivals[at].2.len());
            longest.map(|at| self.arrivals.remove(at));
        }
        self.arrivals.push((media, begin, times.to_vec()));
    }

    /// Writes the waiting arrivals up to `len_max` octets, with their times counted back from
    /// `now`; the rest remains.
    pub(super) fn write_arrivals(
        &mut self,
        writer: &mut Writer,
        own: Ssrc,
        now: (Instant, NtpTime),
        len_max: usize,
    ) {
        let (now, ntp) = now;
        let arrival = |time: &Option<(Instant, Ecn)>| {
            let (time, ecn) = (*time)?;
            Some((ecn, Arrival::Before(now.saturating_duration_since(time))))
        };
        self.arrivals.retain_mut(|(media, begin, times)| {
            // The format pads an odd number of arrivals.
            let room = (len_max.saturating_sub(writer.len() + ARRIVALS_HEAD_LEN) / 2) & !1;
            let count = times.len().min(room).min(REPORTS_MAX);
            if count < times.len().min(ARRIVALS_MIN) {
                return true;
            }
            let block = (*media, *begin, times.drain(..count).map(|time| arrival(&time)));
            writer.congestion(own, [block], ntp);
            *begin = begin.plus(count as u16);
            !times.is_empty()
        });
    }

    /// Reports the arrival times of packets by their transport-wide numbers, from `begin` on. They
    /// replace those that wait and are reported anew.
    pub(super) fn report_wide_arrivals(
        &mut self,
        (media, epoch): (Ssrc, Instant),
        begin: SequenceNumber,
        times: &[Option<Instant>],
    ) {
        let wide = &mut self.wide;
        (wide.media, wide.epoch) = (media, Some(epoch));
        let offset = usize::from(begin.0.wrapping_sub(wide.begin.0));
        if offset <= wide.times.len() {
            wide.times.truncate(offset);
        } else {
            // A gap: the older ones have waited for so long that later ones count more.
            wide.times.clear();
        }
        if wide.times.is_empty() {
            wide.begin = begin;
        }
        wide.times.extend_from_slice(times);
        let excess = wide.times.len().saturating_sub(MERGED_MAX);
        wide.times.drain(..excess);
        wide.begin = wide.begin.plus(excess as u16);
    }

    /// Writes the waiting arrivals by transport-wide number up to `len_max` octets; the rest remains.
    pub(super) fn write_wide_arrivals(&mut self, writer: &mut Writer, own: Ssrc, len_max: usize) {
        let wide = &mut self.wide;
        let Some(epoch) = wide.epoch.filter(|_| wide.times.iter().any(Option::is_some)) else {
            // Without any arrival there is nothing to report.
            wide.times.clear();
            return;
        };
        // A packet takes two octets and, with six others, two octets of a chunk.
        let room = len_max.saturating_sub(writer.len() + WIDE_HEAD_LEN) * 7 / 16;
        let count = wide.times.len().min(room);
        if count < wide.times.len().min(ARRIVALS_MIN) {
            return;
        }
        let since = |at: &Option<Instant>| at.map(|at| at.saturating_duration_since(epoch));
        let times: Vec<_> = wide.times.iter().take(count).map(since).collect();
        let written = writer.transport_wide([own, wide.media], wide.begin, wide.number, &times);
        wide.number = wide.number.wrapping_add(1);
        wide.begin = wide.begin.plus(written as u16);
        wide.times.drain(..written);
    }

    /// Adds a packet; returns `false` if too many are waiting.
    pub(super) fn add_app(&mut self, app: AppData) -> bool {
        let room = self.apps.len() < WAITING_MAX;
        if room {
            self.apps.push(app);
        }
        room
    }

    /// Writes waiting feedback up to `len_max` octets; the rest remains.
    pub(super) fn write(&mut self, writer: &mut Writer, own: Ssrc, len_max: usize) {
        let before = writer.len();
        let mut spare = std::mem::take(&mut self.spare);
        self.missing.retain_mut(|(media, sequences)| {
            let room = len_max.saturating_sub(writer.len() + NACK_HEAD_LEN) / NACK_LEN;
            let nacks = pack_nacks(sequences.iter().copied()).take(room);
            let count: usize = nacks.map(|nack| nack.sequences().count()).sum();
            writer.nack(own, *media, sequences.drain(..count));
            let all = sequences.is_empty();
            if all {
                spare.push(std::mem::take(sequences));
            }
            !all
        });
        self.spare = spare;
        self.key_frames.retain(|(media, request, number)| {
            !attempt(writer, len_max, |writer| match request {
                KeyFrameRequest::PictureLoss => writer.picture_loss(own, *media),
                KeyFrameRequest::FullIntra => {
                    writer.full_intra_request(own, &[Fir { ssrc: *media, number: *number }]);
                }
            })
        });
        self.bit_rates.retain(|limit| {
            !attempt(writer, len_max, |writer| writer.bit_rate_request(own, &[*limit]))
        });
        self.limits.take_if(|limits| {
            attempt(writer, len_max, |writer| writer.bit_rate_notification(own, limits))
        });
        self.estimate.take_if(|(bit_rate, sources)| {
            // The entry cannot be split: if it is too long for `len_max`, it is sent alone.
            let len_max = if writer.len() == before { usize::MAX } else { len_max };
            attempt(writer, len_max, |writer| writer.estimate(own, *bit_rate, sources))
        });
    }

    /// Writes the application's packets up to `len_max` octets. A longer packet is sent alone after
    /// the report.
    pub(super) fn write_apps(&mut self, writer: &mut Writer, own: Ssrc, len_max: usize) {
        let before = writer.len();
        let mut full = false;
        self.apps.retain(|app| {
            let len_max = if writer.len() == before { usize::MAX } else { len_max };
            full |= !attempt(writer, len_max, |writer| {
                writer.app(own, app.subtype, app.name, &app.data);
            });
            full
        });
    }
}

/// Calls `write`, and undoes it if the datagram gets longer than `len_max`; returns whether it was
/// kept.
pub(super) fn attempt(
    writer: &mut Writer,
    len_max: usize,
    write: impl FnOnce(&mut Writer),
) -> bool {
    let before = writer.len();
    write(writer);
    if writer.len() > len_max {
        writer.truncate(before);
        return false;
    }
    true
}

/// Writes the answers to reference times, one for each receiver, as many as fit.
pub(super) fn write_delays(writer: &mut Writer, own: Ssrc, delays: &[Dlrr], len_max: usize) {
    let room = len_max.saturating_sub(writer.len() + DELAYS_HEAD_LEN) / DELAY_LEN;
    let delays = &delays[..delays.len().min(room)];
    if !delays.is_empty() {
        writer.delays(own, delays);
    }
}

/// Writes our own reference time.
pub(super) fn write_reference(writer: &mut Writer, own: Ssrc, now: NtpTime, len_max: usize) {
    attempt(writer, len_max, |writer| writer.reference_time(own, now));
}
