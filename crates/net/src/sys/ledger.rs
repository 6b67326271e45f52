//! Tracks which slabs the kernel still reads, by the numbers that it gives to their messages.
//!
//! The kernel numbers the messages that it borrows, from 0 on, and sends a notification for each
//! message or range of messages that it has released. The ledger never frees a slab before that: it
//! keeps it in a [`ManuallyDrop`], which it opens only after the notification.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;

use thiserror::Error;

use crate::lend::{Loan, Returns};

/// Maximum number of lent messages; further ones are copied.
const MESSAGES: usize = 1024;

/// A loan and the queue that returns it to the lender, which is `None` if a copy was returned
/// instead.
#[derive(Debug)]
struct PendingReturn {
    loan: ManuallyDrop<Loan>,
    returns: Option<Returns>,
}

/// A slab that messages were made from.
#[derive(Debug, Default)]
struct Entry {
    /// Messages that the kernel has not released.
    away: u32,
    /// Whether the slab is still being sent, or its memory may never be released.
    in_use: bool,
    /// Whether the kernel may have a message for which no notification will come.
    doubtful: bool,
    pending_return: Option<PendingReturn>,
}

/// All slabs of one socket that the kernel may still read.
#[derive(Debug)]
pub(super) struct Ledger {
    entries: Vec<Entry>,
    /// The entry of each lent message, oldest first; `None` when it was released.
    messages: VecDeque<Option<usize>>,
    /// The number that the kernel gives to the next message.
    next: u32,
    /// Whether the next number is unknown.
    is_closed: bool,
    /// Whether the kernel's numbers differ from these; then no lent slab is ever returned.
    is_abandoned: bool,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::with_capacity(MESSAGES / 8),
            messages: VecDeque::with_capacity(MESSAGES),
            next: 0,
            is_closed: false,
            is_abandoned: false,
        }
    }

    /// Opens an entry for a slab; returns its place.
    pub(super) fn begin(&mut self) -> usize {
        let free =
            |entry: &Entry| !entry.in_use && entry.away == 0 && entry.pending_return.is_none();
        let place = self.entries.iter().position(free).unwrap_or_else(|| {
            self.entries.push(Entry::default());
            self.entries.len() - 1
        });
        self.entries[place] = Entry { in_use: true, ..Entry::default() };
        place
    }

    /// Records a message that is about to be lent to the kernel. Returns `false` if it must not be
    /// lent.
    pub(super) fn record(&mut self, place: usize) -> bool {
        if self.is_closed || self.messages.len() >= MESSAGES {
            return false;
        }
        self.messages.push_back(Some(place));
        self.next = self.next.wrapping_add(1);
        self.entries[place].away += 1;
        true
    }

    /// Returns whether the last recorded message has had no notification yet.
    pub(super) fn is_last_open(&self) -> bool {
        self.messages.back().is_some_and(Option::is_some)
    }

    /// Removes the last record, because the kernel has not accepted the message. Keeps it if a
    /// notification has arrived for its number, because the number is then used.
    pub(super) fn take_back(&mut self) {
        if let Some(&Some(place)) = self.messages.back() {
            self.messages.pop_back();
            self.next = self.next.wrapping_sub(1);
            self.entries[place].away -= 1;
        }
    }

    /// Marks the last record as doubtful: the kernel may or may not have the message. No further
    /// message may be recorded, because its number is unknown.
    pub(super) fn doubt(&mut self) {
        self.is_closed = true;
        if let Some(&Some(place)) = self.messages.back() {
            self.entries[place].doubtful = true;
        }
    }

    /// Ends the sending of a slab, which is returned to the lender as soon as the kernel has
    /// released it.
    pub(super) fn seal(&mut self, place: usize, loan: Loan, returns: Returns) {
        let is_abandoned = self.is_abandoned;
        let entry = &mut self.entries[place];
        let is_free = entry.away == 0;
        if is_free {
            entry.in_use = false;
            returns.put(loan);
            return;
        }
        entry.pending_return =
            Some(PendingReturn { loan: ManuallyDrop::new(loan), returns: Some(returns) });
        if is_abandoned || entry.doubtful {
            entry.replace();
        } else {
            entry.in_use = false;
        }
    }

    /// Records that the kernel has released the messages `first..=last`. Returns an error if they
    /// were not lent.
    pub(super) fn settle(&mut self, first: u32, last: u32) -> Result<usize, NumbersDiffer> {
        if self.is_abandoned {
            return Ok(0);
        }
        let base = self.next.wrapping_sub(self.messages.len() as u32);
        let begin = first.wrapping_sub(base) as usize;
        let end = begin.checked_add(last.wrapping_sub(first) as usize);
        let Some(end) = end.filter(|&end| end < self.messages.len()) else {
            self.abandon();
            return Err(NumbersDiffer);
        };
        for message in self.messages.range_mut(begin..=end) {
            let Some(place) = message.take() else { continue };
            self.entries[place].come_back();
        }
        while let Some(None) = self.messages.front() {
            self.messages.pop_front();
        }
        Ok(end - begin + 1)
    }

    /// Returns the number of messages from the oldest lent one to the newest.
    pub(super) fn away(&self) -> usize {
        if self.is_abandoned { 0 } else { self.messages.len() }
    }

    fn abandon(&mut self) {
        (self.is_closed, self.is_abandoned) = (true, true);
        for entry in self.entries.iter_mut().filter(|entry| entry.away > 0) {
            entry.replace();
        }
    }
}

impl Entry {
    /// Records that one message was released.
    fn come_back(&mut self) {
        self.away = self.away.saturating_sub(1);
        if self.away > 0 {
            return;
        }
        if let Some(PendingReturn { loan, returns }) = self.pending_return.take() {
            self.in_use = false;
            // If the lender already has a copy, the memory is freed.
            let loan = ManuallyDrop::into_inner(loan);
            if let Some(returns) = returns {
                returns.put(loan);
            }
        }
    }

    /// Gives the lender one copy, because the memory may never be released.
    fn replace(&mut self) {
        self.in_use = true;
        if let Some(PendingReturn { loan, returns }) = &mut self.pending_return
            && let Some(returns) = returns.take()
        {
            returns.put(Loan::clone(loan));
        }
    }
}

/// The kernel sent a notification for a message that it was not lent.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the system sent a notification for a message that it was not lent")]
pub(super) struct NumbersDiffer;

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a ledger and a lender.
    fn ledger_and_lender() -> (Ledger, Returns) {
        (Ledger::new(), Returns::new())
    }

    /// Sends slab `number` in this number of messages.
    fn send(ledger: &mut Ledger, returns: &Returns, number: usize, messages: usize) -> *const u8 {
        let place = ledger.begin();
        for _ in 0..messages {
            assert!(ledger.record(place));
        }
        let slab: Box<[u8]> = vec![number as u8; 10].into();
        let address = slab.as_ptr();
        ledger.seal(place, Loan { slab, start: 0, number }, returns.clone());
        address
    }

    fn returned(returns: &Returns) -> Vec<usize> {
        let mut numbers: Vec<_> =
            std::iter::from_fn(|| returns.take()).map(|loan| loan.number).collect();
        numbers.sort_unstable();
        numbers
    }

    #[test]
    fn a_slab_comes_back_when_its_last_message_does() {
        let (mut ledger, returns) = ledger_and_lender();
        send(&mut ledger, &returns, 0, 2);
        send(&mut ledger, &returns, 1, 1);
        send(&mut ledger, &returns, 2, 0);
        assert_eq!(returned(&returns), [2]);
        assert_eq!(ledger.settle(1, 2), Ok(2));
        assert_eq!(returned(&returns), [1]);
        assert_eq!(ledger.away(), 3, "the oldest message is still away");
        assert_eq!(ledger.settle(0, 0), Ok(1));
        assert_eq!(returned(&returns), [0]);
        assert_eq!(ledger.away(), 0);
    }

    #[test]
    fn a_slab_that_is_still_being_sent_is_not_returned() {
        let (mut ledger, returns) = ledger_and_lender();
        let place = ledger.begin();
        assert!(ledger.record(place));
        assert_eq!(ledger.settle(0, 0), Ok(1));
        assert_ne!(ledger.begin(), place);
        assert!(ledger.record(place));
        ledger.seal(place, Loan::default(), returns.clone());
        assert_eq!(returned(&returns), [0; 0]);
        assert_eq!(ledger.settle(1, 1), Ok(1));
        assert_eq!(returned(&returns), [0]);
        assert_eq!(ledger.begin(), place);
    }

    #[test]
    fn numbers_wrap_around() {
        let (mut ledger, returns) = ledger_and_lender();
        ledger.next = u32::MAX;
        send(&mut ledger, &returns, 0, 3);
        assert_eq!(ledger.settle(u32::MAX, 1), Ok(3));
        assert_eq!(returned(&returns), [0]);
    }

    #[test]
    fn a_refused_message_is_not_counted_and_one_of_which_the_kernel_spoke_is() {
        let (mut ledger, returns) = ledger_and_lender();
        let place = ledger.begin();
        assert!(ledger.record(place));
        ledger.take_back();
        assert_eq!(ledger.away(), 0);
        // The same number is used again: the message is refused, but has a notification.
        assert!(ledger.record(place));
        assert_eq!(ledger.settle(0, 0), Ok(1));
        ledger.take_back();
        ledger.seal(place, Loan::default(), returns.clone());
        assert_eq!(returned(&returns), [0]);
        send(&mut ledger, &returns, 1, 1);
        assert_eq!(ledger.settle(1, 1), Ok(1));
        assert_eq!(returned(&returns), [1]);
    }

    #[test]
    fn of_a_slab_in_doubt_a_copy_comes_back_and_its_memory_is_kept() {
        let (mut ledger, returns) = ledger_and_lender();
        let place = ledger.begin();
        assert!(ledger.record(place));
        ledger.doubt();
        let slab: Box<[u8]> = vec![9; 10].into();
        let address = slab.as_ptr();
        ledger.seal(place, Loan { slab, start: 3, number: 5 }, returns.clone());
        let copy = returns.take().unwrap();
        assert_ne!(copy.slab.as_ptr(), address);
        assert_eq!((&*copy.slab, copy.start, copy.number), (&[9; 10][..], 3, 5));
        let next = ledger.begin();
        assert_ne!(next, place, "the entry must not be reused");
        assert!(!ledger.record(next), "the number of the next message is unknown");
        // If a notification arrives after all, the memory is only freed.
        assert_eq!(ledger.settle(0, 0), Ok(1));
        assert_eq!(returned(&returns), [0; 0]);
    }

    #[test]
    fn a_number_that_was_never_given_ends_the_trust_and_frees_nothing() {
        for (first, last) in [(1, 1), (0, 1), (u32::MAX, 0), (1, 0)] {
            let (mut ledger, returns) = ledger_and_lender();
            let address = send(&mut ledger, &returns, 7, 1);
            let open = ledger.begin();
            assert!(ledger.record(open));
            ledger.take_back();
            assert_eq!(ledger.settle(first, last), Err(NumbersDiffer), "{first}..={last}");
            let copy = returns.take().unwrap();
            assert_ne!(copy.slab.as_ptr(), address);
            assert_eq!(ledger.settle(0, 0), Ok(0));
            assert!(!ledger.record(open));
            assert_eq!(returned(&returns), [0; 0]);
            assert_eq!(ledger.away(), 0);
        }
    }

    #[test]
    fn there_is_a_bound() {
        let (mut ledger, returns) = ledger_and_lender();
        send(&mut ledger, &returns, 0, MESSAGES);
        let place = ledger.begin();
        assert!(!ledger.record(place));
        assert_eq!(ledger.settle(0, 0), Ok(1));
        assert!(ledger.record(place));
    }

    #[test]
    fn lent_slabs_outlive_their_lender() {
        let (mut ledger, returns) = ledger_and_lender();
        send(&mut ledger, &returns, 0, 1);
        drop(returns);
        assert_eq!(ledger.settle(0, 0), Ok(1));
        assert!(ledger.entries.iter().all(|entry| entry.pending_return.is_none()));
    }
}
