//! Key agreement by DTLS on the media's own port (DTLS-SRTP, RFC 5763, RFC 5764).
//!
//! Each end has a certificate, and knows the fingerprint of the other's from a description or by
//! other means. The end with [`Setup::Active`] begins the handshake; when it is complete at both ends,
//! media flows under SRTP.
//!
//! An end that waits takes first messages from any address that the session accepts, and from eight
//! at a time. The first that shows the expected certificate is the peer. With a known peer address only
//! that address is heard.
//!
//! RTCP must share the media's port ([`rtcp_mux`](crate::StreamBuilder::rtcp_mux)), because the keys are
//! those of one port.
//!
//! ```
//! use rushes::dtls::{Certificate, DtlsConfig};
//! use rushes::{Codec, Context, Security};
//! use std::thread;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (alice, bob) = (Certificate::generate()?, Certificate::generate()?);
//! let stream = |own: &Certificate, peer: &Certificate| -> Result<_, rushes::Error> {
//!     let mut config = DtlsConfig::new(vec![peer.fingerprint()]);
//!     config.certificate = Some(own.clone());
//!     let session = Context::new().session("127.0.0.1")?;
//!     Ok(session.stream(Codec::Generic).rtcp_mux(true).security(Security::Dtls(config)))
//! };
//! let mut opening = stream(&bob, &alice)?.begin()?;
//! let port = opening.local_address().port();
//! let receiver = thread::spawn(move || opening.wait(Duration::from_secs(10)));
//!
//! let mut sender = stream(&alice, &bob)?.remote_port(port).open()?;
//! let mut receiver = receiver.join().expect("no panic")?.expect("agreed in time");
//! sender.push_frame(b"for bob only", None)?;
//! assert_eq!(receiver.pull_frame(Duration::from_secs(1))?.expect("a frame")[..], *b"for bob only");
//! # Ok(())
//! # }
//! ```

mod handshake;

use std::time::Duration;

pub use rushes_webrtc::dtls::{
    Certificate, CertificateError, DtlsError, Fingerprint, FingerprintError, HashFunction, Setup,
    SetupError,
};

pub use crate::error::DtlsSetupError;
pub(crate) use handshake::{Handshake, HandshakeEvent};

/// The default time for which [`open`](crate::StreamBuilder::open) waits for the peer; it is as long as a
/// handshake may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Options of the key agreement of a stream by DTLS. `Debug` prints no secret.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DtlsConfig {
    /// The certificate of this end and its key. Without one, the [`Context`](crate::Context) makes one
    /// for all its streams.
    pub certificate: Option<Certificate>,
    /// The fingerprints of the peer's certificate. One by the strongest hash function among them must
    /// match, and without any no stream is opened.
    pub expected: Vec<Fingerprint>,
    /// Which end begins. The default, [`Setup::ActPass`], means this one if it knows the peer's address
    /// and port.
    pub setup: Setup,
    /// The time for which [`open`](crate::StreamBuilder::open) waits for the peer; 30 seconds by
    /// default.
    pub timeout: Duration,
}

impl DtlsConfig {
    /// Creates the options for a peer whose certificate has one of the fingerprints `expected`.
    pub fn new(expected: Vec<Fingerprint>) -> Self {
        Self { certificate: None, expected, setup: Setup::ActPass, timeout: TIMEOUT }
    }
}
