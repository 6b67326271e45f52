//! Messages about unusable packets while a stream is received.

use std::fmt;
use std::net::SocketAddr;

use rushes::proto::control::ControlStatistics;
use rushes::proto::stream::ReceiveStatistics;
use rushes::{Codec, Discard, Event};

use crate::progress::note;
use crate::report::counted;

/// Maximum number of payload types reported: any host can send packets of any type.
const TYPES_MAX: usize = 4;

/// Reports packets of other payload types on the error output, each type once.
#[derive(Debug)]
pub(super) struct Hints {
    codec: Codec,
    /// Whether an option or a description gives the payload type.
    is_given: bool,
    reported: Vec<u8>,
}

impl Hints {
    pub(super) fn new(codec: Codec, is_given: bool) -> Self {
        Self { codec, is_given, reported: Vec::new() }
    }

    pub(super) fn take(&mut self, event: &Event) {
        if let Event::OtherPayloadType { payload_type, address, .. } = *event
            && !self.reported.contains(&payload_type)
            && self.reported.len() < TYPES_MAX
        {
            self.reported.push(payload_type);
            note!("{}", self.text(payload_type, address));
        }
    }

    fn text(&self, payload_type: u8, address: Option<SocketAddr>) -> String {
        let from = address.map_or_else(String::new, |address| format!(" from {address}"));
        let found = format!("packets of payload type {payload_type} arrive{from} and are ignored");
        if self.is_given {
            return format!("{found}: another was given");
        }
        let is_other =
            |codec: &Codec| codec.payload_type().value() == payload_type && *codec != self.codec;
        let codec = Codec::all().find(is_other);
        let codec = codec.map_or_else(String::new, |codec| format!("--codec {} or ", codec.name));
        format!(
            "{found}; expected {} ({}). Try: {codec}--payload-type {payload_type}",
            self.codec.payload_type().value(),
            self.codec.name,
        )
    }
}

/// Returns the report on the first packets of a stream that its codec does not allow.
pub(super) fn unusable(packets: u64) -> String {
    format!(
        "{} arrived with payloads of another format: another --codec? A sender that encrypts?",
        counted(packets, "packet")
    )
}

/// Returns how the keys of the two sides seem to differ, or `None` if they do not.
pub(super) fn keys(receive: &ReceiveStatistics, control: &ControlStatistics) -> Option<Keys> {
    Keys::of(receive.packets, |reason| receive.discards.get(reason) > 0, control)
}

/// How the sender's keys differ from the receiver's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Keys {
    /// The sender wants to agree on keys.
    Agreement,
    /// The sender has none.
    None,
    /// The sender has others.
    Other,
    /// The sender has others or none.
    OtherOrNone,
    /// The sender has keys, the receiver none.
    Missing,
}

impl Keys {
    fn of(
        packets: u64,
        has: impl Fn(Discard) -> bool,
        control: &ControlStatistics,
    ) -> Option<Self> {
        if packets > 0 {
            return (control.encrypted > 0).then_some(Self::Missing);
        }
        let is_refused = has(Discard::Authentication);
        match control {
            _ if has(Discard::Zrtp) => Some(Self::Agreement),
            ControlStatistics { clear: 1.., .. } => Some(Self::None),
            ControlStatistics { unauthentic: 1.., .. } if is_refused => Some(Self::Other),
            _ if is_refused => Some(Self::OtherOrNone),
            ControlStatistics { encrypted: 1.., .. } => Some(Self::Missing),
            _ => None,
        }
    }
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agreement => "the sender wants to agree on keys. Try: --zrtp",
            Self::None => "the sender does not encrypt: it needs the same --srtp and key",
            Self::Other => "authentication fails: another key or suite?",
            Self::OtherOrNone => {
                "authentication fails: another key or suite, or a sender that does not encrypt?"
            }
            Self::Missing => {
                "the sender seems to encrypt, its reports cannot be read. Try: --srtp SUITE \
                 --key-file FILE, as on the other side"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_codec_is_named_where_the_payload_type_is_its_own() {
        let hints = Hints::new(Codec::H264, false);
        let address = Some(SocketAddr::from(([192, 0, 2, 1], 5004)));
        assert_eq!(
            hints.text(Codec::H265.payload_type().value(), address),
            "packets of payload type 97 arrive from 192.0.2.1:5004 and are ignored; expected 96 \
             (h264). Try: --codec h265 or --payload-type 97"
        );
        let text = hints.text(33, None);
        assert!(
            text.ends_with("arrive and are ignored; expected 96 (h264). Try: --payload-type 33")
        );
        let described = Hints::new(Codec::H264, true).text(97, None);
        assert!(described.ends_with("ignored: another was given"), "{described}");
    }

    #[test]
    fn keys_that_differ_are_told_apart_by_the_reports() {
        let refused = |reason| reason == Discard::Authentication;
        let none = ControlStatistics::default();
        assert_eq!(Keys::of(0, |_| false, &none), None);
        assert_eq!(Keys::of(0, |reason| reason == Discard::Zrtp, &none), Some(Keys::Agreement));
        assert_eq!(Keys::of(0, refused, &none), Some(Keys::OtherOrNone));
        let with = |set: fn(&mut ControlStatistics)| {
            let mut control = none;
            set(&mut control);
            control
        };
        let other = with(|control| control.unauthentic = 1);
        assert_eq!(Keys::of(0, refused, &other), Some(Keys::Other));
        let clear = with(|control| (control.unauthentic, control.clear) = (2, 1));
        assert_eq!(Keys::of(0, refused, &clear), Some(Keys::None));
        assert_eq!(Keys::of(1, refused, &clear), None, "some packets are authentic");
        let encrypted = with(|control| (control.malformed, control.encrypted) = (1, 1));
        assert_eq!(Keys::of(1, |_| false, &encrypted), Some(Keys::Missing));
    }

    #[test]
    fn little_is_said_whoever_sends_how_much() {
        let mut hints = Hints::new(Codec::H264, false);
        for n in 0..1000_u64 {
            let payload_type = (n % 128) as u8;
            hints.take(&Event::OtherPayloadType { payload_type, address: None, packets: n });
        }
        assert_eq!(hints.reported.len(), TYPES_MAX);
    }
}
