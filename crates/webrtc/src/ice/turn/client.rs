//! The state machine: an allocation and its channels.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::super::candidate::is_usable;
use super::super::identifiers::Identifiers;
use super::super::stun::{Class, Message};
use super::channels::{Channels, Outcome};
use super::login::{Login, TurnError, TurnServer};
use super::message::{
    CHANNEL_NUMBER, LIFETIME, REQUESTED_TRANSPORT, Writer, XOR_PEER_ADDRESS, XOR_RELAYED_ADDRESS,
    channel_data, data_indication, in_channel,
};
use super::transactions::{Purpose, Transactions};

/// The value of REQUESTED-TRANSPORT: the protocol number of UDP, and reserved octets.
const UDP: [u8; 4] = [17, 0, 0, 0];

/// The lifetimes that a server may give: what is shorter or longer counts as the nearest of these.
const LIFETIMES: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(3600)];

/// The lifetime of an allocation whose response does not say (RFC 8656 section 3.2).
const LIFETIME_DEFAULT: Duration = Duration::from_secs(600);

/// How long before its end an allocation is refreshed, so that a request may be sent often (section 8.1).
const REFRESH_AHEAD: Duration = Duration::from_secs(60);

/// What has happened.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Happening {
    /// There is an address at the server; it saw us at `mapped`.
    Allocated { relay: SocketAddr, mapped: Option<SocketAddr> },
    /// From now on the server may send data of this peer in the channel with this number.
    Channel { number: u16, peer: SocketAddr },
    /// There is none, or no longer.
    Gone(TurnError),
}

/// How far the allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Allocating,
    /// The address at the server, and when to refresh it.
    Allocated {
        relay: SocketAddr,
        refresh: Instant,
    },
    /// It has failed, or was released.
    Closed,
}

/// A client of one server.
#[derive(Debug)]
pub(in super::super) struct Client {
    server: TurnServer,
    local: SocketAddr,
    identifiers: Identifiers,
    login: Option<Login>,
    state: State,
    transactions: Transactions,
    channels: Channels,
    happenings: VecDeque<Happening>,
    outbox: VecDeque<Vec<u8>>,
}

impl Client {
    /// Begins to ask `server` for an address, from `local`.
    pub(in super::super) fn new(
        server: TurnServer,
        local: SocketAddr,
        identifiers: Identifiers,
        now: Instant,
    ) -> Self {
        let mut client = Self {
            server,
            local,
            identifiers,
            login: None,
            state: State::Allocating,
            transactions: Transactions::default(),
            channels: Channels::default(),
            happenings: VecDeque::new(),
            outbox: VecDeque::new(),
        };
        client.begin(Purpose::Allocate, now, 0);
        client
    }

    pub(in super::super) fn server(&self) -> SocketAddr {
        self.server.address
    }

    /// The address of ours that its datagrams come from.
    pub(in super::super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The address at the server.
    pub(in super::super) fn relay(&self) -> Option<SocketAddr> {
        match self.state {
            State::Allocated { relay, .. } => Some(relay),
            _ => None,
        }
    }

    pub(in super::super) fn is_allocating(&self) -> bool {
        self.state == State::Allocating
    }

    /// Asks for an address again, unless there is one. One that is being given back is awaited first: the server would
    /// take the old request for the new allocation.
    pub(in super::super) fn restart(&mut self, now: Instant) {
        if self.state == State::Closed {
            self.state = State::Allocating;
            if !self.transactions.contains(Purpose::Release) {
                self.begin(Purpose::Allocate, now, 0);
            }
        }
    }

    /// Gives the address back (RFC 8656 section 8.1).
    pub(in super::super) fn release(&mut self, now: Instant) {
        // The server may have answered a request with a password already.
        let had_any = self.relay().is_some() || self.is_allocating() && self.login.is_some();
        self.close();
        if had_any {
            self.begin(Purpose::Release, now, 0);
            self.handle_timeout(now);
        }
    }

    /// Sends a datagram to a peer, by its channel. It may wait for that, and may be lost.
    pub(in super::super) fn send(&mut self, peer: SocketAddr, data: &[u8], now: Instant) {
        if self.relay().is_none() {
            return;
        }
        match self.channels.send(peer, data, now) {
            Outcome::Send(number) => self.outbox.extend(in_channel(number, data)),
            Outcome::Bind { place, is_new } => {
                if is_new {
                    let number = Channels::number(place);
                    self.happenings.push_back(Happening::Channel { number, peer });
                }
                self.begin(Purpose::Bind(place), now, 0);
                self.handle_timeout(now);
            }
            Outcome::Nothing => {}
        }
    }

    /// Returns the peer and its datagram, which the server has sent on.
    pub(in super::super) fn unwrap<'d>(
        &self,
        datagram: &'d [u8],
    ) -> Option<(SocketAddr, &'d [u8])> {
        self.relay()?;
        if let Some((number, data)) = channel_data(datagram)
            && let Some(peer) = self.channels.peer_of(number)
        {
            return Some((peer, data));
        }
        data_indication(datagram)
    }

    /// Returns the number of a peer's channel, which may have to be bound again first.
    pub(in super::super) fn channel(&self, peer: SocketAddr) -> Option<u16> {
        self.relay().and_then(|_| self.channels.number_of(peer))
    }

    /// Handles a response of the server; `None` if it is none.
    pub(in super::super) fn handle_response(
        &mut self,
        now: Instant,
        response: &Message<'_>,
    ) -> Option<()> {
        let transaction = self.transactions.find(response)?;
        let (purpose, next_try) = (transaction.purpose, transaction.next_try());
        let login = self.login.as_ref().filter(|_| transaction.is_authenticated);
        let authentic = match login {
            Some(login) => response.authenticated(&login.key),
            None => Some(*response),
        };
        match response.class() {
            Class::Success => {
                let authentic = authentic?;
                self.transactions.end(purpose);
                self.succeed(purpose, &authentic, now);
            }
            Class::Error => {
                let code = response.error_code()?;
                let is_login = code == 438 || code == 401 && login.is_none();
                if !is_login && code != 401 {
                    authentic?;
                }
                self.transactions.end(purpose);
                if !is_login {
                    self.fail(purpose, TurnError::of(code), now);
                    self.handle_timeout(now);
                    return Some(());
                }
                let login = Login::read(&self.server, response, self.login.as_ref());
                match login.zip(next_try) {
                    Some((login, next_try)) => {
                        self.login = Some(login);
                        self.begin(purpose, now, next_try);
                    }
                    None => self.fail(purpose, TurnError::Malformed, now),
                }
            }
            Class::Request | Class::Indication => return None,
        }
        self.handle_timeout(now);
        Some(())
    }

    /// Does what is due.
    pub(in super::super) fn handle_timeout(&mut self, now: Instant) {
        if let State::Allocated { relay, refresh } = self.state {
            if now >= refresh {
                // The answer sets the time of the next one.
                let refresh = now + LIFETIMES[1];
                self.state = State::Allocated { relay, refresh };
                self.begin(Purpose::Refresh, now, 0);
            }
            for place in self.channels.due(now) {
                self.begin(Purpose::Bind(place), now, 0);
            }
        }
        let outbox = &mut self.outbox;
        let failed =
            self.transactions.handle_timeout(now, |datagram| outbox.push_back(datagram.to_vec()));
        for purpose in failed {
            self.fail(purpose, TurnError::NoAnswer, now);
        }
    }

    pub(in super::super) fn next_timeout(&self) -> Option<Instant> {
        let refresh = match self.state {
            State::Allocated { refresh, .. } => Some(refresh),
            _ => None,
        };
        let channels = refresh.and_then(|_| self.channels.next_timeout());
        [refresh, channels, self.transactions.next_timeout()].into_iter().flatten().min()
    }

    /// Returns the next datagram for the server.
    pub(in super::super) fn poll_datagram(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    pub(in super::super) fn poll_happening(&mut self) -> Option<Happening> {
        self.happenings.pop_front()
    }

    /// Makes a request, for the `retries`th time.
    fn begin(&mut self, purpose: Purpose, now: Instant, retries: u32) {
        let id = self.identifiers.make();
        let mut writer = Writer::new(purpose.method(), &id);
        match purpose {
            Purpose::Allocate => writer.attribute(REQUESTED_TRANSPORT, &UDP),
            Purpose::Refresh => {}
            Purpose::Release => writer.attribute(LIFETIME, &[0; 4]),
            Purpose::Bind(place) => {
                let Some(peer) = self.channels.peer(place) else { return };
                let [high, low] = Channels::number(place).to_be_bytes();
                writer.attribute(CHANNEL_NUMBER, &[high, low, 0, 0]);
                writer.address(XOR_PEER_ADDRESS, peer);
            }
        }
        if let Some(login) = &self.login {
            login.write(&mut writer);
        }
        let datagram = writer.finish(self.login.as_ref().map(|login| &login.key));
        let request = (id, datagram, self.login.is_some());
        self.transactions.begin(purpose, request, (now, retries));
    }

    fn succeed(&mut self, purpose: Purpose, response: &Message<'_>, now: Instant) {
        match purpose {
            Purpose::Allocate => {
                let relay = response.address(XOR_RELAYED_ADDRESS).filter(|it| is_usable(*it));
                let Some(relay) = relay else {
                    return self.fail(purpose, TurnError::Malformed, now);
                };
                self.state = State::Allocated { relay, refresh: refresh_at(response, now) };
                let mapped = response.mapped_address();
                self.happenings.push_back(Happening::Allocated { relay, mapped });
            }
            Purpose::Refresh => {
                if let State::Allocated { relay, .. } = self.state {
                    self.state = State::Allocated { relay, refresh: refresh_at(response, now) };
                }
            }
            Purpose::Release => self.go_on(now),
            Purpose::Bind(place) => {
                let number = Channels::number(place);
                for data in self.channels.bind(place, now) {
                    self.outbox.extend(in_channel(number, &data));
                }
            }
        }
    }

    /// The address is given back: a restart may wait for that.
    fn go_on(&mut self, now: Instant) {
        if self.state == State::Allocating {
            self.begin(Purpose::Allocate, now, 0);
        }
    }

    fn fail(&mut self, purpose: Purpose, error: TurnError, now: Instant) {
        match purpose {
            // The allocation ends, or has ended already.
            Purpose::Release => self.go_on(now),
            Purpose::Bind(place) if error != TurnError::Mismatch => {
                // Forbidden, another address family, or no more of the peer's addresses (RFC 8656 section 19).
                let is_final = matches!(error, TurnError::Refused(403 | 443 | 447));
                self.channels.fail(place, is_final, now);
            }
            _ => {
                self.close();
                self.happenings.push_back(Happening::Gone(error));
            }
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.transactions.clear();
        self.channels = Channels::default();
    }
}

/// Returns when an allocation is to be refreshed, by the lifetime in a response.
fn refresh_at(response: &Message<'_>, now: Instant) -> Instant {
    let lifetime = response.find(LIFETIME).and_then(|value| <[u8; 4]>::try_from(value).ok());
    let seconds = lifetime.map(|value| Duration::from_secs(u32::from_be_bytes(value).into()));
    let [least, most] = LIFETIMES;
    let lifetime = seconds.unwrap_or(LIFETIME_DEFAULT).clamp(least, most);
    now + (lifetime / 2).max(lifetime.saturating_sub(REFRESH_AHEAD))
}
