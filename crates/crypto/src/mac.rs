//! HMAC-SHA1 (RFC 2104), of one message or of many at once.

use core::fmt;

use aws_lc_rs::hmac;
use rushes_sha1::{HmacLanes, Message};

/// Octets in a whole tag.
pub const MAC_LEN: usize = 20;

/// Maximum number of messages for [`Mac::sign_many`].
pub const LANES_MAX: usize = 16;

/// A key for HMAC-SHA1, whose two first blocks are already hashed; zeroised on drop.
pub struct Mac {
    key: hmac::Key,
    lanes: Option<HmacLanes>,
}

impl Mac {
    /// Creates the HMAC under `key`, which may have any length.
    pub fn new(key: &[u8]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key),
            lanes: HmacLanes::new(key),
        }
    }

    /// Returns the tag of `body` followed by `suffix`.
    #[inline]
    pub fn sign(&self, body: &[u8], suffix: &[u8]) -> [u8; MAC_LEN] {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(body);
        context.update(suffix);
        let mut tag = [0; MAC_LEN];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// Returns the number of messages from which [`sign_many`](Self::sign_many) is faster than
    /// single calls; `None` if it never is.
    pub fn worthwhile(&self) -> Option<usize> {
        self.lanes.as_ref().map(HmacLanes::worthwhile)
    }

    /// Computes the tags of up to [`LANES_MAX`] messages, in parallel if that is faster.
    #[inline]
    pub fn sign_many(&self, messages: &[Message<'_>], tags: &mut [[u8; MAC_LEN]; LANES_MAX]) {
        match &self.lanes {
            Some(lanes) if messages.len() >= lanes.worthwhile() => lanes.tags(messages, tags),
            _ => {
                for (message, tag) in messages.iter().zip(tags) {
                    *tag = self.sign(message.body, &message.suffix);
                }
            }
        }
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mac").finish_non_exhaustive()
    }
}
