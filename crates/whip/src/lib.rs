//! WHIP and WHEP: sessions of WebRTC entered over HTTP (RFC 9725, draft-ietf-wish-whep-03).
//!
//! A client posts an offer to an endpoint's URL; the endpoint's answer comes back with the URL of a
//! session, which the client patches (ICE) and at last deletes. WHIP ([`Kind::Publish`]) sends media
//! to the endpoint, WHEP ([`Kind::Play`]) fetches media from it; over HTTP both are the same.
//!
//! - [`Client`] posts offers and returns a [`Session`]. Its calls block, up to a time-out.
//! - [`Server`] listens on threads of its own and calls an [`Endpoint`], which the application
//!   provides. It has a page that plays and publishes in a browser.
//!
//! **Not in scope.** Media, and the meaning of offers and answers: they are text here.
#![forbid(unsafe_code)]

mod client;
mod kind;
mod page;
mod server;
mod tls;
mod token;

#[doc(hidden)]
pub use client::read_fields;
pub use client::{Client, ClientError, ClientOptions, IceServer, Roots, Session};
pub use kind::Kind;
pub use server::{
    BindError, Endpoint, OpenRequest, Origins, Reason, Refusal, Server, ServerConfig,
};
pub use tls::{Identity, IdentityError};
pub use token::{Token, TokenError};
