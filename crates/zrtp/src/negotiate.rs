//! The selection of an exchange's algorithms (RFC 6189 section 4.1.2, and the draft for KEMs).

use super::algorithm::{Algorithm, AlgorithmList, AuthTag, Cipher, Hash, SasType};
use super::commit::Commit;
use super::config::Config;
use super::error_code::ErrorCode;
use super::hello::Hello;
use super::key_agreement::KeyAgreement;

/// The algorithms of one exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Choice {
    /// The hash, which is also that of the MACs and of key derivation.
    pub hash: Hash,
    /// The cipher of Confirm messages and of SRTP.
    pub cipher: Cipher,
    /// The authentication tag of SRTP.
    pub auth_tag: AuthTag,
    /// The key agreement type.
    pub key_agreement: KeyAgreement,
    /// The rendering of the short authentication string.
    pub sas_type: SasType,
}

/// Returns the algorithms of `own` that `peer` also has, in the order of `own`.
fn common<T: Algorithm>(own: &AlgorithmList<T>, peer: &AlgorithmList<T>) -> Vec<T> {
    let theirs: Vec<T> = peer.with_mandatory().collect();
    own.with_mandatory().filter(|one| theirs.contains(one)).collect()
}

/// Returns the position in the draft's ranking from fastest to slowest.
fn cost_rank(agreement: KeyAgreement) -> u8 {
    match agreement {
        KeyAgreement::Dh2k => 0,
        KeyAgreement::X255 => 1,
        KeyAgreement::Ec25 => 2,
        KeyAgreement::Dh3k => 3,
        KeyAgreement::Ec38 => 4,
        KeyAgreement::X448 => 5,
        _ => 6,
    }
}

/// Selects the key agreement of this end as the initiator, from the lists of both ends.
fn key_agreement(
    own: &AlgorithmList<KeyAgreement>,
    peer: &AlgorithmList<KeyAgreement>,
    has_s384: bool,
) -> Result<KeyAgreement, ErrorCode> {
    let fits = |one: &KeyAgreement| match one {
        KeyAgreement::Prsh | KeyAgreement::Mult => false,
        // Section 5.1.5 allows it only with S384.
        KeyAgreement::Ec38 => has_s384,
        _ => true,
    };
    let mine = common(own, peer).into_iter().find(fits).ok_or(ErrorCode::KeyExchange)?;
    let theirs = common(peer, own).into_iter().find(fits).ok_or(ErrorCode::KeyExchange)?;
    let is_kem = |one| matches!(one, KeyAgreement::Kem(_));
    Ok(match (is_kem(mine), is_kem(theirs)) {
        // A key encapsulation that is first in both lists, or otherwise the initiator's choice.
        (_, true) => mine,
        (true, false) => theirs,
        (false, false) => {
            if cost_rank(theirs) < cost_rank(mine) {
                theirs
            } else {
                mine
            }
        }
    })
}

/// Selects the algorithms of this end as the initiator.
pub(super) fn select(config: &Config, peer: &Hello) -> Result<Choice, ErrorCode> {
    let own = &config.algorithms;
    let hashes = common(&own.hashes, &peer.hashes);
    let has_s384 = hashes.contains(&Hash::S384);
    let key_agreement = key_agreement(&own.key_agreements, &peer.key_agreements, has_s384)?;
    let ciphers = common(&own.ciphers, &peer.ciphers);
    let is_384 = key_agreement == KeyAgreement::Ec38;
    let hash = if is_384 { Some(Hash::S384) } else { hashes.first().copied() };
    let aes3 = ciphers.iter().find(|cipher| is_384 && **cipher == Cipher::Aes3);
    let auth_tags = common(&own.auth_tags, &peer.auth_tags);
    Ok(Choice {
        hash: hash.ok_or(ErrorCode::HashType)?,
        cipher: aes3.or_else(|| ciphers.first()).copied().ok_or(ErrorCode::CipherType)?,
        auth_tag: auth_tags.first().copied().ok_or(ErrorCode::AuthTag)?,
        key_agreement,
        sas_type: common(&own.sas_types, &peer.sas_types)
            .first()
            .copied()
            .ok_or(ErrorCode::SasScheme)?,
    })
}

/// Returns the initiator's selection, if this end supports it.
pub(super) fn accept(config: &Config, commit: &Commit<'_>) -> Result<Choice, ErrorCode> {
    let own = &config.algorithms;
    has(&own.hashes, commit.hash)?;
    has(&own.ciphers, commit.cipher)?;
    has(&own.auth_tags, commit.auth_tag)?;
    // Section 4.4.3.1: without a key agreement there is no authentication string.
    if commit.key_agreement != KeyAgreement::Mult {
        has(&own.sas_types, commit.sas_type)?;
    }
    match commit.key_agreement {
        KeyAgreement::Mult => {}
        KeyAgreement::Prsh if config.uses_preshared() => {}
        KeyAgreement::Prsh => return Err(ErrorCode::KeyExchange),
        agreement => has(&own.key_agreements, agreement)?,
    }
    if commit.key_agreement == KeyAgreement::Ec38 && commit.hash != Hash::S384 {
        return Err(ErrorCode::HashType);
    }
    Ok(Choice {
        hash: commit.hash,
        cipher: commit.cipher,
        auth_tag: commit.auth_tag,
        key_agreement: commit.key_agreement,
        sas_type: commit.sas_type,
    })
}

fn has<T: Algorithm>(own: &AlgorithmList<T>, selected: T) -> Result<(), ErrorCode> {
    let has = own.with_mandatory().any(|one| one == selected);
    if has { Ok(()) } else { Err(T::UNSUPPORTED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_agreement::{Kem, KemComponent};

    fn list(items: &[KeyAgreement]) -> AlgorithmList<KeyAgreement> {
        AlgorithmList::new(items).unwrap()
    }

    /// Returns the selections of both ends, each as the initiator.
    fn both(a: &[KeyAgreement], b: &[KeyAgreement]) -> [KeyAgreement; 2] {
        let (a, b) = (list(a), list(b));
        [key_agreement(&a, &b, true).unwrap(), key_agreement(&b, &a, true).unwrap()]
    }

    #[test]
    fn the_examples_of_the_rfc_and_the_draft_are_computed() {
        use KeyAgreement::{Dh2k, Dh3k, Ec25, Ec38, X255, X448};
        let kyber = |curve, lattice| KeyAgreement::Kem(Kem::hybrid(curve, lattice).unwrap());
        let x1k1 = kyber(KemComponent::X25519, KemComponent::Kyber512);
        let x3k3 = kyber(KemComponent::X448, KemComponent::Kyber1024);
        assert_eq!(both(&[Dh2k, Dh3k, Ec25], &[Ec38, Ec25, Dh3k]), [Ec25; 2]);
        assert_eq!(both(&[X255, x1k1, X448], &[x1k1, X255]), [X255; 2]);
        assert_eq!(both(&[X448, X255, x1k1, Dh3k], &[Dh3k, x1k1, X255]), [X255; 2]);
        assert_eq!(both(&[x3k3, x1k1, X448, X255], &[x1k1, x3k3, X255]), [x3k3, x1k1]);
    }

    #[test]
    fn without_a_common_algorithm_the_mandatory_one_is_used() {
        assert_eq!(both(&[KeyAgreement::X448], &[KeyAgreement::Ec25]), [KeyAgreement::Dh3k; 2]);
    }

    #[test]
    fn p_384_needs_sha_384_and_takes_aes_256() {
        let mut config = Config::new([1; 12]);
        config.algorithms.key_agreements = list(&[KeyAgreement::Ec38]);
        let peer = config.hello([0; 32]);
        let choice = select(&config, &peer).unwrap();
        assert_eq!((choice.hash, choice.cipher), (Hash::S384, Cipher::Aes3));
        config.algorithms.hashes = AlgorithmList::EMPTY;
        let choice = select(&config, &peer).unwrap();
        assert_eq!((choice.hash, choice.key_agreement), (Hash::S256, KeyAgreement::Dh3k));
    }
}
