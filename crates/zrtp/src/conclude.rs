//! The conclusion of a key agreement at either end: s0, and whether the session continues an
//! earlier one (RFC 6189 section 4.4.1.4).

use super::dh_part::SecretIds;
use super::exchange::{Agreed, Exchange, Fault};
use super::kdf::{Derived, Role, agreed_s0, context};
use super::key_agreement::KeyAgreement;
use super::negotiate::Choice;
use super::peer_policy::PeerProof;
use super::retained::Retained;
use super::secrets::{Ids, matching};
use super::session_state::Common;
use crate::crypto::Secret;

/// The inputs of the conclusion.
pub(super) struct Agreement<'a> {
    /// The role of this end.
    pub(super) role: Role,
    pub(super) choice: Choice,
    /// `DHResult`, or the encapsulated secret.
    pub(super) result: Secret,
    /// The identifiers in the peer's part.
    pub(super) ids: &'a SecretIds,
    /// Commit and both parts as sent.
    pub(super) messages: [&'a [u8]; 3],
    pub(super) retained: Retained,
}

impl Exchange {
    pub(super) fn conclude(
        &self,
        agreement: Agreement<'_>,
        common: &Common,
    ) -> Result<Agreed, Fault> {
        let Agreement { role, choice, result, ids, messages, retained } = agreement;
        let peer = &self.peer;
        let (h3, aux) = (&peer.hello.h3, common.aux());
        let expected = Ids::of(choice.hash, role.other(), h3, &retained, aux);
        let shared = matching(role, &expected, ids, &retained, aux);
        let shares_aux = shared.s2.is_some();
        let aux_differs = aux.is_some() && !shares_aux;
        let continues = shared.s1.is_some();
        let proof = PeerProof { retained: &retained, continues, has_aux_secret: shares_aux };
        Self::check_peer(&proof, common)?;
        let (initiator_hello, responder_hello) = match role {
            Role::Initiator => (&self.hello.message, &peer.octets),
            Role::Responder => (&peer.octets, &self.hello.message),
        };
        let [commit, part1, part2] = messages;
        let is_kem = matches!(choice.key_agreement, KeyAgreement::Kem(_));
        let mut transcript = transcript(is_kem, initiator_hello, responder_hello);
        transcript.extend([commit, part1, part2]);
        let [initiator, responder] = self.zids(role, common);
        let context = context(&initiator, &responder, choice.hash, &transcript);
        let s0 = agreed_s0(choice.hash, result.as_slice(), &context, &shared);
        let derived = Derived::new(choice.hash, s0, context);
        let mut agreed = Self::keyed(role, choice, derived, commit.to_vec())?;
        agreed.continues = continues;
        (agreed.shares_aux, agreed.aux_differs) = (shares_aux, aux_differs);
        agreed.retained = Some(retained);
        Ok(agreed)
    }

    /// Refuses the peer if the policy requires it. A peer that is not refused is authenticated
    /// later, by its Confirm.
    pub(super) fn check_peer(proof: &PeerProof<'_>, common: &Common) -> Result<(), Fault> {
        common.config.policy.check(proof).map_err(Fault::Refused)
    }
}

/// Returns the Hellos at the beginning of the hash of all messages: the responder's (section
/// 4.4.1.4), preceded by the initiator's with key encapsulation (draft).
pub(super) fn transcript<'a>(
    is_kem: bool,
    initiator: &'a [u8],
    responder: &'a [u8],
) -> Vec<&'a [u8]> {
    if is_kem { vec![initiator, responder] } else { vec![responder] }
}
