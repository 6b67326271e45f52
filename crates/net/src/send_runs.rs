//! Sending datagrams with several destinations in few system calls.

use std::net::SocketAddr;
use std::time::Instant;

use crate::counters::count;
use crate::error::{SendError, SendErrorKind};
use crate::options::SendPath;
use crate::send::SendQueue;
use crate::socket::UdpSocket;
use crate::sys::{Parcels, Taken};

impl UdpSocket {
    /// Sends the datagrams in `bytes`, which lie back to back and have these `lengths`, to several
    /// destinations: `runs` are addresses, and how many of the datagrams are for each in turn.
    ///
    /// As [`send`](Self::send) otherwise: runs of equal length to one destination become one message where
    /// the system segments, and up to 64 messages one system call.
    ///
    /// # Errors
    /// As [`send`](Self::send), of the first datagram that the kernel does not accept; the
    /// [`SendError`] contains how many came before it, and sending can resume after it.
    pub fn send_runs(
        &self,
        queue: &mut SendQueue,
        bytes: &[u8],
        lengths: &[u16],
        runs: &[(SocketAddr, usize)],
        deadline: Instant,
    ) -> Result<(), SendError> {
        let sum: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        let in_runs: usize = runs.iter().map(|(_, datagrams)| datagrams).sum();
        if sum != bytes.len() || in_runs != lengths.len() {
            let kind = SendErrorKind::Mismatch { lengths: sum, bytes: bytes.len() };
            return Err(SendError { kind, sent: 0 });
        }
        let mut rest = Rest { bytes, lengths, runs: runs.to_vec(), first: 0 };
        if self.dual_stack {
            rest.runs.iter_mut().for_each(|run| run.0 = self.kernel_address(run.0));
        }
        while rest.next_run().is_some() {
            let path = self.send_path();
            if path != SendPath::Single {
                count(&self.tally.send_calls, 1);
                let parcels = rest.parcels();
                if let Ok(taken) = queue.outbox.send_runs(&self.socket, parcels, self.limits(path))
                {
                    count(&self.tally.sent_datagrams, taken.datagrams);
                    count(&self.tally.sent_bytes, taken.bytes);
                    rest.advance(taken);
                    continue;
                }
            }
            // The ordinary path finds out why, waits, and falls back.
            self.send_first_run(queue, &mut rest, lengths.len(), deadline)?;
        }
        Ok(())
    }

    /// Sends the datagrams of the first run that has any.
    fn send_first_run(
        &self,
        queue: &mut SendQueue,
        rest: &mut Rest<'_>,
        all: usize,
        deadline: Instant,
    ) -> Result<(), SendError> {
        let Some((to, datagrams)) = rest.next_run() else { return Ok(()) };
        let before = all - rest.lengths.len();
        let lengths = &rest.lengths[..datagrams];
        let sum = lengths.iter().map(|&length| usize::from(length)).sum();
        self.send(queue, &rest.bytes[..sum], lengths, to, deadline)
            .map_err(|error| SendError { sent: before + error.sent, ..error })?;
        rest.advance(Taken { datagrams, bytes: sum });
        Ok(())
    }
}

/// Datagrams that are not sent yet.
struct Rest<'a> {
    bytes: &'a [u8],
    lengths: &'a [u16],
    /// The number of datagrams of the first run goes down as they are sent.
    runs: Vec<(SocketAddr, usize)>,
    first: usize,
}

impl Rest<'_> {
    fn next_run(&mut self) -> Option<(SocketAddr, usize)> {
        while self.runs.get(self.first).is_some_and(|(_, left)| *left == 0) {
            self.first += 1;
        }
        self.runs.get(self.first).copied()
    }

    fn parcels(&self) -> Parcels<'_> {
        Parcels { bytes: self.bytes, lengths: self.lengths, runs: &self.runs[self.first..] }
    }

    fn advance(&mut self, taken: Taken) {
        self.bytes = &self.bytes[taken.bytes..];
        self.lengths = &self.lengths[taken.datagrams..];
        let mut left = taken.datagrams;
        while left > 0 {
            let Some((_, of_run)) = self.runs.get_mut(self.first) else { return };
            let of_these = left.min(*of_run);
            *of_run -= of_these;
            left -= of_these;
            self.first += usize::from(*of_run == 0);
        }
    }
}
