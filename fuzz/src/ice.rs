//! Agents of ICE: datagrams as they come, and with the integrity that a bad peer can give them.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use is::{DefaultSha1HmacProvider, Sha1HmacProvider};
use rushes_webrtc::ice::{Agent, AgentConfig, Candidate, Credentials, TurnServer, ufrags_of};

use crate::packets;

/// The most datagrams that one datagram or one timeout may cause.
const SENT_MAX: usize = 20;

fn credentials(number: u8) -> Credentials {
    Credentials::from_random(&[number; 24])
}

/// Gives each packet to an agent as a datagram, or reads a candidate from it, at a time that advances.
pub fn handle(octets: &[u8]) {
    let Some((flags, octets)) = octets.split_first() else { return };
    let start = Instant::now();
    let local = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 1000));
    let config = AgentConfig {
        credentials: credentials(1),
        is_controlling: flags & 1 != 0,
        is_lite: flags & 2 != 0,
        random: [7; 32],
    };
    let mut agent = Agent::new(config, start);
    agent.add_local(local, start).expect("a usable address");
    let _ = agent.add_stun_server(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 9), 3478)), start);
    let server = SocketAddr::from((Ipv4Addr::new(198, 51, 100, 3), 2000));
    if flags & 8 == 0 {
        let server = TurnServer::new(server, "user", "secret").expect("a short name");
        let _ = agent.add_turn_server(server, start);
    }
    if flags & 4 == 0 {
        agent.set_remote_credentials(&credentials(2), start).expect("short credentials");
    }
    let mut now = start;
    let (mut last_check, mut last_request) = (Vec::new(), Vec::<u8>::new());
    for (kind, body) in packets(octets) {
        now += Duration::from_millis(1 << (kind >> 4));
        let from = SocketAddr::from((Ipv4Addr::new(198, 51, 100, kind & 3), 2000));
        match kind >> 2 & 3 {
            0 => _ = agent.handle_datagram(now, local, from, body),
            1 => _ = agent.handle_datagram(now, local, from, &request(body, kind)),
            2 => _ = agent.handle_datagram(now, local, from, &response(&last_check, body)),
            _ => candidate(&mut agent, body, now),
        }
        let _ = ufrags_of(body);
        if let Some(it) = agent.unwrap(server, body) {
            let (local, from, inner) = (it.local, it.from, it.datagram.to_vec());
            let _ = agent.handle_datagram(now, local, from, &inner);
        }
        // The server's answer to the last request, which is not authenticated until it has asked for that.
        let mut answer = body.to_vec();
        if let (Some(head), Some(id)) = (answer.get_mut(4..20), last_request.get(4..20)) {
            head.copy_from_slice(id);
            let _ = agent.handle_datagram(now, local, server, &answer);
        }
        agent.handle_timeout(now);
        let mut sent = 0;
        while let Some(transmit) = agent.poll_datagram() {
            sent += 1;
            assert!(transmit.local == local && transmit.datagram.len() <= 1000);
            if transmit.to == server && transmit.datagram.first() == Some(&0) {
                last_request.clone_from(&transmit.datagram);
            }
            if ufrags_of(&transmit.datagram).is_some() {
                last_check = transmit.datagram;
            }
        }
        assert!(sent <= SENT_MAX, "{sent}");
        while agent.poll_event().is_some() {}
        assert!(agent.local_candidates().len() <= 48);
        let _ = (agent.next_timeout(), agent.statistics(), agent.accepts_media_from(from));
    }
}

fn candidate(agent: &mut Agent, body: &[u8], now: Instant) {
    let text = String::from_utf8_lossy(body);
    if let Ok(candidate) = text.parse::<Candidate>() {
        let again = candidate.to_string().parse::<Candidate>();
        assert_eq!(again.as_ref(), Ok(&candidate));
        let _ = agent.add_remote(&candidate, now);
    }
}

/// A check with the right name, and `attributes` before its integrity.
fn request(attributes: &[u8], kind: u8) -> Vec<u8> {
    let name = format!("{}:{}", credentials(1).ufrag(), credentials(2).ufrag());
    let mut body = vec![0, 6, 0, name.len() as u8];
    body.extend_from_slice(name.as_bytes());
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend_from_slice(&[0, 0x24, 0, 4, 0x6E, 0, kind, 0xFF]);
    body.extend_from_slice(attributes);
    let mut id = [kind; 12];
    for (octet, attribute) in id.iter_mut().zip(attributes) {
        *octet ^= attribute;
    }
    seal([0, 1], &id, &body, credentials(1).password())
}

/// A response to the last check, with `attributes` before its integrity. The first octet of these tells an error.
fn response(check: &[u8], attributes: &[u8]) -> Vec<u8> {
    let id = check.get(8..20).and_then(|id| id.try_into().ok()).unwrap_or([0; 12]);
    let class = attributes.first().map_or(0, |octet| octet & 0x10);
    seal([1, 1 | class], &id, attributes, credentials(2).password())
}

fn seal(kind: [u8; 2], id: &[u8; 12], body: &[u8], password: &str) -> Vec<u8> {
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = padded.len() as u16 + 24;
    let mut message = [&kind[..], &length.to_be_bytes(), &[0x21, 0x12, 0xA4, 0x42], id].concat();
    message.extend_from_slice(&padded);
    let tag = DefaultSha1HmacProvider.sha1_hmac(password.as_bytes(), &[&message]);
    message.extend_from_slice(&[0, 8, 0, 20]);
    message.extend_from_slice(&tag);
    message
}

/// Checks, responses and candidates as a peer sends them.
pub fn seeds() -> Vec<Vec<u8>> {
    let parts: [(u8, &[u8]); 8] = [
        (0x3C, b"candidate:1 1 udp 2130706431 198.51.100.1 2000 typ host"),
        (0x3C, b"2 1 udp 1694498815 198.51.100.2 2000 typ srflx raddr 10.0.0.1 rport 9"),
        (0x3C, b"3 1 udp 2130706431 4c5d.local 2000 typ host ufrag abcd"),
        (0x65, &[0, 0x25, 0, 0, 0x80, 0x2A, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]),
        (0x68, &[0, 0x20, 0, 8, 0, 1, 0x22, 0xFA, 0xE1, 0x12, 0xA6, 0x43]),
        // The TURN server asks for a password, and gives an address.
        (
            0x01,
            b"\x01\x13\0\x18\x21\x12\xA4\x42............\0\x09\0\x04\0\0\x04\x01\0\x14\0\x01r...\0\x15\0\x01n...",
        ),
        (
            0x01,
            b"\x01\x03\0\x0C\x21\x12\xA4\x42............\0\x16\0\x08\0\x01\xE2\x42\xE1\x12\xA6\x43",
        ),
        (0xC8, &[0x10, 0x09, 0, 8, 0, 0, 4, 87, 0x52, 0x6F, 0x6C, 0x65]),
    ];
    let all = parts.map(|(kind, body)| [&[body.len() as u8, kind], body].concat()).concat();
    (0..8).map(|flags| [&[flags][..], &all].concat()).collect()
}
