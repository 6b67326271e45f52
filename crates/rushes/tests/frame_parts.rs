//! Frames that are sent in parts to a link that is too narrow for them, in a network namespace of their own
//! (which needs `unshare`, `ip`, `tc` and `tbf`; otherwise the test is skipped with a message).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../../../interop/skipped.rs"]
mod skipped;

use std::process::Command;
use std::time::{Duration, Instant};

use rushes::{Codec, Context, Error, Pacing, Poller, StreamBuilder};

const TIME: Duration = Duration::from_secs(20);

/// Runs an ignored test of this program where what this host sends to itself goes at 20 Mbit/s.
fn run_behind_narrow_link(test: &str) {
    let queue = "ip link set lo up && tc qdisc add dev lo root tbf rate 20mbit burst 16k limit 4m";
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rn", "sh", "-c", script, "sh"]);
        command
    };
    if !in_namespace(queue).output().is_ok_and(|output| output.status.success()) {
        return skipped::not_here("no network namespaces, or no ip(8) or tc(8) with tbf");
    }
    let mut command = in_namespace(&format!("{queue} && exec \"$@\""));
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--ignored"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// A stream whose send buffer has room for a tenth of a frame.
fn with_small_buffer(builder: StreamBuilder) -> StreamBuilder {
    builder.socket_buffer(20_000).pacing(Pacing::Off)
}

#[test]
fn a_full_send_buffer_delays_the_rest_of_a_frame() {
    run_behind_narrow_link("waits_for_room");
}

#[test]
#[ignore = "needs a narrow link"]
fn waits_for_room() {
    let session = Context::new().session("127.0.0.1").unwrap();
    let mut poller = Poller::new().unwrap();
    let receiver = session.stream(Codec::Generic).open().unwrap().split().unwrap().1;
    let to = receiver.local_address().port();
    poller.add(receiver, 0).unwrap();
    let stream = with_small_buffer(session.stream(Codec::Generic).remote_port(to));
    let mut sender = stream.open().unwrap().split().unwrap().0;
    for number in 0..3 {
        let frame: Vec<u8> = (0..200_000_u32).map(|at| (at * 31 % 251 + number) as u8).collect();
        let mut due = sender.begin_frame(frame.as_slice().into(), None, Instant::now()).unwrap();
        assert!(due.is_some(), "it is sent at once");
        let (mut received, mut parts) = (None, 1);
        while due.is_some() || received.is_none() {
            let wait = due.map_or(TIME, |due| due.saturating_duration_since(Instant::now()));
            received = poller.pull(wait).unwrap().or(received);
            parts += u32::from(due.is_some());
            due = due.and_then(|_| sender.continue_frame().unwrap());
        }
        assert!(received.unwrap().1.data() == frame && parts > 3, "{parts}");
    }
    assert_eq!(sender.statistics().frames_cut, 0);
}

#[test]
fn a_send_buffer_that_stays_full_ends_the_frame() {
    run_behind_narrow_link("gives_up");
}

#[test]
#[ignore = "needs a narrow link"]
fn gives_up() {
    let session = Context::new().session("127.0.0.1").unwrap();
    // Nobody listens there. A batch that finds the buffer full is given up at once.
    let stream = session.stream(Codec::Generic).remote_port(9).send_timeout(Duration::ZERO);
    let mut sender = with_small_buffer(stream).open().unwrap().split().unwrap().0;
    // Of many batches, and of one.
    for (count, octets) in [(1, 2_000_000), (2, 30_000)] {
        let mut send = || sender.begin_frame(vec![7; octets].into(), None, Instant::now());
        let failed = (0..1_000).map(|_| send()).find(Result::is_err);
        assert!(matches!(failed, Some(Err(Error::Send(_)))), "{failed:?}");
        assert_eq!(sender.statistics().frames_cut, count);
        assert_eq!(sender.continue_frame().unwrap(), None, "nothing is left");
    }
}
