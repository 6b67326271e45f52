//! Offers of a server, and answers of a client.

use core::net::SocketAddr;

use super::error::OfferError;
use super::state::State;
use super::transport::{Abilities, FrameRate, Token, Transport};
use super::{PAYLOAD_MAX, SIDE_MAX, UNITS_MAX};

/// Maximum octets of payload that fit a datagram after a unit header of four octets.
const DATAGRAM_PAYLOAD_MAX: u32 = 65_503;

/// A video mode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VideoMode {
    /// Pixels in a row, 1 to 32768.
    pub width: u32,
    /// Rows, 1 to 32768.
    pub height: u32,
    /// Frames per second.
    pub rate: FrameRate,
    /// The number of the format, 1 to 63.
    pub format: u8,
}

/// A session as the server proposes it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offer {
    /// The session's token, which is the same in all its offers.
    pub token: Token,
    /// The epoch: 0 for the first offer, incremented by each change; it wraps.
    pub epoch: u16,
    /// The size, rate and format of the video.
    pub mode: VideoMode,
    /// The transport of units, which is the same in all offers of a session.
    pub transport: Transport,
    /// Units of each plane, 1 to 64 in all; planes that the format lacks are last and have 0.
    pub units: [u8; 3],
    /// Block rows in a stripe, 1 or more.
    pub stripe_rows: u32,
    /// Octets of payload in each packet of a tile except the last: 1 to 65503; over TCP, to 1 MiB.
    pub payload: u32,
    /// The number of the first frame to which the offer applies.
    pub first_frame: u64,
    /// The server's port of each unit; empty over TCP.
    pub ports: Vec<u16>,
    /// The synchronisation source of each unit over RTP, all different; otherwise empty.
    pub ssrcs: Vec<u32>,
    /// The clock of RTP timestamps in Hz; 0 without RTP.
    pub clock_rate: u32,
    /// The abilities that both ends use: some of those that the client announced.
    pub abilities: Abilities,
    /// What the values of frames stand for, as the application numbers it: the code points of ITU-T H.273
    /// for primaries, transfer and matrix, then the full-range flag in bit 7 and the type of the chroma
    /// location below. Sent only with [`Abilities::COLOUR`]; otherwise 0, and the format's own default
    /// applies.
    pub colour: [u8; 4],
    /// The group and the port of the first unit, by multicast only: unit n is sent from its port of `ports` to the
    /// port that is greater by n.
    pub group: Option<SocketAddr>,
}

impl Offer {
    /// Returns the number of units of all planes.
    pub fn unit_count(&self) -> usize {
        self.units.iter().map(|units| usize::from(*units)).sum()
    }

    /// Checks the offer by itself.
    ///
    /// # Errors
    /// [`OfferError`] for the first field that is out of its bounds.
    pub fn check(&self) -> Result<(), OfferError> {
        let mode = &self.mode;
        if !(1..64).contains(&mode.format) {
            return Err(OfferError::Format(mode.format));
        }
        let side = 1..=SIDE_MAX;
        if !side.contains(&mode.width) || !side.contains(&mode.height) {
            return Err(OfferError::Size { width: mode.width, height: mode.height });
        }
        if mode.rate.numerator == 0 || mode.rate.denominator == 0 {
            return Err(OfferError::Rate(mode.rate.numerator, mode.rate.denominator));
        }
        let has_gap = self.units.windows(2).any(|pair| pair[0] == 0 && pair[1] != 0);
        if !(1..=UNITS_MAX).contains(&self.unit_count()) || has_gap {
            return Err(OfferError::Units(self.units));
        }
        if self.stripe_rows == 0 {
            return Err(OfferError::StripeRows);
        }
        let is_tcp = self.transport == Transport::Tcp;
        let max = if is_tcp { PAYLOAD_MAX } else { DATAGRAM_PAYLOAD_MAX };
        if !(1..=max).contains(&self.payload) {
            return Err(OfferError::Payload { octets: self.payload, max });
        }
        let is_rtp = self.transport == Transport::Rtp;
        if is_rtp == (self.clock_rate == 0) {
            return Err(OfferError::ClockRate(self.clock_rate));
        }
        self.check_group()?;
        let ports = if is_tcp { 0 } else { self.unit_count() };
        check_addresses(ports, &self.ports, self.rtp_units(), &self.ssrcs)
    }

    /// Checks that the offer is valid and can be the first of a session, which has the epoch `expected`: 0, or 1 if
    /// a client has requested a change of the first one instead of accepting it.
    ///
    /// # Errors
    /// [`OfferError::Epoch`] for another epoch, otherwise as [`check`](Self::check).
    pub fn check_first(&self, expected: u16) -> Result<(), OfferError> {
        if self.epoch != expected {
            return Err(OfferError::Epoch { epoch: self.epoch, expected });
        }
        self.check()
    }

    /// Checks that the offer may follow `before` while streaming.
    ///
    /// # Errors
    /// [`OfferError::Epoch`] if the epoch is not the next one, [`OfferError::Fixed`] if something
    /// changes that must not.
    pub fn check_change(&self, before: &Self) -> Result<(), OfferError> {
        let expected = before.epoch.wrapping_add(1);
        let begins_as = |own: &[u16], old: &[u16]| own.iter().zip(old).all(|(own, old)| own == old);
        let same_sources = self.ssrcs.iter().zip(&before.ssrcs).all(|(own, old)| own == old);
        if self.epoch != expected {
            Err(OfferError::Epoch { epoch: self.epoch, expected })
        } else if self.token != before.token {
            Err(OfferError::Fixed("token"))
        } else if self.transport != before.transport {
            Err(OfferError::Fixed("transport"))
        } else if !begins_as(&self.ports, &before.ports) {
            Err(OfferError::Fixed("port of a unit"))
        } else if !same_sources {
            Err(OfferError::Fixed("synchronisation source of a unit"))
        } else if self.clock_rate != before.clock_rate {
            Err(OfferError::Fixed("clock rate"))
        } else if self.group != before.group {
            Err(OfferError::Fixed("group"))
        } else if self.first_frame < before.first_frame {
            Err(OfferError::Fixed("frames before those of the last offer"))
        } else {
            Ok(())
        }
    }

    /// Checks that there is a group by multicast, and otherwise none, with a port for each unit.
    fn check_group(&self) -> Result<(), OfferError> {
        let is_sent_to_group = self.transport == Transport::Multicast;
        let last = self.unit_count() - 1;
        let is_valid = |group: SocketAddr| {
            group.ip().is_multicast()
                && group.port() > 0
                && usize::from(group.port()) + last <= 65_535
        };
        match self.group {
            None if is_sent_to_group => Err(OfferError::Group(None)),
            Some(group) if !is_sent_to_group || !is_valid(group) => {
                Err(OfferError::Group(Some(group)))
            }
            _ => Ok(()),
        }
    }

    /// Returns how many units need a source, and a port of the client: all over RTP, otherwise
    /// none.
    fn rtp_units(&self) -> usize {
        if self.transport == Transport::Rtp { self.unit_count() } else { 0 }
    }
}

/// An offer that is not in force yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) offer: Offer,
    pub(super) is_accepted: bool,
}

impl Pending {
    /// Returns whether a client in this state may request a change instead of accepting the offer: the first one, with
    /// sizes.
    pub(super) fn can_be_changed(&self, state: State) -> bool {
        let is_first = state == State::Negotiating && self.offer.epoch == 0;
        is_first && !self.is_accepted && self.offer.abilities.contains(Abilities::SIZES)
    }
}

/// A client's answer to an [`Offer`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Accept {
    /// The epoch of the offer.
    pub epoch: u16,
    /// The client's port of each unit over RTP; otherwise empty.
    pub ports: Vec<u16>,
    /// The client's synchronisation source for each unit over RTP, for reports; otherwise empty.
    pub ssrcs: Vec<u32>,
}

impl Accept {
    /// Checks that this answer belongs to `offer`.
    ///
    /// # Errors
    /// [`OfferError`] if it belongs to another offer, or has too few or too many ports or sources.
    pub fn check(&self, offer: &Offer) -> Result<(), OfferError> {
        if self.epoch != offer.epoch {
            return Err(OfferError::Epoch { epoch: self.epoch, expected: offer.epoch });
        }
        let units = offer.rtp_units();
        check_addresses(units, &self.ports, units, &self.ssrcs)
    }
}

/// Checks the number of ports and sources, and their values.
fn check_addresses(
    ports_needed: usize,
    ports: &[u16],
    ssrcs_needed: usize,
    ssrcs: &[u32],
) -> Result<(), OfferError> {
    let count = |what, have, need| Err(OfferError::Count { what, have, need });
    if ports.len() != ports_needed {
        return count("ports", ports.len(), ports_needed);
    }
    if ssrcs.len() != ssrcs_needed {
        return count("synchronisation sources", ssrcs.len(), ssrcs_needed);
    }
    if ports.contains(&0) {
        return Err(OfferError::Port);
    }
    let is_shared = |(n, ssrc)| ssrcs.iter().take(n).any(|before| before == ssrc);
    if ssrcs.iter().enumerate().any(is_shared) {
        return Err(OfferError::SharedSource);
    }
    Ok(())
}
