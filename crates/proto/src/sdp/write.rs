//! Writing: lines in the order of RFC 8866 section 5, terminated by CRLF.

use core::fmt::Display;
use core::time::Duration;

use super::address::Address;
use super::attribute::{Attribute, Bandwidth};
use super::crypto::Crypto;
use super::description::Description;
use super::format::Format;
use super::line::trim;
use super::media::{Direction, Media, MediaKind, Profile, RtcpPort};
use super::source::Source;

/// Writes a whole description.
pub(super) fn description(description: &Description) -> String {
    let mut to = Writer(String::new());
    let origin = &description.origin;
    to.line("v=0");
    to.line(format_args!(
        "o={} {} {} {}",
        token(&origin.username),
        origin.session_id,
        origin.session_version,
        address(&origin.address)
    ));
    let name = if description.name.is_empty() { "-" } else { &description.name };
    to.line(format_args!("s={name}"));
    // Some peers read `c=` only in the session, others only in the media; most do the former.
    let shared = shared_connection(&description.media);
    if let Some(connection) = &shared {
        to.line(connection);
    }
    to.bandwidths(&description.bandwidth);
    to.line("t=0 0");
    to.attributes(&description.attributes);
    for media in &description.media {
        to.media(media, shared.is_none());
    }
    to.0
}

/// Returns the `c=` line of all media, if they have the same one.
fn shared_connection(media: &[Media]) -> Option<String> {
    let (first, others) = media.split_first()?;
    let shared = connection(first)?;
    others.iter().all(|other| connection(other).as_ref() == Some(&shared)).then_some(shared)
}

fn connection(media: &Media) -> Option<String> {
    let host = media.address.as_ref()?;
    let layers = (media.address_count > 1).then_some(media.address_count);
    // In IPv4 the number of groups can only follow a TTL (RFC 8866 section 5.7).
    let ttl = media.ttl.or_else(|| layers.map(|_| 255)).filter(|_| host.kind() == "IP4");
    let ttl = ttl.map(|ttl| format!("/{ttl}")).unwrap_or_default();
    let layers = layers.map(|count| format!("/{count}")).unwrap_or_default();
    Some(format!("c={}{ttl}{layers}", address(host).replace('/', "_")))
}

fn address(address: &Address) -> String {
    format!("IN {} {}", address.kind(), token(&address.text()))
}

/// Returns `text` as one word.
pub(super) fn token(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.replace(|c: char| c.is_ascii_whitespace() || c.is_ascii_control(), "_")
}

/// Returns `words`, each preceded by a space.
fn words(words: impl Iterator<Item = String>) -> String {
    words.fold(String::new(), |line, word| line + " " + &word)
}

struct Writer(String);

impl Writer {
    /// Writes one line; control characters in it become spaces, so that it stays a single line.
    fn line(&mut self, line: impl Display) {
        let line = line.to_string().replace(|c: char| c.is_ascii_control() && c != '\t', " ");
        self.0.push_str(trim(&line));
        self.0.push_str("\r\n");
    }

    fn bandwidths(&mut self, bandwidths: &[Bandwidth]) {
        for Bandwidth { modifier, value } in bandwidths {
            self.line(format_args!("b={}:{value}", token(modifier).replace(':', "_")));
        }
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        for Attribute { name, value } in attributes {
            let colon = if value.is_empty() { "" } else { ":" };
            self.line(format_args!("a={}{colon}{value}", name.replace(':', "_")));
        }
    }

    fn media(&mut self, media: &Media, with_connection: bool) {
        let kind = match &media.kind {
            MediaKind::Video => "video",
            MediaKind::Audio => "audio",
            MediaKind::Application => "application",
            MediaKind::Other(name) => &token(name),
        };
        let ports = match media.port_count {
            0 | 1 => String::new(),
            count => format!("/{count}"),
        };
        self.line(format_args!("m={kind} {}{ports} {}", media.port, transport(media)));
        if let Some(connection) = connection(media).filter(|_| with_connection) {
            self.line(connection);
        }
        self.bandwidths(&media.bandwidth);
        for format in &media.formats {
            self.format(format);
        }
        self.media_attributes(media);
        for Crypto { tag, suite, key_params, session_params } in &media.crypto {
            let (suite, key_params) = (token(suite), token(key_params));
            let session_params = words(session_params.iter().map(|one| token(one)));
            self.line(format_args!("a=crypto:{tag} {suite} {key_params}{session_params}"));
        }
        self.attributes(&media.attributes);
    }

    fn format(&mut self, format: &Format) {
        let payload_type = format.payload_type.value();
        let name = token(format.encoding.name()).replace('/', "_");
        let channels = format.channels.map(|channels| format!("/{channels}")).unwrap_or_default();
        let rate = format.clock_rate.hertz();
        self.line(format_args!("a=rtpmap:{payload_type} {name}/{rate}{channels}"));
        let parameters = format.encoding.write_parameters();
        if !parameters.is_empty() {
            self.line(format_args!("a=fmtp:{payload_type} {parameters}"));
        }
        for feedback in &format.feedback {
            self.line(format_args!("a=rtcp-fb:{payload_type} {feedback}"));
        }
    }

    fn media_attributes(&mut self, media: &Media) {
        match &media.rtcp {
            RtcpPort::Next => {}
            RtcpPort::Mux => self.line("a=rtcp-mux"),
            RtcpPort::Port(port, None) => self.line(format_args!("a=rtcp:{port}")),
            RtcpPort::Port(port, Some(host)) => {
                self.line(format_args!("a=rtcp:{port} {}", address(host)));
            }
        }
        for mapping in &media.extensions {
            self.line(format_args!("a=extmap:{}", mapping.write()));
        }
        if media.congestion_feedback {
            self.line("a=rtcp-fb:* ack ccfb");
        }
        if media.reduced_size {
            self.line("a=rtcp-rsize");
        }
        match media.direction {
            // The default, which peers that negotiate keys by DTLS do not know (RFC 9429 section 5.2.1
            // requires the line).
            Direction::SendRecv if media.attribute("setup").is_some() => self.line("a=sendrecv"),
            Direction::SendRecv => {}
            Direction::SendOnly => self.line("a=sendonly"),
            Direction::RecvOnly => self.line("a=recvonly"),
            Direction::Inactive => self.line("a=inactive"),
        }
        if let Some(rate) = media.frame_rate {
            self.line(format_args!("a=framerate:{rate}"));
        }
        if let Some(time) = media.packet_time {
            self.line(format_args!("a=ptime:{}", milliseconds(time)));
        }
        if let Some(time) = media.max_packet_time {
            self.line(format_args!("a=maxptime:{}", milliseconds(time)));
        }
        for Source { ssrc, cname } in &media.ssrcs {
            let cname = cname.as_ref().map(|cname| format!(" cname:{cname}")).unwrap_or_default();
            self.line(format_args!("a=ssrc:{}{cname}", ssrc.0));
        }
        for group in &media.ssrc_groups {
            let ssrcs = words(group.ssrcs.iter().map(|ssrc| ssrc.0.to_string()));
            self.line(format_args!("a=ssrc-group:{}{ssrcs}", token(&group.semantics)));
        }
    }
}

/// Returns the transport and the formats, as listed in `m=`.
fn transport(media: &Media) -> String {
    let transport = media.profile.name();
    if let Profile::Other { formats, .. } = &media.profile {
        return format!("{} {formats}", token(transport));
    }
    let formats = media.formats.iter().map(|format| format.payload_type);
    let payload_types = formats.chain(media.unmapped.iter().copied());
    format!("{transport}{}", words(payload_types.map(|one| one.value().to_string())))
}

/// Returns a decimal number of milliseconds.
fn milliseconds(time: Duration) -> String {
    let text = format!("{}.{:06}", time.as_millis(), time.subsec_nanos() % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
