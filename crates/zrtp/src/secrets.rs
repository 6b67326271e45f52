//! The secrets of earlier sessions that both ends have (RFC 6189 section 4.3).

use zeroize::Zeroizing;

use super::algorithm::Hash;
use super::config::Config;
use super::dh_part::SecretIds;
use super::kdf::{Role, Shared, preshared_key};
use super::retained::{Retained, RetainedSecret};
use crate::crypto::{Digest, hmac, tags_are_equal};

type Id = [u8; 8];

/// Returns the first 64 bits of MAC(`secret`, `over`).
fn id(hash: Hash, secret: &[u8], over: &[u8]) -> Id {
    let mut id = [0; 8];
    id.copy_from_slice(&hmac(hash.algorithm(), secret, &[over]).as_slice()[..8]);
    id
}

/// The IDs of the secrets that one end has (section 4.3.1): rs1, rs2, auxsecret, pbxsecret.
pub(super) struct Ids([Option<Id>; 4]);

impl Ids {
    /// Computes the IDs of the end with `role` and the H3 `h3` from the secrets of this end.
    pub(super) fn of(
        hash: Hash,
        role: Role,
        h3: &[u8; 32],
        retained: &Retained,
        aux: Option<&[u8]>,
    ) -> Self {
        let name = role.name().as_bytes();
        let of = |secret: &Option<RetainedSecret>| {
            secret.as_ref().map(|secret| id(hash, &secret[..], name))
        };
        let aux = aux.map(|secret| id(hash, secret, h3));
        Self([of(&retained.rs1), of(&retained.rs2), aux, of(&retained.pbx)])
    }

    /// Returns the IDs for a message; the ID of a missing secret is random.
    pub(super) fn to_message(&self, entropy: &mut (dyn FnMut(&mut [u8]) + Send)) -> SecretIds {
        let mut fill = |id: Option<Id>| {
            id.unwrap_or_else(|| {
                let mut random = [0; 8];
                entropy(&mut random);
                random
            })
        };
        let [rs1, rs2, aux, pbx] = self.0.map(&mut fill);
        SecretIds { rs1, rs2, aux, pbx }
    }
}

fn equal(own: Option<Id>, theirs: Id) -> bool {
    own.is_some_and(|own| tags_are_equal(&own, &theirs))
}

/// Finds the secrets that the peer also has, by comparing its IDs with the expected ones.
pub(super) fn matching(
    role: Role,
    expected: &Ids,
    theirs: &SecretIds,
    retained: &Retained,
    aux: Option<&[u8]>,
) -> Shared {
    let [rs1, rs2, aux_id, pbx_id] = expected.0;
    // Section 4.3: the initiator's rs1 if the responder knows it; otherwise the initiator's rs2.
    let first = match role {
        Role::Initiator => {
            let knows = |own| equal(own, theirs.rs1) || equal(own, theirs.rs2);
            if knows(rs1) {
                &retained.rs1
            } else if knows(rs2) {
                &retained.rs2
            } else {
                &None
            }
        }
        Role::Responder => {
            let find = |id: Id| {
                if equal(rs1, id) {
                    &retained.rs1
                } else if equal(rs2, id) {
                    &retained.rs2
                } else {
                    &None
                }
            };
            match find(theirs.rs1) {
                None => find(theirs.rs2),
                found => found,
            }
        }
    };
    let octets = |secret: &RetainedSecret| Zeroizing::new(secret.to_vec());
    Shared {
        s1: first.as_ref().map(octets),
        s2: aux.filter(|_| equal(aux_id, theirs.aux)).map(|aux| Zeroizing::new(aux.to_vec())),
        s3: retained.pbx.as_ref().filter(|_| equal(pbx_id, theirs.pbx)).map(octets),
    }
}

/// Returns the ID of a preshared key (section 4.4.2.2).
pub(super) fn key_id(hash: Hash, key: &Digest) -> Id {
    id(hash, key.as_slice(), b"Prsh")
}

/// Derives the preshared key from all secrets of this end; `None` without rs1.
pub(super) fn own_preshared_key(
    config: &Config,
    hash: Hash,
    retained: &Retained,
) -> Option<Digest> {
    let rs1 = retained.rs1.as_ref()?;
    let aux = config.aux_secret.as_ref().map(|aux| aux.as_slice());
    let pbx = retained.pbx.as_ref().map(|pbx| &pbx[..]);
    Some(preshared_key(hash, &rs1[..], aux, pbx))
}

/// Derives the preshared key with the ID `named`, which the initiator sent (section 4.4.2.3).
pub(super) fn named_preshared_key(
    config: &Config,
    hash: Hash,
    retained: &Retained,
    named: Id,
) -> Option<Digest> {
    let rs1 = retained.rs1.as_ref()?;
    let aux = config.aux_secret.as_ref().map(|aux| aux.as_slice());
    let pbx = retained.pbx.as_ref().map(|pbx| &pbx[..]);
    let subsets = [(aux, pbx), (None, pbx), (aux, None), (None, None)];
    subsets
        .into_iter()
        .map(|(aux, pbx)| preshared_key(hash, &rs1[..], aux, pbx))
        .find(|key| tags_are_equal(&key_id(hash, key), &named))
}
