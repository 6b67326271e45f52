//! A stream whose keys are being agreed on by ZRTP.

use std::sync::Arc;
use std::time::Instant;

use rushes_zrtp::{ErrorCode, Event, StreamKeys};

use super::{Exchange, Opening, Step};
use crate::agreement::{Channel, WithoutZrtp, ZrtpConfig};
use crate::error::{Error, ZrtpError};
use crate::security::Security;
use crate::setup::StreamBuilder;

impl StreamBuilder {
    pub(super) fn begin_zrtp(mut self, config: &ZrtpConfig) -> Result<Opening, Error> {
        let agreement = self.session.agreement(config)?;
        let ssrc = self.own_ssrc()?;
        self = self.ssrc(ssrc);
        let (builder, port) = self.bind()?;
        let h0 = builder.chain.take()?;
        let to = builder.destination();
        let id = agreement.attach(ssrc, h0, &port, to, config.peer_hello_hash)?;
        let channel = Arc::new(Channel { agreement, id });
        if !port.set_side_protocol(channel.clone()) {
            return Err(ZrtpError::PortTaken.into());
        }
        channel.agreement.serve(Instant::now());
        Ok(Opening::new(builder, port, Exchange::Zrtp(channel)))
    }

    fn without_zrtp(&self) -> WithoutZrtp {
        match &self.security {
            Some(Security::Zrtp(config)) => config.without_zrtp,
            _ => WithoutZrtp::Refuse,
        }
    }
}

/// Returns the next step of the agreement.
pub(super) fn poll(channel: &Channel, builder: &StreamBuilder) -> Result<Option<Step>, Error> {
    while let Some(event) = channel.agreement.poll_event(channel.id) {
        return match event {
            Event::Keys(keys) => Ok(Some(Step::Keys(Box::new(security(&keys)?)))),
            Event::Secure => Ok(Some(Step::Ready)),
            Event::CandidateFailed { address, error, by_peer, refusal } => {
                let failed = ZrtpError::Failed { error, by_peer };
                let error = refusal.map_or(failed, ZrtpError::Peer);
                Ok(Some(Step::Refused(address, error.into())))
            }
            Event::Refused(refusal) => Err(ZrtpError::Peer(refusal).into()),
            Event::Failed { error, by_peer } => Err(ZrtpError::Failed { error, by_peer }.into()),
            Event::NoPeer if builder.without_zrtp() == WithoutZrtp::Clear => {
                tracing::warn!("no ZRTP peer answered: the stream continues unencrypted");
                Ok(Some(Step::Clear))
            }
            Event::NoPeer => Err(ZrtpError::NoPeer.into()),
            _ => continue,
        };
    }
    Ok(None)
}

/// Returns the keys of a stream as its security.
fn security(keys: &StreamKeys) -> Result<Security, Error> {
    let suite = keys.suite.parse().ok();
    let security = suite.and_then(|it| Security::separate(it, &keys.send, &keys.receive).ok());
    let failed = ZrtpError::Failed { error: ErrorCode::CriticalSoftware, by_peer: false };
    security.ok_or_else(|| failed.into())
}
