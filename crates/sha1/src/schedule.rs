//! Assigns messages to lanes: a lane that has finished its message takes the next one.

use crate::Message;
use crate::hmac::Prepared;
use crate::scalar::{finish, octets};

/// The input of one compression (FIPS 180-4 section 5.2.1).
pub(crate) type Block = [u8; 64];

/// The five words of the state of every lane, word by word.
#[repr(align(64))]
pub(crate) struct States<const LANES: usize>(pub(crate) [[u32; LANES]; 5]);

/// The compression function of one instruction set.
pub(crate) trait Kernel<const LANES: usize> {
    /// Compresses the first `count` blocks of every lane; each lane must have at least this number.
    fn compress(self, states: &mut States<LANES>, blocks: &[&[Block]; LANES], count: usize);
}

/// Writes the tag of every message.
///
/// No secret remains on the stack: a lane begins with a state of the key, but ends with a tag, or
/// with the meaningless result of blocks that it compressed while other lanes were not finished.
pub(crate) fn tags<K: Kernel<LANES> + Copy, const LANES: usize>(
    kernel: K,
    key: &Prepared,
    messages: &[Message<'_>],
    tags: &mut [[u8; 20]],
) {
    let mut waiting = messages.iter().zip(tags);
    let mut states = States([[0; LANES]; 5]);
    let mut lanes = [const { Lane::IDLE }; LANES];
    for (n, (lane, (message, tag))) in lanes.iter_mut().zip(waiting.by_ref()).enumerate() {
        lane.begin(message, tag);
        states.set(n, key.inner);
    }
    loop {
        // The shortest active lane determines how many blocks are compressed.
        let ahead = lanes.iter().map(Lane::ahead).filter(|ahead| !ahead.is_empty());
        let Some(shortest) = ahead.min_by_key(|ahead| ahead.len()) else { return };
        let count = shortest.len();
        let mut blocks = [shortest; LANES];
        for (blocks, lane) in blocks.iter_mut().zip(&lanes) {
            if lane.tag.is_some() {
                *blocks = lane.ahead();
            }
        }
        kernel.compress(&mut states, &blocks, count);
        for (n, lane) in lanes.iter_mut().enumerate() {
            if !lane.advance(count) {
                continue;
            }
            if !lane.outer {
                lane.begin_outer(octets(states.get(n)));
                states.set(n, key.outer);
                continue;
            }
            if let Some(tag) = lane.tag.take() {
                *tag = octets(states.get(n));
            }
            if let Some((message, tag)) = waiting.next() {
                lane.begin(message, tag);
                states.set(n, key.inner);
            }
        }
    }
}

impl<const LANES: usize> States<LANES> {
    pub(crate) fn get(&self, lane: usize) -> [u32; 5] {
        self.0.map(|words| words[lane])
    }

    pub(crate) fn set(&mut self, lane: usize, state: [u32; 5]) {
        for (words, word) in self.0.iter_mut().zip(state) {
            words[lane] = word;
        }
    }
}

/// The message of one lane, and its progress.
struct Lane<'m, 't> {
    /// The place for the tag; `None` in an idle lane.
    tag: Option<&'t mut [u8; 20]>,
    /// The blocks of the body that are not yet hashed, in place.
    body: &'m [Block],
    /// The blocks after the body: its end, the suffix and the padding; then the inner hash.
    end: [Block; 2],
    /// Start of the part of `end` that is not yet hashed.
    end_from: usize,
    end_to: usize,
    /// Whether this is the outer hash.
    outer: bool,
}

impl<'m, 't> Lane<'m, 't> {
    const IDLE: Self =
        Self { tag: None, body: &[], end: [[0; 64]; 2], end_from: 0, end_to: 0, outer: false };

    /// Begins the inner hash of a message (RFC 2104 section 2, steps 3 and 4).
    fn begin(&mut self, message: &Message<'m>, tag: &'t mut [u8; 20]) {
        let (blocks, rest) = message.body.as_chunks::<64>();
        // The block of the key, which is already compressed, also counts.
        let hashed = 64 + message.body.len() as u64 + 4;
        self.end = [[0; 64]; 2];
        self.end_to = finish(&mut self.end, rest, message.suffix, hashed);
        self.end_from = 0;
        self.body = blocks;
        self.tag = Some(tag);
        self.outer = false;
    }

    /// Begins the outer hash (RFC 2104 section 2, steps 6 and 7).
    fn begin_outer(&mut self, inner: [u8; 20]) {
        self.end = [[0; 64]; 2];
        self.end_to = finish(&mut self.end, &inner, [], 64 + 20);
        self.end_from = 0;
        self.outer = true;
    }

    /// Returns the next contiguous blocks; empty in an idle lane.
    fn ahead(&self) -> &[Block] {
        if self.body.is_empty() { &self.end[self.end_from..self.end_to] } else { self.body }
    }

    /// Advances by `count` blocks of [`ahead`](Self::ahead); returns whether this hash is complete.
    fn advance(&mut self, count: usize) -> bool {
        if self.tag.is_none() {
            return false;
        }
        if self.body.is_empty() {
            self.end_from += count;
        } else {
            self.body = &self.body[count..];
        }
        self.ahead().is_empty()
    }
}
