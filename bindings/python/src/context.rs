//! The root object of an application.

use pyo3::prelude::*;

use crate::error::Failure;
use crate::integer::{address, arguments};
use crate::log::take_level;
use crate::peer::PeerConnection;
use crate::session::Session;

arguments! {
    local_port_of: u16 = "local_port";
}

/// The identity that an application's streams share; it creates sessions.
///
/// All its streams announce one canonical name and one wall clock, so that a receiver can
/// synchronise them. `cname` is that name, 1 to 255 octets; by default a random one.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Context(rushes::Context);

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (*, cname = None))]
    fn new(cname: Option<&str>) -> PyResult<Self> {
        let context = cname.map_or_else(|| Ok(rushes::Context::new()), rushes::Context::with_cname);
        Ok(Self(context.map_err(Failure::from)?))
    }

    /// The canonical name.
    #[getter]
    fn cname(&self) -> PyResult<&str> {
        Ok(self.0.cname().map_err(Failure::from)?)
    }

    /// Creates a session with one peer: a host name, an IPv4 or IPv6 address, or a multicast group.
    ///
    /// Its streams send to this host and, unless it is a group, accept datagrams only from its
    /// address. With `None` they receive from any host and do not send. Their sockets are bound to
    /// `local_address`; by default to all addresses of this machine.
    #[pyo3(signature = (peer, *, local_address = None))]
    fn session(
        &self,
        py: Python<'_>,
        peer: Option<&str>,
        local_address: Option<&str>,
    ) -> PyResult<Session> {
        // Detached, because resolving a host name may block.
        let session = py.detach(|| {
            let session = match peer {
                Some(peer) => self.0.session(peer)?,
                None => self.0.session_any(),
            };
            match local_address {
                Some(local) => session.local_address(local),
                None => Ok(session),
            }
        });
        Ok(Session::new(session.map_err(Failure::from)?))
    }

    /// Creates a session that receives from any host at one address of this machine: a host name,
    /// an IPv4 or IPv6 address, or a multicast group, which is joined. "0.0.0.0" means every IPv4
    /// address, "::" every IPv6 and IPv4 address.
    fn receive_on(&self, py: Python<'_>, address: &str) -> PyResult<Session> {
        let session = py.detach(|| self.0.receive_on(address));
        Ok(Session::new(session.map_err(Failure::from)?))
    }

    /// Opens the socket of a connection with a peer that is entered by offer and answer: a browser,
    /// or a server between browsers (WebRTC).
    ///
    /// `local_address` is the only local address to use; by default the peer is told every IPv4
    /// address of this machine, of loopback only if there is no other or `loopback` is set.
    /// `stun_servers`, hosts and ports, at most four, tell under which address this machine is seen
    /// from outside. `turn_server`, a host and a port, with `turn_username` and `turn_password`, relays
    /// the media if no direct path is found. With `lite` this end only answers the peer's checks (ICE lite), as a server with
    /// a public address may.
    #[pyo3(signature = (*, local_address = None, local_port = 0, stun_servers = Vec::new(),
        turn_server = None, turn_username = "", turn_password = "", loopback = false, lite = false))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn peer(
        &self,
        py: Python<'_>,
        local_address: Option<&str>,
        #[pyo3(from_py_with = local_port_of)] local_port: u16,
        stun_servers: Vec<Bound<'_, PyAny>>,
        turn_server: Option<Bound<'_, PyAny>>,
        turn_username: &str,
        turn_password: &str,
        loopback: bool,
        lite: bool,
    ) -> PyResult<PeerConnection> {
        take_level(py);
        let servers = stun_servers.iter().map(address).collect::<PyResult<Vec<_>>>()?;
        let relay = turn_server.as_ref().map(address).transpose()?;
        // Detached, because resolving a host name may block.
        let opened = py.detach(|| {
            let mut builder = self.0.peer().local_port(local_port).lite(lite);
            if let Some(local) = local_address {
                builder = builder.local_address(local)?;
            }
            if loopback {
                builder = builder.with_loopback();
            }
            for (host, port) in servers {
                builder = builder.stun_server(rushes::net::resolve(&host, port)?);
            }
            if let Some((host, port)) = relay {
                let address = rushes::net::resolve(&host, port)?;
                builder = builder.turn_server(address, turn_username, turn_password)?;
            }
            builder.open()
        });
        Ok(PeerConnection::new(opened.map_err(Failure::from)?))
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<rushes.Context {:?}>", self.cname()?))
    }
}
