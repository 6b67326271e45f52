//! Keys for SRTP from a DTLS handshake on the media's port (RFC 5763, RFC 5764, RFC 8842).
//!
//! Both ends tell each other the [fingerprint](Fingerprint) of their [certificate](Certificate) and
//! who begins ([`Setup`]) over a channel that an attacker cannot write to, such as a description
//! exchanged by HTTPS. An [`Association`] then does the handshake; its result is a master key and
//! salt for each direction ([`Keys`]). It has no socket and no address: the caller moves datagrams,
//! and decides from which addresses it takes them.
//!
//! ```
//! use rushes_webrtc::dtls::{Association, Certificate, Config, Event};
//! use std::time::Instant;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Instant::now();
//! let (alice, bob) = (Certificate::generate()?, Certificate::generate()?);
//! let config = |own: &Certificate, peer: &Certificate, is_client| Config {
//!     certificate: own.clone(),
//!     is_client,
//!     expected: vec![peer.fingerprint()],
//! };
//! let mut client = Association::new(config(&alice, &bob, true), now)?;
//! let mut server = Association::new(config(&bob, &alice, false), now)?;
//! loop {
//!     let mut is_idle = true;
//!     while let Some(datagram) = client.poll_datagram() {
//!         server.handle_datagram(now, &datagram);
//!         is_idle = false;
//!     }
//!     while let Some(datagram) = server.poll_datagram() {
//!         client.handle_datagram(now, &datagram);
//!         is_idle = false;
//!     }
//!     if is_idle {
//!         break;
//!     }
//! }
//! let (Some(Event::Keys(a)), Some(Event::Keys(b))) = (client.poll_event(), server.poll_event())
//! else {
//!     panic!("both ends have keys");
//! };
//! assert_eq!((a.send, a.receive), (b.receive, b.send));
//! # Ok(())
//! # }
//! ```

mod association;
mod certificate;
mod error;
mod fingerprint;
mod keys;
mod record;
mod setup;

pub use association::{Association, Config, DATAGRAM_MAX, Event};
pub use certificate::Certificate;
pub use error::{CertificateError, DtlsError, FingerprintError, SetupError};
pub use fingerprint::{Fingerprint, HashFunction};
pub use keys::Keys;
pub use setup::Setup;
