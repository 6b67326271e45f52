//! URLs of endpoints and sessions (RFC 3986), as far as HTTP uses them.

use std::fmt;

use hyper::Uri;
use hyper::http::uri::Scheme;
use rustls::pki_types::ServerName;

use super::ClientError;

/// An absolute URL with `http` or `https`, a host and a path.
#[derive(Clone, Eq, PartialEq)]
pub(super) struct Url {
    uri: Uri,
    text: String,
}

impl Url {
    /// Parses an absolute URL. A fragment (`#…`) is left out: it is not sent.
    pub(super) fn parse(url: &str) -> Result<Self, ClientError> {
        let error = |reason| ClientError::Url { url: url.to_owned(), reason };
        let text = url.trim().split('#').next().unwrap_or_default();
        let uri: Uri = text.parse().map_err(|_| error("it is malformed"))?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS => {}
            Some(_) => return Err(error("its scheme is neither https nor http")),
            None => return Err(error("it does not begin with https:// or http://")),
        }
        let authority = uri.authority().map(hyper::http::uri::Authority::as_str);
        if authority.is_none_or(|authority| authority.contains('@')) {
            return Err(error("it has a user's name; give a token instead"));
        }
        if uri.host().is_none_or(|host| without_brackets(host).is_empty()) {
            return Err(error("it has no host"));
        }
        let has_port =
            authority.is_some_and(|it| it.rsplit(']').next().unwrap_or(it).contains(':'));
        if has_port && uri.port_u16().is_none_or(|port| port == 0) {
            return Err(error("its port is not from 1 to 65535"));
        }
        let text = uri.to_string();
        Ok(Self { uri, text })
    }

    /// Resolves a reference, such as that in `Location` (RFC 3986 section 5.2).
    pub(super) fn join(&self, reference: &str) -> Result<Self, ClientError> {
        let reference = reference.trim().split('#').next().unwrap_or_default();
        let scheme = self.uri.scheme_str().unwrap_or_default();
        if has_scheme(reference) {
            return Self::parse(reference);
        }
        if reference.starts_with("//") {
            return Self::parse(&format!("{scheme}:{reference}"));
        }
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        let base = self.uri.path();
        let (path, query) = if path.is_empty() {
            (base.to_owned(), query.or_else(|| self.uri.query()))
        } else if path.starts_with('/') {
            (without_dots(path), query)
        } else {
            let folder = base.rfind('/').map_or("/", |end| &base[..=end]);
            (without_dots(&format!("{folder}{path}")), query)
        };
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        Self::parse(&format!("{scheme}://{}{path}{query}", self.authority()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }

    /// The host, an IPv6 address without brackets.
    pub(super) fn host(&self) -> &str {
        without_brackets(self.uri.host().unwrap_or_default())
    }

    pub(super) fn port(&self) -> u16 {
        let default = if self.is_encrypted() { 443 } else { 80 };
        self.uri.port_u16().unwrap_or(default)
    }

    /// Host and port as in the URL, for `Host`.
    pub(super) fn authority(&self) -> &str {
        self.uri.authority().map_or("", |authority| authority.as_str())
    }

    /// Path and query, for the first line of a request.
    pub(super) fn target(&self) -> Result<Uri, ClientError> {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        target.parse().map_err(|_| self.error("its path is malformed"))
    }

    /// The name that the server's certificate must have.
    pub(super) fn server_name(&self) -> Result<ServerName<'static>, ClientError> {
        let name = ServerName::try_from(self.host().to_owned());
        name.map_err(|_| self.error("its host is not a name"))
    }

    pub(super) fn error(&self, reason: &'static str) -> ClientError {
        ClientError::Url { url: self.text.clone(), reason }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

/// Returns a host without the brackets of an IPv6 address.
fn without_brackets(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

fn has_scheme(reference: &str) -> bool {
    let name = reference.split([':', '/', '?']).next().unwrap_or_default();
    reference[name.len()..].starts_with(':')
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Removes `.` and `..` from an absolute path (RFC 3986 section 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if segments.peek().is_none() {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join(base: &str, reference: &str) -> String {
        Url::parse(base).unwrap().join(reference).unwrap().text
    }

    /// The examples of RFC 3986 section 5.4 that are of HTTP and have no fragment.
    #[test]
    fn references_are_resolved_as_in_rfc_3986() {
        let cases = [
            ("g", "/b/c/g"),
            ("./g", "/b/c/g"),
            ("g/", "/b/c/g/"),
            ("/g", "/g"),
            ("?y", "/b/c/d;p?y"),
            ("g?y", "/b/c/g?y"),
            (";x", "/b/c/;x"),
            ("g;x?y", "/b/c/g;x?y"),
            ("", "/b/c/d;p?q"),
            (".", "/b/c/"),
            ("./", "/b/c/"),
            ("..", "/b/"),
            ("../", "/b/"),
            ("../g", "/b/g"),
            ("../..", "/"),
            ("../../g", "/g"),
            ("../../../g", "/g"),
            ("../../../../g", "/g"),
            ("/./g", "/g"),
            ("/../g", "/g"),
            ("g.", "/b/c/g."),
            (".g", "/b/c/.g"),
            ("g..", "/b/c/g.."),
            ("./../g", "/b/g"),
            ("./g/.", "/b/c/g/"),
            ("g/./h", "/b/c/g/h"),
            ("g/../h", "/b/c/h"),
            ("g;x=1/./y", "/b/c/g;x=1/y"),
            ("g?y/../x", "/b/c/g?y/../x"),
        ];
        for (reference, expected) in cases {
            let joined = join("http://a/b/c/d;p?q", reference);
            assert_eq!(joined, format!("http://a{expected}"), "{reference}");
        }
        assert_eq!(join("http://a/b/c/d;p?q", "//g"), "http://g/");
        assert_eq!(join("https://a:1/whip", "https://[::1]:2/x"), "https://[::1]:2/x");
        assert_eq!(join("https://a:1/whip", "session/a#b"), "https://a:1/session/a");
    }

    #[test]
    fn urls_that_are_none_are_refused_in_words() {
        let error = |url: &str| Url::parse(url).unwrap_err().to_string();
        let cases = [
            ("", "malformed"),
            ("example.com/whip", "malformed"),
            ("/whip", "does not begin with"),
            ("ftp://a/b", "its scheme is neither"),
            ("rtsp://a/b", "its scheme is neither"),
            ("http://", "malformed"),
            ("http://[]?", "it has no host"),
            ("http://user:secret@a/b", "user's name"),
            ("http://a:0/", "its port"),
            ("http://a:99999/", "its port"),
            ("http://a b/", "malformed"),
            ("http://a/\r\nX: y", "malformed"),
        ];
        for (url, expected) in cases {
            assert!(error(url).contains(expected), "{url}: {}", error(url));
        }
    }

    #[test]
    fn hosts_and_ports_have_defaults() {
        let url = Url::parse("https://[::1]").unwrap();
        assert_eq!((url.host(), url.port(), url.authority()), ("::1", 443, "[::1]"));
        assert_eq!(url.target().unwrap().to_string(), "/");
        let url = Url::parse("HTTP://A/x?y#z").unwrap();
        assert_eq!((url.host(), url.port(), url.is_encrypted()), ("A", 80, false));
        assert_eq!(url.target().unwrap().to_string(), "/x?y");
    }

    proptest! {
        #[test]
        fn any_reference_is_resolved_or_refused(reference in "\\PC{0,40}|[./?#:a@\\[\\]-]{0,20}") {
            let base = Url::parse("https://a:1/b/c?d").unwrap();
            if let Ok(url) = base.join(&reference) {
                prop_assert!(!url.host().is_empty());
                prop_assert!(url.target().is_ok());
                prop_assert_eq!(&Url::parse(url.as_str()).unwrap(), &url);
            }
        }
    }
}
