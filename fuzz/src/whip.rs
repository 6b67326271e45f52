//! References in responses of WHIP and WHEP: `Location` and `Link`.

/// Reads octets as `Location` and, behind a line break, `Link`.
pub fn fields(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let (location, links) = text.split_once('\n').unwrap_or((&text, ""));
    for base in ["https://a.example:1/whip/endpoint?key=1", "http://[2001:db8::1]"] {
        let Ok((url, servers)) = rushes_whip::read_fields(base, location, links) else { continue };
        assert!(url.starts_with("http://") || url.starts_with("https://"), "{url}");
        // What is resolved stays as it is.
        let again = rushes_whip::read_fields(base, &url, links);
        assert_eq!(again.ok(), Some((url, servers)));
        assert!(servers <= 16, "{servers}");
    }
}

/// Responses as servers send them.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "/whip/endpoint/8f2a\n<stun:stun.example.net>; rel=\"ice-server\"",
        "https://b.example/session/../1?x=y\n<turn:turn.example.net?transport=udp>; rel=\"ice-server\"; \
         username=\"user\"; credential=\"my\\\"Password\", <https://c/sse>; rel=next",
        "session/1",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
