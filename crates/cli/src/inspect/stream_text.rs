//! One stream's findings in text.

use std::fmt::{self, Write as _};

use super::stream_report::{Content, ExtensionElements, Rates, Reception, StreamReport};
use super::text::{listed, row, rows};
use crate::report::counted;

impl StreamReport {
    pub(super) fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}  {} -> {}", self.ssrc, self.source, self.destination)?;
        row(f, "codec", &self.codec_text())?;
        row(f, "packets", &self.packet_text())?;
        if let Some(extensions) = self.extension_text() {
            row(f, "extensions", &extensions)?;
        }
        row(f, "lost", &self.reception.loss_text())?;
        let Reception { jitter_ticks, jitter_ms, .. } = self.reception;
        if let (Some(ticks), Some(millis)) = (jitter_ticks, jitter_ms) {
            row(f, "jitter", &format!("{millis:.3} ms, {ticks} ticks"))?;
        }
        if let (Some(first), Some(last)) = (self.first, self.last)
            && self.seconds > 0.0
        {
            row(f, "time", &format!("{first:.3} to {last:.3} s, {:.3} s", self.seconds))?;
        }
        if let Some(rates) = self.rates.text() {
            row(f, "rate", &rates)?;
        }
        row(f, "frames", &self.content.frame_text())?;
        if let Some(rtcp) = &self.rtcp {
            rows(f, "RTCP", &rtcp.lines())?;
        }
        let discards = self.discards.iter().map(|(reason, count)| (*reason, *count));
        // The line on losses already contains these.
        let others = discards.filter(|(reason, _)| !matches!(*reason, "duplicate" | "late"));
        let others = listed(others);
        if !others.is_empty() {
            row(f, "discarded", &others)?;
        }
        self.content.write_census(f)
    }

    fn codec_text(&self) -> String {
        let (payload_type, hertz) = (self.payload_type, self.clock_rate);
        let mut text = if let Some(look) = &self.look {
            let look = look.text();
            format!("{look}; payload type {payload_type}, assumed to run at {hertz} Hz")
        } else {
            let (codec, known) = (&self.codec, self.codec_known);
            format!("{codec}, {known}; payload type {payload_type}, {hertz} Hz")
        };
        for (payload_type, packets) in &self.other_payload_types {
            let _ = write!(text, "; {} of type {payload_type}", counted(*packets, "packet"));
        }
        text
    }

    fn extension_text(&self) -> Option<String> {
        let element = |row: &ExtensionElements| {
            let ExtensionElements { id, elements, shortest, longest } = row;
            let octets = if shortest == longest {
                counted(*shortest as u64, "octet")
            } else {
                format!("{shortest} to {longest} octets")
            };
            format!("element {id} of {octets} {elements} times")
        };
        let mut rows: Vec<String> = self.extension_elements.iter().map(element).collect();
        if self.other_extensions > 0 {
            rows.push(format!("{} without a list of elements", self.other_extensions));
        }
        (!rows.is_empty()).then(|| rows.join(", "))
    }

    fn packet_text(&self) -> String {
        let Reception { packets, first_sequence, last_sequence, .. } = self.reception;
        let largest = self.rates.largest_packet;
        let mut text = format!(
            "{packets}, sequence {first_sequence} to {last_sequence}, up to {largest} octets"
        );
        let types = listed(self.content.packet_types.iter().map(|(name, count)| (*name, *count)));
        if !types.is_empty() {
            let _ = write!(text, "; {types}");
        }
        text
    }
}

impl Reception {
    fn loss_text(&self) -> String {
        let Self { lost, expected, lost_percent, reordered, late, .. } = self;
        let duplicates = counted(self.duplicates, "duplicate");
        format!(
            "{lost} of {expected} ({lost_percent:.2} %), {reordered} reordered, {duplicates}, \
             {late} late"
        )
    }
}

impl Rates {
    fn text(&self) -> Option<String> {
        let wire = bits(self.wire_bits_per_second?);
        let Some(payload) = self.payload_bits_per_second else {
            return Some(format!("{wire} with IP headers"));
        };
        let mut text = format!("{} payload, {wire} with IP headers", bits(payload));
        if let Some(media) = self.media_bits_per_second
            && !(0.9..1.1).contains(&(media / payload))
        {
            let _ = write!(text, "; {} payload by its timestamps", bits(media));
        }
        Some(text)
    }
}

impl Content {
    fn frame_text(&self) -> String {
        let mut text = self.frames.to_string();
        if let Some(rate) = self.frames_per_second {
            let _ = write!(text, ", {rate:.2} a second");
        }
        if self.frames > 0 {
            let _ = write!(text, ", up to {} octets", self.largest_frame);
        }
        if !self.nal_units.is_empty() {
            let _ = write!(text, ", {} to start from", self.random_access);
        }
        if self.markers != self.frames {
            let _ = write!(text, ", {}", counted(self.markers, "marker"));
        }
        if self.units_dropped > 0 {
            let _ = write!(text, ", {} incomplete", counted(self.units_dropped, "unit"));
        }
        text
    }

    fn write_census(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.nal_units.is_empty() {
            writeln!(f, "  NAL units   type     count      octets  name")?;
        }
        for row in &self.nal_units {
            writeln!(f, "{:>18} {:>9} {:>11}  {}", row.r#type, row.units, row.octets, row.name)?;
        }
        if !self.opus.is_empty() {
            writeln!(f, "  packets       ms     count      octets  coding")?;
        }
        for row in &self.opus {
            let (millis, channels) = (row.milliseconds, if row.stereo { "stereo" } else { "mono" });
            let (packets, octets, mode) = (row.packets, row.octets, row.mode);
            writeln!(f, "{millis:>18} {packets:>9} {octets:>11}  {mode}, {channels}")?;
        }
        Ok(())
    }
}

fn bits(rate: f64) -> String {
    if rate >= 1e6 {
        format!("{:.3} Mbit/s", rate / 1e6)
    } else {
        format!("{:.1} kbit/s", rate / 1e3)
    }
}
