//! Who may use the server: tokens, and pages of other sites.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, StatusCode};

use super::config::ServerConfig;
use super::response::{Answer, problem, set, set_text};

/// Checks `Authorization`; the error is the response.
pub(super) fn check_token(config: &ServerConfig, fields: &HeaderMap) -> Result<(), Box<Answer>> {
    let Some(token) = &config.token else { return Ok(()) };
    let shown = fields.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (text, challenge) = match shown.and_then(bearer) {
        Some(shown) if token.matches(shown) => return Ok(()),
        Some(_) => ("the token is wrong", "Bearer realm=\"rushes\", error=\"invalid_token\""),
        None => (
            "this server needs a token: send the header \"Authorization: Bearer TOKEN\"",
            "Bearer realm=\"rushes\"",
        ),
    };
    let mut response = problem(StatusCode::UNAUTHORIZED, text);
    set(&mut response, header::WWW_AUTHENTICATE, challenge);
    Err(Box::new(response))
}

/// The token of an `Authorization` header field (RFC 6750 section 2.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses requests that a page of another site made in a user's browser.
///
/// A page of a site whose name was made to resolve to this machine has the same origin for the
/// browser. The name must therefore be `localhost` or an address, unless a token protects the server or the
/// site is allowed. Programs, which say no origin, may use any name of a machine that others reach, too.
pub(super) fn check_origin(
    config: &ServerConfig,
    fields: &HeaderMap,
    local: SocketAddr,
) -> Result<(), Box<Answer>> {
    let host = text(fields, header::HOST).unwrap_or_default();
    let origin = text(fields, header::ORIGIN);
    let is_allowed = |origin: &str| config.origins.allows(origin);
    let refuse = |text: &str| Err(Box::new(problem(StatusCode::FORBIDDEN, text)));
    match origin {
        Some(origin) if !is_same(origin, host) && !is_allowed(origin) => {
            refuse("this server does not allow pages of other sites; allow their origin")
        }
        _ if config.token.is_none()
            && (local.ip().is_loopback() || origin.is_some())
            && !is_local(host)
            && !origin.is_some_and(is_allowed) =>
        {
            refuse(
                "the name in the address may be given by another site; \
                 use localhost or an address, or set a token or the page's origin",
            )
        }
        _ => Ok(()),
    }
}

/// Whether an origin such as `https://host:port` is that of `host`; a proxy may add TLS.
fn is_same(origin: &str, host: &str) -> bool {
    let authority = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// Whether the value of `Host` is `localhost` or an address.
fn is_local(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    if let Some(address) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return address.parse::<IpAddr>().is_ok();
    }
    let name = host.split(':').next().unwrap_or_default().to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn text(fields: &HeaderMap, name: HeaderName) -> Option<&str> {
    fields.get(name).map(|value| value.to_str().unwrap_or_default())
}

/// Adds the header fields of Cross-Origin Resource Sharing, if the request is from a page of
/// another site that may use the server.
pub(super) fn share(
    config: &ServerConfig,
    method: &Method,
    fields: &HeaderMap,
    response: &mut Answer,
) {
    set(response, header::VARY, "Origin");
    let Some(origin) = text(fields, header::ORIGIN).filter(|origin| config.origins.allows(origin))
    else {
        return;
    };
    set_text(response, header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let exposed = "Location, ETag, Link, Retry-After, WWW-Authenticate, Accept-Post, Accept-Patch";
    set(response, header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    if method == Method::OPTIONS {
        let methods = "GET, HEAD, POST, PATCH, DELETE, OPTIONS";
        set(response, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
        let allowed = "Authorization, Content-Type, If-Match, Link";
        set(response, header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        set(response, header::ACCESS_CONTROL_MAX_AGE, "86400");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_names_of_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "a.localhost:1", "127.0.0.1", "127.0.0.1:8080"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["[::1]", "[::1]:8080", "192.0.2.1:1"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn an_origin_is_compared_with_the_host_as_a_whole() {
        assert!(is_same("http://a:1", "a:1"));
        assert!(is_same("https://A", "a"));
        for origin in ["null", "", "http://a", "http://a:1.evil", "ftp://a:1", "a:1"] {
            assert!(!is_same(origin, "a:1"), "{origin}");
        }
    }

    #[test]
    fn the_scheme_of_authorization_is_bearer() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer  abc"), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("abc"), None);
    }
}
