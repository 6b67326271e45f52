//! Systems and processors without ipsec-mb: nothing here can be constructed.

use crate::{NONCE_LEN, TAG_LEN, Unavailable, Version};

/// The loaded library, which does not exist here.
#[derive(Clone, Copy, Debug)]
pub enum Library {}

impl Library {
    /// Returns why there is no library.
    ///
    /// # Errors
    /// Always [`Unavailable::Platform`].
    pub fn get() -> Result<&'static Self, Unavailable> {
        Err(Unavailable::Platform)
    }

    /// Returns the version of the library.
    pub fn version(&self) -> Version {
        match *self {}
    }
}

/// An expanded key for AES-GCM, which does not exist here.
#[derive(Debug)]
pub enum Gcm {}

#[allow(missing_docs, reason = "cannot be called; `library.rs` describes what these do elsewhere")]
impl Gcm {
    pub fn new(library: &'static Library, _: &[u8]) -> Option<Self> {
        match *library {}
    }

    pub fn seal(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut [u8], _: &[u8], _: &mut [u8]) -> bool {
        match *self {}
    }

    pub fn open(&self, _: [u8; NONCE_LEN], _: &[u8], _: &mut [u8]) -> Option<[u8; TAG_LEN]> {
        match *self {}
    }

    pub fn open_into(
        &self,
        _: [u8; NONCE_LEN],
        _: &[u8],
        _: &[u8],
        _: &mut [u8],
    ) -> Option<[u8; TAG_LEN]> {
        match *self {}
    }
}

/// An expanded key for AES in counter mode, which does not exist here.
#[derive(Debug)]
pub enum CounterMode {}

#[allow(missing_docs, reason = "cannot be called; `library.rs` describes what these do elsewhere")]
impl CounterMode {
    pub fn new(library: &'static Library, _: &[u8]) -> Option<Self> {
        match *library {}
    }

    pub fn apply(&self, _: [u8; 16], _: &mut [u8]) -> bool {
        match *self {}
    }

    pub fn apply_into(&self, _: [u8; 16], _: &[u8], _: &mut [u8]) -> bool {
        match *self {}
    }
}
