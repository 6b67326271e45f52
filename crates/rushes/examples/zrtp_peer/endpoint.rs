//! One endpoint: a ZRTP session with its sockets and clock.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rushes::zrtp::{
    Config, Event, MemoryStore, SecretStore, Session, StreamId, StreamKeys, Warning, is_zrtp,
};
use serde_json::Value;
use zeroize::Zeroizing;

use super::media::Media;
use super::options::Options;
use super::report;
use super::store::FileStore;
use super::wire::{Log, Wire};

/// The pause between two reads of the sockets.
const PAUSE: Duration = Duration::from_millis(2);

/// The largest possible datagram.
const DATAGRAM_MAX: usize = 65_536;

/// One stream.
pub(crate) struct Stream {
    pub(crate) index: usize,
    pub(crate) ssrc: u32,
    pub(crate) wire: Wire,
    pub(crate) id: Option<StreamId>,
    pub(crate) begun: Option<Instant>,
    pub(crate) secured: Option<Instant>,
    pub(crate) failure: Option<String>,
    pub(crate) keys: Option<StreamKeys>,
    pub(crate) media: Option<Media>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) hello_hash: Option<[u8; 32]>,
}

/// One endpoint.
pub(crate) struct Endpoint {
    pub(crate) options: Options,
    pub(crate) session: Session,
    pub(crate) streams: Vec<Stream>,
    begun: Instant,
    has_verified: bool,
    buffer: Vec<u8>,
}

/// Binds the local ports, in the order of the streams.
pub(crate) fn bind(options: &Options) -> Result<Vec<UdpSocket>, String> {
    let address: IpAddr = match options.host {
        host if host.is_loopback() => host,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let bind = |port| UdpSocket::bind((address, port)).map_err(|error| format!("{port}: {error}"));
    options.streams.iter().map(|ports| bind(ports.local)).collect()
}

impl Endpoint {
    /// Creates an endpoint on `sockets`, one for each stream.
    pub(crate) fn new(options: Options, sockets: Vec<UdpSocket>) -> Result<Self, String> {
        let mut zid = options.zid;
        let mut store: Box<dyn SecretStore + Send> = Box::new(MemoryStore::new());
        if let Some(path) = &options.cache {
            let mut file = FileStore::open(path)?;
            zid = zid.or(file.zid);
            let own = zid.map_or_else(random, Ok)?;
            zid = Some(own);
            file.zid = zid;
            file.write().map_err(|error| format!("{}: {error}", path.display()))?;
            store = Box::new(file);
        }
        let mut config = Config::new(zid.map_or_else(random, Ok)?);
        config.algorithms = options.algorithms.clone();
        config.is_passive = options.passive;
        config.allows_preshared = options.preshared;
        config.aux_secret = options.aux.clone().map(Zeroizing::new);
        let entropy = Box::new(|octets: &mut [u8]| {
            if getrandom::fill(octets).is_err() {
                // Without random numbers there are no keys, and this closure cannot return an
                // error.
                std::process::abort();
            }
        });
        let session = Session::new(config, entropy, store).map_err(|error| error.to_string())?;
        let streams: Result<_, String> = sockets
            .into_iter()
            .enumerate()
            .map(|(index, socket)| Stream::new(&options, index, socket))
            .collect();
        Ok(Self {
            options,
            session,
            streams: streams?,
            begun: Instant::now(),
            has_verified: false,
            buffer: vec![0; DATAGRAM_MAX],
        })
    }

    /// Runs until all streams are done, a stream fails or the time limit passes; returns `true` on
    /// success.
    pub(crate) fn run(&mut self) -> bool {
        let mut done = None;
        while self.begun.elapsed() < self.options.timeout {
            self.turn();
            if self.streams.iter().any(|stream| stream.failure.is_some()) {
                break;
            }
            if self.is_done() {
                let since = *done.get_or_insert_with(Instant::now);
                if since.elapsed() >= self.options.linger {
                    break;
                }
            }
        }
        self.is_well()
    }

    /// Performs the due actions, then pauses.
    pub(crate) fn turn(&mut self) {
        self.begin_streams();
        for index in 0..self.streams.len() {
            while let Some((len, from)) = self.streams[index].wire.receive(&mut self.buffer) {
                self.receive(index, len, from);
            }
        }
        let now = Instant::now();
        if self.session.next_timeout().is_some_and(|due| due <= now) {
            self.session.handle_timeout(now);
        }
        self.collect();
        let (first, many) = (self.is_secure(0), self.options.srtp);
        if first && self.options.verify_sas && !self.has_verified {
            self.has_verified = self.session.verify_sas(true);
        }
        for stream in &mut self.streams {
            stream.wire.send_delayed();
            if many > 0
                && stream.secured.is_some()
                && let Some(media) = &mut stream.media
            {
                media.send(now, many, &stream.wire);
            }
        }
        std::thread::sleep(PAUSE);
    }

    /// Begins the first stream when it is due, and the others when the first is secure.
    fn begin_streams(&mut self) {
        if self.begun.elapsed() < self.options.delay_start {
            return;
        }
        let first = self.is_secure(0);
        for stream in &mut self.streams {
            if stream.begun.is_some() || (stream.index > 0 && !first) {
                continue;
            }
            let now = Instant::now();
            stream.begun = Some(now);
            let peer = (!self.options.wait).then(|| stream.wire.remote());
            let Some(id) = self.session.add_stream(stream.ssrc, peer, now) else {
                stream.failure = Some("too many streams".to_owned());
                continue;
            };
            stream.id = Some(id);
            stream.hello_hash = self.session.hello_hash(id);
            if stream.index == 0
                && let Some(hash) = self.options.hello_hash
            {
                self.session.expect_hello(id, hash);
            }
        }
        self.collect();
    }

    fn receive(&mut self, index: usize, len: usize, from: SocketAddr) {
        let (stream, datagram) = (&mut self.streams[index], &mut self.buffer[..len]);
        if is_zrtp(datagram) {
            if (from != stream.wire.remote() || stream.wire.admit(datagram))
                && let Some(id) = stream.id
            {
                self.session.handle_datagram(Instant::now(), id, from, datagram);
            }
        } else if let Some(media) = &mut stream.media
            && media.receive(datagram)
            && let Some(id) = stream.id
        {
            self.session.handle_authentic_media(Instant::now(), id);
        }
        self.collect();
    }

    /// Sends the session's datagrams and handles its events.
    fn collect(&mut self) {
        while let Some((id, to, datagram)) = self.session.poll_datagram() {
            let stream = self.streams.iter_mut().find(|stream| stream.id == Some(id));
            match stream.map(|stream| &mut stream.wire) {
                Some(wire) if wire.remote() == to => wire.send_zrtp(datagram),
                Some(wire) => wire.send_astray(to, &datagram),
                None => {}
            }
        }
        while let Some((id, event)) = self.session.poll_event() {
            if self.options.verbose {
                eprintln!("    {event:?}");
            }
            if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == Some(id)) {
                stream.note(event);
            }
        }
    }

    /// Whether stream `index` is secure.
    pub(crate) fn is_secure(&self, index: usize) -> bool {
        self.streams.get(index).is_some_and(|stream| stream.secured.is_some())
    }

    /// Whether every stream is secure and has exchanged the requested media.
    pub(crate) fn is_done(&self) -> bool {
        let many = self.options.srtp;
        self.streams.iter().all(|stream| {
            let counters = stream.counters();
            stream.secured.is_some() && counters.sent >= many && counters.ok >= many
        })
    }

    /// Returns whether all streams are done without an error.
    pub(crate) fn is_well(&self) -> bool {
        self.is_done()
            && self.streams.iter().all(|stream| {
                let counters = stream.counters();
                stream.failure.is_none() && counters.bad == 0 && counters.rtcp_bad == 0
            })
    }

    /// Returns a line for each stream and the summary.
    pub(crate) fn report(&self) -> Vec<Value> {
        let lines = self.streams.iter().map(|stream| report::stream(self, stream));
        lines.chain([report::last(self, self.begun.elapsed())]).collect()
    }
}

impl Stream {
    fn new(options: &Options, index: usize, socket: UdpSocket) -> Result<Self, String> {
        let ports = options.streams.get(index).ok_or("more sockets than streams")?;
        socket.set_nonblocking(true).map_err(|error| error.to_string())?;
        let ssrc = match ports.ssrc {
            Some(ssrc) => ssrc,
            None => u32::from_be_bytes(random()?),
        };
        let remote = SocketAddr::new(options.host, ports.remote);
        let log = Log { packets: options.verbose, octets: options.hex };
        Ok(Self {
            index,
            ssrc,
            wire: Wire::new(index, socket, remote, options.faults.clone(), log),
            id: None,
            begun: None,
            secured: None,
            failure: None,
            keys: None,
            media: None,
            warnings: Vec::new(),
            hello_hash: None,
        })
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Keys(keys) => {
                match Media::new(self.ssrc, &keys) {
                    Ok(media) => self.media = Some(media),
                    Err(error) => self.failure = Some(error.to_string()),
                }
                self.keys = Some(*keys);
            }
            Event::Secure => self.secured = Some(Instant::now()),
            Event::Warning(warning) => self.warnings.push(warning),
            Event::Failed { error, by_peer } => {
                let by = if by_peer { "the peer" } else { "this end" };
                self.failure = Some(format!("{error}, by {by}"));
            }
            _ => {}
        }
    }

    pub(crate) fn counters(&self) -> super::media::Counters {
        self.media.as_ref().map(|media| media.counters).unwrap_or_default()
    }
}

fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets).map_err(|error| error.to_string())?;
    Ok(octets)
}
