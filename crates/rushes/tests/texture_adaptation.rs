//! A live server behind a path that is too narrow for its stream: it takes a smaller step, and keeps
//! what the client requested.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rushes::delivery::control::{Accept, Change, Message, Offer, Report, Wishes};
use rushes::texture::source::{RawHint, open};
use rushes::texture::{
    Adaptation, ClientOptions, Format, FrameRate, MemorySink, ServerOptions, TextureClient,
    TextureFrame, TextureServer, Transport,
};
use rushes_netsim::{Bottleneck, Path};
use texture_world::relay::{Between, Weather};
use texture_world::stranger::{Stranger, binding, wishes};

/// Time after which a test fails.
const HANGS: Duration = Duration::from_secs(60);

/// A stream of 83 Mbit/s (in `ycocg-bc3` 28) behind a link of 40.
struct Trial {
    server: TextureServer,
    client: TextureClient,
    whole: Arc<AtomicU64>,
    _relay: Between,
}

fn serve(transport: Transport, adaptation: Adaptation) -> TextureServer {
    let source = open("pattern:320x180@60,rgb24".as_ref(), &RawHint::default()).unwrap();
    let mut options = ServerOptions::default();
    (options.adaptation, options.transport) = (adaptation, transport);
    (options.units, options.loops) = (1, true);
    TextureServer::serve(([127, 0, 0, 1], 0).into(), source, options).unwrap()
}

impl Trial {
    fn new(transport: Transport, adaptation: Adaptation, requested: bool) -> Self {
        let server = serve(transport, adaptation);
        let line = Bottleneck { rate: 40_000_000, queue: 64 << 10, ecn_threshold: None };
        let path = Path { bottleneck: Some(line), ..Path::default() };
        let relay =
            Between::new(server.local_address(), Weather { path, seed: 1, ..Weather::default() });
        let mut options = ClientOptions::default();
        if requested {
            options.format = Some(Format::Rgb24);
            options.rate = Some(FrameRate { numerator: 60, denominator: 1 });
        }
        let whole = Arc::new(AtomicU64::new(0));
        let counted = whole.clone();
        let sink = MemorySink::new(move |frame: &TextureFrame<'_>| {
            counted.fetch_add(u64::from(frame.is_whole()), Ordering::Relaxed);
        });
        let client = TextureClient::connect(relay.address(), Arc::new(sink), options).unwrap();
        Self { server, client, whole, _relay: relay }
    }

    fn format(&self) -> Format {
        self.client.shape().unwrap().layout().format()
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + HANGS;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stream_that_does_not_fit_its_path_is_made_smaller() {
    for transport in [Transport::Udp, Transport::Rtp] {
        let trial = Trial::new(transport, Adaptation::default(), false);
        wait_until("a smaller step", || trial.format() != Format::Rgb24);
        wait_until("its count", || trial.server.counts().steps_down > 0);
        let before = trial.whole.load(Ordering::Relaxed);
        wait_until("whole frames", || trial.whole.load(Ordering::Relaxed) > before + 60);
    }
}

#[test]
fn what_a_client_requested_is_not_changed() {
    let kept = [(Adaptation::FormatAndRate, true), (Adaptation::Off, false)];
    let trials =
        kept.map(|(adaptation, requested)| Trial::new(Transport::Udp, adaptation, requested));
    let until = Instant::now() + HANGS;
    for trial in &trials {
        // Three reports of losses.
        let lost = || trial.client.statistics().packets_lost;
        while lost() < 1_000 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(lost() >= 1_000);
        let counts = trial.server.counts();
        assert_eq!((counts.steps_down, counts.steps_up), (0, 0));
        assert_eq!(trial.format(), Format::Rgb24);
    }
}

/// A client that reports every packet lost, so that the server takes its smallest step.
struct Loser {
    control: Stranger,
    _unit: UdpSocket,
}

impl Loser {
    /// Connects, and returns the offer of the smallest step, not accepted yet.
    fn with_step(server: &TextureServer) -> (Self, Offer) {
        let mut control = Stranger::connect(server.local_address());
        let first = control.request(Wishes { units: 1, ..wishes(Transport::Udp) });
        let unit = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let address = ("127.0.0.1", first.ports[0]);
        control.accept();
        unit.send_to(&binding(first.token, 0), address).unwrap();
        let mut loser = Self { control, _unit: unit };
        let mut report = Report::default();
        loop {
            match loser.control.receive() {
                Some(Message::Offer(offer)) => return (loser, *offer),
                Some(Message::Frame(_)) => {
                    report.packets_lost += 1_000;
                    assert!(loser.control.send(&Message::Report(report)));
                }
                Some(Message::Start { .. } | Message::Statistics(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn change(&mut self, format: Option<Format>, rate: Option<u32>) {
        let format = format.map_or(0, Format::number);
        let rate = rate.map(|numerator| FrameRate { numerator, denominator: 1 });
        assert!(self.control.send(&Message::Change(Change { format, rate, size_max: None })));
    }

    fn accept(&mut self, offer: &Offer) {
        let accept = Accept { epoch: offer.epoch, ports: Vec::new(), ssrcs: Vec::new() };
        assert!(self.control.send(&Message::Accept(accept)));
    }

    /// Returns the format and the rate of the next offer.
    fn next(&mut self) -> (Option<Format>, u32) {
        loop {
            match self.control.receive() {
                Some(Message::Offer(next)) => return mode(&next),
                Some(Message::Stop { text, .. }) => panic!("no offer: {text}"),
                None => panic!("no offer"),
                Some(_) => {}
            }
        }
    }
}

fn mode(offer: &Offer) -> (Option<Format>, u32) {
    let rate = offer.mode.rate;
    (Format::from_number(offer.mode.format), rate.numerator / rate.denominator)
}

#[test]
fn a_request_that_comes_during_a_step_is_made_after_it() {
    let server = serve(Transport::Udp, Adaptation::default());
    let (mut client, step) = Loser::with_step(&server);
    assert_eq!(mode(&step), (Some(Format::Bc1), 15));
    // Both are made, in one change.
    client.change(Some(Format::Bc3), None);
    client.change(None, Some(30));
    client.accept(&step);
    assert_eq!(client.next(), (Some(Format::Bc3), 30));
}

#[test]
fn a_request_at_a_smaller_step_does_not_make_that_step_the_largest() {
    let server = serve(Transport::Udp, Adaptation::default());
    let (mut client, step) = Loser::with_step(&server);
    client.accept(&step);
    client.change(Some(Format::Bc3), None);
    assert_eq!(client.next(), (Some(Format::Bc3), 60));
    let (mut client, step) = Loser::with_step(&server);
    client.accept(&step);
    client.change(None, Some(30));
    assert_eq!(client.next(), (Some(Format::Rgb24), 30));
    let (mut client, step) = Loser::with_step(&server);
    server.set_format(Format::YCoCgBc3).unwrap();
    client.accept(&step);
    assert_eq!(client.next(), (Some(Format::YCoCgBc3), 60));
}
