//! The keys and the policy of a secured stream.

mod sdes;

pub(crate) use sdes::HeaderPrivacy;

use rushes_proto::srtp::{KeyError, MasterKey, Policy, Suite};
use zeroize::Zeroizing;

use crate::error::Error;

/// The source of a secured stream's keys. `Debug` prints no keys.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Security {
    /// Keys from the application, which both ends have exchanged securely.
    Keys {
        /// The parameters that both ends agree on besides the keys.
        policy: Policy,
        /// The master key of sent packets.
        send: MasterKey,
        /// The master key of received packets; it may be the same.
        receive: MasterKey,
        /// Further master keys of received packets, distinguished by their identifiers; at most
        /// [`KEYS_MAX`](rushes_proto::srtp::KEYS_MAX) including `receive`.
        further: Vec<MasterKey>,
    },
    /// Keys that both ends agree on by ZRTP (RFC 6189) on the media's own ports; see
    /// [`zrtp`](crate::zrtp). Media is neither sent nor accepted before the agreement.
    #[cfg(feature = "zrtp")]
    Zrtp(crate::agreement::ZrtpConfig),
    /// Keys that both ends agree on by DTLS (RFC 5764) on the media's own port; see
    /// [`dtls`](crate::dtls). Media is neither sent nor accepted before the agreement.
    #[cfg(feature = "webrtc")]
    Dtls(crate::dtls::DtlsConfig),
}

/// The keys of a stream, once they are known.
#[derive(Clone, Copy)]
pub(crate) struct KnownKeys<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) send: &'a MasterKey,
    pub(crate) receive: &'a MasterKey,
    pub(crate) further: &'a [MasterKey],
}

impl Security {
    /// Returns the keys unless both ends must agree on them first.
    #[cfg_attr(
        not(any(feature = "webrtc", feature = "zrtp")),
        allow(clippy::unnecessary_wraps, reason = "`None` with key agreement")
    )]
    pub(crate) fn known_keys(&self) -> Option<KnownKeys<'_>> {
        match self {
            Self::Keys { policy, send, receive, further } => {
                Some(KnownKeys { policy, send, receive, further })
            }
            #[cfg(feature = "zrtp")]
            Self::Zrtp(_) => None,
            #[cfg(feature = "webrtc")]
            Self::Dtls(_) => None,
        }
    }

    /// Uses one master key in both directions, for streams with media in one direction and reports
    /// in the other.
    ///
    /// If both ends send media, use [`separate`](Self::separate): under one key, two streams that
    /// choose the same SSRC would break each other's encryption (RFC 3711 section 9.1, RFC 7714
    /// section 8.4). For the same reason a key must not be used for a second stream whose SSRC was
    /// set by hand.
    ///
    /// `key_and_salt` holds the key and its salt: 30 octets for
    /// [`Suite::AesCm128HmacSha1_80`], 28 for [`Suite::AeadAes128Gcm`].
    ///
    /// # Errors
    /// [`KeyError::Len`] if the suite needs another number of octets.
    ///
    /// ```
    /// use rushes::{Codec, Context, Security, Suite};
    /// # fn main() -> Result<(), rushes::Error> {
    /// let key = [0x5a; 28]; // use a random number generator instead
    /// let stream = Context::new()
    ///     .session("127.0.0.1")?
    ///     .stream(Codec::H264)
    ///     .security(Security::shared(Suite::AeadAes128Gcm, &key)?)
    ///     .open()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn shared(suite: Suite, key_and_salt: &[u8]) -> Result<Self, KeyError> {
        let key = MasterKey::new(suite, key_and_salt)?;
        let policy = Policy::new(suite);
        Ok(Self::Keys { policy, send: key.clone(), receive: key, further: Vec::new() })
    }

    /// Creates a random master key for both directions. The application must pass it to the peer
    /// securely, for example in a description over an encrypted channel
    /// ([`StreamBuilder::description`](crate::StreamBuilder::description)).
    ///
    /// # Errors
    /// [`Error::Random`] if the operating system returns no random numbers.
    pub fn random(suite: Suite) -> Result<Self, Error> {
        let mut octets = Zeroizing::new(vec![0; suite.key_and_salt_len()]);
        getrandom::fill(&mut octets).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self::shared(suite, &octets)?)
    }

    /// Uses separate master keys for sent and for received packets.
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub fn separate(suite: Suite, send: &[u8], receive: &[u8]) -> Result<Self, KeyError> {
        let (send, receive) = (MasterKey::new(suite, send)?, MasterKey::new(suite, receive)?);
        Ok(Self::Keys { policy: Policy::new(suite), send, receive, further: Vec::new() })
    }
}
