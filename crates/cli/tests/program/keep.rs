//! `recv --keep`: one file for each sender.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::time::{Duration, Instant};

use rushes_netsim::{Conditions, Loss, Path as Way, Relay};
use serde_json::Value;

use crate::rig::{MEDIA, free_port, interrupt, media, receiving, run, rushes, text, units};
use crate::strangers::ended;

const PATIENCE: Duration = Duration::from_secs(120);

const SECURED: [&str; 4] =
    ["--srtp", "AEAD_AES_128_GCM", "--key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw=="];

/// A receiver that keeps on, and its folder.
struct Keeper {
    folder: tempfile::TempDir,
    name: &'static str,
    port: u16,
    child: Child,
}

impl Keeper {
    fn new(name: &'static str, more: &[&str]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let from = format!("127.0.0.1:{port}");
        let arguments = [&["--from", &from], more].concat();
        let child = receiving(port, &arguments, &folder.path().join(name));
        Self { folder, name, port, child }
    }

    fn file(&self, number: usize) -> PathBuf {
        let (stem, extension) = self.name.rsplit_once('.').unwrap();
        match number {
            1 => self.folder.path().join(self.name),
            _ => self.folder.path().join(format!("{stem}-{number}.{extension}")),
        }
    }

    /// Waits until file `number` is whole.
    fn wait_for(&self, number: usize) {
        let deadline = Instant::now() + PATIENCE;
        while !self.file(number).exists() {
            assert!(Instant::now() < deadline, "file {number} is not written");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the receiver; returns its output, its reports and the names of its files.
    fn end(self) -> (Output, Vec<Value>, Vec<String>) {
        interrupt(&self.child);
        let output = self.child.wait_with_output().unwrap();
        let reports = text(&output.stdout);
        let reports = reports.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        (output, reports, names)
    }
}

fn send(to: &str, more: &[&str]) -> Output {
    run(&[&["send", &media(MEDIA[1]), "--to", to, "--fps", "200"], more].concat())
}

fn is_whole(copy: &Path) -> bool {
    units(copy) == units(Path::new(&media(MEDIA[1])))
}

#[test]
fn a_restarted_sender_has_the_next_file_in_clear_and_secured() {
    for secured in [&[][..], &SECURED, &["--zrtp"]] {
        let keeper = Keeper::new("copy.265", &[&["--keep"], secured].concat());
        let to = format!("127.0.0.1:{}", keeper.port);
        for number in 1..=3 {
            // The next sender does not wait until the file is whole.
            let sent = send(&to, secured);
            assert!(sent.status.success(), "{secured:?} {number}: {}", text(&sent.stderr));
        }
        keeper.wait_for(3);
        for number in 1..=3 {
            assert!(is_whole(&keeper.file(number)), "{secured:?}: file {number} differs");
        }
        let path = keeper.file(2).display().to_string();
        let (output, reports, names) = keeper.end();
        assert!(output.status.success(), "{secured:?}: {}", text(&output.stderr));
        assert_eq!(names, ["copy-2.265", "copy-3.265", "copy.265"], "{secured:?}");
        assert_eq!(reports.len(), 3);
        assert!(reports.iter().all(|report| report["complete"] == true && report["end"] == "bye"));
        assert_eq!(reports[1]["file"], path);
        assert_eq!(reports[1]["other_sources"]["packets"], 0, "{}", reports[1]);
    }
}

#[test]
fn a_killed_sender_ends_its_file_and_the_next_begins_another() {
    for secured in [&[][..], &SECURED] {
        let keeper = Keeper::new("copy.265", &[&["--keep"], secured].concat());
        let to = format!("127.0.0.1:{}", keeper.port);
        let endless = ["send", &media(MEDIA[1]), "--to", &to, "--fps", "50", "--loop", "0"];
        let mut killed = rushes(&[&endless, secured].concat()).spawn().unwrap();
        let part = keeper.folder.path().join("copy.265.part");
        let deadline = Instant::now() + PATIENCE;
        while part.metadata().map_or(0, |it| it.len()) == 0 {
            assert!(Instant::now() < deadline, "nothing is written");
            std::thread::sleep(Duration::from_millis(20));
        }
        killed.kill().unwrap();
        killed.wait().unwrap();
        let sent = send(&to, secured);
        assert!(sent.status.success(), "{}", text(&sent.stderr));
        keeper.wait_for(2);
        assert!(is_whole(&keeper.file(2)), "{secured:?}: the file differs");
        let (output, reports, names) = keeper.end();
        assert_eq!(names, ["copy-2.265", "copy.265"], "{}", text(&output.stderr));
        assert_eq!([&reports[0]["end"], &reports[1]["end"]], ["silence", "bye"]);
    }
}

#[test]
fn a_file_that_exists_is_left_and_one_without_a_frame_is_not() {
    let keeper = Keeper::new("copy.265", &["--keep=2"]);
    let to = format!("127.0.0.1:{}", keeper.port);
    std::fs::write(keeper.file(2), "mine").unwrap();
    for _ in 0..2 {
        assert!(send(&to, &[]).status.success());
    }
    keeper.wait_for(3);
    assert!(is_whole(&keeper.file(1)) && is_whole(&keeper.file(3)));
    assert_eq!(std::fs::read(keeper.file(2)).unwrap(), b"mine");
    // So many files were asked for.
    let Keeper { folder, child, .. } = keeper;
    let output = ended(child);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_file_that_lost_packets_is_remembered_in_the_exit_code() {
    let keeper = Keeper::new("copy.265", &["--keep", "--reorder-time", "100ms"]);
    let to = format!("127.0.0.1:{}", keeper.port);
    let conditions = Conditions::both(Way { loss: Loss::Outage(30..45), ..Way::default() });
    let relay = Relay::to(to.parse().unwrap()).with_control().conditions(conditions);
    let relay = relay.seed(3).start().unwrap();
    assert!(send(&relay.address().to_string(), &[]).status.success());
    relay.finish();
    keeper.wait_for(1);
    assert!(send(&to, &[]).status.success());
    keeper.wait_for(2);
    assert!(is_whole(&keeper.file(2)));
    let (output, reports, _) = keeper.end();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert_eq!([&reports[0]["complete"], &reports[1]["complete"]], [false, true]);
}

#[test]
fn lost_packets_are_recovered_in_each_file() {
    let recovery = ["--recovery", "rtx", "--latency", "5s"];
    let keeper = Keeper::new("copy.265", &[&["--keep"], &recovery[..]].concat());
    let to = format!("127.0.0.1:{}", keeper.port);
    for number in 1..=2 {
        let way = Way { loss: Loss::Outage(30..45), ..Way::default() };
        let relay = Relay::to(to.parse().unwrap()).with_control();
        let relay = relay.conditions(Conditions::both(way)).seed(3).start().unwrap();
        assert!(send(&relay.address().to_string(), &recovery[..2]).status.success());
        relay.finish();
        keeper.wait_for(number);
        assert!(is_whole(&keeper.file(number)), "file {number} differs");
    }
    let (output, _, names) = keeper.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(names, ["copy-2.265", "copy.265"]);
}

#[test]
fn a_flooding_stranger_makes_no_file() {
    let keeper = Keeper::new("copy.265", &["--keep"]);
    let (port, to) = (keeper.port, format!("127.0.0.1:{}", keeper.port));
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let flood = std::thread::spawn(move || {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut ssrc = 1_u32;
        // Packets of the right type, each from another source, and other datagrams.
        while stopped
            .recv_timeout(Duration::from_millis(1))
            .is_err_and(|error| error == std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            ssrc = ssrc.wrapping_mul(0x9e37_79b1).wrapping_add(1);
            let packet = [&[0x80, 97, 0, 7, 0, 0, 0, 0][..], &ssrc.to_be_bytes(), &[2, 1, 0]];
            socket.send_to(&packet.concat(), ("127.0.0.1", port)).unwrap();
            socket.send_to(&ssrc.to_be_bytes(), ("127.0.0.1", port)).unwrap();
        }
    });
    for number in 1..=2 {
        assert!(send(&to, &[]).status.success());
        keeper.wait_for(number);
        assert!(is_whole(&keeper.file(number)), "file {number} differs");
    }
    drop(stop);
    flood.join().unwrap();
    let (output, reports, names) = keeper.end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((reports.len(), names.len()), (2, 2), "{names:?}");
}
