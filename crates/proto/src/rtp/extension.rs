//! Header extension elements in their one- and two-byte forms (RFC 8285).

use super::error::{ExtensionError, WriteError};

/// The profile of the one-byte form (RFC 8285 section 4.2).
pub const ONE_BYTE_PROFILE: u16 = 0xbede;

/// The profile of the two-byte form, without its four application bits (RFC 8285 section 4.3).
pub const TWO_BYTE_PROFILE: u16 = 0x1000;

/// The form of the elements' headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExtensionForm {
    /// Identifiers 1..=14, each with 1..=16 octets of data.
    OneByte,
    /// Identifiers 1..=255, each with 0..=255 octets of data.
    TwoByte,
}

impl ExtensionForm {
    /// Returns the form that `profile` denotes, if any.
    pub fn of(profile: u16) -> Option<Self> {
        match profile {
            ONE_BYTE_PROFILE => Some(Self::OneByte),
            profile if profile & 0xfff0 == TWO_BYTE_PROFILE => Some(Self::TwoByte),
            _ => None,
        }
    }

    /// Returns whether an element with this identifier and octets of data fits.
    pub fn fits(self, id: u8, len: usize) -> bool {
        match self {
            Self::OneByte => (1..15).contains(&id) && (1..=16).contains(&len),
            Self::TwoByte => id != 0 && len <= 255,
        }
    }

    /// Returns the octets of an element's header.
    pub(crate) fn head_len(self) -> usize {
        match self {
            Self::OneByte => 1,
            Self::TwoByte => 2,
        }
    }

    /// Returns the profile that denotes this form.
    pub fn profile(self) -> u16 {
        match self {
            Self::OneByte => ONE_BYTE_PROFILE,
            Self::TwoByte => TWO_BYTE_PROFILE,
        }
    }
}

/// One element of a header extension.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Element<'a> {
    /// The local identifier, to which SDP assigns a meaning.
    pub id: u8,
    /// The data.
    pub data: &'a [u8],
}

/// The elements of a header extension, in order. An error ends the list.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    form: ExtensionForm,
    data: &'a [u8],
    offset: usize,
}

impl<'a> Elements<'a> {
    /// Returns the elements in `data`; `None` if `profile` denotes neither form.
    pub fn new(profile: u16, data: &'a [u8]) -> Option<Self> {
        Some(Self { form: ExtensionForm::of(profile)?, data, offset: 0 })
    }

    /// Returns identifier, data length and header length of the element at the start of `rest`.
    fn introduce(&self, rest: &[u8]) -> Option<(u8, usize, usize)> {
        match (self.form, rest) {
            (ExtensionForm::OneByte, &[head, ..]) => {
                Some((head >> 4, usize::from(head & 0x0f) + 1, 1))
            }
            (ExtensionForm::TwoByte, &[id, len, ..]) => Some((id, usize::from(len), 2)),
            _ => None,
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<Element<'a>, ExtensionError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A zero octet is padding wherever an element could begin.
        while self.data.get(self.offset) == Some(&0) {
            self.offset += 1;
        }
        let offset = self.offset;
        let rest = self.data.get(offset..)?;
        if rest.is_empty() {
            return None;
        }
        let Some((id, len, head)) = self.introduce(rest) else {
            self.offset = self.data.len();
            let error = ExtensionError::Truncated { offset, id: rest[0], claimed: 1, remaining: 0 };
            return Some(Err(error));
        };
        if self.form == ExtensionForm::OneByte && id == 15 {
            // RFC 8285 section 4.2: identifier 15 ends the list, whatever follows it.
            self.offset = self.data.len();
            return None;
        }
        if id == 0 {
            self.offset = self.data.len();
            return Some(Err(ExtensionError::ReservedId { offset }));
        }
        let Some(data) = rest.get(head..head + len) else {
            self.offset = self.data.len();
            let remaining = rest.len() - head;
            return Some(Err(ExtensionError::Truncated { offset, id, claimed: len, remaining }));
        };
        self.offset += head + len;
        Some(Ok(Element { id, data }))
    }
}

/// Writes `elements` in `form` to the end of `out`, padded to whole words.
///
/// # Errors
/// [`WriteError::Element`] if an element does not fit the form; `out` is then unchanged.
pub fn write_elements(
    form: ExtensionForm,
    elements: &[Element<'_>],
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let before = out.len();
    for element in elements {
        if let Err(error) = write_element(form, *element, out) {
            out.truncate(before);
            return Err(error);
        }
    }
    close_elements(before, out);
    Ok(())
}

/// Writes one element to the end of `out`, without padding.
///
/// # Errors
/// [`WriteError::Element`] if it does not fit the form; `out` is then unchanged.
pub(crate) fn write_element(
    form: ExtensionForm,
    element: Element<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let Element { id, data } = element;
    let len = data.len();
    match form {
        _ if !form.fits(id, len) => return Err(WriteError::Element { id, len }),
        ExtensionForm::OneByte => out.push(id << 4 | (len - 1) as u8),
        ExtensionForm::TwoByte => out.extend_from_slice(&[id, len as u8]),
    }
    out.extend_from_slice(data);
    Ok(())
}

/// Pads the elements in `out` from `begin` on to whole words.
pub(crate) fn close_elements(begin: usize, out: &mut Vec<u8>) {
    let len = out.len() - begin;
    out.resize(begin + len.next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(profile: u16, data: &[u8]) -> Vec<Result<(u8, &[u8]), ExtensionError>> {
        Elements::new(profile, data)
            .unwrap()
            .map(|element| element.map(|element| (element.id, element.data)))
            .collect()
    }

    /// The figure of RFC 8285 section 4.2: L=0, L=1 with padding in between, L=3.
    #[test]
    fn one_byte_elements_are_read_with_padding_between() {
        let data = [0x10, 0xaa, 0x21, 0xbb, 0xcc, 0, 0, 0x33, 1, 2, 3, 4];
        let expected = [Ok((1, &[0xaa][..])), Ok((2, &[0xbb, 0xcc])), Ok((3, &[1, 2, 3, 4]))];
        assert_eq!(list(ONE_BYTE_PROFILE, &data), expected);
    }

    #[test]
    fn two_byte_elements_may_be_empty_and_long() {
        let mut data = vec![1, 0, 0, 2, 40];
        data.extend([7; 40]);
        assert_eq!(list(TWO_BYTE_PROFILE | 5, &data), [Ok((1, &[][..])), Ok((2, &[7; 40]))]);
    }

    #[test]
    fn identifier_15_ends_the_one_byte_list() {
        assert_eq!(list(ONE_BYTE_PROFILE, &[0x10, 1, 0xf0, 1, 0x20, 2, 0, 0]), [Ok((1, &[1][..]))]);
    }

    #[test]
    fn an_element_past_the_end_is_refused_and_ends_the_list() {
        let error = ExtensionError::Truncated { offset: 2, id: 2, claimed: 16, remaining: 1 };
        assert_eq!(list(ONE_BYTE_PROFILE, &[0x10, 1, 0x2f, 1]), [Ok((1, &[1][..])), Err(error)]);
        let error = ExtensionError::Truncated { offset: 0, id: 9, claimed: 3, remaining: 2 };
        assert_eq!(list(TWO_BYTE_PROFILE, &[9, 3, 1, 1]), [Err(error)]);
    }

    #[test]
    fn identifier_0_with_a_length_is_refused() {
        assert_eq!(
            list(ONE_BYTE_PROFILE, &[0x01, 1, 1, 0]),
            [Err(ExtensionError::ReservedId { offset: 0 })]
        );
    }

    #[test]
    fn other_profiles_have_no_elements() {
        assert!(Elements::new(0x1234, &[0; 4]).is_none());
    }

    #[test]
    fn written_elements_are_read_again() {
        let elements = [Element { id: 1, data: &[1] }, Element { id: 14, data: &[2; 16] }];
        for form in [ExtensionForm::OneByte, ExtensionForm::TwoByte] {
            let mut out = Vec::new();
            write_elements(form, &elements, &mut out).unwrap();
            assert_eq!(out.len() % 4, 0);
            let read: Vec<_> = Elements::new(form.profile(), &out).unwrap().flatten().collect();
            assert_eq!(read, elements);
        }
    }

    #[test]
    fn an_element_that_does_not_fit_leaves_no_trace() {
        let mut out = vec![9];
        let elements = [Element { id: 1, data: &[1] }, Element { id: 15, data: &[2] }];
        let error = WriteError::Element { id: 15, len: 1 };
        assert_eq!(write_elements(ExtensionForm::OneByte, &elements, &mut out), Err(error));
        assert_eq!(out, [9]);
    }
}
