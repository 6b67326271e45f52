//! The outcome, as JSON.

use std::time::Duration;

use rushes::zrtp::{Algorithm, KeyAgreement, Role, Warning};
use serde_json::{Value, json};

use super::endpoint::{Endpoint, Stream};
use super::hex;

/// bzrtp's numbers for auxiliary secrets that agree, differ, or are unknown here.
const AUX_MATCHES: u8 = 0;
const AUX_DIFFERS: u8 = 1;
const AUX_UNSET: u8 = 2;

/// Returns the line of one stream.
pub(crate) fn stream(endpoint: &Endpoint, stream: &Stream) -> Value {
    let counters = stream.counters();
    let mut line = json!({
        "stream": stream.index,
        "secure": stream.secured.is_some(),
        "ssrc": format!("{:08x}", stream.ssrc),
        "ms": match (stream.begun, stream.secured) {
            (Some(begun), Some(secured)) => (secured - begun).as_millis() as u64,
            _ => 0,
        },
        "srtp_sent": counters.sent,
        "srtp_ok": counters.ok,
        "srtp_bad": counters.bad,
        "srtcp_ok": counters.rtcp_ok,
        "srtcp_bad": counters.rtcp_bad,
        "self_hello": stream.wire.own_hello,
        "peer_hello": stream.wire.peer_hello,
        "tx": stream.wire.sent,
        "rx": stream.wire.received,
        "hello_hash": stream.hello_hash.map(|hash| hex::encode(&hash)),
    });
    if let Some(failure) = &stream.failure {
        line["error"] = json!(failure);
    }
    add(&mut line, agreed(endpoint, stream));
    for label in &endpoint.options.exports {
        // The session does not export keys for arbitrary labels.
        add(&mut line, json!({ format!("export_{label}"): "error" }));
    }
    line
}

/// Returns the agreed keys and algorithms.
fn agreed(endpoint: &Endpoint, stream: &Stream) -> Value {
    let has = |one: Warning| stream.warnings.contains(&one);
    let names = ["role", "kex", "cipher", "hash", "auth", "sas_type", "sas"];
    let secrets = ["self_key", "self_salt", "peer_key", "peer_salt"];
    let Some(keys) = &stream.keys else {
        let mut line = json!({ "verified": -1, "cache_mismatch": -1, "aux_mismatch": -1 });
        for name in names.into_iter().chain(secrets) {
            line[name] = json!("");
        }
        return line;
    };
    let status = endpoint.session.sas();
    // The other streams of a session have no string.
    let own_status = status.filter(|_| keys.choice.key_agreement != KeyAgreement::Mult);
    let key_len = keys.choice.cipher.key_len();
    let [own, peer] = [&keys.send, &keys.receive].map(|key| key.split_at(key_len));
    let aux_mismatch = match endpoint.options.aux {
        None => AUX_UNSET,
        Some(_) if has(Warning::AuxMismatch) => AUX_DIFFERS,
        Some(_) => AUX_MATCHES,
    };
    json!({
        "role": match keys.role {
            Role::Initiator => "initiator",
            Role::Responder => "responder",
        },
        "kex": name(keys.choice.key_agreement),
        "cipher": name(keys.choice.cipher),
        "hash": name(keys.choice.hash),
        "auth": name(keys.choice.auth_tag),
        "sas_type": name(keys.choice.sas_type),
        // Words are separated as in bzrtp's output.
        "sas": own_status.map(|status| status.sas.to_string().replace(' ', ":")).unwrap_or_default(),
        "self_key": hex::encode(own.0),
        "self_salt": hex::encode(own.1),
        "peer_key": hex::encode(peer.0),
        "peer_salt": hex::encode(peer.1),
        "verified": u8::from(status.is_some_and(|status| status.is_verified)),
        "cache_mismatch": u8::from(has(Warning::CacheMismatch) || has(Warning::VerifiedBefore)),
        "aux_mismatch": aux_mismatch,
    })
}

/// Returns the summary line.
pub(crate) fn last(endpoint: &Endpoint, elapsed: Duration) -> Value {
    json!({
        "ok": endpoint.is_well(),
        "engine": "rushes",
        "streams": endpoint.streams.len(),
        "ms": elapsed.as_millis() as u64,
    })
}

fn add(line: &mut Value, more: Value) {
    if let (Value::Object(line), Value::Object(mut more)) = (line, more) {
        line.append(&mut more);
    }
}

fn name<T: Algorithm>(algorithm: T) -> String {
    String::from_utf8_lossy(&algorithm.code()).trim_end().to_owned()
}
