//! A texture client with a dishonest server ends with a clear reason, and allocates no memory for
//! frames before the offer has been checked.
#![cfg(feature = "texture")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::net::{Shutdown, TcpListener};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rushes::delivery::UnitHeader;
use rushes::delivery::control::{
    Abilities, FrameNotice, FrameRate, Message, Offer, Opening, Pong, Reason, ServerStatistics,
    Token, VideoMode,
};
use rushes::texture::{ClientOptions, Format, Stopped, TextureClient, TextureError, Transport};

use texture_world::noise::picture;
use texture_world::stranger::Stranger;
use texture_world::witness::{Pictures, Seen, Witness};

/// Time after which a test counts as hung.
const HANGS: Duration = Duration::from_secs(30);

/// Octets of a BC1 frame of 64 x 64.
const BYTES: usize = 64 / 4 * 64 / 4 * 8;

const PAYLOAD: usize = 1_408;

/// A valid offer of two units.
fn offer() -> Offer {
    let rate = FrameRate { numerator: 50, denominator: 1 };
    Offer {
        token: Token([7; 16]),
        epoch: 0,
        mode: VideoMode { width: 64, height: 64, rate, format: Format::Bc1.number() },
        transport: Transport::Tcp,
        units: [2, 0, 0],
        stripe_rows: 100,
        payload: PAYLOAD as u32,
        first_frame: 0,
        ports: Vec::new(),
        ssrcs: Vec::new(),
        clock_rate: 0,
        abilities: Abilities::default(),
        colour: [0; 4],
        group: None,
    }
}

/// Runs a server driven by `serve` against a client observed by `watch`.
fn with_server<T: Send>(
    serve: impl FnOnce(Stranger, &TcpListener) + Send,
    watch: impl FnOnce(Result<TextureClient, TextureError>, &Witness) -> T,
) -> T {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut control = Stranger::new(listener.accept().unwrap().0);
            assert!(matches!(control.receive_opening(), Some(Opening::Control(_))));
            serve(control, &listener);
        });
        let witness = Arc::new(Witness::new(Pictures::Numbered(10)));
        let mut options = ClientOptions::default();
        options.frame_bytes_max = 1 << 20;
        let client = TextureClient::connect(address, witness.clone(), options);
        let result = watch(client, &witness);
        server.join().unwrap();
        result
    })
}

fn refuses(change: impl Fn(&mut Offer) + Sync, reason: Reason, text: &str) {
    let serve = |mut control: Stranger, _: &TcpListener| {
        let mut offer = offer();
        change(&mut offer);
        control.send(&Message::Offer(Box::new(offer)));
        let (said, _) = control.receive_end().unwrap();
        assert_eq!(said, reason);
    };
    with_server(serve, |client, witness| {
        let error = client.unwrap_err();
        assert!(matches!(&error, TextureError::Ended(stopped) if stopped.reason == reason));
        assert!(error.to_string().contains(text), "{error}, not {text}");
        assert_eq!(witness.seen().begun, 0);
    });
}

#[test]
fn absurd_offers_are_refused_before_there_is_memory() {
    let size = |width, height, format: Format| {
        move |offer: &mut Offer| {
            (offer.mode.width, offer.mode.height) = (width, height);
            offer.mode.format = format.number();
        }
    };
    refuses(size(32_768, 32_768, Format::Rgb24), Reason::Unsupported, "over 1048576");
    refuses(size(2_048, 2_048, Format::Bc1), Reason::Unsupported, "over 1048576");
    refuses(size(32_769, 1, Format::Bc1), Reason::Malformed, "32769x1");
    refuses(size(0, 64, Format::Bc1), Reason::Malformed, "0x64");
    refuses(|offer| offer.payload = 0, Reason::PacketSize, "0 octets");
    refuses(|offer| offer.payload = u32::MAX, Reason::PacketSize, "4294967295");
    refuses(|offer| offer.units = [64, 0, 0], Reason::Malformed, "64");
    refuses(|offer| offer.units = [0, 0, 0], Reason::Units, "[0, 0, 0]");
    refuses(|offer| offer.units = [65, 0, 0], Reason::Units, "65");
    refuses(|offer| offer.units = [1, 1, 0], Reason::Malformed, "more planes");
    refuses(|offer| offer.stripe_rows = 0, Reason::Malformed, "no block rows");
    refuses(|offer| offer.mode.format = 63, Reason::Format, "63");
    refuses(|offer| offer.mode.rate.numerator = 0, Reason::Malformed, "0/1");
    refuses(|offer| offer.epoch = 3, Reason::Malformed, "epoch 3");
    let unknown = |colour: [u8; 4]| {
        move |offer: &mut Offer| (offer.abilities, offer.colour) = (Abilities::COLOUR, colour)
    };
    refuses(unknown([0; 4]), Reason::Malformed, "primaries 0");
    refuses(unknown([1, 1, 255, 0]), Reason::Malformed, "matrix 255");
    refuses(unknown([1, 1, 1, 0x7f]), Reason::Malformed, "siting 127");
    let no_port = |offer: &mut Offer| {
        (offer.transport, offer.ports) = (Transport::Udp, vec![9, 0]);
    };
    refuses(no_port, Reason::Malformed, "port of 0");
}

#[test]
fn the_servers_reason_for_a_refusal_is_reported() {
    let serve = |mut control: Stranger, _: &TcpListener| {
        let text = "version 1 is too old".into();
        control.send(&Message::Refuse { reason: Reason::Version, text });
    };
    with_server(serve, |client, _| {
        let error = client.unwrap_err().to_string();
        assert!(error.contains("version 1 is too old"), "{error}");
    });
    let serve = |mut control: Stranger, _: &TcpListener| {
        control.send_octets(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        control.receive_end();
    };
    with_server(serve, |client, _| {
        let error = client.unwrap_err().to_string();
        assert!(error.contains("72") && error.contains("message type"), "{error}");
    });
    with_server(
        |control, _| drop(control),
        |client, _| {
            let error = client.unwrap_err().to_string();
            assert!(error.contains("closed"), "{error}");
        },
    );
}

/// A stream to the client, whose units are driven by the test.
struct Units {
    control: Stranger,
    units: Vec<Stranger>,
}

impl Units {
    fn begin(mut control: Stranger, listener: &TcpListener, offer: Offer) -> Self {
        let count = offer.unit_count();
        control.send(&Message::Offer(Box::new(offer)));
        assert!(matches!(control.receive(), Some(Message::Accept(_))));
        let mut units: Vec<Option<Stranger>> = (0..count).map(|_| None).collect();
        for _ in 0..count {
            let mut unit = Stranger::new(listener.accept().unwrap().0);
            let Some(Opening::Unit(opening)) = unit.receive_opening() else { panic!() };
            assert_eq!(opening.token, Token([7; 16]));
            units[usize::from(opening.unit)] = Some(unit);
        }
        control.send(&Message::Start { epoch: 0 });
        Self { control, units: units.into_iter().map(Option::unwrap).collect() }
    }

    fn chunk(&mut self, unit: usize, frame: u8, index: u32, octets: &[u8]) -> bool {
        let header = UnitHeader { frame, index }.write();
        self.units[unit].send_octets(&header) && self.units[unit].send_octets(octets)
    }

    /// Sends a whole frame, as one packet on each of two units.
    fn frame(&mut self, frame: u8) {
        let octets = picture(BYTES, frame.into());
        let (first, second) = octets.split_at(BYTES / 2);
        self.chunk(0, frame, 0, first);
        self.chunk(1, frame, 1, second);
    }

    /// Answers pings until the client ends, and returns the text of its `Stop`.
    fn until_the_end(mut self) -> String {
        loop {
            match self.control.receive() {
                Some(Message::Ping(ping)) => {
                    let pong = Pong { id: ping.id, t1: ping.t1, t2: u64::MAX, t3: u64::MAX };
                    self.control.send(&Message::Pong(pong));
                }
                Some(Message::Stop { text, .. }) => return text,
                Some(_) => {}
                None => return String::new(),
            }
        }
    }
}

/// Returns how a client ended after `send` drove its units, and the frames that its sink has seen.
fn streams(send: impl Fn(&mut Units) + Sync) -> (Stopped, Seen) {
    let serve = |control: Stranger, listener: &TcpListener| {
        let mut units = Units::begin(control, listener, offer());
        send(&mut units);
        units.until_the_end();
    };
    with_server(serve, |client, witness| {
        let client = client.unwrap();
        let end = client.wait(HANGS).unwrap_or_else(|| panic!("the client hangs"));
        client.stop();
        let seen = witness.seen();
        assert_eq!(seen.faults, [""; 0]);
        assert_eq!(seen.ends, 1);
        (end, seen)
    })
}

fn ends(send: impl Fn(&mut Units) + Sync, frames: u64, text: &str) {
    let (end, seen) = streams(send);
    assert!(end.to_string().contains(text), "{end}, not {text}");
    assert_eq!(seen.frames, frames, "{end}");
}

#[test]
fn a_server_that_sends_nonsense_on_a_unit_is_left_with_a_reason() {
    let unknown = "a chunk that the frame does not have";
    let within = "closed a connection within a frame";
    let garbage = |units: &mut Units| {
        units.frame(0);
        units.units[0].send_octets(&[0xff; 10_000]);
    };
    let too_large = |units: &mut Units| {
        units.frame(0);
        // The first half is valid; the octets after it are no header.
        let mut octets = picture(BYTES, 1);
        octets[BYTES / 2..].fill(0xff);
        units.chunk(0, 1, 0, &octets);
    };
    let twice = |units: &mut Units| {
        units.frame(0);
        units.frame(1);
        let octets = [0; BYTES];
        units.chunk(0, 1, 0, &octets[..BYTES / 2]);
    };
    let within_frame = |units: &mut Units| {
        units.frame(0);
        units.chunk(0, 1, 0, &[0; 100]);
        units.units[0].socket.shutdown(Shutdown::Both).unwrap();
    };
    let within_header = |units: &mut Units| {
        units.frame(0);
        units.units[1].send_octets(&[1, 0]);
        units.units[1].socket.shutdown(Shutdown::Both).unwrap();
    };
    ends(too_large, 2, unknown);
    ends(twice, 2, unknown);
    ends(within_frame, 1, within);
    ends(within_header, 1, within);
    let (end, _) = streams(garbage);
    assert!(end.to_string().contains(unknown), "{end}");
}

#[test]
fn a_client_leaves_a_silent_server_with_a_reason() {
    thread::scope(|scope| {
        // All units send a frame that is not the next one, so that the stream cannot continue.
        scope.spawn(|| {
            let skip = |units: &mut Units| {
                units.frame(0);
                units.frame(5);
            };
            ends(skip, 1, "a chunk that the frame does not have");
        });
        // A unit is closed between frames, while the control connection stays open.
        scope.spawn(|| {
            let close = |units: &mut Units| {
                units.frame(0);
                units.units[0].socket.shutdown(Shutdown::Both).unwrap();
            };
            ends(close, 1, "closed a unit's connection");
        });
        // The server stops within a frame and sends nothing more.
        scope.spawn(|| {
            let serve = |control: Stranger, listener: &TcpListener| {
                let mut units = Units::begin(control, listener, offer());
                units.frame(0);
                units.chunk(0, 1, 0, &[0; 100]);
                while units.control.receive().is_some() {}
            };
            with_server(serve, |client, witness| {
                let end = client.unwrap().wait(HANGS).unwrap_or_else(|| panic!("the client hangs"));
                assert!(end.to_string().contains("silent for 5 s"), "{end}");
                assert_eq!(witness.seen().frames, 1);
            });
        });
    });
}

#[test]
fn the_highest_numbers_that_a_server_can_say_break_nothing() {
    let high = |units: &mut Units| {
        units.frame(0);
        let high = u64::MAX;
        let notice =
            FrameNotice { number: high, captured: high, sent: high, octets: high, dropped: high };
        units.control.send(&Message::Frame(notice));
        let counts = ServerStatistics { frames: high, send_p99: u32::MAX, ..Default::default() };
        units.control.send(&Message::Statistics(counts));
        units.frame(1);
        units.control.send(&Message::Stop { reason: Reason::Other(255), text: "enough".into() });
    };
    let (end, _) = streams(high);
    assert!(end.to_string().contains("enough"), "{end}");

    let serve = |control: Stranger, listener: &TcpListener| {
        let last = Offer { first_frame: u64::MAX, ..offer() };
        let mut units = Units::begin(control, listener, last);
        units.frame(255);
        units.control.send(&Message::Stop { reason: Reason::Other(255), text: "enough".into() });
        units.until_the_end();
    };
    with_server(serve, |client, _| {
        let end = client.unwrap().wait(HANGS).unwrap_or_else(|| panic!("the client hangs"));
        assert!(end.to_string().contains("enough"), "{end}");
    });
}
