//! The context of an application: its name and clock, from which sessions are made.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use rushes_proto::NtpTime;

use super::session::Session;
use crate::error::{self, Error};

/// The application's identity towards its peers; sessions are made from it.
///
/// All its streams announce one canonical name and one wall clock, so that a receiver can
/// synchronise them. Cheap to clone; clones share the context.
#[derive(Clone, Debug, Default)]
pub struct Context {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cname: OnceLock<String>,
    wall_clock: (Instant, NtpTime),
    /// The certificate by which peers recognise the application, once one was needed.
    #[cfg(feature = "webrtc")]
    certificate: OnceLock<rushes_webrtc::dtls::Certificate>,
}

impl Default for Shared {
    fn default() -> Self {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let ntp = NtpTime::from_unix(since_epoch.unwrap_or(Duration::ZERO));
        Self {
            cname: OnceLock::new(),
            wall_clock: (Instant::now(), ntp),
            #[cfg(feature = "webrtc")]
            certificate: OnceLock::new(),
        }
    }
}

impl Context {
    /// Creates a context with default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a context whose streams announce the canonical name `cname` (RFC 3550 section
    /// 6.5.1), 1 to 255 octets. Without it the name is random (RFC 7022 section 4.2).
    ///
    /// # Errors
    /// [`Error::Cname`] if it is empty or too long.
    pub fn with_cname(cname: &str) -> Result<Self, Error> {
        if !(1..=255).contains(&cname.len()) {
            return Err(Error::Cname { len: cname.len() });
        }
        let context = Self::default();
        let _ = context.shared.cname.set(cname.to_owned());
        Ok(context)
    }

    /// Returns the canonical name.
    ///
    /// # Errors
    /// [`Error::Random`] if the name is to be random and no random numbers are available.
    pub fn cname(&self) -> Result<&str, Error> {
        if let Some(cname) = self.shared.cname.get() {
            return Ok(cname);
        }
        let cname = random_cname()?;
        Ok(self.shared.cname.get_or_init(|| cname))
    }

    /// Returns an instant and the wall-clock time at that instant. The wall clock is read only
    /// once, so that it never jumps.
    pub(crate) fn wall_clock(&self) -> (Instant, NtpTime) {
        self.shared.wall_clock
    }

    /// Returns the certificate by which peers recognise the application, the same for all of them.
    #[cfg(feature = "webrtc")]
    pub(crate) fn certificate(&self) -> Result<rushes_webrtc::dtls::Certificate, Error> {
        if let Some(certificate) = self.shared.certificate.get() {
            return Ok(certificate.clone());
        }
        let certificate = rushes_webrtc::dtls::Certificate::generate();
        let certificate = certificate.map_err(error::PeerError::from)?;
        Ok(self.shared.certificate.get_or_init(|| certificate).clone())
    }

    /// Creates a session with one peer: a host name, an IPv4 or IPv6 address, or a multicast group.
    ///
    /// Streams of the session send to this host and, unless it is a multicast group, accept
    /// datagrams only from its address.
    ///
    /// # Errors
    /// [`Error::Net`] if the name cannot be resolved, [`Error::UnspecifiedPeer`] if the address is
    /// `0.0.0.0` or `::`.
    pub fn session(&self, peer: &str) -> Result<Session, Error> {
        let peer = rushes_net::resolve(peer, 0)?;
        error::check_peer(peer.ip())?;
        Ok(Session::new(self.clone(), Some(peer)))
    }

    /// Creates a session without a peer, whose streams receive from any host at the local
    /// `address`: a host name, an IPv4 or IPv6 address, or a multicast group, which is joined.
    /// `0.0.0.0` means every IPv4 address of this machine, `::` every IPv6 and IPv4 address.
    ///
    /// [`StreamBuilder::local_port`](crate::StreamBuilder::local_port) sets the port.
    ///
    /// ```
    /// use rushes::{Codec, Context};
    ///
    /// # fn main() -> Result<(), rushes::Error> {
    /// let session = Context::new().receive_on("127.0.0.1")?;
    /// let stream = session.stream(Codec::H265).open()?;
    /// assert!(stream.local_address().ip().is_loopback());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Net`] if the name cannot be resolved.
    pub fn receive_on(&self, address: &str) -> Result<Session, Error> {
        let local = rushes_net::resolve(address, 0)?;
        if local.ip().is_multicast() {
            return Ok(Session::new(self.clone(), Some(local)));
        }
        self.session_any().local_address(address)
    }

    /// Creates a session without a peer, whose streams receive from any host and send no media.
    ///
    /// It listens on every IPv4 address; use [`receive_on`](Self::receive_on) for another address.
    pub fn session_any(&self) -> Session {
        Session::new(self.clone(), None)
    }
}

/// Returns 96 random bits in hexadecimal digits. RFC 7022 section 4.2 requires this number of bits,
/// in Base64.
fn random_cname() -> Result<String, Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits[4..]).map_err(|error| Error::Random(error.to_string()))?;
    Ok(format!("{:024x}", u128::from_be_bytes(bits)))
}
