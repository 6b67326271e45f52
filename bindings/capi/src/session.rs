//! Sessions.

use std::ffi::c_char;

use rushes::zrtp::Warning;

use crate::context::Context;
use crate::error::{Failure, Status};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::{handle, pointer};

/// One peer, and the streams exchanged with it.
#[derive(Debug)]
pub struct Session(pub(crate) rushes::Session);
handle_type!(Session, 2, "session");

/// The short authentication string of a session.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Sas {
    /// The string for two people to read to each other, terminated by a zero octet.
    pub text: [c_char; 64],
    /// The complete hash; the string is derived from its beginning.
    pub hash: [u8; 32],
    /// Whether both ends have compared it, in this session or one that it continues.
    pub is_verified: bool,
    /// Whether both ends have the same secret (rushes_stream_options_zrtp_aux_secret()), so that no
    /// comparison is needed.
    pub shares_secret: bool,
}

impl From<&rushes::zrtp::SasStatus> for Sas {
    fn from(status: &rushes::zrtp::SasStatus) -> Self {
        let text = pointer::text_array(&status.sas.to_string());
        let (is_verified, shares_secret) = (status.is_verified, status.shares_secret);
        Self { text, hash: status.sas_hash, is_verified, shares_secret }
    }
}

/// A problem with a session's key agreement by ZRTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum ZrtpWarning {
    /// No warning.
    None = 0,
    /// The peer does not know a secret of an earlier session: compare the strings.
    CacheMismatch = 1,
    /// Like RUSHES_ZRTP_WARNING_CACHE_MISMATCH, but the strings were compared before, which makes a
    /// man in the middle more likely.
    VerifiedBefore = 2,
    /// The auxiliary secret differs from the peer's.
    AuxMismatch = 3,
    /// The peer discloses the session to third parties.
    Disclosure = 4,
    /// The peer signed the string, which is not verified here.
    Signature = 5,
    /// A message was forged or modified, and was discarded.
    Forged = 6,
    /// A Hello does not match the announced hash.
    HelloHash = 7,
    /// A warning of a later version.
    Other = 8,
}

/// Creates a session with one peer; close it with rushes_session_close().
///
/// `peer` is a host name, an IPv4 or IPv6 address or a multicast group. Streams send to it, and
/// accept datagrams only from it (for a group, from any host). It cannot be "0.0.0.0" or "::",
/// which no datagram comes from; see rushes_session_receive_on(). With NULL, streams receive from
/// any host and do not send. `local` is the local address to bind to, or NULL for all.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_new(
    context: *const Context,
    peer: *const c_char,
    local: *const c_char,
    session: *mut *mut Session,
) -> Status {
    guard(|| {
        pointer::write(session, std::ptr::null_mut())?;
        let context = handle::get(context)?;
        let mut new = match pointer::optional_text(peer)? {
            Some(peer) => context.0.session(peer)?,
            None => context.0.session_any(),
        };
        if let Some(local) = pointer::optional_text(local)? {
            new = new.local_address(local)?;
        }
        pointer::write(session, handle::insert(Session(new))?)
    })
}

/// Creates a session that receives from any host at one local address; close it with
/// rushes_session_close().
///
/// `address` is a host name, an IPv4 or IPv6 address of this machine, or a multicast group, which
/// is joined; "0.0.0.0" means every IPv4 address, "::" every IPv6 and IPv4 address.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_receive_on(
    context: *const Context,
    address: *const c_char,
    session: *mut *mut Session,
) -> Status {
    guard(|| {
        pointer::write(session, std::ptr::null_mut())?;
        let new = handle::get(context)?.0.receive_on(pointer::text(address)?)?;
        pointer::write(session, handle::insert(Session(new))?)
    })
}

/// Closes a session. Its streams stay open until they are closed themselves.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_close(session: *mut Session) -> Status {
    guard(|| handle::remove(session).map(drop))
}

/// Gets the session's short authentication string. RUSHES_TIMEOUT, and nothing is written, before
/// its first stream has agreed on a key by ZRTP. `size` is sizeof(rushes_sas).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_sas(
    session: *const Session,
    sas: *mut Sas,
    size: usize,
) -> Status {
    guard_with(|| {
        pointer::check(sas)?;
        let Some(status) = handle::get(session)?.0.sas() else { return Ok(Status::Timeout) };
        pointer::write_prefix(sas, size, Sas::from(&status))?;
        Ok(Status::Ok)
    })
}

/// Reports whether both ends found their short authentication strings equal. If they are equal,
/// later sessions with the peer need no comparison while both ends keep a cache
/// (rushes_stream_options_zrtp_cache()). If they differ, there is a man in the middle: close the
/// streams. RUSHES_ERROR_UNSUPPORTED if there is no string yet.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_verify_sas(session: *const Session, are_equal: bool) -> Status {
    guard(|| {
        if handle::get(session)?.0.verify_sas(are_equal) {
            return Ok(());
        }
        Err(Failure::new(Status::Unsupported, "there is no short authentication string yet"))
    })
}

/// Removes and gets the next warning about the session's key agreement: a rushes_zrtp_warning, 0 if
/// there is none.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_session_poll_zrtp_warning(
    session: *const Session,
    warning: *mut i32,
) -> Status {
    guard(|| {
        pointer::check(warning)?;
        let next = handle::get(session)?.0.poll_zrtp_warning();
        let next = next.map_or(ZrtpWarning::None, |warning| match warning {
            Warning::CacheMismatch => ZrtpWarning::CacheMismatch,
            Warning::VerifiedBefore => ZrtpWarning::VerifiedBefore,
            Warning::AuxMismatch => ZrtpWarning::AuxMismatch,
            Warning::Disclosure => ZrtpWarning::Disclosure,
            Warning::Signature => ZrtpWarning::Signature,
            Warning::Forged => ZrtpWarning::Forged,
            Warning::HelloHash => ZrtpWarning::HelloHash,
            _ => ZrtpWarning::Other,
        });
        pointer::write(warning, next as i32)
    })
}
