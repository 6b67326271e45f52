//! A stream over a path that loses packets.

use std::thread;
use std::time::{Duration, Instant};

use rushes::proto::stream::{ReceiveStatistics, SendStatistics};
use rushes::{MediaStream, StreamBuilder};
use rushes_netsim::{Loss, Path, Relay, Way};

/// Time after which a run counts as hung.
pub(crate) const HANGS: Duration = Duration::from_secs(60);

/// How long a receiver waits for further frames.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);

/// Returns a path that loses this share of the packets.
pub(crate) fn losing(share: f64) -> Path {
    Path { loss: Loss::Independent(share), ..Path::default() }
}

pub(crate) fn frame(n: u32) -> Vec<u8> {
    let octets = (0..8000_u32).map(|i| (i.wrapping_mul(7) ^ n) as u8);
    n.to_be_bytes().into_iter().chain(octets).collect()
}

/// The outcome of one run.
pub(crate) struct Run {
    pub(crate) whole: u32,
    pub(crate) sent: SendStatistics,
    pub(crate) received: ReceiveStatistics,
    /// Packets lost on the path or dropped by the kernel before the receiver read them.
    pub(crate) lost: u64,
}

/// Streams frames, one every two milliseconds, over a path that is `path` in these `ways` once the
/// first frame has arrived, and checks that each received frame is intact.
pub(crate) fn run(
    mut receiver: MediaStream,
    sender: StreamBuilder,
    frames: u32,
    (ways, path): (&'static [Way], Path),
) -> Run {
    let relay = Relay::to(receiver.local_address()).with_control().start().unwrap();
    let mut sender = sender.remote_port(relay.address().port()).open().unwrap();
    let pushing = thread::spawn(move || {
        let start = Instant::now();
        for n in 0..frames {
            // This side pulls nothing; it answers requests while it waits.
            sender.sender().wait_until(start + n * Duration::from_millis(2)).unwrap();
            sender.push_frame(&frame(n), None).unwrap();
            // A late sender must not catch up at once, which would overflow the buffers of the
            // relay's sockets.
            let sent = |sent: SendStatistics| sent.packets + sent.repairs + sent.retransmitted;
            while relay.media(Way::There).sent < sent(sender.statistics().send) {
                assert!(start.elapsed() < HANGS, "{:?}", relay.media(Way::There));
                sender.sender().wait_until(Instant::now() + Duration::from_micros(200)).unwrap();
            }
            // A receiver counts from the first packet that it receives.
            if n == 0 {
                for way in ways {
                    relay.set_path(*way, path.clone());
                }
            }
        }
        // From here on, the path loses nothing, so that goodbyes and other late packets arrive.
        for way in ways {
            relay.set_path(*way, Path::default());
        }
        sender.sender().send_keep_alive().unwrap();
        sender.sender().wait_until(Instant::now() + SILENCE).unwrap();
        (sender.statistics().send, relay)
    });
    let mut whole = 0;
    while let Some(came) = receiver.pull_frame(SILENCE).unwrap() {
        let n = u32::from_be_bytes([came[0], came[1], came[2], came[3]]);
        assert!(came[..] == frame(n)[..], "frame {n} is damaged");
        whole += 1;
    }
    let (sent, relay) = pushing.join().unwrap();
    let statistics = receiver.statistics();
    let lost = relay.media(Way::There).lost + statistics.socket.kernel_drops;
    Run { whole, sent, received: statistics.receive, lost }
}
