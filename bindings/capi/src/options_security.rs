//! Keys: set by the application, or agreed on by ZRTP.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use rushes::zrtp::{PeerPolicy, ZrtpConfig};
use rushes::{MasterKey, Security, Ssrc, Suite};

use crate::error::{Failure, Status};
use crate::guard::guard;
use crate::hook::{Callback, Release, SasHook};
use crate::options::{StreamOptions, argument, change_all};
use crate::stream::Stream;
use crate::{handle, pointer};

/// Cipher and tag of SRTP. Key and salt together have 30 octets for AES-128 in counter mode, 38 for
/// AES-192, 46 for AES-256, 28 for AES-128-GCM, 44 for AES-256-GCM, and 30 without encryption.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum SrtpSuite {
    /// AES-128 in counter mode, tags of 80 bits: mandatory to implement.
    AesCm128HmacSha1Tag80 = 1,
    /// The same with tags of 32 bits on media.
    AesCm128HmacSha1Tag32 = 2,
    /// AES-192 in counter mode, tags of 80 bits.
    AesCm192HmacSha1Tag80 = 3,
    /// The same with tags of 32 bits on media.
    AesCm192HmacSha1Tag32 = 4,
    /// AES-256 in counter mode, tags of 80 bits.
    AesCm256HmacSha1Tag80 = 5,
    /// The same with tags of 32 bits on media.
    AesCm256HmacSha1Tag32 = 6,
    /// AES-128 in Galois/counter mode, tags of 128 bits: the fastest.
    AeadAes128Gcm = 7,
    /// AES-256 in Galois/counter mode, tags of 128 bits.
    AeadAes256Gcm = 8,
    /// No encryption, tags of 80 bits.
    NullHmacSha1Tag80 = 9,
    /// AES-128 in counter mode and no tag on media: anyone on the path can change the packets.
    AesCm128NullAuth = 10,
}

/// The peers with which ZRTP may agree on keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum ZrtpPolicy {
    /// Any peer.
    Allow = 0,
    /// Any except a peer with which the strings were compared in an earlier session and which has
    /// lost that session's secret.
    RefuseChanged = 1,
    /// Only peers with which the strings were compared in an earlier session.
    RefuseUnverified = 2,
    /// Only peers that know the secret of rushes_stream_options_zrtp_aux_secret().
    RequireSecret = 3,
}

pub(crate) fn suite(number: i32) -> Result<Suite, Failure> {
    let at = number.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    let suite = at.and_then(|at| SUITES.get(at).copied());
    suite.ok_or_else(|| argument(format!("{number} is not an SRTP suite")))
}

/// In the order of [`SrtpSuite`].
const SUITES: [Suite; 10] = [
    Suite::AesCm128HmacSha1_80,
    Suite::AesCm128HmacSha1_32,
    Suite::AesCm192HmacSha1_80,
    Suite::AesCm192HmacSha1_32,
    Suite::AesCm256HmacSha1_80,
    Suite::AesCm256HmacSha1_32,
    Suite::AeadAes128Gcm,
    Suite::AeadAes256Gcm,
    Suite::NullHmacSha1_80,
    Suite::AesCm128NullAuth,
];

/// The security settings made so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    keys: Option<Security>,
    zrtp: Option<ZrtpConfig>,
}

impl Secrets {
    pub(crate) fn security(&self) -> Option<Security> {
        self.zrtp.clone().map(Security::Zrtp).or_else(|| self.keys.clone())
    }

    /// Returns the time limit of the key agreement, or `None` without key agreement.
    pub(crate) fn zrtp_timeout(&self) -> Option<Duration> {
        self.zrtp.as_ref().map(|config| config.timeout)
    }

    pub(crate) fn set_zrtp(&mut self) -> &mut ZrtpConfig {
        self.zrtp.get_or_insert_default()
    }

    /// Sets the keys for sending and receiving; without a second key, the first is used for both.
    pub(crate) fn set_keys(
        &mut self,
        suite: i32,
        send: &[u8],
        receive: Option<&[u8]>,
    ) -> Result<(), Failure> {
        let suite = self::suite(suite)?;
        self.keys = Some(match receive {
            Some(receive) => Security::separate(suite, send, receive)?,
            None => Security::shared(suite, send)?,
        });
        self.zrtp = None;
        Ok(())
    }
}

/// Secures the stream with a master key that both ends have and that is used in both directions,
/// for streams with media in one direction and reports in the other. `suite` is a
/// rushes_srtp_suite; `key` is the key followed by its salt, `len` octets, which are copied.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_srtp(
    options: *const StreamOptions,
    suite: i32,
    key: *const u8,
    len: usize,
) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_keys(suite, pointer::slice(key, len)?, None)
    })
}

/// Secures the stream with separate master keys for sending and receiving, each of `len` octets,
/// for streams with media in both directions.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_srtp_separate(
    options: *const StreamOptions,
    suite: i32,
    send: *const u8,
    receive: *const u8,
    len: usize,
) -> Status {
    change_all(options, |settings| {
        let (send, receive) = (pointer::slice(send, len)?, pointer::slice(receive, len)?);
        settings.secrets.set_keys(suite, send, Some(receive))
    })
}

/// Lets both ends agree on keys (ZRTP, RFC 6189) when the stream is opened, on its own port.
/// Without a remote port this end waits for a peer to contact it. The ZRTP settings of a session's
/// first stream apply to the whole session.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp(options: *const StreamOptions) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_zrtp();
        Ok(())
    })
}

/// A file for this end's ZRTP identifier and the secrets of earlier sessions, so that strings that
/// were compared once need not be compared again. Enables ZRTP, like the following functions.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_cache(
    options: *const StreamOptions,
    path: *const c_char,
) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_zrtp().cache = Some(pointer::text(path)?.into());
        Ok(())
    })
}

/// Nanoseconds that rushes_stream_open() waits for the peer, by default 30 s.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_timeout(
    options: *const StreamOptions,
    timeout: u64,
) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_zrtp().timeout = Duration::from_nanos(timeout.min(i64::MAX as u64));
        Ok(())
    })
}

/// Whether this end only responds to key agreements and never initiates one; by default it may
/// initiate.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_passive(
    options: *const StreamOptions,
    on: bool,
) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_zrtp().is_passive = on;
        Ok(())
    })
}

/// A secret that both ends obtained by other means, `len` octets, which are copied.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_aux_secret(
    options: *const StreamOptions,
    secret: *const u8,
    len: usize,
) -> Status {
    change_all(options, |settings| {
        let secret = pointer::slice(secret, len)?.to_vec();
        settings.secrets.set_zrtp().aux_secret = Some(secret.into());
        Ok(())
    })
}

/// The peers with which ZRTP may agree on keys: a rushes_zrtp_policy. The default is
/// RUSHES_ZRTP_POLICY_ALLOW, or with a cache RUSHES_ZRTP_POLICY_REFUSE_CHANGED.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_policy(
    options: *const StreamOptions,
    policy: i32,
) -> Status {
    change_all(options, |settings| {
        settings.secrets.set_zrtp().policy = Some(match policy {
            0 => PeerPolicy::Allow,
            1 => PeerPolicy::RefuseChanged,
            2 => PeerPolicy::RefuseUnverified,
            3 => PeerPolicy::RequireSecret,
            _ => return Err(argument(format!("{policy} is not a ZRTP policy"))),
        });
        Ok(())
    })
}

/// Sets a function that receives the short authentication string when a stream opened with these
/// settings has agreed on its keys. It is called on the thread that opens the stream, before the
/// stream is returned. `user` is passed to the function, and to `release` (may be NULL) when the
/// function will not be called any more.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_options_zrtp_sas_hook(
    options: *const StreamOptions,
    hook: SasHook,
    user: *mut c_void,
    release: Release,
) -> Status {
    let mut callback = Some(Arc::new(Callback::new(hook, user, release)));
    let status = change_all(options, |settings| {
        if hook.is_none() {
            return Err(Failure::new(Status::Null, "the hook is null"));
        }
        settings.secrets.set_zrtp();
        std::mem::swap(&mut settings.sas_hook, &mut callback);
        Ok(())
    });
    // The release function of the previous or refused callback may use the settings, so the
    // callback is dropped unlocked.
    drop(callback);
    status
}

/// Creates a key with its master key identifier, if it has one.
fn master_key(
    suite: i32,
    (key, len): (*const u8, usize),
    (mki, mki_len): (*const u8, usize),
) -> Result<MasterKey, Failure> {
    let key = MasterKey::new(self::suite(suite)?, pointer::slice(key, len)?)?;
    let mki = pointer::slice(mki, mki_len)?;
    Ok(if mki.is_empty() { key } else { key.with_mki(mki)? })
}

/// Sends under another master key from the next packet and report on. The peer must accept this key
/// before. `suite` must be the stream's; `mki` is the master key identifier, NULL and 0 for none.
/// May be called on any thread, while others push.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_send_key(
    stream: *const Stream,
    suite: i32,
    key: *const u8,
    len: usize,
    mki: *const u8,
    mki_len: usize,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        Ok(stream.handle.set_send_key(&master_key(suite, (key, len), (mki, mki_len))?)?)
    })
}

/// Also accepts packets and reports under another master key from now on. The arguments are those
/// of rushes_stream_set_send_key().
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_add_receive_key(
    stream: *const Stream,
    suite: i32,
    key: *const u8,
    len: usize,
    mki: *const u8,
    mki_len: usize,
) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        Ok(stream.handle.add_receive_key(&master_key(suite, (key, len), (mki, mki_len))?)?)
    })
}

/// Sets the roll-over counter `roc` of the next packet of `source` (RFC 3711 section 3.3.1): needed
/// to join a secured stream that has run for more than 65536 packets.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_set_roll_over_counter(
    stream: *const Stream,
    source: u32,
    roc: u32,
) -> Status {
    guard(|| Ok(handle::get(stream)?.handle.set_roll_over_counter(Ssrc(source), roc)?))
}

/// Gets the roll-over counter of the packets that this end sends, for receivers that join late; 0
/// before the first packet and if the stream is not secured.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_stream_roll_over_counter(stream: *const Stream, roc: *mut u32) -> Status {
    guard(|| {
        let stream = handle::get(stream)?;
        pointer::write(roc, stream.handle.roll_over_counter())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suite_has_its_number() {
        for (number, suite) in (1..).zip(Suite::ALL) {
            assert_eq!(self::suite(number).unwrap(), suite);
        }
        assert!(suite(0).is_err() && suite(11).is_err() && suite(i32::MIN).is_err());
        assert_eq!(suite(SrtpSuite::AeadAes128Gcm as i32).unwrap(), Suite::AeadAes128Gcm);
        assert_eq!(suite(SrtpSuite::AesCm128NullAuth as i32).unwrap(), Suite::AesCm128NullAuth);
    }
}
