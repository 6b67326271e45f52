//! STUN messages as a peer or an attacker writes them.

use std::net::SocketAddr;

use is::stun::{StunMessage, StunMessageBuilder, TransId};
use is::{DefaultSha1HmacProvider, Sha1HmacProvider};
use rushes_webrtc::ice::Credentials;

/// What a forged check says.
#[derive(Clone)]
pub(crate) struct Check {
    pub(crate) user_name: String,
    pub(crate) password: Option<String>,
    pub(crate) use_candidate: bool,
    pub(crate) is_controlling: bool,
}

impl Check {
    /// A check of `of` for `to`, with everything right; `of` is controlling.
    pub(crate) fn right(to: &Credentials, of: &Credentials) -> Self {
        Self {
            user_name: format!("{}:{}", to.ufrag(), of.ufrag()),
            password: Some(to.password().to_owned()),
            use_candidate: false,
            is_controlling: true,
        }
    }

    /// Writes it with a new transaction identifier.
    pub(crate) fn write(&self) -> Vec<u8> {
        let Self { user_name, password, use_candidate, is_controlling } = self;
        let id = TransId::new();
        let (role, priority) = (*is_controlling, 0x6E00_01FF);
        let check = StunMessage::binding_request(user_name, id, role, 7, priority, *use_candidate);
        write(&check, password.as_deref())
    }
}

/// Writes a success response to a request of ours.
pub(crate) fn response(request: &[u8], mapped: SocketAddr, password: Option<&str>) -> Vec<u8> {
    let id = StunMessage::parse(request).unwrap().trans_id();
    write(&StunMessage::binding_reply(id, mapped), password)
}

/// Writes an error response to a request of ours.
pub(crate) fn error(request: &[u8], code: u16, password: Option<&str>) -> Vec<u8> {
    let id = StunMessage::parse(request).unwrap().trans_id();
    let builder = StunMessageBuilder::new().binding().failure().error_code(code, "no");
    write(&builder.build(id), password)
}

fn write(message: &StunMessage<'_>, password: Option<&str>) -> Vec<u8> {
    let mut octets = vec![0; 1200];
    let hmac = |key: &[u8], parts: &[&[u8]]| DefaultSha1HmacProvider.sha1_hmac(key, parts);
    let len = (*message).to_bytes(password.map(str::as_bytes), &mut octets, hmac).unwrap();
    octets.truncate(len);
    octets
}
