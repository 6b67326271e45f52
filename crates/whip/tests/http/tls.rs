//! HTTPS, with a certificate made here.

use std::net::SocketAddr;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use rushes_whip::{Client, ClientError, ClientOptions, Identity, IdentityError, Roots};
use rushes_whip::{Server, ServerConfig};

use crate::fake::{OFFER, address, serve};
use crate::requests::exchange;

struct Made {
    certificate: String,
    key: String,
}

fn made(name: &str) -> Made {
    made_as(name, |_| {})
}

fn made_as(name: &str, set: impl FnOnce(&mut CertificateParams)) -> Made {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    set(&mut params);
    let certificate = params.self_signed(&key).unwrap().pem();
    Made { certificate, key: key.serialize_pem() }
}

impl Made {
    fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }

    fn client(&self) -> Client {
        let roots = Roots::Pem(self.certificate.clone().into_bytes());
        Client::new(ClientOptions { roots, ..ClientOptions::default() }).unwrap()
    }
}

fn encrypted(made: &Made) -> (Server, SocketAddr) {
    let identity = Some(made.identity());
    let (server, _fake) = serve(ServerConfig { identity, ..ServerConfig::default() });
    let address = address(&server);
    (server, address)
}

#[test]
fn a_session_is_opened_over_https() {
    let made = made("localhost");
    let (server, address) = encrypted(&made);
    assert!(server.is_encrypted());
    let url = format!("https://localhost:{}/whep", address.port());
    let session = made.client().post(&url, None, OFFER).unwrap();
    assert_eq!(session.answer(), format!("answer to {OFFER}"));
    assert!(session.resource_url().starts_with(&url));
    session.delete().unwrap();
}

#[test]
fn a_certificate_must_be_trusted_and_of_the_name() {
    let (right, other) = (made("localhost"), made("localhost"));
    let (_server, address) = encrypted(&right);
    let url = format!("https://localhost:{}/whep", address.port());
    let system = Client::new(ClientOptions::default()).unwrap();
    for client in [system, other.client()] {
        let error = client.post(&url, None, OFFER).unwrap_err();
        assert!(matches!(error, ClientError::Tls { .. }), "{error}");
    }
    let url = format!("https://127.0.0.1:{}/whep", address.port());
    let error = right.client().post(&url, None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::Tls { .. }), "{error}");
}

/// As `openssl req -x509` makes it: one that may sign others.
#[test]
fn a_named_certificate_may_be_an_authority_for_its_name_and_its_time() {
    let is_authority =
        |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (right, other) = (made_as("localhost", is_authority), made_as("localhost", is_authority));
    let (_server, address) = encrypted(&right);
    let url = format!("https://localhost:{}/whep", address.port());
    right.client().post(&url, None, OFFER).unwrap().delete().unwrap();
    let elsewhere = format!("https://127.0.0.1:{}/whep", address.port());
    let old = made_as("localhost", |params| {
        is_authority(params);
        params.not_after = date_time_ymd(2001, 1, 1);
    });
    let (_old_server, old_address) = encrypted(&old);
    let ended = format!("https://localhost:{}/whep", old_address.port());
    for (client, url) in [(&other, &url), (&right, &elsewhere), (&old, &ended)] {
        let error = client.client().post(url, None, OFFER).unwrap_err();
        assert!(matches!(error, ClientError::Tls { .. }), "{error}");
    }
}

#[test]
fn the_wrong_scheme_is_an_error_in_words() {
    let made = made("localhost");
    let (_server, address) = encrypted(&made);
    let url = format!("http://localhost:{}/whep", address.port());
    let error = made.client().post(&url, None, OFFER).unwrap_err();
    assert!(matches!(error, ClientError::Http { .. }), "{error}");
    assert!(!exchange(address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").contains("HTTP"));
    let (server, _fake) = serve(ServerConfig::default());
    let url = format!("https://localhost:{}/whep", crate::fake::address(&server).port());
    let error = made.client().post(&url, None, OFFER).unwrap_err();
    assert!(error.to_string().contains("http:// address"), "{error}");
}

#[test]
fn certificates_that_are_none_are_refused() {
    let (one, other) = (made("localhost"), made("localhost"));
    let error =
        |chain: &str, key: &str| Identity::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err();
    assert!(matches!(error("", &one.key), IdentityError::Chain(_)));
    assert!(matches!(error(&one.key, &one.key), IdentityError::Chain(_)));
    assert!(matches!(error(&one.certificate, ""), IdentityError::Key(_)));
    assert!(matches!(error(&one.certificate, &one.certificate), IdentityError::Key(_)));
    assert!(matches!(error(&one.certificate, &other.key), IdentityError::Pair(_)));
    for pem in ["", "nothing", &one.key] {
        let roots = Roots::Pem(pem.as_bytes().to_vec());
        let error = Client::new(ClientOptions { roots, ..ClientOptions::default() }).unwrap_err();
        assert!(matches!(error, ClientError::Roots(_)), "{error}");
    }
}
