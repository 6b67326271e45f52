//! The group that all clients by multicast share: their frames are encoded and sent once.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rushes_delivery::control::{FrameRate, Offer, Reason, Token};
use rushes_net::{Interface, MulticastOptions, SocketOptions, TcpSocket};
use rushes_texture::Format;

use super::super::lock;
use super::binding::Binding;
use super::choose::{Choice, Refusal};
use super::encoding::Encoding;
use super::fec::Fec;
use super::work::Work;
use super::{Inner, session};

/// How long a client may take to join: frames that are sent meanwhile are not delivered to it.
const JOIN_TIME: Duration = Duration::from_millis(300);

/// Most frames of that time.
const JOIN_FRAMES_MAX: u64 = 60;

/// Most frames after a client's first one before it has joined.
const JOINED_FRAMES_MAX: u64 = 60;

/// A multicast group to which a server sends frames once for all clients that request it
/// ([`ServerOptions::multicast`](super::ServerOptions::multicast)).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct MulticastGroup {
    /// The group, and the port of the first unit; each further unit has the next port.
    pub address: SocketAddr,
    /// The interface to send through; by default the one by which the first client is connected or, for an IPv6
    /// group, the system's choice. Clients join through the interface of their own control connection.
    pub interface: Option<Interface>,
    /// IPv4 TTL or IPv6 hop limit: 1, the default, is this network only.
    pub ttl: u32,
}

impl MulticastGroup {
    /// Creates a group of this network only, with an interface that follows from the first client.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, interface: None, ttl: 1 }
    }

    /// Returns the options of the sockets of units, for a client on this connection.
    pub(super) fn socket_options(&self, udp: &SocketOptions, control: &TcpSocket) -> SocketOptions {
        let interface = self.interface.clone().or_else(|| interface_of(control.local_address()));
        let multicast = MulticastOptions {
            interface,
            ttl: self.ttl,
            ..MulticastOptions::new(self.address.ip())
        };
        SocketOptions { multicast: Some(multicast), ..udp.clone() }
    }

    /// Returns the address to which a unit is sent.
    pub(super) fn unit(&self, unit: usize) -> SocketAddr {
        unit_address(self.address, unit)
    }
}

/// Returns the address to which a unit of a group is sent.
pub(in super::super) fn unit_address(group: SocketAddr, unit: usize) -> SocketAddr {
    let mut address = group;
    // The offer has been checked: a port for each unit.
    address.set_port(group.port().saturating_add(unit as u16));
    address
}

/// Returns the interface with the local address of a connection, if that names one.
pub(in super::super) fn interface_of(local: SocketAddr) -> Option<Interface> {
    match local {
        SocketAddr::V4(local) => Some(Interface::Address(*local.ip())),
        SocketAddr::V6(local) => match local.ip().to_ipv4_mapped() {
            Some(local) => Some(Interface::Address(local)),
            None => Some(local.scope_id()).filter(|scope| *scope > 0).map(Interface::Index),
        },
    }
}

/// The sender of a group, while it has clients.
pub(super) struct Group {
    address: SocketAddr,
    /// This end of the first client's control connection.
    local: IpAddr,
    binding: Arc<Binding>,
    encoding: Arc<Encoding>,
    /// The source's rate.
    rate: FrameRate,
    threads: Mutex<Vec<JoinHandle<()>>>,
    clients: AtomicUsize,
    /// When the source's first picture was asked for.
    fed_since: Mutex<Option<Instant>>,
    /// Pictures that were dropped when frames were counted last.
    dropped: AtomicU64,
}

/// A client's place in a group.
pub(super) struct Member {
    pub(super) group: Arc<Group>,
    /// Whether the group began with this client.
    is_first: bool,
}

impl Member {
    /// Joins the group of a server, which begins with its first client. Sessions begin one at a time.
    pub(super) fn join(
        inner: &Arc<Inner>,
        choice: &Choice,
        control: &TcpSocket,
    ) -> Result<Self, Refusal> {
        let local = control.local_address().ip().to_canonical();
        let mut current = lock(&inner.group);
        if let Some(group) = current.as_ref().filter(|group| group.can_be_joined(inner)) {
            if group.local != local {
                let text =
                    format!("the group is sent from {}: connect to that address", group.local);
                return Err((Reason::Transport, text));
            }
            group.clients.fetch_add(1, Ordering::AcqRel);
            return Ok(Self { group: group.clone(), is_first: false });
        }
        let group = Arc::new(Group::begin(inner, choice, control)?);
        // Until it has ended, whichever clients it has.
        lock(&inner.sessions).take_group(group.binding.units());
        *current = Some(group.clone());
        Ok(Self { group, is_first: true })
    }

    /// Returns the state of the client, which has no units of its own.
    pub(super) fn binding(
        &self,
        token: Token,
        control: &TcpSocket,
    ) -> Result<Arc<Binding>, Refusal> {
        Binding::following(token, &self.group.binding, control)
    }

    /// Completes the offer to the client.
    pub(super) fn complete(&self, offer: &mut Offer) {
        offer.ports = self.group.binding.ports();
        offer.group = Some(self.group.address);
        if !self.is_first {
            offer.first_frame = self.group.work().next_frame() + self.group.frames_of(JOIN_TIME);
        }
    }

    /// Lets the client know of the frames that are sent from now on. The source starts with the first client that
    /// does, so that none waits for another.
    pub(super) fn follow(&self, inner: &Inner, client: &Arc<Work>) {
        self.group.work().add_follower(client.clone());
        self.group.feed(inner);
    }

    /// Ends the membership, and with the last one the group.
    pub(super) fn leave(&self, inner: &Inner, client: Option<&Arc<Work>>) {
        let group = &self.group;
        client.inspect(|client| group.work().remove_follower(client));
        let mut current = lock(&inner.group);
        if group.clients.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, group)) {
            *current = None;
        }
        drop(current);
        group.end(inner);
    }
}

impl Group {
    fn begin(inner: &Arc<Inner>, choice: &Choice, control: &TcpSocket) -> Result<Self, Refusal> {
        let options = &inner.options;
        let Some(to) = &options.multicast else {
            return Err((Reason::Transport, NO_GROUP.to_owned()));
        };
        let local = control.local_address().ip().to_canonical();
        if local.is_ipv4() != to.address.is_ipv4() {
            let text = format!("connect by the IP version of the group {}", to.address);
            return Err((Reason::Transport, text));
        }
        let binding = Binding::new(super::token()?, choice, (options, None), control)?;
        let work = &binding.work;
        work.set_rate(inner.rate, inner.rate);
        if let Fec::Percent(percent) = options.fec {
            work.set_fec_percent(percent);
        }
        work.resume(choice.encoding.clone());
        let mut threads = Vec::new();
        if let Err(error) = session::spawn_units(&binding, &mut threads) {
            binding.close();
            for thread in threads {
                let _ = thread.join();
            }
            return Err(session::exhausted(&error));
        }
        Ok(Self {
            address: to.address,
            local,
            encoding: choice.encoding.clone(),
            rate: inner.rate,
            binding,
            threads: Mutex::new(threads),
            clients: AtomicUsize::new(1),
            fed_since: Mutex::new(None),
            dropped: AtomicU64::new(0),
        })
    }

    /// Returns the group that a client can join, if there is one.
    pub(super) fn current(inner: &Inner) -> Option<Arc<Self>> {
        lock(&inner.group).clone().filter(|group| group.can_be_joined(inner))
    }

    /// Returns whether frames follow, of the pictures that the source has now.
    fn can_be_joined(&self, inner: &Inner) -> bool {
        self.encoding.version() == inner.feed.source().version && !self.work().is_over()
    }

    /// Returns how pictures become frames.
    pub(super) fn encoding(&self) -> Arc<Encoding> {
        self.encoding.clone()
    }

    /// Returns the format of the frames.
    pub(super) fn format(&self) -> Format {
        self.encoding.shape().layout().format()
    }

    /// Returns what sends the frames.
    pub(super) fn work(&self) -> &Arc<Work> {
        &self.binding.work
    }

    /// Checks that a client accepts the format of the group, if there is one already.
    pub(super) fn check_format(of_group: Option<Format>, choice: &Choice) -> Result<(), Refusal> {
        let chosen = choice.encoding.shape().layout().format();
        match of_group.filter(|of_group| *of_group != chosen) {
            Some(other) => Err((Reason::Format, format!("the group's frames are {other}"))),
            None => Ok(()),
        }
    }

    /// Checks that a client has joined in time: a packet says only the last eight bits of its frame's number.
    pub(super) fn check_joined(&self, first_frame: u64) -> Result<(), Refusal> {
        if self.work().next_frame() > first_frame + JOINED_FRAMES_MAX {
            return Err((Reason::TimedOut, "the client has joined the group too late".to_owned()));
        }
        Ok(())
    }

    /// Returns the most frames that are sent in this time: at the source's rate, or that of the frames so far.
    fn frames_of(&self, time: Duration) -> u64 {
        let by_rate = time.as_nanos().div_ceil(super::pace::interval(self.rate).as_nanos().max(1));
        let lasted = lock(&self.fed_since).map_or(Duration::ZERO, |since| since.elapsed());
        let so_far = u128::from(self.work().next_frame()) * time.as_nanos();
        let so_far = so_far.checked_div(lasted.as_nanos()).map_or(by_rate, |frames| frames + 1);
        u64::try_from(by_rate.min(so_far)).unwrap_or(u64::MAX).min(JOIN_FRAMES_MAX)
    }

    /// Sends the source's pictures from now on.
    fn feed(&self, inner: &Inner) {
        let mut since = lock(&self.fed_since);
        if since.is_none() {
            *since = Some(Instant::now());
            drop(since);
            inner.feed.join(self.work().clone());
        }
    }

    /// Counts what was sent, once for all clients.
    pub(super) fn count_sent(&self, inner: &Inner) {
        while let Some(sent) = self.work().poll_sent() {
            let dropped_before = self.dropped.fetch_max(sent.dropped, Ordering::AcqRel);
            inner.note_sent(&sent, self.binding.units(), dropped_before);
        }
    }

    fn end(&self, inner: &Inner) {
        self.binding.close();
        inner.feed.leave(self.work());
        for thread in lock(&self.threads).drain(..) {
            // A panic has been reported already.
            let _ = thread.join();
        }
        lock(&inner.sessions).leave_group(self.binding.units());
    }
}

/// Why a client that requests a group is refused by a server without one.
pub(super) const NO_GROUP: &str = "the server has no multicast group";

/// Returns whether a group can have this address, with a port for each of 64 units.
pub(super) fn is_group(address: SocketAddr) -> bool {
    address.ip().is_multicast() && (1..=65_535 - 63).contains(&address.port())
}
