//! As much of HTTP/1.1 as WHIP and WHEP need: an offer by POST, its answer, and DELETE.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::Outcome;

/// Octets of the longest offer.
const LONGEST: usize = 1 << 20;

pub(crate) struct Server {
    listener: TcpListener,
}

/// A connection that waits for its answer.
pub(crate) struct Connection {
    stream: TcpStream,
}

struct Request {
    method: String,
    body: String,
    connection: Connection,
}

impl Server {
    pub(crate) fn open(at: &str) -> Outcome<Self> {
        Ok(Self { listener: TcpListener::bind(at)? })
    }

    /// Waits for an offer.
    pub(crate) fn offer(&self) -> Outcome<(String, Connection)> {
        loop {
            let (stream, _) = self.listener.accept()?;
            // Those who only look whether the port is open send nothing.
            let Some(request) = read(stream)? else { continue };
            if request.method == "POST" {
                self.listener.set_nonblocking(true)?;
                return Ok((request.body, request.connection));
            }
            request.connection.answer("405 Method Not Allowed", "")?;
        }
    }

    /// Returns whether the client has ended its session since the last call.
    pub(crate) fn is_deleted(&self) -> Outcome<bool> {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        stream.set_nonblocking(false)?;
        let Some(request) = read(stream)? else { return Ok(false) };
        let is_delete = request.method == "DELETE";
        let status = if is_delete { "200 OK" } else { "405 Method Not Allowed" };
        request.connection.answer(status, "")?;
        Ok(is_delete)
    }
}

impl Connection {
    /// Answers an offer.
    pub(crate) fn created(self, answer: &str) -> Outcome<()> {
        let headers = "Content-Type: application/sdp\r\nLocation: /session\r\n";
        self.write("201 Created", headers, answer)
    }

    fn answer(self, status: &str, body: &str) -> Outcome<()> {
        self.write(status, "", body)
    }

    fn write(mut self, status: &str, headers: &str, body: &str) -> Outcome<()> {
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n");
        self.stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes())?;
        Ok(())
    }
}

/// Reads a request; `None` if the connection ends before it.
fn read(stream: TcpStream) -> Outcome<Option<Request>> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(&stream);
    let (mut first, mut length) = (String::new(), 0);
    if reader.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse()?;
            }
            Some(_) => {}
        }
    }
    if length > LONGEST {
        return Err("the offer is too long".into());
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let method = first.split(' ').next().unwrap_or_default().to_owned();
    let body = String::from_utf8(body)?;
    Ok(Some(Request { method, body, connection: Connection { stream } }))
}
