//! The elements of header extensions in a stream's own description and in the peer's.

use rushes_proto::rtp::ExtensionKind;
use rushes_proto::sdp::{Direction, ExtensionMapping, Media};

use crate::setup::StreamBuilder;

impl StreamBuilder {
    /// Returns the elements that the stream carries, and which of them are encrypted (RFC 6904).
    pub(super) fn described_extensions(&self) -> Vec<ExtensionMapping> {
        #[cfg(feature = "srtp")]
        let keys = self.security.as_ref().and_then(crate::security::Security::known_keys);
        let mapping = |(kind, id): (ExtensionKind, u8)| {
            let mapping = ExtensionMapping::new(id.into(), kind.uri());
            #[cfg(feature = "srtp")]
            let mapping = ExtensionMapping {
                encrypted: keys.is_some_and(|keys| keys.policy.encrypted_extensions.contains(id)),
                ..mapping
            };
            mapping
        };
        self.extensions.iter().map(mapping).collect()
    }

    /// Adds the elements in `media` that are known; the first of each kind.
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

/// Returns whether packets may carry the element so that it can be read.
pub(super) fn is_readable(mapping: &ExtensionMapping, media: &Media) -> bool {
    // With cryptex, elements are not encrypted one by one as well (RFC 9335).
    let is_decrypted = media.is_secured() && media.attribute("cryptex").is_none();
    mapping.direction != Some(Direction::Inactive) && (!mapping.encrypted || is_decrypted)
}
