//! The elements of header extensions in a stream's own description and in the peer's.

use rushes_proto::rtp::ExtensionKind;
use rushes_proto::sdp::{Direction, ExtensionMapping, Media};

use crate::setup::StreamBuilder;

impl StreamBuilder {
    /// The elements that the stream carries.
    pub(super) fn described_extensions(&self) -> Vec<ExtensionMapping> {
        let mapping = |(kind, id): (ExtensionKind, u8)| {
            let encrypted = self.encrypts_extension(id);
            ExtensionMapping { encrypted, ..ExtensionMapping::new(id.into(), kind.uri()) }
        };
        self.extensions.iter().map(mapping).collect()
    }

    /// Whether the element `id` is encrypted (RFC 6904).
    fn encrypts_extension(&self, id: u8) -> bool {
        #[cfg(feature = "srtp")]
        if let Some(keys) = self.security.as_ref().and_then(crate::security::Security::known_keys) {
            return keys.policy.encrypted_extensions.contains(id);
        }
        let _ = id;
        false
    }

    /// The stream with the elements in `media` that are known; the first of each kind.
    pub(super) fn with_extensions_of(mut self, media: &Media) -> Self {
        for mapping in media.extensions.iter().filter(|mapping| is_readable(mapping, media)) {
            let kind = ExtensionKind::of_uri(&mapping.uri);
            let new = kind.filter(|kind| self.extensions.id(*kind).is_none());
            if let (Some(kind), Ok(id)) = (new, mapping.id.try_into()) {
                // An identifier that cannot be used is ignored, as are unknown elements.
                self.extensions = self.extensions.with(kind, id).unwrap_or(self.extensions);
            }
        }
        self
    }
}

/// Whether packets may carry the element so that it can be read.
pub(super) fn is_readable(mapping: &ExtensionMapping, media: &Media) -> bool {
    // With cryptex, elements are not encrypted one by one as well (RFC 9335).
    let is_decrypted = media.is_secured() && media.attribute("cryptex").is_none();
    mapping.direction != Some(Direction::Inactive) && (!mapping.encrypted || is_decrypted)
}
