//! A sealed control connection: a handshake under a shared secret, then records.

use core::fmt;

use zeroize::Zeroizing;

use super::channel::ChannelError;
use super::clear::{Clear, Verdict};
use super::message::{Message, SEALED_LEN};
use super::noise::{CipherState, Ephemeral, Exporter, Initiator, MESSAGE_LEN, Split, respond};
use super::opening::SEALED;
use super::{HEADER_LEN, VERSION, opening};
pub use rushes_crypto::Entropy;
use rushes_crypto::{HashAlgorithm, Refused, TAG_LEN, hkdf};

/// Maximum octets of a record before it is sealed.
const PLAIN_MAX: usize = 4096;

/// Octets of the length field before each record.
const LENGTH_LEN: usize = 2;

/// Octets before the first message of the handshake.
const PROLOGUE_LEN: usize = 8;

/// Octets of the client's first message, including the prologue.
const HELLO_LEN: usize = PROLOGUE_LEN + MESSAGE_LEN;

const _: () = assert!(MESSAGE_LEN == SEALED_LEN, "the handshake's message fits its body");

/// Maximum octets of a `Refuse`.
const REFUSAL_MAX: usize = HEADER_LEN + 2 + super::TEXT_LEN_MAX;

/// A secret shared by a server and its clients, by which they authenticate each other. It encrypts
/// no data: each connection has fresh keys. Zeroised on drop; `Debug` does not print it.
#[derive(Clone)]
pub struct ControlSecret(Zeroizing<[u8; 32]>);

impl ControlSecret {
    /// Derives the secret from the concatenation of `parts`, which should contain at least 16
    /// random octets.
    ///
    /// # Errors
    /// [`ChannelError::Primitive`] if a cryptographic primitive fails.
    pub fn new(parts: &[&[u8]]) -> Result<Self, ChannelError> {
        let ikm = Zeroizing::new(parts.concat());
        let mut octets = Zeroizing::new([0; 32]);
        let info: &[&[u8]] = &[b"Rushes texture control"];
        hkdf(HashAlgorithm::Sha256, &[], &ikm, info, &mut *octets)?;
        Ok(Self(octets))
    }
}

impl fmt::Debug for ControlSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlSecret(..)")
    }
}

impl From<Refused> for ChannelError {
    fn from(_: Refused) -> Self {
        Self::Primitive
    }
}

/// Returns the first octets of a sealed connection, which the handshake authenticates.
fn prologue() -> [u8; PROLOGUE_LEN] {
    let mut octets = [0; PROLOGUE_LEN];
    octets[..4].copy_from_slice(&opening::MAGIC);
    octets[4..6].copy_from_slice(&VERSION.to_be_bytes());
    octets[6] = SEALED;
    octets
}

enum Step {
    /// There is no key yet.
    Clear(Clear),
    /// The server waits for the client's first message. `before` holds the octets sent in the
    /// clear.
    Accepting {
        secret: ControlSecret,
        ephemeral: Ephemeral,
        before: Vec<u8>,
    },
    /// The client waits for the server's answer.
    Connecting(Box<Initiator>),
    Open {
        sending: CipherState,
        receiving: CipherState,
        exporter: Exporter,
    },
    Failed,
}

/// The state of one end of a sealed connection.
pub(super) struct Sealed {
    step: Step,
    /// The octets received so far of the current message or record.
    unread: Vec<u8>,
}

impl Sealed {
    /// Creates an end that is clear until [`seal_now`](Self::seal_now).
    pub(super) fn clear_at_first(is_client: bool) -> Self {
        Self { step: Step::Clear(Clear::new(is_client)), unread: Vec::new() }
    }

    pub(super) fn connect(
        secret: &ControlSecret,
        entropy: &mut Entropy<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Self, ChannelError> {
        let step = connecting(secret, entropy, &[], out)?;
        Ok(Self { step, unread: Vec::new() })
    }

    pub(super) fn accept(secret: &ControlSecret, entropy: &mut Entropy<'_>) -> Self {
        let (secret, ephemeral) = (secret.clone(), ephemeral(entropy));
        let step = Step::Accepting { secret, ephemeral, before: Vec::new() };
        Self { step, unread: Vec::new() }
    }

    /// Returns whether this end still sends unencrypted messages because it has no secret yet.
    pub(super) fn awaits_secret(&self) -> bool {
        matches!(self.step, Step::Clear(_))
    }

    /// Returns whether the handshake is complete.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.step, Step::Open { .. })
    }

    /// Begins the handshake of a connection that is clear. Nothing else is sent before the
    /// handshake is complete.
    pub(super) fn seal_now(
        &mut self,
        secret: &ControlSecret,
        entropy: &mut Entropy<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        let Step::Clear(clear) = &self.step else { return Ok(()) };
        let before = clear.transcript();
        if clear.is_client() {
            self.step = connecting(secret, entropy, &before, out)?;
            return Ok(());
        }
        let (secret, ephemeral) = (secret.clone(), ephemeral(entropy));
        self.step = Step::Accepting { secret, ephemeral, before };
        // The client may have had the secret first and already begun the handshake.
        let outcome = self.read(&mut Vec::new(), out);
        if outcome.is_err() {
            self.step = Step::Failed;
        }
        outcome
    }

    pub(super) fn receive(
        &mut self,
        mut octets: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), ChannelError> {
        while !octets.is_empty() {
            match self.receive_some(octets, plain, out) {
                Ok(taken) => octets = &octets[taken..],
                Err(error) => {
                    self.step = Step::Failed;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Handles octets up to the end of a message or record; returns their number.
    fn receive_some(
        &mut self,
        octets: &[u8],
        plain: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<usize, ChannelError> {
        let taken = self.missing()?.min(octets.len());
        self.unread.extend_from_slice(&octets[..taken]);
        self.read(plain, out)?;
        Ok(taken)
    }

    /// Returns the number of octets still missing from the current message or record.
    fn missing(&self) -> Result<usize, ChannelError> {
        let whole = match &self.step {
            Step::Clear(clear) => match clear.classify(&self.unread)? {
                Verdict::Missing(missing) => return Ok(missing),
                // The client sends nothing more before the server answers.
                Verdict::Handshake if self.unread.len() < HELLO_LEN => HELLO_LEN,
                Verdict::Handshake | Verdict::Pass => return Err(ChannelError::Forged),
            },
            Step::Accepting { .. } => HELLO_LEN,
            Step::Connecting(_) => self.answer_len(),
            Step::Open { .. } => match self.unread.first_chunk() {
                Some(len) => LENGTH_LEN + usize::from(u16::from_be_bytes(*len)),
                None => LENGTH_LEN,
            },
            Step::Failed => return Err(ChannelError::Forged),
        };
        Ok(whole.saturating_sub(self.unread.len()))
    }

    /// Returns the number of octets in the server's answer, from the length in its header.
    fn answer_len(&self) -> usize {
        self.unread.first_chunk().map_or(HEADER_LEN, |[_, len @ ..]: &[u8; HEADER_LEN]| {
            let [high, middle, low] = *len;
            HEADER_LEN + (u32::from_be_bytes([0, high, middle, low]) as usize).min(REFUSAL_MAX)
        })
    }

    /// Handles the message or record in `unread`, if it is complete.
    fn read(&mut self, plain: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        match &mut self.step {
            Step::Clear(clear) => {
                if clear.classify(&self.unread)? == Verdict::Pass {
                    clear.note_received(&self.unread)?;
                    plain.append(&mut self.unread);
                }
                Ok(())
            }
            Step::Accepting { .. } => self.read_hello(out),
            Step::Connecting(_) => self.read_answer(),
            Step::Open { receiving, .. } => {
                let Some((len, record)) = self.unread.split_first_chunk::<LENGTH_LEN>() else {
                    return Ok(());
                };
                let len = usize::from(u16::from_be_bytes(*len));
                if !(TAG_LEN + 1..=PLAIN_MAX + TAG_LEN).contains(&len) {
                    return Err(ChannelError::Forged);
                }
                if record.len() == len {
                    receiving.decrypt(record, plain).map_err(|_| ChannelError::Forged)?;
                    self.unread.clear();
                }
                Ok(())
            }
            Step::Failed => Err(ChannelError::Forged),
        }
    }

    fn read_hello(&mut self, out: &mut Vec<u8>) -> Result<(), ChannelError> {
        let prologue = prologue();
        if self.unread.iter().zip(&prologue).any(|(octet, own)| octet != own) {
            return Err(refuse(ChannelError::NoKey, out));
        }
        let Some(message) = self.unread.get(PROLOGUE_LEN..) else { return Ok(()) };
        let Ok(message) = message.try_into() else { return Ok(()) };
        let step = std::mem::replace(&mut self.step, Step::Failed);
        let Step::Accepting { secret, ephemeral, before } = step else { return Ok(()) };
        let prologue = [&prologue[..], &before].concat();
        let mut answer = Vec::new();
        let split = respond(&prologue, &secret.0, &ephemeral, message, &mut answer);
        let split = split.map_err(|_| refuse(ChannelError::OtherKey, out))?;
        Message::Sealed(answer.try_into().map_err(|_| Refused)?).write(out);
        self.open(split, false);
        Ok(())
    }

    fn read_answer(&mut self) -> Result<(), ChannelError> {
        let message = match Message::parse(&self.unread) {
            Ok(None) if self.unread.len() < REFUSAL_MAX => return Ok(()),
            Ok(Some((Message::Sealed(message), _))) => message,
            Ok(Some((Message::Refuse { reason, text } | Message::Stop { reason, text }, _))) => {
                return Err(ChannelError::Refused { reason, text });
            }
            Ok(_) | Err(_) => return Err(ChannelError::NoAnswer),
        };
        let step = std::mem::replace(&mut self.step, Step::Failed);
        let Step::Connecting(initiator) = step else { return Ok(()) };
        let split = initiator.finish(&message).map_err(|_| ChannelError::OtherKey)?;
        self.open(split, true);
        Ok(())
    }

    fn open(&mut self, split: Split, is_client: bool) {
        let Split { of_client, of_server, exporter } = split;
        let (sending, receiving) =
            if is_client { (of_client, of_server) } else { (of_server, of_client) };
        self.step = Step::Open { sending, receiving, exporter };
        self.unread.clear();
    }

    /// Appends sealed octets to `out`; returns how many were sealed, 0 during the handshake.
    pub(super) fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> usize {
        if let Step::Clear(clear) = &mut self.step {
            clear.note_sent(plain);
            out.extend_from_slice(plain);
            return plain.len();
        }
        let Step::Open { sending, .. } = &mut self.step else { return 0 };
        let mut sealed = 0;
        for plain in plain.chunks(PLAIN_MAX) {
            out.extend_from_slice(&((plain.len() + TAG_LEN) as u16).to_be_bytes());
            if sending.encrypt(plain, out).is_err() {
                self.step = Step::Failed;
                break;
            }
            sealed += plain.len();
        }
        sealed
    }

    pub(super) fn export(&self, label: &[u8], out: &mut [u8]) -> bool {
        let Step::Open { exporter, .. } = &self.step else { return false };
        exporter.export(label, out).is_ok()
    }
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealed").finish_non_exhaustive()
    }
}

/// Writes the client's first message to `out`. `before` holds the octets sent in the clear.
fn connecting(
    secret: &ControlSecret,
    entropy: &mut Entropy<'_>,
    before: &[u8],
    out: &mut Vec<u8>,
) -> Result<Step, ChannelError> {
    let prologue = prologue();
    out.extend_from_slice(&prologue);
    let prologue = [&prologue[..], before].concat();
    let initiator = Initiator::new(&prologue, &secret.0, &ephemeral(entropy), out)?;
    Ok(Step::Connecting(Box::new(initiator)))
}

/// Sends the reason to the client; it is clear because there is no key.
fn refuse(error: ChannelError, out: &mut Vec<u8>) -> ChannelError {
    Message::Refuse { reason: error.reason(), text: error.to_string() }.write(out);
    error
}

fn ephemeral(entropy: &mut Entropy<'_>) -> Ephemeral {
    let mut octets = Zeroizing::new([0; 32]);
    entropy(&mut *octets);
    octets
}
