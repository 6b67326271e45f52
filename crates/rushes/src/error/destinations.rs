//! Errors of several destinations.

use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// The reason why a stream cannot send to several destinations
/// ([`also_to`](crate::StreamBuilder::also_to)).
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum DestinationsError {
    /// There are too many.
    #[error("{count} destinations are more than 64: open another stream for the rest")]
    TooMany {
        /// Their number.
        count: usize,
    },
    /// One is given twice.
    #[error("the destination {to} is given twice: give it once")]
    Twice {
        /// The destination.
        to: SocketAddr,
    },
    /// Media of one would arrive where another receives its reports.
    #[error(
        "{to} and {other} overlap: reports go to the port after that of the media; \
         leave at least one port between them, or let RTCP share the port (rtcp_mux)"
    )]
    Reports {
        /// The later destination.
        to: SocketAddr,
        /// The earlier one.
        other: SocketAddr,
    },
    /// One is an IPv4 address and one an IPv6 address, which one socket does not send to.
    #[error(
        "the destinations {first} and {other} are of different IP versions: \
         open a stream for each version"
    )]
    Families {
        /// The first destination.
        first: IpAddr,
        /// The destination of the other version.
        other: IpAddr,
    },
    /// One is a multicast group, whose members are joined and heard in another way.
    #[error(
        "the group {group} cannot be one of several destinations: open a stream of its own for it"
    )]
    Group {
        /// The group.
        group: IpAddr,
    },
    /// One has no port.
    #[error("the destination {host} needs a port from 1 to 65535")]
    NoPort {
        /// Its host.
        host: IpAddr,
    },
    /// One has no port after that of its media.
    #[error(
        "no port follows that of {to} for its reports: give a lower port, \
         or let RTCP share the port (rtcp_mux)"
    )]
    NoReportPort {
        /// The destination.
        to: SocketAddr,
    },
    /// The stream has rate control.
    #[error(
        "the rate to several destinations cannot be controlled, because their paths differ: \
         leave rate control out, or open a stream for each"
    )]
    RateControl,
    /// The stream would agree on its keys by ZRTP or DTLS.
    #[error(
        "keys are agreed on with one peer, by ZRTP as by DTLS: open a stream for each destination, \
         or give all of them one key"
    )]
    Zrtp,
    /// Another stream has opened the local port, which does not hear this destination.
    #[error(
        "local port {port} was opened by a stream that does not send to {host}, whose reports it \
         would not hear: open the stream with more destinations first, or use another local port"
    )]
    Unheard {
        /// The destination's host.
        host: IpAddr,
        /// The local port.
        port: u16,
    },
}
