//! The destinations of a film: each gets all streams, at ports of its own.

use std::net::SocketAddr;

use rushes::StreamBuilder;

use super::PORTS;
use crate::Usage;
use crate::args::SendArgs;
use crate::endpoint::Endpoint;

/// Maximum number of destinations, as in the library.
const DESTINATIONS_MAX: usize = 64;

/// Returns the first destination.
pub(super) fn first(args: &SendArgs) -> Result<&Endpoint, Usage> {
    args.to.first().ok_or_else(|| Usage("--to is missing".to_owned()))
}

/// Returns the host of a destination; this machine by default.
pub(super) fn host(to: &Endpoint) -> &str {
    to.host.as_deref().unwrap_or("127.0.0.1")
}

/// Returns the port of stream `number`, if the first has `port`.
pub(super) fn port(port: u16, number: u16) -> Option<u16> {
    port.checked_add(PORTS * number)
}

/// Refuses destinations that cannot be served, of a film of `streams` streams.
pub(super) fn check(args: &SendArgs, streams: usize) -> Result<(), Usage> {
    if args.to.iter().any(|to| to.port == 0) {
        return Err(Usage("--to needs a port from 1 to 65535".to_owned()));
    }
    let several = args.to.len() > 1;
    if args.to.len() > DESTINATIONS_MAX {
        let reason = format!(
            "--to is given {} times: give it at most {DESTINATIONS_MAX} times",
            args.to.len()
        );
        return Err(Usage(reason));
    }
    if several && args.rate.max_rate.is_some() {
        let reason = "--max-rate follows one path, and those to several destinations differ: leave \
                      it out, or run a program for each --to";
        return Err(Usage(reason.to_owned()));
    }
    if several && args.security.zrtp {
        let reason = "--zrtp agrees on a key with one receiver: give all of them one key \
                      (--srtp SUITE --key-file FILE), or run a program for each --to";
        return Err(Usage(reason.to_owned()));
    }
    if streams > 1 {
        check_ports(&args.to, (PORTS as usize * streams) as u16)?;
    }
    Ok(())
}

/// Refuses destinations at one host whose streams would meet at a port: each takes `ports`. Those of one
/// stream are checked by the library.
fn check_ports(all: &[Endpoint], ports: u16) -> Result<(), Usage> {
    for (n, to) in all.iter().enumerate() {
        let meets =
            |other: &&Endpoint| host(other) == host(to) && other.port.abs_diff(to.port) < ports;
        if let Some(other) = all[..n].iter().find(meets) {
            let reason = format!(
                "--to {host}:{} and --to {host}:{} overlap: the streams of a film take {ports} ports at \
                 each; leave as many between them",
                other.port,
                to.port,
                host = host(to),
            );
            return Err(Usage(reason));
        }
    }
    Ok(())
}

/// Adds the destinations after the first to stream `number`.
pub(super) fn add(
    mut builder: StreamBuilder,
    args: &SendArgs,
    number: u16,
) -> anyhow::Result<StreamBuilder> {
    for to in args.to.iter().skip(1) {
        let port = port(to.port, number).ok_or_else(no_port)?;
        let address: SocketAddr = rushes::net::resolve(host(to), port)?;
        builder = builder.also_to(address);
    }
    Ok(builder)
}

/// The refusal of a port without enough others after it.
pub(super) fn no_port() -> Usage {
    Usage("the second stream needs two ports after those of the first: give lower ones".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(ports: u16, all: &[(&str, u16)]) -> Option<String> {
        let endpoint = |(host, port): &(&str, u16)| Endpoint {
            host: Some((*host).to_owned()).filter(|host| !host.is_empty()),
            port: *port,
        };
        let all: Vec<_> = all.iter().map(endpoint).collect();
        check_ports(&all, ports).err().map(|refused| refused.to_string())
    }

    #[test]
    fn two_films_at_one_host_need_ports_of_their_own() {
        assert_eq!(refusal(4, &[("a", 5004), ("b", 5004), ("a", 5008), ("", 5004)]), None);
        let refused = refusal(4, &[("a", 5004), ("b", 5004), ("a", 5006)]).unwrap();
        assert!(refused.contains("--to a:5004 and --to a:5006 overlap"), "{refused}");
        assert!(refusal(4, &[("", 5004), ("127.0.0.1", 5001)]).is_some());
    }
}
