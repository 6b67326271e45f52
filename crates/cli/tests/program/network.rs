//! `rushes send` and `rushes recv` with a network between them.

use std::path::Path as FilePath;
use std::time::Duration;

use rushes_netsim::{Conditions, Loss, Path, Relay, Statistics, Straying};
use serde_json::Value;

use crate::rig::{MEDIA, free_port, json, media, receiving, run, silent_receiver, text, units};

const MS: Duration = Duration::from_millis(1);

/// The outcome of sending a file.
struct Outcome {
    sent: Value,
    received: Value,
    code: Option<i32>,
    original: Vec<Vec<u8>>,
    copied: Vec<Vec<u8>>,
    /// Statistics of the network towards the receiver, including RTCP.
    there: Statistics,
}

impl Outcome {
    fn count(&self, name: &str) -> u64 {
        self.received[name].as_u64().unwrap()
    }

    fn packets(&self) -> [u64; 2] {
        [&self.sent["sent"], &self.received["received"]].map(|of| of["packets"].as_u64().unwrap())
    }

    fn assert_whole(&self, name: &str) {
        let (sent, received) = (&self.sent, &self.received);
        assert_eq!(self.code, Some(0), "{name}: {sent} {received} {:?}", self.there);
        assert_eq!(received["complete"], true, "{name}: {received}");
        assert!(self.copied == self.original, "{name} differs");
    }
}

/// Sends the file `name` through a network, with `options` at both ends and further ones at the
/// receiver. Fails unless units arrive at most once, in order and unchanged.
fn through(
    name: &str,
    conditions: Conditions,
    options: &[&str],
    receiving_more: &[&str],
) -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let (copy, port) = (folder.path().join(name), free_port());
    let from = format!("127.0.0.1:{port}");
    let receiver = receiving(port, &[&["--from", &from], options, receiving_more].concat(), &copy);
    let relay = Relay::to(from.parse().unwrap()).with_control().conditions(conditions);
    let relay = relay.seed(3).start().unwrap();
    let (file, to) = (media(name), relay.address().to_string());
    let arguments = ["send", &file, "--to", &to, "--fps", "200", "--json"];
    let sent = run(&[&arguments[..], options].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    let [there, _] = relay.finish();
    let original = units(FilePath::new(&file));
    let copied = if copy.exists() { units(&copy) } else { Vec::new() };
    let mut rest = original.iter();
    assert!(copied.iter().all(|unit| rest.any(|other| other == unit)), "{name}: what was not sent");
    let code = received.status.code();
    Outcome { sent: json(&sent), received: json(&received), code, original, copied, there }
}

/// Loses 15 packets of media in a row.
fn outage(delay: Duration) -> Conditions {
    Conditions::both(Path { delay, loss: Loss::Outage(30..45), ..Path::default() })
}

const SECURED: [&str; 4] =
    ["--srtp", "AEAD_AES_128_GCM", "--key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGw=="];

const SMALL: [&str; 2] = ["--mtu", "300"];

/// A busy machine may delay packets more than the network does.
const PATIENT: [&str; 2] = ["--reorder-time", "2s"];

#[test]
fn what_a_network_loses_is_counted_to_the_packet() {
    let outcome = through(MEDIA[1], outage(40 * MS), &SMALL, &[]);
    let [sent, arrived] = outcome.packets();
    assert_eq!((outcome.count("packets_lost"), sent - arrived), (15, 15), "{}", outcome.received);
    assert_eq!((outcome.code, outcome.there.lost), (Some(1), 15));
    assert!(!outcome.copied.is_empty() && outcome.copied.len() < outcome.original.len());
}

#[test]
fn what_a_network_loses_is_sent_again() {
    for recovery in ["rtx", "verbatim"] {
        let options = [&SMALL[..], &["--recovery", recovery]].concat();
        let outcome = through(MEDIA[1], outage(20 * MS), &options, &PATIENT);
        outcome.assert_whole(recovery);
        assert_eq!(outcome.there.lost, 15);
    }
}

#[test]
fn what_a_network_loses_is_recovered_from_repair_packets() {
    ["flexfec", "flexfec-03", "ulpfec"].into_iter().for_each(recovers_from_repair_packets);
}

fn recovers_from_repair_packets(format: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (copy, port) = (folder.path().join(MEDIA[1]), free_port());
    let from = format!("127.0.0.1:{port}");
    let receiving_more = [&SMALL[..], &PATIENT, &["--fec", "--fec-format", format]].concat();
    let receiver = receiving(port, &[&["--from", &from][..], &receiving_more].concat(), &copy);
    let lossy = Path { loss: Loss::Outage(30..33), ..Path::default() };
    let relay =
        Relay::to(from.parse().unwrap()).with_control().conditions(Conditions::there(lossy));
    let relay = relay.seed(3).start().unwrap();
    let (file, to) = (media(MEDIA[1]), relay.address().to_string());
    let arguments = ["send", &file, "--to", &to, "--fps", "200", "--json", "--fec", "100"];
    let sent = run(&[&arguments[..], &SMALL, &["--fec-format", format]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let received = receiver.wait_with_output().unwrap();
    let [there, _] = relay.finish();
    let (sent, report) = (json(&sent), json(&received));
    assert_eq!((there.lost, received.status.code()), (3, Some(0)), "{format} {sent} {report}");
    assert!(units(&copy) == units(FilePath::new(&file)), "{report}");
    assert!(report["received"]["repaired"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["received"]["requested"], 0);
    // The last packets have theirs, too.
    assert_eq!(sent["sent"]["repairs"], sent["sent"]["packets"], "{sent}");
}

#[test]
fn a_stream_whose_repair_packets_are_not_due_ends_without_a_packet_without_payload() {
    let (_peer, to) = silent_receiver();
    let arguments = ["send", &media(MEDIA[3]), "--to", &to, "--flat-out", "--fec", "auto"];
    let sent = run(&[&arguments[..], &["--json"]].concat());
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let sent = json(&sent);
    // Each frame of Opus is one packet.
    assert_eq!(sent["sent"]["packets"], sent["sent"]["frames"], "{sent}");
    assert!(sent["sent"]["frames"].as_u64().unwrap() > 1, "{sent}");
}

#[test]
fn delay_copies_and_another_order_change_no_file() {
    let path = Path {
        delay: 110 * MS,
        jitter: 5 * MS,
        reordering: Straying::places(0.05, 1..=20),
        duplication: Straying::places(0.05, 0..=20),
        ..Path::default()
    };
    for name in MEDIA {
        let outcome = through(name, Conditions::both(path.clone()), &SMALL, &PATIENT);
        outcome.assert_whole(name);
        let [sent, arrived] = outcome.packets();
        assert_eq!((sent, outcome.count("packets_lost")), (arrived, 0), "{name}");
    }
}

/// Random networks between the programs, like the thousand in the tests of `proto`. Their delay is
/// 0 to 300 ms, with losses up to 20 %, reordering over up to 1 000 places and duplicates.
#[test]
fn random_networks_deliver_every_unit_at_most_once_in_order_and_as_it_was_sent() {
    let one = |seed: u64| {
        let recovery = match seed % 3 {
            0 => &[][..],
            1 => &["--recovery", "rtx"],
            _ => &["--recovery", "verbatim"],
        };
        let name = MEDIA[seed as usize % 3];
        let conditions = Conditions::random(seed);
        let secured = if seed.is_multiple_of(4) { &SECURED[..] } else { &[] };
        let options = [&SMALL[..], recovery, secured].concat();
        let outcome = through(name, conditions, &options, &["--latency", "2s"]);
        let [sent, arrived] = outcome.packets();
        let lost = outcome.received["received"]["packets_lost"].as_u64().unwrap();
        assert!(arrived + lost <= sent, "seed {seed}: {arrived} and {lost} of {sent}");
        let complete = outcome.received["complete"] == true;
        assert_eq!(outcome.code, Some(i32::from(!complete)), "seed {seed}");
        if arrived == sent {
            outcome.assert_whole(&format!("seed {seed}"));
        }
    };
    std::thread::scope(|scope| {
        for lane in 0..4 {
            scope.spawn(move || (1..=20).filter(|seed| seed % 4 == lane).for_each(one));
        }
    });
}

#[test]
fn the_last_packet_is_also_requested() {
    // The number of the file's last packet is found first.
    let whole = through(MEDIA[1], Conditions::default(), &SMALL, &[]);
    let [sent, _] = whole.packets();
    let path = Path { delay: 20 * MS, loss: Loss::Outage(sent - 1..sent), ..Path::default() };
    let options = [&SMALL[..], &["--recovery", "rtx"]].concat();
    let outcome = through(MEDIA[1], Conditions::there(path), &options, &PATIENT);
    outcome.assert_whole(MEDIA[1]);
}

#[test]
fn keys_are_agreed_on_over_a_lossy_network() {
    let path = Path { delay: 40 * MS, loss: Loss::Outage(1..6), ..Path::default() };
    let outcome = through(MEDIA[1], Conditions::both(path), &["--zrtp"], &PATIENT);
    outcome.assert_whole(MEDIA[1]);
    assert_eq!(outcome.sent["zrtp"], outcome.received["zrtp"]);
}
