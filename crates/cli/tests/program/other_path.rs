//! `send --whip` and `recv --whep` when the path to the server dies.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rushes_netsim::Relay;

use crate::rig::{RunningProgram, free_port, interrupt, json, media, rushes, text};

const FILM: &str = "avc_cif_60f_baseline.264";

/// A server of HTTP before another: it leads the media of the session through a relay, the only path.
struct Detour {
    url: String,
    relay: Arc<Mutex<Option<Relay>>>,
    /// The methods of the requests.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Detour {
    /// Begins before the server at `address`, to whose `entry` requests go; `refusal` is the answer to PATCH requests
    /// if it is not the server's.
    fn before(address: String, entry: &str, refusal: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/{entry}", listener.local_addr().unwrap());
        let (relay, requests) = (Arc::default(), Arc::default());
        let detour = Self { url, relay: Arc::clone(&relay), requests: Arc::clone(&requests) };
        thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let request = message(&mut client);
                let method = request.split(' ').next().unwrap().to_owned();
                requests.lock().unwrap().push(method.clone());
                let answer = match (refusal, &*method) {
                    (Some(refusal), "PATCH") => refusal.to_owned(),
                    (_, "POST") => {
                        let answer = exchange(&address, &edit(&request, without));
                        edit(&answer, |answer| redirect(answer, &relay))
                    }
                    _ => exchange(&address, &request),
                };
                client.write_all(answer.as_bytes()).unwrap();
            }
        });
        detour
    }

    fn count(&self, method: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|it| *it == method).count()
    }

    /// Ends the path.
    fn cut(&self) {
        drop(self.relay.lock().unwrap().take().unwrap());
    }
}

/// Reads a request or a response.
fn message(from: &mut TcpStream) -> String {
    let (mut octets, mut more) = (Vec::new(), [0; 4096]);
    loop {
        let read = from.read(&mut more).unwrap();
        octets.extend(&more[..read]);
        let text = text(&octets);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(read > 0, "{text}");
            continue;
        };
        let field = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
        });
        if read == 0 || body.len() >= field.unwrap_or(0) {
            return text;
        }
    }
}

fn exchange(address: &str, request: &str) -> String {
    let mut server = TcpStream::connect(address).unwrap();
    server.write_all(request.as_bytes()).unwrap();
    message(&mut server)
}

/// Changes the body of a message.
fn edit(message: &str, change: impl Fn(&str) -> String) -> String {
    let (head, body) = message.split_once("\r\n\r\n").unwrap();
    let body = change(body);
    let is_other = |line: &&str| !line.to_ascii_lowercase().starts_with("content-length:");
    let head: Vec<_> = head.lines().filter(is_other).collect();
    format!("{}\r\nContent-Length: {}\r\n\r\n{body}", head.join("\r\n"), body.len())
}

/// Leaves the addresses out of a description.
fn without(description: &str) -> String {
    let is_kept = |line: &&str| !line.starts_with("a=candidate:") && *line != "a=end-of-candidates";
    let lines = description.lines().filter(is_kept);
    lines.flat_map(|line| [line, "\r\n"]).collect()
}

/// Puts the address of a relay in place of those of an answer.
fn redirect(answer: &str, place: &Mutex<Option<Relay>>) -> String {
    let candidate = answer.lines().find(|line| line.starts_with("a=candidate:"));
    let port: u16 = candidate.unwrap().split(' ').nth(5).unwrap().parse().unwrap();
    let relay = Relay::to(([127, 0, 0, 1], port).into()).start().unwrap();
    let port = relay.address().port();
    *place.lock().unwrap() = Some(relay);
    let candidate = format!("a=candidate:1 1 udp 2130706431 127.0.0.1 {port} typ host\r\na=mid:");
    without(answer).replacen("a=mid:", &candidate, 1)
}

/// Starts a server, and a publisher whose only path to it is a detour.
fn publishing(refusal: Option<&'static str>) -> (RunningProgram, String, Detour, RunningProgram) {
    let address = format!("127.0.0.1:{}", free_port());
    let mut server = RunningProgram::of(&mut rushes(&["serve", "--http", &address]));
    server.wait_for("in a browser");
    let detour = Detour::before(address.clone(), "whip", refusal);
    let film = media(FILM);
    let arguments = ["send", &film, "--fps", "30", "--loop", "0", "--whip", &detour.url];
    let mut publisher = RunningProgram::of(&mut rushes(&arguments));
    publisher.wait_for("publishing to");
    (server, address, detour, publisher)
}

/// Starts a server that shows a film, and a viewer whose only path to it is a detour.
fn viewing(file: &Path) -> (RunningProgram, Detour, RunningProgram) {
    let address = format!("127.0.0.1:{}", free_port());
    let arguments = ["serve", &media(FILM), "--fps", "30", "--http", &address];
    let mut server = RunningProgram::of(&mut rushes(&arguments));
    server.wait_for("in a browser");
    let detour = Detour::before(address, "whep", None);
    let arguments = ["recv", "--whep", &detour.url, "-o", file.to_str().unwrap()];
    let mut viewer =
        RunningProgram::of(rushes(&arguments).args(["--idle-timeout", "60s", "--json"]));
    viewer.wait_for("playing from");
    (server, detour, viewer)
}

#[test]
fn a_publisher_and_a_viewer_go_on_over_other_paths() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen.264");
    let (_server, address, detour, mut publisher) = publishing(None);
    let (_film, way, mut viewer) = viewing(&seen);
    // Both paths end at once, so that both waits pass together.
    detour.cut();
    way.cut();
    for program in [&mut publisher, &mut viewer] {
        program.wait_for("the server does not answer: looking for another path");
        program.wait_for("the server answers again");
    }
    // A restart that takes long is repeated.
    for way in [&detour, &way] {
        assert_eq!((way.count("POST"), way.count("PATCH") > 0), (1, true));
    }
    interrupt(&viewer.child);
    // The frame that was cut off by the end of the path may be missing.
    let (_, said) = viewer.end();
    assert!(!said.contains("cannot look"), "{said}");
    assert_eq!(way.count("DELETE"), 1);
    let file = folder.path().join("played.264");
    let (url, file) = (format!("http://{address}/whep"), file.to_str().unwrap());
    let played = ["recv", "--whep", &url, "-o", file, "--duration", "2s", "--json"];
    let played = rushes(&played).args(["--idle-timeout", "10s"]).output().unwrap();
    assert!(played.status.success(), "{}", text(&played.stderr));
    assert_eq!(json(&played)["received"]["frames_dropped"], 0);
    interrupt(&publisher.child);
    let (status, said) = publisher.end();
    assert!(status.success() && !said.contains("cannot look"), "{status} {said}");
    assert_eq!(detour.count("DELETE"), 1);
}

#[test]
fn a_server_that_does_not_restart_is_asked_once() {
    let refusal = "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
    let (_server, _address, detour, mut publisher) = publishing(Some(refusal));
    detour.cut();
    publisher.wait_for("cannot look for another path: the server does not take");
    // It waits further: the path may come back.
    interrupt(&publisher.child);
    publisher.end();
    assert_eq!((detour.count("POST"), detour.count("PATCH")), (1, 1));
}
