//! Datagrams: the packets of stripes, repair packets, and packets that were requested.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes_delivery::{Credit, Encoder, HEADER_BYTES, Stripe, UnitHeader, Window};
use rushes_net::{Arena, SendErrorKind, SendQueue, UdpSocket, Waker};

use super::super::super::transient;
use super::super::super::transient::Outage;
use super::super::job::Job;
use super::super::pace::UnitPace;
use super::super::packing::Form;
use super::Link;
use crate::pace::Pace;

/// Octets passed to the kernel at once: they stay in the second-level cache.
const SLAB_BYTES: usize = 65_000;

/// Longest wait for a full socket buffer, before the rest of a stripe is dropped (UDP).
const BUFFER_WAIT: Duration = Duration::from_millis(100);

/// Longest wait for a client's credits; after it they count as lost.
const CREDIT_WAIT: Duration = Duration::from_millis(20);

/// Sends datagrams, a slab of them in one system call.
pub(in super::super) struct UdpLink {
    socket: Arc<UdpSocket>,
    peer: SocketAddr,
    queue: SendQueue,
    slab: Slab,
    pace: UnitPace,
    /// What the client has room for; `None` for a group.
    window: Option<Window>,
    arena: Arena,
    waker: Arc<Waker>,
    outage: Outage,
    /// Memory for packets that are encoded again.
    scratch: Vec<u8>,
    /// Computes repair packets, if there may be any.
    encoder: Option<Encoder>,
}

/// Packets of one frame, back to back; those of a stripe are numbered consecutively.
#[derive(Default)]
struct Slab {
    octets: Vec<u8>,
    lengths: Vec<u16>,
    frame: u8,
    packets: Range<u32>,
}

/// What the packets in a slab are.
#[derive(Clone, Copy)]
enum Kind {
    /// The packets of a stripe, which credits acknowledge.
    Stripe,
    /// Repair packets, which take their turn in the frame's schedule.
    Repair,
    /// Packets that the client requested.
    Request,
}

impl Slab {
    fn has_room(&self, packet: &[u8], octets_max: usize) -> bool {
        self.octets.is_empty() || self.octets.len() + HEADER_BYTES + packet.len() <= octets_max
    }

    fn push(&mut self, header: UnitHeader, packet: &[u8]) {
        if self.octets.is_empty() {
            (self.frame, self.packets) = (header.frame, header.index..header.index);
        }
        self.packets.end = header.index + 1;
        self.octets.extend_from_slice(&header.write());
        self.octets.extend_from_slice(packet);
        self.lengths.push((HEADER_BYTES + packet.len()) as u16);
    }

    fn clear(&mut self) {
        self.octets.clear();
        self.lengths.clear();
    }
}

impl UdpLink {
    /// Creates a link with at most `in_flight` octets in flight.
    pub(in super::super) fn new(
        socket: Arc<UdpSocket>,
        peer: SocketAddr,
        pace: UnitPace,
        in_flight: usize,
        waker: Arc<Waker>,
    ) -> Self {
        let (queue, arena) = (socket.send_queue(), socket.arena());
        let (slab, window) = (Slab::default(), Some(Window::new(in_flight)));
        let (outage, scratch, encoder) = (Outage::default(), Vec::new(), None);
        Self { socket, peer, queue, slab, pace, window, arena, waker, outage, scratch, encoder }
    }

    /// Creates a link to a group, from which no credits come.
    pub(in super::super) fn to_group(
        socket: Arc<UdpSocket>,
        group: SocketAddr,
        pace: UnitPace,
        waker: Arc<Waker>,
    ) -> Self {
        Self { window: None, ..Self::new(socket, group, pace, 0, waker) }
    }

    /// Returns the link with repair packets, if `has_fec`.
    pub(in super::super) fn with_fec(self, has_fec: bool) -> Self {
        Self { encoder: has_fec.then(Encoder::new), ..self }
    }

    /// Sends the repair packets of a stripe, which take their turn in the frame's schedule.
    fn send_repairs(&mut self, job: &Job, stripe: &Stripe, octets: &[u8]) -> Result<(), String> {
        if job.fec_percent == 0 {
            return Ok(());
        }
        let Some(mut encoder) = self.encoder.take() else { return Ok(()) };
        let octets_max = self.octets_max();
        let plan = job.encoding.shape().plan();
        for (index, packet) in encoder.encode(plan, stripe, job.fec_percent, octets) {
            if !self.slab.has_room(packet, octets_max) {
                self.flush(Kind::Repair)?;
                self.retransmit_requested()?;
            }
            self.slab.push(UnitHeader { frame: job.frame as u8, index }, packet);
        }
        self.encoder = Some(encoder);
        self.flush(Kind::Repair)
    }

    /// Sends the packets in the slab when they are due, and the client has room for them.
    fn flush(&mut self, kind: Kind) -> Result<(), String> {
        self.wait_for_room()?;
        let octets = self.slab.octets.len();
        if octets == 0 {
            return Ok(());
        }
        let due = match kind {
            Kind::Stripe | Kind::Repair => self.pace.due(Instant::now(), octets),
            Kind::Request => self.pace.due_beyond(Instant::now(), octets),
        };
        self.send_slab(due)?;
        match (&mut self.window, kind) {
            (Some(window), Kind::Stripe) => {
                window.note_sent(self.slab.frame, self.slab.packets.clone(), octets);
            }
            (Some(window), Kind::Repair | Kind::Request) => window.note_unacknowledged(octets),
            (None, _) => {}
        }
        self.slab.clear();
        Ok(())
    }

    /// Encodes packets of one stripe and writes them to the slab, which is sent when it is full.
    fn retransmit_part(&mut self, job: &Job, packets: Range<u32>) -> Result<(), String> {
        let plan = job.encoding.shape().plan();
        let (Some(first), Some(last)) = (plan.locate(packets.start), plan.locate(packets.end - 1))
        else {
            return Ok(());
        };
        let octets_max = self.octets_max();
        let mut scratch = std::mem::take(&mut self.scratch);
        let bytes = first.bytes.start..last.bytes.end;
        let octets = job.encoding.part(&job.picture, (first.unit, bytes), &mut scratch);
        let octets = octets.map_err(|error| error.to_string())?;
        for (index, packet) in packets.zip(octets.chunks(plan.payload())) {
            if !self.slab.has_room(packet, octets_max) {
                self.flush(Kind::Request)?;
            }
            let index = plan.packets() + index;
            self.slab.push(UnitHeader { frame: job.frame as u8, index }, packet);
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Writes packets of a stripe again, in the form in which they were sent first. A stripe that was told
    /// as unchanged is sent with the next frame, as the client may lack it.
    fn retransmit_stripe(
        &mut self,
        job: &Job,
        stripe: &Stripe,
        packets: Range<u32>,
    ) -> Result<(), String> {
        let plan = job.encoding.shape().plan();
        let number = plan.stripe_number(stripe);
        let packs = job.packs.as_ref();
        let mark = packs.and_then(|packs| packs.mark(number));
        let octets = match packs.and_then(|packs| packs.form(number)) {
            Some(Form::Packed(octets)) => &octets[..],
            Some(Form::Unchanged) => {
                self.pace.work().refresh(number);
                mark.as_ref().map_or(&[][..], |mark| mark)
            }
            Some(Form::Stored { .. }) | None => return self.retransmit_part(job, packets),
        };
        let octets_max = self.octets_max();
        for (index, packet) in (stripe.first_packet..).zip(octets.chunks(plan.payload())) {
            if !packets.contains(&index) {
                continue;
            }
            if !self.slab.has_room(packet, octets_max) {
                self.flush(Kind::Request)?;
            }
            let index = plan.packed_index(index, true);
            self.slab.push(UnitHeader { frame: job.frame as u8, index }, packet);
        }
        Ok(())
    }

    /// Sends the slab when it is due.
    fn send_slab(&mut self, due: Option<Instant>) -> Result<(), String> {
        if let Some(due) = due
            && !self.pace.wait(due, &mut || true)
        {
            return Err("stopped".into());
        }
        let deadline = Instant::now() + BUFFER_WAIT;
        let Slab { octets, lengths, .. } = &self.slab;
        match self.socket.send(&mut self.queue, octets, lengths, self.peer, deadline) {
            Ok(()) => self.outage.end(),
            // The packets count as lost by the network.
            Err(error) if matches!(error.kind, SendErrorKind::BufferFull) => {}
            Err(error) if transient::of_sending(&error) => self.outage.note(&error),
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Sends packets that the client requested meanwhile: a stripe may take as long as its frame.
    fn retransmit_requested(&mut self) -> Result<(), String> {
        let requested = self.pace.work().poll_requested();
        if requested.is_empty() { Ok(()) } else { self.retransmit(&requested) }
    }

    /// Returns the maximum octets that are passed to the kernel at once.
    fn octets_max(&self) -> usize {
        self.pace.burst_len().unwrap_or(SLAB_BYTES).min(SLAB_BYTES)
    }

    /// Waits until, according to the client's credits, its socket has room for the octets of the
    /// slab.
    fn wait_for_room(&mut self) -> Result<(), String> {
        let Some(window) = self.window.as_mut().filter(|window| window.is_filling()) else {
            return Ok(());
        };
        let octets = self.slab.octets.len();
        let now = Instant::now();
        let until = now + CREDIT_WAIT;
        loop {
            // If there is room, only read credits that have arrived.
            let deadline = if window.has_room(octets) { now } else { until };
            let mut is_empty = false;
            match self.socket.receive(&mut self.arena, deadline, Some(&self.waker)) {
                Ok(datagrams) => {
                    is_empty = datagrams.is_empty();
                    for datagram in datagrams.filter(|datagram| *datagram.from == self.peer) {
                        if let Some(credit) = Credit::parse(datagram.data) {
                            window.handle_credit(credit);
                        }
                    }
                }
                Err(error) if transient::of_socket(&error) => {}
                Err(error) => return Err(error.to_string()),
            }
            if window.has_room(octets) {
                return Ok(());
            }
            if Instant::now() >= until {
                window.handle_silence();
                return Ok(());
            }
            if is_empty {
                return Err("stopped".into());
            }
        }
    }
}

impl Link for UdpLink {
    fn send(
        &mut self,
        job: &Job,
        (stripe, first): (&Stripe, u32),
        octets: &[u8],
    ) -> Result<(), String> {
        self.pace.begin(Instant::now(), job);
        let octets_max = self.octets_max();
        let payload = job.encoding.shape().plan().payload();
        for (index, packet) in (first..).zip(octets.chunks(payload)) {
            if !self.slab.has_room(packet, octets_max) {
                self.flush(Kind::Stripe)?;
                self.retransmit_requested()?;
            }
            self.slab.push(UnitHeader { frame: job.frame as u8, index }, packet);
        }
        self.flush(Kind::Stripe)?;
        self.send_repairs(job, stripe, octets)
    }

    fn retransmit(&mut self, packets: &[(Arc<Job>, Range<u32>)]) -> Result<(), String> {
        for (job, packets) in packets {
            let plan = job.encoding.shape().plan();
            let mut first = packets.start;
            // The packets of each stripe are encoded together.
            while let Some(stripe) = plan.stripe_of(first).filter(|_| first < packets.end) {
                let end = plan.stripe_packets(&stripe).end.min(packets.end);
                self.retransmit_stripe(job, &stripe, first..end)?;
                first = end;
            }
        }
        self.flush(Kind::Request)
    }
}
