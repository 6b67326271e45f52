//! The input, the output and the events of a connection, all of limited size.

use std::collections::VecDeque;

use super::message::Message;
use super::{BODY_LEN_MAX, HEADER_LEN};

/// Octets of the longest message, and therefore of the buffer for an incomplete one.
const MESSAGE_LEN_MAX: usize = HEADER_LEN + BODY_LEN_MAX;

/// Number of octets waiting for a slow peer at which messages that may be missed are dropped.
const BACKLOG_MAX: usize = 16 << 10;

/// Number of events waiting to be polled at which events that may be missed are discarded.
const EVENTS_MAX: usize = 64;

/// Received octets that are not parsed yet: at most those of one message.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    octets: Vec<u8>,
    start: usize,
}

impl Inbox {
    /// Copies as many of `octets` as there is room for; returns the rest.
    ///
    /// When all complete messages have been read, there is room for at least one octet.
    pub(super) fn fill<'o>(&mut self, octets: &'o [u8]) -> &'o [u8] {
        self.octets.drain(..self.start);
        self.start = 0;
        let room = MESSAGE_LEN_MAX.saturating_sub(self.octets.len());
        let (taken, rest) = octets.split_at(octets.len().min(room));
        self.octets.extend(taken);
        rest
    }

    pub(super) fn unread(&self) -> &[u8] {
        self.octets.get(self.start..).unwrap_or_default()
    }

    pub(super) fn read(&mut self, len: usize) {
        self.start = (self.start + len).min(self.octets.len());
    }

    /// Discards everything and frees the memory.
    pub(super) fn close(&mut self) {
        *self = Self::default();
    }
}

/// Octets to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    octets: Vec<u8>,
    start: usize,
}

impl Outbox {
    /// Writes a message that must not be dropped; the states allow only a few of them in a row.
    pub(super) fn write(&mut self, message: &Message) {
        message.write(&mut self.octets);
    }

    /// Writes a message unless the backlog is full; returns whether it was written.
    pub(super) fn write_if_room(&mut self, message: &Message) -> bool {
        let has_room = self.has_room();
        if has_room {
            self.write(message);
        }
        has_room
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting().len() < BACKLOG_MAX
    }

    /// Returns the buffer, for the opening, which is not a message.
    pub(super) fn octets(&mut self) -> &mut Vec<u8> {
        &mut self.octets
    }

    pub(super) fn waiting(&self) -> &[u8] {
        self.octets.get(self.start..).unwrap_or_default()
    }

    pub(super) fn sent(&mut self, len: usize) {
        self.start = (self.start + len).min(self.octets.len());
        // At most as many octets are moved as were sent.
        if self.start * 2 >= self.octets.len() {
            self.octets.drain(..self.start);
            self.start = 0;
        }
    }
}

/// Events to be polled, in order.
#[derive(Debug)]
pub(super) struct Events<E> {
    waiting: VecDeque<E>,
    forgotten: u64,
}

impl<E> Events<E> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), forgotten: 0 }
    }

    /// Adds an event that must not be lost; the states allow only a few of them in a row.
    pub(super) fn push(&mut self, event: E) {
        self.waiting.push_back(event);
    }

    /// Adds an event that may be missed. In a full queue, it replaces the oldest that
    /// `is_droppable`.
    pub(super) fn push_droppable(&mut self, event: E, is_droppable: impl Fn(&E) -> bool) {
        if self.waiting.len() >= EVENTS_MAX {
            let oldest = self.waiting.iter().position(is_droppable);
            self.forgotten += 1;
            let Some(oldest) = oldest else { return };
            self.waiting.remove(oldest);
        }
        self.waiting.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<E> {
        self.waiting.pop_front()
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unfinished_message_is_kept() {
        let mut inbox = Inbox::default();
        let octets = vec![1; 10_000];
        assert_eq!(inbox.fill(&octets).len(), 10_000 - MESSAGE_LEN_MAX);
        assert_eq!(inbox.unread().len(), MESSAGE_LEN_MAX);
        assert_eq!(inbox.fill(&octets).len(), 10_000);
        inbox.read(10);
        assert_eq!(inbox.fill(&octets[..20]).len(), 10);
    }

    #[test]
    fn output_for_a_peer_that_does_not_read_is_limited() {
        let mut outbox = Outbox::default();
        let start = Message::Start { epoch: 7 };
        let written = (0..100_000).filter(|_| outbox.write_if_room(&start)).count();
        assert_eq!(written, BACKLOG_MAX.div_ceil(6));
        let mut whole = Vec::new();
        while !outbox.waiting().is_empty() {
            let len = outbox.waiting().len().min(1000);
            whole.extend_from_slice(&outbox.waiting()[..len]);
            outbox.sent(len);
        }
        assert_eq!(whole, [3, 0, 0, 2, 0, 7].repeat(written));
    }

    #[test]
    fn events_that_can_be_missed_replace_only_each_other() {
        let mut events = Events::new();
        events.push(0);
        for n in 1..=100 {
            events.push_droppable(n, |n| *n != 0);
        }
        assert_eq!(events.forgotten(), 37);
        assert_eq!((events.pop(), events.pop()), (Some(0), Some(38)));
    }
}
