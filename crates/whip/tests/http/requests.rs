//! Requests octet by octet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A response, as it arrived.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Response {
    /// Parses the text of a response.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self { status, head: head.to_owned(), body: body.to_owned() })
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let fields = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let mut values = fields.filter(|(one, _)| one.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value)
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // Only against a test that would hang.
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends octets and reads to the end of the connection.
pub(crate) fn exchange(address: SocketAddr, octets: &[u8]) -> String {
    let mut stream = connect(address);
    // The server may refuse before it has read all.
    let _ = stream.write_all(octets);
    read(stream)
}

/// Reads to the end of the connection; what came before a reset counts.
pub(crate) fn read(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let mut octets = [0; 4096];
    while let Ok(len @ 1..) = stream.read(&mut octets) {
        answer.extend_from_slice(&octets[..len]);
    }
    String::from_utf8(answer).unwrap()
}

/// Sends a request and returns its response. `fields` are further lines, each with its end.
pub(crate) fn request(
    address: SocketAddr,
    line: &str,
    fields: &str,
    body: Option<(&str, &str)>,
) -> Response {
    let body = body.map_or(String::new(), |(kind, body)| {
        format!("Content-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    });
    let end = if body.is_empty() { "\r\n" } else { "" };
    let text = format!("{line} HTTP/1.1\r\nHost: {address}\r\n{fields}{body}{end}");
    let answer = exchange(address, text.as_bytes());
    Response::parse(&answer).unwrap_or_else(|| panic!("{line}: {answer:?}"))
}

/// Posts an offer.
pub(crate) fn post(address: SocketAddr, path: &str, fields: &str, offer: &str) -> Response {
    request(address, &format!("POST {path}"), fields, Some(("application/sdp", offer)))
}
