//! The hash of the Hello in descriptions (`a=zrtp-hash`, RFC 6189 section 8.1), which binds the
//! stream to the author of the description.

use rushes_proto::sdp::{Attribute, Media};
use rushes_zrtp::VERSION;

use crate::agreement::ZrtpConfig;
use crate::error::Error;
use crate::hex;
use crate::security::Security;
use crate::setup::StreamBuilder;

const ZRTP_HASH: &str = "zrtp-hash";

impl StreamBuilder {
    /// Puts the hash of the stream's Hello into its description.
    pub(super) fn describe_hello(
        &self,
        config: &ZrtpConfig,
        media: &mut Media,
    ) -> Result<(), Error> {
        let hash = self.session.agreement(config)?.hello_hash(self.chain.peek()?);
        let value = format!("{} {}", String::from_utf8_lossy(&VERSION), hex::write(&hash));
        media.attributes.push(Attribute::new(ZRTP_HASH, value));
        Ok(())
    }

    /// Sets up key agreement with the peer whose Hello has the hash in `media`, if there is one.
    pub(super) fn with_hello_hash_of(self, media: &Media) -> Self {
        let mut announced =
            media.attributes.iter().filter(|one| one.name.eq_ignore_ascii_case(ZRTP_HASH));
        let Some(hash) = announced.find_map(|attribute| hello_hash(&attribute.value)) else {
            return self;
        };
        let config = ZrtpConfig { peer_hello_hash: Some(hash), ..ZrtpConfig::default() };
        self.security(Security::Zrtp(config))
    }
}

/// Parses the hash of a Hello of this version.
fn hello_hash(value: &str) -> Option<[u8; 32]> {
    let (version, digits) = value.split_once(' ')?;
    // The last octet of the version is ignored (section 4.1.1).
    let is_ours = version.as_bytes().get(..3) == VERSION.get(..3);
    hex::read(digits.trim()).filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_hash_of_our_version_counts() {
        let hex = "0123456789abcdef".repeat(4);
        assert!(hello_hash(&format!("1.10 {hex}")).is_some());
        assert!(hello_hash(&format!("1.1a {}", hex.to_uppercase())).is_some());
        for wrong in [format!("2.00 {hex}"), hex.clone(), format!("1.10 {hex}0"), "1.10 x".into()] {
            assert_eq!(hello_hash(&wrong), None, "{wrong}");
        }
    }
}
