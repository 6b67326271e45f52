//! The steps of a session's stream: formats and rates, the largest first.

use std::cmp::Ordering;
use std::time::Instant;

use rushes_delivery::StepChoice;
use rushes_delivery::control::{FormatSet, FrameRate};
use rushes_texture::{Encoder, Format, Layout};

/// How a server changes what it sends to a client by UDP and RTP that reports lost packets.
///
/// A smaller step is taken within a second of more than 2 % of losses, a larger one after 5 s
/// without losses; see [`StepChoice`](rushes_delivery::StepChoice) for the rules. With
/// [`Timing::EveryFrame`](super::Timing::EveryFrame) and
/// [`Timing::FlatOut`](super::Timing::FlatOut) nothing is changed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Adaptation {
    /// Nothing is changed.
    Off,
    /// Only the format is changed, to `ycocg-bc3` and then to `bc1`, unless the client requested one.
    Format,
    /// The format is changed first, then the frame rate, to a half and to a quarter, unless the client
    /// requested it. The default.
    #[default]
    FormatAndRate,
}

/// Formats of fewer and fewer octets that pixels can be encoded to.
const FORMATS: [Format; 2] = [Format::YCoCgBc3, Format::Bc1];

/// Frames per second below which a rate is not reduced.
const RATE_MIN: u32 = 5;

/// What is sent at one step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Step {
    pub(super) format: Format,
    pub(super) rate: FrameRate,
}

/// What a client lets the server choose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Freedom {
    pub(super) formats: FormatSet,
    pub(super) has_format: bool,
    pub(super) has_rate: bool,
}

/// The steps of a session, and the choice among them.
pub(super) struct Ladder {
    steps: Vec<Step>,
    choice: StepChoice,
}

impl Ladder {
    /// Creates the ladder below `first`, at its first step; `None` if there is nothing to choose.
    pub(super) fn new(
        adaptation: Adaptation,
        source: &Layout,
        first: Step,
        freedom: &Freedom,
        now: Instant,
    ) -> Option<Self> {
        let octets = |format| {
            let layout = Layout::new(format, source.width(), source.height()).ok()?;
            Some(layout.bytes() as u64)
        };
        let mut steps = vec![first];
        if adaptation != Adaptation::Off && !freedom.has_format {
            let is_possible = |format: &Format| {
                freedom.formats.contains(format.number())
                    && Encoder::supports(source.format(), *format)
            };
            for format in FORMATS.into_iter().filter(is_possible) {
                let before = steps.last().and_then(|step| octets(step.format));
                if octets(format) < before {
                    steps.push(Step { format, rate: first.rate });
                }
            }
        }
        if adaptation == Adaptation::FormatAndRate && !freedom.has_rate {
            let last = *steps.last()?;
            for divisor in [2, 4] {
                let denominator = last.rate.denominator.saturating_mul(divisor);
                if last.rate.numerator / denominator.max(1) >= RATE_MIN {
                    steps.push(Step { rate: FrameRate { denominator, ..last.rate }, ..last });
                }
            }
        }
        let bit_rate = |step: &Step| {
            let bits = u128::from(octets(step.format)?) * 8 * u128::from(step.rate.numerator);
            let rate = bits / u128::from(step.rate.denominator.max(1));
            Some(u64::try_from(rate).unwrap_or(u64::MAX))
        };
        let rates: Option<Vec<_>> = steps.iter().map(bit_rate).collect();
        (steps.len() > 1)
            .then(|| rates.map(|rates| StepChoice::new(rates, now)))?
            .map(|choice| Self { steps, choice })
    }

    /// Returns the step that is taken while nothing is lost.
    pub(super) fn first(&self) -> Step {
        self.steps[0]
    }

    /// Sets how many repair packets are sent for 100 packets.
    pub(super) fn set_fec_percent(&mut self, percent: u8) {
        self.choice.set_fec_percent(percent);
    }

    /// Handles a report of the packets sent and lost since the session's beginning; returns the step
    /// to take instead of the current one.
    pub(super) fn handle_report(&mut self, now: Instant, sent: u64, lost: u64) -> Option<Step> {
        let step = self.choice.handle_report(now, sent, lost)?;
        self.steps.get(step).copied()
    }

    /// Takes a step, which is sent from `now` on. Returns how it compares with the one before: `Less`
    /// if it is a larger one.
    pub(super) fn handle_change(&mut self, now: Instant, to: Step) -> Ordering {
        let before = self.choice.step();
        let step = self.steps.iter().position(|step| *step == to).unwrap_or(before);
        self.choice.handle_change(now, step);
        step.cmp(&before)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const RATE: FrameRate = FrameRate { numerator: 60, denominator: 1 };

    fn steps(
        adaptation: Adaptation,
        source: Format,
        first: Format,
        freedom: Freedom,
    ) -> Vec<(Format, u32)> {
        let source = Layout::new(source, 640, 360).unwrap();
        let first = Step { format: first, rate: RATE };
        let ladder = Ladder::new(adaptation, &source, first, &freedom, Instant::now());
        let steps = ladder.map(|ladder| ladder.steps).unwrap_or_default();
        steps
            .iter()
            .map(|step| (step.format, step.rate.numerator / step.rate.denominator))
            .collect()
    }

    fn set(formats: &[Format]) -> FormatSet {
        formats.iter().fold(FormatSet::default(), |set, format| set.with(format.number()))
    }

    fn freedom() -> Freedom {
        let formats = set(&Format::ALL);
        Freedom { formats, has_format: false, has_rate: false }
    }

    #[test]
    fn formats_shrink_before_the_rate() {
        let all = steps(Adaptation::default(), Format::Rgb24, Format::Rgb24, freedom());
        let formats = [Format::Rgb24, Format::YCoCgBc3, Format::Bc1, Format::Bc1, Format::Bc1];
        assert_eq!(all, formats.into_iter().zip([60, 60, 60, 30, 15]).collect::<Vec<_>>());
        let formats = steps(Adaptation::Format, Format::Rgb24, Format::YCoCgBc3, freedom());
        assert_eq!(formats, [(Format::YCoCgBc3, 60), (Format::Bc1, 60)]);
    }

    #[test]
    fn the_largest_pictures_at_a_huge_rate_have_steps() {
        let side = rushes_texture::SIDE_MAX;
        let source = Layout::new(Format::Rgba8, side, side).unwrap();
        let rate = FrameRate { numerator: u32::MAX, denominator: 1_000 };
        let first = Step { format: Format::Rgba8, rate };
        let now = Instant::now();
        let mut ladder =
            Ladder::new(Adaptation::default(), &source, first, &freedom(), now).unwrap();
        let report = |ladder: &mut Ladder, at: u64| {
            ladder.handle_report(now + Duration::from_secs(at), 1_000 * at, 400 * at)
        };
        assert_eq!(report(&mut ladder, 1), None);
        // BC1 has an eighth of the octets of RGBA, YCoCg-BC3 a quarter.
        assert_eq!(report(&mut ladder, 2), Some(Step { format: Format::YCoCgBc3, rate }));
    }

    #[test]
    fn what_a_client_requested_is_kept() {
        let format = Freedom { has_format: true, ..freedom() };
        let rates = steps(Adaptation::default(), Format::Rgb24, Format::Rgb24, format);
        assert_eq!(rates, [60, 30, 15].map(|rate| (Format::Rgb24, rate)));
        let both = Freedom { has_rate: true, ..format };
        assert!(steps(Adaptation::default(), Format::Rgb24, Format::Rgb24, both).is_empty());
        assert!(steps(Adaptation::Off, Format::Rgb24, Format::Rgb24, freedom()).is_empty());
    }

    #[test]
    fn formats_that_the_client_or_the_encoder_does_not_have_are_no_steps() {
        let formats = set(&[Format::Rgb24, Format::Bc1]);
        let few = Freedom { formats, has_rate: true, ..freedom() };
        let rgb = steps(Adaptation::default(), Format::Rgb24, Format::Rgb24, few);
        assert_eq!(rgb, [(Format::Rgb24, 60), (Format::Bc1, 60)]);
        let astc = steps(Adaptation::Format, Format::Astc4x4, Format::Astc4x4, freedom());
        assert!(astc.is_empty());
    }
}
