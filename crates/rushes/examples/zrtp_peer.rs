//! A ZRTP endpoint for tests against others: it agrees on keys, prints the keys and the short
//! authentication string as JSON, and sends media under them.
//!
//! Without arguments two endpoints run in this process. Against another program on this machine:
//! `cargo run --example zrtp_peer -- --local 6000 --remote 6002 --kex X255 --srtp 10`.
//!
//! It prints its keys, so it must not be used for real calls.

#[path = "zrtp_peer/mod.rs"]
mod peer;

use std::net::UdpSocket;
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;

use peer::endpoint::{self, Endpoint};
use peer::options::{Options, Ports, USAGE};

/// The exit status for invalid options.
const MISUSED: u8 = 2;

/// Media packets that each end sends when both run here.
const DEMONSTRATED: u32 = 20;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let result = if arguments.peek().is_none() {
        demonstrate()
    } else {
        match Options::parse(arguments) {
            Ok(options) => run(options),
            Err(error) => {
                eprintln!("{error}\n{USAGE}");
                return MISUSED.into();
            }
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            MISUSED.into()
        }
    }
}

fn run(options: Options) -> Result<bool, String> {
    let sockets = endpoint::bind(&options)?;
    let mut endpoint = Endpoint::new(options, sockets)?;
    let is_well = endpoint.run();
    print(&endpoint);
    Ok(is_well)
}

fn print(endpoint: &Endpoint) {
    for line in endpoint.report() {
        println!("{line}");
    }
}

/// Runs two endpoints with two streams each, on free ports.
fn demonstrate() -> Result<bool, String> {
    let (a, b) = (bind_two()?, bind_two()?);
    let mut ends = [introduce(&a, &b)?, introduce(&b, &a)?]
        .into_iter()
        .zip([a, b])
        .map(|(options, sockets)| Endpoint::new(options, sockets))
        .collect::<Result<Vec<_>, _>>()?;
    let are_well = std::thread::scope(|scope| {
        let threads: Vec<_> = ends.iter_mut().map(|end| scope.spawn(|| end.run())).collect();
        // All threads are joined, even if the first one fails.
        let results: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
        results.iter().all(|is_well| matches!(is_well, Ok(true)))
    });
    ends.iter().for_each(print);
    let strings: Vec<_> = ends.iter().map(|end| end.session.sas()).collect();
    Ok(are_well && strings.windows(2).all(|pair| pair[0] == pair[1]))
}

fn bind_two() -> Result<Vec<UdpSocket>, String> {
    let bind = |_| UdpSocket::bind("127.0.0.1:0").map_err(|error| error.to_string());
    (0..2).map(bind).collect()
}

/// Returns the options of the end with the sockets `own`, whose peer has the sockets `others`.
fn introduce(own: &[UdpSocket], others: &[UdpSocket]) -> Result<Options, String> {
    let port = |socket: &UdpSocket| {
        socket.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
    };
    let mut options = Options { srtp: DEMONSTRATED, ..Options::default() };
    for (own, other) in own.iter().zip(others) {
        options.streams.push(Ports { local: port(own)?, remote: port(other)?, ssrc: None });
    }
    Ok(options)
}
