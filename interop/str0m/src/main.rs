//! A peer for the tests of VP8, VP9, AV1 and H.264: str0m's packetizers and depacketizers, behind WHIP
//! (RFC 9725) and WHEP on loopback. It answers one offer.
//!
//! ```text
//! str0m-peer send CODEC HOST:PORT FILE    POST /whep gets the frames of FILE
//! str0m-peer recv CODEC HOST:PORT FILE    what POST /whip publishes is written to FILE
//! ```
//!
//! FILE has frames, each after its length in 4 octets, big-endian.

mod http;
mod session;

use std::error::Error;
use std::process::ExitCode;

use crate::session::{Session, Way};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn run() -> Outcome<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [way, codec, at, file] = &arguments[..] else {
        return Err("usage: str0m-peer send|recv CODEC HOST:PORT FILE".into());
    };
    let way = match &way[..] {
        "send" => Way::Send(frames(&std::fs::read(file)?)?),
        "recv" => Way::Receive(Vec::new()),
        _ => return Err("neither send nor recv".into()),
    };
    let server = http::Server::open(at)?;
    let (offer, connection) = server.offer()?;
    let (session, answer) = Session::open(way, codec, &offer)?;
    connection.created(&answer)?;
    if let Way::Receive(frames) = session.run(&server)? {
        let octets: Vec<_> = frames
            .iter()
            .flat_map(|frame| [&(frame.len() as u32).to_be_bytes(), &frame[..]].concat())
            .collect();
        std::fs::write(file, octets)?;
    }
    Ok(())
}

/// Returns the frames of a file.
fn frames(mut octets: &[u8]) -> Outcome<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    while let Some((length, rest)) = octets.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (frame, rest) = rest.split_at_checked(length).ok_or("the file is cut off")?;
        frames.push(frame.to_vec());
        octets = rest;
    }
    Ok(frames)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("str0m-peer: {error}");
            ExitCode::FAILURE
        }
    }
}
