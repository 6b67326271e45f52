//! One request and its response.

use std::fmt;
use std::io;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio_rustls::TlsConnector;

use super::trust::Trust;
use super::url::Url;
use super::{ClientError, ClientOptions, Roots, certificates, field};
use crate::{Token, tls};

/// Maximum size of a response's head in bytes.
const HEAD_MAX: usize = 32 << 10;

/// Maximum header fields of a response.
const FIELDS_MAX: usize = 100;

/// What this program calls itself.
const USER_AGENT: &str = concat!("rushes/", env!("CARGO_PKG_VERSION"));

/// A request.
pub(super) struct Request<'a> {
    method: Method,
    url: &'a Url,
    token: Option<&'a Token>,
    /// The media type and the body.
    body: Option<(&'static str, &'a str)>,
    /// The value of `If-Match`.
    pub(super) condition: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub(super) fn new(
        method: Method,
        url: &'a Url,
        token: Option<&'a Token>,
        body: Option<(&'static str, &'a str)>,
    ) -> Self {
        Self { method, url, token, body, condition: None }
    }

    fn message(&self) -> Result<hyper::Request<Full<Bytes>>, ClientError> {
        let body = self.body.map(|(_, body)| Bytes::copy_from_slice(body.as_bytes()));
        let mut request = hyper::Request::new(Full::new(body.unwrap_or_default()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.target()?;
        let fields = request.headers_mut();
        fields.insert(header::HOST, value(self.url.authority(), self.url)?);
        fields.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        if let Some((kind, _)) = self.body {
            fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            fields.insert(header::ACCEPT, HeaderValue::from_static(kind));
        }
        if let Some(token) = self.token {
            let mut value = value(&format!("Bearer {}", token.as_str()), self.url)?;
            value.set_sensitive(true);
            fields.insert(header::AUTHORIZATION, value);
        }
        if let Some(condition) = self.condition {
            fields.insert(header::IF_MATCH, value(condition, self.url)?);
        }
        Ok(request)
    }
}

fn value(text: &str, url: &Url) -> Result<HeaderValue, ClientError> {
    HeaderValue::from_str(text).map_err(|_| url.error("it has characters that HTTP forbids"))
}

/// A response.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) fields: HeaderMap,
    body: Bytes,
}

impl Reply {
    pub(super) fn content_type(&self) -> Option<&str> {
        field(&self.fields, header::CONTENT_TYPE)
    }

    pub(super) fn text(&self) -> Result<&str, ClientError> {
        std::str::from_utf8(&self.body).map_err(|_| ClientError::NotText)
    }
}

/// How requests are made.
pub(super) struct Transport {
    options: ClientOptions,
    tls: TlsConnector,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Transport {
    pub(super) fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let (certificates, reason) = match &options.roots {
            Roots::Pem(pem) => (certificates(pem)?, String::new()),
            Roots::System => {
                let found = rustls_native_certs::load_native_certs();
                (found.certs, found.errors.iter().map(ToString::to_string).collect())
            }
        };
        let mut roots = RootCertStore::empty();
        let named = match options.roots {
            Roots::Pem(_) => certificates.clone(),
            Roots::System => Vec::new(),
        };
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 && !matches!(options.roots, Roots::System) {
            return Err(ClientError::Roots("it has no \"BEGIN CERTIFICATE\"".into()));
        }
        if added == 0 {
            // Addresses without encryption need none.
            tracing::warn!(reason, "this system has no certificates to verify servers by");
        }
        let config = rustls::ClientConfig::builder_with_provider(tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError::Roots(error.to_string()))?;
        let config = if named.is_empty() {
            config.with_root_certificates(roots)
        } else {
            let trust = Trust::new(roots, named).map_err(ClientError::Roots)?;
            config.dangerous().with_custom_certificate_verifier(Arc::new(trust))
        };
        let config = config.with_no_client_auth();
        Ok(Self { options, tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Runs requests to their end or the time-out.
    ///
    /// They have a thread of their own, because the caller's may belong to a runtime already.
    pub(super) fn run<T: Send>(
        &self,
        requests: impl AsyncFnOnce(&Self) -> Result<T, ClientError> + Send,
    ) -> Result<T, ClientError> {
        let run = || {
            let runtime = Builder::new_current_thread().enable_io().enable_time().build();
            let runtime = runtime.map_err(ClientError::Start)?;
            let timeout = self.options.timeout;
            let result = runtime.block_on(async {
                let late = |_| ClientError::Timeout(timeout);
                tokio::time::timeout(timeout, requests(self)).await.map_err(late)?
            });
            // The look-up of a name may still wait.
            runtime.shutdown_background();
            result
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("rushes-whip".into());
            let thread = thread.spawn_scoped(scope, run).map_err(ClientError::Start)?;
            let gone = || ClientError::Start(io::Error::other("its thread ended"));
            thread.join().unwrap_or_else(|_| Err(gone()))
        })
    }

    /// Sends a request on a connection of its own and receives the response.
    pub(super) async fn exchange(&self, request: &Request<'_>) -> Result<Reply, ClientError> {
        let message = request.message()?;
        let url = request.url;
        let host = || format!("{}:{}", url.host(), url.port());
        let failed = |error| ClientError::Connect { host: host(), error };
        let socket = TcpStream::connect((url.host(), url.port())).await.map_err(failed)?;
        // A request is one write; an error costs time only.
        let _ = socket.set_nodelay(true);
        if !url.is_encrypted() {
            return self.send(socket, message, &host()).await;
        }
        let failed = |error| ClientError::Tls { host: host(), error };
        let socket = self.tls.connect(url.server_name()?, socket).await.map_err(failed)?;
        self.send(socket, message, &host()).await
    }

    async fn send(
        &self,
        socket: impl AsyncRead + AsyncWrite + Unpin,
        message: hyper::Request<Full<Bytes>>,
        host: &str,
    ) -> Result<Reply, ClientError> {
        let failed = |error| ClientError::Http { host: host.to_owned(), error };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(HEAD_MAX).max_headers(FIELDS_MAX);
        let (mut sender, connection) =
            builder.handshake(TokioIo::new(socket)).await.map_err(failed)?;
        let exchange = async {
            let response = sender.send_request(message).await.map_err(failed)?;
            let (head, body) = response.into_parts();
            let body = self.read(body, host).await?;
            Ok(Reply { status: head.status, fields: head.headers, body })
        };
        tokio::pin!(exchange, connection);
        tokio::select! {
            biased;
            reply = &mut exchange => return reply,
            _ = &mut connection => {}
        }
        // The connection has ended, and with it the response, or there is an error of the request.
        exchange.await
    }

    async fn read(&self, body: Incoming, host: &str) -> Result<Bytes, ClientError> {
        let max = self.options.body_max;
        match Limited::new(body, max).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) => Err(match error.downcast::<hyper::Error>() {
                Ok(error) => ClientError::Http { host: host.to_owned(), error: *error },
                // The other kind of error is the limit's.
                Err(_) => ClientError::BodyTooLarge(max),
            }),
        }
    }
}
