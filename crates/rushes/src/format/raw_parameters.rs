//! The parameters of uncompressed video in session descriptions (RFC 4175 section 6, RFC 4421,
//! ST 2110-20).

use rushes_proto::FrameRate;
use rushes_proto::payload::raw::{RawVideo, Sampling, Scan};
use rushes_proto::sdp::parameters;

/// The encoding name.
pub(super) const ENCODING: &str = "raw";

/// What a description says about uncompressed video.
///
/// Descriptions are written as ST 2110-20 has them, where it has the sampling: with `PM=2110GPM` and
/// `SSN`. They promise nothing about the timing of packets (ST 2110-21).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RawParameters {
    /// The size, the sampling and the depth.
    pub video: RawVideo,
    /// `exactframerate`; `None` if it is not known.
    pub frame_rate: Option<FrameRate>,
    /// `colorimetry`: `BT709` unless it is set, and `UNSPECIFIED` where a description has none.
    pub colorimetry: String,
    /// `TCS`, the transfer characteristic: `SDR` unless it is set or described, `PQ`, `HLG` and so on.
    pub transfer: String,
    /// `segmented`: both fields of an interlaced frame were sampled at once.
    pub is_segmented: bool,
}

impl From<RawVideo> for RawParameters {
    fn from(video: RawVideo) -> Self {
        Self {
            video,
            frame_rate: None,
            colorimetry: "BT709".to_owned(),
            transfer: "SDR".to_owned(),
            is_segmented: false,
        }
    }
}

/// The parameters as text, before they are checked.
#[derive(Default)]
struct Texts<'t> {
    sampling: Option<&'t str>,
    width: Option<&'t str>,
    height: Option<&'t str>,
    depth: Option<&'t str>,
    rate: Option<&'t str>,
    colorimetry: Option<&'t str>,
    transfer: Option<&'t str>,
    is_interlaced: bool,
    is_segmented: bool,
    is_2110: bool,
}

impl RawParameters {
    /// Reads the parameters in `text`, the value of `a=fmtp` after the payload type.
    ///
    /// # Errors
    /// Which parameter is missing or cannot be used, and why.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut texts = Texts::default();
        for (name, value) in parameters(text) {
            match name.as_str() {
                "sampling" => texts.sampling = Some(value),
                "width" => texts.width = Some(value),
                "height" => texts.height = Some(value),
                "depth" => texts.depth = Some(value),
                "exactframerate" => texts.rate = Some(value),
                "colorimetry" => texts.colorimetry = Some(value),
                "tcs" => texts.transfer = Some(value),
                "interlace" => texts.is_interlaced = true,
                "segmented" => texts.is_segmented = true,
                "pm" | "ssn" => texts.is_2110 = true,
                _ => {}
            }
        }
        texts.read()
    }

    /// Returns the parameters as text; `rate` is the frame rate, if it is known.
    pub(super) fn write(&self, rate: Option<FrameRate>) -> String {
        let video = self.video;
        // A separator in a value would begin another parameter.
        let value = |text: &str| text.replace([';', '\r', '\n'], "_");
        let mut parts = vec![
            format!("sampling={}", video.sampling()),
            format!("width={}", video.width()),
            format!("height={}", video.height()),
        ];
        parts.extend(rate.map(|rate| match (rate.numerator(), rate.denominator()) {
            (frames, 1) => format!("exactframerate={frames}"),
            (frames, seconds) => format!("exactframerate={frames}/{seconds}"),
        }));
        parts.push(format!("depth={}", video.depth()));
        let is_2110 = self.is_2110();
        if is_2110 {
            parts.push(format!("TCS={}", value(&self.transfer)));
        }
        parts.push(format!("colorimetry={}", value(&self.colorimetry)));
        if is_2110 {
            parts.push("PM=2110GPM; SSN=ST2110-20:2017".to_owned());
        }
        if video.is_interlaced() {
            parts.push("interlace".to_owned());
        }
        if self.is_segmented {
            parts.push("segmented".to_owned());
        }
        parts.join("; ")
    }

    /// Returns whether ST 2110-20 has the sampling, and numbers lines as in the video. Lines numbered in
    /// each field are always described so, since RFC 4175 numbers them otherwise.
    fn is_2110(&self) -> bool {
        let samplings = [Sampling::Rgb, Sampling::YCbCr444, Sampling::YCbCr422, Sampling::YCbCr420];
        match self.video.scan() {
            Scan::Progressive => samplings.contains(&self.video.sampling()),
            Scan::Interlaced => false,
            Scan::InterlacedByField => true,
        }
    }
}

impl Texts<'_> {
    fn read(&self) -> Result<RawParameters, String> {
        let sampling = needed("sampling", self.sampling)?;
        let is = |name: &str, text: &str, error: &dyn std::fmt::Display| {
            format!("{name}={text}: {error}")
        };
        let parsed =
            sampling.parse::<Sampling>().map_err(|error| is("sampling", sampling, &error))?;
        let (width, height) = (number("width", self.width)?, number("height", self.height)?);
        let depth: u16 = number("depth", self.depth)?;
        let depth = u8::try_from(depth).unwrap_or(u8::MAX);
        let scan = match (self.is_interlaced, self.is_2110) {
            (false, _) => Scan::Progressive,
            (true, false) => Scan::Interlaced,
            (true, true) => Scan::InterlacedByField,
        };
        let video = RawVideo::new(parsed, depth, width, height)
            .and_then(|video| video.with_scan(scan))
            .map_err(|error| error.to_string())?;
        Ok(RawParameters {
            frame_rate: self.rate.and_then(frame_rate),
            colorimetry: self.colorimetry.unwrap_or("UNSPECIFIED").to_owned(),
            transfer: self.transfer.unwrap_or("SDR").to_owned(),
            is_segmented: self.is_segmented,
            ..RawParameters::from(video)
        })
    }
}

fn needed<'t>(name: &str, text: Option<&'t str>) -> Result<&'t str, String> {
    text.ok_or_else(|| format!("the parameter {name} is missing"))
}

fn number(name: &str, text: Option<&str>) -> Result<u16, String> {
    let text = needed(name, text)?;
    text.parse().map_err(|_| format!("{name}={text} is not a number that can be used"))
}

/// Reads frames per second: `25` or `60000/1001`. What cannot be read is ignored.
fn frame_rate(text: &str) -> Option<FrameRate> {
    let (frames, seconds) = text.split_once('/').unwrap_or((text, "1"));
    FrameRate::new(frames.trim().parse().ok()?, seconds.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_standards_are_read() {
        // RFC 4175 section 7.
        let text = "sampling=YCbCr-4:2:2; width=1280; height=720; depth=10; colorimetry=BT.709-2; \
                    chroma-position=1";
        let raw = RawParameters::parse(text).unwrap();
        assert_eq!(raw.video, RawVideo::new(Sampling::YCbCr422, 10, 1280, 720).unwrap());
        assert_eq!((&raw.colorimetry[..], raw.frame_rate), ("BT.709-2", None));
        // RFC 4421 section 4.
        let text = "sampling=RG+B; width=1024; height=768; depth=5; colorimetry=SMPTE240M";
        assert_eq!(RawParameters::parse(text).unwrap().video.frame_len(), 1024 * 768 * 2);
        // ST 2110-20 section 7.
        let text = "sampling=YCbCr-4:2:2; width=1280; height=720; exactframerate=60000/1001; \
                    depth=10; TCS=SDR; colorimetry=BT709; PM=2110GPM; SSN=ST2110-20:2017; ";
        let raw = RawParameters::parse(text).unwrap();
        assert_eq!(raw.frame_rate, FrameRate::new(60_000, 1001));
        assert_eq!(raw.write(raw.frame_rate) + "; ", text);
        let interlaced = RawParameters::parse(&format!("{text}interlace; segmented")).unwrap();
        assert_eq!(interlaced.video.scan(), Scan::InterlacedByField);
        assert!(interlaced.is_segmented);
        let rfc = RawParameters::parse("sampling=RGB;width=4;height=2;depth=8;Interlace").unwrap();
        assert_eq!((rfc.video.scan(), &rfc.colorimetry[..]), (Scan::Interlaced, "UNSPECIFIED"));
    }

    #[test]
    fn what_cannot_be_received_is_refused_in_words() {
        let all = ["sampling=RGB", "width=4", "height=2", "depth=8"];
        for n in 0..4 {
            let mut some = all.to_vec();
            let name = some.remove(n).split('=').next().unwrap();
            let error = RawParameters::parse(&some.join(";")).unwrap_err();
            assert_eq!(error, format!("the parameter {name} is missing"));
        }
        for (wrong, expected) in [
            ("sampling=CLYCbCr-4:2:2", "sampling=CLYCbCr-4:2:2: the sampling is not one of RGB"),
            ("depth=16f", "depth=16f is not a number"),
            ("depth=9", "RGB with a depth of 9 bits"),
            ("depth=264", "a depth of 255 bits"),
            ("width=0", "the width and the height are 1 to 32767"),
            ("height=70000", "height=70000 is not a number"),
            ("height=3;interlace", "an even height"),
        ] {
            let error = RawParameters::parse(&format!("{};{wrong}", all.join(";"))).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_value_cannot_add_a_parameter() {
        let video = RawVideo::new(Sampling::Bgra, 8, 4, 2).unwrap();
        let raw = RawParameters { colorimetry: "X;width=9".to_owned(), ..video.into() };
        let text = raw.write(None);
        assert_eq!(text, "sampling=BGRA; width=4; height=2; depth=8; colorimetry=X_width=9");
        assert_eq!(RawParameters::parse(&text).unwrap().video, video);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..<_>::default() })]

        #[test]
        fn parameters_are_read_as_they_are_written(
            sampling in prop::sample::select(Sampling::all().collect::<Vec<_>>()),
            depth in prop::sample::select(vec![5, 8, 10, 12, 16]),
            size in (1_u16..=32_767, 1_u16..=32_767),
            scan in prop::sample::select(vec![
                Scan::Progressive, Scan::Interlaced, Scan::InterlacedByField,
            ]),
            rate in (1_u32..100_000, 1_u32..2_000),
        ) {
            let video = RawVideo::new(sampling, depth, size.0, size.1);
            let Ok(video) = video.and_then(|video| video.with_scan(scan)) else { return Ok(()) };
            let rate = FrameRate::new(rate.0, rate.1);
            let raw = RawParameters { frame_rate: rate, ..RawParameters::from(video) };
            prop_assert_eq!(RawParameters::parse(&raw.write(rate)), Ok(raw));
        }

        #[test]
        fn no_text_breaks_it(text in ".{0,80}") {
            let _ = RawParameters::parse(&text);
            let _ = RawParameters::parse(&format!("sampling=RGB;width={text};depth={text}"));
        }
    }
}
