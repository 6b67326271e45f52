//! Sending: passes batches to the kernel, waits for buffer space and falls back to other paths.

use std::net::SocketAddr;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use crate::counters::count;
use crate::error::{SendError, SendErrorKind};
use crate::group::next_group;
use crate::options::SendPath;
use crate::refusals::{Cause, Earlier};
use crate::socket::UdpSocket;
use crate::sys;
use crate::sys::{Fault, Outbox, Parcel, Taken};

/// Pause when a device's queue is full: the time of about 20 datagrams on a gigabit link.
const QUEUE_PAUSE: Duration = Duration::from_micros(200);

/// Scratch space of one sending thread, created by [`UdpSocket::send_queue`].
pub struct SendQueue {
    pub(crate) outbox: Outbox,
}

impl SendQueue {
    pub(crate) fn new() -> Self {
        Self { outbox: Outbox::new() }
    }
}

impl fmt::Debug for SendQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendQueue").finish_non_exhaustive()
    }
}

impl UdpSocket {
    /// Sends the datagrams in `bytes`, which lie back to back and have these `lengths`, to `to`.
    ///
    /// Returns when the kernel has accepted all of them. While the send buffer is full it waits, at
    /// most until `deadline`; with a deadline in the past it does not wait. Nothing is allocated.
    ///
    /// An ICMP message that the destination port is closed is counted as
    /// [`refused`](crate::Counters::refused) and does not stop the batch.
    ///
    /// # Errors
    /// A [`SendError`] contains the number of datagrams that the kernel had accepted; sending can
    /// resume from there. [`SendErrorKind::BufferFull`] at the deadline;
    /// [`SendErrorKind::TooLarge`] for a datagram larger than UDP or the path allows.
    pub fn send(
        &self,
        queue: &mut SendQueue,
        bytes: &[u8],
        lengths: &[u16],
        to: SocketAddr,
        deadline: Instant,
    ) -> Result<(), SendError> {
        let sum = lengths.iter().map(|&length| usize::from(length)).sum();
        if sum != bytes.len() {
            let kind = SendErrorKind::Mismatch { lengths: sum, bytes: bytes.len() };
            return Err(SendError { kind, sent: 0 });
        }
        let connected = self.is_connected_to(to);
        let to = self.kernel_address(to);
        let parcel = Parcel { bytes, lengths, to, connected };
        self.send_all(queue, parcel, deadline)
    }

    fn is_connected_to(&self, to: SocketAddr) -> bool {
        self.peer.get() == Some(&to)
    }

    /// Sends until the kernel has accepted the whole parcel.
    fn send_all(
        &self,
        queue: &mut SendQueue,
        mut parcel: Parcel<'_>,
        deadline: Instant,
    ) -> Result<(), SendError> {
        let lengths = parcel.lengths;
        let mut earlier = Earlier::default();
        while !parcel.lengths.is_empty() {
            let path = self.send_path();
            let outcome = match self.send_once(queue, path, parcel) {
                Err(error) if self.is_dropped(&error) => Ok(self.front(path, &parcel)),
                outcome => outcome,
            };
            match outcome {
                Ok(taken) => {
                    count(&self.tally.sent_datagrams, taken.datagrams);
                    count(&self.tally.sent_bytes, taken.bytes);
                    parcel = parcel.after(taken);
                    earlier = Earlier::default();
                }
                Err(source) => match self.cause(&source, &mut earlier) {
                    Cause::Earlier => {}
                    Cause::Unclear => parcel = parcel.after(self.front(path, &parcel)),
                    Cause::This => {
                        let sent = lengths.len() - parcel.lengths.len();
                        self.handle_error(path, source, &parcel, deadline)
                            .map_err(|kind| SendError { kind, sent })?;
                    }
                },
            }
        }
        Ok(())
    }

    /// Sends the front of the parcel in one system call.
    fn send_once(
        &self,
        queue: &mut SendQueue,
        path: SendPath,
        parcel: Parcel<'_>,
    ) -> io::Result<Taken> {
        count(&self.tally.send_calls, 1);
        if path != SendPath::Single {
            return queue.outbox.send(&self.socket, parcel, self.limits(path));
        }
        let front = self.front(path, &parcel);
        let datagram = &parcel.bytes[..front.bytes];
        if parcel.connected {
            self.socket.send(datagram)?;
        } else {
            self.socket.send_to(datagram, parcel.to)?;
        }
        Ok(front)
    }

    /// Returns the size of the parcel's first message on `path`.
    fn front(&self, path: SendPath, parcel: &Parcel<'_>) -> Taken {
        let group = next_group(parcel.lengths, self.limits(path));
        group.map_or_else(Taken::default, |group| Taken {
            datagrams: group.datagrams,
            bytes: group.bytes,
        })
    }

    /// Handles an error so that the parcel can be sent again, or returns why it cannot.
    fn handle_error(
        &self,
        path: SendPath,
        source: io::Error,
        parcel: &Parcel<'_>,
        deadline: Instant,
    ) -> Result<(), SendErrorKind> {
        let to = parcel.to;
        let length = parcel.lengths.first().copied().map_or(0, usize::from);
        let segmented = self.front(path, parcel).datagrams > 1;
        match sys::fault(&source) {
            Fault::Interrupted => {}
            fault @ (Fault::WouldBlock | Fault::NoBuffers) => {
                self.wait_for_room(fault, to, deadline)?;
            }
            Fault::Device | Fault::Invalid | Fault::TooLarge
                if segmented && !self.can_fall_back() =>
            {
                return Err(SendErrorKind::PathRefused { path, source });
            }
            Fault::Device if segmented => self.disable_path(SendPath::Gso, &source),
            Fault::Invalid | Fault::TooLarge if segmented => {
                self.lower_segment_limit(length, &source);
            }
            Fault::TooLarge => return Err(SendErrorKind::TooLarge { length, to }),
            Fault::Missing if path != SendPath::Single => {
                if !self.can_fall_back() {
                    return Err(SendErrorKind::PathRefused { path, source });
                }
                self.disable_path(SendPath::Gso, &source);
                self.disable_path(SendPath::Sendmmsg, &source);
            }
            _ => return Err(SendErrorKind::Io { to, source }),
        }
        Ok(())
    }

    fn wait_for_room(
        &self,
        fault: Fault,
        to: SocketAddr,
        deadline: Instant,
    ) -> Result<(), SendErrorKind> {
        count(&self.tally.buffer_full_waits, 1);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(SendErrorKind::BufferFull);
        }
        self.read_errors();
        count(&self.tally.wait_calls, 1);
        if fault == Fault::NoBuffers {
            // The socket stays writable; only the device queue is full, and no event signals room
            // in it.
            thread::sleep(QUEUE_PAUSE.min(left));
            return Ok(());
        }
        sys::wait_writable(&self.socket, deadline)
            .map_err(|source| SendErrorKind::Io { to, source })
    }
}

impl Parcel<'_> {
    /// Returns the rest of the parcel, without the front.
    fn after(self, front: Taken) -> Self {
        Self {
            bytes: &self.bytes[front.bytes..],
            lengths: &self.lengths[front.datagrams..],
            ..self
        }
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SocketOptions;

    /// Returns the reaction of a socket to one error of one call with three equal datagrams.
    fn after(send_path: SendPath, errno: i32) -> (SendPath, Result<(), SendErrorKind>) {
        let options = SocketOptions { send_path, ..SocketOptions::default() };
        let socket = UdpSocket::bind("127.0.0.1:0".parse().unwrap(), &options).unwrap();
        let to = socket.local_address();
        let parcel = Parcel { bytes: b"aabbcc", lengths: &[2; 3], to, connected: false };
        let error = io::Error::from_raw_os_error(errno);
        let result = socket.handle_error(socket.send_path(), error, &parcel, Instant::now());
        (socket.send_path(), result)
    }

    #[test]
    fn a_device_without_segmentation_gets_batches_for_good() {
        let (path, result) = after(SendPath::Auto, libc::EIO);
        assert!(matches!(result, Ok(())), "{result:?}");
        assert_eq!(path, SendPath::Sendmmsg);
    }

    #[test]
    fn a_kernel_without_batches_gets_single_datagrams_for_good() {
        let (path, result) = after(SendPath::Auto, libc::ENOSYS);
        assert!(matches!(result, Ok(())), "{result:?}");
        assert_eq!(path, SendPath::Single);
    }

    #[test]
    fn a_requested_path_is_kept_and_the_error_names_it() {
        for (demanded, errno) in [
            (SendPath::Gso, libc::EIO),
            (SendPath::Gso, libc::EMSGSIZE),
            (SendPath::Sendmmsg, libc::ENOSYS),
        ] {
            let (path, result) = after(demanded, errno);
            assert_eq!(path, demanded);
            let named =
                matches!(result, Err(SendErrorKind::PathRefused { path, .. }) if path == demanded);
            assert!(named, "{result:?}");
        }
    }

    #[test]
    fn a_full_buffer_at_the_deadline_is_an_error_and_a_signal_is_none() {
        for errno in [libc::EAGAIN, libc::ENOBUFS] {
            let (_, result) = after(SendPath::Auto, errno);
            assert!(matches!(result, Err(SendErrorKind::BufferFull)), "{result:?}");
        }
        assert!(matches!(after(SendPath::Auto, libc::EINTR).1, Ok(())));
    }

    #[test]
    fn an_error_of_the_network_passes_and_one_of_the_datagram_does_not() {
        for errno in [libc::ENETUNREACH, libc::EHOSTUNREACH, libc::ENETDOWN, libc::ENOBUFS] {
            let kind = after(SendPath::Auto, errno).1.unwrap_err();
            assert!(kind.is_transient(), "{kind}");
        }
        let kind = after(SendPath::Single, libc::EMSGSIZE).1.unwrap_err();
        assert!(!kind.is_transient(), "{kind}");
    }

    #[test]
    fn an_error_of_one_datagram_is_no_reason_to_fall_back() {
        let (path, result) = after(SendPath::Sendmmsg, libc::EMSGSIZE);
        assert!(matches!(result, Err(SendErrorKind::TooLarge { length: 2, .. })), "{result:?}");
        assert_eq!(path, SendPath::Sendmmsg);
    }
}
