//! Responses: their statuses, header fields and texts.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::endpoint::{Reason, Refusal};
use super::sessions::Created;
use crate::kind::{FRAGMENT, SDP};
use crate::{IceServer, Kind};

pub(crate) type Answer = Response<Full<Bytes>>;

/// Seconds after which a client may try again.
const RETRY_AFTER: &str = "5";

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Answer {
    with_body(status, Bytes::new())
}

fn with_body(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    // Sessions and their credentials belong to one client.
    fields.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    fields.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A response with content of a type.
pub(crate) fn content(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = with_body(status, body);
    set(&mut response, header::CONTENT_TYPE, kind);
    response
}

/// A response with a sentence for the user.
pub(super) fn problem(status: StatusCode, text: &str) -> Answer {
    content(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

/// Sets a header field to a value that is known to be valid.
pub(crate) fn set(response: &mut Answer, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

/// Sets a header field, unless the value is not one, which none of ours is.
pub(crate) fn set_text(response: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The response with an answer: 201 (RFC 9725 section 4.2), with servers of ICE (section 4.6).
pub(super) fn created(kind: Kind, created: Created, ice_servers: &[IceServer]) -> Answer {
    let mut response = content(StatusCode::CREATED, SDP, created.answer);
    set_text(&mut response, header::LOCATION, &format!("/{}/{}", kind.name(), created.id));
    set_text(&mut response, header::ETAG, &format!("\"{}\"", created.tag));
    set(&mut response, HeaderName::from_static("accept-patch"), FRAGMENT);
    for server in ice_servers {
        if let Ok(mut link) = HeaderValue::from_str(&server.link()) {
            link.set_sensitive(server.credential.is_some());
            response.headers_mut().append(header::LINK, link);
        }
    }
    response
}

/// The response to a restart of ICE (RFC 9725 section 4.3.3).
pub(super) fn restarted(fragment: String, tag: &str) -> Answer {
    let mut response = content(StatusCode::OK, FRAGMENT, fragment);
    set_text(&mut response, header::ETAG, &format!("\"{tag}\""));
    response
}

/// The response to a request that the endpoint refuses.
pub(super) fn refused(refusal: &Refusal) -> Answer {
    let status = match refusal.reason {
        Reason::Malformed => StatusCode::BAD_REQUEST,
        Reason::Forbidden => StatusCode::FORBIDDEN,
        Reason::NotFound => StatusCode::NOT_FOUND,
        Reason::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        Reason::Conflict => StatusCode::CONFLICT,
        Reason::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Reason::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Reason::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Reason::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = problem(status, &refusal.detail);
    if matches!(refusal.reason, Reason::Conflict | Reason::TooMany | Reason::Busy) {
        set(&mut response, header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

/// The response to a method that a resource does not have.
pub(super) fn method_not_allowed(allow: &'static str) -> Answer {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut response = problem(status, &format!("this address takes {allow} only"));
    set(&mut response, header::ALLOW, allow);
    response
}

pub(super) fn not_found() -> Answer {
    let text = "there is nothing here; publish to /whip, play from /whep";
    problem(StatusCode::NOT_FOUND, text)
}
