//! The target bit rate of an encoder, written where it reads it.

use crate::line_output::{LineFile, LineOutput};

/// The change of a target that is written, as a divisor: 1 %.
const CHANGE: u64 = 100;

/// Writes target rates.
#[derive(Debug)]
pub(super) struct TargetOutput {
    lines: LineOutput,
    last: u64,
}

impl TargetOutput {
    /// Opens the file; see [`LineOutput::open`].
    pub(super) fn open(to: &LineFile) -> anyhow::Result<Self> {
        Ok(Self { lines: LineOutput::open(to, "target rates")?, last: 0 })
    }

    /// Writes a target in bits per second if it differs enough from the last.
    pub(super) fn follow(&mut self, target: u64) {
        if target.abs_diff(self.last).saturating_mul(CHANGE) > self.last {
            self.last = target;
            self.lines.put(target.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_written_when_it_differs_by_more_than_a_hundredth() {
        let mut output = TargetOutput { lines: LineOutput::unread(), last: 0 };
        output.follow(1_000_000);
        output.follow(1_005_000);
        assert_eq!(output.lines.take(), "1000000");
        output.follow(2_000_000);
        assert_eq!(output.lines.take(), "2000000");
    }
}
