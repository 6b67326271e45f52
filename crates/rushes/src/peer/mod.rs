//! Peers that are entered by offer and answer: browsers, and the servers between them (WebRTC).
//!
//! The two ends exchange an offer and an answer, two texts, by any way that both trust: HTTP (WHIP and
//! WHEP), a message, a file. From these each knows what the other sends and receives, where it may be
//! reached, and by which certificate it is recognised. The ends then look for a path (ICE, RFC 8445),
//! agree on keys on it (DTLS-SRTP, RFC 5764), and carry all their streams on this one path (BUNDLE, RFC
//! 9143). The streams are ordinary ones.
//!
//! ```
//! use rushes::peer::Direction;
//! use rushes::{Codec, Context};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), rushes::Error> {
//! let context = Context::new();
//! let mut camera = context.peer().local_address("127.0.0.1")?.open()?;
//! camera.add(camera.stream(Codec::H264), Direction::SendOnly);
//! let mut monitor = context.peer().local_address("127.0.0.1")?.open()?;
//! monitor.add(monitor.stream(Codec::H264), Direction::RecvOnly);
//!
//! let offer = camera.offer()?;
//! let answer = monitor.answer(&offer)?;
//! camera.set_answer(&answer)?;
//!
//! let monitor = std::thread::spawn(move || monitor.connect(Duration::from_secs(10)).map(|it| (it, monitor)));
//! let mut streams = camera.connect(Duration::from_secs(10))?.expect("connected in time");
//! let (theirs, _monitor) = monitor.join().expect("no panic")?;
//! let mut received = theirs.expect("connected in time");
//!
//! let access_unit = b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80\0\0\0\x01\x65slice";
//! streams[0].stream.push_frame(access_unit, None)?;
//! streams[0].stream.push_frame(access_unit, None)?;
//! let frame = received[0].stream.pull_frame(Duration::from_secs(1))?.expect("a frame");
//! assert_eq!(frame.data(), access_unit);
//! # Ok(())
//! # }
//! ```

mod builder;
mod further;
mod handle;
mod local;
mod polled;
mod streams;
mod transport;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_proto::sdp::Encoding;
pub use rushes_proto::sdp::{Direction, MediaKind};
pub use rushes_webrtc::dtls::{Certificate, Fingerprint};
use rushes_webrtc::negotiation::Negotiated;
pub use rushes_webrtc::{dtls, ice, negotiation};

pub use self::builder::PeerBuilder;
pub use self::handle::PeerHandle;
use self::local::{Choice, LocalStream};
pub use self::streams::PeerStream;
pub use self::transport::PeerEvent;
use self::transport::Transport;
use crate::error::Error;
pub use crate::error::PeerError;
use crate::format::Codec;
use crate::port::{Port, SideProtocol};
use crate::setup::{Recovery, Session, StreamBuilder};

/// Longest sleep while waiting: the peer's candidates may come meanwhile.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The minimum that links of IPv6 carry (RFC 8200 section 5), which tunnels keep to.
const MTU: usize = 1280;
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
/// Why a peer is not looked for.
const NO_ICE: &str = "the peer does not use ICE, by which it could be reached";
/// How long an offer or an answer waits for the addresses that STUN and TURN servers tell.
const GATHERING_TIME: Duration = Duration::from_secs(2);

/// One peer: a connection that is set up by offer and answer.
///
/// Either end makes the [`offer`](Self::offer); the other [`answer`](Self::answer)s. Then
/// [`connect`](Self::connect) returns the streams. Threads that push, pull or
/// [wait](crate::StreamSender::wait_until) also answer the peer's checks of the path; if none does, the peer takes the
/// connection for lost after 30 s (RFC 7675). If the peer does not answer, frames are dropped until it does, or the
/// connection has [`ended`](Self::ended). Dropping the `Peer` closes the connection.
#[derive(Debug)]
pub struct Peer {
    session: Session,
    settings: local::Settings,
    port: Arc<Port>,
    transport: Arc<Transport>,
    media: Vec<LocalStream>,
    state: State,
    /// Number of answers to further offers.
    answers: u64,
}

/// How far offer and answer have come.
#[derive(Debug)]
enum State {
    New,
    Offered,
    Agreed(Box<Negotiated>),
    /// The streams were handed over.
    Connected(Box<Negotiated>),
}

impl Peer {
    /// Begins to set up a stream of the peer, with settings of its own; [`add`](Self::add) takes it.
    ///
    /// Its address, ports, payload type, keys and header extensions are agreed on, so that settings of these
    /// have no effect. By default packets have at most 1 280 octets, which every path carries, and lost packets of
    /// video are requested ([`Recovery::On`]).
    pub fn stream(&self, codec: Codec) -> StreamBuilder {
        let builder = self.session.stream(codec).mtu(MTU).rtcp_mux(true);
        if codec.media == "video" { builder.recovery(Recovery::On) } else { builder }
    }

    /// Adds a stream to what is offered or answered, in the order of the calls.
    pub fn add(&mut self, stream: StreamBuilder, direction: Direction) {
        self.media.push(LocalStream::new(direction, Choice { builder: stream, encoding: None }));
    }

    /// Adds a stream as [`add`](Self::add) does, whose media is described by `encoding` (see
    /// [`sdp::encoding_of`](crate::sdp::encoding_of)): with this the peer knows, for example, the H.264
    /// profile of a film.
    pub fn add_described(
        &mut self,
        stream: StreamBuilder,
        direction: Direction,
        encoding: Encoding,
    ) {
        let choice = Choice { builder: stream, encoding: Some(encoding) };
        self.media.push(LocalStream::new(direction, choice));
    }

    /// Adds another format for the stream that was added last: the first one that the peer has, too, is taken. All of
    /// them are video, or all are audio. Without a stream it is added as one that is only received.
    pub fn add_alternative(&mut self, stream: StreamBuilder) {
        match self.media.last_mut() {
            Some(last) => last.choices.push(Choice { builder: stream, encoding: None }),
            None => self.add(stream, Direction::RecvOnly),
        }
    }

    /// Returns the offer (RFC 8866), for the peer to answer.
    ///
    /// With STUN and TURN servers it waits for their answers, at most 2 s.
    ///
    /// # Errors
    /// [`PeerError::Order`] if there is an offer or an answer already; the error of an invalid setting.
    pub fn offer(&mut self) -> Result<String, Error> {
        if !matches!(self.state, State::New) {
            return Err(PeerError::Order("there is an offer or an answer already").into());
        }
        self.gather()?;
        let local = self.local_session()?;
        let offer = negotiation::offer(&local).map_err(PeerError::from)?;
        self.state = State::Offered;
        Ok(offer.write())
    }

    /// Takes the peer's answer to the [`offer`](Self::offer).
    ///
    /// # Errors
    /// [`Error::Peer`] if the answer cannot be read, or does not fit the offer.
    pub fn set_answer(&mut self, answer: &str) -> Result<(), Error> {
        if !matches!(self.state, State::Offered) {
            return Err(PeerError::Order("an answer without an offer").into());
        }
        let answer = negotiation::read(answer).map_err(PeerError::from)?;
        let agreed = negotiation::accept(&self.local_session()?, &answer);
        let agreed = agreed.map_err(PeerError::from)?;
        self.begin(agreed, true)
    }

    /// Takes the peer's offer, and returns the answer for it.
    ///
    /// Streams are matched with the offer's media in order, by kind.
    ///
    /// Once something is agreed on, the peer may offer again (RFC 3264 section 8), at any time: with further addresses,
    /// or with other credentials of ICE, with which both ends look for a path again. Keys and streams stay. Media that
    /// such an offer adds is refused in the answer, if no stream of this end fits it.
    ///
    /// # Errors
    /// [`Error::Peer`] if the offer cannot be read, or nothing of it can be agreed on; otherwise as
    /// [`offer`](Self::offer). [`PeerError::Order`] if a further offer changes directions, formats or keys: the
    /// connection goes on as before.
    pub fn answer(&mut self, offer: &str) -> Result<String, Error> {
        match self.state {
            State::New => {}
            State::Offered => {
                return Err(PeerError::Order("there is an offer already").into());
            }
            State::Agreed(_) | State::Connected(_) => return self.answer_again(offer),
        }
        let offer = negotiation::read(offer).map_err(PeerError::from)?;
        self.gather()?;
        let (answer, agreed) =
            negotiation::answer(&self.local_session()?, &offer).map_err(PeerError::from)?;
        self.begin(agreed, false)?;
        Ok(answer.write())
    }

    /// Waits until a path and the keys are found, at most for `timeout`, and returns the streams, in the
    /// order in which the description has them. Media that was not agreed on has no stream.
    ///
    /// Returns `None` after the timeout; `connect` may then be called again. Reads the socket on the
    /// caller's thread.
    ///
    /// # Errors
    /// [`Error::Peer`] if there is no path, or the peer is not the one that the description names.
    pub fn connect(&mut self, timeout: Duration) -> Result<Option<Vec<PeerStream>>, Error> {
        if !matches!(self.state, State::Agreed(_)) {
            return Err(PeerError::Order("nothing is agreed on yet, or the streams exist").into());
        }
        let keys = self.run_until(timeout, Transport::take_keys)?;
        let Some(keys) = keys else { return Ok(None) };
        let State::Agreed(agreed) = std::mem::replace(&mut self.state, State::New) else {
            return Ok(None);
        };
        let opened = streams::open(self, &agreed, &keys);
        self.state = State::Connected(agreed);
        opened.map(Some)
    }

    /// Returns a handle for other threads.
    pub fn handle(&self) -> PeerHandle {
        PeerHandle { transport: self.transport.clone() }
    }

    /// Adds an address of the peer that was found after its description was written (trickle ICE, RFC 8838):
    /// the value of `a=candidate`. Addresses that cannot be used (TCP, names of mDNS) are left out.
    pub fn add_candidate(&self, candidate: &str) {
        self.transport.add_candidate(candidate);
    }

    /// Asks a STUN server for the address under which this machine is seen from outside, as
    /// [`PeerBuilder::stun_server`] does: for one that the peer's server recommends. One that cannot be used is left
    /// out.
    pub fn add_stun_server(&self, address: SocketAddr) {
        let now = Instant::now();
        let added = self.transport.with_agent(now, |agent| agent.add_stun_server(address, now));
        if let Err(error) = added {
            tracing::debug!(%error, "a STUN server is left out");
        }
    }

    /// Asks a TURN server for an address, as [`PeerBuilder::turn_server`] does: for one that the peer's server
    /// recommends. The peer learns of the address when it is reached from there.
    ///
    /// # Errors
    /// [`Error::Peer`] if there is a TURN server already, or if this one cannot be used.
    pub fn add_turn_server(
        &self,
        address: SocketAddr,
        username: &str,
        password: &str,
    ) -> Result<(), Error> {
        let server = ice::TurnServer::new(address, username, password).map_err(PeerError::from)?;
        let now = Instant::now();
        let added = self.transport.with_agent(now, |agent| agent.add_turn_server(server, now));
        Ok(added.map_err(PeerError::from)?)
    }

    /// Returns the next event of the connection.
    pub fn poll_event(&self) -> Option<PeerEvent> {
        self.transport.poll_event()
    }

    /// Sets the function that is called after each further [event](Self::poll_event); it replaces an earlier one.
    ///
    /// It is called under a lock of the connection, on the thread that reads the port or calls a method of the peer
    /// or its handle. It must only wake the thread that polls the events, and call neither the peer nor its streams.
    /// Poll once after setting it: events from before are not reported.
    pub fn on_event(&self, wake: impl Fn() + Send + 'static) {
        self.transport.wake_with(Box::new(wake));
    }

    /// Returns whether a STUN or TURN server has yet to answer. One that does not is given up after 39.5 seconds.
    pub fn is_gathering(&self) -> bool {
        self.transport.with_agent(Instant::now(), |agent| agent.is_gathering())
    }

    /// Returns whether a path to the peer is found and answers.
    pub fn is_connected(&self) -> bool {
        self.transport.is_connected()
    }

    /// Returns why the connection has ended, if it has.
    pub fn ended(&self) -> Option<PeerError> {
        self.transport.ended()
    }

    /// Waits for addresses that servers tell.
    fn gather(&self) -> Result<(), Error> {
        let is_gathered = |transport: &Transport| {
            let gathering = transport.with_agent(Instant::now(), |agent| agent.is_gathering());
            (!gathering).then_some(())
        };
        self.run_until(GATHERING_TIME, is_gathered).map(|_| ())
    }

    /// Reads the socket until `is_done` returns something, at most for `timeout`.
    fn run_until<T>(
        &self,
        timeout: Duration,
        is_done: impl Fn(&Transport) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let deadline = Instant::now() + timeout.min(LONGEST);
        loop {
            let now = Instant::now();
            let due = self.transport.serve(now);
            if let Some(outcome) = is_done(&self.transport) {
                return Ok(Some(outcome));
            }
            if let Some(error) = self.transport.ended() {
                return Err(error.into());
            }
            if now >= deadline {
                return Ok(None);
            }
            let until = due.unwrap_or(deadline).min(now + POLL_INTERVAL).min(deadline);
            self.port.run_once(until)?;
        }
    }

    /// Looks for the peer.
    fn begin(&mut self, agreed: Negotiated, has_offered: bool) -> Result<(), Error> {
        let config = self.handshake(&agreed);
        let now = Instant::now();
        let remote = agreed.remote.ice.as_ref().ok_or(PeerError::Order(NO_ICE))?;
        let credentials = ice::Credentials::new(&remote.ufrag, &remote.password);
        let credentials = credentials.map_err(PeerError::from)?;
        // A full agent controls one of a server that only answers (RFC 8445 section 6.1.1).
        let is_controlling = !self.settings.is_lite && (has_offered || remote.is_lite);
        let begun = self.transport.with_agent(now, |agent| {
            agent.set_controlling(is_controlling);
            agent.set_pacing(local::PACING.max(remote.pacing.unwrap_or(ice::PACING)));
            agent.set_remote_credentials(&credentials, now)?;
            for candidate in remote.candidates.iter().filter_map(|text| text.parse().ok()) {
                // The limit of candidates leaves further ones out.
                let _ = agent.add_remote(&candidate, now);
            }
            if remote.end_of_candidates {
                agent.end_of_candidates();
            }
            Ok::<_, ice::AgentError>(())
        });
        begun.map_err(PeerError::from)?;
        let described = self.described(&agreed);
        self.transport.begin(now, credentials, described, config);
        self.state = State::Agreed(Box::new(agreed));
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.transport.close(Instant::now());
    }
}
