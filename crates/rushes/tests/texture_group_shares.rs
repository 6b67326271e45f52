//! Clients of a multicast group share what may be requested: one that requests everything does not starve the others.
#![cfg(all(feature = "texture", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod texture_world;

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rushes::delivery::control::{Abilities, Message, Nack, Offer};
use rushes::texture::{
    Format, Layout, MulticastGroup, ServerOptions, TextureServer, Timing, Transport,
};
use rushes_netsim::Seeded;
use socket2::{Domain, Socket, Type};

use texture_world::noise::Noise;
use texture_world::stranger::{Stranger, wishes};

const FRAMES: u64 = 40;
/// A frame is kept for longer than a thread of a busy machine waits.
const FPS: u32 = 10;
const UNITS: usize = 2;
const PAYLOAD: usize = 1_408;
/// Packets of each frame that the honest client lost: less than its share, an eighth.
const LOST: u64 = 8;

fn group() -> SocketAddrV4 {
    let [a, b, c, _] = std::process::id().to_le_bytes();
    SocketAddrV4::new(Ipv4Addr::new(239, 253, b, c), 20_000 + u16::from(a) * 40)
}

fn serve(layout: Layout) -> TextureServer {
    let mut options = ServerOptions::default();
    (options.units, options.payload, options.timing) = (UNITS, PAYLOAD, Timing::EveryFrame);
    options.multicast = Some(MulticastGroup::new(group().into()));
    let noise = Noise::new(layout, FPS, FRAMES);
    TextureServer::serve("127.0.0.1:0".parse().unwrap(), noise, options).unwrap()
}

/// Joins the group by hand.
fn join(server: SocketAddr) -> (Stranger, Offer) {
    let mut stranger = Stranger::connect(server);
    let mut wishes = wishes(Transport::Multicast);
    wishes.transports = wishes.transports.with(Transport::Multicast);
    wishes.units = 0;
    wishes.abilities = Abilities::RECOVERY.with(Abilities::FEC).with(Abilities::COLOUR);
    let offer = stranger.request(wishes);
    stranger.accept();
    let message = stranger.receive();
    assert!(matches!(message, Some(Message::Start { .. })), "{message:?}");
    (stranger, offer)
}

/// Returns a socket that receives a unit of the group.
fn listen(unit: usize) -> UdpSocket {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.set_recv_buffer_size(4 << 20).unwrap();
    let at = SocketAddrV4::new(*group().ip(), group().port() + unit as u16);
    socket.bind(&SocketAddr::from(at).into()).unwrap();
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(at.ip(), &Ipv4Addr::LOCALHOST).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}

/// Returns the packets that are sent again, by the octet of their frame and their number, until `is_over`.
fn sent_again(unit: usize, packets: u32, is_over: &AtomicBool) -> HashSet<(u8, u32)> {
    let (socket, mut again) = (listen(unit), HashSet::new());
    let mut packet = [0; 2 * PAYLOAD];
    loop {
        match socket.recv(&mut packet) {
            Ok(4..) => {
                let [frame, a, b, c] = *packet.first_chunk().unwrap();
                let index = u32::from_be_bytes([0, a, b, c]).checked_sub(packets);
                again.extend(index.map(|index| (frame, index)));
            }
            Err(_) if is_over.load(Ordering::Acquire) => return again,
            Ok(_) | Err(_) => {}
        }
    }
}

/// Requests everything all the time: of the frame that is being sent, and of those before it.
fn request_everything(mut stranger: Stranger, packets: u32, next: &AtomicU64, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        let next = next.load(Ordering::Acquire);
        for frame in next.saturating_sub(3)..=next {
            let nack = Nack { frame, packets: std::iter::once(0..packets).collect() };
            if !stranger.send(&Message::Nack(nack)) {
                return;
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Requests packets of each frame, as a client that lost them; returns them.
fn request_lost(stranger: &mut Stranger, packets: u32, next: &AtomicU64) -> HashSet<(u8, u32)> {
    let (mut random, mut requested) = (Seeded(7), HashSet::new());
    while let Some(message) = stranger.receive() {
        let Message::Frame(notice) = message else { continue };
        next.store(notice.number + 1, Ordering::Release);
        // Not of the first quarter, which the other client gets when it requests everything.
        let mut lost: Vec<_> = (0..LOST)
            .map(|_| packets / 4 + random.below(u64::from(packets * 3 / 4)) as u32)
            .collect();
        lost.sort_unstable();
        lost.dedup();
        requested.extend(lost.iter().map(|index| (notice.number as u8, *index)));
        let packets = lost.into_iter().map(|index| index..index + 1).collect();
        let _ = stranger.send(&Message::Nack(Nack { frame: notice.number, packets }));
    }
    requested
}

#[test]
fn a_client_that_requests_everything_does_not_starve_another() {
    let layout = Layout::new(Format::Rgb24, 320, 180).unwrap();
    let server = serve(layout);
    let (mut honest, offer) = join(server.local_address());
    let plane = &layout.planes()[0];
    let stripe = plane.row_bytes * offer.stripe_rows as usize;
    let unit = layout.bytes() / UNITS;
    let plan = rushes::delivery::Plan::new(&[(unit, stripe); UNITS], PAYLOAD).unwrap();
    let packets = plan.packets();
    let (greedy, _) = join(server.local_address());
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let (next, stop) = (&next, &stop);
        let units: Vec<_> =
            (0..UNITS).map(|unit| scope.spawn(move || sent_again(unit, packets, stop))).collect();
        scope.spawn(move || request_everything(greedy, packets, next, stop));
        let requested = request_lost(&mut honest, packets, next);
        stop.store(true, Ordering::Release);
        let again: HashSet<_> = units.into_iter().flat_map(|it| it.join().unwrap()).collect();
        let answered = requested.intersection(&again).count();
        let counts = server.counts();
        println!("{answered} of {}: {counts:?}", requested.len());
        // Nearly all; some frames may be gone on a busy machine.
        assert!(answered * 4 >= requested.len() * 3, "{answered} of {}", requested.len());
        let most = FRAMES * u64::from(packets) / 4;
        assert!(counts.packets_retransmitted <= most, "{counts:?}");
    });
}
