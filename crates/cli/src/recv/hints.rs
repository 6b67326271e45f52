//! What is said, while a stream is received, of packets that cannot be used.

use std::net::SocketAddr;

use rushes::{Codec, Event};

/// Maximum number of payload types of which something is said: anybody can send any of them.
const TYPES_MAX: usize = 4;

/// Reports packets of other payload types on the error output, each type once.
#[derive(Debug)]
pub(super) struct Hints {
    codec: Codec,
    /// The payload type was given, by an option or a description.
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
            eprintln!("rushes: {}", self.text(payload_type, address));
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

/// The report on the first packets of a stream that its codec does not allow.
pub(super) fn unusable(packets: u64) -> String {
    format!(
        "{packets} packets arrived with payloads of another format: another --codec? A sender that \
         encrypts?"
    )
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
    fn little_is_said_whoever_sends_how_much() {
        let mut hints = Hints::new(Codec::H264, false);
        for n in 0..1000_u64 {
            let payload_type = (n % 128) as u8;
            hints.take(&Event::OtherPayloadType { payload_type, address: None, packets: n });
        }
        assert_eq!(hints.reported.len(), TYPES_MAX);
    }
}
