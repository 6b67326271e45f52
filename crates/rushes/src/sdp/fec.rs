//! Repair packets in a stream's own description and in the peer's (RFC 8627 section 5, RFC 5956).

use std::time::Duration;

use rushes_proto::repair::fec::FecFormat;
use rushes_proto::sdp::{Encoding, Format, Media, Source, SourceGroup};

use crate::setup::{Fec, StreamBuilder};

/// The semantics of a group of a source and its repair packets (RFC 5956 section 4.3).
const GROUP: &str = "FEC-FR";

/// Maximum wait for repair packets. Some peers announce windows of ten seconds that they do not use.
const WAIT_MAX: Duration = Duration::from_millis(200);

impl StreamBuilder {
    /// Adds the format of the repair packets that the stream sends, and their SSRC if it was set.
    pub(super) fn describe_fec(&self, media: &mut Media, cname: Option<&str>) {
        let Some(fec) = self.control.fec.filter(|fec| fec.is_sent()) else { return };
        let (format, payload_type, window) = fec.described(self.payload_type);
        let name = match format {
            FecFormat::FlexFec03 => "flexfec-03",
            _ => "flexfec",
        };
        let parameters = format!("repair-window={}", window.as_micros());
        let encoding = Encoding::Other { name: name.to_owned(), parameters };
        let clock_rate = media.formats[0].clock_rate;
        media.formats.push(Format { clock_rate, ..Format::new(payload_type, encoding) });
        if let (Some(ssrc), Some(repair)) = (self.ssrc, self.control.fec_ssrc) {
            media.ssrcs.push(Source { ssrc: repair, cname: cname.map(str::to_owned) });
            let ssrcs = vec![ssrc, repair];
            media.ssrc_groups.push(SourceGroup { semantics: GROUP.to_owned(), ssrcs });
        }
    }

    /// Uses the repair packets that `media` names, of the first format that is known.
    pub(super) fn with_fec_of(mut self, media: &Media) -> Self {
        let Some(fec) = media.formats.iter().find_map(fec_of) else { return self };
        self.control.fec = Some(fec);
        let ssrc = media.ssrc().and_then(|stream| media.fec_ssrc(stream));
        self.control.remote_fec_ssrc = ssrc;
        self
    }
}

/// Returns how to use the repair packets of `format`; `None` if it has none.
fn fec_of(format: &Format) -> Option<Fec> {
    let Encoding::Other { name, parameters } = &format.encoding else { return None };
    let fec = match name.to_ascii_lowercase().as_str() {
        "flexfec" => FecFormat::FlexFec,
        "flexfec-03" => FecFormat::FlexFec03,
        _ => return None,
    };
    let fec = Fec::receive().format(fec).payload_type(format.payload_type);
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
