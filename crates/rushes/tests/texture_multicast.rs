//! Texture video by multicast: frames are encoded and sent once for all clients of a group.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rushes::texture::{
    ClientOptions, ClientStatistics, Fec, Format, Layout, MulticastGroup, ServerOptions,
    TextureClient, TextureError, TextureServer, Timing, Transport,
};

use texture_world::noise::Noise;
use texture_world::witness::{Pictures, Witness};

const HANGS: Duration = Duration::from_secs(30);
const UNITS: usize = 3;

/// Returns a group whose ports no other test of this machine uses at the same time.
fn group() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let taken = TAKEN.fetch_add(1, Ordering::Relaxed);
    let process = std::process::id().to_le_bytes();
    let port = 20_000 + u16::from(process[0]) * 40 + taken * UNITS as u16;
    SocketAddr::from(([239, 255, process[1], process[2]], port))
}

fn layout() -> Layout {
    Layout::new(Format::Rgb24, 320, 180).unwrap()
}

fn server_options(group: SocketAddr) -> ServerOptions {
    let mut options = ServerOptions::default();
    (options.units, options.timing) = (UNITS, Timing::EveryFrame);
    options.multicast = Some(MulticastGroup::new(group));
    options
}

fn client_options() -> ClientOptions {
    let mut options = ClientOptions::default();
    options.transport = Some(Transport::Multicast);
    options.deadline_min = Duration::from_millis(100);
    options
}

fn serve(rate: u32, frames: u64, options: ServerOptions) -> TextureServer {
    let noise = Noise::new(layout(), rate, frames);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// A client, and what it has seen.
struct Viewer {
    client: TextureClient,
    witness: Arc<Witness>,
}

impl Viewer {
    fn connect(server: &TextureServer, frames: u64, options: ClientOptions) -> Self {
        Self::of(server, Pictures::Numbered(frames), options)
    }

    fn of(server: &TextureServer, pictures: Pictures, options: ClientOptions) -> Self {
        let witness = Arc::new(Witness::new(pictures));
        let client = TextureClient::connect(server.local_address(), witness.clone(), options);
        Self { client: client.unwrap(), witness }
    }

    /// Waits for the end of the source; what arrived was right.
    fn end(self) -> ClientStatistics {
        let ended = self.client.wait(HANGS).unwrap();
        assert!(ended.text.contains("source has ended"), "{ended}");
        let statistics = self.client.stop();
        let seen = self.witness.seen();
        assert!(seen.faults.is_empty(), "{:?}", seen.faults);
        statistics
    }
}

#[test]
fn a_frame_is_sent_once_for_all_clients_of_the_group() {
    const FRAMES: u64 = 60;
    let server = serve(60, FRAMES, server_options(group()));
    let first = Viewer::connect(&server, FRAMES, client_options());
    let second = Viewer::connect(&server, FRAMES, client_options());
    let alone = {
        let mut options = client_options();
        options.transport = Some(Transport::Udp);
        // Its frames are numbered from 0, and their pictures are not.
        Viewer::of(&server, Pictures::Round(FRAMES), options)
    };
    let (alone, first, second) = (alone.end(), first.end(), second.end());
    let counts = server.counts();
    assert_eq!(
        (first.frames_whole, first.frames_damaged, first.frames_lost),
        (FRAMES, 0, 0),
        "{first:?}"
    );
    assert_eq!(first.packets_invalid, 0);
    // The second one has joined while frames were sent: it has all from the first of its offer on.
    assert!(second.frames_whole >= FRAMES / 2 && second.frames_lost == 0, "{second:?}");
    assert_eq!(second.frames_damaged, 0, "{second:?}");
    assert!(alone.frames_whole > 0);
    // Once for the group, and once for the client that did not join it.
    let frame = layout().bytes() as u64;
    let most = (FRAMES + alone.frames_whole + 2) * (frame + frame / 100);
    assert!(counts.octets >= (FRAMES + alone.frames_whole) * frame, "{counts:?}");
    assert!(counts.octets < most, "{counts:?}");
}

/// A client whose socket holds two thirds of a unit's packets loses others, and requests them; the other client
/// ignores what is sent again.
#[test]
fn packets_that_one_client_lost_are_sent_again() {
    const FRAMES: u64 = 15;
    let mut options = server_options(group());
    options.pacing = rushes::Pacing::Off;
    // Answers arrive before the next frame.
    let server = serve(5, FRAMES, options);
    let whole = Viewer::connect(&server, FRAMES, client_options());
    let mut options = client_options();
    options.udp.receive_buffer = 32 << 10;
    let lossy = Viewer::connect(&server, FRAMES, options);
    let (whole, lossy) = (whole.end(), lossy.end());
    assert!(lossy.packets_recovered > 0, "{lossy:?}");
    assert_eq!((whole.frames_whole, whole.frames_damaged), (FRAMES, 0), "{whole:?}");
    assert!(server.counts().packets_retransmitted > 0);
}

#[test]
fn repair_packets_reach_all_clients() {
    const FRAMES: u64 = 30;
    let mut options = server_options(group());
    options.fec = Fec::Percent(50);
    let server = serve(30, FRAMES, options);
    let seen = Viewer::connect(&server, FRAMES, client_options()).end();
    assert_eq!((seen.frames_whole, seen.packets_invalid), (FRAMES, 0), "{seen:?}");
    // Half as many as packets; the last ones may come when their stripe is whole.
    assert!(seen.repairs > seen.packets / 4, "{seen:?}");
}

/// A group begins anew after its last client, also with another format.
#[test]
fn clients_of_a_group_share_its_format_and_the_next_group_has_another() {
    const FRAMES: u64 = 1_000;
    let server = serve(60, FRAMES, server_options(group()));
    let connect = |format: Option<Format>| {
        let mut options = client_options();
        options.format = format;
        let witness = Arc::new(Witness::new(Pictures::Numbered(FRAMES)));
        TextureClient::connect(server.local_address(), witness, options)
    };
    let refused = |format| match connect(format) {
        Err(TextureError::Ended(stopped)) => stopped.text,
        other => panic!("{other:?}"),
    };
    let first = connect(Some(Format::Bc1)).unwrap();
    let any = connect(None).unwrap();
    assert_eq!(any.shape().unwrap().layout().format(), Format::Bc1);
    assert!(refused(Some(Format::YCoCgBc3)).contains("the group's frames are bc1"));
    let mut options = client_options();
    options.units = 2;
    let witness = Arc::new(Witness::new(Pictures::Numbered(FRAMES)));
    let error = TextureClient::connect(server.local_address(), witness, options).unwrap_err();
    assert!(error.to_string().contains("clients of a group share"), "{error}");
    first.stop();
    any.stop();
    // The server sees their ends a moment later.
    let start = Instant::now();
    let other = loop {
        match connect(Some(Format::YCoCgBc3)) {
            Ok(client) => break client,
            Err(error) => assert!(start.elapsed() < HANGS, "{error}"),
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(other.shape().unwrap().layout().format(), Format::YCoCgBc3);
    other.stop();
}

/// The units of a group have sockets and threads until its last client leaves, also if the first one has left before.
#[test]
fn the_units_of_a_group_count_until_its_last_client_has_left() {
    // With as many clients as the server takes, each would have 40 of 128 units: 48 remain for one beside a group.
    // Others may use the ports after those of three units.
    let SocketAddr::V4(mut to) = group() else { unreachable!() };
    let [.., c, d] = to.ip().octets();
    to.set_ip([239, 254, c, d].into());
    let mut options = server_options(to.into());
    (options.units, options.clients_max) = (40, 3);
    let server = serve(30, 10_000, options);
    let connect = |transport: Transport, units: u8| {
        let mut options = client_options();
        (options.transport, options.units) = (Some(transport), units);
        Viewer::of(&server, Pictures::Round(10_000), options).client
    };
    let wait_for = |clients: usize| {
        let start = Instant::now();
        while server.counts().clients != clients {
            assert!(start.elapsed() < HANGS, "{:?}", server.counts());
            thread::sleep(Duration::from_millis(5));
        }
    };
    let units = |client: &TextureClient| client.shape().unwrap().plan().units();
    let [first, second] = [(); 2].map(|()| connect(Transport::Multicast, 0));
    assert_eq!((units(&first), units(&second)), (40, 40));
    first.stop();
    wait_for(1);
    let beside = connect(Transport::Udp, 64);
    assert_eq!(units(&beside), 48, "the group's were not counted");
    second.stop();
    beside.stop();
    wait_for(0);
    let alone = connect(Transport::Udp, 64);
    assert_eq!(units(&alone), 48, "the group's are still counted");
    alone.stop();
}

#[test]
fn what_is_no_group_is_refused() {
    for address in ["10.1.2.3:7100", "239.1.2.3:0", "239.1.2.3:65500"] {
        let address = address.parse().unwrap();
        let noise = Noise::new(layout(), 30, 1);
        let local = "127.0.0.1:0".parse().unwrap();
        let error = TextureServer::serve(local, noise, server_options(address)).unwrap_err();
        assert!(matches!(error, TextureError::Group(it) if it == address), "{error}");
    }
    let server = serve(30, 30, ServerOptions::default());
    let witness = Arc::new(Witness::new(Pictures::Numbered(30)));
    let refused = TextureClient::connect(server.local_address(), witness, client_options());
    assert!(refused.unwrap_err().to_string().contains("the server has no multicast group"));
}

/// Everyone can send to a group: what does not come from the server's port is not read.
#[test]
fn strangers_in_the_group_change_no_octet() {
    const FRAMES: u64 = 60;
    let to = group();
    let server = serve(60, FRAMES, server_options(to));
    let viewer = Viewer::connect(&server, FRAMES, client_options());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let stranger = scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let (mut sent, mut number) = (0_u64, 0_u32);
            while !stop.load(Ordering::Relaxed) && sent < 1_000_000 {
                number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let mut packet = [0xee; 1_412];
                packet[..4].copy_from_slice(&(number >> 8 & 0x3f00_007f).to_be_bytes());
                let unit =
                    SocketAddr::new(to.ip(), to.port() + (number >> 16) as u16 % UNITS as u16);
                let _ = socket.send_to(&packet, unit);
                sent += 1;
                thread::sleep(Duration::from_micros(50));
            }
            sent
        });
        let seen = viewer.end();
        stop.store(true, Ordering::Relaxed);
        assert!(stranger.join().unwrap() > 1_000);
        seen
    });
    assert_eq!((seen.frames_whole, seen.packets_invalid), (FRAMES, 0), "{seen:?}");
}
