//! Two well-behaved ends, and their offers.
#![allow(unreachable_pub, reason = "each file of this test uses its part")]

use std::time::{Duration, Instant};

use rushes_delivery::control::{
    Abilities, Client, ClientEvent, FormatSet, FrameRate, Offer, Server, ServerEvent, Timeline,
    Token, Transport, TransportSet, VideoMode, Wishes,
};

pub fn wishes() -> Wishes {
    Wishes {
        formats: FormatSet::default().with(7).with(9),
        transports: TransportSet::ALL,
        format: 0,
        transport: None,
        units: 0,
        payload: 0,
        rate: None,
        abilities: Abilities::RECOVERY.with(Abilities::SIZES),
    }
}

/// Returns an offer of three units in one plane over UDP.
pub fn offer() -> Offer {
    let rate = FrameRate { numerator: 60, denominator: 1 };
    Offer {
        token: Token([5; 16]),
        epoch: 0,
        mode: VideoMode { width: 3840, height: 2160, rate, format: 7 },
        transport: Transport::Udp,
        units: [3, 0, 0],
        stripe_rows: 36,
        payload: 1408,
        first_frame: 0,
        ports: vec![5001, 5002, 5003],
        ssrcs: Vec::new(),
        clock_rate: 0,
        abilities: Abilities::default(),
        colour: [0; 4],
        group: None,
    }
}

/// Returns a change of [`offer`] to five units in three planes, from frame 100 on.
pub fn changed() -> Offer {
    let mut offer = offer();
    (offer.epoch, offer.first_frame) = (1, 100);
    (offer.mode.format, offer.units) = (9, [3, 1, 1]);
    offer.ports.extend([5004, 5005]);
    offer
}

/// A server and a client on a wire that delivers everything at once.
pub struct Ends {
    pub now: Instant,
    pub server: Server,
    pub client: Client,
}

impl Ends {
    pub fn new() -> Self {
        let now = Instant::now();
        // The clocks of two machines: the server's is 5 s ahead.
        let timelines = [Duration::ZERO, Duration::from_secs(5)];
        let [server, client] = timelines.map(|after| Timeline::new(now + after));
        let now = now + Duration::from_secs(10);
        Self { now, server: Server::new(now, server), client: Client::new(now, client, wishes()) }
    }

    /// Returns two ends that stream according to `offer`.
    pub fn streaming(offer: Offer) -> Self {
        let mut ends = Self::new();
        ends.carry();
        assert_eq!(ends.server_events(), [ServerEvent::Wants(wishes())]);
        let units = offer.unit_count() as u8;
        ends.server.offer(ends.now, offer.clone()).unwrap();
        ends.carry();
        assert_eq!(ends.client_events(), [ClientEvent::Offered(Box::new(offer))]);
        ends.client.accept(ends.now, &[], &[]).unwrap();
        ends.carry();
        for unit in 0..units {
            ends.server.unit_bound(ends.now, unit).unwrap();
        }
        ends.carry();
        assert_eq!(ends.client_events(), [ClientEvent::Streaming { epoch: 0 }]);
        assert_eq!(ends.server_events().last(), Some(&ServerEvent::Streaming { epoch: 0 }));
        ends
    }

    /// Carries octets until neither end has any to send.
    pub fn carry(&mut self) {
        while !self.server.poll_data().is_empty() || !self.client.poll_data().is_empty() {
            let octets = self.client.poll_data().to_vec();
            self.client.data_sent(octets.len());
            self.server.handle_data(self.now, &octets);
            let octets = self.server.poll_data().to_vec();
            self.server.data_sent(octets.len());
            self.client.handle_data(self.now, &octets);
        }
    }

    /// Lets time pass, timer by timer.
    pub fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = [self.server.poll_timeout(), self.client.poll_timeout()];
            let Some(due) = due.into_iter().flatten().min().filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
            self.carry();
        }
        self.now = end;
    }

    pub fn server_events(&mut self) -> Vec<ServerEvent> {
        std::iter::from_fn(|| self.server.poll_event()).collect()
    }

    pub fn client_events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }
}
