//! Repair packets in a stream's own description and in the peer's (RFC 8627 section 5, RFC 5956, RFC
//! 5109 section 14).

use std::time::Duration;

use rushes_proto::PayloadType;
use rushes_proto::repair::fec::FecFormat;
use rushes_proto::sdp::{Encoding, Format, Media, MediaKind, Source, SourceGroup};

use crate::setup::{Fec, StreamBuilder};

/// The semantics of a group of a source and its repair packets (RFC 5956 section 4.3).
const GROUP: &str = "FEC-FR";

/// Maximum wait for repair packets. Some peers announce windows of ten seconds that they do not use.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// The encoding name of RED (RFC 2198).
const RED: &str = "red";

impl StreamBuilder {
    /// Adds the format of the repair packets that the stream sends, and their SSRC if it was set.
    pub(super) fn describe_fec(&self, media: &mut Media, cname: Option<&str>) {
        let Some(fec) = self.control.fec.filter(|fec| fec.is_sent()) else { return };
        let ((format, window), payload_type) =
            (fec.format_and_delay(), fec.type_for(self.payload_type));
        let window = format!("repair-window={}", window.as_micros());
        let (name, parameters) = match format {
            FecFormat::FlexFec | FecFormat::FlexFecFixed => ("flexfec", window),
            FecFormat::FlexFec03 => ("flexfec-03", window),
            FecFormat::Ulp => ("ulpfec", String::new()),
        };
        if let Some(red) = fec.red_type_for(self.payload_type) {
            // RFC 2198 section 5 names the types of blocks, of audio. For video WebRTC names none.
            let blocks = match media.kind {
                MediaKind::Audio => {
                    format!("{}/{}", self.payload_type.value(), payload_type.value())
                }
                _ => String::new(),
            };
            add(media, red, RED, blocks);
        }
        add(media, payload_type, name, parameters);
        if let (Some(ssrc), Some(repair)) = (self.ssrc, self.control.fec_ssrc) {
            media.ssrcs.push(Source { ssrc: repair, cname: cname.map(str::to_owned) });
            let ssrcs = vec![ssrc, repair];
            media.ssrc_groups.push(SourceGroup { semantics: GROUP.to_owned(), ssrcs });
        }
    }

    /// Returns the payload type of the packets that are retransmitted: that of RED, if media is sent
    /// within it.
    pub(super) fn repeated_type(&self) -> PayloadType {
        let fec = self.control.fec.filter(|fec| fec.is_sent());
        fec.and_then(|fec| fec.red_type_for(self.payload_type)).unwrap_or(self.payload_type)
    }

    /// Uses the repair packets that `media` names, of the first format that is known.
    pub(super) fn with_fec_of(mut self, media: &Media) -> Self {
        let Some(fec) = fec_of(media) else { return self };
        self.control.fec = Some(fec);
        if fec.red_type_for(self.payload_type).is_none() {
            let ssrc = media.ssrc().and_then(|stream| media.fec_ssrc(stream));
            self.control.remote_fec_ssrc = ssrc;
        }
        self
    }
}

/// Adds a format with the clock rate of the media and, for RED, its channels.
fn add(media: &mut Media, payload_type: PayloadType, name: &str, parameters: String) {
    let encoding = Encoding::Other { name: name.to_owned(), parameters };
    let Some(Format { clock_rate, channels, .. }) = media.formats.first() else { return };
    let (clock_rate, channels) = (*clock_rate, channels.filter(|_| name == RED));
    let feedback = Vec::new();
    media.formats.push(Format { payload_type, encoding, clock_rate, channels, feedback });
}

/// Returns how to use the repair packets that `media` names.
pub(super) fn fec_of(media: &Media) -> Option<Fec> {
    let red = media.formats.iter().find(|format| format.encoding.name().eq_ignore_ascii_case(RED));
    media.formats.iter().find_map(|format| fec_in(format, red.map(|red| red.payload_type)))
}

/// Returns how to use the repair packets of `format`; `None` if it has none. ULPFEC is used within
/// `red` only.
fn fec_in(format: &Format, red: Option<PayloadType>) -> Option<Fec> {
    let Encoding::Other { name, parameters } = &format.encoding else { return None };
    let fec = Fec::receive().payload_type(format.payload_type);
    let fec = match name.to_ascii_lowercase().as_str() {
        "flexfec" => fec.format(FecFormat::FlexFec),
        "flexfec-03" => fec.format(FecFormat::FlexFec03),
        "ulpfec" => fec.format(FecFormat::Ulp).red_payload_type(red?),
        _ => return None,
    };
    // One example of RFC 8627 section 7.3 has a colon.
    let window = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once(['=', ':'])?;
        let is_window = name.trim().eq_ignore_ascii_case("repair-window");
        value.trim().parse().ok().filter(|_| is_window)
    });
    Some(match window.map(Duration::from_micros) {
        Some(window) => fec.delay(window.min(WAIT_MAX)),
        None => fec,
    })
}
