//! The keys and the policy of a secured stream.

use std::time::Duration;

use pyo3::prelude::*;
use rushes::zrtp::{PeerPolicy, WithoutZrtp, ZrtpConfig};
use rushes::{Policy, Suite};

use crate::error::{ConfigError, Failure};
use crate::integer::{arguments, integer, optional_arguments};
use crate::wait::duration;

fn suite_named(name: &str) -> PyResult<Suite> {
    name.parse().map_err(|error| ConfigError::new_err(format!("{error}")))
}

arguments! {
    window_of: usize = "window";
}

optional_arguments! {
    key_derivation_rate_of: u8 = "key_derivation_rate";
}

fn lifetime_of(value: &Bound<'_, PyAny>) -> PyResult<Option<(u64, u64)>> {
    let lifetime = value.extract::<Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>>()?;
    let Some((rtp, rtcp)) = lifetime else { return Ok(None) };
    Ok(Some((integer("lifetime", &rtp)?, integer("lifetime", &rtcp)?)))
}

/// A master key of SRTP with its salt, its identifier and its lifetime.
///
/// `key_and_salt` holds the key followed by the salt: 30 octets for `AES_CM_128_HMAC_SHA1_80`, 28
/// for `AEAD_AES_128_GCM`. The library erases its own copy; Python does not erase the given one.
#[pyclass(frozen, module = "rushes")]
#[derive(Clone, Debug)]
pub(crate) struct MasterKey {
    pub(crate) suite: Suite,
    pub(crate) key: rushes::MasterKey,
}

#[pymethods]
impl MasterKey {
    #[new]
    #[pyo3(signature = (suite, key_and_salt, *, mki = None, lifetime = None))]
    fn new(
        #[pyo3(from_py_with = suite_of)] suite: Suite,
        key_and_salt: &[u8],
        mki: Option<&[u8]>,
        #[pyo3(from_py_with = lifetime_of)] lifetime: Option<(u64, u64)>,
    ) -> PyResult<Self> {
        let mut key = rushes::MasterKey::new(suite, key_and_salt).map_err(Failure::from)?;
        if let Some(mki) = mki {
            key = key.with_mki(mki).map_err(Failure::from)?;
        }
        if let Some((rtp, rtcp)) = lifetime {
            key = key.with_lifetime(rtp, rtcp).map_err(Failure::from)?;
        }
        Ok(Self { suite, key })
    }

    /// The name of its suite.
    #[getter]
    fn suite(&self) -> &'static str {
        self.suite.name()
    }

    /// Its identifier; empty if it has none.
    #[getter]
    fn mki(&self) -> Vec<u8> {
        self.key.mki().to_vec()
    }

    fn __repr__(&self) -> String {
        format!("<rushes.MasterKey for {}>", self.suite)
    }
}

fn suite_of(name: &Bound<'_, PyAny>) -> PyResult<Suite> {
    suite_named(name.extract::<&str>()?)
}

/// The source of a secured stream's keys. Its `repr` shows no keys.
#[pyclass(frozen, module = "rushes")]
#[derive(Debug)]
pub(crate) struct Security {
    pub(crate) security: rushes::Security,
    /// The function that compares the short authentication string with the peer's.
    pub(crate) on_sas: Option<Py<PyAny>>,
}

impl Security {
    fn of(security: rushes::Security) -> Self {
        Self { security, on_sas: None }
    }
}

#[pymethods]
impl Security {
    /// Uses one master key in both directions, for streams with media in one direction only.
    #[staticmethod]
    fn shared(suite: &str, key_and_salt: &[u8]) -> PyResult<Self> {
        let security = rushes::Security::shared(suite_named(suite)?, key_and_salt);
        Ok(Self::of(security.map_err(Failure::from)?))
    }

    /// Uses separate master keys for sending and for receiving.
    #[staticmethod]
    fn separate(suite: &str, send: &[u8], receive: &[u8]) -> PyResult<Self> {
        let security = rushes::Security::separate(suite_named(suite)?, send, receive);
        Ok(Self::of(security.map_err(Failure::from)?))
    }

    /// Uses master keys with identifiers and lifetimes, under a policy that both ends must share.
    #[staticmethod]
    #[pyo3(signature = (send, receive, *, further = Vec::new(), encrypt_rtp = true,
        encrypt_rtcp = true, authenticate_rtp = true, key_derivation_rate = None, window = 1024,
        cryptex = false))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[allow(clippy::fn_params_excessive_bools, reason = "keyword arguments in Python")]
    fn keys(
        send: PyRef<'_, MasterKey>,
        receive: PyRef<'_, MasterKey>,
        further: Vec<PyRef<'_, MasterKey>>,
        encrypt_rtp: bool,
        encrypt_rtcp: bool,
        authenticate_rtp: bool,
        #[pyo3(from_py_with = key_derivation_rate_of)] key_derivation_rate: Option<u8>,
        #[pyo3(from_py_with = window_of)] window: usize,
        cryptex: bool,
    ) -> Self {
        let policy = Policy {
            encrypt_rtp,
            encrypt_rtcp,
            authenticate_rtp,
            key_derivation_rate,
            window,
            cryptex,
            ..Policy::new(send.suite)
        };
        Self::of(rushes::Security::Keys {
            policy,
            send: send.key.clone(),
            receive: receive.key.clone(),
            further: further.iter().map(|key| key.key.clone()).collect(),
        })
    }

    /// Uses keys that both ends agree on by ZRTP (RFC 6189), on the media's own ports.
    ///
    /// `on_sas` is called with the session's `Sas` before the first stream is opened, and its
    /// result applies to the whole session: `True` if the peer's string is equal; `False` if it
    /// differs, and then no stream is opened; `None` if the strings were not compared yet. If it
    /// raises, the stream is not opened, and the function of the next stream is called.
    ///
    /// `policy` selects the peers that are accepted; `"require_secret"` accepts only those that
    /// know `aux_secret`. By default any peer is accepted; with a `cache`, any except a peer with
    /// which the strings were compared and which has lost the secret of that session.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    #[pyo3(signature = (*, on_sas = None, cache = None, timeout = 30.0, passive = false,
        preshared = false, aux_secret = None, policy = None, without_zrtp = "refuse"))]
    fn zrtp(
        on_sas: Option<Py<PyAny>>,
        cache: Option<std::path::PathBuf>,
        timeout: f64,
        passive: bool,
        preshared: bool,
        aux_secret: Option<Vec<u8>>,
        policy: Option<&str>,
        without_zrtp: &str,
    ) -> PyResult<Self> {
        let mut config = ZrtpConfig::default();
        config.cache = cache;
        config.timeout = duration(Some(timeout))?.unwrap_or(Duration::MAX);
        config.is_passive = passive;
        config.allows_preshared = preshared;
        config.aux_secret = aux_secret.map(Into::into);
        config.policy = match policy {
            None => None,
            Some("allow") => Some(PeerPolicy::Allow),
            Some("refuse_changed") => Some(PeerPolicy::RefuseChanged),
            Some("refuse_unverified") => Some(PeerPolicy::RefuseUnverified),
            Some("require_secret") => Some(PeerPolicy::RequireSecret),
            Some(other) => {
                let text = format!(
                    "policy must be \"allow\", \"refuse_changed\", \"refuse_unverified\" or \
                     \"require_secret\", not {other:?}"
                );
                return Err(ConfigError::new_err(text));
            }
        };
        config.without_zrtp = match without_zrtp {
            "refuse" => WithoutZrtp::Refuse,
            "clear" => WithoutZrtp::Clear,
            other => {
                let text = format!("without_zrtp must be \"refuse\" or \"clear\", not {other:?}");
                return Err(ConfigError::new_err(text));
            }
        };
        Ok(Self { security: rushes::Security::Zrtp(config), on_sas })
    }

    fn __repr__(&self) -> &'static str {
        match self.security {
            rushes::Security::Zrtp(_) => "<rushes.Security by ZRTP>",
            _ => "<rushes.Security by keys>",
        }
    }
}
