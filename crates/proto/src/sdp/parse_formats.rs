//! Reading: the `a=rtpmap`, `a=fmtp` and `a=rtcp-fb` lines that make the formats of a media.

use super::FEEDBACK_MAX;
use super::error::SdpError;
use super::feedback::Feedback;
use super::format::Encoding;
use super::format::Format;
use super::format::static_format;
use super::line::Line;
use super::line::number;
use super::line::trim;
use super::media::Media;
use crate::ssrc::PayloadType;
use crate::time::ClockRate;

/// Octets in the longest feedback that is kept: a wildcard copies it to each format.
const FEEDBACK_LEN_MAX: usize = 128;

/// What an `a=rtpmap` line says, or RFC 3551 in its place.
struct Map<'a> {
    line: Line<'a>,
    name: &'a str,
    clock_rate: ClockRate,
    channels: Option<u8>,
}

/// A format of which not all lines are read yet.
struct Draft<'a> {
    payload_type: PayloadType,
    map: Map<'a>,
    /// The values of all `a=fmtp` lines, as if they were one.
    parameters: String,
    /// The line to name in errors: the last `a=fmtp`, else that of the map.
    line: Line<'a>,
    feedback: Vec<Feedback>,
}

/// Gives `media` its formats, and says of each line whether it went into one.
pub(super) fn formats<'a>(
    first: Line<'a>,
    below: &[Line<'a>],
    payload_types: &[PayloadType],
    media: &mut Media,
) -> Result<Vec<bool>, SdpError> {
    let mut used = vec![false; below.len()];
    let mut maps: Vec<Option<Map<'a>>> = payload_types.iter().map(|_| None).collect();
    for (line, used) in attributes(below, &mut used, "rtpmap") {
        let mut fields = line.attribute().1.split_ascii_whitespace();
        let payload_type = number(fields.next().unwrap_or_default());
        let place = payload_types.iter().position(|one| Some(one.value()) == payload_type);
        if let Some(map) = place.map(|place| &mut maps[place]).filter(|map| map.is_none()) {
            *map = Some(rtpmap(line, fields.next().unwrap_or_default())?);
            *used = true;
        }
    }
    let mut drafts = Vec::new();
    for (&payload_type, map) in payload_types.iter().zip(maps) {
        match map.or_else(|| static_map(first, payload_type)) {
            Some(map) => drafts.push(Draft::new(payload_type, map)),
            None => media.unmapped.push(payload_type),
        }
    }
    for (line, used) in attributes(below, &mut used, "fmtp") {
        *used = fmtp(line, &mut drafts);
    }
    for (line, used) in attributes(below, &mut used, "rtcp-fb") {
        *used = rtcp_fb(line, &mut drafts)?;
    }
    media.formats = drafts.into_iter().map(Draft::finish).collect::<Result<_, _>>()?;
    Ok(used)
}

/// The attributes called `name` among `lines`, each with its mark.
fn attributes<'a, 'u>(
    lines: &[Line<'a>],
    used: &'u mut [bool],
    name: &'static str,
) -> impl Iterator<Item = (Line<'a>, &'u mut bool)> {
    let lines = lines.iter().copied().zip(used);
    lines.filter(move |(line, _)| line.kind == 'a' && line.attribute().0.eq_ignore_ascii_case(name))
}

/// Reads `<encoding name>/<clock rate>[/<channels>]`.
fn rtpmap<'a>(line: Line<'a>, text: &'a str) -> Result<Map<'a>, SdpError> {
    let mut parts = text.split('/');
    let name = parts.next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| line.malformed("the encoding name of a=rtpmap"))?;
    let what = "the clock rate of a=rtpmap";
    let clock_rate = line.number(parts.next().unwrap_or_default(), what)?;
    let clock_rate = ClockRate::new(clock_rate).ok_or_else(|| line.malformed(what))?;
    let channels = parts.next().map(|channels| line.number(channels, "the channels of a=rtpmap"));
    Ok(Map { line, name, clock_rate, channels: channels.transpose()? })
}

fn static_map(line: Line<'_>, payload_type: PayloadType) -> Option<Map<'_>> {
    let (name, clock_rate, channels) = static_format(payload_type.value())?;
    Some(Map { line, name, clock_rate: ClockRate::new(clock_rate)?, channels })
}

/// Reads `<payload type> <parameters>`; false if there is no such format.
fn fmtp<'a>(line: Line<'a>, drafts: &mut [Draft<'a>]) -> bool {
    let value = line.attribute().1;
    let (payload_type, text) = value.split_once([' ', '\t']).unwrap_or((value, ""));
    let payload_type = number(payload_type);
    let draft = drafts.iter_mut().find(|draft| Some(draft.payload_type.value()) == payload_type);
    draft.map(|draft| draft.add_parameters(line, trim(text))).is_some()
}

/// Reads `<payload type or *> <feedback>`; false if there is no such format.
fn rtcp_fb(line: Line<'_>, drafts: &mut [Draft<'_>]) -> Result<bool, SdpError> {
    let words: Vec<&str> = line.attribute().1.split_ascii_whitespace().collect();
    let what = "the feedback of a=rtcp-fb";
    let Some((payload_type, words)) = words.split_first() else { return Err(line.malformed(what)) };
    if words.is_empty() || words.iter().map(|word| word.len() + 1).sum::<usize>() > FEEDBACK_LEN_MAX
    {
        return Err(line.malformed(what));
    }
    let mut used = false;
    let value = number(payload_type);
    for draft in drafts {
        if *payload_type == "*" || Some(draft.payload_type.value()) == value {
            draft.add_feedback(line, Feedback::new(words))?;
            used = true;
        }
    }
    Ok(used)
}

impl<'a> Draft<'a> {
    fn new(payload_type: PayloadType, map: Map<'a>) -> Self {
        let line = map.line;
        Self { payload_type, map, parameters: String::new(), line, feedback: Vec::new() }
    }

    fn add_parameters(&mut self, line: Line<'a>, text: &str) {
        if !self.parameters.is_empty() && !text.is_empty() {
            self.parameters.push(';');
        }
        self.parameters.push_str(text);
        self.line = line;
    }

    fn add_feedback(&mut self, line: Line<'_>, feedback: Feedback) -> Result<(), SdpError> {
        if self.feedback.contains(&feedback) {
            return Ok(());
        }
        if self.feedback.len() == FEEDBACK_MAX {
            return Err(line.too_many("kinds of feedback", FEEDBACK_MAX));
        }
        self.feedback.push(feedback);
        Ok(())
    }

    fn finish(self) -> Result<Format, SdpError> {
        Ok(Format {
            payload_type: self.payload_type,
            encoding: Encoding::parse(self.map.name, self.line, &self.parameters)?,
            clock_rate: self.map.clock_rate,
            channels: self.map.channels,
            feedback: self.feedback,
        })
    }
}
