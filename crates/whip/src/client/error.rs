//! Errors of a client.

use std::time::Duration;

use hyper::header;

use super::exchange::Reply;
use super::field;

/// Maximum time that a server may ask a client to wait.
const RETRY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum characters of a server's explanation that are shown.
const DETAIL_MAX: usize = 300;

/// Why a request of a client failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is malformed or of another scheme.
    #[error("\"{url}\" is not the URL of an endpoint: {reason}. Try: https://HOST/whip")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// No certificates to trust can be read.
    #[error("no certificates to verify servers by: {0}. Install ca-certificates, or name a file")]
    Roots(String),
    /// The host has no address, or none of its addresses accepts connections.
    #[error("cannot connect to {host}: {error}")]
    Connect {
        /// Host and port.
        host: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The server does not speak TLS, or its certificate is not trusted.
    #[error(
        "cannot agree with {host} on encryption: {error}. \
         A server without HTTPS has an http:// address; a certificate of your own must be named"
    )]
    Tls {
        /// Host and port.
        host: String,
        /// The error.
        error: std::io::Error,
    },
    /// The server does not speak HTTP, or the connection broke.
    #[error("{host} did not answer the request: {error}")]
    Http {
        /// Host and port.
        host: String,
        /// The error.
        error: hyper::Error,
    },
    /// The request took longer than [`crate::ClientOptions::timeout`].
    #[error("the server did not answer within {0:?}")]
    Timeout(Duration),
    /// The system has no thread or descriptor left.
    #[error("cannot start a request: {0}")]
    Start(std::io::Error),
    /// The server requires a token (401).
    #[error("the server requires another token than this, or any: {0}")]
    Unauthorized(String),
    /// The token does not suffice (403).
    #[error("the server forbids this: {0}")]
    Forbidden(String),
    /// There is no endpoint or session at this URL (404, 410).
    #[error("there is no endpoint or session at {url}: {detail}")]
    NotFound {
        /// The URL.
        url: String,
        /// The server's explanation.
        detail: String,
    },
    /// The URL is no endpoint, or that of the other protocol (405).
    #[error("{0} does not take offers: use the address of a WHIP or WHEP endpoint")]
    MethodNotAllowed(String),
    /// The server accepts nothing in the offer (406, 415, 422).
    #[error("the server refuses the offer (status {status}): {detail}")]
    NotAcceptable {
        /// The status.
        status: u16,
        /// The server's explanation.
        detail: String,
    },
    /// The WHEP server wants to make the offer itself (406 with an offer).
    #[error(
        "the server refuses the offer and makes one of its own, which is not supported. \
         Try other codecs"
    )]
    CounterOffer,
    /// Another client publishes already, or there is nothing to play yet (409).
    #[error(
        "the stream is in use, or not yet published: {detail}. \
         Stop the other publisher, or try again later"
    )]
    Conflict {
        /// The server's explanation.
        detail: String,
        /// When to try again, if the server says so in seconds; at most a day.
        retry_after: Option<Duration>,
    },
    /// The ICE session has changed since the entity-tag was sent (412, 428).
    #[error("the server has another ICE session than this (status {0}): restart ICE")]
    Outdated(u16),
    /// The server has no room (429, 503).
    #[error("the server is busy (status {status}): {detail}. Try again later")]
    Busy {
        /// The status.
        status: u16,
        /// The server's explanation.
        detail: String,
        /// When to try again, if the server says so in seconds; at most a day.
        retry_after: Option<Duration>,
    },
    /// The endpoint does not take fragments, or not such (405, 422, 501 to PATCH).
    #[error("the server does not take further candidates or restarts of ICE (status {0})")]
    Unsupported(u16),
    /// The endpoint took a restart for further candidates.
    #[error("the server did not restart ICE")]
    NotRestarted,
    /// Another status.
    #[error("the server answered with status {status}: {detail}")]
    Status {
        /// The status.
        status: u16,
        /// The server's explanation.
        detail: String,
    },
    /// A successful status that is not 201.
    #[error("the server answered an offer with status {0} instead of 201: it is no endpoint")]
    NotCreated(u16),
    /// The response has no `Location`.
    #[error("the response has no Location, thus no session: the server is no endpoint")]
    NoLocation,
    /// The response is of another type.
    #[error("the response is of type {found} instead of {expected}: the server is no endpoint")]
    ContentType {
        /// The type of the response.
        found: String,
        /// The type that belongs there.
        expected: &'static str,
    },
    /// The response is larger than [`crate::ClientOptions::body_max`].
    #[error("the response has more than {0} bytes")]
    BodyTooLarge(usize),
    /// The response is not text.
    #[error("the response is not UTF-8")]
    NotText,
    /// The server redirects from HTTPS to HTTP, or names such a session.
    #[error("the server refers to {0}, which is not encrypted")]
    Downgrade(String),
    /// The server redirects more than five times.
    #[error("the server redirects in a circle")]
    Redirections,
}

impl ClientError {
    /// The error for a status that is neither successful nor a redirection that is followed.
    pub(super) fn refused(reply: &Reply, url: &str) -> Self {
        let detail = detail(reply);
        let retry_after = field(&reply.fields, header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.trim().parse().ok());
        let retry_after = retry_after.map(|seconds| Duration::from_secs(seconds).min(RETRY_MAX));
        match reply.status.as_u16() {
            401 => Self::Unauthorized(detail),
            403 => Self::Forbidden(detail),
            404 | 410 => Self::NotFound { url: url.to_owned(), detail },
            405 => Self::MethodNotAllowed(url.to_owned()),
            status @ (406 | 415 | 422) => Self::NotAcceptable { status, detail },
            409 => Self::Conflict { detail, retry_after },
            status @ (412 | 428) => Self::Outdated(status),
            status @ (429 | 503) => Self::Busy { status, detail, retry_after },
            status => Self::Status { status, detail },
        }
    }
}

/// The server's explanation: the beginning of a body of text, on one line.
fn detail(reply: &Reply) -> String {
    let kind = reply.content_type().unwrap_or_default();
    let is_readable = kind.starts_with("text/plain") || kind.contains("json");
    let text = reply.text().ok().filter(|_| is_readable).unwrap_or_default();
    let text = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<_> = text.filter(|word| !word.is_empty()).collect();
    let text: String = words.join(" ").chars().take(DETAIL_MAX).collect();
    if text.is_empty() { "it does not say why".to_owned() } else { text }
}
