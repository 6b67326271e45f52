//! DTLS: two ends, and somebody who changes, drops, repeats and adds datagrams.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rushes_webrtc::demux::{self, Kind};
use rushes_webrtc::dtls::{
    Association, Certificate, Config, DATAGRAM_MAX, Event, Fingerprint, Keys, Setup,
};

use crate::packets;

/// Rounds after which two ends must have come to an end: in some, a missing message is asked for every 50 ms,
/// for 30 s and for several attempts.
const ROUNDS_MAX: usize = 20_000;

/// One end and what it has said.
struct End {
    association: Association,
    keys: Option<Keys>,
}

impl End {
    fn new(end: usize, now: Instant) -> Self {
        static MADE: OnceLock<[Certificate; 2]> = OnceLock::new();
        let made = || [(); 2].map(|()| Certificate::generate().expect("random numbers"));
        let certificates = MADE.get_or_init(made);
        let config = Config {
            certificate: certificates[end].clone(),
            is_client: end == 0,
            expected: vec![certificates[1 - end].fingerprint()],
        };
        let association = Association::new(config, now).expect("a certificate is expected");
        Self { association, keys: None }
    }

    fn poll(&mut self) -> Option<Vec<u8>> {
        while let Some(event) = self.association.poll_event() {
            if let Event::Keys(keys) = event {
                assert!(self.keys.is_none(), "keys are handed out once");
                self.keys = Some(keys);
            }
        }
        self.association.poll_datagram()
    }
}

/// Lets two ends agree on keys while steps are taken: each has a kind, and octets.
pub fn shake_hands(octets: &[u8]) {
    let mut now = Instant::now();
    let mut ends = [0, 1].map(|end| End::new(end, now));
    for (kind, body) in packets(octets) {
        let to = usize::from(kind & 1);
        let next = if kind & 0x80 == 0 { ends[1 - to].poll() } else { None };
        now += Duration::from_millis(u64::from(kind >> 4 & 7));
        let datagram = match (kind >> 1 & 7, next) {
            (0, _) => body.to_vec(),
            (1, _) => continue,
            (2, Some(mut datagram)) => {
                // Changes octets from a place on.
                let (&[high, low], changes) = body.split_first_chunk().unwrap_or((&[0, 0], &[]));
                let place = usize::from(u16::from_be_bytes([high, low])) % datagram.len();
                for (octet, change) in datagram[place..].iter_mut().zip(changes) {
                    *octet ^= change;
                }
                datagram
            }
            (3, Some(datagram)) => {
                ends[to].association.handle_datagram(now, &datagram);
                datagram
            }
            (4, Some(datagram)) => [&datagram, body].concat(),
            (5, _) => {
                let due = ends[to].association.next_timeout();
                now = now.max(due.unwrap_or(now));
                ends[to].association.handle_timeout(now);
                continue;
            }
            (_, next) => next.unwrap_or_default(),
        };
        ends[to].association.handle_datagram(now, &datagram);
    }
    finish(&mut ends, now);
}

/// Lets both ends come to an end without disturbance, and compares their keys.
fn finish(ends: &mut [End; 2], mut now: Instant) {
    let mut rounds = 0;
    loop {
        let mut is_idle = true;
        for from in 0..2 {
            while let Some(datagram) = ends[from].poll() {
                assert!(datagram.len() <= DATAGRAM_MAX);
                is_idle = false;
                ends[1 - from].association.handle_datagram(now, &datagram);
            }
        }
        let due = ends.iter().filter_map(|end| end.association.next_timeout()).min();
        match due {
            Some(due) if is_idle => {
                now = now.max(due);
                for end in ends.iter_mut() {
                    end.association.handle_timeout(now);
                }
            }
            None if is_idle => break,
            _ => {}
        }
        rounds += 1;
        assert!(rounds < ROUNDS_MAX, "the two ends do not come to an end");
    }
    if let [Some(client), Some(server)] = ends.each_ref().map(|end| end.keys.as_ref()) {
        assert_eq!((&client.send, &client.receive), (&server.receive, &server.send));
    }
}

/// Tells what a datagram is, and reads octets as the attributes of a description.
pub fn read(octets: &[u8]) {
    let is_dtls = octets.first().is_some_and(|first| (20..64).contains(first));
    assert_eq!(demux::kind(octets) == Kind::Dtls, is_dtls);
    assert!(is_dtls || !Association::begins_with(octets));
    let text = String::from_utf8_lossy(octets);
    if let Ok(fingerprint) = text.parse::<Fingerprint>() {
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
    }
    if let Ok(setup) = text.parse::<Setup>() {
        assert_eq!(setup.to_string().parse(), Ok(setup));
    }
}

/// Returns steps of handshakes that are disturbed at one place.
pub fn seeds() -> Vec<Vec<u8>> {
    let steps = |at: usize, kind: u8, body: &[u8]| -> Vec<u8> {
        let pass = |n: usize| [0, 6 << 1 | (n & 1) as u8 ^ 1];
        let before = (0..at).flat_map(pass);
        let disturbance = [body.len() as u8, kind << 1 | (at & 1) as u8 ^ 1];
        let after = (at..12).flat_map(pass);
        before.chain(disturbance).chain(body.iter().copied()).chain(after).collect()
    };
    let kinds: [(u8, &[u8]); 6] = [
        (0, &[22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]),
        (0, &[21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40]),
        (2, &[0, 100, 1]),
        (3, &[]),
        (4, &[0, 0, 0]),
        (5, &[]),
    ];
    (0..8).flat_map(|at| kinds.map(|(kind, body)| steps(at, kind, body))).collect()
}

/// Returns the first octets of each protocol, and attributes.
pub fn texts() -> Vec<Vec<u8>> {
    let certificate = Certificate::generate().expect("random numbers");
    let texts = [certificate.fingerprint().to_string(), "actpass".into(), "active".into()];
    let octets = [0, 1, 16, 20, 64, 128, 192].map(|octet| vec![octet; 60]);
    texts.into_iter().map(String::into_bytes).chain(octets).collect()
}
