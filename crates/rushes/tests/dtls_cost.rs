//! What keys by DTLS cost a stream, beside keys that were given: a table, printed by
//! `cargo test --release -p rushes --features webrtc --test dtls_cost -- --ignored --nocapture`.
#![cfg(all(feature = "webrtc", target_os = "linux"))]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use rushes::dtls::{Certificate, DtlsConfig, Setup};
use rushes::peer::{Direction, Peer};
use rushes::{Codec, Context, MediaStream, Pacing, Security, StreamBuilder, Suite};

const PATIENCE: Duration = Duration::from_secs(20);
/// Octets of a frame, frames of a run, and runs of each row.
const FRAME: usize = 100_000;
const FRAMES: usize = 5_000;
const RUNS: usize = 9;

/// A sender and a receiver.
type Pair = (MediaStream, MediaStream);

fn stream() -> StreamBuilder {
    let session = Context::new().session("127.0.0.1").unwrap();
    session.stream(Codec::H264).rtcp_mux(true).pacing(Pacing::Off)
}

fn spare_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Keys that both ends were given, of the suite that DTLS agrees on.
fn given() -> Pair {
    let keys = [[1; 44], [2; 44]];
    let suite = Suite::AeadAes256Gcm;
    let [ours, theirs] = [[0, 1], [1, 0]]
        .map(|[send, receive]| Security::separate(suite, &keys[send], &keys[receive]).unwrap());
    let port = spare_port();
    let receiver = stream().security(theirs).remote_port(port).open().unwrap();
    let to = receiver.local_address().port();
    (stream().security(ours).local_port(port).remote_port(to).open().unwrap(), receiver)
}

/// Keys by DTLS.
fn agreed() -> Pair {
    let [ours, theirs] = [(); 2].map(|()| Certificate::generate().unwrap());
    let secured = |own: &Certificate, peer: &Certificate, setup| {
        let mut config = DtlsConfig::new(vec![peer.fingerprint()]);
        (config.certificate, config.setup) = (Some(own.clone()), setup);
        Security::Dtls(config)
    };
    let port = spare_port();
    let receiving = stream().security(secured(&theirs, &ours, Setup::Passive)).remote_port(port);
    let mut receiving = receiving.begin().unwrap();
    let to = receiving.local_address().port();
    let sending = stream().security(secured(&ours, &theirs, Setup::Active)).local_port(port);
    let mut sending = sending.remote_port(to).begin().unwrap();
    let receiving = thread::spawn(move || receiving.wait(PATIENCE).unwrap().unwrap());
    (sending.wait(PATIENCE).unwrap().unwrap(), receiving.join().unwrap())
}

/// Keys by DTLS on a path that ICE has found, as browsers have it: packets of 1 280 octets.
fn peers() -> (Pair, [Peer; 2]) {
    let new = || Context::new().peer().local_address("127.0.0.1").unwrap().open().unwrap();
    let (mut ours, mut theirs) = (new(), new());
    ours.add(ours.stream(Codec::H264).pacing(Pacing::Off), Direction::SendOnly);
    theirs.add(theirs.stream(Codec::H264), Direction::RecvOnly);
    let offer = ours.offer().unwrap();
    ours.set_answer(&theirs.answer(&offer).unwrap()).unwrap();
    let receiving = thread::spawn(move || (theirs.connect(PATIENCE).unwrap().unwrap(), theirs));
    let mut sent = ours.connect(PATIENCE).unwrap().unwrap();
    let (mut received, theirs) = receiving.join().unwrap();
    ((sent.remove(0).stream, received.remove(0).stream), [ours, theirs])
}

/// Returns the seconds that this thread has had a processor for, in user and system mode.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Sends frames, receives each, and returns the seconds of CPU time for 10⁹ octets.
fn cost((sender, receiver): &mut Pair, frames: usize) -> f64 {
    let mut frame = vec![0x55; FRAME];
    // A slice that begins with macroblock 0. Before one of another the receiver would miss a slice, and drop the frame.
    frame[..6].copy_from_slice(&[0, 0, 0, 1, 0x65, 0x88]);
    let start = cpu_time();
    for _ in 0..frames {
        sender.push_frame(&frame, None).unwrap();
        let received = receiver.pull_frame(PATIENCE).unwrap().unwrap();
        assert_eq!(received.len(), frame.len());
    }
    (cpu_time() - start) / (frames * FRAME) as f64 * 1e9
}

#[test]
#[ignore = "a measurement, for a quiet machine and an optimised build"]
fn keys_by_dtls_cost_a_stream_no_more_than_given_ones() {
    let names = ["given keys", "DTLS", "ICE and DTLS"];
    let (peers, _held) = peers();
    let mut rows = [given(), agreed(), peers];
    let mut costs = [const { Vec::new() }; 3];
    for row in &mut rows {
        cost(row, FRAMES / 10);
    }
    for _ in 0..RUNS {
        for (row, costs) in rows.iter_mut().zip(&mut costs) {
            costs.push(cost(row, FRAMES));
        }
    }
    let medians = costs.map(|mut costs: Vec<f64>| {
        costs.sort_by(f64::total_cmp);
        costs[RUNS / 2]
    });
    println!(
        "CPU s/GB of sender and receiver, {RUNS} runs in turns of {FRAMES} frames of {FRAME}:"
    );
    for (name, median) in names.iter().zip(medians) {
        println!("{name:13} {median:.3}  {:+.1} %", 100.0 * (median / medians[0] - 1.0));
    }
}
