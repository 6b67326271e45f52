//! How the encoder's frames lower the target (section 4.4 of the draft).

/// Gain by which waiting frames lower the target.
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;

/// Weight of one frame's size.
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;

/// Compensates for frames that wait for their pacing and for frames above the target.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameCompensation {
    adjustment: f64,
    deviation: f64,
    /// The mean interval of frames, and when the last one came, in seconds.
    period: f64,
    last: Option<f64>,
}

impl FrameCompensation {
    pub(super) fn new() -> Self {
        Self { adjustment: 0.0, deviation: 0.0, period: 0.02, last: None }
    }

    /// Returns what is added to the divisor of the target, 0 to 0.7.
    pub(super) fn sum(&self) -> f64 {
        self.adjustment + self.deviation
    }

    /// Returns the mean interval of frames, in seconds.
    pub(super) fn period(&self) -> f64 {
        self.period
    }

    /// Notes a frame of `octets`, before which the oldest packet has waited for `waited` seconds.
    pub(super) fn note(&mut self, now: f64, octets: usize, waited: f64, target: f64) {
        if let Some(last) = self.last.replace(now) {
            let interval = (now - last).clamp(0.001, 1.0);
            self.period += (interval - self.period) / 16.0;
        }
        let error = (waited.min(10.0) - self.period / 4.0) / self.period;
        self.adjustment = (self.adjustment + error * RATE_ADJUST_GAIN).clamp(0.0, 0.5);
        let nominal = target * self.period / 8.0;
        let excess = (octets as f64 / nominal - 1.0).max(0.0);
        let deviation = self.deviation + FRAME_SIZE_DEV_ALPHA * (excess - self.deviation);
        self.deviation = deviation.min(0.2);
    }
}
