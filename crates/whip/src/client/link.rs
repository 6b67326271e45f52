//! STUN and TURN servers in `Link` header fields (RFC 9725 section 4.6, RFC 8288).

use std::fmt;

use hyper::header::{self, HeaderMap};
use zeroize::Zeroizing;

/// Maximum servers that are read from one response.
const SERVERS_MAX: usize = 16;

/// A STUN or TURN server that an endpoint recommends.
#[derive(Clone, Eq, PartialEq)]
pub struct IceServer {
    /// Its URI, such as `stun:stun.example.net` (RFC 7064) or `turn:turn.example.net` (RFC 7065).
    pub uri: String,
    /// The user's name at a TURN server.
    pub username: Option<String>,
    /// The password at a TURN server.
    pub credential: Option<Zeroizing<String>>,
}

impl fmt::Debug for IceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IceServer").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl IceServer {
    /// The value of a `Link` header field.
    pub(crate) fn link(&self) -> Zeroizing<String> {
        let mut link = Zeroizing::new(format!("<{}>; rel=\"ice-server\"", self.uri));
        if let (Some(username), Some(credential)) = (&self.username, &self.credential) {
            for (name, value) in [("username", username.as_str()), ("credential", credential)] {
                for text in ["; ", name, "=\""] {
                    link.push_str(text);
                }
                for character in value.chars() {
                    if matches!(character, '"' | '\\') {
                        link.push('\\');
                    }
                    link.push(character);
                }
                link.push('"');
            }
            link.push_str("; credential-type=\"password\"");
        }
        link
    }
}

/// The servers in all `Link` header fields. Links of other kinds and malformed ones are ignored.
pub(super) fn ice_servers(fields: &HeaderMap) -> Vec<IceServer> {
    let values = fields.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(parse).take(SERVERS_MAX).collect()
}

/// The servers in one header field. It ends at the first link that is malformed.
pub(super) fn parse(value: &str) -> Vec<IceServer> {
    let mut rest = value;
    let mut servers = Vec::new();
    while let Some((link, after)) = next_link(rest) {
        servers.extend(link);
        rest = after;
        if servers.len() == SERVERS_MAX {
            break;
        }
    }
    servers
}

/// Reads one link; returns the server, if it is one, and what follows.
fn next_link(text: &str) -> Option<(Option<IceServer>, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let (uri, mut rest) = text.strip_prefix('<')?.split_once('>')?;
    let (mut relation, mut username, mut credential) = (None, None, None);
    loop {
        rest = rest.trim_start();
        let Some(after) = rest.strip_prefix(';') else { break };
        let (name, value, after) = parameter(after)?;
        let place = match name.to_ascii_lowercase().as_str() {
            "rel" => &mut relation,
            "username" => &mut username,
            "credential" => &mut credential,
            _ => &mut None,
        };
        // The first of several counts (RFC 8288 section 3.3).
        place.get_or_insert(value);
        rest = after;
    }
    let is_server = relation.is_some_and(|relation: String| {
        relation.split_whitespace().any(|one| one.eq_ignore_ascii_case("ice-server"))
    });
    let scheme = uri.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let is_server = is_server && matches!(scheme.as_str(), "stun" | "stuns" | "turn" | "turns");
    let credential = credential.map(Zeroizing::new);
    let server = IceServer { uri: uri.trim().to_owned(), username, credential };
    Some((is_server.then_some(server), rest))
}

/// Reads `name`, `name=token` or `name="text"`; returns what follows, too.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start();
    let end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let name = text[..end].trim_end();
    let Some(value) = text[end..].strip_prefix('=') else {
        return Some((name, String::new(), &text[end..]));
    };
    let value = value.trim_start();
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([';', ',']).unwrap_or(value.len());
        return Some((name, value[..end].trim_end().to_owned(), &value[end..]));
    };
    let mut content = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((name, content, &quoted[at + 1..])),
            '\\' => content.push(characters.next()?.1),
            other => content.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(uri: &str, username: Option<&str>, credential: Option<&str>) -> IceServer {
        let credential = credential.map(|it| Zeroizing::new(it.to_owned()));
        IceServer { uri: uri.into(), username: username.map(str::to_owned), credential }
    }

    /// The example of RFC 9725 figure 5, as one field and as four.
    #[test]
    fn links_to_ice_servers_are_read() {
        let links = [
            "<stun:stun.example.net>; rel=\"ice-server\"",
            "<turn:turn.example.net?transport=udp>; rel=\"ice-server\"; \
             username=\"user\"; credential=\"myPassword\"",
            "<turns:turn.example.net?transport=tcp>; rel=ice-server;username=user; \
             credential=\"a\\\"b,;>c\"",
        ];
        let expected = [
            server("stun:stun.example.net", None, None),
            server("turn:turn.example.net?transport=udp", Some("user"), Some("myPassword")),
            server("turns:turn.example.net?transport=tcp", Some("user"), Some("a\"b,;>c")),
        ];
        assert_eq!(parse(&links.join(", ")), expected);
        let mut fields = HeaderMap::new();
        for link in links {
            fields.append(header::LINK, link.parse().unwrap());
        }
        assert_eq!(ice_servers(&fields), expected);
    }

    #[test]
    fn a_link_that_is_written_is_read_as_it_was() {
        for server in [
            server("stun:stun.example.net:3478", None, None),
            server("turn:a?transport=udp", Some("user, \"x\""), Some("a\\b;>\"")),
        ] {
            assert_eq!(parse(&server.link()), [server]);
        }
    }

    #[test]
    fn links_of_other_kinds_and_malformed_ones_are_ignored() {
        let cases = [
            "",
            "stun:a",
            "<stun:a",
            "<stun:a>",
            "<stun:a>; rel=\"ice-server",
            "<stun:a>; rel=next",
            "<https://a/sse>; rel=\"urn:ietf:params:whip:ext:example\"",
            "<https://a>; rel=\"ice-server\"",
        ];
        for case in cases {
            assert_eq!(parse(case), [], "{case}");
        }
        let mixed = "<https://a>; rel=next; flag, <stun:b>; flag; rel=\"x ice-server\"";
        assert_eq!(parse(mixed), [server("stun:b", None, None)]);
        let many = "<stun:a>;rel=ice-server,".repeat(100);
        assert_eq!(parse(&many).len(), SERVERS_MAX);
        assert!(!format!("{:?}", server("turn:a", None, Some("secret"))).contains("secret"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,60}|[<>;,=\" \\\\a:-]{0,60}") {
            prop_assert!(parse(&text).len() <= SERVERS_MAX);
        }
    }
}
