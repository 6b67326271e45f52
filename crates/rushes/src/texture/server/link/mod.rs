//! Sending of a stripe, by each transport.

mod rtp;
mod tcp;
mod udp;

use std::ops::Range;
use std::sync::Arc;

use rushes_delivery::Stripe;

use super::job::Job;

pub(super) use rtp::RtpLink;
pub(super) use tcp::TcpLink;
pub(super) use udp::UdpLink;

/// The connection of one unit to the client.
pub(super) trait Link: Send {
    /// Waits until the network takes octets, so that the frame chosen afterwards is the latest.
    /// Datagrams never wait long enough for it to matter.
    ///
    /// # Errors
    ///
    /// The reason for which the session ends.
    fn wait_until_ready(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Sends a stripe with these octets, whose first packet has this number.
    ///
    /// # Errors
    ///
    /// The reason for which the session ends; lost packets are not an error.
    fn send(&mut self, job: &Job, part: (&Stripe, u32), octets: &[u8]) -> Result<(), String>;

    /// Sends packets of frames again, as only clients by UDP request.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    fn retransmit(&mut self, _packets: &[(Arc<Job>, Range<u32>)]) -> Result<(), String> {
        Ok(())
    }
}
