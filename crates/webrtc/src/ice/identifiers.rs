//! Transaction identifiers of requests to servers.

use aws_lc_rs::hmac;

use super::stun::TransactionId;

/// Makes identifiers that nobody can predict without the key.
#[derive(Debug)]
pub(super) struct Identifiers {
    key: hmac::Key,
    made: u64,
}

impl Identifiers {
    pub(super) fn new(random: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, random), made: 0 }
    }

    /// Returns the next identifier.
    pub(super) fn make(&mut self) -> TransactionId {
        let mut id = TransactionId::default();
        for (octet, of_tag) in id.iter_mut().zip(self.next().as_ref()) {
            *octet = *of_tag;
        }
        id
    }

    /// Returns others, independent of these.
    pub(super) fn split(&mut self) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, self.next().as_ref()), made: 0 }
    }

    fn next(&mut self) -> hmac::Tag {
        self.made += 1;
        hmac::sign(&self.key, &self.made.to_be_bytes())
    }
}
