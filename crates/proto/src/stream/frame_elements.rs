//! The elements of header extensions that an application gives for a frame to be sent.

use crate::rtp::ExtensionKind::DependencyDescriptor;
use crate::rtp::{Element, ElementError, ExtensionForm, ExtensionKind, ExtensionMap};

/// Maximum number of elements of one frame.
const ELEMENTS_MAX: usize = 64;

/// The packets of a frame that carry an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Placement {
    /// The first packet.
    First,
    /// The last packet.
    Last,
    /// Every packet.
    Every,
}

/// The elements of header extensions that the packets of one frame carry (RFC 8285).
///
/// A packet has at most one element of an identifier: of several for it, the one for the first
/// packet, else the one for the last, else the one for every packet.
///
/// ```
/// use rushes_proto::rtp::AudioLevel;
/// use rushes_proto::stream::{FrameElements, Placement};
///
/// let level = AudioLevel { below_overload: 30, has_voice: true };
/// let elements = FrameElements::default()
///     .with(Placement::Every, 1, level.to_bytes())
///     .with(Placement::First, 5, *b"of the application");
/// assert!(!elements.is_empty());
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FrameElements {
    list: Vec<(Placement, u8, Vec<u8>)>,
}

impl FrameElements {
    /// Adds element `id` with `data` for the packets that `placement` names. It replaces one with the
    /// same identifier and placement.
    ///
    /// In a [`DependencyDescriptor`](ExtensionKind::DependencyDescriptor), the sender sets the bits
    /// for the first and the last packet of a frame.
    #[must_use]
    pub fn with(mut self, placement: Placement, id: u8, data: impl Into<Vec<u8>>) -> Self {
        self.list.retain(|(place, other, _)| (*place, *other) != (placement, id));
        self.list.push((placement, id, data.into()));
        self
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Checks that the elements were agreed on and fit a form; returns that form.
    pub(super) fn check(&self, map: ExtensionMap) -> Result<ExtensionForm, ElementError> {
        let count = self.list.len();
        if count > ELEMENTS_MAX {
            return Err(ElementError::TooMany { count });
        }
        let mut form = map.form();
        for (_, id, data) in &self.list {
            let (id, len) = (*id, data.len());
            if !map.contains(id) {
                return Err(ElementError::NotAgreed { id });
            }
            match map.kind(id) {
                Some(kind) if kind.is_internal() || kind == ExtensionKind::AbsSendTime => {
                    return Err(ElementError::Internal { id });
                }
                Some(kind) if !kind.allows(len) => return Err(ElementError::Length { id, len }),
                _ => {}
            }
            if !form.fits(id, len) {
                if !map.has_mixed_forms() || !ExtensionForm::TwoByte.fits(id, len) {
                    return Err(ElementError::Length { id, len });
                }
                form = ExtensionForm::TwoByte;
            }
        }
        Ok(form)
    }

    /// Returns whether a packet at this place of the frame has any.
    #[inline]
    pub(super) fn are_due(&self, is_first: bool, is_last: bool) -> bool {
        self.list.iter().any(|(placement, ..)| placement.includes(is_first, is_last))
    }

    /// Calls `write` with each element of a packet at this place of the frame.
    pub(super) fn for_each(
        &self,
        map: ExtensionMap,
        (is_first, is_last): (bool, bool),
        mut write: impl FnMut(Element<'_>),
    ) {
        let applies = |placement: Placement| placement.includes(is_first, is_last);
        for (placement, id, data) in &self.list {
            let is_other = |(other, of, _): &&(Placement, u8, Vec<u8>)| {
                of == id && applies(*other) && other.rank() < placement.rank()
            };
            if !applies(*placement) || self.list.iter().any(|other| is_other(&other)) {
                continue;
            }
            match data.split_first() {
                Some((head, rest)) if map.id(DependencyDescriptor) == Some(*id) => {
                    let place = u8::from(is_first) << 7 | u8::from(is_last) << 6;
                    let data = [&[head & 0x3f | place][..], rest].concat();
                    write(Element { id: *id, data: &data });
                }
                _ => write(Element { id: *id, data }),
            }
        }
    }

    /// Returns whether an element for this identifier is among those of a packet.
    pub(super) fn has(&self, id: u8, (is_first, is_last): (bool, bool)) -> bool {
        self.list
            .iter()
            .any(|(placement, of, _)| *of == id && placement.includes(is_first, is_last))
    }

    /// Returns the most octets that the elements of one packet take in `form`.
    pub(super) fn len_max(&self, form: ExtensionForm) -> usize {
        let of = |place: (bool, bool)| -> usize {
            let due =
                self.list.iter().filter(|(placement, ..)| placement.includes(place.0, place.1));
            due.map(|(.., data)| form.head_len() + data.len()).sum()
        };
        [(true, true), (true, false), (false, true), (false, false)]
            .map(of)
            .into_iter()
            .max()
            .unwrap_or(0)
    }
}

impl Placement {
    fn includes(self, is_first: bool, is_last: bool) -> bool {
        match self {
            Self::First => is_first,
            Self::Last => is_last,
            Self::Every => true,
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::First => 0,
            Self::Last => 1,
            Self::Every => 2,
        }
    }
}
