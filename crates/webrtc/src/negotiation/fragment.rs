//! Later candidates: `application/trickle-ice-sdpfrag` (RFC 8840 section 9, RFC 9725 section 4.3).

use super::CANDIDATES_MAX;
use super::error::NegotiationError;
use super::transport::{ICE_OPTIONS, is_of_rtp};

/// Maximum length of a fragment, in octets.
const FRAGMENT_LEN_MAX: usize = 64 << 10;
/// Maximum number of media of a fragment.
const MEDIA_MAX: usize = rushes_proto::sdp::MEDIA_MAX;

/// A fragment of a description, which carries candidates or the credentials of an ICE restart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Fragment {
    /// `a=ice-ufrag` of the session or of its first media that has it: the ICE generation to which
    /// the candidates belong.
    pub ufrag: Option<String>,
    /// `a=ice-pwd`, likewise.
    pub password: Option<String>,
    /// `a=ice-lite`.
    pub is_lite: bool,
    /// `a=ice-options` with `trickle` or `ice2`, which this crate supports. A restart has those of the description
    /// (RFC 9725 section 4.3.3).
    pub has_options: bool,
    /// `a=end-of-candidates` of the session: no media has further candidates.
    pub end_of_candidates: bool,
    /// The media with candidates.
    pub media: Vec<FragmentMedia>,
}

/// The candidates of one media.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FragmentMedia {
    /// The `m=` line without `m=`; its port and formats mean nothing (RFC 8840 section 4.4).
    pub line: String,
    /// `a=mid`, which names the media.
    pub mid: Option<String>,
    /// The values of `a=candidate`, at most [`CANDIDATES_MAX`] in the whole fragment.
    pub candidates: Vec<String>,
    /// `a=end-of-candidates`: this media has no further candidates.
    pub end_of_candidates: bool,
}

/// Returns whether a character may not stand in a line.
fn is_forbidden(character: char) -> bool {
    character.is_control() && character != '\t'
}

impl Fragment {
    /// Returns the candidates of all media, without those of RTCP on a port of its own: with BUNDLE all
    /// are of the one transport.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        let all = self.media.iter().flat_map(|media| &media.candidates).map(String::as_str);
        all.filter(|candidate| is_of_rtp(candidate))
    }

    /// Returns whether no further candidates follow: the session or each media says so.
    pub fn is_last(&self) -> bool {
        let all = !self.media.is_empty() && self.media.iter().all(|it| it.end_of_candidates);
        self.end_of_candidates || all
    }

    /// Reads a fragment. Unknown lines are skipped, as RFC 8840 section 9.2 requires, and so are attributes
    /// with control characters and candidates beyond the limit.
    ///
    /// # Errors
    /// [`NegotiationError::Fragment`] if it is longer than 64 KiB, has more media than a description
    /// may have, has a line without `=`, or a candidate that belongs to no media.
    pub fn parse(text: &str) -> Result<Self, NegotiationError> {
        let error = |line, mistake| Err(NegotiationError::Fragment { line, mistake });
        if text.len() > FRAGMENT_LEN_MAX {
            return error(1, "the fragment is longer than 65536 octets");
        }
        let mut fragment = Self::default();
        let mut count = 0;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let Some((kind, value)) = line.split_once('=') else {
                return error(index + 1, "a line is written as a=<attribute> or m=<media>");
            };
            if kind == "m" {
                if fragment.media.len() == MEDIA_MAX {
                    return error(index + 1, "there are more than 64 media");
                }
                let line = value.replace(is_forbidden, " ");
                fragment.media.push(FragmentMedia { line, ..FragmentMedia::default() });
            }
            if kind != "a" || value.contains(is_forbidden) {
                continue;
            }
            let (name, value) = value.split_once(':').unwrap_or((value, ""));
            let name = name.trim().to_ascii_lowercase();
            if name == "candidate" {
                count += 1;
                if fragment.media.is_empty() {
                    return error(index + 1, "a candidate stands below m= and a=mid of its media");
                }
                if count > CANDIDATES_MAX {
                    continue;
                }
            }
            fragment.read_attribute(&name, value.trim());
        }
        Ok(fragment)
    }

    fn read_attribute(&mut self, name: &str, value: &str) {
        let some = || (!value.is_empty()).then(|| value.to_owned());
        match (name, self.media.last_mut()) {
            ("ice-ufrag", _) => self.ufrag = self.ufrag.take().or_else(some),
            ("ice-pwd", _) => self.password = self.password.take().or_else(some),
            ("ice-lite", _) => self.is_lite = true,
            ("ice-options", _) => {
                let mut options = value.split_ascii_whitespace();
                self.has_options |= options.any(|option| ICE_OPTIONS.contains(&option));
            }
            ("end-of-candidates", None) => self.end_of_candidates = true,
            ("end-of-candidates", Some(media)) => media.end_of_candidates = true,
            ("mid", Some(media)) => media.mid = some(),
            ("candidate", Some(media)) => media.candidates.extend(some()),
            _ => {}
        }
    }

    /// Writes the fragment, with the credentials before the first media (RFC 9725 section 4.3).
    ///
    /// Control characters in texts are replaced, so that none can inject a line.
    pub fn write(&self) -> String {
        let mut to = String::new();
        let mut put = |name: &str, value: &str| {
            to.push_str(&format!("{name}{value}").replace(is_forbidden, " "));
            to.push_str("\r\n");
        };
        if self.is_lite {
            put("a=ice-lite", "");
        }
        if self.has_options {
            put("a=ice-options:", &ICE_OPTIONS.join(" "));
        }
        for (name, value) in [("a=ice-ufrag:", &self.ufrag), ("a=ice-pwd:", &self.password)] {
            if let Some(value) = value {
                put(name, value);
            }
        }
        if self.end_of_candidates {
            put("a=end-of-candidates", "");
        }
        for media in &self.media {
            put("m=", &media.line);
            if let Some(mid) = &media.mid {
                put("a=mid:", mid);
            }
            for candidate in &media.candidates {
                put("a=candidate:", candidate.strip_prefix("candidate:").unwrap_or(candidate));
            }
            if media.end_of_candidates {
                put("a=end-of-candidates", "");
            }
        }
        to
    }
}
