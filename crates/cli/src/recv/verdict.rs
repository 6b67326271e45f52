//! The report at the end of a reception, and the exit code.

use rushes::Statistics;
use serde_json::{Value, json};

use super::contest::Counts;
use super::hints::{self, Keys};
use super::reception::{End, Received};
use super::track::Track;
use crate::args::RecvArgs;
use crate::control::sent_by;
use crate::report::counted;
use crate::{Outcome, report, zrtp};

/// Results of the written sources only: other sources do not matter for the file.
pub(super) struct Verdict {
    counts: Counts,
    /// Number of packets that were sent and not received: gaps between received packets, and
    /// packets before the first or after the last received one that the sender's last report
    /// counts.
    lost: u64,
    is_complete: bool,
    /// How the sender's keys differ, if they seem to.
    keys: Option<Keys>,
    /// The counters of the sources of earlier files and of the next one.
    other_files: Counts,
    statistics: Statistics,
}

/// Prints the report on all streams, and returns the outcome.
pub(super) fn print(args: &RecvArgs, tracks: &mut [Track<'_>]) -> anyhow::Result<Outcome> {
    let verdicts: Vec<_> = tracks.iter().map(|track| Verdict::of(track)).collect();
    if args.output.json {
        let mut objects = Vec::new();
        for (verdict, track) in verdicts.iter().zip(tracks.iter_mut()) {
            objects.push(verdict.object(args, track));
        }
        let only = if objects.len() == 1 { objects.pop() } else { None };
        report::print_line(only.unwrap_or_else(|| {
            let is_complete = verdicts.iter().all(|verdict| verdict.is_complete);
            json!({ "complete": is_complete, "streams": objects })
        }))?;
    } else if !args.output.quiet {
        let each = verdicts.iter().zip(&*tracks);
        each.for_each(|(verdict, track)| verdict.print_summary(track));
    }
    let mut outcome = Outcome::Done;
    for (verdict, track) in verdicts.iter().zip(tracks) {
        if verdict.outcome(args, track) == Outcome::Failed {
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

impl Verdict {
    fn of(track: &Track<'_>) -> Self {
        let Track { stream, received, .. } = track;
        let (mut counts, mut lost) = (Counts::default(), 0);
        for (source, of_source) in received.contest.sources() {
            counts = counts.plus(of_source);
            let sent = sent_by(&stream.media, source);
            let have = of_source.packets_before + of_source.packets;
            let ends = sent.map_or(0, |sent| sent.saturating_sub(have));
            lost += of_source.packets_lost.max(ends.min(u64::from(u32::MAX / 2)));
        }
        let is_whole = lost == 0 && counts.frames_dropped == 0 && !counts.is_of_another_format();
        let is_complete = is_whole
            && received.frames > 0
            && received.frames_incomplete == 0
            && received.flaw.is_none();
        let statistics = stream.media.statistics();
        let other_files = stream.earlier.plus(received.contest.counts_of_next());
        let keys = hints::keys(&statistics.receive, &stream.media.rtcp().statistics());
        Self { counts, lost, is_complete, keys, other_files, statistics }
    }

    fn object(&self, args: &RecvArgs, track: &mut Track<'_>) -> Value {
        let Track { stream, received, file, .. } = track;
        let sources: Vec<String> =
            received.contest.sources().map(|(ssrc, _)| ssrc.to_string()).collect();
        json!({
            "file": file.map(|file| file.display().to_string()),
            "codec": stream.codec.name,
            "complete": self.is_complete,
            "end": received.end.name(),
            "sources": sources,
            "frames_written": args.output_file.as_ref().map(|_| received.frames),
            "octets_written": args.output_file.as_ref().map(|_| received.octets),
            "frames_received": received.frames,
            "frames_of_other_sources": received.frames_of_all.saturating_sub(received.frames),
            "frames_incomplete": received.frames_incomplete,
            "frames_by_temporal_layer": received.layers.list(),
            "seconds": received.time.as_secs_f64(),
            "megabits_per_second": report::megabits(received.octets, received.time),
            "packets_lost": self.lost,
            "silence_ms": stream.sampling.map(|_| received.silence.as_secs_f64() * 1e3),
            "zrtp": stream.agreed.as_ref().map(zrtp::Agreed::object),
            "received": self.received(received),
            "other_sources": self.others(),
            "rtcp": received.rtcp.report(&stream.media),
            "capture_to_delivery": received.latency.report(),
        })
    }

    /// Returns the counters of the reception: of the written sources alone, where they can be
    /// separated.
    fn received(&self, received: &Received) -> Value {
        let mut object = report::received(&self.statistics);
        let Counts { packets, packets_lost, frames, frames_dropped, packets_unusable, .. } =
            self.counts;
        let written = received.contest.written();
        let receive = &self.statistics.receive;
        let mut sources = receive.sources.iter().chain(receive.ended.iter().rev());
        let source = sources.find(|source| Some(source.ssrc) == written);
        let own = json!({
            "frames": frames,
            "frames_dropped": frames_dropped,
            "packets": packets,
            "packets_lost": packets_lost,
            "packets_unusable": packets_unusable,
            "jitter_ticks": source.map(|source| source.jitter),
            "jitter_ms": source.map(|source| source.jitter_time.as_secs_f64() * 1e3),
            "ssrc": written.map(|ssrc| ssrc.to_string()),
        });
        if let (Some(object), Value::Object(own)) = (object.as_object_mut(), own) {
            object.extend(own);
        }
        object
    }

    /// Returns the counters of other sources.
    fn others(&self) -> Value {
        let (receive, own) = (&self.statistics.receive, self.counts.plus(self.other_files));
        json!({
            "frames": receive.frames.saturating_sub(own.frames),
            "frames_dropped": receive.frames_dropped.saturating_sub(own.frames_dropped),
            "packets": receive.packets.saturating_sub(own.packets),
            "packets_lost": receive.packets_lost.saturating_sub(own.packets_lost),
        })
    }

    fn print_summary(&self, track: &Track<'_>) {
        let (prefix, received) = (track.prefix(), &track.received);
        let receive = &self.statistics.receive;
        let rate = report::megabits(received.octets, received.time);
        eprintln!(
            "{prefix}received {} in {}, {}, {:.2} s, {rate:.1} Mbit/s",
            counted(received.frames, "frame"),
            counted(self.counts.packets, "packet"),
            counted(received.octets, "octet"),
            received.time.as_secs_f64(),
        );
        if let Some(layers) = received.layers.text() {
            eprintln!("{prefix}temporal layers: {layers}");
        }
        let latency = received.latency.text();
        if !latency.is_empty() {
            eprintln!("{latency}");
        }
        if !received.silence.is_zero() {
            let millis = received.silence.as_secs_f64() * 1e3;
            eprintln!("{prefix}silence in place of lost samples: {millis:.1} ms");
        }
        let discards = report::discards(&self.statistics);
        if !discards.is_empty() {
            eprintln!("{prefix}discarded: {discards}");
        }
        let others = receive.packets.saturating_sub(self.counts.plus(self.other_files).packets);
        if others > 0 {
            eprintln!("{prefix}other sources: {}, ignored", counted(others, "packet"));
        }
        if self.statistics.foreign > 0 {
            let foreign = counted(self.statistics.foreign, "datagram");
            eprintln!("{prefix}not from the peer: {foreign}, ignored");
        }
        if receive.frames_unsure > 0 {
            eprintln!("{prefix}the first frame was dropped: it may lack its beginning");
        }
        if received.end == End::Silence && received.frames > 0 {
            eprintln!("{prefix}ended by silence, without a goodbye");
        }
    }

    fn outcome(&self, args: &RecvArgs, track: &Track<'_>) -> Outcome {
        let (prefix, received) = (track.prefix(), &track.received);
        let keys = self.keys.map_or_else(String::new, |keys| format!(": {keys}"));
        if let Some(flaw) = received.flaw {
            eprintln!("rushes: {prefix}incomplete: {flaw}");
            return Outcome::Failed;
        }
        if received.frames == 0 {
            let file = match (&args.output_file, track.name()) {
                (Some(_), None) => "; no file was written",
                (Some(_), Some(_)) => "; the file has nothing of it",
                (None, _) => "",
            };
            if let (End::Wait, Some(time)) = (received.end, args.wait) {
                eprintln!(
                    "rushes: {prefix}nothing of the stream came within {time:?} (--wait){file}{keys}"
                );
                return Outcome::Failed;
            }
            let what = if self.counts.is_noise() {
                "the payloads are of another format"
            } else {
                "no complete frame was received"
            };
            eprintln!("rushes: {prefix}{what}{file}{keys}");
            return Outcome::Failed;
        }
        if !self.is_complete {
            let Counts { frames_dropped, packets_unusable, .. } = self.counts;
            let unusable = match packets_unusable {
                _ if !self.counts.is_of_another_format() => String::new(),
                packets => {
                    format!(", {} with payloads of another format", counted(packets, "packet"))
                }
            };
            let (lost, dropped) = (counted(self.lost, "packet"), counted(frames_dropped, "frame"));
            let partial = match received.frames_incomplete {
                0 => String::new(),
                frames => format!(", {} with missing parts", counted(frames, "frame")),
            };
            eprintln!(
                "rushes: {prefix}incomplete: {lost} lost, {dropped} dropped{partial}{unusable}{keys}"
            );
            return Outcome::Failed;
        }
        if args.until_bye && received.end == End::Silence {
            eprintln!("rushes: {prefix}incomplete: it ended by silence, without a goodbye");
            return Outcome::Failed;
        }
        Outcome::Done
    }
}
