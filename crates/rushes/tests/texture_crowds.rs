//! Hosts that take every session of a texture server, and the client that is served nevertheless.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rushes::delivery::control::{Message, Opening, Reason, Wishes};
use rushes::texture::{
    ClientOptions, Format, Layout, ServerOptions, TextureClient, TextureError, TextureServer,
    Transport,
};
use socket2::{Domain, Socket, Type};

use texture_world::noise::Noise;
use texture_world::stranger::{Stranger, binding, opening, wishes};
use texture_world::witness::{Pictures, Witness};

const HANGS: Duration = Duration::from_secs(30);
const PICTURES: u64 = 8;

fn serve(change: impl Fn(&mut ServerOptions)) -> TextureServer {
    let layout = Layout::new(Format::Bc1, 320, 180).unwrap();
    let mut options = ServerOptions::default();
    (options.units, options.loops) = (2, true);
    change(&mut options);
    let noise = Noise::new(layout, 50, PICTURES);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// A connection from another address of this machine.
fn from_host(host: u8, server: SocketAddr) -> Stranger {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let local = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
    socket.bind(&local.into()).unwrap();
    socket.connect(&server.into()).unwrap();
    Stranger::new(TcpStream::from(socket))
}

/// Requests a session and binds no unit; returns the reason if it is refused.
fn connect_from(host: u8, server: SocketAddr, units: u8) -> Result<Stranger, (Reason, String)> {
    let mut stranger = from_host(host, server);
    let wishes = Wishes { units, ..wishes(Transport::Udp) };
    stranger.send_octets(&opening(Opening::Control(wishes)));
    match stranger.receive() {
        Some(Message::Offer(_)) => Ok(stranger),
        Some(Message::Refuse { reason, text }) => Err((reason, text)),
        other => panic!("{other:?}"),
    }
}

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

struct Viewer(TextureClient, Arc<Witness>);

impl Viewer {
    fn connect(server: SocketAddr) -> Result<Self, TextureError> {
        let witness = Arc::new(Witness::new(Pictures::Round(PICTURES)));
        let mut options = ClientOptions::default();
        (options.deadline_min, options.deadline_max) = (HANGS, HANGS);
        Ok(Self(TextureClient::connect(server, witness.clone(), options)?, witness))
    }

    /// Waits for this number of further frames and checks each.
    fn see(&self, frames: u64) {
        let (until, enough) = (Instant::now() + HANGS, self.1.seen().frames + frames);
        while self.1.seen().frames < enough {
            assert!(Instant::now() < until, "no frames: {:?}", self.0.statistics());
            std::thread::sleep(Duration::from_millis(5));
        }
        let seen = self.1.seen();
        assert!(seen.faults.is_empty() && seen.damaged == 0, "{seen:?}");
    }
}

#[test]
fn hosts_that_request_everything_and_bind_nothing_lock_out_no_client() {
    let server = serve(|_| {});
    let address = server.local_address();
    let before = (count("/proc/self/fd"), count("/proc/self/task"));
    let viewer = Viewer::connect(address).unwrap();
    viewer.see(5);
    // Two hosts could take all other sessions and all units.
    let crowd: Vec<_> = (0..40)
        .map(|n| connect_from(2 + n % 2, address, 64).expect("the oldest is evicted"))
        .collect();
    assert!(server.counts().clients <= 8);
    // A viewer has a few threads and files, an open connection has two, and each of at most 128
    // units has a thread, a socket and a waker.
    let threads = count("/proc/self/task") - before.1;
    let files = count("/proc/self/fd") - before.0;
    assert!(threads < 128 + 8 + 64 && files < 2 * (128 + 40) + 64, "{threads}, {files}");
    viewer.see(5);
    // A new viewer is served although the others never disconnected.
    let another = Viewer::connect(address).unwrap();
    another.see(5);
    assert!((0..4).all(|_| connect_from(2, address, 0).is_ok()));
    viewer.see(5);
    another.see(5);
    drop(crowd);
}

#[test]
fn one_host_has_at_most_its_share_of_sessions() {
    let server = serve(|options| options.clients_per_host_max = 2);
    let address = server.local_address();
    let viewers = [(); 2].map(|()| Viewer::connect(address).unwrap());
    for viewer in &viewers {
        viewer.see(3);
    }
    let error = Viewer::connect(address).err().unwrap().to_string();
    assert!(error.contains("this host already has 2 clients"), "{error}");
    // Another host may still connect.
    connect_from(2, address, 1).unwrap();
    for viewer in &viewers {
        viewer.see(3);
    }
}

#[test]
fn a_client_that_wishes_all_units_leaves_the_others_theirs() {
    let server = serve(|_| {});
    let address = server.local_address();
    let mut offered = Vec::new();
    let mut crowd = Vec::new();
    for host in 2..10 {
        let mut stranger = from_host(host, address);
        let wishes = Wishes { units: 64, ..wishes(Transport::Udp) };
        stranger.send_octets(&opening(Opening::Control(wishes)));
        let Some(Message::Offer(offer)) = stranger.receive() else { panic!("no offer") };
        offered.push(offer.unit_count());
        crowd.push(stranger);
    }
    assert!(offered.iter().all(|units| *units >= 2), "{offered:?}");
    assert!(offered.iter().sum::<usize>() <= 128, "{offered:?}");
}

#[test]
fn a_connection_binds_no_unit_that_uses_datagrams() {
    let server = serve(|_| {});
    let address = server.local_address();
    for transport in [Transport::Udp, Transport::Rtp] {
        let mut stranger = from_host(2, address);
        let wishes = Wishes { units: 1, ..wishes(transport) };
        stranger.send_octets(&opening(Opening::Control(wishes)));
        let Some(Message::Offer(offer)) = stranger.receive() else { panic!("no offer") };
        // This host is an attacker that has read the token on the path.
        let mut other = from_host(3, address);
        other.send_octets(&binding(offer.token, 0));
        let end = other.receive();
        assert!(matches!(end, Some(Message::Refuse { reason: Reason::Token, .. })), "{end:?}");
    }
}
