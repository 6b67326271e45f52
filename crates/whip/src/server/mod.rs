//! A server of WHIP and WHEP over HTTP/1.1.

mod access;
mod config;
mod endpoint;
mod places;
mod response;
mod routes;
mod serve;
mod sessions;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

pub use config::{Origins, ServerConfig};
pub use endpoint::{Endpoint, OpenRequest, Reason, Refusal};
pub(crate) use response::{Answer, content, set, set_text};
use routes::Shared;
use sessions::Sessions;

/// Maximum calls of the endpoint at a time.
const CALLS_MAX: usize = 16;

/// How long the end of the server waits for calls of the endpoint.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// A running server of WHIP and WHEP.
///
/// It has one thread for connections and up to 16 that call the [`Endpoint`]. When this is dropped,
/// it ends all connections and sessions, and frees its ports.
///
/// | request | response |
/// |---|---|
/// | `POST /whip`, `POST /whep` | 201 with the answer, `Location` and `ETag` |
/// | `GET`, `HEAD` of these | 200 without content |
/// | `PATCH /whip/ID`, `PATCH /whep/ID` | 204, or 200 after a restart of ICE |
/// | `DELETE` of these | 200 |
/// | `OPTIONS` | 200, with the permissions of [`ServerConfig::origins`] |
/// | `GET /` | the page, if [`ServerConfig::page`] is set |
///
/// Refusals are a sentence as plain text: 400 malformed, 401 no or a wrong token, 403 a page of
/// another site, 404 no such resource or session, 405 method, 406 nothing acceptable in the offer,
/// 409 conflict, 412 and 428 entity-tag, 413 too large, 415 media type, 422 not supported, 429 too
/// often, 431 head too large, 503 no session free. A connection carries one request.
pub struct Server {
    local: Vec<SocketAddr>,
    is_encrypted: bool,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on all `addresses` and calls `endpoint` for sessions.
    ///
    /// # Errors
    /// [`BindError`] if there is no address, one cannot be listened on, or the system has no thread
    /// or descriptor left.
    pub fn bind(
        addresses: &[SocketAddr],
        config: ServerConfig,
        endpoint: Arc<dyn Endpoint>,
    ) -> Result<Self, BindError> {
        if addresses.is_empty() {
            return Err(BindError::NoAddress);
        }
        let bind = |address: &SocketAddr| {
            let failed = |error| BindError::Listen { address: *address, error };
            let listener = std::net::TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            Ok((listener.local_addr().map_err(failed)?, listener))
        };
        let listeners = addresses.iter().map(bind).collect::<Result<Vec<_>, BindError>>()?;
        let (local, listeners): (Vec<_>, Vec<_>) = listeners.into_iter().unzip();
        let is_encrypted = config.identity.is_some();
        let sessions = Sessions::new(endpoint, config.sessions_max);
        let shared = Arc::new(Shared { config, sessions });
        let (end, ended) = oneshot::channel();
        let (ready, started) = mpsc::channel();
        let run = move || match start(listeners) {
            Err(error) => drop(ready.send(Err(error))),
            Ok((runtime, listeners)) => {
                drop(ready.send(Ok(())));
                runtime.block_on(serve::serve(listeners, shared.clone(), ended));
                shared.sessions.end();
                runtime.shutdown_timeout(END_PATIENCE);
            }
        };
        let thread = thread::Builder::new().name("rushes-whip".into());
        let thread = thread.spawn(run).map_err(BindError::Start)?;
        let gone = |_| Err(io::Error::other("its thread ended"));
        started.recv().unwrap_or_else(gone).map_err(BindError::Start)?;
        Ok(Self { local, is_encrypted, end: Some(end), thread: Some(thread) })
    }

    /// The addresses it listens on, in the order given; port 0 is replaced by the one chosen.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.local
    }

    /// Whether it speaks HTTPS only.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("local", &self.local).finish_non_exhaustive()
    }
}

/// Starts what serves connections, on the thread that will: it may neither start nor end where an
/// application has a runtime of its own.
fn start(listeners: Vec<std::net::TcpListener>) -> io::Result<(Runtime, Vec<TcpListener>)> {
    let mut builder = Builder::new_current_thread();
    builder.enable_io().enable_time().max_blocking_threads(CALLS_MAX);
    let runtime = builder.thread_name("rushes-whip-call").build()?;
    let guard = runtime.enter();
    let listeners = listeners.into_iter().map(TcpListener::from_std).collect::<io::Result<_>>()?;
    drop(guard);
    Ok((runtime, listeners))
}

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// No address was given.
    #[error("no address to listen on was given")]
    NoAddress,
    /// An address cannot be listened on.
    #[error("cannot listen on {address} for HTTP: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
    /// The system has no thread or descriptor left.
    #[error("cannot start the HTTP server: {0}")]
    Start(io::Error),
}
