//! The elements of header extensions in a stream's own description and in the peer's.

use rushes_proto::rtp::ExtensionKind;
use rushes_proto::sdp::{Attribute, Direction, ExtensionMapping, Feedback, Format, Media, Profile};

use crate::setup::StreamBuilder;

/// The attribute of RFC 8285 section 6.
const ALLOW_MIXED: &str = "extmap-allow-mixed";

/// The identification of media (RFC 5888).
const MID: &str = "mid";

impl StreamBuilder {
    /// Adds the elements that the stream carries, and the MID.
    pub(super) fn describe_extensions(&self, media: &mut Media) {
        media.extensions = self.described_extensions();
        if self.extensions.has_mixed_forms() {
            media.attributes.push(Attribute::new(ALLOW_MIXED, ""));
        }
        if let Some(mid) = &self.mid {
            media.attributes.push(Attribute::new(MID, mid.as_str()));
        }
    }

    /// Returns whether the stream's packets have transport-wide numbers.
    pub(super) fn has_transport_sequence(&self) -> bool {
        self.extension_id(ExtensionKind::TransportSequence.uri()).is_some()
    }

    /// Returns the elements that the stream carries, and which of them are encrypted (RFC 6904).
    fn described_extensions(&self) -> Vec<ExtensionMapping> {
        #[cfg(feature = "srtp")]
        let keys = self.security.as_ref().and_then(crate::security::Security::known_keys);
        let mapping = |(uri, id): (&str, u8)| {
            let mapping = ExtensionMapping::new(id.into(), uri);
            #[cfg(feature = "srtp")]
            let mapping = ExtensionMapping {
                encrypted: keys.is_some_and(|keys| keys.policy.encrypted_extensions.contains(id)),
                ..mapping
            };
            mapping
        };
        let known = self.extensions.iter().map(|(kind, id)| (kind.uri(), id));
        let is_named = |uri: &str| self.named_extensions.iter().any(|(_, name)| name == uri);
        let known = known.filter(|(uri, _)| !is_named(uri));
        let named = self.named_extensions.iter().map(|(id, uri)| (&**uri, *id));
        known.chain(named).map(mapping).collect()
    }

    /// Adds the elements in `media` that are known; the first of each kind. Its receiver reports by
    /// transport-wide number if the media asks for it, and not for reports of RFC 8888.
    pub(super) fn with_extensions_of(mut self, media: &Media) -> Self {
        for mapping in media.extensions.iter().filter(|mapping| is_readable(mapping, media)) {
            let kind = ExtensionKind::of_uri(&mapping.uri);
            let new = kind.filter(|kind| self.extensions.id(*kind).is_none());
            if let (Some(kind), Ok(id)) = (new, mapping.id.try_into()) {
                // An identifier that cannot be used is ignored, as are unknown elements.
                self.extensions = self.extensions.with(kind, id).unwrap_or(self.extensions);
            }
        }
        let is_mixed = media.attribute(ALLOW_MIXED).is_some();
        self.extensions = self.extensions.with_mixed_forms(is_mixed);
        let asks = |format: &Format| format.feedback.contains(&Feedback::TransportCc);
        let has_feedback = matches!(media.profile, Profile::Avpf | Profile::Savpf);
        let has_numbers = self.extensions.id(ExtensionKind::TransportSequence).is_some();
        let is_wide = has_feedback && has_numbers && media.formats.iter().any(asks);
        self.report_transport_wide(is_wide && !media.congestion_feedback)
    }
}

/// Returns whether packets may carry the element so that it can be read.
pub(super) fn is_readable(mapping: &ExtensionMapping, media: &Media) -> bool {
    // With cryptex, elements are not encrypted one by one as well (RFC 9335).
    let is_decrypted = media.is_secured() && media.attribute("cryptex").is_none();
    mapping.direction != Some(Direction::Inactive) && (!mapping.encrypted || is_decrypted)
}
