//! The page at `/`: it plays and publishes in a browser. Nothing of it comes from elsewhere.

use hyper::StatusCode;
use hyper::header::{self, HeaderName};

use crate::server::{Answer, ServerConfig, content, set, set_text};

/// Only files of this server, and no scripts in the text of the page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self'; media-src 'self' blob: mediastream:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What in the text of the page is replaced by the protocols that the server has.
const SERVES: &str = "{serves}";

/// A file of the page.
pub(crate) struct File {
    path: &'static str,
    kind: &'static str,
    text: &'static str,
}

static FILES: [File; 5] = [
    File { path: "", kind: "text/html; charset=utf-8", text: include_str!("index.html") },
    File { path: "page.css", kind: "text/css; charset=utf-8", text: include_str!("page.css") },
    File { path: "page.js", kind: SCRIPT, text: include_str!("page.js") },
    File { path: "session.js", kind: SCRIPT, text: include_str!("session.js") },
    File { path: "icon.svg", kind: "image/svg+xml", text: include_str!("icon.svg") },
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// The file at a path without its first `/`.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// The response to GET.
    pub(crate) fn response(&self, config: &ServerConfig) -> Answer {
        let (publish, play) = (config.publish, config.play);
        let serves = [(publish, "whip"), (play, "whep")].into_iter().filter(|(is, _)| *is);
        let serves: Vec<_> = serves.map(|(_, name)| name).collect();
        let text = self.text.replace(SERVES, &serves.join(" "));
        let mut response = content(StatusCode::OK, self.kind, text);
        set(&mut response, header::CACHE_CONTROL, "no-cache");
        set(&mut response, header::REFERRER_POLICY, "no-referrer");
        let policy = POLICY.split_whitespace().collect::<Vec<_>>().join(" ");
        set_text(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
        let features = "camera=(self), microphone=(self), display-capture=(self), autoplay=(self)";
        set(&mut response, HeaderName::from_static("permissions-policy"), features);
        response
    }
}
