//! A stream whose keys are being agreed on by DTLS.

use std::sync::Arc;

use rushes_webrtc::dtls::{Config, DtlsError, Setup};

use super::{Exchange, Opening, Step};
use crate::dtls::{DtlsConfig, Handshake, HandshakeEvent};
use crate::error::{DtlsSetupError, Error};
use crate::security::Security;
use crate::setup::StreamBuilder;

impl StreamBuilder {
    /// Returns whether this end begins the handshake.
    pub(crate) fn begins_handshake(&self, config: &DtlsConfig) -> bool {
        match config.setup {
            Setup::Active => true,
            Setup::Passive => false,
            Setup::ActPass => self.destination().is_some(),
        }
    }

    /// Checks that the keys of one port, with one peer, are enough.
    pub(crate) fn check_dtls(&self) -> Result<(), Error> {
        if self.control.rtcp && !self.control.mux {
            return Err(DtlsSetupError::RtcpPort.into());
        }
        if self.session.peer.is_some_and(|peer| peer.ip().is_multicast()) {
            return Err(DtlsSetupError::Group.into());
        }
        Ok(())
    }

    /// Returns the certificate of this end.
    pub(crate) fn dtls_certificate(
        &self,
        config: &DtlsConfig,
    ) -> Result<crate::dtls::Certificate, Error> {
        config.certificate.clone().map_or_else(|| self.session.context.certificate(), Ok)
    }

    pub(super) fn begin_dtls(self, config: DtlsConfig) -> Result<Opening, Error> {
        self.check_dtls()?;
        let (is_client, peer) = (self.begins_handshake(&config), self.destination());
        if is_client && peer.is_none() {
            return Err(DtlsSetupError::NoPeer.into());
        }
        let certificate = self.dtls_certificate(&config)?;
        let config = Config { certificate, is_client, expected: config.expected };
        let (builder, port) = self.bind()?;
        let handshake = Handshake::new(&port, config, peer).map_err(DtlsSetupError::from)?;
        let handshake = Arc::new(handshake);
        if !port.set_side_protocol(handshake.clone()) {
            return Err(DtlsSetupError::PortTaken.into());
        }
        Ok(Opening::new(builder, port, Exchange::Dtls(handshake)))
    }
}

/// Returns the next step of the handshake.
pub(super) fn poll(handshake: &Handshake) -> Result<Option<Step>, Error> {
    let failed = |error: DtlsError| Error::from(DtlsSetupError::from(error));
    match handshake.poll_event() {
        Some(HandshakeEvent::Keys(keys)) => {
            let security = Security::separate(keys.suite, &keys.send, &keys.receive)?;
            Ok(Some(Step::Keys(Box::new(security))))
        }
        Some(HandshakeEvent::Refused(address, error)) => {
            Ok(Some(Step::Refused(address, failed(error))))
        }
        Some(HandshakeEvent::Failed(error)) => Err(failed(error)),
        None if handshake.is_complete() => Ok(Some(Step::Ready)),
        None => Ok(None),
    }
}

/// Returns the error of a handshake that took too long.
pub(super) fn timed_out(handshake: &Handshake) -> Error {
    DtlsSetupError::from(handshake.last_error().unwrap_or(DtlsError::Timeout)).into()
}
