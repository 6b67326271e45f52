//! What a source's reports say of how much it has sent.

use super::window::Window;
use crate::time::RtpTimestamp;

/// What a sender report says of the media sent so far (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SentSoFar {
    /// The sender's packet count, modulo 2³².
    pub packets: u32,
    /// The RTP timestamp of the report.
    pub at: RtpTimestamp,
}

/// How many packets that a report counts may be under way when a source begins.
const UNDER_WAY_MAX: u32 = 4096;

/// The packet count of a source, as far as it can be believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct SenderCount {
    /// Whether each packet is counted once: not if lost ones are sent again as they were, which
    /// some senders count.
    is_exact: bool,
    last: Option<SentSoFar>,
    /// Whether the source has been followed since it began to send, by its first report.
    since_beginning: Option<bool>,
}

impl SenderCount {
    pub(super) fn new(is_exact: bool) -> Self {
        Self { is_exact, last: None, since_beginning: None }
    }

    /// Forgets everything: the source has begun anew.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.is_exact);
    }

    /// Takes what a report says; how many packets were sent after the newest one that came, if that
    /// can be known.
    pub(super) fn take(&mut self, sent: SentSoFar, window: &Window) -> Option<u64> {
        let unseen = sent.packets.wrapping_sub(window.expected() as u32).cast_signed();
        self.last = Some(sent);
        let is_beginning = unseen.unsigned_abs() <= UNDER_WAY_MAX;
        let since_beginning = *self.since_beginning.get_or_insert(is_beginning);
        // A report that later packets overtook says nothing of them.
        let is_known = self.is_exact && since_beginning && !window.is_after(sent.at);
        u64::try_from(unseen).ok().filter(|_| is_known)
    }

    /// Whether no packet before the first one is to be waited for: as many have come as had been
    /// sent, or so many more were sent that the source was joined late.
    #[inline]
    pub(super) fn shows_no_head(&self, window: &Window) -> bool {
        let Some(sent) = self.last else { return false };
        self.since_beginning == Some(false) || window.held_until(sent.at) >= u64::from(sent.packets)
    }
}
