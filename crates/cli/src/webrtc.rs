//! `--whip` and `--whep`: a connection that is entered over HTTP.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::file::MediaWriter;
use rushes::peer::{Peer, PeerError, PeerHandle, PeerStream};
use rushes::{Codec, Context, Error};
use rushes_whip::{Client, ClientOptions, Roots, Session};

use crate::progress::note;
use crate::restarts::Restarts;
use crate::token::EntryArgs;

/// The largest packets that go to a server: every path carries them.
pub(crate) const MTU: usize = 1280;
/// How long a peer may take from the answer to the first path and keys.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(20);
/// Interval between checks whether the connection is still wanted.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A connection that a server of WHIP or WHEP has accepted. It ends when this is dropped.
pub(crate) struct Entered {
    peer: Peer,
    session: Session,
    /// Looks for other paths, once there was one.
    restarts: Option<Restarts>,
}

/// Creates this end of a connection to the server at `url`.
pub(crate) fn peer(context: &Context, args: &EntryArgs, url: &str) -> anyhow::Result<Peer> {
    let mut builder = context.peer();
    if is_here(url) {
        builder = builder.with_loopback();
    }
    Ok(args.ice.read()?.add_to(builder)?.open()?)
}

/// Returns whether a URL names this machine.
fn is_here(url: &str) -> bool {
    let host = url.split("://").nth(1).unwrap_or(url);
    ["localhost", "127.", "[::1]"].iter().any(|name| host.starts_with(name))
}

/// The video that a container may have beside Opus, the preferred format first.
const FILMED: [Codec; 3] = [Codec::H264, Codec::Vp8, Codec::Vp9];

/// Returns the formats of video that a file of this name holds beside Opus, the preferred one first; none if it is
/// no container.
pub(crate) fn videos_in(file: &Path) -> Vec<Codec> {
    let is_held = |codec: &Codec| MediaWriter::holds(file, &[*codec, Codec::Opus]);
    FILMED.into_iter().filter(is_held).collect()
}

/// Waits for the path to a peer and for the keys; returns `None` if it is stopped first.
pub(crate) fn connect(
    peer: &mut Peer,
    is_stopped: impl Fn() -> bool,
) -> anyhow::Result<Option<Vec<PeerStream>>> {
    let start = Instant::now();
    while !is_stopped() {
        if let Some(streams) = peer.connect(POLL_INTERVAL)? {
            return Ok(Some(streams).filter(|_| !is_stopped()));
        }
        if start.elapsed() >= CONNECT_TIME {
            return Err(not_connected(peer));
        }
    }
    Ok(None)
}

/// Says why there is no connection within [`CONNECT_TIME`].
pub(crate) fn not_connected(peer: &Peer) -> anyhow::Error {
    if peer.is_connected() {
        return anyhow::anyhow!(
            "the peer answers, but has not agreed on keys by DTLS within {CONNECT_TIME:?}"
        );
    }
    if peer.is_gathering() {
        tracing::warn!(
            "a STUN or TURN server does not answer: check its address, and that it takes UDP"
        );
    }
    Error::Peer(PeerError::NoPath).into()
}

impl Entered {
    /// Posts the offer of `peer` to the server at `url`, and takes its answer.
    pub(crate) fn new(mut peer: Peer, args: &EntryArgs, url: &str) -> anyhow::Result<Self> {
        let roots = match &args.trust {
            Some(file) => {
                Roots::Pem(std::fs::read(file).with_context(|| file.display().to_string())?)
            }
            None => Roots::System,
        };
        let client = Client::new(ClientOptions { roots, ..ClientOptions::default() })?;
        let token = args.token.read()?;
        let offer = peer.offer()?;
        let session = client.post(url, token.as_ref(), &offer)?;
        let answer = session.answer().to_owned();
        let mut entered = Self { peer, session, restarts: None };
        entered.take_servers(args);
        entered.peer.set_answer(&answer).context("the server's answer")?;
        Ok(entered)
    }

    /// Asks the servers that this one recommends (RFC 9725 section 4.6). The addresses that they report are not in
    /// the offer: the server learns of them when it is reached from there, or by a restart.
    fn take_servers(&mut self, args: &EntryArgs) {
        let found = args.ice.recommended(self.session.ice_servers());
        if let Some(stun) = found.stun {
            self.peer.add_stun_server(stun);
        }
        if let Some(turn) = found.turn
            && let Err(error) =
                self.peer.add_turn_server(turn.address, &turn.user, &turn.password.0)
        {
            note!("the TURN server of {}: {error}", self.session.resource_url());
        }
    }

    /// Waits for the path and the keys; returns `None` if it is stopped first.
    pub(crate) fn connect(
        &mut self,
        is_stopped: impl Fn() -> bool,
    ) -> anyhow::Result<Option<Vec<PeerStream>>> {
        let streams = connect(&mut self.peer, is_stopped)?;
        let is_taken = streams.as_ref().is_none_or(|streams| !streams.is_empty());
        anyhow::ensure!(is_taken, "the server takes none of the media");
        if streams.is_some() {
            self.restarts = Some(Restarts::start(self.peer.handle(), self.session.clone())?);
        }
        Ok(streams)
    }

    /// Returns a handle to the connection.
    pub(crate) fn handle(&self) -> PeerHandle {
        self.peer.handle()
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.restarts = None;
        let deleted = self.session.clone().delete();
        // A server that has ended the connection may have forgotten the session.
        if let (Err(error), None) = (deleted, self.peer.ended()) {
            note!("the server keeps the session: {error}");
        }
    }
}
