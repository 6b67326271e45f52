//! The client, with our server and with servers of one response.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rushes_whip::{Client, ClientError, ClientOptions, IceServer, Kind, ServerConfig, Token};

use crate::fake::{Event, OFFER, REASONS, serve, url};

fn client() -> Client {
    Client::new(ClientOptions::default()).unwrap()
}

#[test]
fn a_session_is_opened_patched_restarted_and_deleted() {
    let token: Token = "secret".parse().unwrap();
    let config = ServerConfig { token: Some(token.clone()), ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let mut session = client().post(&url(&server, "/whep"), Some(&token), OFFER).unwrap();
    assert_eq!(session.answer(), format!("answer to {OFFER}"));
    assert!(session.resource_url().starts_with(&url(&server, "/whep/")));
    assert_eq!(session.ice_servers(), []);
    let first = session.etag().unwrap().to_owned();
    assert_eq!(session.patch("a=candidate").unwrap(), None);
    assert_eq!(session.etag(), Some(&*first));
    assert_eq!(session.restart("restart").unwrap(), "credentials");
    assert_ne!(session.etag(), Some(&*first));
    assert_eq!(session.patch("a=candidate").unwrap(), None);
    let error = session.patch("unprocessable").unwrap_err();
    assert!(matches!(error, ClientError::Unsupported(422)), "{error}");
    let again = session.clone();
    session.delete().unwrap();
    again.delete().unwrap();
    let events = fake.events();
    let Event::Opened(Kind::Play, id) = &events[0] else { panic!("{events:?}") };
    assert_eq!(events.last(), Some(&Event::Closed(id.clone())));
    assert_eq!(events.len(), 6);
}

#[test]
fn refusals_become_errors_with_the_server_s_words() {
    let (server, _fake) = serve(ServerConfig::default());
    for (word, _) in REASONS {
        let error = client().post(&url(&server, "/whip"), None, word).unwrap_err();
        assert!(error.to_string().contains("the fake endpoint refuses"), "{error}");
        let retry_after = match &error {
            ClientError::Conflict { retry_after, .. } | ClientError::Busy { retry_after, .. } => {
                *retry_after
            }
            _ => continue,
        };
        assert_eq!(retry_after, Some(Duration::from_secs(5)));
    }
    let token = Some("secret".parse().unwrap());
    let (server, _fake) = serve(ServerConfig { token, ..ServerConfig::default() });
    let wrong = Some("guess".parse().unwrap());
    for token in [None, wrong.as_ref()] {
        let error = client().post(&url(&server, "/whip"), token, OFFER).unwrap_err();
        assert!(matches!(error, ClientError::Unauthorized(_)), "{error}");
    }
    let error = client().post(&url(&server, "/"), None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::MethodNotAllowed(_)), "{error}");
    let error = client().post(&url(&server, "/x"), None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::NotFound { .. }), "{error}");
}

/// A server that gives each connection the next of `responses`; returns the heads it received.
fn scripted(responses: Vec<String>) -> (SocketAddr, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, heads) = mpsc::channel();
    thread::spawn(move || {
        for response in responses {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let len = head.to_ascii_lowercase();
            let len = len.lines().find_map(|line| line.strip_prefix("content-length: "));
            let len = len.map_or(0, |len| len.parse().unwrap());
            reader.read_exact(&mut vec![0; len]).unwrap();
            let response = response.replace("{address}", &address.to_string());
            // The test may not ask for it, and the client may refuse it before its end.
            let _ = sender.send(head);
            let _ = (&stream).write_all(response.as_bytes());
        }
    });
    (address, heads)
}

fn response(status: u16, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

const SDP: &str = "Content-Type: application/sdp\r\n";

fn created(fields: &str) -> String {
    response(201, &format!("{SDP}{fields}"), "answer")
}

fn post(responses: Vec<String>) -> Result<rushes_whip::Session, ClientError> {
    let (address, _heads) = scripted(responses);
    client().post(&format!("http://{address}/a/whip?key=1"), None, OFFER)
}

#[test]
fn the_url_of_the_session_may_be_relative() {
    let cases =
        [("/s/1", "/s/1"), ("s/1?x", "/a/s/1?x"), ("../s", "/s"), ("http://{address}/s#x", "/s")];
    for (location, expected) in cases {
        let (address, _heads) = scripted(vec![created(&format!("Location: {location}\r\n"))]);
        let session = client().post(&format!("http://{address}/a/whip"), None, OFFER).unwrap();
        assert_eq!(session.resource_url(), format!("http://{address}{expected}"));
    }
}

#[test]
fn ice_servers_of_the_response_are_passed_on() {
    let fields = "Location: /s\r\nLink: <stun:a>; rel=\"ice-server\"\r\n\
                  Link: <turn:b>; rel=\"ice-server\"; username=\"u\"; credential=\"c\"\r\n";
    let session = post(vec![created(fields)]).unwrap();
    let servers: Vec<_> = session.ice_servers().iter().map(|it| it.uri.as_str()).collect();
    assert_eq!(servers, ["stun:a", "turn:b"]);
    assert_eq!(session.etag(), None);
}

#[test]
fn ice_servers_of_a_server_reach_its_clients() {
    let login = |text: &str| Some(text.to_owned());
    let turn = IceServer {
        uri: "turn:b:3478".into(),
        username: login("user, \"1\""),
        credential: login("a\\b;").map(Into::into),
    };
    let stun = IceServer { uri: "stun:a".into(), username: None, credential: None };
    let ice_servers = vec![stun, turn];
    let config = ServerConfig { ice_servers: ice_servers.clone(), ..ServerConfig::default() };
    let (server, _fake) = serve(config);
    let session = client().post(&url(&server, "/whep"), None, OFFER).unwrap();
    assert_eq!(session.ice_servers(), ice_servers);
}

#[test]
fn redirections_keep_method_and_offer() {
    let to = |status| response(status, "Location: /b/whip\r\n", "");
    let (address, heads) = scripted(vec![to(307), to(308), created("Location: s\r\n")]);
    let token: Token = "secret".parse().unwrap();
    let url = format!("http://{address}/a/whip");
    let session = client().post(&url, Some(&token), OFFER).unwrap();
    assert_eq!(session.resource_url(), format!("http://{address}/b/s"));
    let heads: Vec<_> = heads.iter().take(3).collect();
    assert!(heads[0].starts_with("POST /a/whip HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[2].starts_with("POST /b/whip HTTP/1.1\r\n"), "{}", heads[2]);
    assert!(heads.iter().all(|head| head.contains("Bearer secret")), "{heads:?}");
}

#[test]
fn a_redirection_to_another_host_takes_the_token_along() {
    let (other, heads) = scripted(vec![created("Location: s\r\n")]);
    let (first, _) = scripted(vec![response(307, &format!("Location: http://{other}/\r\n"), "")]);
    let token: Token = "secret".parse().unwrap();
    client().post(&format!("http://{first}/"), Some(&token), OFFER).unwrap();
    let head = heads.recv().unwrap();
    assert!(head.starts_with("POST / ") && head.contains("Bearer secret"), "{head}");
}

#[test]
fn a_server_may_not_ask_for_a_wait_that_cannot_be_added_to_a_time() {
    for seconds in ["18446744073709551615", "99999999999999999999", "-1", "soon"] {
        let fields = format!("Retry-After: {seconds}\r\n");
        let error = post(vec![response(503, &fields, "")]).unwrap_err();
        let ClientError::Busy { retry_after, .. } = error else { panic!("{error}") };
        let expected = seconds.starts_with("184").then(|| Duration::from_secs(86_400));
        assert_eq!(retry_after, expected, "{seconds}");
    }
}

#[test]
fn responses_that_are_no_session_are_errors_in_words() {
    let circle = response(307, "Location: /\r\n", "");
    let cases = [
        (vec![created("")], "no Location"),
        (vec![response(201, "Location: /s\r\n", "answer")], "of type none"),
        (vec![response(201, "Location: /s\r\nContent-Type: text/html\r\n", "")], "text/html"),
        (vec![response(200, "Content-Type: text/html\r\n", "hello")], "status 200 instead of 201"),
        (vec![response(302, "Location: /s\r\n", "")], "status 302"),
        (vec![response(307, "", "")], "no Location"),
        (vec![circle; 6], "in a circle"),
        (vec![response(406, SDP, "v=0")], "makes one of its own"),
        (vec![response(406, "", "")], "refuses the offer (status 406): it does not say why"),
        (vec![response(500, "Content-Type: text/html\r\n", "<p>")], "500: it does not say why"),
        (
            vec![response(
                500,
                "Content-Type: application/problem+json\r\n",
                "{\n\"title\":1}\x1b",
            )],
            "500: { \"title\":1}",
        ),
        (vec![created("Location: ftp://a/\r\n")], "neither https nor http"),
        (vec!["HTTP/1.1 201 X\r\n".into()], "did not answer"),
        (vec!["garbage\r\n\r\n".into()], "did not answer"),
        (vec![created("Location: /s\r\n").replace("answer", "ans")], "did not answer"),
        (vec![format!("HTTP/1.1 201 X\r\nA: {}\r\n\r\n", "a".repeat(400_000))], "did not answer"),
        (
            vec![response(201, &format!("{SDP}Location: /s\r\n"), &"a".repeat(300_000))],
            "more than 262144 bytes",
        ),
    ];
    for (responses, expected) in cases {
        let start: String = responses[0].chars().take(80).collect();
        let error = post(responses).unwrap_err().to_string();
        assert!(error.contains(expected), "{start}: {error}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/whip", silent.local_addr().unwrap());
    let timeout = Duration::from_millis(100);
    let client = Client::new(ClientOptions { timeout, ..ClientOptions::default() }).unwrap();
    let error = client.post(&url, None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::Timeout(it) if it == timeout), "{error}");
    drop(silent);
    let error = client.post(&url, None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");
}

#[test]
fn a_session_that_takes_no_fragments_says_so() {
    let responses = vec![created("Location: /s\r\n"), response(405, "", ""), response(204, "", "")];
    let mut session = post(responses).unwrap();
    assert!(matches!(session.patch("a"), Err(ClientError::Unsupported(405))));
    assert!(matches!(session.restart("a"), Err(ClientError::NotRestarted)));
}

#[test]
fn a_client_works_within_a_runtime_of_the_application() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (server, _fake) = serve(ServerConfig::default());
        client().post(&url(&server, "/whip"), None, OFFER).unwrap().delete().unwrap();
    });
}
