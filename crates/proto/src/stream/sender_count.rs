//! The packet counts in a source's sender reports.

use super::window::Window;
use crate::time::{NtpTime, RtpTimestamp};

/// The number of packets sent so far, according to a sender report (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SentSoFar {
    /// The sender's packet count, modulo 2³².
    pub packets: u32,
    /// The RTP timestamp of the report.
    pub at: RtpTimestamp,
    /// The same instant on the sender's wall clock.
    pub ntp: NtpTime,
}

/// Maximum number of counted packets that may be under way when a source begins.
const UNDER_WAY_MAX: u32 = 4096;

/// The packet count of a source, as far as it is reliable.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderCount {
    /// Whether each packet is counted once. This is not certain if lost packets are repeated
    /// unchanged, because some senders count the repetitions.
    is_exact: bool,
    last: Option<SentSoFar>,
    /// Whether the source was heard since it began to send, judged by its first report.
    since_beginning: Option<bool>,
}

impl SenderCount {
    pub(super) fn new(is_exact: bool) -> Self {
        Self { is_exact, last: None, since_beginning: None }
    }

    /// Resets the count, because the source has restarted.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.is_exact);
    }

    /// Notes the count of a report; returns the number of packets sent after the newest one
    /// received, if that is certain.
    pub(super) fn take(&mut self, sent: SentSoFar, window: &Window) -> Option<u64> {
        let unseen = sent.packets.wrapping_sub(window.expected() as u32).cast_signed();
        self.last = Some(sent);
        let is_beginning = unseen.unsigned_abs() <= UNDER_WAY_MAX;
        let since_beginning = *self.since_beginning.get_or_insert(is_beginning);
        // A report does not count packets that were sent after it but arrived before it.
        let is_known = self.is_exact && since_beginning && !window.is_after(sent.at);
        u64::try_from(unseen).ok().filter(|_| is_known)
    }

    /// Returns the sender's wall clock in its last report.
    pub(super) fn wall_clock(&self) -> Option<NtpTime> {
        self.last.map(|sent| sent.ntp)
    }

    /// Returns whether the last report counts a packet sampled at `timestamp`.
    #[inline]
    pub(super) fn includes(&self, timestamp: RtpTimestamp) -> bool {
        self.last.is_some_and(|sent| timestamp.distance(sent.at) <= 0)
    }

    /// Returns whether no packet before the first one can be missing: all packets sent have
    /// arrived, or so many more were sent that the source was joined late.
    #[inline]
    pub(super) fn excludes_missing_head(&self, window: &Window) -> bool {
        let Some(sent) = self.last else { return false };
        self.since_beginning == Some(false) || window.held_until(sent.at) >= u64::from(sent.packets)
    }
}
