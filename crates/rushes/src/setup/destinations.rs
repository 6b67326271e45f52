//! Several destinations of one stream: the setting and its checks.

use std::net::{IpAddr, SocketAddr};

use super::builder::StreamBuilder;
use crate::error::{self, DestinationsError, Error};
use crate::port::{DESTINATIONS_MAX, Destinations, OnlyFrom, Port};

impl StreamBuilder {
    /// Adds a destination to the session's peer at the [remote port](Self::remote_port), which stays the
    /// first: every packet is sent to all of them, at most 64. A frame is split, protected and kept for
    /// retransmission once, however many there are.
    ///
    /// Each destination has its RTCP on the port after its media's, or with
    /// [`rtcp_mux`](Self::rtcp_mux) on the same; [`rtcp_remote_port`](Self::rtcp_remote_port) is that
    /// of the first. It gets all reports, its reports and requests are heard, and it alone gets the
    /// packets that it requests (or those at the same host, if it requests them from a port of its
    /// own; and each 4 096th goes to all, so that the packet indices of SRTP stay known). All share the
    /// stream's keys.
    ///
    /// A destination that cannot be reached stops no other: its packets are lost to it, and counted
    /// ([`StreamSender::destinations`](crate::StreamSender::destinations)). Pushing fails if no
    /// destination can be reached. Likewise, [circuit breakers](Self::circuit_breakers) stop the stream
    /// if no receiver that has reported lately is well.
    ///
    /// [Pacing](Self::pacing) and [bursts](Self::burst) count the octets to all destinations, because
    /// the first queue is that of the own interface.
    ///
    /// [`open`](Self::open) fails with [`Error::Destinations`] if an address is given twice, is a group,
    /// is of another IP version, has port 0, or is where another destination gets its reports; with
    /// [rate control](Self::rate_control), since the paths differ; with ZRTP, which agrees on keys with
    /// one peer; and if another stream has opened the local port without these destinations.
    ///
    /// ```
    /// use rushes::{Codec, Context};
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let session = Context::new().session("127.0.0.1")?;
    /// let mut left = session.stream(Codec::Generic).probation(1).open()?;
    /// let mut right = session.stream(Codec::Generic).probation(1).open()?;
    /// let camera = session.stream(Codec::Generic).remote_port(left.local_address().port());
    /// let second = ([127, 0, 0, 1], right.local_address().port());
    /// let mut camera = camera.also_to(second.into()).open()?;
    /// camera.push_frame(b"picture", None)?;
    /// for monitor in [&mut left, &mut right] {
    ///     let frame = monitor.pull_frame(Duration::from_secs(1))?.expect("a frame");
    ///     assert_eq!(frame.data(), b"picture");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn also_to(mut self, destination: SocketAddr) -> Self {
        self.also_to.push(destination);
        self
    }

    /// Returns the addresses of media and of RTCP of all destinations.
    pub(super) fn destinations(&self) -> Destinations {
        let Some(first) = self.destination() else { return Destinations::default() };
        let also = self.also_to.iter().map(|to| (*to, self.default_control_address(*to)));
        Destinations::new([(first, self.control_address(first))].into_iter().chain(also))
    }

    /// Returns the hosts from which the stream's port accepts datagrams; any host if there are none.
    pub(super) fn accepted(&self) -> Vec<OnlyFrom> {
        if let Some(only) = self.only_from {
            return vec![only];
        }
        let peer = self.session.peer().filter(|peer| !peer.is_multicast());
        let Some(peer) = peer else { return Vec::new() };
        let hosts = [peer].into_iter().chain(self.also_to.iter().map(SocketAddr::ip));
        let mut accepted: Vec<OnlyFrom> = Vec::new();
        for host in hosts {
            if !accepted.iter().any(|it| it.host == host) {
                accepted.push(OnlyFrom { host, port: None });
            }
        }
        accepted
    }

    /// Checks the further destinations.
    pub(super) fn check_destinations(&self) -> Result<(), Error> {
        if self.also_to.is_empty() {
            return Ok(());
        }
        let first = self.destination().ok_or(Error::NoDestination)?;
        let count = 1 + self.also_to.len();
        if count > DESTINATIONS_MAX {
            return Err(DestinationsError::TooMany { count }.into());
        }
        if self.control.rate.is_some() {
            return Err(DestinationsError::RateControl.into());
        }
        if self.awaits_keys() {
            return Err(DestinationsError::Zrtp.into());
        }
        let mut earlier: Vec<(SocketAddr, Option<SocketAddr>)> = Vec::new();
        for to in [first].into_iter().chain(self.also_to.iter().copied()) {
            check_destination(first, to)?;
            let is_first = earlier.is_empty();
            let reports =
                if is_first { self.control_address(to) } else { self.default_control_address(to) };
            if self.control.rtcp && reports.is_none() {
                return Err(DestinationsError::NoReportPort { to }.into());
            }
            if earlier.iter().any(|(other, _)| *other == to) {
                return Err(DestinationsError::Twice { to }.into());
            }
            if self.control.rtcp && !self.control.mux {
                let is_taken = |(other, of_other): &(SocketAddr, Option<SocketAddr>)| {
                    *of_other == Some(to) || reports == Some(*other)
                };
                if let Some((other, _)) = earlier.iter().find(|it| is_taken(it)) {
                    return Err(DestinationsError::Reports { to, other: *other }.into());
                }
            }
            earlier.push((to, reports));
        }
        Ok(())
    }

    /// Checks that the port hears the reports of all destinations: another stream may have opened it.
    pub(super) fn check_heard(&self, port: &Port) -> Result<(), Error> {
        let is_unheard = |host: &IpAddr| !port.accepts_reports(*host);
        let hosts = self.also_to.iter().map(SocketAddr::ip);
        match hosts.into_iter().find(is_unheard).filter(|_| self.only_from.is_none()) {
            Some(host) => {
                let port = port.local_address().port();
                Err(DestinationsError::Unheard { host, port }.into())
            }
            None => Ok(()),
        }
    }

    /// Returns where RTCP goes to a destination without a port of its own for it.
    fn default_control_address(&self, mut to: SocketAddr) -> Option<SocketAddr> {
        if !self.control.mux {
            to.set_port(to.port().checked_add(1)?);
        }
        Some(to)
    }
}

/// Checks one of several destinations by itself.
fn check_destination(first: SocketAddr, to: SocketAddr) -> Result<(), Error> {
    error::check_peer(to.ip())?;
    if to.ip().is_multicast() {
        return Err(DestinationsError::Group { group: to.ip() }.into());
    }
    if to.port() == 0 {
        return Err(DestinationsError::NoPort { host: to.ip() }.into());
    }
    if to.is_ipv4() != first.is_ipv4() {
        return Err(DestinationsError::Families { first: first.ip(), other: to.ip() }.into());
    }
    Ok(())
}
