//! A handle to a peer's connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_webrtc::ice::Credentials;
use rushes_webrtc::negotiation::Fragment;

use super::local::random;
use super::transport::Transport;
use crate::error::{Error, PeerError};

/// A handle to a peer's connection for use on any thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct PeerHandle {
    pub(super) transport: Arc<Transport>,
}

impl PeerHandle {
    /// Returns whether a path to the peer is found and answers.
    pub fn is_connected(&self) -> bool {
        self.transport.is_connected()
    }

    /// Returns why the connection has ended, if it has.
    pub fn ended(&self) -> Option<PeerError> {
        self.transport.ended()
    }

    /// Adds an address of the peer, as [`Peer::add_candidate`](super::Peer::add_candidate) does.
    pub fn add_candidate(&self, candidate: &str) {
        self.transport.add_candidate(candidate);
    }

    /// Takes a fragment of a description (RFC 8840 section 9), as WHIP and WHEP carry them: further addresses of
    /// the peer, or new credentials, with which both ends look for a path again (ICE restart, RFC 8445 section 9).
    /// After a restart, returns the fragment that is the answer.
    ///
    /// Media goes on over the old path until a new one is found.
    ///
    /// # Errors
    /// [`Error::Peer`] if the fragment cannot be read, or its credentials cannot be used.
    pub fn handle_fragment(&self, fragment: &str) -> Result<Option<String>, Error> {
        let fragment = Fragment::parse(fragment).map_err(PeerError::from)?;
        let now = Instant::now();
        let restarted = match credentials(&fragment)? {
            Some(remote) if self.transport.is_restarted_by(&remote) => {
                let own = Credentials::from_random(&random()?);
                self.transport.restart(now, &own, &remote).map_err(PeerError::from)?;
                Some(own)
            }
            _ => None,
        };
        self.add_candidates(now, &fragment);
        Ok(restarted.map(|own| self.answer(&fragment, &own)))
    }

    /// Offers a restart of ICE (RFC 8445 section 9): returns a fragment with new credentials and the addresses of this
    /// end, those included that this machine has got since. WHIP and WHEP carry it in a PATCH (RFC 9725 section 4.3.3);
    /// [`set_restart_answer`](Self::set_restart_answer) takes what the peer answers.
    ///
    /// Nothing else changes before that, so that an offer may be refused or lost; a further one replaces it. It
    /// helps while the connection has not [`ended`](Self::ended): up to about 69 s after the peer's last answer.
    ///
    /// # Errors
    /// [`PeerError::Order`] before offer and answer; why the connection has ended, if it has; [`Error::Random`] if the
    /// operating system returns no random numbers.
    pub fn offer_restart(&self) -> Result<String, Error> {
        let own = Credentials::from_random(&random()?);
        let mut fragment = self.transport.offer_restart(own.clone())?;
        self.transport.add_local_addresses(Instant::now());
        let candidates = self.transport.local_candidates();
        self.transport.note_told(&candidates);
        if let Some(media) = fragment.media.first_mut() {
            let candidates = candidates.into_iter();
            media.candidates = candidates.map(|it| it.with_ufrag(&own).to_string()).collect();
        }
        Ok(write(fragment, &own))
    }

    /// Returns the addresses of this end that STUN and TURN servers have reported since the last
    /// [restart](Self::offer_restart), each once, as a fragment that WHIP and WHEP carry in a PATCH (RFC 9725 section
    /// 4.3.2). `None` if there are none, which may change as long as the servers have not answered.
    pub fn late_candidates(&self) -> Option<String> {
        let (fragment, own) = self.transport.late_candidates()?;
        Some(write(fragment, &own))
    }

    /// Takes the peer's answer to [`offer_restart`](Self::offer_restart): both ends look for a path with the new
    /// credentials, and with the addresses in the two fragments only. The keys and the streams stay.
    ///
    /// Media goes on over the old path until a new one is found. An answer that is refused changes nothing.
    ///
    /// # Errors
    /// [`PeerError::Order`] without an offer, or if the answer has no credentials; otherwise [`Error::Peer`] if it
    /// cannot be read, if its credentials cannot be used, or if the connection has ended.
    pub fn set_restart_answer(&self, fragment: &str) -> Result<(), Error> {
        let fragment = Fragment::parse(fragment).map_err(PeerError::from)?;
        let remote = credentials(&fragment)?;
        let remote = remote.ok_or(PeerError::Order("the restart of ICE has no credentials"))?;
        let now = Instant::now();
        self.transport.finish_restart(now, &remote)?;
        self.add_candidates(now, &fragment);
        Ok(())
    }

    /// Returns how long the peer has not answered on the path that is used; `None` while there is none.
    ///
    /// The peer is asked each 4 s by threads that push, pull or [wait](crate::StreamSender::wait_until). From 10 s on
    /// (two unanswered checks take 9 s) a [restart](Self::offer_restart) is worthwhile; after 30 s the path is given up.
    pub fn silence(&self) -> Option<Duration> {
        self.transport.silence(Instant::now())
    }

    fn add_candidates(&self, now: Instant, fragment: &Fragment) {
        self.transport.with_agent(now, |agent| {
            for candidate in fragment.candidates().filter_map(|text| text.parse().ok()) {
                // The limit of candidates leaves further ones out.
                let _ = agent.add_remote(&candidate, now);
            }
            if fragment.is_last() {
                agent.end_of_candidates();
            }
        });
    }

    /// Returns the answer to a fragment that restarts ICE: our credentials and addresses.
    fn answer(&self, offered: &Fragment, own: &Credentials) -> String {
        let mut media = offered.media.first().cloned().unwrap_or_default();
        let candidates = self.transport.local_candidates();
        media.candidates = candidates.iter().map(ToString::to_string).collect();
        let now = Instant::now();
        media.end_of_candidates = !self.transport.with_agent(now, |agent| agent.is_gathering());
        let answer = Fragment {
            is_lite: self.transport.is_lite(),
            has_options: offered.has_options,
            media: vec![media],
            ..Fragment::default()
        };
        write(answer, own)
    }
}

/// Returns the credentials in a fragment, if it has any.
fn credentials(fragment: &Fragment) -> Result<Option<Credentials>, PeerError> {
    let both = fragment.ufrag.as_deref().zip(fragment.password.as_deref());
    Ok(both.map(|(ufrag, password)| Credentials::new(ufrag, password)).transpose()?)
}

/// Writes a fragment with our credentials.
fn write(fragment: Fragment, own: &Credentials) -> String {
    let (ufrag, password) = (Some(own.ufrag().to_owned()), Some(own.password().to_owned()));
    Fragment { ufrag, password, ..fragment }.write()
}
