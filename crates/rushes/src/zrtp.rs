//! Key agreement between the two ends, on the media's own ports (ZRTP, RFC 6189).
//!
//! The first stream of a session agrees on a key, from which the others derive theirs. Both ends
//! then show a short authentication string, which their users must compare, for example by reading
//! it to each other. If the strings are equal, there is no attacker in between, in this session or
//! in later ones that retain its secrets.
//!
//! ```
//! use rushes::zrtp::ZrtpConfig;
//! use rushes::{Codec, Context, Security};
//! use std::thread;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), rushes::Error> {
//! let stream = |session: &rushes::Session| {
//!     session.stream(Codec::Generic).security(Security::Zrtp(ZrtpConfig::default()))
//! };
//! // The camera's end, which waits for a peer.
//! let bob = Context::new().session("127.0.0.1")?;
//! let mut opening = stream(&bob).begin()?;
//! let port = opening.local_address().port();
//! let receiver = thread::spawn(move || opening.wait(Duration::from_secs(10)));
//!
//! let alice = Context::new().session("127.0.0.1")?;
//! let mut sender = stream(&alice).remote_port(port).open()?;
//! let mut receiver = receiver.join().expect("no panic")?.expect("agreed in time");
//!
//! // Both ends show the same string.
//! let (a, b) = (alice.sas().expect("secure"), bob.sas().expect("secure"));
//! assert_eq!(a.sas.to_string(), b.sas.to_string());
//! alice.verify_sas(true);
//! bob.verify_sas(true);
//!
//! sender.push_frame(b"for bob only", None)?;
//! assert_eq!(receiver.pull_frame(Duration::from_secs(1))?.expect("a frame")[..], *b"for bob only");
//! # Ok(())
//! # }
//! ```

pub use crate::agreement::*;
pub use crate::error::{FileStoreError, ZrtpError};
pub use crate::setup::Opening;
