//! A stream whose keys are being agreed on.

#[cfg(feature = "webrtc")]
mod dtls;
#[cfg(feature = "zrtp")]
mod zrtp;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(feature = "zrtp")]
use crate::agreement::{Channel, SasStatus, Warning};
#[cfg(feature = "webrtc")]
use crate::dtls::Handshake;
use crate::error::Error;
use crate::media::MediaStream;
use crate::port::{Port, SideProtocol};
use crate::security::Security;
use crate::setup::StreamBuilder;

/// Longest sleep while waiting: the agreement may depend on another stream of the session.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum failed addresses that wait to be polled.
const FAILED_MAX: usize = 16;

/// A stream whose keys are being agreed on, by ZRTP or DTLS, created by
/// [`StreamBuilder::begin`](crate::StreamBuilder::begin). No media can be sent before
/// [`wait`](Self::wait) returns the stream.
#[derive(Debug)]
pub struct Opening {
    builder: StreamBuilder,
    port: Arc<Port>,
    exchange: Exchange,
    /// The stream; `None` until its keys are known.
    stream: Option<MediaStream>,
    /// Addresses that are not the peer's, and why.
    failed: VecDeque<(SocketAddr, Error)>,
    is_over: bool,
}

/// The protocol by which both ends agree on the keys.
#[derive(Clone, Debug)]
enum Exchange {
    #[cfg(feature = "zrtp")]
    Zrtp(Arc<Channel>),
    #[cfg(feature = "webrtc")]
    Dtls(Arc<Handshake>),
}

/// What happened in an exchange.
enum Step {
    /// Both ends have these keys.
    Keys(Box<Security>),
    /// The peer has them, too: media may be sent.
    Ready,
    /// The peer does not agree on keys, and the stream may be unencrypted.
    #[cfg(feature = "zrtp")]
    Clear,
    /// An address is not the peer's.
    Refused(SocketAddr, Error),
}

impl Exchange {
    /// Does what is due, and returns when something is due next.
    fn serve(&self, now: Instant) -> Option<Instant> {
        match self {
            #[cfg(feature = "zrtp")]
            Self::Zrtp(channel) => channel.agreement.serve(now),
            #[cfg(feature = "webrtc")]
            Self::Dtls(handshake) => handshake.serve(now),
        }
    }

    /// Returns the next step.
    fn poll(&self, builder: &StreamBuilder) -> Result<Option<Step>, Error> {
        match self {
            #[cfg(feature = "zrtp")]
            Self::Zrtp(channel) => zrtp::poll(channel, builder),
            #[cfg(feature = "webrtc")]
            Self::Dtls(handshake) => {
                let _ = builder;
                dtls::poll(handshake)
            }
        }
    }

    /// Returns the error of an exchange that took too long.
    fn timed_out(&self) -> Error {
        match self {
            #[cfg(feature = "zrtp")]
            Self::Zrtp(_) => crate::error::ZrtpError::Timeout.into(),
            #[cfg(feature = "webrtc")]
            Self::Dtls(handshake) => dtls::timed_out(handshake),
        }
    }

    fn side_protocol(&self) -> Arc<dyn SideProtocol> {
        match self {
            #[cfg(feature = "zrtp")]
            Self::Zrtp(channel) => channel.clone(),
            #[cfg(feature = "webrtc")]
            Self::Dtls(handshake) => handshake.clone(),
        }
    }

    #[cfg(feature = "zrtp")]
    #[cfg_attr(
        not(feature = "webrtc"),
        allow(clippy::unnecessary_wraps, reason = "`None` with DTLS")
    )]
    fn channel(&self) -> Option<&Channel> {
        match self {
            Self::Zrtp(channel) => Some(channel),
            #[cfg(feature = "webrtc")]
            Self::Dtls(_) => None,
        }
    }
}

impl StreamBuilder {
    /// Begins to open a stream whose keys are agreed on by ZRTP or DTLS.
    ///
    /// Sends the first message to the peer, or waits for one if the session or the stream has no peer.
    /// [`open`](Self::open) does the same and waits for the agreement. Without a known peer
    /// address, strangers cannot end the wait: up to 8 addresses at a time may agree on keys, and
    /// the first that confirms them is the peer. [`poll_failed`](Opening::poll_failed) reports the
    /// others.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`Error::Zrtp`] if the port has such a stream already or the cache
    /// cannot be read, `Error::Dtls` if the port has such a stream or a setting does not fit,
    /// [`Error::NoZrtp`] if both ends have the keys already, or none.
    pub fn begin(self) -> Result<Opening, Error> {
        match &self.security {
            #[cfg(feature = "zrtp")]
            Some(Security::Zrtp(config)) => {
                let config = config.clone();
                self.begin_zrtp(&config)
            }
            #[cfg(feature = "webrtc")]
            Some(Security::Dtls(config)) => {
                let config = config.clone();
                self.begin_dtls(config)
            }
            _ => Err(Error::NoZrtp),
        }
    }

    pub(crate) fn open_agreeing(self) -> Result<MediaStream, Error> {
        let timeout = match &self.security {
            #[cfg(feature = "zrtp")]
            Some(Security::Zrtp(config)) => config.timeout,
            #[cfg(feature = "webrtc")]
            Some(Security::Dtls(config)) => config.timeout,
            _ => Duration::ZERO,
        };
        let mut opening = self.begin()?;
        let stream = opening.wait(timeout)?;
        // The last failure is more specific than a timeout.
        let last = opening.failed.pop_back();
        let timed_out = || last.map_or_else(|| opening.exchange.timed_out(), |(_, error)| error);
        stream.ok_or_else(timed_out)
    }

    #[cfg(feature = "zrtp")]
    fn unsecured(mut self) -> Self {
        self.security = None;
        self
    }
}

impl Opening {
    fn new(builder: StreamBuilder, port: Arc<Port>, exchange: Exchange) -> Self {
        exchange.serve(Instant::now());
        let failed = VecDeque::new();
        Self { builder, port, exchange, stream: None, failed, is_over: false }
    }

    /// Waits until the keys are agreed on, at most for `timeout`.
    ///
    /// Returns `None` after the timeout; `wait` may then be called again. Reads the socket on the
    /// caller's thread.
    ///
    /// # Errors
    /// [`Error::Zrtp`] or `Error::Dtls` if the agreement failed: the peer at the known address did not
    /// answer, or one end refused. Otherwise as [`StreamBuilder::open`](crate::StreamBuilder::open).
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<MediaStream>, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let now = Instant::now();
            let due = self.exchange.serve(now);
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
    #[cfg(feature = "zrtp")]
    pub fn sas(&self) -> Option<SasStatus> {
        self.exchange.channel()?.agreement.sas()
    }

    /// Records whether the strings were found equal; see
    /// [`Session::verify_sas`](crate::Session::verify_sas).
    #[cfg(feature = "zrtp")]
    pub fn verify_sas(&self, are_equal: bool) -> bool {
        self.exchange.channel().is_some_and(|it| it.agreement.verify_sas(are_equal))
    }

    /// Returns the next warning; see
    /// [`Session::poll_zrtp_warning`](crate::Session::poll_zrtp_warning).
    #[cfg(feature = "zrtp")]
    pub fn poll_warning(&self) -> Option<Warning> {
        self.exchange.channel()?.agreement.poll_warning()
    }

    /// Returns the next address that is not the peer's, and the reason.
    ///
    /// Either the policy refused the address or its exchange failed. The stream continues to wait.
    /// The latest 16 are kept.
    pub fn poll_failed(&mut self) -> Option<(SocketAddr, Error)> {
        self.failed.pop_front()
    }

    /// Returns the number of ignored datagrams that are not of the key agreement. If the peer sent them,
    /// it does not agree on keys in this way.
    pub fn datagrams_ignored(&self) -> u64 {
        self.port.ignored().1
    }

    /// Returns the local address of the stream's socket.
    pub fn local_address(&self) -> SocketAddr {
        self.port.local_address()
    }

    /// Handles the events of the agreement; returns whether the stream is ready.
    fn poll(&mut self, now: Instant) -> Result<bool, Error> {
        #[cfg(feature = "zrtp")]
        if let (Some(channel), Some(stream)) = (self.exchange.channel(), &self.stream)
            && stream.statistics().receive.packets > 0
        {
            // RFC 6189 section 4.6: equivalent to a Conf2ACK.
            channel.agreement.note_media(now, channel.id);
        }
        #[cfg(not(feature = "zrtp"))]
        let _ = now;
        while let Some(step) = self.exchange.poll(&self.builder)? {
            match step {
                Step::Keys(security) => {
                    let builder = self.builder.clone().security(*security);
                    self.stream = Some(builder.open_on(self.port.clone())?);
                }
                Step::Ready => return Ok(true),
                #[cfg(feature = "zrtp")]
                Step::Clear => {
                    let builder = self.builder.clone().unsecured();
                    self.stream = Some(builder.open_on(self.port.clone())?);
                    return Ok(true);
                }
                Step::Refused(address, error) => self.note_failed(address, error),
            }
        }
        Ok(false)
    }

    fn note_failed(&mut self, address: SocketAddr, error: Error) {
        if self.failed.len() >= FAILED_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back((address, error));
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.is_over {
            self.port.clear_side_protocol(&self.exchange.side_protocol());
        }
    }
}
