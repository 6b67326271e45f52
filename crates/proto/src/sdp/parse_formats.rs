//! Reading: the `a=rtpmap`, `a=fmtp` and `a=rtcp-fb` lines that define the formats of a media.

use super::FEEDBACK_MAX;
use super::feedback::Feedback;
use super::format::{Encoding, Format, static_format};
use super::line::{Line, number, number_of, trim};
use super::media::Media;
use super::warning::{LeftOut, Problem, Warnings};
use crate::ssrc::PayloadType;
use crate::time::ClockRate;

/// Maximum octets of the text of an `a=rtcp-fb` line; longer ones are dropped, because a line for all
/// formats (`*`) is copied to each.
const FEEDBACK_LEN_MAX: usize = 128;

/// The contents of an `a=rtpmap` line, or the static assignment of RFC 3551.
struct Map<'a> {
    name: &'a str,
    clock_rate: ClockRate,
    channels: Option<u8>,
}

/// A format whose lines have not all been read yet.
struct Draft<'a> {
    payload_type: PayloadType,
    map: Map<'a>,
    /// The `a=fmtp` lines that are not empty, with their parameters.
    parameters: Vec<(Line<'a>, &'a str)>,
    feedback: Vec<Feedback>,
}

/// Sets the formats of `media`; returns for each line of `below` whether it has been used.
pub(super) fn formats(
    below: &[Line<'_>],
    payload_types: &[PayloadType],
    media: &mut Media,
    warnings: &mut Warnings,
) -> Vec<bool> {
    let mut used = vec![false; below.len()];
    let mut maps: Vec<Option<Map<'_>>> = payload_types.iter().map(|_| None).collect();
    for (line, used) in attributes(below, &mut used, "rtpmap") {
        let mut fields = line.attribute().1.split_ascii_whitespace();
        let payload_type = number(fields.next().unwrap_or_default());
        let place = payload_types.iter().position(|one| Some(one.value()) == payload_type);
        let Some(map) = place.map(|place| &mut maps[place]) else { continue };
        *used = true;
        let read = if map.is_none() {
            rtpmap(fields.next().unwrap_or_default())
        } else {
            Err(Problem::TooMany { what: "a=rtpmap of one payload type", limit: 1 })
        };
        match read {
            Ok(read) => *map = Some(read),
            Err(problem) => warnings.add(line.number, problem, LeftOut::Line),
        }
    }
    let mut drafts = Vec::new();
    for (&payload_type, map) in payload_types.iter().zip(maps) {
        match map.or_else(|| static_map(payload_type)) {
            Some(map) => drafts.push(Draft::new(payload_type, map)),
            None => media.unmapped.push(payload_type),
        }
    }
    for (line, used) in attributes(below, &mut used, "fmtp") {
        *used = fmtp(line, &mut drafts);
    }
    for (line, used) in attributes(below, &mut used, "rtcp-fb") {
        if is_congestion_feedback(line) {
            (media.congestion_feedback, *used) = (true, true);
        } else {
            *used = rtcp_fb(line, &mut drafts, warnings);
        }
    }
    for draft in drafts {
        let payload_type = draft.payload_type;
        match draft.finish(warnings) {
            Some(format) => media.formats.push(format),
            None => media.unmapped.push(payload_type),
        }
    }
    used
}

/// Returns the attributes called `name` among `lines`, each with its mark in `used`.
fn attributes<'a, 'u>(
    lines: &[Line<'a>],
    used: &'u mut [bool],
    name: &'static str,
) -> impl Iterator<Item = (Line<'a>, &'u mut bool)> {
    let lines = lines.iter().copied().zip(used);
    lines.filter(move |(line, _)| line.kind == 'a' && line.attribute().0.eq_ignore_ascii_case(name))
}

/// Reads `<encoding name>/<clock rate>[/<channels>]`.
fn rtpmap(text: &str) -> Result<Map<'_>, Problem> {
    let mut parts = text.split('/');
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or(Problem::Malformed("the encoding name of a=rtpmap"))?;
    let what = "the clock rate of a=rtpmap";
    let clock_rate = number_of(parts.next().unwrap_or_default(), what)?;
    let clock_rate = ClockRate::new(clock_rate).ok_or(Problem::Malformed(what))?;
    let channels = parts.next().map(|channels| number_of(channels, "the channels of a=rtpmap"));
    Ok(Map { name, clock_rate, channels: channels.transpose()? })
}

fn static_map(payload_type: PayloadType) -> Option<Map<'static>> {
    let (name, clock_rate, channels) = static_format(payload_type.value())?;
    Some(Map { name, clock_rate: ClockRate::new(clock_rate)?, channels })
}

/// Reads `<payload type> <parameters>`; returns `false` if there is no such format.
fn fmtp<'a>(line: Line<'a>, drafts: &mut [Draft<'a>]) -> bool {
    let value = line.attribute().1;
    let (payload_type, text) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let payload_type = number(payload_type);
    let draft = drafts.iter_mut().find(|draft| Some(draft.payload_type.value()) == payload_type);
    draft.map(|draft| draft.add_parameters(line, trim(text))).is_some()
}

/// Returns whether a line is `a=rtcp-fb:* ack ccfb`, whose payload type must be `*` (RFC 8888
/// section 6).
fn is_congestion_feedback(line: Line<'_>) -> bool {
    line.attribute().1.split_ascii_whitespace().eq(["*", "ack", "ccfb"])
}

/// Reads `<payload type or *> <feedback>`; returns `false` if there is no such format.
fn rtcp_fb(line: Line<'_>, drafts: &mut [Draft<'_>], warnings: &mut Warnings) -> bool {
    let words: Vec<&str> = line.attribute().1.split_ascii_whitespace().collect();
    let (payload_type, words) = words.split_first().map_or(("", &[][..]), |(a, b)| (*a, b));
    if words.is_empty() || words.iter().map(|word| word.len() + 1).sum::<usize>() > FEEDBACK_LEN_MAX
    {
        let problem = Problem::Malformed("the feedback of a=rtcp-fb");
        warnings.add(line.number, problem, LeftOut::Line);
        return true;
    }
    let (mut used, mut full) = (false, false);
    let value = number(payload_type);
    for draft in drafts {
        if payload_type == "*" || Some(draft.payload_type.value()) == value {
            used = true;
            full |= !draft.add_feedback(Feedback::new(words));
        }
    }
    if full {
        let problem = Problem::TooMany { what: "kinds of feedback", limit: FEEDBACK_MAX };
        warnings.add(line.number, problem, LeftOut::Line);
    }
    used
}

impl<'a> Draft<'a> {
    fn new(payload_type: PayloadType, map: Map<'a>) -> Self {
        Self { payload_type, map, parameters: Vec::new(), feedback: Vec::new() }
    }

    fn add_parameters(&mut self, line: Line<'a>, text: &'a str) {
        if !text.is_empty() {
            self.parameters.push((line, text));
        }
    }

    /// Adds a kind of feedback once; returns `false` if there is no room for it.
    fn add_feedback(&mut self, feedback: Feedback) -> bool {
        if self.feedback.contains(&feedback) {
            return true;
        }
        let room = self.feedback.len() < FEEDBACK_MAX;
        if room {
            self.feedback.push(feedback);
        }
        room
    }

    /// Returns the format; `None` if its encoding cannot be determined.
    fn finish(self, warnings: &mut Warnings) -> Option<Format> {
        let Self { payload_type, map, parameters, feedback } = self;
        let encoding = Encoding::parse(map.name, payload_type, &parameters, warnings)?;
        let Map { clock_rate, channels, .. } = map;
        Some(Format { payload_type, encoding, clock_rate, channels, feedback })
    }
}
