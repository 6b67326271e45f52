//! Confirm messages, and the secrets kept once both ends have confirmed (RFC 6189 section 4.6).

use core::mem;
use std::time::Instant;

use super::algorithm::{Cipher, Hash};
use super::confirm::{Confirm, ConfirmPlain, Flags};
use super::error_code::ErrorCode;
use super::event::{Event, ExportedKey, SasStatus, StreamKeys, Warning};
use super::exchange::Fault::{self, Fatal};
use super::exchange::{Agreed, Committed, Complete, Exchange, RESPONDER_TIMEOUT, State};
use super::kdf::{Derived, Role, context, kdf, suite};
use super::key_agreement::KeyAgreement;
use super::message::Message;
use super::negotiate::Choice;
use super::peer_policy::PeerProof;
use super::retained::Retained;
use super::sas::Sas;
use super::session_state::{Common, Secured};
use crate::crypto::{CipherFeedback, Digest, hmac, tags_are_equal};

/// The contents of the peer's Confirm.
struct Confirmed {
    flags: Flags,
    expiration: u32,
    is_signed: bool,
}

impl Exchange {
    /// Derives the stream's keys.
    pub(super) fn keyed(
        role: Role,
        choice: Choice,
        derived: Derived,
        commit: Vec<u8>,
    ) -> Result<Agreed, Fault> {
        let suite = suite(choice.cipher, choice.auth_tag).ok_or(Fatal(ErrorCode::AuthTag))?;
        let key = |role| derived.master_key(role, choice.cipher);
        let (send, receive) = (key(role), key(role.other()));
        Ok(Agreed {
            keys: StreamKeys { role, choice, suite, send, receive },
            derived,
            retained: None,
            continues: false,
            shares_aux: false,
            aux_differs: false,
            commit,
            confirm: None,
            peer_is_verified: false,
            peer_allows_clear: false,
            peer_expiration: 0,
        })
    }

    /// Derives s0 without a key agreement: from the preshared key (section 4.4.2.4), or from the
    /// session key (section 4.4.3.2).
    pub(super) fn derive_without_agreement(
        &self,
        role: Role,
        choice: Choice,
        commit: &[u8],
        preshared: Option<&Digest>,
        common: &Common,
    ) -> Result<Derived, Fault> {
        let missing = Fatal(ErrorCode::NoSharedSecret);
        let (key, label): (&[u8], _) = match (preshared, &common.secured) {
            (Some(key), _) => (key.as_slice(), "ZRTP PSK"),
            (None, Some(secured)) => (&secured.key, "ZRTP MSK"),
            (None, None) => return Err(missing),
        };
        let responder_hello = match role {
            Role::Responder => &self.hello.message,
            Role::Initiator => &self.peer.octets,
        };
        let [initiator, responder] = self.zids(role, common);
        let messages = [&responder_hello[..], commit];
        let context = context(&initiator, &responder, choice.hash, &messages);
        let s0 = kdf(choice.hash, key, label, &context, choice.hash.len());
        Ok(Derived::new(choice.hash, s0, context))
    }

    /// Sends `Confirm1`.
    pub(super) fn confirm_as_responder(
        &mut self,
        now: Instant,
        mut agreed: Agreed,
        common: &mut Common,
    ) -> Result<(), Fault> {
        let message = self.write_confirm(Role::Responder, &agreed, common)?;
        let confirm = self.link.prepare(message);
        self.link.send(&confirm);
        agreed.confirm = Some(confirm);
        self.state = State::Confirm1Sent(Box::new(agreed));
        self.deadline = Some(now + RESPONDER_TIMEOUT);
        Ok(())
    }

    pub(super) fn on_confirm1(
        &mut self,
        now: Instant,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<(), Fault> {
        let without_parts = match &self.state {
            State::Part2Sent(agreed) => {
                check_mac(Role::Responder, agreed, confirm)?;
                None
            }
            State::CommitSent(committed) if committed.key.is_none() => {
                let agreed = self.agree_without_parts(committed, common)?;
                check_mac(Role::Responder, &agreed, confirm)?;
                Some(Box::new(agreed))
            }
            _ => return Ok(()),
        };
        let before = mem::replace(&mut self.state, State::Discovering);
        let ((Some(mut agreed), _) | (None, State::Part2Sent(mut agreed))) =
            (without_parts, before)
        else {
            return Ok(());
        };
        let confirmed = self.read_confirm(Role::Responder, &agreed, confirm, common)?;
        self.claim(&agreed, common)?;
        self.note_confirmed(&mut agreed, &confirmed, common);
        self.note_begun(common);
        let message = self.write_confirm(Role::Initiator, &agreed, common)?;
        common.push_event(self.id, Event::Keys(Box::new(agreed.keys.clone())));
        self.send_until_answered(now, message);
        self.state = State::Confirm2Sent(agreed);
        Ok(())
    }

    /// Derives the initiator's keys in Preshared and Multistream mode.
    fn agree_without_parts(&self, committed: &Committed, common: &Common) -> Result<Agreed, Fault> {
        let Committed { choice, commit, preshared, retained, .. } = committed;
        let (role, preshared) = (Role::Initiator, preshared.as_ref());
        let derived = self.derive_without_agreement(role, *choice, commit, preshared, common)?;
        let mut agreed = Self::keyed(role, *choice, derived, commit.clone())?;
        if preshared.is_some() {
            let proof = PeerProof { retained, continues: true, has_aux_secret: false };
            Self::check_peer(&proof, common)?;
            agreed.retained = Some(retained.clone());
            agreed.continues = true;
        }
        Ok(agreed)
    }

    /// Assigns the session to the peer, unless another exchange was confirmed first.
    fn claim(&self, agreed: &Agreed, common: &mut Common) -> Result<(), Fault> {
        // In Multistream mode, the session already has its peer.
        let is_first = agreed.retained.is_some();
        if is_first && !common.claim(self.number) {
            return Err(Fatal(ErrorCode::KeyExchange));
        }
        Ok(())
    }

    pub(super) fn on_confirm2(
        &mut self,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<(), Fault> {
        match &self.state {
            State::Secure(complete) | State::Clearing(complete)
                if complete.role == Role::Responder =>
            {
                self.link.send_once(&Message::Conf2Ack);
                return Ok(());
            }
            State::Confirm1Sent(agreed) => check_mac(Role::Initiator, agreed, confirm)?,
            _ => return Ok(()),
        }
        let state = mem::replace(&mut self.state, State::Discovering);
        let State::Confirm1Sent(mut agreed) = state else { return Ok(()) };
        let confirmed = self.read_confirm(Role::Initiator, &agreed, confirm, common)?;
        self.claim(&agreed, common)?;
        self.note_confirmed(&mut agreed, &confirmed, common);
        common.push_event(self.id, Event::Keys(Box::new(agreed.keys.clone())));
        self.link.send_once(&Message::Conf2Ack);
        self.complete(&agreed, common);
        Ok(())
    }

    /// Completes the agreement: the responder has our `Confirm2`, as `Conf2ACK` or authentic media
    /// shows.
    pub(super) fn on_conf2_ack(&mut self, common: &mut Common) {
        if !matches!(self.state, State::Confirm2Sent(_)) {
            return;
        }
        let state = mem::replace(&mut self.state, State::Discovering);
        if let State::Confirm2Sent(agreed) = state {
            self.complete(&agreed, common);
        }
    }

    fn write_confirm(
        &self,
        role: Role,
        agreed: &Agreed,
        common: &mut Common,
    ) -> Result<Vec<u8>, Fault> {
        let software = |_| Fatal(ErrorCode::CriticalSoftware);
        let choice = agreed.keys.choice;
        let (verified, cache_expiration) = match (&agreed.retained, &common.secured) {
            (Some(retained), _) => {
                (retained.is_verified && agreed.continues, common.expiration_interval())
            }
            (None, Some(secured)) => (secured.sas.is_verified, u32::MAX),
            (None, None) => (false, u32::MAX),
        };
        let flags = Flags {
            enrolment: false,
            verified,
            allow_clear: common.config.allows_clear,
            disclosure: common.config.discloses,
        };
        let h0 = self.chain.image(0);
        let mut encrypted = Vec::new();
        ConfirmPlain { h0, flags, cache_expiration, signature: None }.write(&mut encrypted);
        let iv = common.random();
        let cipher = cipher_of(role, agreed, choice.cipher)?;
        cipher.encrypt(iv, &mut encrypted).map_err(software)?;
        let mac = confirm_mac(role, agreed, &encrypted);
        let confirm = Confirm { mac, iv, encrypted: &encrypted };
        let mut message = Vec::new();
        match role {
            Role::Responder => Message::Confirm1(confirm).write(&mut message),
            Role::Initiator => Message::Confirm2(confirm).write(&mut message),
        }
        Ok(message)
    }

    /// Decrypts the peer's Confirm, whose MAC is already verified; `role` is that of the peer.
    fn read_confirm(
        &mut self,
        role: Role,
        agreed: &Agreed,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<Confirmed, Fault> {
        let mut plain = confirm.encrypted.to_vec();
        let cipher = cipher_of(role, agreed, agreed.keys.choice.cipher)?;
        let software = |_| Fatal(ErrorCode::CriticalSoftware);
        cipher.decrypt(confirm.iv, &mut plain).map_err(software)?;
        let plain = ConfirmPlain::parse(&plain).map_err(|error| Fatal(error.code()))?;
        // A sender that has the keys but not the hash chain is not the peer.
        if !self.reveal(0, plain.h0, common)? {
            return Err(Fatal(ErrorCode::CriticalSoftware));
        }
        Ok(Confirmed {
            flags: plain.flags,
            expiration: plain.cache_expiration,
            is_signed: plain.signature.is_some(),
        })
    }

    fn note_confirmed(&self, agreed: &mut Agreed, confirmed: &Confirmed, common: &mut Common) {
        agreed.peer_is_verified = confirmed.flags.verified;
        agreed.peer_allows_clear = confirmed.flags.allow_clear;
        agreed.peer_expiration = confirmed.expiration;
        if confirmed.flags.disclosure {
            common.warn(self.id, Warning::Disclosure);
        }
        if confirmed.is_signed {
            common.warn(self.id, Warning::Signature);
        }
    }

    fn complete(&mut self, agreed: &Agreed, common: &mut Common) {
        self.retry = None;
        self.deadline = None;
        self.link.forget_fragments();
        if let Some(retained) = &agreed.retained {
            let zid = self.peer.hello.zid;
            let is_mismatch = retained.rs1.is_some() && !agreed.continues;
            let pending = update_retained(agreed, retained, is_mismatch, &zid, common);
            let sas_hash = agreed.derived.sas_hash();
            let value = u32::from_be_bytes([sas_hash[0], sas_hash[1], sas_hash[2], sas_hash[3]]);
            let sas = SasStatus {
                sas: Sas::render(agreed.keys.choice.sas_type, value),
                sas_hash,
                is_verified: retained.is_verified && agreed.continues && agreed.peer_is_verified,
                shares_secret: agreed.shares_aux,
            };
            let key = agreed.derived.session_key();
            let exported = ExportedKey(agreed.derived.exported_key());
            let (role, choice) = (agreed.keys.role, agreed.keys.choice);
            let mut secured = Secured::new(zid, role, choice, key, sas.clone(), exported);
            secured.pending = pending;
            common.secured = Some(secured);
            common.release(self.number);
            common.push_event(self.id, Event::Sas(sas));
            if is_mismatch {
                let verified = retained.is_verified;
                let warning =
                    if verified { Warning::VerifiedBefore } else { Warning::CacheMismatch };
                common.warn(self.id, warning);
            }
            if agreed.aux_differs {
                common.warn(self.id, Warning::AuxMismatch);
            }
        }
        common.push_event(self.id, Event::Secure);
        self.state = State::Secure(Complete::new(agreed));
    }
}

/// Updates the retained secrets of the peer (section 4.6.1); returns the secrets that may be saved
/// only after the users have compared their strings.
fn update_retained(
    agreed: &Agreed,
    retained: &Retained,
    is_mismatch: bool,
    zid: &[u8; 12],
    common: &mut Common,
) -> Option<Retained> {
    let interval = common.expiration_interval().min(agreed.peer_expiration);
    if interval == 0 {
        if is_mismatch {
            // If the strings turn out to be equal, the old secrets are not those of this peer.
            return Some(Retained { pbx: retained.pbx.clone(), ..Retained::default() });
        }
        if retained.rs1.is_some() {
            let retained = Retained { expiration_interval: 0, ..retained.clone() };
            common.store.save(zid, &retained);
        }
        return None;
    }
    // Section 4.6.1: the old rs1 is not kept in Preshared mode.
    let is_preshared = agreed.keys.choice.key_agreement == KeyAgreement::Prsh;
    let rs2 = if is_preshared { &retained.rs2 } else { &retained.rs1 };
    let new = Retained {
        rs1: Some(agreed.derived.retained_secret()),
        rs2: rs2.clone(),
        pbx: retained.pbx.clone(),
        is_verified: retained.is_verified && agreed.continues,
        expiration_interval: interval,
    };
    if is_mismatch {
        return Some(new);
    }
    common.store.save(zid, &new);
    None
}

fn cipher_of(role: Role, agreed: &Agreed, cipher: Cipher) -> Result<CipherFeedback, Fault> {
    let key = agreed.derived.zrtp_key(role, cipher);
    CipherFeedback::new(&key).map_err(|_| Fatal(ErrorCode::CriticalSoftware))
}

/// Checks that the peer's Confirm was written with the agreed keys; otherwise the message may be
/// forged. `role` is that of the peer.
fn check_mac(role: Role, agreed: &Agreed, confirm: &Confirm<'_>) -> Result<(), Fault> {
    let is_right = tags_are_equal(&confirm_mac(role, agreed, confirm.encrypted), &confirm.mac);
    if is_right { Ok(()) } else { Err(Fault::Unconfirmed(ErrorCode::BadConfirmMac)) }
}

/// Returns the MAC of a Confirm of `role` (section 4.6).
fn confirm_mac(role: Role, agreed: &Agreed, encrypted: &[u8]) -> [u8; 8] {
    mac(agreed.keys.choice.hash, &agreed.derived.mac_key(role), encrypted)
}

/// Returns the first 64 bits of the MAC under the mackey of one end.
pub(super) fn mac(hash: Hash, key: &[u8], octets: &[u8]) -> [u8; 8] {
    let mut mac = [0; 8];
    mac.copy_from_slice(&hmac(hash.algorithm(), key, &[octets]).as_slice()[..8]);
    mac
}
