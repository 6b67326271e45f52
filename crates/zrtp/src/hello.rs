//! The Hello message (RFC 6189 section 5.2).

use super::algorithm::{Algorithm, AlgorithmList, AuthTag, Cipher, Hash, LIST_LEN_MAX, SasType};
use super::key_agreement::KeyAgreement;
use super::layout::{Fields, MessageError, write_message};

/// The identity and the capabilities of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protocol version; [`VERSION`](super::VERSION) for RFC 6189.
    pub version: [u8; 4],
    /// Vendor and release of the software, padded with spaces.
    pub client: [u8; 16],
    /// Hash image H3 (section 9).
    pub h3: [u8; 32],
    /// The endpoint's ID, the same in all its sessions (section 4.9).
    pub zid: [u8; 12],
    /// S: the endpoint verifies signatures of the SAS (section 7.2).
    pub signature_capable: bool,
    /// M: the endpoint is a trusted man in the middle, which can send `SASrelay` (section 5.13).
    pub mitm: bool,
    /// P: the endpoint never sends Commit.
    pub passive: bool,
    /// Hash algorithms.
    pub hashes: AlgorithmList<Hash>,
    /// Cipher algorithms.
    pub ciphers: AlgorithmList<Cipher>,
    /// Authentication tags.
    pub auth_tags: AlgorithmList<AuthTag>,
    /// Key agreement types.
    pub key_agreements: AlgorithmList<KeyAgreement>,
    /// Renderings of the SAS.
    pub sas_types: AlgorithmList<SasType>,
    /// MAC over everything before it, keyed by H2; zeros until [`set_mac`](super::set_mac) sets it.
    pub mac: [u8; 8],
}

impl Hello {
    pub(super) const KIND: [u8; 8] = *b"Hello   ";

    pub(super) fn parse(mut fields: Fields<'_>) -> Result<Self, MessageError> {
        let version = fields.array()?;
        let client = fields.array()?;
        let h3 = fields.array()?;
        let zid = fields.array()?;
        let [flags, hc, cc_ac, kc_sc] = fields.array()?;
        let hello = Self {
            version,
            client,
            h3,
            zid,
            signature_capable: flags & 0x40 != 0,
            mitm: flags & 0x20 != 0,
            passive: flags & 0x10 != 0,
            hashes: list(&mut fields, hc & 0x0f)?,
            ciphers: list(&mut fields, cc_ac >> 4)?,
            auth_tags: list(&mut fields, cc_ac & 0x0f)?,
            key_agreements: list(&mut fields, kc_sc >> 4)?,
            sas_types: list(&mut fields, kc_sc & 0x0f)?,
            mac: fields.array()?,
        };
        fields.end()?;
        Ok(hello)
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        write_message(out, Self::KIND, |out| {
            out.extend_from_slice(&self.version);
            out.extend_from_slice(&self.client);
            out.extend_from_slice(&self.h3);
            out.extend_from_slice(&self.zid);
            let flag = |set: bool, bit: u8| if set { bit } else { 0 };
            let flags = flag(self.signature_capable, 0x40)
                | flag(self.mitm, 0x20)
                | flag(self.passive, 0x10);
            let count = |len: usize| len as u8;
            let hc = count(self.hashes.as_slice().len());
            let cc = count(self.ciphers.as_slice().len());
            let ac = count(self.auth_tags.as_slice().len());
            let kc = count(self.key_agreements.as_slice().len());
            let sc = count(self.sas_types.as_slice().len());
            out.extend_from_slice(&[flags, hc, cc << 4 | ac, kc << 4 | sc]);
            write_list(&self.hashes, out);
            write_list(&self.ciphers, out);
            write_list(&self.auth_tags, out);
            write_list(&self.key_agreements, out);
            write_list(&self.sas_types, out);
            out.extend_from_slice(&self.mac);
        });
    }
}

/// Reads a list of `count` type blocks and skips unknown ones.
fn list<T: Algorithm>(
    fields: &mut Fields<'_>,
    count: u8,
) -> Result<AlgorithmList<T>, MessageError> {
    if usize::from(count) > LIST_LEN_MAX {
        return Err(MessageError::AlgorithmCount(count));
    }
    let mut list = AlgorithmList::EMPTY;
    for _ in 0..count {
        if let Some(algorithm) = T::from_code(fields.array()?) {
            list.push(algorithm);
        }
    }
    Ok(list)
}

fn write_list<T: Algorithm>(list: &AlgorithmList<T>, out: &mut Vec<u8>) {
    for algorithm in list.as_slice() {
        out.extend_from_slice(&algorithm.code());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;
    use crate::{Kem, Message};

    fn some<T: Algorithm>(all: Vec<T>) -> impl Strategy<Value = AlgorithmList<T>> {
        vec(select(all), 0..=7).prop_map(|items| AlgorithmList::new(&items).unwrap())
    }

    fn lists() -> impl Strategy<Value = Hello> {
        let mut agreements = KeyAgreement::CLASSICAL.to_vec();
        agreements.push(KeyAgreement::Kem(Kem::X25519_ML_KEM_768));
        let lists = (
            some(Hash::ALL.to_vec()),
            some(Cipher::ALL.to_vec()),
            some(AuthTag::ALL.to_vec()),
            some(agreements),
            some(SasType::ALL.to_vec()),
        );
        lists.prop_map(|(hashes, ciphers, auth_tags, key_agreements, sas_types)| Hello {
            hashes,
            ciphers,
            auth_tags,
            key_agreements,
            sas_types,
            ..plain()
        })
    }

    pub(crate) fn plain() -> Hello {
        Hello {
            version: *b"1.10",
            client: *b"a client        ",
            h3: [3; 32],
            zid: [4; 12],
            signature_capable: false,
            mitm: false,
            passive: false,
            hashes: AlgorithmList::EMPTY,
            ciphers: AlgorithmList::EMPTY,
            auth_tags: AlgorithmList::EMPTY,
            key_agreements: AlgorithmList::EMPTY,
            sas_types: AlgorithmList::EMPTY,
            mac: [0; 8],
        }
    }

    fn written(hello: &Hello) -> Vec<u8> {
        let mut out = Vec::new();
        hello.write(&mut out);
        out
    }

    #[test]
    fn a_hello_without_lists_has_22_words() {
        assert_eq!(written(&plain()).len(), 22 * 4);
    }

    #[test]
    fn an_unknown_algorithm_is_left_out() {
        let hashes = AlgorithmList::new(&[Hash::S256, Hash::S384]).unwrap();
        let mut octets = written(&Hello { hashes, ..plain() });
        octets[80..84].copy_from_slice(b"N256");
        let Ok(Message::Hello(hello)) = Message::parse(&octets) else { panic!() };
        assert_eq!(hello.hashes.as_slice(), [Hash::S384]);
    }

    #[test]
    fn a_list_of_eight_is_refused() {
        let mut octets = written(&plain());
        octets[77] = 8;
        assert_eq!(Message::parse(&octets), Err(MessageError::AlgorithmCount(8)));
    }

    #[test]
    fn counts_that_do_not_fit_the_message_are_refused() {
        let mut octets = written(&plain());
        octets[77] = 1;
        assert!(matches!(Message::parse(&octets), Err(MessageError::Size { .. })));
    }

    #[test]
    fn unused_bits_are_ignored() {
        let mut octets = written(&plain());
        octets[76] = 0x8f;
        octets[77] = 0xf0;
        assert_eq!(Message::parse(&octets), Ok(Message::Hello(plain())));
    }

    proptest! {
        #[test]
        fn a_hello_survives_writing(
            lists in lists(), client: [u8; 16], h3: [u8; 32], zid: [u8; 12], mac: [u8; 8],
            signature_capable: bool, mitm: bool, passive: bool, version: [u8; 4],
        ) {
            let hello = Hello {
                version, client, h3, zid, signature_capable, mitm, passive, mac, ..lists
            };
            let octets = written(&hello);
            prop_assert_eq!(Message::parse(&octets), Ok(Message::Hello(hello)));
        }
    }
}
