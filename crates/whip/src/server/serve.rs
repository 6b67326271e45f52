//! Connections: accepted, limited, encrypted, and ended.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::places::{Place, Places};
use super::routes::{Addresses, Shared, handle};

/// Maximum size of a request's head in bytes.
const HEAD_MAX: usize = 16 << 10;

/// Maximum header fields of a request; a browser sends about 20.
const FIELDS_MAX: usize = 64;

/// Pause after the system has no more sockets.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long, and for how many bytes, a body that was refused is still read, so that the client
/// receives the response instead of a reset connection (RFC 9112 section 9.6).
const LINGER: Duration = Duration::from_secs(2);
const LINGER_MAX: u64 = 1 << 20;

/// Serves connections until `end` resolves, then ends them.
pub(super) async fn serve(
    listeners: Vec<TcpListener>,
    shared: Arc<Shared>,
    end: oneshot::Receiver<()>,
) {
    let places = Places::new(shared.config.connections_max);
    let (running, ended) = watch::channel(());
    let mut accepting = JoinSet::new();
    for listener in listeners {
        accepting.spawn(accept(listener, shared.clone(), places.clone(), ended.clone()));
    }
    // An error is the end, too: the server was dropped.
    let _ = end.await;
    drop(running);
    while accepting.join_next().await.is_some() {}
}

/// Accepts and serves connections until the sender of `ended` is dropped.
async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    places: Arc<Places>,
    mut ended: watch::Receiver<()>,
) {
    let tls = shared.config.identity.as_ref().map(|it| TlsAcceptor::from(it.config()));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ended.changed() => break,
        };
        while connections.try_join_next().is_some() {}
        match accepted {
            Ok((socket, peer)) => {
                if let Some(place) = places.take() {
                    connections.spawn(connection(socket, peer, tls.clone(), shared.clone(), place));
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.shutdown().await;
}

/// Whether an error of `accept` is about a connection that ended before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

async fn connection(
    socket: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    place: Place,
) {
    let Ok(local) = socket.local_addr() else { return };
    // Answers are one write; an error costs time only.
    let _ = socket.set_nodelay(true);
    let timeout = tokio::time::sleep(shared.config.request_timeout);
    // A socket of both address families has those of IPv4 within IPv6.
    let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port()).into();
    let addresses = Addresses { peer: canonical(peer), local: canonical(local) };
    let exchange = async {
        match tls {
            None => exchange(socket, addresses, shared, &place).await,
            Some(tls) => {
                if let Ok(socket) = tls.accept(socket).await {
                    exchange(socket, addresses, shared, &place).await;
                }
            }
        }
    };
    tokio::select! {
        () = exchange => {}
        () = timeout => {}
        () = place.evicted() => {}
    }
}

/// One request and its response. Errors are the client's: there is nobody to report them to.
async fn exchange(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    addresses: Addresses,
    shared: Arc<Shared>,
    place: &Place,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let response = handle(shared.clone(), addresses, request, place.keep());
        async { Ok::<_, std::convert::Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .half_close(false)
        .max_buf_size(HEAD_MAX)
        .max_headers(FIELDS_MAX)
        .serve_connection(TokioIo::new(socket), service);
    let Ok(parts) = connection.without_shutdown().await else { return };
    let mut socket = parts.io.into_inner();
    let linger = async {
        socket.shutdown().await?;
        tokio::io::copy(&mut socket.take(LINGER_MAX), &mut tokio::io::sink()).await
    };
    let _ = tokio::time::timeout(LINGER, linger).await;
}
