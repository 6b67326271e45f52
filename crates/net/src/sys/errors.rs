//! `IP_RECVERR`: the ICMP messages about sent datagrams.

use std::net::UdpSocket;
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use crate::sys::messages::Notifications;
use crate::sys::{Reported, address, linux};

/// Maximum batches of messages that are read at once: a flood must not keep the reading thread.
const BATCHES_MAX: usize = 64;

/// The error queue of a socket that has requested ICMP messages.
pub(crate) struct ErrorQueue {
    notifications: Mutex<Notifications>,
}

impl fmt::Debug for ErrorQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorQueue").finish_non_exhaustive()
    }
}

impl ErrorQueue {
    /// Requests ICMP messages about the datagrams of `socket`. A socket for both IP versions needs
    /// the options of both.
    pub(crate) fn enable(
        socket: &UdpSocket,
        is_ipv4: bool,
        is_dual_stack: bool,
    ) -> io::Result<Self> {
        linux::enable_errors(socket, is_ipv4, is_dual_stack)?;
        Ok(Self { notifications: Mutex::new(Notifications::new()) })
    }

    /// Reads the waiting messages.
    pub(crate) fn read(&self, socket: &UdpSocket) -> Reported {
        let mut notifications = self.notifications.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reported = Reported::default();
        for _ in 0..BATCHES_MAX {
            let (read, is_all) = notifications.read(socket);
            for error in read.iter().filter_map(address::decode_icmp) {
                reported.messages += 1;
                reported.refusals += usize::from(error == libc::ECONNREFUSED);
            }
            if is_all {
                break;
            }
        }
        reported
    }
}
