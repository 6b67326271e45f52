//! A minimal HTTP server for Prometheus, with one thread and fixed limits.
//!
//! Any host that reaches the port may connect. A connection occupies one of [`PENDING_MAX`] places
//! for at most [`PATIENCE`], and [`HEAD_MAX`] bytes; a new connection replaces the oldest one.
//! Requests read the command's values at most once in [`FRESH`], so that they cannot slow down its
//! streams.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes::net::{Read, TcpListener, TcpOptions, TcpSocket, Waker};

/// Maximum connections whose request is incomplete.
const PENDING_MAX: usize = 16;

/// Maximum size of a request's head in bytes.
const HEAD_MAX: usize = 8 << 10;

/// Maximum header fields of a request; a browser sends about 20.
const FIELDS_MAX: usize = 64;

/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum wait for a client to read the answer, which normally fits the send buffer.
const WRITE_PATIENCE: Duration = Duration::from_millis(100);

/// Interval at which incomplete requests are read; without any, the thread sleeps.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Time for which a text is reused.
const FRESH: Duration = Duration::from_millis(100);

/// Size of a connection's buffers in bytes: room for an answer.
const BUFFER: usize = 128 << 10;

/// The type of the text (OpenMetrics 1.0, section "Overall structure").
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A running server; it ends when this is dropped.
pub(super) struct Server {
    local: SocketAddr,
    waker: Arc<Waker>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the result of `render` at `local`.
    ///
    /// # Errors
    /// If the server cannot listen on the address, or the system cannot start a thread.
    pub(super) fn start(
        local: SocketAddr,
        render: impl Fn() -> String + Send + 'static,
    ) -> anyhow::Result<Self> {
        let options =
            TcpOptions { send_buffer: BUFFER, receive_buffer: BUFFER, ..TcpOptions::default() };
        let listener = TcpListener::bind(local, &options)?;
        let local = listener.local_address();
        let (waker, is_over) = (Arc::new(Waker::new()?), Arc::new(AtomicBool::new(false)));
        let (woken, over) = (waker.clone(), is_over.clone());
        let mut serving = Serving { render, latest: None, pending: VecDeque::new() };
        let thread = thread::Builder::new().name("rushes-metrics".into());
        let thread = thread.spawn(move || serving.run(&listener, &woken, &over))?;
        Ok(Self { local, waker, is_over, thread: Some(thread) })
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

/// A connection whose request is incomplete.
struct Pending {
    socket: TcpSocket,
    head: Vec<u8>,
    until: Instant,
}

/// The state of the thread.
struct Serving<R> {
    render: R,
    /// The last text and its time.
    latest: Option<(Instant, String)>,
    pending: VecDeque<Pending>,
}

impl<R: Fn() -> String> Serving<R> {
    fn run(&mut self, listener: &TcpListener, waker: &Waker, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Acquire) {
            let deadline = (!self.pending.is_empty()).then(|| Instant::now() + POLL_INTERVAL);
            match listener.accept(deadline, Some(waker)) {
                Ok(Some(socket)) => self.take(socket),
                Ok(None) => {}
                Err(error) => return eprintln!("rushes: metrics are no longer served: {error}"),
            }
            let pending = std::mem::take(&mut self.pending);
            self.pending = pending.into_iter().filter_map(|it| self.step(it)).collect();
        }
    }

    fn take(&mut self, socket: TcpSocket) {
        if self.pending.len() == PENDING_MAX {
            self.pending.pop_front();
        }
        let until = Instant::now() + PATIENCE;
        self.pending.push_back(Pending { socket, head: Vec::new(), until });
    }

    /// Reads more of a request; returns it if it is still incomplete.
    fn step(&mut self, mut pending: Pending) -> Option<Pending> {
        let mut octets = [0; HEAD_MAX];
        let room = HEAD_MAX - pending.head.len();
        match pending.socket.read(&mut octets[..room]) {
            Ok(Read::Octets(len)) => pending.head.extend_from_slice(&octets[..len]),
            Ok(Read::Nothing) => return (Instant::now() < pending.until).then_some(pending),
            Ok(Read::End) | Err(_) => return None,
        }
        let answer = match Request::parse(&pending.head) {
            Request::Incomplete if pending.head.len() < HEAD_MAX => return Some(pending),
            Request::Incomplete => refusal("431 Request Header Fields Too Large", ""),
            Request::Malformed => refusal("400 Bad Request", ""),
            Request::Method => refusal("405 Method Not Allowed", "Allow: GET, HEAD\r\n"),
            Request::Path => refusal("404 Not Found", ""),
            Request::Metrics { with_body } => self.metrics(with_body),
        };
        let deadline = Instant::now() + WRITE_PATIENCE;
        let mut parts = [IoSlice::new(answer.as_bytes())];
        // An error is ignored: a client that does not read misses the answer.
        let _ = pending.socket.write_all(&mut parts, Some(deadline), None);
        pending.socket.shut_down();
        None
    }

    fn metrics(&mut self, with_body: bool) -> String {
        let now = Instant::now();
        let is_fresh = |(at, _): &(Instant, String)| now.saturating_duration_since(*at) < FRESH;
        let latest = self.latest.take().filter(is_fresh);
        let (_, text) = self.latest.insert(latest.unwrap_or_else(|| (now, (self.render)())));
        answer(
            "200 OK",
            CONTENT_TYPE,
            "",
            if with_body { (text.len(), text) } else { (text.len(), "") },
        )
    }
}

fn refusal(status: &str, fields: &str) -> String {
    let text = format!("{status}: metrics are at /metrics\n");
    answer(status, "text/plain; charset=utf-8", fields, (text.len(), &text))
}

fn answer(status: &str, kind: &str, fields: &str, (len, body): (usize, &str)) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n{fields}\
         Connection: close\r\n\r\n{body}"
    )
}

/// The classification of a request.
#[derive(Debug, Eq, PartialEq)]
enum Request {
    Incomplete,
    Malformed,
    /// The method is neither GET nor HEAD.
    Method,
    /// The path is not `/metrics`.
    Path,
    Metrics {
        with_body: bool,
    },
}

impl Request {
    fn parse(head: &[u8]) -> Self {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Self::Incomplete,
            Err(_) => return Self::Malformed,
        }
        let path = request.path.unwrap_or_default();
        match request.method {
            _ if path.split('?').next() != Some("/metrics") => Self::Path,
            Some("GET") => Self::Metrics { with_body: true },
            Some("HEAD") => Self::Metrics { with_body: false },
            _ => Self::Method,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::atomic::AtomicU32;

    use super::*;

    fn get(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn many_requests_read_the_values_ten_times_a_second_at_most() {
        let rendered = Arc::new(AtomicU32::new(0));
        let count = rendered.clone();
        let render = move || format!("{}\n", count.fetch_add(1, Ordering::SeqCst));
        let start = Instant::now();
        let server = Server::start(([127, 0, 0, 1], 0).into(), render).unwrap();
        let answers: Vec<String> = (0..200).map(|_| get(server.local_address())).collect();
        let most = start.elapsed().as_secs_f64() / FRESH.as_secs_f64() + 1.0;
        let found = rendered.load(Ordering::SeqCst);
        assert!(found > 0 && f64::from(found) <= most, "{found} of {most}");
        assert!(answers[0].ends_with("\r\n\r\n0\n"), "{}", answers[0]);
        assert!(answers[199].ends_with(&format!("\r\n\r\n{}\n", found - 1)), "{}", answers[199]);
    }

    #[test]
    fn the_port_is_free_once_the_server_is_dropped() {
        let start = |local| Server::start(local, String::new);
        let first = start(([127, 0, 0, 1], 0).into()).unwrap();
        let local = first.local_address();
        let silent = TcpStream::connect(local).unwrap();
        assert!(get(local).starts_with("HTTP/1.1 200 OK"));
        assert!(start(local).is_err());
        drop(first);
        assert!(get(start(local).unwrap().local_address()).starts_with("HTTP/1.1 200 OK"));
        drop(silent);
    }

    #[test]
    fn requests_are_classified() {
        let parse = |head: &str| Request::parse(head.as_bytes());
        let whole = Request::Metrics { with_body: true };
        assert_eq!(parse("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), whole);
        assert_eq!(parse("GET /metrics?a=b HTTP/1.0\r\n\r\n"), whole);
        assert_eq!(parse("HEAD /metrics HTTP/1.1\r\n\r\n"), Request::Metrics { with_body: false });
        assert_eq!(parse("POST /metrics HTTP/1.1\r\n\r\n"), Request::Method);
        assert_eq!(parse("GET / HTTP/1.1\r\n\r\n"), Request::Path);
        assert_eq!(parse("GET /metricsx HTTP/1.1\r\n\r\n"), Request::Path);
        assert_eq!(parse("GET /metrics HTTP/1.1\r\nHost: a\r\n"), Request::Incomplete);
        assert_eq!(parse(""), Request::Incomplete);
        assert_eq!(parse("\x16\x03\x01\x02\0"), Request::Malformed);
        let fields = "A: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(parse(&format!("GET /metrics HTTP/1.1\r\n{fields}\r\n")), Request::Malformed);
    }
}
