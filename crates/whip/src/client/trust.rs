//! Which certificates of servers are accepted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::tls;

/// Why a certificate that may sign others is none of a server.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// Accepts what the roots have signed, and also a root itself. Programs such as OpenSSL mark a certificate that a
/// server has signed for itself as one that signs others, which rustls refuses; here the user has named this very one.
#[derive(Debug)]
pub(super) struct Trust {
    signed: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// Trusts what `roots` have signed, and the certificates that the user has `named`.
    pub(super) fn new(
        roots: RootCertStore,
        named: Vec<CertificateDer<'static>>,
    ) -> Result<Self, String> {
        let signed = WebPkiServerVerifier::builder_with_provider(roots.into(), tls::provider());
        Ok(Self { signed: signed.build().map_err(|error| error.to_string())?, named })
    }

    /// Whether a certificate is a named one, and refused for being an authority only.
    fn is_named_authority(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(reason)) = error else {
            return false;
        };
        // Its time has been checked before.
        reason.to_string().contains(IS_AUTHORITY) && self.named.iter().any(|it| it == certificate)
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.signed.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if self.is_named_authority(end_entity, &error) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}
