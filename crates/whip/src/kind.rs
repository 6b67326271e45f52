//! The two protocols.

/// In which direction the media of a session flows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// WHIP (RFC 9725): the client sends media.
    Publish,
    /// WHEP (draft-ietf-wish-whep): the client receives media.
    Play,
}

impl Kind {
    /// The name of the protocol in lower case, as in the server's paths: `whip` or `whep`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Publish => "whip",
            Self::Play => "whep",
        }
    }

    /// The protocol with this [`Kind::name`].
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Publish, Self::Play].into_iter().find(|kind| kind.name() == name)
    }
}

/// The media type of offers and answers.
pub(crate) const SDP: &str = "application/sdp";

/// The media type of ICE credentials and candidates in a PATCH request (RFC 8840).
pub(crate) const FRAGMENT: &str = "application/trickle-ice-sdpfrag";

/// Returns whether a `Content-Type` is `expected`, with any parameters.
pub(crate) fn is_type(value: &str, expected: &str) -> bool {
    let value = value.split(';').next().unwrap_or_default();
    value.trim().eq_ignore_ascii_case(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_may_have_parameters() {
        assert!(is_type("application/sdp", SDP));
        assert!(is_type("Application/SDP ; charset=utf-8", SDP));
        assert!(!is_type("application/sdpx", SDP));
        assert!(!is_type("", SDP));
    }
}
