//! `Noise_NNpsk0_25519_AESGCM_SHA256` (The Noise Protocol Framework, revision 34): two ends that
//! share a secret authenticate each other and agree on fresh keys, with forward secrecy.
//!
//! ```text
//! client ── psk, e ──▶ server
//! client ◀── e, ee ─── server
//! ```
//!
//! The handshake's payloads are empty. Names are those of the specification.

use zeroize::Zeroizing;

use rushes_crypto::{
    Aead, Curve, CurveKey, HashAlgorithm, NONCE_LEN, Refused, TAG_LEN, hash, hkdf,
};

/// The protocol's name. It is as long as a SHA-256 digest and is therefore the initial hash,
/// unchanged (section 5.2).
const NAME: &[u8; HASH_LEN] = b"Noise_NNpsk0_25519_AESGCM_SHA256";

const HASH_LEN: usize = 32;

/// Octets in a public key of X25519.
const DH_LEN: usize = 32;

/// Octets in each handshake message: a public key and the tag of an empty payload.
pub(super) const MESSAGE_LEN: usize = DH_LEN + TAG_LEN;

/// The ephemeral private key of one handshake.
pub(super) type Ephemeral = Zeroizing<[u8; DH_LEN]>;

/// A key, and the number of messages encrypted under it (section 5.1).
pub(super) struct CipherState {
    key: Aead,
    n: u64,
}

impl CipherState {
    fn new(key: &[u8]) -> Result<Self, Refused> {
        Ok(Self { key: Aead::new(key)?, n: 0 })
    }

    fn nonce(&mut self) -> [u8; NONCE_LEN] {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&self.n.to_be_bytes());
        self.n += 1;
        nonce
    }

    /// Encrypts `plain` and appends the result and its tag to `out`.
    pub(super) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        self.encrypt_with_ad(&[], plain, out)
    }

    fn encrypt_with_ad(
        &mut self,
        ad: &[u8],
        plain: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let (nonce, start) = (self.nonce(), out.len());
        out.resize(start + plain.len() + TAG_LEN, 0);
        self.key.seal(nonce, ad, &mut [], plain, &mut out[start..])
    }

    /// Appends the plain text of `message` to `out`; nothing if the message is not authentic.
    pub(super) fn decrypt(&mut self, message: &[u8], out: &mut Vec<u8>) -> Result<(), Refused> {
        let start = out.len();
        let len = message.len().checked_sub(TAG_LEN).ok_or(Refused)?;
        out.resize(start + len, 0);
        let outcome = self.decrypt_with_ad(&[], message, &mut out[start..]);
        if outcome.is_err() {
            out.truncate(start);
        }
        outcome
    }

    fn decrypt_with_ad(
        &mut self,
        ad: &[u8],
        message: &[u8],
        out: &mut [u8],
    ) -> Result<(), Refused> {
        let nonce = self.nonce();
        self.key.open_into(nonce, ad, message, out)
    }
}

/// The chaining key and the hash of the handshake so far (section 5.2).
struct SymmetricState {
    ck: Zeroizing<[u8; HASH_LEN]>,
    h: [u8; HASH_LEN],
}

impl SymmetricState {
    /// Creates the state after `prologue` and the `psk` token (sections 5.3 and 9.2).
    fn new(prologue: &[u8], psk: &[u8; HASH_LEN]) -> Result<Self, Refused> {
        let mut state = Self { ck: Zeroizing::new(*NAME), h: *NAME };
        state.mix_hash(prologue);
        // This is MixKeyAndHash. Its cipher key is not needed: the token `e` replaces it at once.
        let mut keys = Zeroizing::new([0; 3 * HASH_LEN]);
        state.hkdf(psk, &mut *keys)?;
        state.ck.copy_from_slice(&keys[..HASH_LEN]);
        state.mix_hash(&keys[HASH_LEN..2 * HASH_LEN]);
        Ok(state)
    }

    fn mix_hash(&mut self, octets: &[u8]) {
        let digest = hash(HashAlgorithm::Sha256, &[&self.h, octets]);
        self.h.copy_from_slice(digest.as_slice());
    }

    fn hkdf(&self, ikm: &[u8], out: &mut [u8]) -> Result<(), Refused> {
        hkdf(HashAlgorithm::Sha256, &*self.ck, ikm, &[], out)
    }

    fn mix_key(&mut self, ikm: &[u8]) -> Result<CipherState, Refused> {
        let mut keys = Zeroizing::new([0; 2 * HASH_LEN]);
        self.hkdf(ikm, &mut *keys)?;
        self.ck.copy_from_slice(&keys[..HASH_LEN]);
        CipherState::new(&keys[HASH_LEN..])
    }

    /// Handles the token `e`: a public key is hashed and, in handshakes with a pre-shared key, also
    /// mixed into the key (section 9.2).
    fn mix_e(&mut self, e: &[u8]) -> Result<CipherState, Refused> {
        self.mix_hash(e);
        self.mix_key(e)
    }

    /// Writes the tag of an empty payload.
    fn write_tag(&mut self, mut key: CipherState, out: &mut Vec<u8>) -> Result<(), Refused> {
        let start = out.len();
        let h = self.h;
        key.encrypt_with_ad(&h, &[], out)?;
        self.mix_hash(&out[start..]);
        Ok(())
    }

    /// Verifies the tag of an empty payload.
    fn read_tag(&mut self, mut key: CipherState, tag: &[u8]) -> Result<(), Refused> {
        key.decrypt_with_ad(&self.h, tag, &mut [])?;
        self.mix_hash(tag);
        Ok(())
    }

    fn split(self) -> Result<Split, Refused> {
        let mut keys = Zeroizing::new([0; 2 * HASH_LEN]);
        self.hkdf(&[], &mut *keys)?;
        let (client, server) = keys.split_at(HASH_LEN);
        Ok(Split {
            of_client: CipherState::new(client)?,
            of_server: CipherState::new(server)?,
            exporter: Exporter(self),
        })
    }
}

/// The result of a handshake (section 5.2, `Split`).
pub(super) struct Split {
    pub(super) of_client: CipherState,
    pub(super) of_server: CipherState,
    pub(super) exporter: Exporter,
}

/// Derives further keys of the same session. The chaining key is zeroised on drop.
pub(super) struct Exporter(SymmetricState);

impl Exporter {
    /// Fills `out` with the key for `label`: HKDF-SHA256 of the final chaining key, salted with the
    /// handshake hash.
    pub(super) fn export(&self, label: &[u8], out: &mut [u8]) -> Result<(), Refused> {
        let SymmetricState { ck, h } = &self.0;
        hkdf(HashAlgorithm::Sha256, h, &**ck, &[b"export ", label], out)
    }
}

/// A client that has sent the first message.
pub(super) struct Initiator {
    state: SymmetricState,
    e: CurveKey,
}

impl Initiator {
    /// Appends the first message to `out`.
    pub(super) fn new(
        prologue: &[u8],
        psk: &[u8; HASH_LEN],
        ephemeral: &Ephemeral,
        out: &mut Vec<u8>,
    ) -> Result<Self, Refused> {
        let mut state = SymmetricState::new(prologue, psk)?;
        let (e, public) = key_pair(ephemeral)?;
        out.extend_from_slice(&public);
        let key = state.mix_e(&public)?;
        state.write_tag(key, out)?;
        Ok(Self { state, e })
    }

    /// Handles the second message.
    pub(super) fn finish(self, message: &[u8; MESSAGE_LEN]) -> Result<Split, Refused> {
        let Self { mut state, e } = self;
        let (re, tag) = message.split_at(DH_LEN);
        state.mix_e(re)?;
        let shared = e.agree(re).map_err(|_| Refused)?;
        let key = state.mix_key(shared.as_slice())?;
        state.read_tag(key, tag)?;
        state.split()
    }
}

/// Handles the first message as the server, and appends the second to `out`.
///
/// The tag of the first message is verified before any Diffie-Hellman operation.
pub(super) fn respond(
    prologue: &[u8],
    psk: &[u8; HASH_LEN],
    ephemeral: &Ephemeral,
    message: &[u8; MESSAGE_LEN],
    out: &mut Vec<u8>,
) -> Result<Split, Refused> {
    let mut state = SymmetricState::new(prologue, psk)?;
    let (re, tag) = message.split_at(DH_LEN);
    let key = state.mix_e(re)?;
    state.read_tag(key, tag)?;
    let (e, public) = key_pair(ephemeral)?;
    let start = out.len();
    out.extend_from_slice(&public);
    state.mix_e(&public)?;
    let outcome = e
        .agree(re)
        .map_err(|_| Refused)
        .and_then(|shared| state.mix_key(shared.as_slice()))
        .and_then(|key| state.write_tag(key, out));
    if outcome.is_err() {
        out.truncate(start);
    }
    outcome?;
    state.split()
}

fn key_pair(ephemeral: &Ephemeral) -> Result<(CurveKey, Vec<u8>), Refused> {
    CurveKey::generate(Curve::X25519, &mut |out| out.copy_from_slice(&**ephemeral))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_CLIENT: [u8; 32] = [0x51; 32];
    const OF_SERVER: [u8; 32] = [0x52; 32];

    fn key(octets: [u8; 32]) -> Ephemeral {
        Zeroizing::new(octets)
    }

    fn psk(octet: u8) -> [u8; 32] {
        [octet; 32]
    }

    /// Returns the splits of both ends; `tamper` changes the messages between them.
    fn shake(
        psks: [[u8; 32]; 2],
        prologues: [&[u8]; 2],
        tamper: impl Fn(usize, &mut [u8; MESSAGE_LEN]),
    ) -> Result<[Split; 2], Refused> {
        let mut out = Vec::new();
        let client = Initiator::new(prologues[0], &psks[0], &key(OF_CLIENT), &mut out)?;
        let mut first = out.try_into().unwrap();
        tamper(0, &mut first);
        let mut out = Vec::new();
        let server = respond(prologues[1], &psks[1], &key(OF_SERVER), &first, &mut out)?;
        let mut second = out.try_into().unwrap();
        tamper(1, &mut second);
        Ok([client.finish(&second)?, server])
    }

    #[test]
    fn both_ends_derive_the_same_keys() {
        let [mut client, mut server] =
            shake([psk(1); 2], [b"prologue"; 2], |_, _| {}).ok().unwrap();
        for n in 0..3 {
            let mut sealed = Vec::new();
            client.of_client.encrypt(&[n; 5], &mut sealed).unwrap();
            let mut opened = Vec::new();
            server.of_client.decrypt(&sealed, &mut opened).unwrap();
            assert_eq!(opened, [n; 5]);
            assert!(
                server.of_client.decrypt(&sealed, &mut opened).is_err(),
                "it was received before"
            );
            server.of_client.n -= 1;
        }
        let mut exported = [[0; 28]; 2];
        for (split, out) in [client, server].iter().zip(&mut exported) {
            split.exporter.export(b"media", out).unwrap();
        }
        assert_eq!(exported[0], exported[1]);
    }

    #[test]
    fn another_secret_or_prologue_and_every_changed_bit_are_refused() {
        assert!(shake([psk(1), psk(2)], [b"p"; 2], |_, _| {}).is_err());
        assert!(shake([psk(1); 2], [b"p", b"q"], |_, _| {}).is_err());
        for (message, bit) in (0..2).flat_map(|n| (0..8 * MESSAGE_LEN).map(move |bit| (n, bit))) {
            let outcome = shake([psk(1); 2], [b"p"; 2], |n, octets| {
                if n == message {
                    octets[bit / 8] ^= 1 << (bit % 8);
                }
            });
            assert!(outcome.is_err(), "bit {bit} of message {message}");
        }
    }

    fn snow(psk: &[u8; 32], is_client: bool) -> snow::HandshakeState {
        let name = core::str::from_utf8(NAME).unwrap().parse().unwrap();
        let builder = snow::Builder::new(name).prologue(b"p").unwrap().psk(0, psk).unwrap();
        if is_client {
            builder.build_initiator().unwrap()
        } else {
            builder.build_responder().unwrap()
        }
    }

    #[test]
    fn an_end_of_another_library_agrees_with_both_of_ours() {
        let (mut ours, mut message, mut plain) = (Vec::new(), [0; 100], [0; 100]);
        let client = Initiator::new(b"p", &psk(1), &key(OF_CLIENT), &mut ours).ok().unwrap();
        let mut server = snow(&psk(1), false);
        server.read_message(&ours, &mut []).unwrap();
        let len = server.write_message(&[], &mut message).unwrap();
        let mut split = client.finish(message[..len].try_into().unwrap()).ok().unwrap();
        let mut server = server.into_transport_mode().unwrap();
        for n in 0..3 {
            ours.clear();
            split.of_client.encrypt(&[n; 7], &mut ours).unwrap();
            let len = server.read_message(&ours, &mut plain).unwrap();
            assert_eq!(plain[..len], [n; 7]);
        }

        let mut client = snow(&psk(2), true);
        let len = client.write_message(&[], &mut message).unwrap();
        ours.clear();
        let first = message[..len].try_into().unwrap();
        let mut split = respond(b"p", &psk(2), &key(OF_SERVER), first, &mut ours).ok().unwrap();
        client.read_message(&ours, &mut []).unwrap();
        let mut client = client.into_transport_mode().unwrap();
        for n in 0..3 {
            let len = client.write_message(&[n; 9], &mut message).unwrap();
            ours.clear();
            split.of_client.decrypt(&message[..len], &mut ours).unwrap();
            assert_eq!(ours, [n; 9]);
            ours.clear();
            split.of_server.encrypt(&[n; 4], &mut ours).unwrap();
            let len = client.read_message(&ours, &mut plain).unwrap();
            assert_eq!(plain[..len], [n; 4]);
        }
    }
}
