//! The responder's steps: the answer to a Commit, and the handling of the initiator's part (RFC
//! 6189 sections 4.2, 4.4.1.2, 4.4.2.3 and 4.4.3).

use std::time::Instant;

use super::agree::ResponderKey;
use super::chain::Image;
use super::commit::{Commit, CommitKey};
use super::conclude::Agreement;
use super::dh_part::{DhPart, SecretIds};
use super::error_code::ErrorCode;
use super::event::Warning;
use super::exchange::Fault::{self, Fatal};
use super::exchange::{Answered, Exchange, RESPONDER_TIMEOUT, State};
use super::kdf::Role;
use super::key_agreement::KeyAgreement;
use super::message::Message;
use super::negotiate::{Choice, accept, select};
use super::peer_policy::PeerProof;
use super::secrets::{Ids, named_preshared_key};
use super::session_state::{Common, Contention, Rank};
use crate::crypto::{AgreementError, hash, tags_are_equal};

/// Maximum number of Commits that are ignored because another stream became secure first: more than
/// a sender repeats before that, and few enough that a persistent sender gets an Error.
const LATE_COMMITS_MAX: u8 = 4;

impl Exchange {
    pub(super) fn on_commit(
        &mut self,
        now: Instant,
        commit: &Commit<'_>,
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        if self.repeat_answer(octets)
            || !matches!(self.state, State::Discovering | State::CommitSent(_) | State::Clear)
        {
            return Ok(());
        }
        if commit.zid != self.peer.hello.zid {
            common.warn(self.id, Warning::Forged);
            return Ok(());
        }
        if !self.reveal(2, commit.h2, common)? {
            return Ok(());
        }
        self.note_acked();
        self.deadline = None;
        let choice = accept(&common.config, commit).map_err(Fatal)?;
        if !self.peer_prevails(commit, common)? {
            return Ok(());
        }
        match &commit.key {
            CommitKey::Multistream { nonce } => {
                self.answer_multistream(now, choice, *nonce, octets, common)
            }
            CommitKey::Preshared { nonce, key_id } => {
                let id = (*nonce, *key_id);
                self.answer_preshared(now, choice, id, octets, common)
            }
            CommitKey::Dh { hvi } => self.answer_agreement(now, choice, *hvi, None, octets, common),
            CommitKey::Kem { hvi, pvi } => {
                self.answer_agreement(now, choice, *hvi, Some(pvi), octets, common)
            }
        }
    }

    /// Repeats the answer to a repeated Commit; returns `false` if the Commit is new.
    fn repeat_answer(&mut self, octets: &[u8]) -> bool {
        match &self.state {
            State::Part1Sent(answered) if answered.commit == octets => {
                self.link.send(&answered.part1);
                true
            }
            // Without a key agreement, the answer is a Confirm1.
            State::Confirm1Sent(agreed) if agreed.commit == octets => {
                let has_part = !matches!(
                    agreed.keys.choice.key_agreement,
                    KeyAgreement::Prsh | KeyAgreement::Mult
                );
                if let (false, Some(confirm)) = (has_part, &agreed.confirm) {
                    self.link.send(confirm);
                }
                true
            }
            _ => false,
        }
    }

    /// Returns whether the peer's Commit prevails over ours.
    fn peer_prevails(&mut self, commit: &Commit<'_>, common: &mut Common) -> Result<bool, Fault> {
        let theirs = match &commit.key {
            CommitKey::Dh { hvi } | CommitKey::Kem { hvi, .. } => Rank::Agreement(*hvi),
            CommitKey::Preshared { nonce, .. } => Rank::Preshared(*nonce),
            CommitKey::Multistream { nonce } => Rank::Multistream(*nonce),
        };
        let agrees = !matches!(theirs, Rank::Multistream(_));
        if agrees && common.secured.is_some() && self.late_commits < LATE_COMMITS_MAX {
            // Streams may have different paths: this Commit lost to ours on the stream that is now
            // secure, but arrived after that. The peer continues in Multistream mode.
            self.late_commits += 1;
            return Ok(false);
        }
        let is_mitm = self.peer.hello.mitm;
        if let State::CommitSent(committed) = &self.state {
            match committed.rank.against(theirs) {
                // Section 4.2: a peer that declares itself a man in the middle is the responder.
                _ if is_mitm
                    && matches!(
                        (committed.rank, theirs),
                        (Rank::Preshared(_), Rank::Preshared(_))
                    ) =>
                {
                    return Ok(false);
                }
                Contention::Wins => return Ok(false),
                Contention::Incompatible => return Err(Fatal(ErrorCode::CriticalSoftware)),
                Contention::Loses => {
                    self.retry = None;
                    self.state = State::Discovering;
                    common.release(self.number);
                }
            }
        }
        if let Rank::Multistream(_) = theirs {
            return Ok(true);
        }
        // Section 4.4.3: only the first stream may agree on a key.
        if common.secured.is_some() {
            return Err(Fatal(ErrorCode::KeyExchange));
        }
        if let Some(other) = common.rival(&self.exchange_id()) {
            // The same rules apply between streams (section 4.2).
            let loses = other.rank.is_some_and(|own| own.against(theirs) == Contention::Loses);
            if !loses {
                return Ok(false);
            }
            common.withdrawn = Some(other.exchange_id);
        }
        common.note_agreeing(self.exchange_id(), None);
        Ok(true)
    }

    /// Withdraws our Commit and waits, because the peer's Commit on another stream prevails.
    pub(super) fn withdraw(&mut self, now: Instant) {
        if let State::CommitSent(_) = self.state {
            self.retry = None;
            self.deadline = Some(now + RESPONDER_TIMEOUT);
            self.state = State::Discovering;
        }
    }

    fn keep_commit(&mut self, octets: &[u8]) {
        self.peer.chain.keep(1, octets);
    }

    fn answer_agreement(
        &mut self,
        now: Instant,
        choice: Choice,
        hvi: Image,
        pvi: Option<&[u8]>,
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        let peer = &self.peer;
        let retained = common.store.load(&peer.hello.zid);
        let key =
            ResponderKey::generate(choice.key_agreement, choice.hash, pvi, &mut *common.entropy);
        let key = key.map_err(|error| {
            let is_ours = error == AgreementError::Refused;
            Fatal(if is_ours { ErrorCode::CriticalSoftware } else { ErrorCode::BadPublicValue })
        })?;
        let h3 = self.chain.image(3);
        let ids = Ids::of(choice.hash, Role::Responder, &h3, &retained, common.aux());
        let ids = ids.to_message(&mut *common.entropy);
        let part = DhPart { h1: self.chain.image(1), ids, pv: key.public(), mac: [0; 8] };
        let mut part1 = Vec::new();
        match key {
            ResponderKey::Dh(_) => Message::DhPart1(part).write(&mut part1),
            ResponderKey::Kem(..) => Message::KemPart1(part).write(&mut part1),
        }
        self.chain.sign(0, &mut part1);
        self.keep_commit(octets);
        let part1 = self.link.prepare(part1);
        self.link.send(&part1);
        let commit = octets.to_vec();
        let answered = Answered { choice, hvi, commit, part1, key, retained };
        self.state = State::Part1Sent(Box::new(answered));
        self.deadline = Some(now + RESPONDER_TIMEOUT);
        Ok(())
    }

    /// Handles the initiator's part: `part` for Diffie-Hellman, `None` for key encapsulation.
    pub(super) fn on_part2(
        &mut self,
        now: Instant,
        h1: Image,
        ids: &SecretIds,
        part: Option<&DhPart<'_>>,
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        if let State::Confirm1Sent(agreed) = &self.state {
            if let Some(confirm) = &agreed.confirm {
                self.link.send(confirm);
            }
            return Ok(());
        }
        let State::Part1Sent(answered) = &self.state else { return Ok(()) };
        let is_kem = matches!(answered.key, ResponderKey::Kem(..));
        if is_kem == part.is_some() || !self.reveal(1, h1, common)? {
            return Ok(());
        }
        let state = std::mem::replace(&mut self.state, State::Discovering);
        let State::Part1Sent(answered) = state else { return Ok(()) };
        let Answered { choice, hvi, commit, part1, key, retained } = *answered;
        // The part is compared with the commitment before any of its contents are trusted.
        let digest = hash(choice.hash.algorithm(), &[octets, &self.hello.message]);
        if !tags_are_equal(&digest.as_slice()[..32], &hvi) {
            return Err(Fatal(ErrorCode::HashedData));
        }
        self.peer.chain.keep(0, octets);
        let malformed = Fatal(ErrorCode::MalformedPacket);
        let pvi = match part {
            Some(part) => part.value(choice.key_agreement.initiator_len()).ok_or(malformed)?,
            None => &[],
        };
        let result = key.agree(pvi).map_err(|_| Fatal(ErrorCode::BadPublicValue))?;
        let agreement = Agreement {
            role: Role::Responder,
            choice,
            result,
            ids,
            messages: [&commit, &part1.message, octets],
            retained,
        };
        let agreed = self.conclude(agreement, common)?;
        self.confirm_as_responder(now, agreed, common)
    }

    fn answer_multistream(
        &mut self,
        now: Instant,
        choice: Choice,
        nonce: [u8; 16],
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        if common.secured.is_none() {
            // The peer may be a step ahead of us on the first stream. It will repeat the Commit.
            let is_coming = common.rival(&self.exchange_id()).is_some();
            return if is_coming { Ok(()) } else { Err(Fatal(ErrorCode::NoSharedSecret)) };
        }
        if !common.use_nonce(nonce) {
            return Err(Fatal(ErrorCode::NonceReuse));
        }
        let derived =
            self.derive_without_agreement(Role::Responder, choice, octets, None, common)?;
        self.keep_commit(octets);
        let agreed = Self::keyed(Role::Responder, choice, derived, octets.to_vec())?;
        self.confirm_as_responder(now, agreed, common)
    }

    fn answer_preshared(
        &mut self,
        now: Instant,
        choice: Choice,
        (nonce, key_id): ([u8; 16], [u8; 8]),
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        let peer = &self.peer;
        let retained = common.store.load(&peer.hello.zid);
        let key = named_preshared_key(&common.config, choice.hash, &retained, key_id);
        let Some(key) = key else {
            // Section 4.4.2.3: this end initiates a key agreement instead.
            if common.config.is_passive {
                return Err(Fatal(ErrorCode::NoSharedSecret));
            }
            let choice = select(&common.config, &peer.hello).map_err(Fatal)?;
            return self.commit_agreement(now, choice, retained, common);
        };
        if !common.use_nonce(nonce) {
            return Err(Fatal(ErrorCode::NonceReuse));
        }
        let proof = PeerProof { retained: &retained, continues: true, has_aux_secret: false };
        Self::check_peer(&proof, common)?;
        let derived =
            self.derive_without_agreement(Role::Responder, choice, octets, Some(&key), common)?;
        self.keep_commit(octets);
        let mut agreed = Self::keyed(Role::Responder, choice, derived, octets.to_vec())?;
        (agreed.retained, agreed.continues) = (Some(retained), true);
        self.confirm_as_responder(now, agreed, common)
    }
}
