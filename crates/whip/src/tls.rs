//! A server's certificate, and what client and server share of TLS.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The cryptography of all TLS here. No process-wide default is set: it is the application's.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// A certificate chain and its private key.
#[derive(Clone)]
pub struct Identity {
    config: Arc<rustls::ServerConfig>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(..)")
    }
}

impl Identity {
    /// Reads a chain, the server's own certificate first, and its key; both in PEM.
    ///
    /// # Errors
    /// [`IdentityError`] if either is missing or malformed, or they do not belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(chain).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| IdentityError::Chain(error.to_string()))?;
        if chain.is_empty() {
            return Err(IdentityError::Chain("it has no \"BEGIN CERTIFICATE\"".into()));
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| IdentityError::Key(error.to_string()))?;
        let config = rustls::ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(IdentityError::Pair)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(IdentityError::Pair)?;
        Ok(Self { config: Arc::new(config) })
    }

    pub(crate) fn config(&self) -> Arc<rustls::ServerConfig> {
        self.config.clone()
    }
}

/// Why a certificate cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The chain is not certificates in PEM.
    #[error("cannot read the certificate chain: {0}")]
    Chain(String),
    /// The key is not a private key in PEM.
    #[error("cannot read the private key: {0}")]
    Key(String),
    /// The key is not that of the certificate, or of a kind that TLS does not use.
    #[error("cannot use the certificate with the private key: {0}")]
    Pair(rustls::Error),
}
