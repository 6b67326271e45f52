//! A handle to a peer's connection.

use std::sync::Arc;
use std::time::Instant;

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
        let credentials = match (&fragment.ufrag, &fragment.password) {
            (Some(ufrag), Some(password)) => {
                Some(Credentials::new(ufrag, password).map_err(PeerError::from)?)
            }
            _ => None,
        };
        let restarted = match credentials {
            Some(remote) if self.transport.is_restarted_by(&remote) => {
                let own = Credentials::from_random(&random()?);
                self.transport.restart(now, &own, &remote).map_err(PeerError::from)?;
                Some(own)
            }
            _ => None,
        };
        self.transport.with_agent(now, |agent| {
            for candidate in fragment.candidates().filter_map(|text| text.parse().ok()) {
                // The limit of candidates leaves further ones out.
                let _ = agent.add_remote(&candidate, now);
            }
            if fragment.is_last() {
                agent.end_of_candidates();
            }
        });
        Ok(restarted.map(|own| self.answer(&fragment, &own)))
    }

    /// Returns the answer to a fragment that restarts ICE: our credentials and addresses.
    fn answer(&self, offered: &Fragment, own: &Credentials) -> String {
        let mut media = offered.media.first().cloned().unwrap_or_default();
        let candidates = self.transport.local_candidates();
        media.candidates = candidates.iter().map(ToString::to_string).collect();
        let now = Instant::now();
        media.end_of_candidates = !self.transport.with_agent(now, |agent| agent.is_gathering());
        let answer = Fragment {
            ufrag: Some(own.ufrag().to_owned()),
            password: Some(own.password().to_owned()),
            media: vec![media],
            ..Fragment::default()
        };
        answer.write()
    }
}
