//! The report in text.

use std::fmt::{self, Display, Write as _};
use std::time::Duration;

use super::classify::Kind;
use super::clock::date;
use super::report::{Offloaded, Report, Skipped, SourceReport};
use crate::report::counted;

/// Seconds in a day.
const DAY: f64 = 86_400.0;

/// Columns before the text of a row.
const LABEL: usize = 14;

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let links: Vec<&str> = self.link_types.keys().map(String::as_str).collect();
        write!(f, "{}: {}", self.file, self.format)?;
        if !links.is_empty() {
            write!(f, ", {}", links.join(" and "))?;
        }
        writeln!(f, ", {}, {} octets", counted(self.packets, "packet"), self.octets)?;
        if let Some(start) = self.start.filter(|_| self.seconds > 0.0) {
            write!(f, "  {:.3} s", self.seconds)?;
            // Some captures count times from zero instead of 1970.
            if start >= DAY {
                let start = Duration::try_from_secs_f64(start).unwrap_or_default();
                write!(f, " from {}", date(start))?;
            }
            writeln!(f)?;
        } else if self.packets > 0 {
            writeln!(f, "  without capture times: rates are by the timestamps of RTP")?;
        }
        let number = |kind: Kind| self.datagrams.get(kind.key()).copied().unwrap_or(0);
        let kinds = listed(Kind::ALL.into_iter().map(|kind| (kind.name(), number(kind))));
        if !kinds.is_empty() {
            writeln!(f, "  datagrams: {kinds}")?;
        }
        self.skipped.write(f)?;
        if self.offloaded.datagrams > 0 {
            let Offloaded { datagrams, packets } = self.offloaded;
            let datagrams = counted(datagrams, "large datagram");
            writeln!(f, "  offloaded: {datagrams} of {packets} RTP packets, separated here")?;
        }
        for stream in &self.streams {
            stream.write(f)?;
        }
        if !self.other_sources.is_empty() {
            writeln!(f, "\nRTCP of other sources")?;
            for (ssrc, source) in &self.other_sources {
                rows(f, ssrc, &source.lines())?;
            }
        }
        if let Some(extracted) = &self.extracted {
            let units = counted(extracted.units, "unit");
            let (ssrc, file) = (&extracted.ssrc, &extracted.file);
            writeln!(f, "\nextracted {ssrc}: {units}, {} octets in {file}", extracted.octets)?;
        }
        Ok(())
    }
}

impl Skipped {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = listed([
            ("not IP", self.not_ip),
            ("not UDP", self.not_udp),
            ("of unknown link types", self.unknown_link_type),
            ("malformed", self.malformed),
            ("like RTP without a stream", self.rtp_without_stream),
            ("of further streams", self.rtp_of_further_streams),
            ("RTCP damaged or encrypted", self.rtcp_unreadable),
            ("cut by the capture", self.cut),
        ]);
        if !rows.is_empty() {
            writeln!(f, "  left out:  {rows}")?;
        }
        if self.fragments > 0 {
            write!(
                f,
                "  fragments: {} made {}",
                self.fragments,
                counted(self.reassembled, "packet")
            )?;
            if self.not_reassembled > 0 {
                write!(f, ", {} never complete", self.not_reassembled)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl SourceReport {
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.own_text()];
        if let (Some(by), Some(fraction), Some(lost), Some(jitter)) =
            (&self.reported_by, self.fraction_lost, self.cumulative_lost, self.jitter_ticks)
        {
            lines.push(format!(
                "{} of receivers, the last by {by}: {lost} lost, {:.1} % lately, jitter {jitter} \
                 ticks",
                counted(self.reports_about, "report"),
                fraction * 100.0,
            ));
        }
        if let (Some(trip), Some(least)) = (self.round_trip_ms, self.round_trip_least_ms) {
            lines.push(format!(
                "round trip between here and the receiver {trip:.2} ms, at least {least:.2} ms"
            ));
        }
        let mut requests = listed(self.feedback.iter().map(|(name, count)| (*name, *count)));
        if self.packets_requested > 0 {
            let packets = counted(self.packets_requested, "packet");
            let _ = write!(requests, "; {packets} requested again");
        }
        lines.push(requests);
        lines.retain(|line| !line.is_empty());
        lines
    }

    /// Returns the source's own description and reports as text.
    fn own_text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(cname) = &self.cname {
            parts.push(format!("CNAME {cname}"));
        }
        if let (Some(packets), Some(octets)) = (self.packets_sent, self.octets_sent) {
            let reports = counted(self.sender_reports, "sender report");
            parts.push(format!("{reports}, the last of {packets} packets, {octets} octets"));
        }
        if self.receiver_reports > 0 {
            parts.push(counted(self.receiver_reports, "receiver report"));
        }
        match self.goodbye.as_deref() {
            Some("") => parts.push("BYE".to_owned()),
            Some(reason) => parts.push(format!("BYE ({reason})")),
            None => {}
        }
        parts.join("; ")
    }
}

/// Writes lines with a label before the first one.
pub(super) fn rows(f: &mut fmt::Formatter<'_>, label: &str, lines: &[String]) -> fmt::Result {
    for (n, line) in lines.iter().enumerate() {
        row(f, if n == 0 { label } else { "" }, line)?;
    }
    Ok(())
}

pub(super) fn row(f: &mut fmt::Formatter<'_>, label: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {label:<width$}{text}", width = LABEL - 2)
}

/// Formats the nonzero counts of a list as "3 this, 4 that".
pub(super) fn listed<'n>(rows: impl IntoIterator<Item = (&'n str, u64)>) -> String {
    let rows: Vec<String> = rows
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    rows.join(", ")
}
