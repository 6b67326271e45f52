//! Keys of SRTP from exported octets (RFC 5764 section 4.2).

use std::fmt;

use dimpl::SrtpProfile;
use rushes_proto::srtp::Suite;
use zeroize::Zeroizing;

/// The keys of an association's media. `Debug` prints no keys.
#[derive(Clone, Eq, PartialEq)]
pub struct Keys {
    /// The protection profile that both ends agreed on.
    pub suite: Suite,
    /// The master key of packets that this end sends, followed by its salt.
    pub send: Zeroizing<Vec<u8>>,
    /// The master key of packets that this end receives, followed by its salt.
    pub receive: Zeroizing<Vec<u8>>,
}

impl Keys {
    /// Splits exported octets: the client's key, the server's key, the client's salt, the server's.
    /// `None` if they are not as many as the profile needs, or if the profile is unknown.
    pub(super) fn split(exported: &[u8], profile: SrtpProfile, is_client: bool) -> Option<Self> {
        let suite = suite_of(profile)?;
        let (key, salt) = (suite.key_len(), suite.salt_len());
        if exported.len() != 2 * (key + salt) {
            return None;
        }
        let (keys, salts) = exported.split_at(2 * key);
        let of = |n: usize| {
            let (key, salt) = (&keys[n * key..][..key], &salts[n * salt..][..salt]);
            Zeroizing::new([key, salt].concat())
        };
        let (client, server) = (of(0), of(1));
        let (send, receive) = if is_client { (client, server) } else { (server, client) };
        Some(Self { suite, send, receive })
    }
}

/// Returns the suite of a protection profile (RFC 5764 section 4.1.2, RFC 7714 section 14.2).
fn suite_of(profile: SrtpProfile) -> Option<Suite> {
    match profile {
        SrtpProfile::AES128_CM_SHA1_80 => Some(Suite::AesCm128HmacSha1_80),
        SrtpProfile::AEAD_AES_128_GCM => Some(Suite::AeadAes128Gcm),
        SrtpProfile::AEAD_AES_256_GCM => Some(Suite::AeadAes256Gcm),
        _ => None,
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("suite", &self.suite).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_precede_salts_and_the_clients_precede_the_servers() {
        let octets: Vec<u8> = (0..60).collect();
        let profile = SrtpProfile::AES128_CM_SHA1_80;
        let client = Keys::split(&octets, profile, true).unwrap();
        assert_eq!(client.send[..], [&octets[..16], &octets[32..46]].concat());
        assert_eq!(client.receive[..], [&octets[16..32], &octets[46..]].concat());
        let server = Keys::split(&octets, profile, false).unwrap();
        assert_eq!((server.send, server.receive), (client.receive, client.send));
        assert_eq!(Keys::split(&octets[1..], profile, true), None);
        assert!(Keys::split(&octets[..56], SrtpProfile::AEAD_AES_128_GCM, true).is_some());
    }
}
