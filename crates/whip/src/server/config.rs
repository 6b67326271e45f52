//! Settings of a server.

use std::time::Duration;

use crate::{IceServer, Identity, Kind, Token};

/// Settings of a [`crate::Server`].
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The token that clients must show; by default none, and everyone who reaches the server may
    /// use it.
    pub token: Option<Token>,
    /// The certificate for HTTPS; by default none, and the server speaks HTTP.
    ///
    /// Browsers give a page the camera only over HTTPS or from `localhost`.
    pub identity: Option<Identity>,
    /// Which other sites' pages may use the server; by default none.
    pub origins: Origins,
    /// Whether clients may publish (`/whip`); by default they may.
    pub publish: bool,
    /// Whether clients may play (`/whep`); by default they may.
    pub play: bool,
    /// Whether `/` is the page that plays and publishes; by default it is.
    pub page: bool,
    /// The STUN and TURN servers that clients are told of, with their credentials; by default none. They come in the
    /// response to an offer (RFC 9725 section 4.6): to clients with the token, or without a [`token`](Self::token) to
    /// everyone.
    pub ice_servers: Vec<IceServer>,
    /// Maximum sessions at a time; 64 by default.
    pub sessions_max: usize,
    /// Maximum connections at a time; 256 by default. Beyond it a new connection replaces the
    /// oldest one whose request is incomplete.
    pub connections_max: usize,
    /// Maximum bytes of an offer or fragment; 64 KiB by default. A browser's offer has 10.
    pub body_max: usize,
    /// How long a connection may last, from its first byte to the end of the response; 20 seconds
    /// by default. Each connection carries one request.
    pub request_timeout: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            token: None,
            identity: None,
            origins: Origins::default(),
            publish: true,
            play: true,
            page: true,
            ice_servers: Vec::new(),
            sessions_max: 64,
            connections_max: 256,
            body_max: 64 << 10,
            request_timeout: Duration::from_secs(20),
        }
    }
}

impl ServerConfig {
    pub(super) fn serves(&self, kind: Kind) -> bool {
        match kind {
            Kind::Publish => self.publish,
            Kind::Play => self.play,
        }
    }
}

/// Which other sites' pages may use a server (Cross-Origin Resource Sharing).
///
/// Programs send no `Origin` and are not concerned.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Origins {
    /// None: only the server's own page.
    #[default]
    Same,
    /// These, such as `https://studio.example`; compared as text.
    List(Vec<String>),
    /// All. Without a token, each page that a user of this network opens may publish and play.
    Any,
}

impl Origins {
    pub(super) fn allows(&self, origin: &str) -> bool {
        match self {
            Self::Same => false,
            Self::List(list) => list.iter().any(|one| one.eq_ignore_ascii_case(origin)),
            Self::Any => true,
        }
    }
}
