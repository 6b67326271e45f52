//! Limits the datagrams of a unit in flight to the client's socket buffer.
//!
//! A full socket buffer drops datagrams, and on a fast path a frame is larger than any buffer. The
//! client therefore reports the latest packet received on each socket at intervals, and the server
//! waits while it has sent more than a buffer can hold since that packet. The wait is limited,
//! because credits may be lost, and a network slower than the ends paces the traffic by itself.

use std::collections::VecDeque;
use std::ops::Range;

use crate::{HEADER_BYTES, UnitHeader};

/// Octets of a [`Credit`] as a datagram.
pub const CREDIT_BYTES: usize = 8;

/// Lower bound, in octets, of the buffer size that a credit announces.
const BUFFER_MIN: u32 = 64 * 1024;

/// Octets after which the client sends a credit, however large its buffer is.
const CREDIT_OCTETS_MAX: u32 = 256 * 1024;

/// Maximum number of recorded pieces in flight; beyond it, the oldest are assumed to have arrived.
const PIECES_MAX: usize = 4_096;

/// Maximum number of frames in flight.
///
/// Headers carry eight bits of a frame's number, by which the client distinguishes frames ahead
/// from frames behind.
const FRAMES_MAX: u8 = 64;

/// Number of frames after which the client sends a credit, however small they are.
const CREDIT_FRAMES: u8 = FRAMES_MAX / 4;

/// The packet number before any packet has arrived. Only the last of 2^24 packets also has it.
const NONE: u32 = 0x00ff_ffff;

/// A client's report to a unit of the server, sent on the socket of that unit.
///
/// | octets | field |
/// |---|---|
/// | 4 | the header of the latest packet received; packet 2^24 − 1 if there is none |
/// | 4 | the client's socket buffer in octets, most significant octet first |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Credit {
    /// The header of the latest packet received, if any.
    pub latest: Option<UnitHeader>,
    /// The size of the client's socket buffer in octets.
    pub buffer: u32,
}

impl Credit {
    /// Parses a datagram; `None` if it is not a credit.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let octets: [u8; CREDIT_BYTES] = datagram.try_into().ok()?;
        let [header @ .., a, b, c, d] = octets;
        let header: [u8; HEADER_BYTES] = header;
        let latest = Some(UnitHeader::parse(header)).filter(|header| header.index != NONE);
        Some(Self { latest, buffer: u32::from_be_bytes([a, b, c, d]) })
    }

    /// Returns the datagram's octets.
    pub fn write(self) -> [u8; CREDIT_BYTES] {
        let header = self.latest.unwrap_or(UnitHeader { frame: 0, index: NONE });
        let mut octets = [0; CREDIT_BYTES];
        octets[..HEADER_BYTES].copy_from_slice(&header.write());
        octets[HEADER_BYTES..].copy_from_slice(&self.buffer.to_be_bytes());
        octets
    }
}

/// The client's side of one socket: decides when to send a credit.
#[derive(Clone, Copy, Debug)]
pub struct Creditor {
    buffer: u32,
    octets: u32,
    /// The frame of the last credit.
    frame: u8,
}

impl Creditor {
    /// Creates the state of a socket with a buffer of `buffer` octets.
    pub fn new(buffer: usize) -> Self {
        Self { buffer: u32::try_from(buffer).unwrap_or(u32::MAX), octets: 0, frame: 0 }
    }

    /// Returns the credit to send before any packet has arrived.
    pub fn first(&self) -> Credit {
        Credit { latest: None, buffer: self.buffer }
    }

    /// Records received packets, the last with header `latest`; returns a credit if one is due.
    pub fn note(&mut self, latest: UnitHeader, octets: usize) -> Option<Credit> {
        self.octets = self.octets.saturating_add(u32::try_from(octets).unwrap_or(u32::MAX));
        let frames = latest.frame.wrapping_sub(self.frame);
        // A late packet is a few frames behind; any other large distance means new frames.
        let is_due = (CREDIT_FRAMES..=u8::MAX - CREDIT_FRAMES).contains(&frames);
        if !is_due && self.octets < (self.buffer / 8).min(CREDIT_OCTETS_MAX) {
            return None;
        }
        (self.octets, self.frame) = (0, latest.frame);
        Some(Credit { latest: Some(latest), buffer: self.buffer })
    }
}

/// The server's side of one socket: the data in flight.
#[derive(Debug)]
pub struct Window {
    limit: u64,
    limit_max: u64,
    sent: u64,
    acknowledged: u64,
    pieces: VecDeque<Piece>,
}

/// Packets sent together.
#[derive(Debug)]
struct Piece {
    frame: u8,
    packets: Range<u32>,
    /// Octets sent up to the end of this piece.
    sent: u64,
}

impl Window {
    /// Creates a window with nothing in flight, which never grows beyond `limit` octets.
    pub fn new(limit: usize) -> Self {
        let limit = limit as u64;
        Self { limit, limit_max: limit, sent: 0, acknowledged: 0, pieces: VecDeque::new() }
    }

    /// Returns whether `octets` more octets may be sent.
    ///
    /// This is always so if nothing is in flight.
    pub fn has_room(&self, octets: usize) -> bool {
        let in_flight = self.sent - self.acknowledged;
        in_flight == 0 || in_flight + octets as u64 <= self.limit && self.frames() < FRAMES_MAX
    }

    /// Returns whether to check for credits, because half of the window is in flight.
    pub fn is_filling(&self) -> bool {
        (self.sent - self.acknowledged) * 2 > self.limit || self.frames() >= FRAMES_MAX / 2
    }

    /// Returns the number of frames from the oldest to the newest in flight.
    fn frames(&self) -> u8 {
        let (Some(first), Some(last)) = (self.pieces.front(), self.pieces.back()) else { return 0 };
        last.frame.wrapping_sub(first.frame)
    }

    /// Records packets of a frame that were sent together.
    pub fn note_sent(&mut self, frame: u8, packets: Range<u32>, octets: usize) {
        self.sent += octets as u64;
        if self.pieces.len() == PIECES_MAX
            && let Some(piece) = self.pieces.pop_front()
        {
            self.acknowledged = piece.sent;
        }
        self.pieces.push_back(Piece { frame, packets, sent: self.sent });
    }

    /// Records packets that no credit names, because they were sent again or are repair packets: they are
    /// in flight as long as those sent last.
    ///
    /// If nothing is in flight, they are not counted: no credit would ever report them.
    pub fn note_unacknowledged(&mut self, octets: usize) {
        if let Some(last) = self.pieces.back_mut() {
            self.sent += octets as u64;
            last.sent = self.sent;
        }
    }

    /// Handles a credit: the octets up to its packet are no longer in flight.
    pub fn handle_credit(&mut self, credit: Credit) {
        self.limit = u64::from(credit.buffer.max(BUFFER_MIN)).min(self.limit_max);
        let Some(latest) = credit.latest else { return };
        let matches =
            |piece: &Piece| piece.frame == latest.frame && piece.packets.contains(&latest.index);
        if let Some(at) = self.pieces.iter().position(matches) {
            self.acknowledged = self.pieces[at].sent;
            self.pieces.drain(..=at);
        }
    }

    /// Handles a timeout without credits: data in flight is assumed to have arrived or been lost.
    pub fn handle_silence(&mut self) {
        self.acknowledged = self.sent;
        self.pieces.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(frame: u8, index: u32) -> UnitHeader {
        UnitHeader { frame, index }
    }

    #[test]
    fn a_credit_is_eight_octets() {
        let credit = Credit { latest: Some(header(7, 258)), buffer: 0x0040_0000 };
        assert_eq!(credit.write(), [7, 0, 1, 2, 0, 0x40, 0, 0]);
        assert_eq!(Credit::parse(&credit.write()), Some(credit));
        assert_eq!(Credit::parse(&credit.write()[1..]), None);
        let none = Creditor::new(1).first();
        assert_eq!(Credit::parse(&none.write()), Some(none));
    }

    #[test]
    fn a_client_sends_eight_credits_per_buffer() {
        let mut creditor = Creditor::new(80_000);
        let credits = (0..100).filter(|&at| creditor.note(header(0, at), 1_000).is_some());
        assert_eq!(credits.count(), 10);
    }

    #[test]
    fn a_client_sends_credits_for_small_frames_before_their_numbers_repeat() {
        // This is tested for every first frame number.
        for first in 0..=255 {
            let mut creditor = Creditor::new(1 << 22);
            let mut window = Window::new(1 << 22);
            for frame in (0..=255).cycle().skip(first).take(600) {
                assert!(window.has_room(100));
                window.note_sent(frame, 0..1, 100);
                if let Some(credit) = creditor.note(header(frame, 0), 100) {
                    window.handle_credit(credit);
                }
                assert!(window.frames() <= 2 * CREDIT_FRAMES, "{first}: {}", window.frames());
            }
        }
    }

    #[test]
    fn frames_wait_before_their_numbers_repeat() {
        let mut window = Window::new(1 << 22);
        let sent = (200..=255).chain(0..=255).take_while(|&frame| {
            let has_room = window.has_room(100);
            window.note_sent(frame, 0..1, 100);
            has_room
        });
        assert_eq!(sent.count(), 65);
        assert!(window.is_filling());
    }

    #[test]
    fn a_credit_makes_room_for_its_packet_and_all_before_it() {
        let mut window = Window::new(300_000);
        for piece in 0..4_u32 {
            assert!(window.has_room(70_000));
            window.note_sent(0, piece * 50..piece * 50 + 50, 70_000);
        }
        assert!(!window.has_room(70_000) && window.is_filling());
        window.handle_credit(Credit { latest: Some(header(0, 110)), buffer: 300_000 });
        assert!(window.has_room(70_000) && !window.is_filling());
        // A credit for a packet that is not in flight changes nothing.
        for (frame, index) in [(0, 0), (1, 160), (0, 200)] {
            window.handle_credit(Credit { latest: Some(header(frame, index)), buffer: 300_000 });
        }
        assert!(window.has_room(230_000) && !window.has_room(230_001));
    }

    #[test]
    fn packets_sent_again_are_in_flight_until_the_last_packet_before_them_arrived() {
        let mut window = Window::new(300_000);
        window.note_unacknowledged(299_000);
        assert!(window.has_room(300_000), "nothing reports them");
        window.note_sent(7, 0..50, 70_000);
        window.note_unacknowledged(200_000);
        assert!(!window.has_room(30_001) && window.has_room(30_000));
        assert_eq!(window.frames(), 0);
        window.handle_credit(Credit { latest: Some(header(7, 49)), buffer: 300_000 });
        assert!(window.has_room(300_000) && !window.is_filling());
    }

    #[test]
    fn a_small_buffer_limits_the_window_but_a_tiny_or_huge_one_does_not() {
        let mut window = Window::new(300_000);
        window.note_sent(0, 0..1, 1);
        window.handle_credit(Credit { latest: None, buffer: 100_000 });
        assert!(window.has_room(99_999) && !window.has_room(100_000));
        window.handle_credit(Credit { latest: None, buffer: 0 });
        assert!(window.has_room(65_535));
        window.handle_credit(Credit { latest: None, buffer: u32::MAX });
        assert!(window.has_room(299_999) && !window.has_room(300_000));
    }

    #[test]
    fn neither_silence_nor_a_frame_of_any_size_stops_the_window_for_ever() {
        let mut window = Window::new(1_000);
        assert!(window.has_room(usize::MAX));
        window.note_sent(0, 0..10, 5_000);
        assert!(!window.has_room(1));
        window.handle_silence();
        assert!(window.has_room(5_000));
    }

    proptest! {
        #[test]
        fn no_credits_make_it_grow_or_overflow(
            steps in prop::collection::vec((any::<u8>(), 0_u32..500, 0_usize..100_000), 0..500),
        ) {
            let mut window = Window::new(1 << 20);
            for (frame, index, octets) in steps {
                if octets % 3 == 0 {
                    let latest = Some(header(frame % 4, index));
                    window.handle_credit(Credit { latest, buffer: octets as u32 });
                } else {
                    window.note_sent(frame % 4, index..index + 46, octets);
                }
                prop_assert!(window.acknowledged <= window.sent);
                prop_assert!(window.pieces.len() <= PIECES_MAX);
            }
        }
    }
}
