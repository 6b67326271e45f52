//! Offer and answer: what both ends send and receive (RFC 3264, RFC 9429).
//!
//! [`offer()`] describes what this end has ([`LocalSession`]), [`answer()`] answers the description of
//! a peer, and [`accept()`] reads the peer's answer. [`answer()`] and [`accept()`] return the same
//! [`Negotiated`], so that the rest of a program need not know who offered. [`Fragment`] carries later
//! candidates (RFC 8840).
//!
//! ```
//! use rushes_proto::PayloadType;
//! use rushes_proto::sdp::{Direction, Encoding, Format, MediaKind, OpusParameters};
//! use rushes_webrtc::negotiation::{LocalFormat, LocalMedia, LocalSession, accept, answer, offer, read};
//!
//! let opus = Format::new(PayloadType::OPUS, Encoding::Opus(OpusParameters::default()));
//! let media = |direction| LocalMedia::new(MediaKind::Audio, direction, vec![LocalFormat::new(opus.clone())]);
//! let session = |id, direction| {
//!     let mut session = LocalSession::new(id, "cname", "sha-256 AB:CD");
//!     session.address = "192.0.2.1:5004".parse().unwrap();
//!     session.media.push(media(direction));
//!     session
//! };
//! let (sender, receiver) = (session(1, Direction::SendOnly), session(2, Direction::RecvOnly));
//! let offered = offer(&sender)?.write();
//! let (answered, there) = answer(&receiver, &read(&offered)?)?;
//! let here = accept(&sender, &read(&answered.write())?)?;
//! assert!(here.agreed().all(|(_, media)| media.sends() && !media.receives()));
//! assert!(there.agreed().all(|(_, media)| media.receives() && !media.sends()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **One transport.** All media shares one port: BUNDLE (RFC 9143), with RTP and RTCP together (RFC
//! 5761, RFC 8858). A description without BUNDLE can have one media; further media is refused.
//!
//! **One layer.** Simulcast (RFC 8853) and restrictions by `a=rid` (RFC 8851) are not answered, so that a
//! peer that offers several layers sends one stream: an offerer must not send simulcast that the answer
//! lacks (RFC 8853 section 5.3.3).
//!
//! **Repair** is by retransmission (RFC 4588). `red`, `ulpfec` and `flexfec-03` are not taken.
//!
//! **Leniency.** Each media repeats credentials, fingerprint and role, as browsers do, although RFC 9143
//! has them in one media of a group; media of our offers is not `bundle-only`, so that peers that take
//! port 0 for a refusal answer it. `a=rtcp-mux-only` stands in offers only (RFC 8858 section 4.3, against
//! RFC 9725 section 4.4.1).

mod accept;
mod agree;
mod agreed;
mod answer;
mod bundle;
mod error;
mod extensions;
mod formats;
mod fragment;
mod h264;
mod local;
mod offer;
mod section;
mod transport;

use rushes_proto::sdp::Description;

pub use accept::accept;
pub use agreed::{
    AgreedExtension, AgreedFormat, AgreedMedia, Negotiated, NegotiatedMedia, RemoteIce,
    RemoteTransport,
};
pub use answer::answer;
pub use error::{MediaLine, NegotiationError, Refusal};
pub use fragment::{Fragment, FragmentMedia};
pub use h264::Shortfall;
pub use local::{DtlsRole, LocalFormat, LocalIce, LocalMedia, LocalSession, Msid};
pub use offer::offer;

/// Maximum number of candidates that are read from one description or fragment.
pub const CANDIDATES_MAX: usize = 128;
/// Maximum number of fingerprints that are read from one description.
pub const FINGERPRINTS_MAX: usize = 8;
/// Maximum number of formats of one media of ours.
pub const FORMATS_OF_MEDIA_MAX: usize = 32;

/// Reads the description of a peer, an offer or an answer.
///
/// In contrast to [`Description::parse`], each `m=` line must be readable, because an answer needs as
/// many as the offer has.
///
/// # Errors
/// [`NegotiationError::Description`] if the text is not a description,
/// [`NegotiationError::UnreadableMedia`] if `m=` lines of it cannot be read.
pub fn read(text: &str) -> Result<Description, NegotiationError> {
    let description = Description::parse(text.as_bytes())?;
    let lines = text.lines().filter(|line| line.trim_start().starts_with("m=")).count();
    let unread = lines.saturating_sub(description.media.len());
    if unread > 0 {
        return Err(NegotiationError::UnreadableMedia { lines, unread });
    }
    Ok(description)
}
