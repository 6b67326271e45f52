//! Confirm messages, and what is kept once both ends have confirmed (RFC 6189 section 4.6).

use std::time::Instant;

use super::algorithm::{Cipher, Hash};
use super::confirm::{Confirm, ConfirmPlain, Flags};
use super::error_code::ErrorCode;
use super::event::{Event, ExportedKey, SasStatus, StreamKeys, Warning};
use super::exchange::{Agreed, Exchange, Fatal, RESPONDER_PATIENCE, Settled, State};
use super::kdf::{Derived, Role, context, kdf, suite};
use super::key_agreement::KeyAgreement;
use super::message::Message;
use super::negotiate::Choice;
use super::peer_policy::Shown;
use super::retained::Retained;
use super::sas::Sas;
use super::session_state::{Common, Secured};
use crate::crypto::{CipherFeedback, Digest, hmac, tags_are_equal};

/// What a Confirm of the peer said.
struct Confirmed {
    flags: Flags,
    expiration: u32,
    is_signed: bool,
}

impl Exchange {
    /// Keys from s0.
    pub(super) fn keyed(
        role: Role,
        choice: Choice,
        derived: Derived,
        commit: Vec<u8>,
    ) -> Result<Agreed, Fatal> {
        let software = Fatal(ErrorCode::CriticalSoftware);
        let suite = suite(choice.cipher, choice.auth_tag).ok_or(Fatal(ErrorCode::AuthTag))?;
        let key = |role| derived.master_key(role, choice.cipher, suite);
        let (Some(send), Some(receive)) = (key(role), key(role.other())) else {
            return Err(software);
        };
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

    /// s0 without a key agreement: from the preshared key (section 4.4.2.4), or that of the session
    /// (section 4.4.3.2).
    pub(super) fn derive_without_agreement(
        &self,
        role: Role,
        choice: Choice,
        commit: &[u8],
        preshared: Option<&Digest>,
        common: &Common,
    ) -> Result<Derived, Fatal> {
        let missing = Fatal(ErrorCode::NoSharedSecret);
        let (key, label): (&[u8], _) = match (preshared, &common.secured) {
            (Some(key), _) => (key.as_slice(), "ZRTP PSK"),
            (None, Some(secured)) => (&secured.key, "ZRTP MSK"),
            (None, None) => return Err(missing),
        };
        let responder_hello = match (role, &self.peer) {
            (Role::Responder, _) => &self.hello.message,
            (Role::Initiator, Some(peer)) => &peer.octets,
            (Role::Initiator, None) => return Err(missing),
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
    ) -> Result<(), Fatal> {
        let message = self.write_confirm(Role::Responder, &agreed, common)?;
        let confirm = self.link.prepare(message);
        self.link.send(&confirm);
        agreed.confirm = Some(confirm);
        self.state = State::Confirm1Sent(Box::new(agreed));
        self.deadline = Some(now + RESPONDER_PATIENCE);
        Ok(())
    }

    pub(super) fn on_confirm1(
        &mut self,
        now: Instant,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<(), Fatal> {
        let agreed = match &self.state {
            State::Part2Sent(_) => {
                let state = std::mem::replace(&mut self.state, State::Discovering);
                let State::Part2Sent(agreed) = state else { return Ok(()) };
                agreed
            }
            State::CommitSent(committed) if committed.key.is_none() => {
                let (choice, commit) = (committed.choice, committed.commit.clone());
                let preshared = committed.preshared.as_ref();
                let role = Role::Initiator;
                let derived =
                    self.derive_without_agreement(role, choice, &commit, preshared, common)?;
                let mut agreed = Self::keyed(role, choice, derived, commit)?;
                if preshared.is_some() {
                    let retained = &committed.retained;
                    let shown = Shown { retained, continues: true, has_aux_secret: false };
                    self.check_peer(&shown, common)?;
                    agreed.retained = Some(committed.retained.clone());
                    agreed.continues = true;
                }
                Box::new(agreed)
            }
            _ => return Ok(()),
        };
        let confirmed = self.read_confirm(Role::Responder, &agreed, confirm, common)?;
        let mut agreed = agreed;
        self.note_confirmed(&mut agreed, &confirmed, common);
        self.note_begun(common);
        let message = self.write_confirm(Role::Initiator, &agreed, common)?;
        common.tell(self.id, Event::Keys(Box::new(agreed.keys.clone())));
        self.send_until_answered(now, message);
        self.state = State::Confirm2Sent(agreed);
        Ok(())
    }

    pub(super) fn on_confirm2(
        &mut self,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<(), Fatal> {
        match &self.state {
            State::Secure(settled) | State::Clearing(settled)
                if settled.role == Role::Responder =>
            {
                self.send_once(&Message::Conf2Ack);
                return Ok(());
            }
            State::Confirm1Sent(_) => {}
            _ => return Ok(()),
        }
        let state = std::mem::replace(&mut self.state, State::Discovering);
        let State::Confirm1Sent(mut agreed) = state else { return Ok(()) };
        let confirmed = self.read_confirm(Role::Initiator, &agreed, confirm, common)?;
        self.note_confirmed(&mut agreed, &confirmed, common);
        common.tell(self.id, Event::Keys(Box::new(agreed.keys.clone())));
        self.send_once(&Message::Conf2Ack);
        self.complete(&agreed, common);
        Ok(())
    }

    /// The responder has our `Confirm2`: it says so, or sends media that is authentic.
    pub(super) fn on_conf2_ack(&mut self, common: &mut Common) {
        if !matches!(self.state, State::Confirm2Sent(_)) {
            return;
        }
        let state = std::mem::replace(&mut self.state, State::Discovering);
        if let State::Confirm2Sent(agreed) = state {
            self.complete(&agreed, common);
        }
    }

    fn write_confirm(
        &self,
        role: Role,
        agreed: &Agreed,
        common: &mut Common,
    ) -> Result<Vec<u8>, Fatal> {
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

    /// Reads the Confirm of `role`, the peer's.
    fn read_confirm(
        &mut self,
        role: Role,
        agreed: &Agreed,
        confirm: &Confirm<'_>,
        common: &mut Common,
    ) -> Result<Confirmed, Fatal> {
        if !tags_are_equal(&confirm_mac(role, agreed, confirm.encrypted), &confirm.mac) {
            return Err(Fatal(ErrorCode::BadConfirmMac));
        }
        let mut plain = confirm.encrypted.to_vec();
        let cipher = cipher_of(role, agreed, agreed.keys.choice.cipher)?;
        let software = |_| Fatal(ErrorCode::CriticalSoftware);
        cipher.decrypt(confirm.iv, &mut plain).map_err(software)?;
        let plain = ConfirmPlain::parse(&plain).map_err(|error| Fatal(error.code()))?;
        // Whoever has the keys and not the chain has no business here.
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
        if let (Some(retained), Some(peer)) = (&agreed.retained, &self.peer) {
            let zid = peer.hello.zid;
            let misses = retained.rs1.is_some() && !agreed.continues;
            let pending = keep(agreed, retained, misses, &zid, common);
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
            common.release(self.id);
            common.tell(self.id, Event::Sas(sas));
            if misses {
                let verified = retained.is_verified;
                let warning =
                    if verified { Warning::VerifiedBefore } else { Warning::CacheMismatch };
                common.warn(self.id, warning);
            }
            if agreed.aux_differs {
                common.warn(self.id, Warning::AuxMismatch);
            }
        }
        common.tell(self.id, Event::Secure);
        self.state = State::Secure(Settled::new(agreed));
    }
}

/// Updates what is kept of the peer (section 4.6.1); returns what must wait for the users to
/// compare their strings.
fn keep(
    agreed: &Agreed,
    retained: &Retained,
    misses: bool,
    zid: &[u8; 12],
    common: &mut Common,
) -> Option<Retained> {
    let interval = common.expiration_interval().min(agreed.peer_expiration);
    if interval == 0 {
        if misses {
            // Once the strings are found equal, the old secrets are known to be somebody else's.
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
    if misses {
        return Some(new);
    }
    common.store.save(zid, &new);
    None
}

fn cipher_of(role: Role, agreed: &Agreed, cipher: Cipher) -> Result<CipherFeedback, Fatal> {
    let key = agreed.derived.zrtp_key(role, cipher);
    CipherFeedback::new(&key).map_err(|_| Fatal(ErrorCode::CriticalSoftware))
}

/// The MAC of a Confirm of `role` (section 4.6).
fn confirm_mac(role: Role, agreed: &Agreed, encrypted: &[u8]) -> [u8; 8] {
    mac(agreed.keys.choice.hash, &agreed.derived.mac_key(role), encrypted)
}

/// The first 64 bits of the MAC under one end's mackey.
pub(super) fn mac(hash: Hash, key: &[u8], octets: &[u8]) -> [u8; 8] {
    let mut mac = [0; 8];
    mac.copy_from_slice(&hmac(hash.algorithm(), key, &[octets]).as_slice()[..8]);
    mac
}
