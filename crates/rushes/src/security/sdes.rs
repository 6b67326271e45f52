//! Keys as lines of a session description (RFC 4568), both ways.

use rushes_proto::sdp::{Crypto, CryptoError, InlineKey, Mki, SessionParameters};
use rushes_proto::srtp::{
    KEYS_MAX, KeyError, MasterKey, Policy, PolicyError, RTCP_LIFETIME_MAX, RTP_LIFETIME_MAX, Suite,
    Unprotector,
};

use super::{Given, Security};
use crate::error::SdesError;

impl Security {
    /// The `a=crypto` line with the key that this end sends under.
    ///
    /// # Errors
    /// [`SdesError::Undescribable`] if RFC 4568 cannot express it.
    pub fn to_crypto(&self, tag: u32) -> Result<Crypto, SdesError> {
        let Some(Given { policy, send, .. }) = self.given() else {
            return Err(SdesError::Undescribable("what is agreed on by ZRTP"));
        };
        let suite = described_suite(policy)?;
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

    /// What an `a=crypto` line says. Its first key is that of both directions; the others are
    /// accepted too.
    ///
    /// A description has the key of its writer. An answer would bring that of its reader (RFC 4568
    /// section 7.1), who must not send media under the writer's; give it to the stream with
    /// [`StreamBuilder::security`](crate::StreamBuilder::security), or see that it only receives. Where there is no answer, reports
    /// go back under the writer's key, which is the only one that the writer knows.
    ///
    /// # Errors
    /// [`SdesError`] if the line cannot be used.
    pub fn from_crypto(line: &Crypto) -> Result<Self, SdesError> {
        Self::read(line, false)
    }

    pub(crate) fn read(line: &Crypto, cryptex: bool) -> Result<Self, SdesError> {
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
        let policy = Policy { cryptex, ..policy };
        if valid.keys.len() > KEYS_MAX {
            return Err(SdesError::Unsupported { tag, what: "more than four master keys" });
        }
        let keys: Result<Vec<_>, _> = valid.keys.iter().map(|key| master_key(suite, key)).collect();
        let mut keys = keys.map_err(|reason| SdesError::Key { tag, reason })?.into_iter();
        let missing = CryptoError::Key { key: 1, reason: rushes_proto::sdp::KeyError::Missing };
        let first = keys.next().ok_or(SdesError::Crypto { tag, reason: missing })?;
        let further: Vec<MasterKey> = keys.collect();
        let given = Given { policy: &policy, send: &first, receive: &first, further: &further };
        given.unprotector(&policy).map_err(|reason| SdesError::Policy { tag, reason })?;
        Ok(Self::Keys { policy, send: first.clone(), receive: first, further })
    }
}

impl Given<'_> {
    pub(crate) fn unprotector(&self, policy: &Policy) -> Result<Unprotector, PolicyError> {
        let mut unprotector = Unprotector::new(policy, self.receive)?;
        self.further.iter().try_for_each(|key| unprotector.add_master_key(key))?;
        Ok(unprotector)
    }
}

/// Whether descriptions have a name for the suite; those that have none are said otherwise.
fn is_described(suite: Suite) -> bool {
    !matches!(suite, Suite::NullHmacSha1_80 | Suite::AesCm128NullAuth)
}

fn described_suite(policy: &Policy) -> Result<Suite, SdesError> {
    if !policy.encrypted_extensions.is_empty() {
        return Err(SdesError::Undescribable("which header extensions are encrypted (RFC 6904)"));
    }
    // Both have the lengths of the suite that they are a part of.
    let is_part = !is_described(policy.suite);
    Ok(if is_part { Suite::AesCm128HmacSha1_80 } else { policy.suite })
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
            Err(SdesError::Undescribable("a lifetime of reports that is not that of media"))
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
        // A hint: more than it asks for is right, and less than its most is safe.
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
            let Given { policy, send, .. } = read.given().unwrap();
            assert_eq!((line.tag, send.key_and_salt()), (3, &octets[..]), "{suite}");
            let parameters = described_parameters(policy);
            let wanted = security.given().unwrap().policy;
            assert_eq!(parameters, described_parameters(wanted), "{suite}");
            let tags = |policy: &Policy| (policy.overhead(0), policy.rtcp_overhead(0));
            assert_eq!(tags(policy), tags(wanted), "{suite}");
        }
    }

    #[test]
    fn options_come_back() {
        let text =
            format!("1 AES_CM_128_HMAC_SHA1_80 {KEY}|2^20|1:4 KDR=16 UNENCRYPTED_SRTCP WSH=4000");
        let security = Security::from_crypto(&line(&text)).unwrap();
        let Given { policy, send, .. } = security.given().unwrap();
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
        let Given { receive, further, .. } = read.given().unwrap();
        assert_eq!((receive.mki(), further.len(), further[0].mki()), (&[1][..], 1, &[2][..]));
    }

    #[test]
    fn a_line_that_cannot_be_followed_says_why() {
        let says = |text: &str, wanted: &str| {
            let error = Security::from_crypto(&line(text)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
            assert!(!error.contains("MDEy"), "{error}");
        };
        says(&format!("1 F8_128_HMAC_SHA1_80 {KEY}"), "unknown suite F8_128_HMAC_SHA1_80");
        says(&format!("1 NULL_HMAC_SHA1_80 {KEY}"), "unknown suite NULL_HMAC_SHA1_80");
        says(&format!("1 AEAD_AES_128_GCM {KEY}"), "28 octets for this suite, not 30");
        says(&format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} FEC_ORDER=SRTP_FEC"), "forward error");
        says(&format!("1 AES_CM_128_HMAC_SHA1_80 {KEY} NEW=1"), "not known and not optional");
        let gcm = "inline:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg==";
        says(&format!("1 AEAD_AES_128_GCM {gcm} UNENCRYPTED_SRTP"), "always encrypted");
    }

    #[test]
    fn what_has_no_words_is_not_described() {
        let mut security = Security::shared(Suite::AesCm128HmacSha1_80, &[1; 30]).unwrap();
        #[allow(irrefutable_let_patterns, reason = "without ZRTP there is no other")]
        if let Security::Keys { send, .. } = &mut security {
            *send = send.clone().with_lifetime(1 << 30, 1 << 20).unwrap();
        }
        let error = security.to_crypto(1).unwrap_err().to_string();
        assert!(error.contains("lifetime of reports"), "{error}");
    }
}
