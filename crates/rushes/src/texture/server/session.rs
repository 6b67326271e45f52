//! One client's session: its offer, the frames being sent, and changes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Abilities, Accept, Change, FrameNotice, Offer, Reason, Report, Server, ServerStatistics, State,
    Transport, Wishes,
};
use rushes_texture::Format;

use super::super::wire::Wire;
use super::super::{OnPanic, lock};
use super::binding::Binding;
use super::choose::Refusal;
use super::encoding::Encoding;
use super::fec::{self, SessionFec};
use super::feed::Timing;
use super::group::{Group, Member};
use super::ladder::{Adaptation, Freedom, Ladder, Step};
use super::options::PAUSE_MAX;
use super::work::Sent;
use super::{Inner, choose};

/// Interval of the statistics sent to a client.
const STATISTICS_INTERVAL: Duration = Duration::from_secs(1);

/// Why a client is offered no change.
enum NotOffered {
    /// Something else is in progress.
    Now,
    /// It is impossible, for this reason.
    Ever(String),
}

pub(super) struct Session {
    pub(super) binding: Arc<Binding>,
    /// The group, by multicast.
    member: Option<Member>,
    /// Pictures that the group had dropped when this client joined.
    dropped_before: u64,
    threads: Vec<thread::JoinHandle<()>>,
    offer: Offer,
    /// What the client lets the server choose.
    freedom: Freedom,
    /// The largest size of pictures that it wants, if it has requested one.
    size_max: Option<(u32, u32)>,
    /// The number of units that it binds: those of the first offer that it accepts.
    units: usize,
    /// The client's request that is not offered yet: it waits for the end of another change.
    requested: Option<Change>,
    /// The steps below what was chosen, if there are any and losses are adapted to.
    ladder: Option<Ladder>,
    fec: SessionFec,
    /// Whether the next encoding is a step of the ladder.
    is_step: bool,
    /// The current encoding, if the stream has begun.
    current: Option<Arc<Encoding>>,
    /// The next encoding, used when the client has accepted it.
    next: Option<Arc<Encoding>>,
    /// Whether the session receives the source's frames.
    is_fed: bool,
    /// The number of format changes by the application that were handled.
    handled_changes: u64,
    statistics: ServerStatistics,
    statistics_due: Instant,
    /// Time of each frame since the last statistics, from capture to the last octet sent, in
    /// microseconds.
    times: Vec<u32>,
}

impl Session {
    /// Prepares a session for a client and sends an offer.
    pub(super) fn begin(
        inner: &Arc<Inner>,
        machine: &mut Server,
        wishes: &Wishes,
        wire: &Wire,
    ) -> Result<Self, Refusal> {
        let options = &inner.options;
        let (handled_changes, format) = inner.wanted();
        // Sessions begin one at a time, so that each counts those before it.
        let _turn = lock(&inner.beginning);
        let peer = wire.socket.peer_address().ip();
        let with = (options, inner.units_left());
        let of_group = Group::current(inner).map(|group| group.format());
        let is_of_group = choose::transport_of(wishes, options) == Transport::Multicast;
        let format = if is_of_group { of_group.or(format) } else { format };
        let mut choice = choose::choose(wishes, &inner.feed.source(), inner.rate, with, format)?;
        if is_of_group {
            Group::check_format(of_group, &choice)?;
        }
        inner.make_room(peer)?;
        let token = super::token()?;
        let security = inner.sealing.media(&wire.channel);
        let security = security.map_err(|error| (Reason::Unsupported, error.to_string()))?;
        let (binding, member, offer) = if is_of_group {
            let member = Member::join(inner, &choice, &wire.socket)?;
            choice.encoding = member.group.encoding();
            let binding = member.binding(token, &wire.socket);
            let binding = binding.inspect_err(|_| member.leave(inner, None))?;
            let mut offer = choose::offer(&choice, &binding);
            member.complete(&mut offer);
            (binding, Some(member), offer)
        } else {
            let binding = Binding::new(token, &choice, (options, security), &wire.socket)?;
            let offer = choose::offer(&choice, &binding);
            (binding, None, offer)
        };
        // A member of a group has none of its own.
        lock(&inner.sessions).take(peer, binding.units(), binding.clone());
        let unsupported = |error: &dyn std::fmt::Display| (Reason::Unsupported, error.to_string());
        let mut session = Self {
            threads: Vec::new(),
            freedom: Freedom {
                formats: wishes.formats,
                has_format: wishes.format != 0,
                has_rate: wishes.rate.is_some(),
            },
            size_max: None,
            units: binding.units(),
            requested: None,
            ladder: None,
            fec: SessionFec::new(options.fec, offer.abilities.contains(Abilities::FEC)),
            is_step: false,
            current: None,
            next: Some(choice.encoding),
            is_fed: false,
            handled_changes,
            statistics: ServerStatistics::default(),
            statistics_due: Instant::now(),
            times: Vec::new(),
            offer: offer.clone(),
            member,
            dropped_before: 0,
            binding,
        };
        let spawned = spawn_units(&session.binding, &mut session.threads);
        let begun = spawned.map_err(|error| exhausted(&error)).and_then(|()| {
            machine.offer(Instant::now(), offer).map_err(|error| unsupported(&error))
        });
        match begun {
            Ok(()) => Ok(session),
            Err(refusal) => {
                session.end(inner);
                Err(refusal)
            }
        }
    }

    /// Handles the client's acceptance: a client by multicast has joined the group.
    pub(super) fn accept(&self, machine: &mut Server, accept: Accept) {
        self.binding.accept(accept);
        let Some(member) = &self.member else { return };
        match member.group.check_joined(self.offer.first_frame) {
            Ok(()) => self.binding.note_joined(self.offer.unit_count()),
            Err((reason, text)) => machine.stop(reason, &text),
        }
    }

    /// Starts the stream: the client accepted and every unit is bound.
    pub(super) fn stream(&mut self, inner: &Inner) {
        let Some(encoding) = self.next.take() else { return };
        self.binding.work.set_rate(inner.rate, self.offer.mode.rate);
        self.binding.pace.set_rate(self.offer.mode.rate);
        self.binding.work.set_fec_percent(self.fec.percent());
        self.note_step(inner);
        self.binding.work.resume(encoding.clone());
        self.current = Some(encoding);
        lock(&inner.sessions).note_bound(&self.binding);
        if !std::mem::replace(&mut self.is_fed, true) {
            match &self.member {
                Some(member) => {
                    self.dropped_before = member.group.work().dropped();
                    member.follow(inner, &self.binding.work);
                }
                None => inner.feed.join(self.binding.work.clone()),
            }
        }
    }

    /// Notes that the frames of the current offer are sent from now on.
    fn note_step(&mut self, inner: &Inner) {
        let (Some(step), now) = (self.current_step(), Instant::now()) else { return };
        if std::mem::take(&mut self.is_step) {
            if let Some(ladder) = &mut self.ladder {
                inner.tally.note_step(ladder.handle_change(now, step));
            }
            return;
        }
        let options = &inner.options;
        let can_adapt = !matches!(self.offer.transport, Transport::Tcp | Transport::Multicast);
        let is_adapted = options.timing == Timing::Live && can_adapt;
        let adaptation = if is_adapted { options.adaptation } else { Adaptation::Off };
        let source = inner.feed.source().layout;
        self.ladder = Ladder::new(adaptation, &source, step, &self.freedom, now);
    }

    /// Handles a client's report: takes another step if its losses, or their absence, say so.
    pub(super) fn handle_report(&mut self, inner: &Inner, machine: &mut Server, report: Report) {
        self.binding.note_report(report);
        let (now, sent) = (Instant::now(), self.statistics.packets);
        if let Some(current) = &self.current {
            self.fec.handle_report(now, sent, &report, current.shape().plan());
            self.binding.work.set_fec_percent(self.fec.percent());
        }
        // What the path loses counts, whether or not it was recovered.
        let lost = fec::lost(&report);
        let Some(ladder) = self.ladder.as_mut().filter(|_| !self.is_step) else { return };
        ladder.set_fec_percent(self.fec.percent());
        let Some(step) = ladder.handle_report(now, sent, lost) else { return };
        if self.offer_change(inner, machine, step).is_ok() {
            self.is_step = true;
            let Step { format, rate } = step;
            let rate = f64::from(rate.numerator) / f64::from(rate.denominator.max(1));
            tracing::info!(%format, rate, "a client's losses, or their absence, change its stream");
        }
    }

    /// Notes a change that the client requests, beside what it has just requested.
    pub(super) fn request(&mut self, change: Change) {
        self.requested = Some(self.requested.unwrap_or_default().then(change));
    }

    /// Makes the offer that the client requested instead of accepting the first one.
    fn offer_again(&mut self, inner: &Inner, machine: &mut Server) {
        let Some(change) = self.requested.take() else { return };
        self.note_wishes(&change);
        let mode = self.offer.mode;
        let rate = choose::slower(inner.rate, change.rate.or(Some(mode.rate)));
        // If it cannot have the format that it requested, it gets the one that it was offered.
        let formats = [change.format, mode.format].into_iter().filter_map(Format::from_number);
        let encoding = formats.map(|format| self.encoding(inner, format)).find_map(Result::ok);
        let encoding = encoding.map(Arc::new).or_else(|| self.next.clone());
        let Some(encoding) = encoding else {
            return machine.stop(Reason::Unsupported, "nothing can be offered");
        };
        let with = (rate, self.offer.first_frame);
        let offer = choose::next_offer(&self.offer, &self.binding, encoding.shape(), with);
        match machine.offer(Instant::now(), offer.clone()) {
            Ok(()) => {
                self.units = offer.unit_count();
                (self.offer, self.next) = (offer, Some(encoding));
            }
            Err(error) => machine.stop(Reason::Unsupported, &error.to_string()),
        }
    }

    /// Notes what the server chooses no longer, as the client has requested it.
    fn note_wishes(&mut self, change: &Change) {
        self.freedom.has_format |= change.format != 0;
        self.freedom.has_rate |= change.rate.is_some();
        if let Some(size_max) = change.size_max {
            self.size_max = Some(size_max).filter(|&size| size != (0, 0));
        }
    }

    /// Returns whether the pictures would have another size now.
    fn has_other_size(&self, inner: &Inner) -> bool {
        let size = choose::size_within(&inner.feed.source().layout, self.size_max);
        size != (self.offer.mode.width, self.offer.mode.height)
    }

    /// Offers what the client has requested. What is impossible leaves the stream as it is.
    fn offer_change_of_client(&mut self, inner: &Inner, machine: &mut Server, change: Change) {
        let size_of_change = Change { format: 0, rate: None, ..change };
        self.note_wishes(&size_of_change);
        let has_more = change != size_of_change;
        if has_more && self.offer_instead(inner, machine, change).is_ok() {
            self.note_wishes(&change);
        } else if self.has_other_size(inner)
            && let Some(step) = self.current_step()
            && self.offer_change(inner, machine, step).is_ok()
        {
            // A size says nothing of losses: what was done about them stays.
            self.is_step = true;
        }
    }

    /// Offers what the client or the application has requested, unless a change is in progress.
    fn offer_requested(&mut self, inner: &Inner, machine: &mut Server) {
        let (wanted, format) = inner.wanted();
        let is_requested = self.requested.is_some() || wanted != self.handled_changes;
        if !is_requested || machine.state() != State::Streaming || self.next.is_some() {
            return;
        }
        // No other frame begins until it is offered, and the end of the one that is being sent wakes this thread.
        let is_alone = self.member.is_none();
        if is_alone && self.binding.work.pause(Duration::ZERO).is_none() {
            return;
        }
        if let Some(change) = self.requested.take() {
            self.offer_change_of_client(inner, machine, change);
        }
        if wanted != self.handled_changes && machine.state() == State::Streaming {
            self.handled_changes = wanted;
            let change = Change { format: format.map_or(0, Format::number), ..Change::default() };
            // If it cannot be offered, the stream stays as it is.
            let _ = self.offer_instead(inner, machine, change);
        }
        if is_alone
            && machine.state() == State::Streaming
            && let Some(current) = &self.current
        {
            self.binding.work.resume(current.clone());
        }
    }

    /// Offers frames of the source's pictures, if their layout has changed since the last offer.
    fn offer_new_layout(&mut self, inner: &Inner, machine: &mut Server) {
        let source = inner.feed.source();
        let is_behind = |current: &Arc<Encoding>| current.version() != source.version;
        if machine.state() != State::Streaming || !self.current.as_ref().is_some_and(is_behind) {
            return;
        }
        let (width, height) = (source.layout.width(), source.layout.height());
        if self.member.is_some() {
            let text = format!("the pictures are {width}x{height} now: connect again");
            return machine.stop(Reason::Format, &text);
        }
        // No picture of the old layout follows the frame that is being sent, and its end wakes this thread.
        let Some(step) = self.current_step().filter(|_| !self.binding.work.is_sending()) else {
            return;
        };
        match self.offer_change(inner, machine, step) {
            // Losses still count towards the same step.
            Ok(()) => self.is_step = true,
            Err(NotOffered::Ever(why)) => {
                let format = source.layout.format();
                let text = format!("the pictures are {width}x{height} {format} now: {why}");
                machine.stop(Reason::Format, &text);
            }
            Err(NotOffered::Now) => {}
        }
    }

    /// Offers a change of what is sent without losses: the format or the rate of a smaller step is
    /// not kept.
    fn offer_instead(
        &mut self,
        inner: &Inner,
        machine: &mut Server,
        change: Change,
    ) -> Result<(), NotOffered> {
        let first = self.ladder.as_ref().map(Ladder::first).or_else(|| self.current_step());
        let first = first.ok_or(NotOffered::Now)?;
        let format = Format::from_number(change.format).unwrap_or(first.format);
        let rate = choose::slower(inner.rate, change.rate.or(Some(first.rate)));
        self.offer_change(inner, machine, Step { format, rate })?;
        self.is_step = false;
        Ok(())
    }

    /// Returns the encoding of the source's pictures to frames of a format, or why the client cannot have it.
    fn encoding(&self, inner: &Inner, format: Format) -> Result<Encoding, String> {
        if !self.freedom.formats.contains(format.number()) {
            return Err("the client does not accept it".to_owned());
        }
        let (units, abilities) = (self.units, self.offer.abilities);
        let source = (&inner.feed.source(), self.size_max);
        let format_and_colour = (format, abilities.contains(Abilities::COLOUR));
        let with = (units, self.offer.payload as usize);
        let is_packed = abilities.contains(Abilities::PACKING);
        let quality = inner.options.quality;
        match choose::encode(source, format_and_colour, quality, with, is_packed) {
            Ok(encoding) if encoding.shape().tiling().tiles().len() <= units => Ok(encoding),
            Ok(_) => Err("the client has too few units for it".to_owned()),
            Err((_, reason)) => Err(reason),
        }
    }

    fn current_step(&self) -> Option<Step> {
        let mode = &self.offer.mode;
        Some(Step { format: Format::from_number(mode.format)?, rate: mode.rate })
    }

    /// Offers a change, if the server can make it.
    fn offer_change(
        &mut self,
        inner: &Inner,
        machine: &mut Server,
        step: Step,
    ) -> Result<(), NotOffered> {
        let Step { format, rate } = step;
        // The frames of an accepted offer begin before the next one is made.
        if machine.state() != State::Streaming || self.next.is_some() {
            return Err(NotOffered::Now);
        }
        let kept = |reason: &str| {
            tracing::info!(%format, reason, "a client keeps its format");
            Err(NotOffered::Ever(reason.to_owned()))
        };
        if self.member.is_some() {
            return kept("the client shares the frames of a group");
        }
        let encoding = match self.encoding(inner, format) {
            Ok(encoding) => encoding,
            Err(reason) => return kept(&reason),
        };
        let Some(first_frame) = self.binding.work.pause(PAUSE_MAX) else {
            // The current frame takes too long to be sent.
            if let Some(current) = &self.current {
                self.binding.work.resume(current.clone());
            }
            let _ = kept("the current frame takes too long to be sent");
            return Err(NotOffered::Now);
        };
        let offer =
            choose::next_offer(&self.offer, &self.binding, encoding.shape(), (rate, first_frame));
        match machine.change(Instant::now(), offer.clone()) {
            Ok(()) => {
                (self.offer, self.next) = (offer, Some(Arc::new(encoding)));
                Ok(())
            }
            Err(error) => {
                machine.stop(Reason::Unsupported, &error.to_string());
                Err(NotOffered::Now)
            }
        }
    }

    /// Handles requests of other threads. The stream starts only once the control connection
    /// `is_sealed`.
    pub(super) fn poll_requests(&mut self, inner: &Inner, machine: &mut Server, is_sealed: bool) {
        if machine.state() == State::Negotiating {
            // Units that the client has bound early belong to this offer, too.
            self.offer_again(inner, machine);
        }
        let bound = if is_sealed { self.binding.newly_bound() } else { Vec::new() };
        for unit in bound {
            if let Err(error) = machine.unit_bound(Instant::now(), unit) {
                tracing::debug!(unit, %error, "a unit was bound too late");
            }
        }
        let failure = inner.feed.failure().filter(|_| self.is_fed);
        if failure.is_some() || inner.is_stopped() {
            // The current frame is sent completely.
            let _ = self.binding.work.pause(PAUSE_MAX);
        }
        // Checked before the frames, so that the last frame is announced before the end.
        let is_done = self.binding.work.is_done();
        if let Some(member) = &self.member {
            member.group.count_sent(inner);
        }
        while let Some(sent) = self.binding.work.poll_sent() {
            self.announce(inner, machine, &sent);
        }
        if let Some(retransmissions) = self.binding.work.take_retransmissions() {
            inner.tally.note_retransmissions(retransmissions);
        }
        if let Some(why) = self.binding.work.failure().or(failure) {
            machine.stop(Reason::Unsupported, &why);
        } else if inner.is_stopped() {
            machine.stop(Reason::Ended, "the server is closing");
        } else if self.binding.is_evicted() {
            machine.stop(
                Reason::Busy,
                "closed to make room for a newer client: not all units were bound",
            );
        } else if is_done {
            machine.stop(Reason::Ended, "the source has ended");
        }
        self.offer_requested(inner, machine);
        self.offer_new_layout(inner, machine);
    }

    fn announce(&mut self, inner: &Inner, machine: &mut Server, sent: &Sent) {
        // Of a group, the client has only frames from its offer on.
        if self.member.is_some() && sent.frame < self.offer.first_frame {
            return;
        }
        let captured = inner.timeline.micros(sent.captured_at);
        let notice = FrameNotice {
            number: sent.frame,
            captured,
            sent: captured + sent.waited.as_micros() as u64,
            octets: sent.octets,
            dropped: sent.dropped.saturating_sub(self.dropped_before),
        };
        let counts = &mut self.statistics;
        let dropped_before = counts.dropped;
        counts.frames += 1;
        counts.octets += sent.octets;
        counts.packets += sent.packets;
        self.times.push(u32::try_from((sent.waited + sent.took).as_micros()).unwrap_or(u32::MAX));
        counts.dropped = notice.dropped;
        inner.tally.note_frame();
        if self.member.is_none() {
            inner.note_sent(sent, self.binding.units(), dropped_before);
        }
        // A client that does not read misses some notices.
        let _ = machine.frame(notice);
        if self.statistics_due <= Instant::now() {
            self.statistics_due = Instant::now() + STATISTICS_INTERVAL;
            self.times.sort_unstable();
            let at = |percent: usize| self.times[(self.times.len() - 1) * percent / 100];
            (self.statistics.send_p50, self.statistics.send_p99) = (at(50), at(99));
            self.times.clear();
            let _ = machine.statistics(self.statistics);
        }
    }

    pub(super) fn end(self, inner: &Inner) {
        self.binding.close();
        inner.feed.leave(&self.binding.work);
        if let Some(member) = &self.member {
            member.leave(inner, Some(&self.binding.work));
        }
        inner.forget(&self.binding);
        for thread in self.threads {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

/// Starts a thread for each unit, which binds it and then works.
pub(super) fn spawn_units(
    binding: &Arc<Binding>,
    threads: &mut Vec<thread::JoinHandle<()>>,
) -> std::io::Result<()> {
    for unit in 0..binding.units() {
        let binding = binding.clone();
        let thread = thread::Builder::new().name(format!("rushes-unit-{unit}"));
        let span = tracing::Span::current();
        let run = move || {
            let _entered = span.enter();
            let guard = OnPanic(|| binding.work.fail("a thread of the server panicked".into()));
            binding.run(unit);
            drop(guard);
        };
        threads.push(thread.spawn(run)?);
    }
    Ok(())
}

/// Returns the refusal for a thread that could not be started.
pub(super) fn exhausted(error: &std::io::Error) -> Refusal {
    (Reason::Busy, format!("the server could not start a thread: {error}"))
}
