//! A client of WHIP and WHEP.

mod error;
mod exchange;
mod fields;
mod link;
mod trust;
mod url;

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{self, HeaderMap};
use hyper::{Method, StatusCode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

pub use error::ClientError;
use exchange::{Reply, Request, Transport};
#[doc(hidden)]
pub use fields::read_fields;
pub use link::IceServer;
use url::Url;

use crate::Token;
use crate::kind::{FRAGMENT, SDP, is_type};

/// Maximum redirections of an offer.
const REDIRECTIONS_MAX: usize = 5;

/// Settings of a [`Client`].
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// How long a request may take, redirections included; 10 seconds by default.
    pub timeout: Duration,
    /// Which certificates are trusted.
    pub roots: Roots,
    /// Maximum bytes of an answer; 256 KiB by default.
    pub body_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        let timeout = Duration::from_secs(10);
        Self { timeout, roots: Roots::default(), body_max: 256 << 10 }
    }
}

/// Which certificates a client trusts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Roots {
    /// Those that are valid by the certificates of this system.
    #[default]
    System,
    /// Those that are valid by these certificates, in PEM, and no others.
    Pem(Vec<u8>),
}

/// A client of WHIP and WHEP endpoints.
///
/// Its calls block up to [`ClientOptions::timeout`]; they may come from any thread.
#[derive(Clone, Debug)]
pub struct Client {
    transport: Arc<Transport>,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// [`ClientError::Roots`] if no certificate can be read.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        Ok(Self { transport: Arc::new(Transport::new(options)?) })
    }

    /// Posts an offer to an endpoint's URL and returns the session with its answer.
    ///
    /// `url` begins with `https://`, or with `http://`, which lets others on the network read the
    /// token and replace the answer. Redirections (307 and 308) are followed, but not from HTTPS to
    /// HTTP. The token goes along to other hosts, because services distribute clients in this way
    /// and expect it (RFC 9725 sections 4.5 and 4.7.1). There is no support for proxies.
    ///
    /// # Errors
    /// [`ClientError`], whose text says what to do.
    pub fn post(
        &self,
        url: &str,
        token: Option<&Token>,
        offer: &str,
    ) -> Result<Session, ClientError> {
        self.transport.run(async |transport| {
            let mut url = Url::parse(url)?;
            for _ in 0..=REDIRECTIONS_MAX {
                let body = Some((SDP, offer));
                let request = Request::new(Method::POST, &url, token, body);
                let reply = transport.exchange(&request).await?;
                if !is_redirection(reply.status) {
                    return self.session(&url, token, &reply);
                }
                let next = location(&reply, &url)?.ok_or(ClientError::NoLocation)?;
                if url.is_encrypted() && !next.is_encrypted() {
                    return Err(ClientError::Downgrade(next.to_string()));
                }
                url = next;
            }
            Err(ClientError::Redirections)
        })
    }

    fn session(
        &self,
        url: &Url,
        token: Option<&Token>,
        reply: &Reply,
    ) -> Result<Session, ClientError> {
        let has_offer = reply.content_type().is_some_and(|kind| is_type(kind, SDP));
        match reply.status {
            StatusCode::CREATED => {}
            StatusCode::NOT_ACCEPTABLE if has_offer => return Err(ClientError::CounterOffer),
            status if status.is_success() => return Err(ClientError::NotCreated(status.as_u16())),
            _ => return Err(ClientError::refused(reply, url.as_str())),
        }
        if !has_offer {
            let kind = reply.content_type().unwrap_or("none");
            return Err(ClientError::ContentType { found: kind.to_owned(), expected: SDP });
        }
        let resource = location(reply, url)?.ok_or(ClientError::NoLocation)?;
        if url.is_encrypted() && !resource.is_encrypted() {
            return Err(ClientError::Downgrade(resource.to_string()));
        }
        Ok(Session {
            client: self.clone(),
            token: token.cloned(),
            resource,
            answer: reply.text()?.to_owned(),
            etag: field(&reply.fields, header::ETAG).map(str::to_owned),
            ice_servers: link::ice_servers(&reply.fields),
        })
    }
}

/// A session that an endpoint opened.
///
/// Dropping it sends nothing: call [`Session::delete`] at the end.
#[derive(Clone, Debug)]
pub struct Session {
    client: Client,
    token: Option<Token>,
    resource: Url,
    answer: String,
    etag: Option<String>,
    ice_servers: Vec<IceServer>,
}

impl Session {
    /// The endpoint's answer.
    pub fn answer(&self) -> &str {
        &self.answer
    }

    /// The absolute URL of the session.
    pub fn resource_url(&self) -> &str {
        self.resource.as_str()
    }

    /// The entity-tag of the current ICE session, with its quotation marks, if the endpoint has
    /// one: it then takes fragments.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The STUN and TURN servers that the endpoint recommends (RFC 9725 section 4.6).
    pub fn ice_servers(&self) -> &[IceServer] {
        &self.ice_servers
    }

    /// Sends further candidates: SDP as in RFC 8840 section 9 (RFC 9725 section 4.3.2).
    ///
    /// Returns the endpoint's fragment if it took them for a restart of ICE.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Unsupported`] if the endpoint takes no candidates, which it
    /// need not.
    pub fn patch(&mut self, fragment: &str) -> Result<Option<String>, ClientError> {
        let condition = self.etag.clone();
        self.send_fragment(condition.as_deref(), fragment)
    }

    /// Restarts ICE with new credentials and candidates (RFC 9725 section 4.3.3); returns those of
    /// the endpoint.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Unsupported`] if the endpoint cannot restart ICE, which it
    /// need not. The session goes on as before.
    pub fn restart(&mut self, fragment: &str) -> Result<String, ClientError> {
        self.send_fragment(Some("*"), fragment)?.ok_or(ClientError::NotRestarted)
    }

    fn send_fragment(
        &mut self,
        condition: Option<&str>,
        fragment: &str,
    ) -> Result<Option<String>, ClientError> {
        let (url, token) = (&self.resource, self.token.as_ref());
        let mut request = Request::new(Method::PATCH, url, token, Some((FRAGMENT, fragment)));
        request.condition = condition;
        let reply = self.client.transport.run(async |it| it.exchange(&request).await)?;
        match reply.status {
            StatusCode::OK if reply.text()?.is_empty() => Ok(None),
            StatusCode::OK => {
                let kind = reply.content_type().unwrap_or("none");
                if !is_type(kind, FRAGMENT) {
                    let found = kind.to_owned();
                    return Err(ClientError::ContentType { found, expected: FRAGMENT });
                }
                self.etag = field(&reply.fields, header::ETAG).map(str::to_owned);
                Ok(Some(reply.text()?.to_owned()))
            }
            status if status.is_success() => Ok(None),
            StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::UNPROCESSABLE_ENTITY
            | StatusCode::NOT_IMPLEMENTED => Err(ClientError::Unsupported(reply.status.as_u16())),
            _ => Err(ClientError::refused(&reply, self.resource.as_str())),
        }
    }

    /// Ends the session. One that has ended already is no error.
    ///
    /// # Errors
    /// [`ClientError`]; the endpoint then ends it when it hears no more of this client.
    pub fn delete(self) -> Result<(), ClientError> {
        let request = Request::new(Method::DELETE, &self.resource, self.token.as_ref(), None);
        let reply = self.client.transport.run(async |it| it.exchange(&request).await)?;
        match reply.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            status if status.is_success() => Ok(()),
            _ => Err(ClientError::refused(&reply, self.resource.as_str())),
        }
    }
}

fn is_redirection(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// The URL in `Location`, absolute.
fn location(reply: &Reply, base: &Url) -> Result<Option<Url>, ClientError> {
    let location = field(&reply.fields, header::LOCATION);
    location.map(|location| base.join(location)).transpose()
}

fn field(fields: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    fields.get(name).and_then(|value| value.to_str().ok())
}

/// Certificates in PEM.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let failed = |error| ClientError::Roots(format!("{error}"));
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(failed)
}
