//! Chunks on a connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_delivery::{Stripe, UnitHeader};
use rushes_net::{Interest, TcpSocket, Waker};

use super::super::job::Job;
use super::Link;

/// Longest time that a client may read nothing (TCP).
const STALL_MAX: Duration = Duration::from_secs(10);

/// The part of a tile that may wait in the kernel to be sent (TCP): it adds as much to the latency.
/// It must cover the time until the unit's thread runs again, or the network is idle.
const UNSENT_PART: usize = 8;

/// The least octets that may wait in the kernel: less than this is sent in too many parts.
const UNSENT_MIN: usize = 16 << 10;

/// Sends chunks on a connection, directly from the frame's memory.
pub(in super::super) struct TcpLink {
    socket: Arc<TcpSocket>,
    waker: Arc<Waker>,
    /// Octets that may wait in the kernel to be sent.
    unsent_max: usize,
}

impl TcpLink {
    pub(in super::super) fn new(socket: Arc<TcpSocket>, waker: Arc<Waker>) -> Self {
        Self { socket, waker, unsent_max: 0 }
    }
}

impl Link for TcpLink {
    fn wait_until_ready(&mut self) -> Result<(), String> {
        let until = Instant::now() + STALL_MAX;
        loop {
            let ready = self.socket.wait(Interest::Writable, Some(until), Some(&self.waker));
            let ready = ready.map_err(|error| error.to_string())?;
            if ready.woken {
                return Err("stopped".into());
            }
            if ready.writable {
                return Ok(());
            }
            if until <= Instant::now() {
                return Err(format!("the client read nothing for {} s", STALL_MAX.as_secs()));
            }
        }
    }

    fn send(
        &mut self,
        job: &Job,
        (stripe, first): (&Stripe, u32),
        octets: &[u8],
    ) -> Result<(), String> {
        let plan = job.encoding.shape().plan();
        let payload = plan.payload();
        let unsent_max = (plan.unit_bytes(stripe.unit) / UNSENT_PART).max(UNSENT_MIN);
        if self.unsent_max != unsent_max {
            self.unsent_max = unsent_max;
            self.socket.set_unsent_max(unsent_max);
        }
        for (index, packet) in (first..).zip(octets.chunks(payload)) {
            let header = UnitHeader { frame: job.frame as u8, index }.write();
            let mut parts = [IoSlice::new(&header), IoSlice::new(packet)];
            let deadline = Some(Instant::now() + STALL_MAX);
            let written = self.socket.write_all(&mut parts, deadline, Some(&self.waker));
            written.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
