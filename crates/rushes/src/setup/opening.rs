//! A stream whose keys are being agreed on.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_zrtp::{ErrorCode, Event, SasStatus, StreamKeys, Warning};

use super::builder::StreamBuilder;
use crate::agreement::{Channel, WithoutZrtp, ZrtpConfig};
use crate::error::{Error, ZrtpError};
use crate::media::MediaStream;
use crate::port::{Port, SideProtocol};
use crate::security::Security;

/// Longest sleep while waiting: the agreement may depend on another stream of the session.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum failed addresses that wait to be polled.
const FAILED_MAX: usize = 16;

/// A stream whose keys are being agreed on by ZRTP, created by
/// [`StreamBuilder::begin`](crate::StreamBuilder::begin). No media can be sent before
/// [`wait`](Self::wait) returns the stream.
#[derive(Debug)]
pub struct Opening {
    builder: StreamBuilder,
    port: Arc<Port>,
    channel: Arc<Channel>,
    /// The stream; `None` until its keys are known.
    stream: Option<MediaStream>,
    /// Addresses that are not the peer's, and why.
    failed: VecDeque<(SocketAddr, ZrtpError)>,
    is_over: bool,
}

impl StreamBuilder {
    /// Begins to open a stream whose keys are agreed on by ZRTP.
    ///
    /// Sends Hello to the peer, or waits for one if the session or the stream has no peer.
    /// [`open`](Self::open) does the same and waits for the agreement. Without a known peer
    /// address, strangers cannot end the wait: up to 8 addresses at a time may agree on keys, and
    /// the first that confirms them is the peer. [`poll_failed`](Opening::poll_failed) reports the
    /// others.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::Zrtp`] if the port has such a stream already, the cache
    /// cannot be read, or `security` is not [`Security::Zrtp`].
    pub fn begin(mut self) -> Result<Opening, Error> {
        let Some(Security::Zrtp(config)) = &self.security else {
            return Err(Error::NoZrtp);
        };
        let config: ZrtpConfig = config.clone();
        let agreement = self.session.agreement(&config)?;
        let ssrc = self.own_ssrc()?;
        self = self.ssrc(ssrc);
        let (builder, port) = self.bind()?;
        let h0 = builder.chain.take()?;
        let to = builder.destination();
        let id = agreement.attach(ssrc, h0, &port, to, config.peer_hello_hash)?;
        let channel = Arc::new(Channel { agreement, id });
        if !port.set_side_protocol(channel.clone()) {
            return Err(ZrtpError::PortTaken.into());
        }
        channel.agreement.serve(Instant::now());
        let failed = VecDeque::new();
        Ok(Opening { builder, port, channel, stream: None, failed, is_over: false })
    }

    fn without_zrtp(&self) -> WithoutZrtp {
        match &self.security {
            Some(Security::Zrtp(config)) => config.without_zrtp,
            _ => WithoutZrtp::Refuse,
        }
    }

    fn unsecured(mut self) -> Self {
        self.security = None;
        self
    }

    pub(crate) fn open_by_zrtp(self) -> Result<MediaStream, Error> {
        let timeout = match &self.security {
            Some(Security::Zrtp(config)) => config.timeout,
            _ => Duration::ZERO,
        };
        let mut opening = self.begin()?;
        let stream = opening.wait(timeout)?;
        // The last failure is more specific than a timeout.
        let last = opening.failed.pop_back();
        stream.ok_or_else(|| last.map_or(ZrtpError::Timeout, |(_, error)| error).into())
    }
}

impl Opening {
    /// Waits until the keys are agreed on, at most for `timeout`.
    ///
    /// Returns `None` after the timeout; `wait` may then be called again. Reads the socket on the
    /// caller's thread.
    ///
    /// # Errors
    /// [`Error::Zrtp`] if the agreement failed: no ZRTP peer answered at the known address, or one
    /// end refused. Otherwise as [`StreamBuilder::open`](crate::StreamBuilder::open).
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<MediaStream>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let now = Instant::now();
            let due = self.channel.agreement.serve(now);
            if self.poll(now)? {
                self.is_over = true;
                return Ok(self.stream.take());
            }
            if now >= deadline {
                return Ok(None);
            }
            let until = due.unwrap_or(deadline).min(now + POLL_INTERVAL).min(deadline);
            // One batch at a time: the next one may be for the stream that this one completes.
            self.port.run_once(until)?;
        }
    }

    /// Returns the session's short authentication string, or `None` before the keys are agreed on;
    /// see [`Session::sas`](crate::Session::sas).
    pub fn sas(&self) -> Option<SasStatus> {
        self.channel.agreement.sas()
    }

    /// Records whether the strings were found equal; see
    /// [`Session::verify_sas`](crate::Session::verify_sas).
    pub fn verify_sas(&self, are_equal: bool) -> bool {
        self.channel.agreement.verify_sas(are_equal)
    }

    /// Returns the next warning; see
    /// [`Session::poll_zrtp_warning`](crate::Session::poll_zrtp_warning).
    pub fn poll_warning(&self) -> Option<Warning> {
        self.channel.agreement.poll_warning()
    }

    /// Returns the next address that is not the peer's, and the reason.
    ///
    /// Either the policy refused the address or its exchange failed. The stream continues to wait.
    /// The latest 16 are kept.
    pub fn poll_failed(&mut self) -> Option<(SocketAddr, ZrtpError)> {
        self.failed.pop_front()
    }

    /// Returns the number of ignored datagrams other than ZRTP. If the peer sent them, it does not
    /// use ZRTP.
    pub fn datagrams_ignored(&self) -> u64 {
        self.port.ignored().1
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.port.local_address()
    }

    /// Handles the events of the agreement; returns whether the stream is ready.
    fn poll(&mut self, now: Instant) -> Result<bool, Error> {
        let Channel { agreement, id } = &*self.channel;
        let (agreement, id) = (agreement.clone(), *id);
        if let Some(stream) = &self.stream
            && stream.statistics().receive.packets > 0
        {
            // RFC 6189 section 4.6: equivalent to a Conf2ACK.
            agreement.note_media(now, id);
        }
        while let Some(event) = agreement.poll_event(id) {
            match event {
                Event::Keys(keys) => {
                    let builder = self.builder.clone().security(security(&keys)?);
                    self.stream = Some(builder.open_on(self.port.clone())?);
                }
                Event::Secure => return Ok(true),
                Event::CandidateFailed { address, error, by_peer, refusal } => {
                    let failed = ZrtpError::Failed { error, by_peer };
                    self.note_failed(address, refusal.map_or(failed, ZrtpError::Peer));
                }
                Event::Refused(refusal) => return Err(ZrtpError::Peer(refusal).into()),
                Event::Failed { error, by_peer } => {
                    return Err(ZrtpError::Failed { error, by_peer }.into());
                }
                Event::NoPeer => {
                    if self.builder.without_zrtp() != WithoutZrtp::Clear {
                        return Err(ZrtpError::NoPeer.into());
                    }
                    tracing::warn!("no ZRTP peer answered: the stream continues unencrypted");
                    let builder = self.builder.clone().unsecured();
                    self.stream = Some(builder.open_on(self.port.clone())?);
                    return Ok(true);
                }
                _ => {}
            }
        }
        Ok(false)
    }

    fn note_failed(&mut self, address: SocketAddr, error: ZrtpError) {
        if self.failed.len() >= FAILED_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back((address, error));
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_over {
            let channel: Arc<dyn SideProtocol> = self.channel.clone();
            self.port.clear_side_protocol(&channel);
        }
    }
}

/// Returns the keys of a stream as its security.
fn security(keys: &StreamKeys) -> Result<Security, Error> {
    let suite = keys.suite.parse().ok();
    let security = suite.and_then(|it| Security::separate(it, &keys.send, &keys.receive).ok());
    let failed = ZrtpError::Failed { error: ErrorCode::CriticalSoftware, by_peer: false };
    security.ok_or_else(|| failed.into())
}
