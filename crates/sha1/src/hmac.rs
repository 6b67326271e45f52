//! HMAC-SHA1 with one key for many messages (RFC 2104).

use std::fmt;

use zeroize::Zeroize;

use crate::dispatch::Processor;
use crate::{InstructionSet, scalar};

/// One message: `body` followed by `suffix`.
///
/// SRTP authenticates a packet followed by the roll-over counter, which is not in the packet (RFC
/// 3711 section 4.2); the suffix avoids a copy of the packet.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The first part, of any length.
    pub body: &'a [u8],
    /// The last part, in network order.
    pub suffix: [u8; 4],
}

/// An HMAC-SHA1 key, prepared for many messages at once.
///
/// The key is wiped when it is dropped.
pub struct HmacLanes {
    key: Prepared,
    processor: Processor,
}

impl HmacLanes {
    /// Prepares a key of any length; one of more than 64 octets is hashed first (RFC 2104 section
    /// 2).
    ///
    /// Returns `None` if this processor is not faster than with the messages one by one.
    pub fn new(key: &[u8]) -> Option<Self> {
        Processor::fastest().map(|processor| Self { key: Prepared::new(key), processor })
    }

    /// Prepares a key for one instruction set, for tests; `None` if the processor does not have it.
    #[doc(hidden)]
    pub fn with(set: InstructionSet, key: &[u8]) -> Option<Self> {
        Processor::with(set).map(|processor| Self { key: Prepared::new(key), processor })
    }

    /// Returns the minimum number of messages of one length for which [`tags`](Self::tags) is
    /// faster than hashing them one by one, as measured with this instruction set.
    pub fn worthwhile(&self) -> usize {
        self.processor.worthwhile()
    }

    /// Writes the whole tag of `messages[n]` to `tags[n]`; SRTP truncates it (RFC 3711 section
    /// 4.2.1).
    ///
    /// The lengths of the messages may differ. Messages without an entry in `tags` are ignored, and
    /// entries without a message are left unchanged. Nothing is allocated.
    pub fn tags(&self, messages: &[Message<'_>], tags: &mut [[u8; 20]]) {
        self.processor.tags(&self.key, messages, tags);
    }
}

impl fmt::Debug for HmacLanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HmacLanes").field("processor", &self.processor).finish_non_exhaustive()
    }
}

/// The states of SHA-1 after the blocks of the key (RFC 2104 section 4).
pub(crate) struct Prepared {
    pub(crate) inner: [u32; 5],
    pub(crate) outer: [u32; 5],
}

impl Prepared {
    fn new(key: &[u8]) -> Self {
        let mut block = [0; 64];
        if key.len() > block.len() {
            let mut digest = scalar::digest(key);
            block[..digest.len()].copy_from_slice(&digest);
            digest.zeroize();
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let mut padded = block.map(|octet| octet ^ 0x36);
        let inner = scalar::compress(scalar::INITIAL, &padded);
        padded = block.map(|octet| octet ^ 0x5c);
        let outer = scalar::compress(scalar::INITIAL, &padded);
        padded.zeroize();
        block.zeroize();
        Self { inner, outer }
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}
