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

/// How long the permission lasts.
const PERMISSION: Duration = Duration::from_secs(5 * 60);

/// How long after an error a channel is asked for again.
const PAUSE: Duration = Duration::from_secs(5);

/// How long after it was last asked for a channel may be another peer's: the request is repeated for up to 40 seconds,
/// the channel lasts 10 minutes, and 5 more must pass (section 12).
const REUSE: Duration = Duration::from_secs(16 * 60);

/// How far a channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A request waits for its answer.
    Asked,
    /// It carries data. It is due to be bound again, and the permission ends.
    Bound { due: Instant, end: Instant },
    /// It has expired unused, or there was an error; it may be asked for from this time on.
    Idle(Instant),
    /// The server does not allow this peer.
    Refused,
}

#[derive(Debug)]
struct Channel {
    peer: SocketAddr,
    state: State,
    /// When it was last asked for.
    asked: Instant,
    /// Whether data was sent since it was last bound.
    is_used: bool,
    waiting: Vec<Vec<u8>>,
}

/// What becomes of data for a peer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It may be sent in this channel.
    Send(u16),
    /// It waits. The channel with this place is to be bound, for the first time if it is new for the peer.
    Bind { place: usize, is_new: bool },
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

    /// Returns the peer of the channel at a place.
    pub(super) fn peer(&self, place: usize) -> Option<SocketAddr> {
        self.0.get(place).map(|channel| channel.peer)
    }

    /// Returns the peer of a channel by its number.
    pub(super) fn peer_of(&self, number: u16) -> Option<SocketAddr> {
        self.peer(usize::from(number.checked_sub(FIRST_CHANNEL)?))
    }

    /// Returns the number of a peer's channel, bound or not.
    pub(super) fn number_of(&self, peer: SocketAddr) -> Option<u16> {
        self.0.iter().position(|channel| channel.peer == peer).map(Self::number)
    }

    /// Decides what becomes of data for a peer.
    pub(super) fn send(&mut self, peer: SocketAddr, data: &[u8], now: Instant) -> Outcome {
        let known = self.0.iter().position(|channel| channel.peer == peer);
        let Some(place) = known.or_else(|| self.add(peer, now)) else { return Outcome::Nothing };
        let Some(channel) = self.0.get_mut(place) else { return Outcome::Nothing };
        channel.is_used = true;
        let outcome = match channel.state {
            State::Bound { .. } => return Outcome::Send(Self::number(place)),
            State::Refused => return Outcome::Nothing,
            State::Idle(from) if now < from => return Outcome::Nothing,
            State::Idle(_) => {
                channel.asked = now;
                Outcome::Bind { place, is_new: known.is_none() }
            }
            State::Asked => Outcome::Nothing,
        };
        channel.state = State::Asked;
        if channel.waiting.len() < WAITING_MAX {
            channel.waiting.push(data.to_vec());
        }
        outcome
    }

    /// Adds the channel of a peer, at the place of an old one if there are as many as may be; returns its place.
    fn add(&mut self, peer: SocketAddr, now: Instant) -> Option<usize> {
        let (state, waiting) = (State::Idle(now), Vec::new());
        let channel = Channel { peer, state, asked: now, is_used: true, waiting };
        if self.0.len() < CHANNELS_MAX {
            self.0.push(channel);
            return Some(self.0.len() - 1);
        }
        let is_old = |it: &Channel| {
            matches!(it.state, State::Idle(_) | State::Refused) && now >= it.asked + REUSE
        };
        let place = self.0.iter().position(is_old)?;
        *self.0.get_mut(place)? = channel;
        Some(place)
    }

    /// The server has bound a channel; returns what waits for it.
    pub(super) fn bind(&mut self, place: usize, now: Instant) -> Vec<Vec<u8>> {
        let Some(channel) = self.0.get_mut(place) else { return Vec::new() };
        channel.state = State::Bound { due: now + RENEWAL, end: now + PERMISSION };
        channel.is_used = !channel.waiting.is_empty();
        std::mem::take(&mut channel.waiting)
    }

    /// The server has not answered, or not bound the channel. Unless that `is_final`, it is asked again after a pause,
    /// and a channel that was bound carries data until its permission ends.
    pub(super) fn fail(&mut self, place: usize, is_final: bool, now: Instant) {
        let Some(channel) = self.0.get_mut(place) else { return };
        channel.waiting.clear();
        channel.state = match channel.state {
            _ if is_final => State::Refused,
            State::Bound { end, .. } if now < end => {
                channel.is_used = true;
                State::Bound { due: end.min(now + PAUSE), end }
            }
            _ => State::Idle(now + PAUSE),
        };
    }

    /// Returns the places of channels to be bound again now. Unused ones are left to expire.
    pub(super) fn due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        for (place, channel) in self.0.iter_mut().enumerate() {
            match channel.state {
                State::Bound { end, .. } if now >= end => channel.state = State::Idle(now),
                State::Bound { due: at, end } if now >= at && channel.is_used => {
                    // It carries data meanwhile.
                    (channel.state, channel.is_used) = (State::Bound { due: end, end }, false);
                    channel.asked = now;
                    due.push(place);
                }
                State::Bound { due: at, .. } if now >= at => channel.state = State::Idle(now),
                _ => {}
            }
        }
        due
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let due = |channel: &Channel| match channel.state {
            State::Bound { due, .. } => Some(due),
            _ => None,
        };
        self.0.iter().filter_map(due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_whose_renewal_fails_carries_data_and_is_renewed_until_its_permission_ends() {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let start = Instant::now();
        let peer = SocketAddr::from(([192, 0, 2, 1], 1));
        let mut channels = Channels::default();
        let bind = |is_new| Outcome::Bind { place: 0, is_new };
        assert_eq!(channels.send(peer, &[1], start), bind(true));
        assert_eq!(channels.bind(0, start), [[1]]);
        channels.send(peer, &[1], start);
        let due = start + RENEWAL;
        assert_eq!((channels.next_timeout(), channels.due(due)), (Some(due), vec![0]));
        let mut now = due;
        while now + PAUSE < start + PERMISSION {
            channels.fail(0, false, now);
            assert_eq!(channels.send(peer, &[2], now), Outcome::Send(FIRST_CHANNEL));
            assert_eq!(channels.due(now), [0_usize; 0]);
            now = channels.next_timeout().unwrap();
            assert_eq!(channels.due(now), [0]);
        }
        let mut renewed = channels;
        renewed.bind(0, now);
        assert_eq!(renewed.next_timeout(), Some(now + RENEWAL));
        // Never again.
        renewed.due(now + RENEWAL);
        assert_eq!(renewed.send(peer, &[3], now + RENEWAL), bind(false));
        renewed.fail(0, false, now + RENEWAL);
        assert_eq!(renewed.send(peer, &[3], now + RENEWAL), Outcome::Nothing);
        assert_eq!(renewed.send(peer, &[3], now + RENEWAL + PAUSE), bind(false));
        renewed.fail(0, true, now + RENEWAL + PAUSE);
        assert_eq!(renewed.send(peer, &[3], now + 2 * RENEWAL), Outcome::Nothing);
    }

    #[test]
    fn the_places_of_old_channels_are_for_others() {
        #[allow(clippy::disallowed_methods, reason = "any epoch will do")]
        let start = Instant::now();
        let peer = |port| SocketAddr::from(([192, 0, 2, 1], port));
        let bind = |place, is_new| Outcome::Bind { place, is_new };
        let mut channels = Channels::default();
        for place in 0..CHANNELS_MAX {
            assert_eq!(channels.send(peer(place as u16), &[], start), bind(place, true));
            channels.bind(place, start);
        }
        let (end, old) = (start + PERMISSION, start + REUSE);
        // The first is used until later than the others.
        channels.due(end);
        assert_eq!(channels.send(peer(0), &[], end), bind(0, false));
        channels.bind(0, end);
        assert_eq!(channels.send(peer(1000), &[], start + PERMISSION + PAUSE), Outcome::Nothing);
        channels.due(old);
        assert_eq!(channels.send(peer(1000), &[], old), bind(1, true));
        assert_eq!(channels.number_of(peer(1000)), Some(FIRST_CHANNEL + 1));
        assert_eq!((channels.number_of(peer(1)), channels.peer(1)), (None, Some(peer(1000))));
        assert_eq!(channels.send(peer(1), &[], old), bind(2, true));
    }
}
