//! An agent on real sockets, and networks of namespaces.

pub(crate) mod networks;

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

pub(crate) type Socket = std::net::UdpSocket;

use rushes_webrtc::ice::{Agent, AgentConfig, Channel, Event};

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// An agent and its socket.
pub(crate) struct RealEnd {
    pub(crate) agent: Agent,
    pub(crate) socket: Socket,
    local: SocketAddr,
    pub(crate) events: Vec<Event>,
    /// Data that is not STUN, with its sender.
    pub(crate) data: Vec<(SocketAddr, Vec<u8>)>,
}

impl RealEnd {
    pub(crate) fn new(config: AgentConfig, socket: Socket) -> Self {
        socket.set_nonblocking(true).unwrap();
        let local = socket.local_addr().unwrap();
        let mut agent = Agent::new(config, now());
        agent.add_local(local, now()).unwrap();
        Self { agent, socket, local, events: Vec::new(), data: Vec::new() }
    }

    /// Reads, lets time pass, and sends.
    pub(crate) fn turn(&mut self) {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = self.socket.recv_from(&mut buffer) {
            let relayed = self.agent.unwrap(from, &buffer[..len]);
            let (local, from, datagram) = relayed
                .map_or((self.local, from, &buffer[..len]), |it| (it.local, it.from, it.datagram));
            // RFC 7983: STUN begins with 0 to 3.
            if datagram[0] < 4 {
                self.agent.handle_datagram(now(), local, from, datagram);
            } else {
                self.data.push((from, datagram.to_vec()));
            }
        }
        if self.agent.next_timeout().is_some_and(|at| at <= now()) {
            self.agent.handle_timeout(now());
        }
        while let Some(transmit) = self.agent.poll_datagram() {
            // A route that does not exist is a datagram lost.
            let _ = self.socket.send_to(&transmit.datagram, transmit.to);
        }
        self.events.extend(std::iter::from_fn(|| self.agent.poll_event()));
    }

    pub(crate) fn send(&self, data: &[u8]) {
        let (local, remote) = self.agent.selected().unwrap();
        let (data, to) = match self.agent.channel(local, remote) {
            None => (data.to_vec(), remote),
            Some(Channel { server, number }) => {
                let length = data.len() as u16;
                ([&number.to_be_bytes()[..], &length.to_be_bytes(), data].concat(), server)
            }
        };
        self.socket.send_to(&data, to).unwrap();
    }
}

/// Lets ends do what they do until `done`.
pub(crate) fn run(ends: &mut [&mut RealEnd], done: impl Fn(&[&mut RealEnd]) -> bool) {
    let start = now();
    while !done(ends) {
        for end in ends.iter_mut() {
            end.turn();
        }
        let events = ends.iter().map(|end| &end.events).collect::<Vec<_>>();
        assert!(now() - start < PATIENCE, "{events:?}");
        sleep(Duration::from_millis(1));
    }
}
