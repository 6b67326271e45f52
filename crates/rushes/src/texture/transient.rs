//! Transient network errors: data sent meanwhile is lost, as if by the network.

use std::io::ErrorKind;
use std::{fmt, io};

use rushes_net::{NetError, SendError, SendErrorKind};

use crate::error::Error;

/// Returns whether a network, a host or an interface is temporarily unreachable.
///
/// A client that has left for good is detected by its control connection.
fn is_transient(error: &io::Error) -> bool {
    use ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), NetworkUnreachable | HostUnreachable | NetworkDown)
}

/// Logs once per outage that a client cannot be reached.
#[derive(Debug, Default)]
pub(super) struct Outage {
    is_logged: bool,
}

impl Outage {
    pub(super) fn note(&mut self, error: &dyn fmt::Display) {
        if !std::mem::replace(&mut self.is_logged, true) {
            tracing::warn!(%error, "a client is temporarily unreachable");
        }
    }

    pub(super) fn end(&mut self) {
        self.is_logged = false;
    }
}

pub(super) fn of_sending(error: &SendError) -> bool {
    matches!(&error.kind, SendErrorKind::Io { source, .. } if is_transient(source))
}

pub(super) fn of_socket(error: &NetError) -> bool {
    matches!(error, NetError::Receive(source) if is_transient(source))
}

pub(super) fn of_stream(error: &Error) -> bool {
    match error {
        Error::Send(error) => of_sending(error),
        Error::Net(error) => of_socket(error),
        _ => false,
    }
}
