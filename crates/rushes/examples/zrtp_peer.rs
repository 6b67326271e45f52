//! A ZRTP endpoint for tests against others: agrees on keys on a port, tells the keys and the short
//! authentication string in JSON, and sends media under them.
//!
//! Without arguments two of them meet here. Against another program on this machine:
//! `cargo run --example zrtp_peer -- --local 6000 --remote 6002 --kex X255 --srtp 10`.
//!
//! It prints its keys: not for calls between people.

#[path = "zrtp_peer/mod.rs"]
mod peer;

use std::net::UdpSocket;
use std::process::ExitCode;

use peer::endpoint::{self, Endpoint};
use peer::options::{Options, Ports, USAGE};

/// The exit status of options that cannot be understood.
const MISUSED: u8 = 2;

/// Media packets that each end sends where two meet here.
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

/// Two endpoints with two streams each, on ports that are free.
fn demonstrate() -> Result<bool, String> {
    let bind = || UdpSocket::bind("127.0.0.1:0");
    let bind_all = || -> std::io::Result<[UdpSocket; 2]> { Ok([bind()?, bind()?]) };
    let both = || -> Result<[(Vec<UdpSocket>, [u16; 2]); 2], std::io::Error> {
        let one = || -> std::io::Result<_> {
            let sockets = bind_all()?;
            let ports = [sockets[0].local_addr()?.port(), sockets[1].local_addr()?.port()];
            Ok((sockets.into(), ports))
        };
        Ok([one()?, one()?])
    };
    let [(a, a_ports), (b, b_ports)] = both().map_err(|error| error.to_string())?;
    let endpoint = |sockets, local: [u16; 2], remote: [u16; 2]| {
        let mut options = Options { srtp: DEMONSTRATED, ..Options::default() };
        for (local, remote) in local.into_iter().zip(remote) {
            options.streams.push(Ports { local, remote, ssrc: None });
        }
        Endpoint::new(options, sockets)
    };
    let mut ends = [endpoint(a, a_ports, b_ports)?, endpoint(b, b_ports, a_ports)?];
    let are_well = std::thread::scope(|scope| {
        let threads = ends.each_mut().map(|end| scope.spawn(|| end.run()));
        threads.map(|thread| thread.join().unwrap_or(false))
    });
    ends.iter().for_each(print);
    let equal = ends[0].session.sas() == ends[1].session.sas();
    Ok(equal && are_well == [true, true])
}
