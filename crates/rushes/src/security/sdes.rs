//! Keys in lines of a session description (RFC 4568), written and read.

use rushes_proto::sdp::{Crypto, CryptoError, InlineKey, Mki, SessionParameters};
use rushes_proto::srtp::{
    ExtensionIds, KEYS_MAX, KeyError, MasterKey, Policy, PolicyError, RTCP_LIFETIME_MAX,
    RTP_LIFETIME_MAX, Suite, Unprotector,
};

use super::{KnownKeys, Security};
use crate::error::SdesError;

/// How a description protects header extensions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderPrivacy {
    /// As a whole (RFC 9335).
    pub(crate) cryptex: bool,
    /// Element by element (RFC 6904).
    pub(crate) encrypted: ExtensionIds,
}

impl Security {
    /// Returns the `a=crypto` line with the key of sent packets.
    ///
    /// # Errors
    /// [`SdesError::Undescribable`] if RFC 4568 cannot express it.
    pub fn to_crypto(&self, tag: u32) -> Result<Crypto, SdesError> {
        let is_encrypted = |keys: KnownKeys<'_>| !keys.policy.encrypted_extensions.is_empty();
        if self.known_keys().is_some_and(is_encrypted) {
            let what = "the list of encrypted header extensions (RFC 6904)";
            return Err(SdesError::Undescribable(what));
        }
        self.to_line(tag)
    }

    /// As [`to_crypto`](Self::to_crypto), where other lines describe the encrypted elements of header
    /// extensions.
    pub(crate) fn to_line(&self, tag: u32) -> Result<Crypto, SdesError> {
        let Some(KnownKeys { policy, send, .. }) = self.known_keys() else {
            return Err(SdesError::Undescribable("keys that are agreed on by ZRTP"));
        };
        let suite = described_suite(policy);
        let session = described_parameters(policy);
        let mut key = InlineKey::new(send.key_and_salt());
        key.lifetime = described_lifetime(send)?;
        key.mki = match send.mki() {
            [] => None,
            mki => {
                let zero = SdesError::Undescribable("a master key identifier of 0");
                Some(Mki::new(mki).ok_or(zero)?)
            }
        };
        Crypto::new(tag, suite.name(), &[key], &session)
            .map_err(|reason| SdesError::Crypto { tag, reason })
    }

    /// Reads keys and policy from an `a=crypto` line. Its first key is used in both directions; the
    /// others are also accepted in received packets.
    ///
    /// A description contains the key of its author; the reader's key would be in an answer (RFC
    /// 4568 section 7.1). The reader must not send media under the author's key: set another with
    /// [`StreamBuilder::security`](crate::StreamBuilder::security), or only receive. Without an
    /// answer, reports are sent under the author's key, the only one that the author knows.
    ///
    /// # Errors
    /// [`SdesError`] if the line cannot be used.
    pub fn from_crypto(line: &Crypto) -> Result<Self, SdesError> {
        Self::read(line, HeaderPrivacy::default())
    }

    pub(crate) fn read(line: &Crypto, headers: HeaderPrivacy) -> Result<Self, SdesError> {
        let tag = line.tag;
        let valid = line.valid().map_err(|reason| SdesError::Crypto { tag, reason })?;
        let suite: Suite = line
            .suite
            .parse()
            .ok()
            .filter(|suite| is_described(*suite))
            .ok_or_else(|| SdesError::Suite { tag, suite: line.suite.clone() })?;
        let policy = policy_of(suite, &valid.session)
            .map_err(|what| SdesError::Unsupported { tag, what })?;
        let HeaderPrivacy { cryptex, encrypted } = headers;
        let policy = Policy { cryptex, encrypted_extensions: encrypted, ..policy };
        if valid.keys.len() > KEYS_MAX {
            return Err(SdesError::Unsupported { tag, what: "more than four master keys" });
        }
        let keys: Result<Vec<_>, _> = valid.keys.iter().map(|key| master_key(suite, key)).collect();
        let mut keys = keys.map_err(|reason| SdesError::Key { tag, reason })?.into_iter();
        let missing = CryptoError::Key { key: 1, reason: rushes_proto::sdp::KeyError::Missing };
        let first = keys.next().ok_or(SdesError::Crypto { tag, reason: missing })?;
        let further: Vec<MasterKey> = keys.collect();
        let known = KnownKeys { policy: &policy, send: &first, receive: &first, further: &further };
        known.unprotector(&policy).map_err(|reason| SdesError::Policy { tag, reason })?;
        Ok(Self::Keys { policy, send: first.clone(), receive: first, further })
    }
}

impl KnownKeys<'_> {
    pub(crate) fn unprotector(&self, policy: &Policy) -> Result<Unprotector, PolicyError> {
        let mut unprotector = Unprotector::new(policy, self.receive)?;
        self.further.iter().try_for_each(|key| unprotector.add_master_key(key))?;
        Ok(unprotector)
    }
}

/// Returns whether descriptions have a name for the suite; the others are described by session
/// parameters.
fn is_described(suite: Suite) -> bool {
    !matches!(suite, Suite::NullHmacSha1_80 | Suite::AesCm128NullAuth)
}

fn described_suite(policy: &Policy) -> Suite {
    // Both suites without a name have the lengths of the suite that they are a part of.
    let is_part = !is_described(policy.suite);
    if is_part { Suite::AesCm128HmacSha1_80 } else { policy.suite }
}

fn described_parameters(policy: &Policy) -> SessionParameters {
    let null = policy.suite == Suite::NullHmacSha1_80;
    let mut session = SessionParameters::default();
    session.key_derivation_rate = policy.key_derivation_rate;
    session.unencrypted_srtp = null || !policy.encrypt_rtp;
    session.unencrypted_srtcp = null || !policy.encrypt_rtcp;
    session.unauthenticated_srtp =
        policy.suite == Suite::AesCm128NullAuth || !policy.authenticate_rtp;
    session
}

fn described_lifetime(key: &MasterKey) -> Result<Option<u64>, SdesError> {
    let (rtp, rtcp) = (key.rtp_lifetime(), key.rtcp_lifetime());
    match rtp {
        _ if rtcp != rtp.min(RTCP_LIFETIME_MAX) => {
            Err(SdesError::Undescribable("a lifetime of reports that differs from that of media"))
        }
        RTP_LIFETIME_MAX => Ok(None),
        _ => Ok(Some(rtp)),
    }
}

fn policy_of(suite: Suite, session: &SessionParameters) -> Result<Policy, &'static str> {
    if session.fec_order.is_some() || !session.fec_keys.is_empty() {
        return Err("forward error correction");
    }
    let mut policy = Policy::new(suite);
    policy.encrypt_rtp = !session.unencrypted_srtp;
    policy.encrypt_rtcp = !session.unencrypted_srtcp;
    policy.authenticate_rtp = !session.unauthenticated_srtp;
    policy.key_derivation_rate = session.key_derivation_rate;
    if let Some(packets) = session.window_size_hint {
        // Only a hint: a larger window than requested is correct, and a smaller one is safe.
        policy.window = policy.window.max(packets.min(WINDOW_MAX) as usize);
    }
    Ok(policy)
}

/// Packets in the largest replay window.
const WINDOW_MAX: u32 = 32_768;

fn master_key(suite: Suite, key: &InlineKey) -> Result<MasterKey, KeyError> {
    let mut master = MasterKey::new(suite, &key.key_and_salt)?;
    if let Some(mki) = &key.mki {
        master = master.with_mki(mki.octets())?;
    }
    if let Some(packets) = key.lifetime {
        master = master.with_lifetime(packets, packets.min(RTCP_LIFETIME_MAX))?;
    }
    Ok(master)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Crypto {
        let text = format!("v=0\nm=video 5004 RTP/SAVP 31\na=crypto:{text}\n");
        let description = rushes_proto::sdp::Description::parse(text.as_bytes()).unwrap();
        description.media[0].crypto[0].clone()
    }

    const KEY: &str = "inline:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNk";

    #[test]
    fn a_line_of_each_suite_comes_back() {
        for suite in Suite::ALL {
            let octets = vec![7; suite.key_and_salt_len()];
            let security = Security::shared(suite, &octets).unwrap();
            let line = security.to_crypto(3).unwrap();
            let read = Security::from_crypto(&line).unwrap();
            let KnownKeys { policy, send, .. } = read.known_keys().unwrap();
            assert_eq!((line.tag, send.key_and_salt()), (3, &octets[..]), "{suite}");
            let parameters = described_parameters(policy);
            let wanted = security.known_keys().unwrap().policy;
            assert_eq!(parameters, described_parameters(wanted), "{suite}");
            let tags = |policy: &Policy| (policy.overhead(0), policy.rtcp_overhead(0));
            assert_eq!(tags(policy), tags(wanted), "{suite}");
        }
    }

    #[test]
    fn options_survive_writing_and_reading() {
        let text =
            format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|2^20|1:4 KDR=16 UNENCRYPTED_SRTCP WSH=4000");
        let security = Security::from_crypto(&line(&text)).unwrap();
        let KnownKeys { policy, send, .. } = security.known_keys().unwrap();
        assert_eq!((policy.key_derivation_rate, policy.encrypt_rtcp), (Some(16), false));
        assert_eq!((policy.window, policy.encrypt_rtp), (4000, true));
        assert_eq!((send.mki(), send.rtp_lifetime()), (&[0, 0, 0, 1][..], 1 << 20));
        let written = security.to_crypto(1).unwrap();
        assert_eq!(written.key_params, format!("{KEY}|2^20|1:4"));
        assert_eq!(written.session_params, ["KDR=16", "UNENCRYPTED_SRTCP"]);
    }

    #[test]
    fn further_keys_are_accepted_too() {
        let other = "inline:ZEFiY2RlZjAxMjM0NTY3ODkwMTIzNDU2Nzg5YWJj";
        let text = format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|1:1;{other}|2:1");
        let read = Security::from_crypto(&line(&text)).unwrap();
        let KnownKeys { receive, further, .. } = read.known_keys().unwrap();
        assert_eq!((receive.mki(), further.len(), further[0].mki()), (&[1][..], 1, &[2][..]));
    }

    #[test]
    fn an_unusable_line_is_an_error_with_the_reason() {
        let expect_error = |text: &str, wanted: &str| {
            let error = Security::from_crypto(&line(text)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
            assert!(!error.contains("MDEy"), "{error}");
        };
        expect_error(&format!("1 F8_128_HMAC_SHA1_80 {KEY}"), "unknown suite F8_128_HMAC_SHA1_80");
        expect_error(&format!("1 NULL_HMAC_SHA1_80 {KEY}"), "unknown suite NULL_HMAC_SHA1_80");
        expect_error(&format!("1 AEAD_AES_128_GCM {KEY}"), "28 octets for this suite, not 30");
        expect_error(
            &format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} FEC_ORDER=SRTP_FEC"),
            "forward error",
        );
        expect_error(
            &format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} NEW=1"),
            "not known and not optional",
        );
        let gcm = "inline:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
        expect_error(&format!("1 AEAD_AES_128_GCM {gcm} UNENCRYPTED_SRTP"), "always encrypted");
    }

    #[test]
    fn what_has_no_words_is_not_described() {
        let mut security = Security::shared(Suite::AesCm128HmacSha1_80, &[1; 30]).unwrap();
        #[allow(irrefutable_let_patterns, reason = "without ZRTP it is the only variant")]
        if let Security::Keys { send, .. } = &mut security {
            *send = send.clone().with_lifetime(1 << 30, 1 << 20).unwrap();
        }
        let error = security.to_crypto(1).unwrap_err().to_string();
        assert!(error.contains("lifetime of reports"), "{error}");
    }
}
