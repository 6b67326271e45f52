//! A stripe on its way out, by each transport.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use rushes_net::SendError;
use rushes_net::SendErrorKind;
use rushes_net::SendQueue;
use rushes_net::TcpSocket;
use rushes_net::UdpSocket;
use rushes_net::Waker;
use rushes_proto::RtpTimestamp;
use rushes_proto::delivery::HEADER_BYTES;
use rushes_proto::delivery::Stripe;
use rushes_proto::delivery::UnitHeader;

use super::super::rtp;
use super::bucket::Bucket;
use super::work::Job;
use crate::error::Error;
use crate::pace::sleep_until;
use crate::stream::MediaStream;

/// Octets that are handed to the kernel at once: they stay in the second-level cache.
const SLAB_BYTES: usize = 65_000;

/// How long a full socket buffer is waited for, before the rest of a stripe is given up (UDP).
const BUFFER_WAIT: Duration = Duration::from_millis(100);

/// How long a client may take nothing (TCP).
const STALL_MAX: Duration = Duration::from_secs(10);

/// One unit's way to the client.
pub(super) trait Link: Send {
    /// Sends a stripe, of which these are the octets.
    ///
    /// # Errors
    ///
    /// What the session ends with; what is merely lost is none.
    fn send(&mut self, job: &Job, stripe: &Stripe, octets: &[u8]) -> Result<(), String>;
}

/// Datagrams: a slab of them for one system call.
pub(super) struct UdpLink {
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    queue: SendQueue,
    slab: Vec<u8>,
    lengths: Vec<u16>,
    bucket: Bucket,
}

impl UdpLink {
    pub(super) fn new(socket: Arc<UdpSocket>, peer: SocketAddr, bucket: Bucket) -> Self {
        let queue = socket.send_queue();
        let slab = Vec::with_capacity(2 * SLAB_BYTES);
        Self { socket, peer, queue, slab, lengths: Vec::with_capacity(64), bucket }
    }

    fn flush(&mut self) -> Result<(), String> {
        let now = Instant::now();
        let wait = self.bucket.take(now, self.slab.len());
        sleep_until(now + wait);
        let deadline = now + wait + BUFFER_WAIT;
        let (slab, lengths) = (&self.slab, &self.lengths);
        let result = self.socket.send(&mut self.queue, slab, lengths, self.peer, deadline);
        self.slab.clear();
        self.lengths.clear();
        match result {
            Ok(()) => Ok(()),
            // As if the network had lost them.
            Err(error) if matches!(error.kind, SendErrorKind::BufferFull) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Link for UdpLink {
    fn send(&mut self, job: &Job, stripe: &Stripe, octets: &[u8]) -> Result<(), String> {
        let payload = job.encoding.shape().plan().payload();
        for (index, packet) in (stripe.first_packet..).zip(octets.chunks(payload)) {
            if self.slab.len() + HEADER_BYTES + packet.len() > SLAB_BYTES && !self.slab.is_empty() {
                self.flush()?;
            }
            let header = UnitHeader { frame: job.frame as u8, index };
            self.slab.extend_from_slice(&header.write());
            self.slab.extend_from_slice(packet);
            self.lengths.push((HEADER_BYTES + packet.len()) as u16);
        }
        self.flush()
    }
}

/// Chunks on a connection, straight from where they lie.
pub(super) struct TcpLink {
    socket: Arc<TcpSocket>,
    waker: Arc<Waker>,
}

impl TcpLink {
    pub(super) fn new(socket: Arc<TcpSocket>, waker: Arc<Waker>) -> Self {
        Self { socket, waker }
    }
}

impl Link for TcpLink {
    fn send(&mut self, job: &Job, stripe: &Stripe, octets: &[u8]) -> Result<(), String> {
        let payload = job.encoding.shape().plan().payload();
        for (index, packet) in (stripe.first_packet..).zip(octets.chunks(payload)) {
            let header = UnitHeader { frame: job.frame as u8, index }.write();
            let mut parts = [IoSlice::new(&header), IoSlice::new(packet)];
            let deadline = Some(Instant::now() + STALL_MAX);
            let written = self.socket.write_all(&mut parts, deadline, Some(&self.waker));
            written.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Packets of a stream, secured or not.
pub(super) struct RtpLink {
    stream: Box<MediaStream>,
    bucket: Bucket,
    /// A stripe, behind the header of its first packet.
    stripe: Vec<u8>,
    /// The timestamp of the instant.
    begun: (RtpTimestamp, Instant),
}

impl RtpLink {
    pub(super) fn new(stream: Box<MediaStream>, bucket: Bucket, first: RtpTimestamp) -> Self {
        Self { stream, bucket, stripe: Vec::new(), begun: (first, Instant::now()) }
    }
}

impl Link for RtpLink {
    fn send(&mut self, job: &Job, stripe: &Stripe, octets: &[u8]) -> Result<(), String> {
        let header = UnitHeader { frame: job.frame as u8, index: stripe.first_packet };
        self.stripe.clear();
        self.stripe.extend_from_slice(&header.write());
        self.stripe.extend_from_slice(octets);
        let now = Instant::now();
        sleep_until(now + self.bucket.take(now, octets.len()));
        let since = job.captured_at.saturating_duration_since(self.begun.1);
        let timestamp = self.begun.0.plus(rtp::CLOCK_RATE.ticks(since));
        match self.stream.push_frame_captured(&self.stripe, timestamp, job.captured_at) {
            // What does not fit is lost, as if the network had lost it.
            Ok(()) | Err(Error::Send(SendError { kind: SendErrorKind::BufferFull, .. })) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
