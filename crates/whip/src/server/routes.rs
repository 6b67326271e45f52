//! From a request to its response.

use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};
use tokio::sync::oneshot;

use super::access::{check_origin, check_token, share};
use super::config::ServerConfig;
use super::endpoint::{OpenRequest, Reason, Refusal};
use super::response::{
    Answer, content, created, empty, method_not_allowed, not_found, problem, refused, restarted,
    set,
};
use super::sessions::{PatchError, Patched, Sessions, unknown};
use crate::kind::{FRAGMENT, SDP, is_type};
use crate::{Kind, page};

/// What all connections share.
pub(super) struct Shared {
    pub(super) config: ServerConfig,
    pub(super) sessions: Sessions,
}

/// A connection's addresses.
#[derive(Clone, Copy)]
pub(super) struct Addresses {
    pub(super) peer: SocketAddr,
    pub(super) local: SocketAddr,
}

/// What a path stands for.
enum Resource<'a> {
    Page(&'static page::File),
    Endpoint(Kind),
    Session(Kind, &'a str),
}

impl<'a> Resource<'a> {
    fn find(config: &ServerConfig, path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (name, id) = match path.split_once('/') {
            Some((name, id)) => (name, Some(id)),
            None => (path, None),
        };
        if let Some(kind) = Kind::from_name(name).filter(|kind| config.serves(*kind)) {
            return Some(id.map_or(Self::Endpoint(kind), |id| Self::Session(kind, id)));
        }
        page::file(path).filter(|_| config.page).map(Self::Page)
    }
}

/// Answers a request. `on_body` is called when it is complete.
pub(super) async fn handle(
    shared: Arc<Shared>,
    addresses: Addresses,
    request: Request<Incoming>,
    on_body: impl FnOnce(),
) -> Answer {
    let (head, body) = request.into_parts();
    let config = &shared.config;
    let path = head.uri.path();
    let mut response = match Resource::find(config, path) {
        None => not_found(),
        Some(Resource::Page(file)) => match head.method {
            Method::GET | Method::HEAD => file.response(config),
            _ => method_not_allowed("GET, HEAD"),
        },
        Some(_) if head.method == Method::OPTIONS => options(),
        Some(Resource::Endpoint(kind)) if matches!(head.method, Method::GET | Method::HEAD) => {
            discovered(kind)
        }
        Some(resource) => match Checked::new(&shared, addresses, &head.headers) {
            Ok(request) => request.answer(&head.method, resource, body, on_body).await,
            Err(response) => *response,
        },
    };
    share(config, &head.method, &head.headers, &mut response);
    response
}

/// The response to OPTIONS, whether it asks for permission or for abilities.
fn options() -> Answer {
    let mut response = empty(StatusCode::OK);
    set(&mut response, HeaderName::from_static("accept-post"), SDP);
    set(&mut response, HeaderName::from_static("accept-patch"), FRAGMENT);
    set(&mut response, header::ALLOW, "GET, HEAD, POST, PATCH, DELETE, OPTIONS");
    response
}

/// The response to GET and HEAD of an endpoint: successful and empty (RFC 9725 section 4.1).
///
/// The type tells players that this is WHEP (draft-ietf-wish-whep-03 section 4.2).
fn discovered(kind: Kind) -> Answer {
    let mut response = match kind {
        Kind::Publish => empty(StatusCode::OK),
        Kind::Play => content(StatusCode::OK, SDP, ""),
    };
    set(&mut response, HeaderName::from_static("accept-post"), SDP);
    response
}

/// A request whose sender may use the server.
struct Checked<'a> {
    shared: &'a Arc<Shared>,
    addresses: Addresses,
    fields: &'a HeaderMap,
}

impl<'a> Checked<'a> {
    fn new(
        shared: &'a Arc<Shared>,
        addresses: Addresses,
        fields: &'a HeaderMap,
    ) -> Result<Self, Box<Answer>> {
        check_origin(&shared.config, fields, addresses.local)?;
        check_token(&shared.config, fields)?;
        Ok(Self { shared, addresses, fields })
    }

    async fn answer(
        &self,
        method: &Method,
        resource: Resource<'_>,
        body: Incoming,
        on_body: impl FnOnce(),
    ) -> Answer {
        let (expected, accept) = match resource {
            Resource::Session(kind, id) if !self.shared.sessions.has(kind, id) => {
                return refused(&unknown());
            }
            Resource::Session(kind, id) if *method == Method::DELETE => {
                on_body();
                return self.close(kind, id).await;
            }
            Resource::Session(..) if matches!(*method, Method::GET | Method::HEAD) => {
                return empty(StatusCode::NO_CONTENT);
            }
            Resource::Session(..) if *method == Method::PATCH => (FRAGMENT, "accept-patch"),
            Resource::Session(..) => {
                return method_not_allowed("GET, HEAD, PATCH, DELETE, OPTIONS");
            }
            _ if *method == Method::POST => (SDP, "accept-post"),
            _ => return method_not_allowed("GET, HEAD, POST, OPTIONS"),
        };
        let kind = self.fields.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !kind.is_some_and(|kind| is_type(kind, expected)) {
            let text = format!("the body's Content-Type must be {expected}");
            let mut response = problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text);
            set(&mut response, HeaderName::from_static(accept), expected);
            return response;
        }
        let text = match self.read(body).await {
            Ok(text) => text,
            Err(response) => return *response,
        };
        on_body();
        match resource {
            Resource::Session(kind, id) => self.patch(kind, id, text).await,
            Resource::Endpoint(kind) => self.open(kind, text).await,
            Resource::Page(_) => not_found(),
        }
    }

    async fn read(&self, body: Incoming) -> Result<String, Box<Answer>> {
        let refuse = |status, text: &str| Err(Box::new(problem(status, text)));
        let max = self.shared.config.body_max;
        let octets = match Limited::new(body, max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let text = format!("the body has more than {max} bytes");
                return refuse(StatusCode::PAYLOAD_TOO_LARGE, &text);
            }
            Err(_) => return refuse(StatusCode::BAD_REQUEST, "the body is incomplete"),
        };
        match String::from_utf8(octets.into()) {
            Ok(text) if text.trim().is_empty() => {
                refuse(StatusCode::BAD_REQUEST, "the body is empty")
            }
            Ok(text) => Ok(text),
            Err(_) => refuse(StatusCode::BAD_REQUEST, "the body is not UTF-8"),
        }
    }

    async fn open(&self, kind: Kind, offer: String) -> Answer {
        let (shared, Addresses { peer, local }) = (self.shared.clone(), self.addresses);
        // If the client disconnects, nobody receives the result, and the session ends again.
        let (sender, receiver) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            let request = OpenRequest { id: "", kind, offer: &offer, peer, local };
            let result = shared.sessions.open(request);
            if let Err(Ok(unwanted)) = sender.send(result) {
                shared.sessions.close(kind, &unwanted.id);
            }
        });
        match receiver.await {
            Ok(Ok(session)) => created(kind, session, &self.shared.config.ice_servers),
            Ok(Err(refusal)) => refused(&refusal),
            Err(_) => failed(),
        }
    }

    async fn patch(&self, kind: Kind, id: &str, fragment: String) -> Answer {
        let condition = self.fields.get(header::IF_MATCH).and_then(|value| value.to_str().ok());
        let (condition, id) = (condition.map(str::to_owned), id.to_owned());
        let shared = self.shared.clone();
        let patch =
            move || shared.sessions.patch(kind, &id, condition.as_deref(), fragment.as_str());
        match tokio::task::spawn_blocking(patch).await {
            Ok(Ok(Patched::Candidates)) => empty(StatusCode::NO_CONTENT),
            Ok(Ok(Patched::Restarted { fragment, tag })) => restarted(fragment, &tag),
            Ok(Err(PatchError::Required)) => problem(
                StatusCode::PRECONDITION_REQUIRED,
                "send \"If-Match\" with the ETag of the session, or * to restart ICE",
            ),
            Ok(Err(PatchError::Outdated)) => problem(
                StatusCode::PRECONDITION_FAILED,
                "the ETag is that of an earlier ICE session; send the latest, or * to restart",
            ),
            Ok(Err(PatchError::Refused(refusal))) => refused(&refusal),
            Err(_) => failed(),
        }
    }

    async fn close(&self, kind: Kind, id: &str) -> Answer {
        let (shared, id) = (self.shared.clone(), id.to_owned());
        match tokio::task::spawn_blocking(move || shared.sessions.close(kind, &id)).await {
            Ok(true) => empty(StatusCode::OK),
            Ok(false) => refused(&unknown()),
            Err(_) => failed(),
        }
    }
}

/// The response if the endpoint panicked.
fn failed() -> Answer {
    refused(&Refusal::new(Reason::Internal, "the server failed"))
}
