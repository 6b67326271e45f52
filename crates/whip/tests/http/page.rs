//! The page, as a file and in Chromium.

use std::process::Command;

use rushes_whip::ServerConfig;

use crate::fake::{address, serve, url};
use crate::requests::request;
use crate::skipped;

#[test]
fn the_page_and_all_that_it_names_come_from_this_server() {
    let (server, _fake) = serve(ServerConfig { publish: false, ..ServerConfig::default() });
    let get = |path: &str| request(address(&server), &format!("GET {path}"), "", None);
    let page = get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.body.contains("data-serves=\"whep\""), "{}", page.body);
    let policy = page.field("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    let named = page.body.split(['"', '\'']).filter(|text| {
        let (_, extension) = text.rsplit_once('.').unwrap_or_default();
        matches!(extension, "css" | "js" | "svg")
    });
    let named: Vec<_> = named.collect();
    assert!(named.len() >= 3, "{named:?}");
    for file in named.into_iter().chain(["session.js"]) {
        let found = get(&format!("/{file}"));
        assert_eq!(found.status, 200, "{file}");
        assert!(!found.body.contains("http://") || file == "icon.svg", "{file}");
        assert!(!found.body.contains("https://"), "{file}");
    }
    // The policy forbids scripts in the text.
    assert!(!page.body.contains(" on") && !page.body.contains("<script>"), "{}", page.body);
    let head = request(address(&server), "HEAD /?play", "", None);
    assert_eq!((head.status, &*head.body), (200, ""));
}

/// What Chromium shows of a page.
struct Browsed {
    page: String,
    /// What the page's console says.
    console: String,
    /// How Chromium ended, and all that it printed, for the message of a failed test.
    all: String,
}

/// Opens a page, and lets it work for `milliseconds` of its own time.
fn browse(url: &str, milliseconds: u32) -> Browsed {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--no-first-run", "--disable-background-networking", "--dump-dom"])
        .arg(format!("--virtual-time-budget={milliseconds}"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(url)
        .output()
        .unwrap();
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let (page, log) = (text(&output.stdout), text(&output.stderr));
    // Pages of the browser's own have messages, too.
    let source = format!("source: {}", url.split(['?', ',']).next().unwrap());
    let of_page = |line: &&str| line.contains("CONSOLE") && line.contains(&source);
    let console = log.lines().filter(of_page).collect::<Vec<_>>().join("\n");
    let all = format!("{}\n{page}\n{log}", output.status);
    Browsed { page, console, all }
}

#[test]
fn the_page_runs_in_chromium_without_a_message_on_its_console() {
    if !skipped::have(&["chromium"]) {
        return;
    }
    // Chromium may end before it has written what a page logged last.
    let mut logged = (0..10)
        .map(|_| browse("data:text/html,<script>console.log('seen')</script>", 1000))
        .skip_while(|browsed| !browsed.console.contains("seen"));
    assert!(logged.next().is_some(), "the console is not read");
    let (server, _fake) = serve(ServerConfig::default());
    let Browsed { page, console, all } = browse(&url(&server, "/"), 1000);
    assert_eq!(console, "", "{all}");
    // The script shows the panels of what the server has.
    for panel in ["play", "publish"] {
        let shown = format!("<section id=\"{panel}\" aria-labelledby=\"{panel}-title\">");
        assert!(page.contains(&shown), "{panel} is hidden: {all}");
    }
}

#[test]
fn the_page_asks_for_a_token() {
    if !skipped::have(&["chromium"]) {
        return;
    }
    let token = Some("secret".parse().unwrap());
    let (server, fake) = serve(ServerConfig { token, ..ServerConfig::default() });
    let Browsed { page, all, .. } = browse(&url(&server, "/?play"), 10_000);
    assert!(page.contains("<form id=\"access\" class=\"notice\">"), "{all}");
    assert_eq!(fake.events(), []);
}
