//! Further offers of a peer with which everything is agreed on (RFC 3264 section 8).

use std::time::Instant;

use rushes_webrtc::ice::Credentials;
use rushes_webrtc::negotiation::{self, AgreedFormat, AgreedMedia, Negotiated, RemoteIce};

use super::local::random;
use super::{NO_ICE, Peer, State};
use crate::error::{Error, PeerError};

impl Peer {
    /// Answers a further offer that changes only addresses or ICE credentials. Any other is refused, and changes
    /// nothing.
    pub(super) fn answer_again(&mut self, offer: &str) -> Result<String, Error> {
        if let Some(error) = self.ended() {
            return Err(error.into());
        }
        let offer = negotiation::read(offer).map_err(PeerError::from)?;
        let mut local = self.local_session()?;
        let (State::Agreed(agreed) | State::Connected(agreed)) = &self.state else {
            return Err(PeerError::Order("nothing is agreed on yet").into());
        };
        local.role = agreed.role;
        let (_, wanted) = negotiation::answer(&local, &offer).map_err(PeerError::from)?;
        check(agreed, &wanted)?;
        self.follow(wanted.remote.ice.as_ref().ok_or(PeerError::Order(NO_ICE))?)?;
        self.answers += 1;
        local.session_version = self.answers;
        if let Some(ice) = &mut local.ice {
            let own = self.transport.credentials();
            (ice.ufrag, ice.password) = (own.ufrag().to_owned(), own.password().to_owned());
            let candidates = self.transport.local_candidates();
            ice.candidates = candidates.iter().map(ToString::to_string).collect();
        }
        let (answer, _) = negotiation::answer(&local, &offer).map_err(PeerError::from)?;
        Ok(answer.write())
    }

    /// Takes the addresses in a further offer, and looks for a path again if it has other credentials.
    fn follow(&self, remote: &RemoteIce) -> Result<(), Error> {
        let credentials = Credentials::new(&remote.ufrag, &remote.password);
        let credentials = credentials.map_err(PeerError::from)?;
        let now = Instant::now();
        if self.transport.is_restarted_by(&credentials) {
            let own = Credentials::from_random(&random()?);
            self.transport.restart(now, &own, &credentials).map_err(PeerError::from)?;
        }
        self.transport.add_candidates(now, remote.candidates.iter().map(String::as_str));
        if remote.end_of_candidates {
            self.transport.with_agent(now, rushes_webrtc::ice::Agent::end_of_candidates);
        }
        Ok(())
    }
}

/// Checks that a further offer changes neither media nor keys.
fn check(agreed: &Negotiated, wanted: &Negotiated) -> Result<(), PeerError> {
    let is_known = |text: &String| {
        agreed.remote.fingerprints.iter().any(|known| known.eq_ignore_ascii_case(text))
    };
    if !wanted.remote.fingerprints.iter().all(is_known)
        || agreed.remote.tls_id != wanted.remote.tls_id
        || agreed.role != wanted.role
    {
        return Err(PeerError::Order(
            "the further offer wants other keys (fingerprint, tls-id or setup): begin a new connection",
        ));
    }
    if wanted.media.len() < agreed.media.len() {
        return Err(PeerError::Order("the further offer has less media than the first one"));
    }
    let added = wanted.media.iter().skip(agreed.media.len());
    if added.into_iter().any(|media| media.outcome.is_ok()) {
        return Err(PeerError::Order(
            "the further offer adds media: begin a new connection with all of it",
        ));
    }
    for (before, after) in agreed.media.iter().zip(&wanted.media) {
        let is_same = match (&before.outcome, &after.outcome) {
            (Ok(before), Ok(after)) if before.direction != after.direction => {
                return Err(PeerError::Order(
                    "the further offer changes the direction of media: begin a new connection",
                ));
            }
            (Ok(before), Ok(after)) => is_same_media(before, after),
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if !is_same || before.mid != after.mid || before.kind != after.kind {
            return Err(PeerError::Order(
                "the further offer changes media or formats: begin a new connection",
            ));
        }
    }
    Ok(())
}

/// Returns whether packets are sent and received as before.
fn is_same_media(before: &AgreedMedia, after: &AgreedMedia) -> bool {
    let is_same_format = |a: &AgreedFormat, b: &AgreedFormat| {
        (a.local, a.payload_type, a.rtx, &a.remote) == (b.local, b.payload_type, b.rtx, &b.remote)
    };
    let is_sent_alike = !before.sends() || is_same_format(&before.send, &after.send);
    let is_received =
        |format: &AgreedFormat| before.receive.iter().any(|known| is_same_format(known, format));
    before.local == after.local
        && is_sent_alike
        && after.receive.iter().all(is_received)
        && before.extensions == after.extensions
        && before.reduced_size == after.reduced_size
        && (before.remote_ssrc, before.remote_rtx_ssrc)
            == (after.remote_ssrc, after.remote_rtx_ssrc)
}
