//! The control connection of texture video: a server and a client that receive arbitrary messages.

use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Abilities, Change, Channel, Client, ClientEvent, ControlSecret, FormatSet, FrameNotice,
    FrameRate, Message, Nack, Offer, Opening, Reason, Report, Server, ServerEvent,
    ServerStatistics, State, Timeline, Token, Transport, TransportSet, VideoMode, Wishes,
};

use crate::packets;

/// Octets queued for a peer that does not read: the limit, and messages that are always queued.
const WAITING_MAX: usize = 32 << 10;

pub(crate) fn wishes() -> Wishes {
    Wishes {
        formats: FormatSet(u64::MAX),
        transports: TransportSet::ALL,
        format: 7,
        transport: None,
        units: 0,
        payload: 0,
        rate: None,
        abilities: Abilities::RECOVERY.with(Abilities::COLOUR),
    }
}

/// Returns an offer, often a valid one.
pub(crate) fn offer(epoch: u16, body: &[u8]) -> Offer {
    let at = |place: usize| body.get(place).copied().unwrap_or(1);
    let units = [at(0) & 15, at(1) & 1, at(2) & 1];
    let count = units.iter().map(|units| usize::from(*units)).sum::<usize>();
    let transports = [Transport::Udp, Transport::Tcp, Transport::Rtp, Transport::Multicast];
    let transport = transports[usize::from(at(3) % 4)];
    let group = (transport == Transport::Multicast).then(|| ([239, 1, 1, at(11)], 9).into());
    let is_rtp = transport == Transport::Rtp;
    let rate = FrameRate { numerator: 60, denominator: u32::from(at(4)) };
    Offer {
        token: Token([at(5) & 1; 16]),
        epoch,
        mode: VideoMode { width: 64, height: 64, rate, format: at(6) },
        transport,
        units,
        stripe_rows: 1,
        payload: 1408,
        first_frame: u64::from(at(7)),
        ports: if transport == Transport::Tcp { Vec::new() } else { vec![9; count] },
        ssrcs: (0..count as u32).filter(|_| is_rtp).collect(),
        clock_rate: if is_rtp { 90_000 } else { 0 },
        abilities: Abilities(at(8) & 9),
        colour: [at(9), at(10), 1, 0],
        group,
    }
}

struct Ends {
    now: Instant,
    server: Server,
    client: Client,
    stops: [u32; 2],
}

impl Ends {
    /// Calls of the server's application.
    fn command_server(&mut self, kind: u8, body: &[u8]) {
        let first = body.first().copied().unwrap_or(0);
        let epoch = self.server.current().map_or(0, |offer| offer.epoch.wrapping_add(1));
        let _ = match kind {
            0 => {
                let first = self.server.offer(self.now, offer(0, body));
                first.or_else(|_| self.server.offer(self.now, offer(1, body)))
            }
            1 => self.server.change(self.now, offer(epoch, body)),
            2 => {
                for unit in 0..first {
                    let _ = self.server.unit_bound(self.now, unit);
                }
                Ok(())
            }
            3 => self.server.frame(FrameNotice { number: first.into(), ..FrameNotice::default() }),
            4 => self.server.statistics(ServerStatistics::default()),
            5 if first == 0 => self.server.refuse(Reason::Busy, "full"),
            _ if first == 0 => {
                self.server.stop(Reason::Ended, &String::from_utf8_lossy(body));
                Ok(())
            }
            _ => Ok(()),
        };
    }

    /// Calls of the client's application.
    fn command_client(&mut self, kind: u8, body: &[u8]) {
        let first = body.first().copied().unwrap_or(0);
        let count = usize::from(first & 15);
        let ssrcs: Vec<_> = (0..count as u32).collect();
        let _ = match kind {
            0 | 1 => self.client.accept(self.now, &[], &[]),
            2 => self.client.accept(self.now, &vec![9; count], &ssrcs),
            3 => {
                let size_max = body.get(1).map(|&side| (u32::from(side), u32::from(side)));
                self.client.change(Change { format: first, rate: None, size_max })
            }
            4 => self.client.report(Report::default()),
            6 => {
                let packets = (0..u32::from(first)).map(|at| at * 3..at * 3 + 2).collect();
                self.client.nack(Nack { frame: first.into(), packets })
            }
            _ if first == 0 => {
                self.client.stop(Reason::Ended, &String::from_utf8_lossy(body));
                Ok(())
            }
            _ => Ok(()),
        };
    }

    /// Passes octets to one side: as they are, or framed as a message with their type and body.
    fn feed(&mut self, to_server: bool, is_framed: bool, body: &[u8]) {
        let mut octets = Vec::new();
        if let (true, Some((kind, body))) = (is_framed, body.split_first()) {
            octets.extend([kind % 21, 0, 0, body.len() as u8]);
            octets.extend(body);
        } else {
            octets.extend(body);
        }
        if to_server {
            self.server.handle_data(self.now, &octets);
        } else {
            self.client.handle_data(self.now, &octets);
        }
    }

    /// Transfers up to `len` octets in each direction.
    fn carry(&mut self, len: usize) {
        let octets = self.client.poll_data();
        let octets = octets[..octets.len().min(len)].to_vec();
        self.client.data_sent(octets.len());
        self.server.handle_data(self.now, &octets);
        let octets = self.server.poll_data();
        let octets = octets[..octets.len().min(len)].to_vec();
        self.server.data_sent(octets.len());
        self.client.handle_data(self.now, &octets);
    }

    fn advance(&mut self, time: Duration) {
        self.now += time;
        self.server.handle_timeout(self.now);
        self.client.handle_timeout(self.now);
        let due = [self.server.poll_timeout(), self.client.poll_timeout()];
        assert!(due.iter().flatten().all(|due| *due > self.now), "a timeout is not in the future");
    }

    fn check(&mut self) {
        while let Some(event) = self.server.poll_event() {
            self.stops[0] += u32::from(matches!(event, ServerEvent::Stopped(_)));
        }
        while let Some(event) = self.client.poll_event() {
            if let ClientEvent::Offered(offer) = &event {
                assert_eq!(offer.check(), Ok(()));
            }
            self.stops[1] += u32::from(matches!(event, ClientEvent::Stopped(_)));
        }
        assert!(self.server.poll_data().len() < WAITING_MAX);
        assert!(self.client.poll_data().len() < WAITING_MAX);
        assert!(self.stops.iter().all(|stops| *stops <= 1));
        let is_stopped = |state| state == State::Stopped;
        assert!(self.server.poll_timeout().is_some() != is_stopped(self.server.state()));
        assert!(self.client.poll_timeout().is_some() != is_stopped(self.client.state()));
    }
}

/// Runs a server and a client with calls, messages and time steps taken from `octets`.
pub fn control(octets: &[u8]) {
    let start = Instant::now();
    let timeline = Timeline::new(start);
    let (server, client) = (Server::new(start, timeline), Client::new(start, timeline, wishes()));
    let mut ends = Ends { now: start, server, client, stops: [0; 2] };
    for (flags, body) in packets(octets) {
        let (is_server, kind) = (flags & 1 == 0, flags >> 4 & 7);
        match flags >> 1 & 7 {
            0 => ends.feed(is_server, false, body),
            1 => ends.feed(is_server, true, body),
            2 => ends.advance(Duration::from_millis(u64::from(flags) * 16)),
            3 if kind == 0 => ends.server.handle_close(),
            3 if kind == 1 => ends.client.handle_close(),
            3 | 4 => ends.carry(body.len()),
            5 => ends.carry(usize::MAX),
            6 => ends.command_server(kind, body),
            _ => ends.command_client(kind, body),
        }
        ends.check();
    }
    // Without further input, both stop; neither waits for ever.
    for _ in 0..100 {
        ends.advance(Duration::from_millis(500));
        ends.check();
    }
    assert_eq!(ends.server.state(), State::Stopped);
    assert_eq!(ends.client.state(), State::Stopped);
}

/// Parses octets as an opening and as a message, which must survive being written again.
pub fn opening(octets: &[u8]) {
    if let Ok(Some((opening, len))) = Opening::parse(octets) {
        let mut written = Vec::new();
        opening.write(&mut written);
        assert_eq!(written, octets[..len]);
        assert!((0..len).all(|len| Opening::parse(&octets[..len]) == Ok(None)));
    }
    if let Ok(Some((message, len))) = Message::parse(octets) {
        let mut written = Vec::new();
        message.write(&mut written);
        assert_eq!(Message::parse(&written), Ok(Some((message, written.len()))));
        assert!(written.len() <= len);
    }
}

/// One end of a sealed connection, the data sent into it and the data received from the other.
struct SealedEnd {
    channel: Channel,
    sent: Vec<u8>,
    received: Vec<u8>,
    is_over: bool,
}

impl SealedEnd {
    fn new(channel: Channel) -> Self {
        Self { channel, sent: Vec::new(), received: Vec::new(), is_over: false }
    }

    fn receive(&mut self, octets: &[u8]) {
        let before = self.received.len();
        let outcome = self.channel.receive(octets, &mut self.received);
        assert!(!self.is_over || self.received.len() == before, "data was accepted after the end");
        self.is_over |= outcome.is_err();
    }
}

/// Runs two ends with one secret, known at once or later, and an attacker in between that changes,
/// cuts and inserts data as `octets` specify: the received data must be a prefix of the sent data.
pub fn sealed(octets: &[u8]) {
    let Some((head, octets)) = octets.split_first() else { return };
    let (is_later, differ) = (head & 1 != 0, head & 2 != 0);
    let secrets = [&b"secret"[..], if differ { b"other" } else { b"secret" }];
    let [Ok(server), Ok(client)] = secrets.map(|secret| ControlSecret::new(&[secret])) else {
        return;
    };
    let secrets = [server, client];
    let channels = if is_later {
        [Channel::clear_at_first(false), Channel::clear_at_first(true)]
    } else {
        let server = Channel::accept(&secrets[0], &mut |out| out.fill(1));
        let Ok(client) = Channel::connect(&secrets[1], &mut |out| out.fill(2)) else { return };
        [server, client]
    };
    let mut ends = channels.map(SealedEnd::new);
    for (flags, body) in packets(octets) {
        let from = usize::from(flags & 1);
        let at = usize::from(flags >> 3);
        match flags >> 1 & 3 {
            0 if body.is_empty() && !ends[from].is_over => {
                let seed = 1 + from as u8;
                let sealed = ends[from].channel.seal(&secrets[from], &mut |out| out.fill(seed));
                ends[from].is_over |= sealed.is_err();
            }
            0 => ends[1 - from].receive(body),
            1 => {
                let taken = ends[from].channel.send(body);
                ends[from].sent.extend_from_slice(&body[..taken]);
            }
            changes => {
                let waiting = ends[from].channel.poll_data();
                let mut carried = waiting[..waiting.len().min(body.len() << (at & 7))].to_vec();
                ends[from].channel.data_sent(carried.len());
                if changes == 3
                    && let Some(octet) = carried.get_mut(at)
                {
                    *octet ^= 1 << (body.len() & 7);
                }
                ends[1 - from].receive(&carried);
            }
        }
        for (end, peer) in [(0, 1), (1, 0)] {
            let (end, peer) = (&ends[end], &ends[peer]);
            // Data received in the clear is authenticated once the handshake is complete.
            let is_sure = !is_later || end.channel.is_open() && !end.is_over;
            assert!(
                !is_sure || peer.sent.starts_with(&end.received),
                "data was accepted that was not sent"
            );
            assert!(!differ || !end.channel.is_open(), "a channel opened with different secrets");
        }
        assert!(ends.iter().all(|end| end.channel.poll_data().len() < 2 * WAITING_MAX));
    }
    let keys = ends.each_ref().map(|end| {
        let mut key = [0; 16];
        end.channel.export(b"media", &mut key).then_some(key)
    });
    if let [Some(server), Some(client)] = keys {
        assert_eq!(server, client, "the two ends exported different keys");
    }
}
