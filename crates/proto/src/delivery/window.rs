//! How much of a unit's datagrams may be on its way: what the client's socket buffer holds.
//!
//! A socket that is full loses datagrams, and on a fast path a frame is larger than any buffer. So
//! the client says now and then which packet came last by each socket, and the server waits while
//! more than a buffer full has gone out since. It waits for a time only: credits may be lost, and a
//! network that is slower than the ends paces by itself.

use std::collections::VecDeque;
use std::ops::Range;

use crate::delivery::HEADER_BYTES;
use crate::delivery::UnitHeader;

/// Octets of a [`Credit`] as a datagram.
pub const CREDIT_BYTES: usize = 8;

/// Fewer octets than any buffer has that is worth having.
const BUFFER_MIN: u32 = 64 * 1024;

/// Octets after which the client says what came, however large its buffer is.
const CREDIT_OCTETS_MAX: u32 = 256 * 1024;

/// Pieces on their way that are remembered; of more, the oldest are taken to have come.
const PIECES_MAX: usize = 4_096;

/// Frames that may be on their way: headers have eight bits of a frame's number, and the client must
/// tell what is ahead of it from what is behind.
const FRAMES_MAX: u8 = 64;

/// Frames after which the client says what came, however small they are.
const CREDIT_FRAMES: u8 = FRAMES_MAX / 4;

/// The number of a packet that no frame has: nothing has come yet.
const NONE: u32 = 0x00ff_ffff;

/// What a client says to a server's unit, by the unit's own socket.
///
/// | octets | what |
/// |---|---|
/// | 4 | the header of the packet that came last; packet 2^24 − 1 if none has |
/// | 4 | octets that the client's socket buffers, most significant first |
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Credit {
    /// The header of the packet that came last.
    pub latest: Option<UnitHeader>,
    /// Octets that the client's socket buffers.
    pub buffer: u32,
}

impl Credit {
    /// Reads a datagram; `None` if it is something else.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let octets: [u8; CREDIT_BYTES] = datagram.try_into().ok()?;
        let [header @ .., a, b, c, d] = octets;
        let header: [u8; HEADER_BYTES] = header;
        let latest = Some(UnitHeader::parse(header)).filter(|header| header.index != NONE);
        Some(Self { latest, buffer: u32::from_be_bytes([a, b, c, d]) })
    }

    /// The datagram's octets.
    pub fn write(self) -> [u8; CREDIT_BYTES] {
        let header = self.latest.unwrap_or(UnitHeader { frame: 0, index: NONE });
        let mut octets = [0; CREDIT_BYTES];
        octets[..HEADER_BYTES].copy_from_slice(&header.write());
        octets[HEADER_BYTES..].copy_from_slice(&self.buffer.to_be_bytes());
        octets
    }
}

/// The client's side of one socket: when to say what came.
#[derive(Clone, Copy, Debug)]
pub struct Creditor {
    buffer: u32,
    octets: u32,
    /// The frame of which was last spoken.
    frame: u8,
}

impl Creditor {
    /// A socket that buffers so many octets.
    pub fn new(buffer: usize) -> Self {
        Self { buffer: u32::try_from(buffer).unwrap_or(u32::MAX), octets: 0, frame: 0 }
    }

    /// What to say before anything has come.
    pub fn first(&self) -> Credit {
        Credit { latest: None, buffer: self.buffer }
    }

    /// Takes note of packets that came, the last of them with this header; what to say, if it is
    /// time.
    pub fn note(&mut self, latest: UnitHeader, octets: usize) -> Option<Credit> {
        self.octets = self.octets.saturating_add(u32::try_from(octets).unwrap_or(u32::MAX));
        let frames = latest.frame.wrapping_sub(self.frame);
        // A packet that comes late is a few frames behind; whatever else is not near is new.
        let is_time = (CREDIT_FRAMES..=u8::MAX - CREDIT_FRAMES).contains(&frames);
        if !is_time && self.octets < (self.buffer / 8).min(CREDIT_OCTETS_MAX) {
            return None;
        }
        (self.octets, self.frame) = (0, latest.frame);
        Some(Credit { latest: Some(latest), buffer: self.buffer })
    }
}

/// The server's side of one socket: what is on its way.
#[derive(Debug)]
pub struct Window {
    limit: u64,
    limit_max: u64,
    sent: u64,
    came: u64,
    pieces: VecDeque<Piece>,
}

/// Packets sent together.
#[derive(Debug)]
struct Piece {
    frame: u8,
    packets: Range<u32>,
    /// Octets sent up to its end.
    sent: u64,
}

impl Window {
    /// Nothing on its way; at most so many octets ever.
    pub fn new(limit: usize) -> Self {
        let limit = limit as u64;
        Self { limit, limit_max: limit, sent: 0, came: 0, pieces: VecDeque::new() }
    }

    /// Whether so many octets more may go out.
    ///
    /// Something always may when nothing is on its way.
    pub fn has_room(&self, octets: usize) -> bool {
        let on_way = self.sent - self.came;
        on_way == 0 || on_way + octets as u64 <= self.limit && self.frames() < FRAMES_MAX
    }

    /// Whether it is worth looking for credits: half of what may be on its way is.
    pub fn is_filling(&self) -> bool {
        (self.sent - self.came) * 2 > self.limit || self.frames() >= FRAMES_MAX / 2
    }

    /// How many frames the oldest on its way is behind the newest.
    fn frames(&self) -> u8 {
        let (Some(first), Some(last)) = (self.pieces.front(), self.pieces.back()) else { return 0 };
        last.frame.wrapping_sub(first.frame)
    }

    /// Takes note of packets of a frame, sent together.
    pub fn note_sent(&mut self, frame: u8, packets: Range<u32>, octets: usize) {
        self.sent += octets as u64;
        if self.pieces.len() == PIECES_MAX
            && let Some(piece) = self.pieces.pop_front()
        {
            self.came = piece.sent;
        }
        self.pieces.push_back(Piece { frame, packets, sent: self.sent });
    }

    /// Takes a credit: what went out before its packet is not on its way any more.
    pub fn handle_credit(&mut self, credit: Credit) {
        self.limit = u64::from(credit.buffer.max(BUFFER_MIN)).min(self.limit_max);
        let Some(latest) = credit.latest else { return };
        let is_it =
            |piece: &Piece| piece.frame == latest.frame && piece.packets.contains(&latest.index);
        if let Some(at) = self.pieces.iter().position(is_it) {
            self.came = self.pieces[at].sent;
            self.pieces.drain(..=at);
        }
    }

    /// Nothing was heard for so long that whatever is on its way is taken to have come, or gone.
    pub fn handle_silence(&mut self) {
        self.came = self.sent;
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
    fn a_client_speaks_eight_times_a_buffer() {
        let mut creditor = Creditor::new(80_000);
        let said = (0..100).filter(|&at| creditor.note(header(0, at), 1_000).is_some());
        assert_eq!(said.count(), 10);
    }

    #[test]
    fn a_client_speaks_of_small_frames_before_their_numbers_repeat() {
        // Whichever frame is the first.
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
    fn what_came_makes_room_and_so_does_all_before_it() {
        let mut window = Window::new(300_000);
        for piece in 0..4_u32 {
            assert!(window.has_room(70_000));
            window.note_sent(0, piece * 50..piece * 50 + 50, 70_000);
        }
        assert!(!window.has_room(70_000) && window.is_filling());
        window.handle_credit(Credit { latest: Some(header(0, 110)), buffer: 300_000 });
        assert!(window.has_room(70_000) && !window.is_filling());
        // What is not on its way changes nothing.
        for (frame, index) in [(0, 0), (1, 160), (0, 200)] {
            window.handle_credit(Credit { latest: Some(header(frame, index)), buffer: 300_000 });
        }
        assert!(window.has_room(230_000) && !window.has_room(230_001));
    }

    #[test]
    fn a_small_buffer_is_believed_and_a_tiny_or_huge_one_not() {
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
    fn silence_and_a_whole_frame_of_any_size_never_stop_it_for_good() {
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
                prop_assert!(window.came <= window.sent);
                prop_assert!(window.pieces.len() <= PIECES_MAX);
            }
        }
    }
}
