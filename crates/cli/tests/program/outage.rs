//! `send` during network outages, in a separate network namespace (which needs `unshare` and `ip`).

use std::io::Write;
use std::process::{Command, Stdio};

use crate::program::program;
use crate::rig::{MEDIA, RunningProgram, media};

/// Returns whether this machine allows network namespaces.
fn has_networks() -> bool {
    let script = "ip link set lo up && ip addr flush dev lo";
    let tried = Command::new("unshare").args(["-rn", "sh", "-c", script]).output();
    let has = tried.is_ok_and(|output| output.status.success());
    if !has {
        crate::skipped::not_here("no network namespaces, or no ip(8)");
    }
    has
}

/// Starts a sender in a network whose only interface is down. Each line written to it runs the next
/// of `steps`; after the last it waits for the sender.
fn sending(more: &[&str], steps: &[&str]) -> RunningProgram {
    let mut script = "\"$@\" & sender=$!".to_owned();
    for step in steps {
        script = [&script, "read line", step].join("; ");
    }
    script += "; wait $sender";
    let mut command = Command::new("unshare");
    command.args(["-rn", "sh", "-c", &script, "sh"]);
    command.arg(program());
    command.args(["send", &media(MEDIA[1]), "--to", "127.0.0.1:9"]).args(more);
    RunningProgram::of(command.stdin(Stdio::piped()))
}

fn next_step(sender: &mut RunningProgram) {
    sender.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}

#[test]
fn a_network_that_comes_back_is_gone_on_with() {
    if !has_networks() {
        return;
    }
    for pace in [&["--fps", "50"][..], &["--flat-out"], &["--fps", "50", "--no-rtcp"]] {
        let more = [pace, &["--loop", "1000000", "--give-up", "100s"]].concat();
        let steps = [
            "ip link set lo up",
            "ip addr flush dev lo",
            "ip addr add 127.0.0.1/8 dev lo",
            "kill -INT $sender",
        ];
        let mut sender = sending(&more, &steps);
        for _ in 0..2 {
            sender.wait_for("trying again");
            next_step(&mut sender);
            sender.wait_for("sending works again");
            next_step(&mut sender);
        }
        let (status, log) = sender.end();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("frames could not be sent"), "{log}");
    }
}

#[test]
fn a_network_that_stays_away_is_given_up() {
    if !has_networks() {
        return;
    }
    for pace in [&["--fps", "50"][..], &["--flat-out"]] {
        let more = [pace, &["--loop", "1000000", "--give-up", "200ms"]].concat();
        let (status, log) = sending(&more, &[]).end();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("--give-up") && log.contains("unreachable"), "{log}");
        assert_eq!(log.matches("trying again").count(), 1, "{log}");
    }
}
