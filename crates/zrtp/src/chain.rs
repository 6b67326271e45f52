//! The hash chains of both ends (RFC 6189 section 9), and the MACs whose keys are hash images.

use zeroize::Zeroizing;

use super::layout::{set_mac, without_mac};
use crate::crypto::{HashAlgorithm, hash, hmac, tags_are_equal};

/// A hash image: one of H0 to H3.
pub(super) type Image = [u8; 32];

/// Returns the hash of section 5.1.2.2, which is not negotiated.
pub(super) fn implicit_hash(octets: &[u8]) -> Image {
    let mut image = [0; 32];
    image.copy_from_slice(&hash(HashAlgorithm::Sha256, &[octets]).as_slice()[..32]);
    image
}

/// Returns the MAC of section 5.1.2.2 over a message without its last field.
fn implicit_mac(key: &Image, message: &[u8]) -> [u8; 8] {
    let mut mac = [0; 8];
    mac.copy_from_slice(&hmac(HashAlgorithm::Sha256, key, &[without_mac(message)]).as_slice()[..8]);
    mac
}

/// This end's chain: H0 and the images derived from it.
#[derive(Clone)]
pub(super) struct OwnChain {
    images: Zeroizing<[Image; 4]>,
}

impl OwnChain {
    /// Creates a chain that begins with `h0`, which must be secret.
    pub(super) fn new(h0: Image) -> Self {
        let mut images = Zeroizing::new([h0; 4]);
        for n in 1..4 {
            images[n] = implicit_hash(&images[n - 1]);
        }
        Self { images }
    }

    /// Returns image `n`, 0 to 3.
    pub(super) fn image(&self, n: usize) -> Image {
        self.images[n]
    }

    /// Sets the MAC of a written message, keyed by image `n`: 2 for Hello, 1 for Commit, 0 for the
    /// messages after it (section 8.1.1).
    pub(super) fn sign(&self, n: usize, message: &mut [u8]) {
        let mac = implicit_mac(&self.images[n], message);
        set_mac(message, mac);
    }
}

/// Why an image of the peer's chain was refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ChainError {
    /// The image is not a preimage of an earlier message's image: the message has another sender.
    Preimage,
    /// The MAC of an earlier message does not match: the message was changed in transit.
    Mac,
}

/// The revealed part of the peer's chain, and the messages whose MACs cannot be checked yet.
pub(super) struct PeerChain {
    images: [Option<Image>; 4],
    /// The messages, each with the number of the image that is the key of its MAC.
    waiting: Vec<(usize, Vec<u8>)>,
}

impl PeerChain {
    /// Creates the chain of the sender of `hello`, which carries `h3`.
    pub(super) fn new(h3: Image, hello: &[u8]) -> Self {
        Self { images: [None, None, None, Some(h3)], waiting: vec![(2, hello.to_vec())] }
    }

    /// Checks and stores image `n`, revealed by a message.
    ///
    /// # Errors
    /// [`ChainError`]; the chain is then unchanged.
    pub(super) fn reveal(&mut self, n: usize, image: Image) -> Result<(), ChainError> {
        let mut images = self.images;
        let mut current = image;
        for place in images.iter_mut().skip(n) {
            match place {
                // The images after it were checked when it was received.
                Some(known) if *known == current => break,
                Some(_) => return Err(ChainError::Preimage),
                None => *place = Some(current),
            }
            current = implicit_hash(&current);
        }
        let is_right = |(level, message): &(usize, Vec<u8>)| match &images[*level] {
            Some(key) => {
                let mac = message.last_chunk::<8>().copied().unwrap_or_default();
                tags_are_equal(&implicit_mac(key, message), &mac)
            }
            None => true,
        };
        if !self.waiting.iter().all(is_right) {
            return Err(ChainError::Mac);
        }
        self.waiting.retain(|(level, _)| images[*level].is_none());
        self.images = images;
        Ok(())
    }

    /// Keeps `message` until image `n`, the key of its MAC, is revealed.
    pub(super) fn keep(&mut self, n: usize, message: &[u8]) {
        self.waiting.retain(|(level, _)| *level != n);
        self.waiting.push((n, message.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a signed message of 32 octets, the last 8 of which are its MAC.
    fn message(chain: &OwnChain, n: usize) -> Vec<u8> {
        let mut message = vec![n as u8; 32];
        chain.sign(n, &mut message);
        message
    }

    fn chains() -> (OwnChain, PeerChain) {
        let own = OwnChain::new([7; 32]);
        let peer = PeerChain::new(own.image(3), &message(&own, 2));
        (own, peer)
    }

    #[test]
    fn a_chain_revealed_in_order_is_right() {
        let (own, mut peer) = chains();
        for n in [2, 1, 0] {
            peer.reveal(n, own.image(n)).unwrap();
            if n > 0 {
                peer.keep(n - 1, &message(&own, n - 1));
            }
        }
    }

    #[test]
    fn images_may_be_skipped_and_repeated() {
        let (own, mut peer) = chains();
        peer.reveal(0, own.image(0)).unwrap();
        peer.reveal(2, own.image(2)).unwrap();
        assert_eq!(peer.reveal(1, [0; 32]), Err(ChainError::Preimage));
    }

    #[test]
    fn an_image_of_another_chain_is_refused_and_changes_nothing() {
        let (own, mut peer) = chains();
        assert_eq!(peer.reveal(1, OwnChain::new([8; 32]).image(1)), Err(ChainError::Preimage));
        assert_eq!(peer.reveal(1, own.image(1)), Ok(()));
    }

    #[test]
    fn a_changed_message_is_detected_when_its_key_is_revealed() {
        let own = OwnChain::new([7; 32]);
        let mut hello = message(&own, 2);
        hello[0] ^= 1;
        let mut peer = PeerChain::new(own.image(3), &hello);
        assert_eq!(peer.reveal(2, own.image(2)), Err(ChainError::Mac));

        let (own, mut peer) = chains();
        peer.reveal(2, own.image(2)).unwrap();
        let mut commit = message(&own, 1);
        commit[9] ^= 0x80;
        peer.keep(1, &commit);
        assert_eq!(peer.reveal(0, own.image(0)), Err(ChainError::Mac));
    }
}
