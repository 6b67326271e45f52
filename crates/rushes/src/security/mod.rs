//! How a stream is secured: which keys, under which policy.

mod sdes;

use rushes_proto::srtp::{KeyError, MasterKey, Policy, Suite};
use zeroize::Zeroizing;

use crate::error::Error;

/// Where a secured stream's keys come from. `Debug` prints none.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Security {
    /// The application has them: both ends got them in some safe way.
    Keys {
        /// What both ends agree on besides the keys.
        policy: Policy,
        /// The master key of what this end sends.
        send: MasterKey,
        /// The master key of what this end receives; it may be the same.
        receive: MasterKey,
        /// Other master keys that what this end receives may be under, told apart by their
        /// identifiers; at most [`KEYS_MAX`](rushes_proto::srtp::KEYS_MAX) with `receive`.
        further: Vec<MasterKey>,
    },
    /// The ends agree on them, on the media's own ports (ZRTP, RFC 6189); see
    /// [`zrtp`](crate::zrtp). Media is neither sent nor taken before.
    #[cfg(feature = "zrtp")]
    Zrtp(crate::agreement::ZrtpConfig),
}

/// Keys that are there.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) send: &'a MasterKey,
    pub(crate) receive: &'a MasterKey,
    pub(crate) further: &'a [MasterKey],
}

impl Security {
    /// The keys, if they need not be agreed on first.
    #[cfg_attr(not(feature = "zrtp"), allow(clippy::unnecessary_wraps, reason = "for ZRTP"))]
    pub(crate) fn given(&self) -> Option<Given<'_>> {
        match self {
            Self::Keys { policy, send, receive, further } => {
                Some(Given { policy, send, receive, further })
            }
            #[cfg(feature = "zrtp")]
            Self::Zrtp(_) => None,
        }
    }

    /// The same master key both ways, for streams whose media goes one way and whose reports come
    /// back. Where both ends send media, use [`separate`](Self::separate): under one key two streams
    /// that happen on the same SSRC would undo each other's encryption (RFC 3711 section 9.1, RFC
    /// 7714 section 8.4). For the same reason a key must not be used for a second stream whose SSRC
    /// was set by hand.
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
    /// let key = [0x5a; 28]; // from a random number generator, in the life of a key
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

    /// A master key that nobody has had before, the same both ways; the peer must be told it in
    /// some safe way, such as a description over an encrypted channel
    /// ([`StreamBuilder::description`](crate::StreamBuilder::description)).
    ///
    /// # Errors
    /// [`Error::Random`] if the operating system gives no random numbers.
    pub fn random(suite: Suite) -> Result<Self, Error> {
        let mut octets = Zeroizing::new(vec![0; suite.key_and_salt_len()]);
        getrandom::fill(&mut octets).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self::shared(suite, &octets)?)
    }

    /// Master keys of their own for what is sent and for what is received.
    ///
    /// # Errors
    /// As [`shared`](Self::shared).
    pub fn separate(suite: Suite, send: &[u8], receive: &[u8]) -> Result<Self, KeyError> {
        let (send, receive) = (MasterKey::new(suite, send)?, MasterKey::new(suite, receive)?);
        Ok(Self::Keys { policy: Policy::new(suite), send, receive, further: Vec::new() })
    }
}
