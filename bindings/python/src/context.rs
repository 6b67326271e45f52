//! The root object of an application.

use pyo3::prelude::*;

use crate::error::Failure;
use crate::session::Session;

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

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<rushes.Context {:?}>", self.cname()?))
    }
}
