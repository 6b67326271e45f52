//! The initiator's steps: Commit, and the handling of the responder's answer (RFC 6189 sections
//! 4.4.1.1, 4.4.1.3, 4.4.2.2 and 4.4.3.1).

use std::time::Instant;

use super::agree::InitiatorKey;
use super::chain::Image;
use super::commit::{Commit, CommitKey};
use super::conclude::Agreement;
use super::dh_part::{DhPart, KemPart2};
use super::error_code::ErrorCode;
use super::exchange::Fault::{self, Fatal};
use super::exchange::{Committed, Exchange, State};
use super::kdf::Role;
use super::key_agreement::KeyAgreement;
use super::message::Message;
use super::negotiate::{Choice, select};
use super::retained::Retained;
use super::secrets::{Ids, key_id, own_preshared_key};
use super::session_state::{Common, ExchangeId, Rank};
use crate::crypto::{Digest, hash};

impl Exchange {
    /// Sends a Commit, if the exchange is ready for one and this end may initiate.
    pub(super) fn begin(&mut self, now: Instant, common: &mut Common) -> Result<(), Fault> {
        let is_waiting =
            matches!(self.state, State::Discovering) && self.is_acked && self.may_be_peer();
        // A Commit may be long, and generating a key pair takes time: neither is spent on an
        // unproved address. A Commit from such an address is answered.
        if !is_waiting || common.config.is_passive || !self.link.credit.is_proved() {
            return Ok(());
        }
        let peer = &self.peer;
        if let Some(secured) = &common.secured {
            // Section 4.4.3: all streams of a session have the same peer.
            if secured.peer == peer.hello.zid {
                self.commit_multistream(now, common);
            }
            return Ok(());
        }
        if common.rival(&self.exchange_id()).is_some() {
            return Ok(());
        }
        let choice = select(&common.config, &peer.hello).map_err(Fatal)?;
        let offers = peer.hello.key_agreements.as_slice().contains(&KeyAgreement::Prsh);
        let retained = common.store.load(&peer.hello.zid);
        if common.config.uses_preshared()
            && offers
            && let Some(key) = own_preshared_key(&common.config, choice.hash, &retained)
        {
            self.commit_preshared(now, choice, retained, key, common);
            return Ok(());
        }
        self.commit_agreement(now, choice, retained, common)
    }

    /// Sends a Commit to a key agreement, with a fresh key pair.
    pub(super) fn commit_agreement(
        &mut self,
        now: Instant,
        choice: Choice,
        retained: Retained,
        common: &mut Common,
    ) -> Result<(), Fault> {
        let peer = &self.peer;
        let software = |_| Fatal(ErrorCode::CriticalSoftware);
        let key =
            InitiatorKey::generate(choice.key_agreement, &mut *common.entropy).map_err(software)?;
        let h3 = self.chain.image(3);
        let ids = Ids::of(choice.hash, Role::Initiator, &h3, &retained, common.aux());
        let ids = ids.to_message(&mut *common.entropy);
        let (h1, mac) = (self.chain.image(1), [0; 8]);
        let mut part2 = Vec::new();
        if let InitiatorKey::Kem(_) = key {
            let ni = common.random();
            Message::KemPart2(KemPart2 { h1, ids, ni, mac }).write(&mut part2);
        } else {
            Message::DhPart2(DhPart { h1, ids, pv: key.public(), mac }).write(&mut part2);
        }
        self.chain.sign(0, &mut part2);
        let mut hvi: Image = [0; 32];
        let digest = hash(choice.hash.algorithm(), &[&part2, &peer.octets]);
        hvi.copy_from_slice(&digest.as_slice()[..32]);
        let commit_key = match &key {
            InitiatorKey::Dh(_) => CommitKey::Dh { hvi },
            InitiatorKey::Kem(_) => CommitKey::Kem { hvi, pvi: key.public() },
        };
        let commit = self.write_commit(choice, commit_key, common);
        let rank = Rank::Agreement(hvi);
        let key = Some(key);
        let committed = Committed { choice, rank, commit, part2, key, preshared: None, retained };
        common.note_agreeing(self.exchange_id(), Some(rank));
        self.send_commit(now, committed);
        Ok(())
    }

    fn commit_preshared(
        &mut self,
        now: Instant,
        choice: Choice,
        retained: Retained,
        key: Digest,
        common: &mut Common,
    ) {
        let choice = Choice { key_agreement: KeyAgreement::Prsh, ..choice };
        let nonce = common.random();
        common.use_nonce(nonce);
        let key_id = key_id(choice.hash, &key);
        let commit = self.write_commit(choice, CommitKey::Preshared { nonce, key_id }, common);
        let (rank, preshared) = (Rank::Preshared(nonce), Some(key));
        let part2 = Vec::new();
        let committed = Committed { choice, rank, commit, part2, key: None, preshared, retained };
        common.note_agreeing(self.exchange_id(), Some(rank));
        self.send_commit(now, committed);
    }

    pub(super) fn commit_multistream(&mut self, now: Instant, common: &mut Common) {
        let Some(choice) = common.secured.as_ref().map(|secured| secured.choice) else {
            return;
        };
        let choice = Choice { key_agreement: KeyAgreement::Mult, ..choice };
        let nonce = common.random();
        common.use_nonce(nonce);
        let commit = self.write_commit(choice, CommitKey::Multistream { nonce }, common);
        let committed = Committed {
            choice,
            rank: Rank::Multistream(nonce),
            commit,
            part2: Vec::new(),
            key: None,
            preshared: None,
            retained: Retained::default(),
        };
        self.send_commit(now, committed);
    }

    fn write_commit(&self, choice: Choice, key: CommitKey<'_>, common: &Common) -> Vec<u8> {
        let mut commit = Vec::new();
        Message::Commit(Commit {
            h2: self.chain.image(2),
            zid: common.config.zid,
            hash: choice.hash,
            cipher: choice.cipher,
            auth_tag: choice.auth_tag,
            key_agreement: choice.key_agreement,
            sas_type: choice.sas_type,
            key,
            mac: [0; 8],
        })
        .write(&mut commit);
        self.chain.sign(1, &mut commit);
        commit
    }

    fn send_commit(&mut self, now: Instant, committed: Committed) {
        self.send_until_answered(now, committed.commit.clone());
        self.deadline = None;
        self.state = State::CommitSent(Box::new(committed));
    }

    /// Handles the responder's public value: derives s0, and sends the part that it committed to.
    pub(super) fn on_part1(
        &mut self,
        now: Instant,
        part: &DhPart<'_>,
        is_kem: bool,
        octets: &[u8],
        common: &mut Common,
    ) -> Result<(), Fault> {
        let State::CommitSent(committed) = &self.state else { return Ok(()) };
        let choice = committed.choice;
        let is_expected = match committed.key {
            Some(InitiatorKey::Dh(_)) => !is_kem,
            Some(InitiatorKey::Kem(_)) => is_kem,
            None => false,
        };
        if !is_expected || !self.reveal(1, part.h1, common)? {
            return Ok(());
        }
        let malformed = Fatal(ErrorCode::MalformedPacket);
        let pvr = part.value(choice.key_agreement.responder_len()).ok_or(malformed)?;
        let state = std::mem::replace(&mut self.state, State::Discovering);
        let State::CommitSent(mut committed) = state else { return Ok(()) };
        self.peer.chain.keep(0, octets);
        let key = committed.key.take().ok_or(Fatal(ErrorCode::CriticalSoftware))?;
        let result = key.agree(choice.hash, pvr).map_err(|_| Fatal(ErrorCode::BadPublicValue))?;
        let Committed { commit, part2, retained, .. } = *committed;
        let agreement = Agreement {
            role: Role::Initiator,
            choice,
            result,
            ids: &part.ids,
            messages: [&commit, octets, &part2],
            retained,
        };
        let agreed = self.conclude(agreement, common)?;
        self.note_begun(common);
        self.send_until_answered(now, part2);
        self.state = State::Part2Sent(Box::new(agreed));
        Ok(())
    }

    /// Records that the responder has answered our Commit, which can no longer be withdrawn.
    pub(super) fn note_begun(&self, common: &mut Common) {
        common.note_begun(self.number);
    }

    pub(super) fn exchange_id(&self) -> ExchangeId {
        ExchangeId {
            exchange: self.number,
            stream: self.id,
            peer: (self.peer.hello.zid, self.address.ip()),
        }
    }
}
