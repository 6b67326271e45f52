//! One end of a handshake, and of the association that it makes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use dimpl::{CertificateError, Dtls, Output, SecurityError, UnexpectedMessageError};

use super::certificate::Certificate;
use super::error::DtlsError;
use super::fingerprint::{Fingerprint, HashFunction};
use super::keys::Keys;
use super::record::{self, Plain};
use crate::demux::{self, Kind};

/// Octets of the largest datagram that an association handles. Handshake messages are cut at some
/// 1200 octets, since their senders do not know the path; only certificates on loopback are longer.
pub const DATAGRAM_MAX: usize = 4096;

/// Maximum datagrams that wait to be sent. A flight has fewer.
const DATAGRAMS_MAX: usize = 32;

/// How often a handshake with an address that was proved may begin again after it failed.
const ATTEMPTS_MAX: u32 = 4;

/// Octets sent for each octet received from an address that was not proved (RFC 9147 section 5.1 asks
/// for a cookie instead of a limit; this is the limit of RFC 9000 section 8.1).
const AMPLIFICATION_MAX: usize = 3;

/// How long a handshake goes on after an alert that anyone could have sent.
const DOUBT: Duration = Duration::from_secs(3);

/// The first wait for an answer; it doubles each time. RFC 9147 section 5.8.2 allows less than a
/// second where latency matters.
const RETRANSMISSION: Duration = Duration::from_millis(250);

/// Retransmissions of a flight; the last one is sent some 16 seconds after the flight.
const RETRANSMISSIONS: usize = 6;

/// How long a handshake may take, from its first message.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);

/// The shortest time between two timeouts. The engine asks for one at once, again and again, when a
/// message is missing from a flight of DTLS 1.3, and would send an acknowledgement each time.
const TIMEOUT_MIN: Duration = Duration::from_millis(50);

/// Timeouts after this time are the engine's way of saying that there are none.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The description of the alert for a certificate that was not announced (RFC 5763 section 5).
const BAD_CERTIFICATE: u8 = 42;

/// The engine's settings. Checking them takes a while, so it is done once.
static SETTINGS: LazyLock<Result<Arc<dimpl::Config>, dimpl::Error>> = LazyLock::new(|| {
    let settings = dimpl::Config::builder()
        .handshake_timeout(HANDSHAKE_TIME)
        .flight_start_rto(RETRANSMISSION)
        .flight_retries(RETRANSMISSIONS)
        .require_client_certificate(true)
        .use_server_cookie(true);
    settings.build().map(Arc::new)
});

/// The settings of an [`Association`].
#[derive(Clone, Debug)]
pub struct Config {
    /// The certificate of this end.
    pub certificate: Certificate,
    /// Whether this end begins the handshake (`a=setup:active`).
    pub is_client: bool,
    /// The fingerprints of the peer's certificate, of which one by the strongest hash function must
    /// match. If there are none, the handshake fails.
    pub expected: Vec<Fingerprint>,
}

/// A result of an [`Association`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// The handshake is complete and the peer is the expected one: media may be sent.
    Keys(Keys),
    /// The handshake failed, and there will be no keys. After [`Keys`](Self::Keys): the peer broke the
    /// protocol, or has not confirmed the last message of the handshake.
    Failed(DtlsError),
    /// The peer ended the association after the handshake.
    Closed,
}

/// One end of a DTLS association (1.2 or 1.3) that yields keys for SRTP.
///
/// A client sends its first message at once; a server waits. Both need a certificate of the other.
/// The peer's protection profiles are taken in the order `AEAD_AES_256_GCM`, `AEAD_AES_128_GCM`,
/// `AES_CM_128_HMAC_SHA1_80`. Application data of the peer is dropped.
///
/// After [`Event::Keys`], datagrams must still be handled: the peer may have missed the last message,
/// and it may end the association.
///
/// **Strangers.** Garbage is dropped. A server keeps little state for a client that has not returned
/// its cookie, and sends it at most three times the octets that it received; a new first message
/// replaces an old one until then ([`has_proved_address`](Self::has_proved_address)). The caller must
/// give an association datagrams from one address only, or a stranger can disturb the handshake, but
/// never complete it: only the certificate counts.
pub struct Association {
    config: Config,
    /// `None` once the association is over.
    engine: Option<Dtls>,
    buffer: Vec<u8>,
    timeout: Option<Instant>,
    datagrams: VecDeque<Vec<u8>>,
    events: VecDeque<Event>,
    peer: Peer,
    /// Whether the keys were handed out.
    is_complete: bool,
    attempts: u32,
    /// An alert that anyone could have sent: the handshake fails at this time unless it completes.
    doubt: Option<(Instant, DtlsError)>,
    /// Why the last attempt of a server failed.
    last_error: Option<DtlsError>,
}

/// What is known of a peer whose handshake is going on.
#[derive(Debug, Default)]
struct Peer {
    /// The random of its first message.
    random: Option<[u8; 32]>,
    is_proved: bool,
    received: usize,
    sent: usize,
    /// Whether its certificate is the announced one; `None` before it was shown.
    is_expected: Option<bool>,
}

/// What the engine has put out.
#[derive(Default)]
struct Outcome {
    is_connected: bool,
    keys: Option<Keys>,
    stranger: Option<Fingerprint>,
    is_closed: bool,
}

impl Association {
    /// Creates one end of an association. A client's first message can be polled at once.
    ///
    /// # Errors
    /// [`DtlsError::NoFingerprint`] if none is expected.
    pub fn new(config: Config, now: Instant) -> Result<Self, DtlsError> {
        if config.expected.is_empty() {
            return Err(DtlsError::NoFingerprint);
        }
        let mut association = Self {
            config,
            engine: None,
            buffer: vec![0; DATAGRAM_MAX],
            timeout: None,
            datagrams: VecDeque::new(),
            events: VecDeque::new(),
            peer: Peer::default(),
            is_complete: false,
            attempts: 0,
            doubt: None,
            last_error: None,
        };
        association.begin(now)?;
        Ok(association)
    }

    /// Returns whether a datagram begins a handshake: only for such a one is a server needed.
    pub fn begins_with(datagram: &[u8]) -> bool {
        let is_dtls = demux::kind(datagram) == Kind::Dtls && datagram.len() <= DATAGRAM_MAX;
        is_dtls && Plain::first(datagram).is_some_and(|it| it.is_first() && it.random().is_some())
    }

    /// Handles a datagram from the peer. Those that are not DTLS, or longer than [`DATAGRAM_MAX`], are
    /// dropped.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let is_dtls = demux::kind(datagram) == Kind::Dtls && datagram.len() <= DATAGRAM_MAX;
        if !is_dtls || self.engine.is_none() || !self.admits(now, datagram) {
            return;
        }
        self.peer.received = self.peer.received.saturating_add(datagram.len());
        if let Err(error) = self.pass_on(now, datagram) {
            self.give_up(now, error);
            // It may have been a client's first message, after too many that were incomplete.
            if !self.config.is_client
                && let Err(error) = self.pass_on(now, datagram)
            {
                self.give_up(now, error);
            }
        }
    }

    /// Passes a datagram to the engine, and takes what it puts out.
    fn pass_on(&mut self, now: Instant, datagram: &[u8]) -> Result<(), dimpl::Error> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        match engine.handle_timeout(now).and_then(|()| engine.handle_packet(datagram)) {
            // The engine has not changed: it was no answer to the first message.
            Err(dimpl::Error::UnexpectedMessage(
                UnexpectedMessageError::UnrecognizedAutoServerResponse,
            ))
            | Ok(()) => self.collect(now, true),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Retransmits what is due, or fails if the peer does not answer.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.doubt.as_ref().is_some_and(|(until, _)| *until <= now)
            && let Some((_, error)) = self.doubt.take()
        {
            self.fail(error);
        }
        let is_due = self.timeout.is_some_and(|due| due <= now);
        let Some(engine) = self.engine.as_mut().filter(|_| is_due) else { return };
        match engine.handle_timeout(now) {
            Ok(()) => self.collect(now, false),
            Err(error) => self.give_up(now, error),
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let doubt = self.doubt.as_ref().map(|(until, _)| *until);
        self.engine.as_ref()?;
        self.timeout.into_iter().chain(doubt).min()
    }

    /// Returns the next datagram for the peer.
    pub fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.datagrams.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Ends the association; the peer learns it if the handshake is complete. Nothing is handled
    /// afterwards.
    pub fn close(&mut self, now: Instant) {
        let Some(engine) = &mut self.engine else { return };
        if engine.close().is_ok() {
            self.collect(now, true);
        }
        self.end();
    }

    /// Returns whether the peer is known to receive what is sent to it: to a server, since the client
    /// has returned a cookie; to a client, since the handshake is complete.
    pub fn has_proved_address(&self) -> bool {
        self.peer.is_proved || self.is_complete
    }

    /// Returns why the last attempt failed, while a server waits for another one.
    pub fn last_error(&self) -> Option<&DtlsError> {
        self.last_error.as_ref()
    }

    /// Returns the protocol version, once both ends agree: `DTLS 1.2` or `DTLS 1.3`.
    pub fn version(&self) -> Option<&'static str> {
        let version = self.engine.as_ref()?.protocol_version()?;
        Some(if version == dimpl::ProtocolVersion::DTLS1_3 { "DTLS 1.3" } else { "DTLS 1.2" })
    }

    /// Begins the handshake, or waits for the client's first message.
    fn begin(&mut self, now: Instant) -> Result<(), DtlsError> {
        let settings = SETTINGS.as_ref().map_err(|error| error_of(error.clone()))?;
        let certificate = self.config.certificate.to_engine();
        let mut engine = Dtls::new_auto(settings.clone(), certificate, now);
        engine.set_active(self.config.is_client);
        engine.handle_timeout(now).map_err(error_of)?;
        self.engine = Some(engine);
        self.peer = Peer::default();
        self.doubt = None;
        self.collect(now, true);
        Ok(())
    }

    /// Checks a datagram before the engine sees it, which takes every error as final.
    fn admits(&mut self, now: Instant, datagram: &[u8]) -> bool {
        let is_waiting = !self.config.is_client && !self.peer.is_proved;
        let Some(record) = Plain::first(datagram) else { return !is_waiting };
        if self.is_complete {
            // Only the peer's last flight may come again.
            return record.is_handshake();
        }
        if is_waiting {
            return record.is_client_hello() && self.admits_hello(now, record);
        }
        if let Some(description) = record.fatal_alert()
            && self.doubt.is_none()
        {
            self.doubt = Some((now + DOUBT, DtlsError::Alert { description }));
        }
        record.is_of_handshake()
    }

    /// Checks a client's message before its address is proved. A new first message replaces what came
    /// before it.
    fn admits_hello(&mut self, now: Instant, record: Plain<'_>) -> bool {
        if !record.is_first() {
            return true;
        }
        let Some(random) = record.random() else { return false };
        let is_answered = self.peer.random == Some(random) && self.peer.sent > 0;
        if !is_answered && let Err(error) = self.begin(now) {
            self.fail(error);
            return false;
        }
        self.peer.random = Some(random);
        true
    }

    /// Takes what the engine puts out. `is_answer` is false if nothing was received.
    fn collect(&mut self, now: Instant, is_answer: bool) {
        let mut outcome = Outcome::default();
        let Some(mut engine) = self.engine.take() else { return };
        loop {
            match engine.poll_output(&mut self.buffer) {
                Output::Packet(datagram) => {
                    let datagram = datagram.to_vec();
                    self.send(datagram, is_answer);
                }
                Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                Output::Timeout(at) => {
                    self.timeout = Some(at.max(now + TIMEOUT_MIN)).filter(|at| *at < now + FOREVER);
                    break;
                }
                Output::Connected => outcome.is_connected = true,
                Output::PeerCert(certificate) => {
                    let is_expected = Fingerprint::any_matches(&self.config.expected, certificate);
                    self.peer.is_expected = Some(is_expected);
                    if !is_expected {
                        let hash = self.config.expected.iter().map(Fingerprint::hash).max();
                        let hash = hash.unwrap_or(HashFunction::Sha256);
                        outcome.stranger = Some(Fingerprint::of(hash, certificate));
                    }
                }
                Output::KeyingMaterial(exported, profile) => {
                    outcome.keys = Keys::split(&exported, profile, self.config.is_client);
                }
                Output::CloseNotify => outcome.is_closed = true,
                _ => {}
            }
        }
        self.engine = Some(engine);
        self.conclude(outcome);
    }

    fn conclude(&mut self, outcome: Outcome) {
        if let Some(found) = outcome.stranger {
            let is_plain = self.version() == Some("DTLS 1.2");
            self.datagrams.clear();
            self.fail(DtlsError::Fingerprint { found });
            if is_plain {
                self.datagrams.push_back(record::fatal_alert(BAD_CERTIFICATE));
            }
            return;
        }
        if outcome.is_connected {
            self.doubt = None;
            match outcome.keys {
                Some(keys) if self.peer.is_expected == Some(true) => {
                    self.is_complete = true;
                    self.last_error = None;
                    self.events.push_back(Event::Keys(keys));
                }
                Some(_) => return self.fail(DtlsError::NoFingerprint),
                None => return self.fail(DtlsError::NoSrtp),
            }
        }
        if outcome.is_closed {
            self.end();
            self.events.push_back(Event::Closed);
        }
    }

    /// Queues a datagram, unless its address is not proved and it would be too much for it.
    fn send(&mut self, datagram: Vec<u8>, is_answer: bool) {
        let asks = Plain::first(&datagram).is_some_and(Plain::asks_for_proof);
        if !self.config.is_client && !asks {
            self.peer.is_proved = true;
        }
        if !self.config.is_client && !self.peer.is_proved {
            let sent = self.peer.sent + datagram.len();
            if !is_answer || sent > self.peer.received.saturating_mul(AMPLIFICATION_MAX) {
                return;
            }
            self.peer.sent = sent;
        }
        if self.datagrams.len() < DATAGRAMS_MAX {
            self.datagrams.push_back(datagram);
        }
    }

    /// Handles the engine's failure: a server begins again, as anyone could have caused it.
    fn give_up(&mut self, now: Instant, error: dimpl::Error) {
        if self.is_complete {
            // Only the peer itself can cause it now, for example by renegotiation.
            return self.fail(error_of(error));
        }
        let error = error_of(error);
        self.attempts += u32::from(self.peer.is_proved);
        if self.config.is_client || self.attempts >= ATTEMPTS_MAX {
            self.fail(error);
        } else if let Err(error) = self.begin(now) {
            self.fail(error);
        } else {
            self.last_error = Some(error);
        }
    }

    fn fail(&mut self, error: DtlsError) {
        self.end();
        self.events.push_back(Event::Failed(error));
    }

    fn end(&mut self) {
        self.engine = None;
        self.timeout = None;
        self.doubt = None;
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("config", &self.config)
            .field("is_complete", &self.is_complete)
            .finish_non_exhaustive()
    }
}

fn error_of(error: dimpl::Error) -> DtlsError {
    match error {
        dimpl::Error::Timeout(_) => DtlsError::Timeout,
        dimpl::Error::SecurityError(SecurityError::FatalAlert { description }) => {
            DtlsError::Alert { description }
        }
        dimpl::Error::CertificateError(CertificateError::NoClientCertificateReceived) => {
            DtlsError::NoCertificate
        }
        other => DtlsError::Handshake(other.to_string()),
    }
}
