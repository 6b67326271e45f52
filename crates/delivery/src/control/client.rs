//! The client's side of a control connection.

use std::time::Instant;

use super::channel::ChannelError;
use super::clock::{ClockEstimate, ClockFilter, Timeline};
use super::connection::{Events, Inbox, Outbox};
use super::error::{CommandError, OfferError};
use super::event::ClientEvent;
use super::message::{Change, Message, Nack, Report};
use super::offer::{Accept, Offer, Pending};
use super::opening::{Opening, Wishes};
use super::reason::{Reason, Stopped, StoppedBy, printable};
use super::state::State;
use super::transport::Abilities;
use super::{
    BINDING_TIMEOUT, CHANGE_TIMEOUT, CLIENT_MARGIN, OFFER_TIMEOUT, OPENING_TIMEOUT, PING_INTERVAL,
    SILENCE_TIMEOUT,
};

/// A client's connection to a server.
///
/// It is a state machine like [`Server`](super::Server): its inputs are octets and times, its
/// outputs octets, times and events.
#[derive(Debug)]
pub struct Client {
    state: State,
    wishes: Wishes,
    timeline: Timeline,
    clock: ClockFilter,
    inbox: Inbox,
    outbox: Outbox,
    events: Events<ClientEvent>,
    /// The deadline of the current state.
    deadline: Option<Instant>,
    /// The arrival time of the last complete message.
    last_message_at: Instant,
    next_ping: Instant,
    /// The offer in force.
    offer: Option<Offer>,
    pending: Option<Pending>,
    /// The epoch of the first offer to accept: 1 if a change of the one before was requested instead.
    first_epoch: u16,
}

impl Client {
    /// Creates a client for a connection made at `now`; `timeline` is the clock for its pings.
    ///
    /// The wishes must be among the client's capabilities; the server refuses others.
    pub fn new(now: Instant, timeline: Timeline, wishes: Wishes) -> Self {
        let mut outbox = Outbox::default();
        Opening::Control(wishes).write(outbox.octets());
        Self {
            state: State::Opening,
            wishes,
            timeline,
            clock: ClockFilter::new(),
            inbox: Inbox::default(),
            outbox,
            events: Events::new(),
            deadline: Some(now + OPENING_TIMEOUT + OFFER_TIMEOUT + CLIENT_MARGIN),
            last_message_at: now,
            next_ping: now,
            offer: None,
            pending: None,
            first_epoch: 0,
        }
    }

    /// Handles octets received on the connection, beginning with the first one.
    pub fn handle_data(&mut self, now: Instant, mut octets: &[u8]) {
        while !octets.is_empty() && self.state != State::Stopped {
            octets = self.inbox.fill(octets);
            self.read(now);
        }
        self.handle_timeout(now);
    }

    /// Handles the closing of the connection by the server.
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
        let silence = self.last_message_at + SILENCE_TIMEOUT;
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.fail(
                StoppedBy::Timeout,
                Reason::TimedOut,
                match self.state {
                    State::Opening if self.first_epoch == 0 => "no offer within 11 s",
                    State::Opening => "no other offer within 6 s",
                    State::Negotiating => "the offer was not answered within 6 s",
                    State::Binding => "the server did not start within 11 s",
                    _ => "the change was not completed in time",
                },
            );
        } else if self.state.is_live() && silence <= now {
            self.fail(StoppedBy::Timeout, Reason::TimedOut, "the server was silent for 5 s");
        } else if self.state.is_live() && self.next_ping <= now {
            let ping = self.clock.ask(self.timeline.micros(now));
            self.outbox.write_if_room(&Message::Ping(ping));
            self.next_ping = now + PING_INTERVAL;
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next; `None` if never.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let live = self.next_ping.min(self.last_message_at + SILENCE_TIMEOUT);
        self.deadline.into_iter().chain(self.state.is_live().then_some(live)).min()
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
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop()
    }

    /// Accepts the offer of [`ClientEvent::Offered`]; the units may then be bound.
    ///
    /// Over RTP, `ports` and `ssrcs` are the client's port and synchronisation source for each
    /// unit; otherwise they are empty.
    ///
    /// # Errors
    /// [`CommandError::State`] if there is no offer to answer, [`CommandError::Offer`] if ports or
    /// sources are missing or too many.
    pub fn accept(
        &mut self,
        now: Instant,
        ports: &[u16],
        ssrcs: &[u32],
    ) -> Result<(), CommandError> {
        let state = self.state;
        let pending = self.pending.as_mut().filter(|pending| !pending.is_accepted);
        let pending = pending.ok_or(CommandError::State(state))?;
        let (ports, ssrcs) = (ports.to_vec(), ssrcs.to_vec());
        let accept = Accept { epoch: pending.offer.epoch, ports, ssrcs };
        accept.check(&pending.offer)?;
        pending.is_accepted = true;
        if state == State::Negotiating {
            self.state = State::Binding;
        }
        self.deadline = Some(now + BINDING_TIMEOUT + CLIENT_MARGIN);
        self.outbox.write(&Message::Accept(accept));
        Ok(())
    }

    /// Requests another format, rate or size; the server may answer with an offer.
    ///
    /// The first offer may be answered so, once, if it has [`Abilities::SIZES`]: another one follows, which cannot.
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming or answering the first offer, or for a size without
    /// [`Abilities::SIZES`]; [`CommandError::Offer`] for a format that the client did not list,
    /// [`CommandError::Backlog`] if the server does not read.
    pub fn change(&mut self, change: Change) -> Result<(), CommandError> {
        let pending = self.pending.as_ref();
        let is_answer = pending.is_some_and(|pending| pending.can_be_changed(self.state));
        if !is_answer {
            self.expect_live()?;
        }
        if change.size_max.is_some() && !is_answer && !self.has(Abilities::SIZES) {
            return Err(CommandError::State(self.state));
        }
        if change.format != 0 && !self.wishes.formats.contains(change.format) {
            return Err(OfferError::Format(change.format).into());
        }
        self.send_or_backlog(&Message::Change(change))?;
        if is_answer {
            (self.state, self.pending, self.first_epoch) = (State::Opening, None, 1);
        }
        Ok(())
    }

    /// Returns whether the offer in force has these abilities.
    fn has(&self, abilities: Abilities) -> bool {
        self.offer.as_ref().is_some_and(|offer| offer.abilities.contains(abilities))
    }

    /// Sends the client's counters to the server.
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming, [`CommandError::Backlog`] if the server does not
    /// read.
    pub fn report(&mut self, report: Report) -> Result<(), CommandError> {
        self.expect_live()?;
        self.send_or_backlog(&Message::Report(report))
    }

    /// Requests packets that have not arrived.
    ///
    /// # Errors
    /// [`CommandError::State`] unless streaming an offer with [`Abilities::RECOVERY`],
    /// [`CommandError::Backlog`] if the server does not read.
    pub fn nack(&mut self, nack: Nack) -> Result<(), CommandError> {
        self.expect_live()?;
        if !self.has(Abilities::RECOVERY) {
            return Err(CommandError::State(self.state));
        }
        self.send_or_backlog(&Message::Nack(nack))
    }

    /// Ends the session in any state, which also refuses an offer; does nothing if it has ended.
    pub fn stop(&mut self, reason: Reason, text: &str) {
        self.fail(StoppedBy::Own, reason, text);
    }

    /// Returns the state of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the offer in force, from the first [`ClientEvent::Streaming`] on.
    pub fn current(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// Returns the estimate of the server's clock, from the first exchange on.
    pub fn clock(&self, now: Instant) -> Option<ClockEstimate> {
        self.clock.estimate(self.timeline.micros(now))
    }

    /// Returns the number of events that were discarded because they were not polled in time:
    /// frames and statistics.
    pub fn events_forgotten(&self) -> u64 {
        self.events.forgotten()
    }

    fn read(&mut self, now: Instant) {
        while self.state != State::Stopped {
            match Message::parse(self.inbox.unread()) {
                Ok(None) => return,
                Ok(Some((message, len))) => {
                    self.last_message_at = now;
                    self.on_message(now, message);
                    self.inbox.read(len);
                }
                Err(error) => return self.protocol_error(Reason::Malformed, &error.to_string()),
            }
        }
    }

    fn on_message(&mut self, now: Instant, message: Message) {
        let is_live = self.state.is_live();
        match message {
            Message::Offer(offer) if matches!(self.state, State::Opening | State::Streaming) => {
                self.on_offer(now, offer);
            }
            Message::Refuse { reason, text } if self.state == State::Opening => {
                self.end(StoppedBy::Peer, reason, &text);
            }
            Message::Start { epoch } => self.on_start(now, epoch),
            Message::Frame(frame) if is_live => {
                let event = ClientEvent::Frame(frame);
                self.events.push_droppable(event, ClientEvent::is_droppable);
            }
            Message::Pong(pong) if is_live => {
                self.clock.answer(pong, self.timeline.micros(now));
            }
            Message::Statistics(statistics) if is_live => {
                let event = ClientEvent::Statistics(statistics);
                self.events.push_droppable(event, ClientEvent::is_droppable);
            }
            Message::Stop { reason, text } => self.end(StoppedBy::Peer, reason, &text),
            other => {
                let text = format!("unexpected {} in state {}", other.name(), self.state);
                self.protocol_error(Reason::OutOfTurn, &text);
            }
        }
    }

    fn on_offer(&mut self, now: Instant, offer: Box<Offer>) {
        if let Err(error) = self.check(&offer) {
            return self.protocol_error(error.reason(), &format!("Offer: {error}"));
        }
        let is_first = self.state == State::Opening;
        self.state = if is_first { State::Negotiating } else { State::Changing };
        let timeout = if is_first { OFFER_TIMEOUT } else { CHANGE_TIMEOUT };
        self.deadline = Some(now + timeout + CLIENT_MARGIN);
        self.pending = Some(Pending { offer: Offer::clone(&offer), is_accepted: false });
        self.events.push(ClientEvent::Offered(offer));
    }

    fn check(&self, offer: &Offer) -> Result<(), OfferError> {
        match &self.offer {
            None => offer.check_first(self.first_epoch)?,
            Some(before) => {
                offer.check()?;
                offer.check_change(before)?;
            }
        }
        if !self.wishes.formats.contains(offer.mode.format) {
            return Err(OfferError::Format(offer.mode.format));
        }
        if !self.wishes.abilities.contains(offer.abilities) {
            return Err(OfferError::Abilities(offer.abilities.0));
        }
        if !self.wishes.transports.contains(offer.transport) {
            return Err(OfferError::Transport(offer.transport.number()));
        }
        Ok(())
    }

    fn on_start(&mut self, now: Instant, epoch: u16) {
        let is_due = |pending: &mut Pending| pending.is_accepted && pending.offer.epoch == epoch;
        let Some(Pending { offer, .. }) = self.pending.take_if(is_due) else {
            let text = format!("unexpected Start of epoch {epoch} in state {}", self.state);
            return self.protocol_error(Reason::OutOfTurn, &text);
        };
        if self.state == State::Binding {
            self.next_ping = now;
        }
        self.state = State::Streaming;
        self.deadline = None;
        self.offer = Some(offer);
        self.events.push(ClientEvent::Streaming { epoch });
    }

    fn send_or_backlog(&mut self, message: &Message) -> Result<(), CommandError> {
        if self.outbox.write_if_room(message) { Ok(()) } else { Err(CommandError::Backlog) }
    }

    fn expect_live(&self) -> Result<(), CommandError> {
        if self.state.is_live() { Ok(()) } else { Err(CommandError::State(self.state)) }
    }

    fn protocol_error(&mut self, reason: Reason, text: &str) {
        self.fail(StoppedBy::Protocol, reason, text);
    }

    /// Sends the reason to the server and ends the session.
    fn fail(&mut self, by: StoppedBy, reason: Reason, text: &str) {
        if self.state != State::Stopped {
            self.outbox.write(&Message::Stop { reason, text: printable(text) });
        }
        self.end(by, reason, text);
    }

    fn end(&mut self, by: StoppedBy, reason: Reason, text: &str) {
        if self.state != State::Stopped {
            self.state = State::Stopped;
            self.deadline = None;
            self.pending = None;
            self.inbox.close();
            let text = printable(text);
            self.events.push(ClientEvent::Stopped(Stopped { by, reason, text }));
        }
    }
}
