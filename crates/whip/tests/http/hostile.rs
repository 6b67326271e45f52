//! Clients that are slow, large, many, or ambiguous.

use std::io::Write;
use std::thread;
use std::time::Duration;

use rushes_whip::ServerConfig;

use crate::fake::{Event, OFFER, address, serve};
use crate::requests::{Response, connect, exchange, post, read, request};

/// Short, so that what it ends need not be waited for.
fn impatient() -> ServerConfig {
    ServerConfig { request_timeout: Duration::from_millis(200), ..ServerConfig::default() }
}

#[test]
fn a_head_a_body_or_nothing_at_all_may_not_take_longer_than_the_time_out() {
    let (server, fake) = serve(impatient());
    let starts = [
        "",
        "POST /whip HTTP/1.1\r\nHost: a",
        "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n\
         Content-Length: 100\r\n\r\nv=0",
    ];
    for start in starts {
        let mut stream = connect(address(&server));
        stream.write_all(start.as_bytes()).unwrap();
        // It ends although the client waits.
        assert_eq!(read(stream), "", "{start}");
    }
    assert_eq!(fake.events(), []);
}

#[test]
fn a_client_that_sends_an_octet_at_a_time_does_not_gain_time() {
    let (server, _fake) = serve(impatient());
    let mut stream = connect(address(&server));
    let mut sent = 0;
    while stream.write_all(b"G").is_ok() {
        sent += 1;
        assert!(sent < 10_000, "the connection never ends");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_that_send_nothing_give_way_to_a_new_one() {
    let connections_max = 4;
    let (server, _fake) = serve(ServerConfig { connections_max, ..ServerConfig::default() });
    let silent: Vec<_> = (0..40).map(|_| connect(address(&server))).collect();
    for _ in 0..10 {
        assert_eq!(post(address(&server), "/whep", "", OFFER).status, 201);
    }
    // The first ones were ended long before their time.
    for stream in silent.into_iter().take(30) {
        assert_eq!(read(stream), "");
    }
}

#[test]
fn connections_whose_offers_are_being_answered_do_not_give_way() {
    let config = ServerConfig { connections_max: 2, ..ServerConfig::default() };
    let (server, fake) = serve(config);
    let address = address(&server);
    thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..2).map(|_| scope.spawn(|| post(address, "/whip", "", "wait"))).collect();
        fake.wait_for_waiting(2);
        assert_eq!(read(connect(address)), "", "there is no place");
        fake.release();
        for one in waiting {
            assert_eq!(one.join().unwrap().status, 201);
        }
    });
}

#[test]
fn a_session_ends_if_its_client_left_before_the_answer() {
    let (server, fake) = serve(ServerConfig::default());
    let mut stream = connect(address(&server));
    let head = "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n";
    stream.write_all(format!("{head}Content-Length: 4\r\n\r\nwait").as_bytes()).unwrap();
    fake.wait_for_waiting(1);
    drop(stream);
    // A later request shows that the server has noticed.
    assert_eq!(request(address(&server), "GET /", "", None).status, 200);
    fake.release();
    fake.wait_until(|events| matches!(events, [Event::Opened(..), Event::Closed(_)]));
    assert_eq!(fake.open_sessions(), 0);
}

#[test]
fn heads_have_limits() {
    let (server, fake) = serve(ServerConfig::default());
    let address = address(&server);
    let long = format!("GET / HTTP/1.1\r\nHost: {address}\r\nA: {}\r\n\r\n", "a".repeat(20_000));
    let many = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{}\r\n", "A: b\r\n".repeat(100));
    let path = format!("GET /{} HTTP/1.1\r\nHost: {address}\r\n\r\n", "a".repeat(20_000));
    for head in [long, many, path] {
        let answer = exchange(address, head.as_bytes());
        let status = Response::parse(&answer).unwrap().status;
        assert!(matches!(status, 414 | 431), "{answer}");
    }
    let endless = "A".repeat(4 << 20);
    let answer = exchange(address, format!("GET / HTTP/1.1\r\nA: {endless}").as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert_eq!(fake.events(), []);
}

#[test]
fn a_client_receives_the_refusal_of_a_body_that_it_is_still_sending() {
    let (server, _fake) = serve(ServerConfig::default());
    let body = "a".repeat(1 << 20);
    for (path, status) in [("/whip", 413), ("/nothing", 404), ("/whip/none", 405)] {
        let refused = post(address(&server), path, "", &body);
        let expected = if path == "/whip/none" { 404 } else { status };
        assert_eq!(refused.status, expected, "{path}");
    }
}

#[test]
fn a_body_of_unknown_length_has_the_same_limit() {
    let (server, fake) = serve(ServerConfig { body_max: 1000, ..ServerConfig::default() });
    let head = "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    let chunk = format!("1f4\r\n{}\r\n", "a".repeat(500));
    let post = |chunks: usize| {
        let text = format!("{head}{}0\r\n\r\n", chunk.repeat(chunks));
        Response::parse(&exchange(address(&server), text.as_bytes())).unwrap().status
    };
    assert_eq!(post(2), 201);
    assert_eq!(post(3), 413);
    assert_eq!(post(500), 413);
    assert_eq!(fake.events().len(), 1);
}

#[test]
fn a_connection_carries_one_request_however_many_are_sent() {
    let (server, fake) = serve(ServerConfig::default());
    let head = "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n";
    let one = format!("{head}Content-Length: {}\r\n\r\n{OFFER}", OFFER.len());
    let answer = exchange(address(&server), one.repeat(50).as_bytes());
    assert_eq!(answer.matches("HTTP/1.1 201").count(), 1, "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    assert_eq!(fake.events().len(), 1);
}

/// What different HTTP programs would divide differently.
#[test]
fn ambiguous_lengths_are_refused_or_end_the_connection() {
    let (server, fake) = serve(ServerConfig::default());
    let start = "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n";
    let hidden = "POST /whep HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n\
                  Content-Length: 3\r\n\r\nv=0";
    let refused = [
        "Content-Length: 1\r\nContent-Length: 2\r\n\r\na",
        "Content-Length: +1\r\n\r\na",
        "Content-Length: -1\r\n\r\na",
        "Content-Length: 1, 2\r\n\r\na",
        "Content-Length: 99999999999999999999999\r\n\r\na",
        "Content-Length : 1\r\n\r\na",
        "Transfer-Encoding: chunked, identity\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "Transfer-Encoding: xchunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\na\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
        "A: b\rContent-Length: 1\r\n\r\na",
        "A: b\0\r\nContent-Length: 1\r\n\r\na",
        " folded: x\r\nContent-Length: 1\r\n\r\na",
    ];
    for case in refused {
        let answer = exchange(address(&server), format!("{start}{case}{hidden}").as_bytes());
        assert!(!answer.contains(" 201 "), "{case}: {answer}");
        assert!(answer.matches("HTTP/1.1").count() <= 1, "{case}: {answer}");
    }
    assert_eq!(fake.events(), []);
    // One of both lengths counts (RFC 9112 section 6.1), and the rest is not a request.
    let both = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    let answer = exchange(address(&server), format!("{start}{both}{hidden}").as_bytes());
    assert!(answer.matches("HTTP/1.1").count() <= 1, "{answer}");
    assert!(fake.events().len() <= 1);
}

#[test]
fn octets_that_are_no_http_end_the_connection() {
    let (server, fake) = serve(ServerConfig::default());
    let cases: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET\r\n\r\n",
        b"\0\0\0\0\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\n\r\n",
    ];
    for case in cases {
        let answer = exchange(address(&server), case);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{case:?}: {answer}");
    }
    assert_eq!(fake.events(), []);
    assert_eq!(post(address(&server), "/whip", "", OFFER).status, 201);
}

#[test]
fn a_body_that_is_not_text_or_ends_early_opens_nothing() {
    let (server, fake) = serve(ServerConfig::default());
    let head = "POST /whip HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/sdp\r\n";
    let mut text = format!("{head}Content-Length: 2\r\n\r\n").into_bytes();
    text.extend_from_slice(b"\xff\xfe");
    assert!(exchange(address(&server), &text).starts_with("HTTP/1.1 400"));
    let mut stream = connect(address(&server));
    stream.write_all(format!("{head}Content-Length: 10\r\n\r\nv=0").as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let answer = read(stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(fake.events(), []);
}
