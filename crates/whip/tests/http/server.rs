//! The server's routes and statuses.

use std::io::Write;
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::thread;

use rushes_whip::{BindError, Kind, Origins, Server, ServerConfig};

use crate::fake::{Event, Fake, OFFER, REASONS, address, serve};
use crate::requests::{post, request};

const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

#[test]
fn an_offer_is_answered_with_a_session_that_ends_when_it_is_deleted() {
    let (server, fake) = serve(ServerConfig::default());
    let address = address(&server);
    for (path, kind) in [("/whip", Kind::Publish), ("/whep", Kind::Play)] {
        let created = post(address, path, "", OFFER);
        assert_eq!((created.status, created.field("content-type")), (201, Some("application/sdp")));
        assert_eq!(created.body, format!("answer to {OFFER}"));
        let location = created.field("location").unwrap().to_owned();
        let (folder, id) = location.rsplit_once('/').unwrap();
        assert_eq!(folder, path);
        assert!(id.len() == 32 && id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
        assert_eq!(fake.events().last(), Some(&Event::Opened(kind, id.to_owned())));
        assert_eq!(fake.peers().last().unwrap().1, address);
        let head = request(address, &format!("GET {location}"), "", None);
        assert_eq!((head.status, &*head.body), (204, ""));
        let other = location.replace("/whi", "/whe");
        let other = if other == location { location.replace("/whe", "/whi") } else { other };
        assert_eq!(request(address, &format!("DELETE {other}"), "", None).status, 404);
        let tagged = "If-Match: \"old\"\r\n";
        assert_eq!(request(address, &format!("DELETE {location}"), tagged, None).status, 200);
        assert_eq!(fake.events().last(), Some(&Event::Closed(id.to_owned())));
        assert_eq!(request(address, &format!("DELETE {location}"), "", None).status, 404);
        assert_eq!(request(address, &format!("GET {location}"), "", None).status, 404);
    }
    assert_eq!(fake.events().len(), 4);
}

#[test]
fn fragments_are_taken_with_the_current_entity_tag_only() {
    let (server, fake) = serve(ServerConfig::default());
    let address = address(&server);
    let created = post(address, "/whip", "", OFFER);
    let line = format!("PATCH {}", created.field("location").unwrap());
    let first = format!("If-Match: {}\r\n", created.field("etag").unwrap());
    let patch = |fields: &str, body: &str| request(address, &line, fields, Some((FRAGMENT, body)));
    assert_eq!(patch("", "a").status, 428);
    assert_eq!(patch("If-Match: \"other\"\r\n", "a").status, 412);
    assert_eq!(fake.events().len(), 1, "neither reached the endpoint");
    let taken = patch(&first, "a=candidate");
    assert_eq!((taken.status, &*taken.body, taken.field("etag")), (204, "", None));
    assert_eq!(patch(&first, "malformed").status, 400);
    assert_eq!(patch(&first, "unprocessable").status, 422);
    let restarted = patch("If-Match: *\r\n", "restart");
    assert_eq!((restarted.status, &*restarted.body), (200, "credentials"));
    assert_eq!(restarted.field("content-type"), Some(FRAGMENT));
    let second = format!("If-Match: {}\r\n", restarted.field("etag").unwrap());
    assert_ne!(first, second);
    assert_eq!(patch(&first, "a=candidate").status, 412);
    assert_eq!(patch(&second, "a=candidate").status, 204);
    let wrong = request(address, &line, &second, Some(("application/sdp", "a")));
    assert_eq!((wrong.status, wrong.field("accept-patch")), (415, Some(FRAGMENT)));
}

#[test]
fn refusals_have_their_status_and_their_sentence() {
    let (server, _fake) = serve(ServerConfig::default());
    let statuses = [400, 403, 404, 406, 409, 422, 429, 503, 500];
    for ((word, _), status) in REASONS.iter().zip(statuses) {
        let refused = post(address(&server), "/whep", "", word);
        assert_eq!((refused.status, &*refused.body), (status, "the fake endpoint refuses\n"));
        let is_temporary = matches!(status, 409 | 429 | 503);
        assert_eq!(refused.field("retry-after").is_some(), is_temporary, "{status}");
    }
}

#[test]
fn what_is_not_an_offer_is_refused_in_words() {
    let config = ServerConfig { body_max: 1000, ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let address = address(&server);
    let large = "a".repeat(1001);
    let post = |kind: &str, body: &str| request(address, "POST /whip", "", Some((kind, body)));
    let cases = [
        (post("text/plain", OFFER), 415, "must be application/sdp"),
        (request(address, "POST /whip", "Content-Length: 0\r\n", None), 415, "must be"),
        (post("application/sdp", " \r\n"), 400, "empty"),
        (post("application/sdp", &large), 413, "more than 1000 bytes"),
        (request(address, "PUT /whip", "", None), 405, "takes GET, HEAD, POST"),
        (request(address, "DELETE /whip", "", None), 405, "takes"),
        (request(address, "POST /", "", None), 405, "GET, HEAD"),
        (request(address, "GET /nothing", "", None), 404, "publish to /whip"),
        (request(address, "DELETE /whip/", "", None), 404, "no such session"),
        (request(address, "DELETE /whip/../x", "", None), 404, "no such session"),
    ];
    for (response, status, text) in cases {
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.body.contains(text), "{response:?}");
    }
    assert_eq!(post("application/sdp", &large[1..]).status, 201);
    assert_eq!(fake.events().len(), 1);
}

#[test]
fn endpoints_say_what_they_are() {
    let (server, _fake) = serve(ServerConfig::default());
    let address = address(&server);
    for (path, kind) in [("/whip", None), ("/whep", Some("application/sdp"))] {
        for method in ["GET", "HEAD"] {
            let found = request(address, &format!("{method} {path}"), "", None);
            assert_eq!((found.status, &*found.body), (200, ""));
            assert_eq!(found.field("content-type"), kind);
            assert_eq!(found.field("accept-post"), Some("application/sdp"));
        }
        let options = request(address, &format!("OPTIONS {path}"), "", None);
        assert_eq!((options.status, options.field("accept-post")), (200, Some("application/sdp")));
        assert_eq!(options.field("access-control-allow-origin"), None);
    }
}

#[test]
fn a_protocol_that_is_off_has_no_address() {
    let config = ServerConfig { publish: false, page: false, ..ServerConfig::default() };
    let (server, fake) = serve(config);
    assert_eq!(post(address(&server), "/whip", "", OFFER).status, 404);
    assert_eq!(request(address(&server), "GET /", "", None).status, 404);
    assert_eq!(post(address(&server), "/whep", "", OFFER).status, 201);
    assert_eq!(fake.events().len(), 1);
}

#[test]
fn a_token_is_required_for_offers_and_sessions() {
    let config = ServerConfig { token: Some("secret".parse().unwrap()), ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let address = address(&server);
    let with = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let missing = post(address, "/whip", "", OFFER);
    assert_eq!(missing.status, 401);
    assert_eq!(missing.field("www-authenticate"), Some("Bearer realm=\"rushes\""));
    let wrong = post(address, "/whip", &with("secre"), OFFER);
    assert_eq!((wrong.status, &*wrong.body), (401, "the token is wrong\n"));
    assert!(wrong.field("www-authenticate").unwrap().contains("invalid_token"));
    assert_eq!(post(address, "/whip", "Authorization: Basic secret\r\n", OFFER).status, 401);
    assert_eq!(fake.events(), []);
    let created = post(address, "/whip", &with("secret"), OFFER);
    let line = format!("DELETE {}", created.field("location").unwrap());
    assert_eq!(request(address, &line, "", None).status, 401);
    assert_eq!(request(address, &line, &with("secret"), None).status, 200);
    assert_eq!(request(address, "OPTIONS /whip", "", None).status, 200);
    assert_eq!(request(address, "GET /", "", None).status, 200);
}

#[test]
fn pages_of_other_sites_need_permission() {
    let friend = "Origin: https://friend.example\r\n";
    let stranger = "Origin: https://stranger.example\r\n";
    let origins = Origins::List(vec!["https://friend.example".into()]);
    let (server, fake) = serve(ServerConfig { origins, ..ServerConfig::default() });
    let address = address(&server);
    let refused = post(address, "/whip", stranger, OFFER);
    assert_eq!((refused.status, refused.field("access-control-allow-origin")), (403, None));
    assert_eq!(fake.events(), []);
    let own = format!("Origin: http://{address}\r\n");
    assert_eq!(post(address, "/whip", &own, OFFER).status, 201);
    let created = post(address, "/whip", friend, OFFER);
    assert_eq!(created.status, 201);
    assert_eq!(created.field("access-control-allow-origin"), Some("https://friend.example"));
    assert!(created.field("access-control-expose-headers").unwrap().contains("Location"));
    assert_eq!(created.field("vary"), Some("Origin"));
    let asked = format!("{friend}Access-Control-Request-Method: POST\r\n");
    let preflight = request(address, "OPTIONS /whip", &asked, None);
    assert_eq!(preflight.status, 200);
    assert!(preflight.field("access-control-allow-methods").unwrap().contains("PATCH"));
    assert!(preflight.field("access-control-allow-headers").unwrap().contains("Authorization"));
    let preflight = request(address, "OPTIONS /whip", stranger, None);
    assert_eq!(preflight.field("access-control-allow-methods"), None);
}

#[test]
fn a_foreign_name_for_the_loopback_address_is_refused_without_a_token() {
    let post = |server: &Server, fields: &str| {
        let text = format!(
            "POST /whip HTTP/1.1\r\n{fields}Content-Type: application/sdp\r\n\
             Content-Length: {}\r\n\r\n{OFFER}",
            OFFER.len()
        );
        let answer = crate::requests::exchange(address(server), text.as_bytes());
        crate::requests::Response::parse(&answer).unwrap().status
    };
    let rebound = "Host: evil.example\r\nOrigin: http://evil.example\r\n";
    let (server, _fake) = serve(ServerConfig::default());
    assert_eq!(post(&server, rebound), 403);
    assert_eq!(post(&server, "Host: localhost:8080\r\n"), 201);
    let token = Some("secret".parse().unwrap());
    let (server, _fake) = serve(ServerConfig { token, ..ServerConfig::default() });
    assert_eq!(post(&server, &format!("{rebound}Authorization: Bearer secret\r\n")), 201);
    let origins = Origins::List(vec!["http://evil.example".into()]);
    let (server, _fake) = serve(ServerConfig { origins, ..ServerConfig::default() });
    assert_eq!(post(&server, rebound), 201);
}

#[test]
fn sessions_have_a_limit_that_ended_ones_do_not_count_for() {
    let config = ServerConfig { sessions_max: 2, ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let address = address(&server);
    assert_eq!(post(address, "/whip", "", OFFER).status, 201);
    assert_eq!(post(address, "/whep", "", OFFER).status, 201);
    let full = post(address, "/whip", "", OFFER);
    assert_eq!(full.status, 503);
    assert!(full.body.contains("all 2 sessions"), "{}", full.body);
    fake.lose_all();
    assert_eq!(post(address, "/whip", "", OFFER).status, 201);
    assert_eq!(fake.open_sessions(), 1);
    assert_eq!(post(address, "/whep", "", "internal").status, 500);
    assert_eq!(post(address, "/whep", "", "panic").status, 500);
    assert_eq!(post(address, "/whep", "", OFFER).status, 201, "neither kept its place");
}

#[test]
fn offers_that_are_being_answered_count_as_sessions() {
    let config = ServerConfig { sessions_max: 1, ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let address = address(&server);
    thread::scope(|scope| {
        let first = scope.spawn(|| post(address, "/whip", "", "wait"));
        fake.wait_for_waiting(1);
        assert_eq!(post(address, "/whip", "", OFFER).status, 503);
        fake.release();
        assert_eq!(first.join().unwrap().status, 201);
    });
    assert_eq!(fake.open_sessions(), 1);
}

#[test]
fn sessions_end_with_the_server_and_its_ports_are_free() {
    let (server, fake) = serve(ServerConfig::default());
    let address = address(&server);
    assert_eq!(post(address, "/whip", "", OFFER).status, 201);
    assert_eq!(post(address, "/whep", "", OFFER).status, 201);
    let silent = crate::requests::connect(address);
    let start = || Server::bind(&[address], ServerConfig::default(), Arc::<Fake>::default());
    let error = start().unwrap_err();
    assert!(matches!(error, BindError::Listen { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    drop(server);
    assert_eq!(fake.open_sessions(), 0);
    assert_eq!(fake.events().len(), 4);
    drop(start().unwrap());
    drop(silent);
}

#[test]
fn a_session_that_opens_while_the_server_ends_is_closed() {
    let (server, fake) = serve(ServerConfig::default());
    let mut stream = crate::requests::connect(address(&server));
    let head = "POST /whip HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/sdp\r\n";
    stream.write_all(format!("{head}Content-Length: 4\r\n\r\nwait").as_bytes()).unwrap();
    fake.wait_for_waiting(1);
    thread::scope(|scope| {
        let end = scope.spawn(|| drop(server));
        // The connection has ended, thus the server is at its end.
        assert_eq!(crate::requests::read(stream), "");
        fake.release();
        end.join().unwrap();
    });
    assert_eq!(fake.events().len(), 2, "{:?}", fake.events());
    assert_eq!(fake.open_sessions(), 0);
}

#[test]
fn a_socket_of_both_address_families_treats_loopback_of_ipv4_as_such() {
    let fake = Arc::<Fake>::default();
    let any = [(Ipv6Addr::UNSPECIFIED, 0).into()];
    let Ok(server) = Server::bind(&any, ServerConfig::default(), fake.clone()) else {
        return crate::skipped::not_here("there is no IPv6");
    };
    let address = ([127, 0, 0, 1], address(&server).port()).into();
    assert_eq!(post(address, "/whip", "", OFFER).status, 201);
    let (peer, local) = fake.peers()[0];
    assert!(peer.is_ipv4() && local == address, "{peer} {local}");
    let rebound = format!(
        "POST /whip HTTP/1.1\r\nHost: evil.example\r\nContent-Type: application/sdp\r\n\
         Content-Length: {}\r\n\r\n{OFFER}",
        OFFER.len()
    );
    let answer = crate::requests::exchange(address, rebound.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[test]
fn a_server_listens_on_all_its_addresses() {
    let any = [([127, 0, 0, 1], 0).into(), ([127, 0, 0, 2], 0).into()];
    let server = Server::bind(&any, ServerConfig::default(), Arc::<Fake>::default()).unwrap();
    let local = server.local_addresses();
    assert_eq!(local.len(), 2);
    for address in local {
        assert_eq!(post(*address, "/whep", "", OFFER).status, 201);
    }
    let none = Server::bind(&[], ServerConfig::default(), Arc::<Fake>::default());
    assert!(matches!(none, Err(BindError::NoAddress)));
}
