//! The server's side of a control connection.

use std::time::Instant;

use super::channel::ChannelError;
use super::clock::Timeline;
use super::connection::{Events, Inbox, Outbox};
use super::error::CommandError;
use super::event::ServerEvent;
use super::message::{FrameNotice, Message, Pong, ServerStatistics};
use super::offer::{Accept, Offer, Pending};
use super::opening::Opening;
use super::reason::{Reason, Stopped, StoppedBy, printable};
use super::state::State;
use super::transport::{Abilities, Token};
use super::{BINDING_TIMEOUT, CHANGE_TIMEOUT, OFFER_TIMEOUT, OPENING_TIMEOUT, SILENCE_TIMEOUT};

/// The server's end of one connection to its port.
///
/// It is a state machine: its inputs are octets and times, its outputs octets, times and events.
/// After each call, send the octets of [`poll_data`](Self::poll_data), handle the events of
/// [`poll_event`](Self::poll_event), and call [`handle_timeout`](Self::handle_timeout) at
/// [`poll_timeout`](Self::poll_timeout). When [`state`](Self::state) is [`State::Stopped`] and all
/// octets were sent, close the connection.
#[derive(Debug)]
pub struct Server {
    state: State,
    timeline: Timeline,
    inbox: Inbox,
    outbox: Outbox,
    events: Events<ServerEvent>,
    /// The deadline of the current state.
    deadline: Option<Instant>,
    /// The arrival time of the last complete message; octets of an incomplete one do not count.
    last_message_at: Instant,
    /// The offer in force.
    offer: Option<Offer>,
    pending: Option<Pending>,
    /// The epoch of the first offer to be accepted: 1 if the client requested a change of the one before instead.
    first_epoch: u16,
    /// The bound units: bit n stands for unit n.
    bound: u64,
    /// The last frame, if there was no room to announce it.
    unannounced: Option<FrameNotice>,
}

impl Server {
    /// Creates the end of a connection made at `now`; `timeline` times frames and pings.
    pub fn new(now: Instant, timeline: Timeline) -> Self {
        Self {
            state: State::Opening,
            timeline,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            events: Events::new(),
            deadline: Some(now + OPENING_TIMEOUT),
            last_message_at: now,
            offer: None,
            pending: None,
            first_epoch: 0,
            bound: 0,
            unannounced: None,
        }
    }

    /// Handles octets received on the connection, beginning with the first one.
    pub fn handle_data(&mut self, now: Instant, mut octets: &[u8]) {
        while !octets.is_empty() && self.state != State::Stopped {
            octets = self.inbox.fill(octets);
            self.read(now);
        }
        // Single octets must not postpone the deadline.
        self.handle_timeout(now);
    }

    /// Handles the closing of the connection by the client.
    pub fn handle_close(&mut self) {
        let text = format!("closed in state {}", self.state);
        self.end(StoppedBy::Closed, Reason::Ended, &text);
    }

    /// Ends the session because its [`Channel`](super::Channel) failed.
    pub fn handle_failure(&mut self, error: &ChannelError) {
        let is_refused = matches!(error, ChannelError::Refused { .. });
        let by = if is_refused { StoppedBy::Peer } else { StoppedBy::Protocol };
        self.end(by, error.reason(), &error.to_string());
    }

    /// Performs the actions that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        let text = match self.state {
            State::Opening => "no opening within 5 s",
            State::Negotiating if self.pending.is_none() => "the server made no offer within 5 s",
            State::Negotiating => "the offer was not answered within 5 s",
            State::Binding => "the units were not bound within 10 s",
            _ if self.last_message_at + SILENCE_TIMEOUT <= now => "the client was silent for 5 s",
            _ => "the change was not completed in time",
        };
        self.fail(StoppedBy::Timeout, Reason::TimedOut, text);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let silence = self.state.is_live().then(|| self.last_message_at + SILENCE_TIMEOUT);
        self.deadline.into_iter().chain(silence).min()
    }

    /// Returns the octets to send next; empty if there are none. Report the number sent with
    /// [`data_sent`](Self::data_sent).
    pub fn poll_data(&self) -> &[u8] {
        self.outbox.waiting()
    }

    /// Records that the first `len` octets of [`poll_data`](Self::poll_data) were sent.
    pub fn data_sent(&mut self, len: usize) {
        self.outbox.sent(len);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop()
    }

    /// Makes the offer that [`ServerEvent::Wants`] requests. Its epoch must be 0, or 1 if it is the second one: the
    /// answer to a [`ServerEvent::ChangeWanted`] before the first was accepted.
    ///
    /// # Errors
    /// [`CommandError::State`] if none is requested or one was made; [`CommandError::Offer`] if
    /// invalid.
    pub fn offer(&mut self, now: Instant, offer: Offer) -> Result<(), CommandError> {
        self.expect(self.state == State::Negotiating && self.pending.is_none())?;
        offer.check_first(self.first_epoch)?;
        self.deadline = Some(now + OFFER_TIMEOUT);
        self.propose(offer);
        Ok(())
    }

    /// Refuses the session that [`ServerEvent::Wants`] requests.
    ///
    /// # Errors
    /// [`CommandError::State`] if an offer was already made; use [`stop`](Self::stop) then.
    pub fn refuse(&mut self, reason: Reason, text: &str) -> Result<(), CommandError> {
        let is_early = matches!(self.state, State::Opening | State::Negotiating);
        self.expect(is_early && self.pending.is_none())?;
        self.fail(StoppedBy::Own, reason, text);
        Ok(())
    }

    /// Offers a change while streaming.
    ///
    /// The offer must have the next epoch, the same token and transport, and the same ports and
    /// sources for existing units. The previous offer is in force until [`ServerEvent::Streaming`].
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming, [`CommandError::Offer`] if the offer is invalid,
    /// and [`CommandError::Backlog`] if the client does not read.
    pub fn change(&mut self, now: Instant, offer: Offer) -> Result<(), CommandError> {
        self.expect(self.state == State::Streaming)?;
        offer.check()?;
        if let Some(before) = &self.offer {
            offer.check_change(before)?;
        }
        self.expect_room()?;
        self.state = State::Changing;
        self.deadline = Some(now + CHANGE_TIMEOUT);
        self.propose(offer);
        Ok(())
    }

    /// Records that the socket or connection of a unit is known: its opening had the right token.
    ///
    /// Returns whether the unit was unbound before; openings in datagrams are repeated.
    ///
    /// # Errors
    /// [`CommandError::State`] before an offer and after the end, [`CommandError::Unit`] if the
    /// offer has no such unit.
    pub fn unit_bound(&mut self, now: Instant, unit: u8) -> Result<bool, CommandError> {
        let offer = self.pending.as_ref().map(|pending| &pending.offer).or(self.offer.as_ref());
        let units = offer.map_or(0, Offer::unit_count);
        self.expect(units > 0 && self.state != State::Stopped)?;
        if usize::from(unit) >= units {
            return Err(CommandError::Unit(unit));
        }
        let is_new = self.bound >> unit & 1 == 0;
        self.bound |= 1 << unit;
        self.start_if_bound(now);
        Ok(is_new)
    }

    /// Announces a frame that is sent to the client.
    ///
    /// If there is no room for the message, the last frame is still announced before the end,
    /// because the client must know how many frames there were.
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming; [`CommandError::Frame`] while changing, if the
    /// frame belongs to the new offer; [`CommandError::Backlog`] if the client does not read. In
    /// the last case the frame itself may still be sent.
    pub fn frame(&mut self, frame: FrameNotice) -> Result<(), CommandError> {
        self.expect(self.state.is_live())?;
        let next = self.pending.as_ref().map(|pending| pending.offer.first_frame);
        if next.is_some_and(|next| frame.number >= next) {
            return Err(CommandError::Frame(frame.number));
        }
        let outcome = self.send_or_backlog(&Message::Frame(frame));
        self.unannounced = outcome.is_err().then_some(frame);
        outcome
    }

    /// Sends the server's counters to the client.
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming, [`CommandError::Backlog`] if the client does not
    /// read.
    pub fn statistics(&mut self, statistics: ServerStatistics) -> Result<(), CommandError> {
        self.expect(self.state.is_live())?;
        self.send_or_backlog(&Message::Statistics(statistics))
    }

    /// Ends the session in any state; does nothing if it has ended.
    pub fn stop(&mut self, reason: Reason, text: &str) {
        self.fail(StoppedBy::Own, reason, text);
    }

    /// Returns the state of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the offer in force, from the first [`ServerEvent::Streaming`] on.
    pub fn current(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// Returns the session's token, from the first offer until the session ends.
    pub fn token(&self) -> Option<Token> {
        let pending = self.pending.as_ref().map(|pending| &pending.offer);
        let is_over = self.state == State::Stopped;
        pending.or(self.offer.as_ref()).filter(|_| !is_over).map(|offer| offer.token)
    }

    /// Returns the number of events (reports, requests of changes and of packets) that were discarded because they
    /// were not polled in time.
    pub fn events_forgotten(&self) -> u64 {
        self.events.forgotten()
    }

    fn read(&mut self, now: Instant) {
        while self.state != State::Stopped {
            let len = if self.state == State::Opening {
                match Opening::parse(self.inbox.unread()) {
                    Ok(None) => return,
                    Ok(Some((opening, len))) => {
                        self.on_opening(now, opening);
                        len
                    }
                    Err(error) => return self.protocol_error(error.reason(), &error.to_string()),
                }
            } else {
                match Message::parse(self.inbox.unread()) {
                    Ok(None) => return,
                    Ok(Some((message, len))) => {
                        self.last_message_at = now;
                        self.on_message(now, message);
                        len
                    }
                    Err(error) => {
                        return self.protocol_error(Reason::Malformed, &error.to_string());
                    }
                }
            };
            self.inbox.read(len);
        }
    }

    fn on_opening(&mut self, now: Instant, opening: Opening) {
        match opening {
            Opening::Control(wishes) => {
                self.state = State::Negotiating;
                self.deadline = Some(now + OFFER_TIMEOUT);
                self.events.push(ServerEvent::Wants(wishes));
            }
            Opening::Unit(unit) => {
                self.close();
                self.events.push(ServerEvent::Unit(unit));
            }
        }
    }

    fn on_message(&mut self, now: Instant, message: Message) {
        let is_live = self.state.is_live();
        let is_offered = self.pending.as_ref().is_some_and(|pending| !pending.is_accepted);
        match message {
            Message::Accept(accept) if is_offered => self.on_accept(now, accept),
            Message::Ping(ping) if is_live || self.state == State::Binding => {
                let t2 = self.timeline.micros(now);
                let pong = Pong { id: ping.id, t1: ping.t1, t2, t3: t2 };
                self.outbox.write_if_room(&Message::Pong(pong));
            }
            Message::Change(change) if self.can_be_changed() => {
                (self.pending, self.first_epoch) = (None, 1);
                self.deadline = Some(now + OFFER_TIMEOUT);
                self.events.push(ServerEvent::ChangeWanted(change));
            }
            Message::Change(change)
                if is_live && (change.size_max.is_none() || self.has(Abilities::SIZES)) =>
            {
                let event = ServerEvent::ChangeWanted(change);
                self.events.push_droppable(event, ServerEvent::is_droppable);
            }
            Message::Report(report) if is_live => {
                let event = ServerEvent::Report(report);
                self.events.push_droppable(event, ServerEvent::is_droppable);
            }
            Message::Nack(nack) if is_live && self.has(Abilities::RECOVERY) => {
                // There may be many: they replace only each other.
                let event = ServerEvent::Nack(nack);
                self.events.push_droppable(event, |it| matches!(it, ServerEvent::Nack(_)));
            }
            Message::Stop { reason, text } => self.end(StoppedBy::Peer, reason, &text),
            other => {
                let text = format!("unexpected {} in state {}", other.name(), self.state);
                self.protocol_error(Reason::OutOfTurn, &text);
            }
        }
    }

    /// Returns whether the client may request a change instead of accepting what it is offered.
    fn can_be_changed(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.can_be_changed(self.state))
    }

    /// Returns whether the offer in force has these abilities.
    fn has(&self, abilities: Abilities) -> bool {
        self.offer.as_ref().is_some_and(|offer| offer.abilities.contains(abilities))
    }

    fn on_accept(&mut self, now: Instant, accept: Accept) {
        let Some(pending) = &mut self.pending else { return };
        if let Err(error) = accept.check(&pending.offer) {
            return self.protocol_error(Reason::Malformed, &format!("Accept: {error}"));
        }
        pending.is_accepted = true;
        if self.state == State::Negotiating {
            self.state = State::Binding;
        }
        self.deadline = Some(now + BINDING_TIMEOUT);
        self.events.push(ServerEvent::Accepted(accept));
        self.start_if_bound(now);
    }

    fn start_if_bound(&mut self, now: Instant) {
        let all = |offer: &Offer| u64::MAX >> (64 - offer.unit_count().clamp(1, 64));
        let is_bound = |pending: &Pending| self.bound & all(&pending.offer) == all(&pending.offer);
        let is_ready = |pending: &mut Pending| pending.is_accepted && is_bound(pending);
        let Some(Pending { offer, .. }) = self.pending.take_if(is_ready) else { return };
        if self.state == State::Binding {
            self.last_message_at = now;
        }
        self.state = State::Streaming;
        self.deadline = None;
        self.outbox.write(&Message::Start { epoch: offer.epoch });
        self.events.push(ServerEvent::Streaming { epoch: offer.epoch });
        self.offer = Some(offer);
    }

    fn propose(&mut self, offer: Offer) {
        self.outbox.write(&Message::Offer(Box::new(offer.clone())));
        self.pending = Some(Pending { offer, is_accepted: false });
    }

    fn send_or_backlog(&mut self, message: &Message) -> Result<(), CommandError> {
        if self.outbox.write_if_room(message) { Ok(()) } else { Err(CommandError::Backlog) }
    }

    fn expect(&self, is_allowed: bool) -> Result<(), CommandError> {
        if is_allowed { Ok(()) } else { Err(CommandError::State(self.state)) }
    }

    fn expect_room(&self) -> Result<(), CommandError> {
        if self.outbox.has_room() { Ok(()) } else { Err(CommandError::Backlog) }
    }

    fn protocol_error(&mut self, reason: Reason, text: &str) {
        self.fail(StoppedBy::Protocol, reason, text);
    }

    /// Sends the reason to the client and ends the session.
    fn fail(&mut self, by: StoppedBy, reason: Reason, text: &str) {
        let is_early = matches!(self.state, State::Opening | State::Negotiating);
        let text = printable(text);
        if let Some(frame) = self.unannounced.take() {
            self.outbox.write(&Message::Frame(frame));
        }
        if self.state != State::Stopped {
            self.outbox.write(&if is_early && self.pending.is_none() {
                Message::Refuse { reason, text: text.clone() }
            } else {
                Message::Stop { reason, text: text.clone() }
            });
        }
        self.end(by, reason, &text);
    }

    fn end(&mut self, by: StoppedBy, reason: Reason, text: &str) {
        if self.state != State::Stopped {
            self.close();
            let text = printable(text);
            self.events.push(ServerEvent::Stopped(Stopped { by, reason, text }));
        }
    }

    fn close(&mut self) {
        self.state = State::Stopped;
        self.deadline = None;
        self.pending = None;
        self.unannounced = None;
        self.inbox.close();
    }
}
