//! One channel for each peer (RFC 8656 section 12).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The first channel number (section 12); others follow.
pub(in super::super) const FIRST_CHANNEL: u16 = 0x4000;

/// Maximum number of channels, as of the peer's addresses.
const CHANNELS_MAX: usize = 100;

/// Maximum number of datagrams that wait for a channel. Those of a check are sent again.
const WAITING_MAX: usize = 4;

/// When a channel is bound again: the permission that it is lasts 5 minutes (section 9).
const RENEWAL: Duration = Duration::from_secs(4 * 60);

/// How far a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A request waits for its answer.
    Asked,
    /// It carries data, until this time at least.
    Bound(Instant),
    /// It has expired unused, or was not answered; it may be asked for again.
    Idle,
    /// The server does not allow this peer.
    Refused,
}

#[derive(Debug)]
struct Channel {
    peer: SocketAddr,
    state: State,
    /// Whether data was sent since it was last bound.
    is_used: bool,
    waiting: Vec<Vec<u8>>,
}

/// What becomes of data for a peer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It may be sent in this channel.
    Send(u16),
    /// It waits. The channel with this place is to be bound.
    Bind(usize),
    /// It waits for a channel that was asked for, or is dropped.
    Nothing,
}

/// All channels, by their places: numbers follow from these.
#[derive(Debug, Default)]
pub(super) struct Channels(Vec<Channel>);

impl Channels {
    /// Returns the number of the channel at a place.
    pub(super) fn number(place: usize) -> u16 {
        FIRST_CHANNEL + place as u16
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the peer of the channel at a place.
    pub(super) fn peer(&self, place: usize) -> Option<SocketAddr> {
        self.0.get(place).map(|channel| channel.peer)
    }

    /// Returns the peer of a channel by its number.
    pub(super) fn peer_of(&self, number: u16) -> Option<SocketAddr> {
        self.peer(usize::from(number.checked_sub(FIRST_CHANNEL)?))
    }

    /// Returns the number of a peer's channel, if it is bound.
    pub(super) fn bound(&self, peer: SocketAddr) -> Option<u16> {
        let is_bound =
            |channel: &Channel| channel.peer == peer && matches!(channel.state, State::Bound(_));
        self.0.iter().position(is_bound).map(Self::number)
    }

    /// Decides what becomes of data for a peer.
    pub(super) fn send(&mut self, peer: SocketAddr, data: &[u8]) -> Outcome {
        let known = self.0.iter().position(|channel| channel.peer == peer);
        let place = known.unwrap_or(self.0.len());
        if known.is_none() && place < CHANNELS_MAX {
            self.0.push(Channel { peer, state: State::Idle, is_used: true, waiting: Vec::new() });
        }
        let Some(channel) = self.0.get_mut(place) else { return Outcome::Nothing };
        channel.is_used = true;
        match channel.state {
            State::Bound(_) => return Outcome::Send(Self::number(place)),
            State::Asked | State::Idle if channel.waiting.len() < WAITING_MAX => {
                channel.waiting.push(data.to_vec());
            }
            _ => {}
        }
        if channel.state != State::Idle {
            return Outcome::Nothing;
        }
        channel.state = State::Asked;
        Outcome::Bind(place)
    }

    /// The server has bound a channel; returns what waits for it.
    pub(super) fn bind(&mut self, place: usize, now: Instant) -> Vec<Vec<u8>> {
        let Some(channel) = self.0.get_mut(place) else { return Vec::new() };
        channel.state = State::Bound(now + RENEWAL);
        channel.is_used = !channel.waiting.is_empty();
        std::mem::take(&mut channel.waiting)
    }

    /// The server has not answered, or, if `is_final`, refused.
    pub(super) fn fail(&mut self, place: usize, is_final: bool) {
        if let Some(channel) = self.0.get_mut(place) {
            channel.state = if is_final { State::Refused } else { State::Idle };
            channel.waiting.clear();
        }
    }

    /// Returns the places of channels to be bound again now. Unused ones are left to expire.
    pub(super) fn due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        for (place, channel) in self.0.iter_mut().enumerate() {
            match channel.state {
                State::Bound(until) if now >= until && channel.is_used => {
                    // It carries data meanwhile.
                    (channel.state, channel.is_used) = (State::Bound(now + RENEWAL), false);
                    due.push(place);
                }
                State::Bound(until) if now >= until => channel.state = State::Idle,
                _ => {}
            }
        }
        due
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let until = |channel: &Channel| match channel.state {
            State::Bound(until) => Some(until),
            _ => None,
        };
        self.0.iter().filter_map(until).min()
    }
}
