//! Elements of EBML (RFC 8794), written one after the other.

/// The size of an element that ends where one of its parent's level begins (section 6.2).
const UNKNOWN: [u8; 8] = [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

/// Octets of the identifier and the size of a Void element.
const VOID_HEAD: usize = 1 + UNKNOWN.len();

/// Returns the size of an element's data: in eight octets, which any size fits.
pub(super) fn size(len: u64) -> [u8; 8] {
    (1 << 56 | len).to_be_bytes()
}

/// Elements one after the other.
#[derive(Debug, Default)]
pub(super) struct Element(pub(super) Vec<u8>);

impl Element {
    pub(super) fn id(&mut self, id: u32) -> &mut Self {
        let octets = id.to_be_bytes();
        self.0.extend(octets.iter().skip_while(|octet| **octet == 0));
        self
    }

    pub(super) fn len(&mut self, len: usize) -> &mut Self {
        self.0.extend(size(len as u64));
        self
    }

    pub(super) fn octets(&mut self, id: u32, octets: &[u8]) -> &mut Self {
        self.id(id).len(octets.len()).0.extend_from_slice(octets);
        self
    }

    pub(super) fn unsigned(&mut self, id: u32, number: u64) -> &mut Self {
        self.octets(id, &number.to_be_bytes())
    }

    pub(super) fn float(&mut self, id: u32, number: f64) -> &mut Self {
        self.octets(id, &number.to_be_bytes())
    }

    /// Appends a place of `len` octets, at least nine, for elements that are not known yet (section
    /// 11.3.2).
    pub(super) fn void(&mut self, len: usize) -> &mut Self {
        self.octets(0xec, &vec![0; len.saturating_sub(VOID_HEAD)])
    }

    /// Appends the beginning of an element of unknown size.
    pub(super) fn open(&mut self, id: u32) -> &mut Self {
        self.id(id).0.extend(UNKNOWN);
        self
    }
}
