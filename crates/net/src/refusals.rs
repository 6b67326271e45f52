//! ICMP messages about sent datagrams: counted, and never an error of the datagram that is being
//! sent or received.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use crate::counters::count;
use crate::socket::UdpSocket;
use crate::sys;
use crate::sys::{ErrorQueue, Fault};

/// Errors in a row that are taken for those of earlier datagrams: a flood of forged messages can make
/// many calls fail.
const ERRORS_MAX: usize = 8;

/// Errors in a row that an earlier datagram may have caused.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    errors: usize,
    /// The ICMP messages that were read meanwhile.
    messages: usize,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// An ICMP message about an earlier datagram; the call can be repeated.
    Earlier,
    /// ICMP messages keep arriving; the datagram counts as lost on the way.
    Unclear,
    /// This datagram.
    This,
}

impl UdpSocket {
    /// Counts ICMP messages that a destination port is closed
    /// ([`refused`](crate::Counters::refused)) although the socket is not connected
    /// (`IP_RECVERR`, `IPV6_RECVERR`; Linux). Elsewhere it has no effect; Windows counts them anyway.
    ///
    /// Anyone who knows the addresses can forge such a message, so that it never ends a call with an
    /// error. Receiving and sending cost the same until one arrives.
    pub fn enable_refusals(&self) {
        if self.errors.get().is_some() {
            return;
        }
        let is_ipv4 = self.local_address().is_ipv4();
        match ErrorQueue::enable(&self.socket, is_ipv4, self.dual_stack) {
            Ok(queue) => {
                self.errors.get_or_init(|| queue);
            }
            Err(reason) => tracing::debug!(%reason, "the system does not report closed ports"),
        }
    }

    /// Returns [`refused`](crate::Counters::refused) of the counters, without a system call.
    pub fn refused(&self) -> u64 {
        self.tally.refused.load(Relaxed)
    }

    /// Reads the messages that wait; returns their number. Until they are read, the socket counts as
    /// ready in every wait.
    pub(crate) fn read_errors(&self) -> usize {
        let Some(queue) = self.errors.get() else { return 0 };
        let reported = queue.read(&self.socket);
        count(&self.tally.refused, reported.refusals);
        reported.messages
    }

    /// Finds out why a call failed. `earlier` counts the errors in a row that an earlier datagram may
    /// have caused.
    pub(crate) fn cause(&self, error: &io::Error, earlier: &mut Earlier) -> Cause {
        let fault = sys::fault(error);
        let is_requested = self.errors.get().is_some();
        let is_suspect = match fault {
            Fault::Refused => true,
            // Each message makes one call fail with its error. That of a failed source route is the
            // error of a missing system call.
            Fault::TooLarge | Fault::Missing | Fault::Other => is_requested,
            _ => false,
        };
        if !is_suspect {
            return Cause::This;
        }
        if is_requested {
            earlier.messages += self.read_errors();
        } else {
            count(&self.tally.refused, 1);
        }
        earlier.errors += 1;
        let errors_max = if is_requested { ERRORS_MAX } else { 1 };
        if earlier.errors <= errors_max {
            return Cause::Earlier;
        }
        let has_messages = std::mem::take(earlier).messages > 0;
        if has_messages || fault == Fault::Refused { Cause::Unclear } else { Cause::This }
    }

    /// Returns whether the device's queue dropped a message. Without `IP_RECVERR` the kernel does
    /// not say so, and the message counts as lost on the way.
    pub(crate) fn is_dropped(&self, error: &io::Error) -> bool {
        self.errors.get().is_some() && sys::fault(error) == Fault::NoBuffers
    }
}
