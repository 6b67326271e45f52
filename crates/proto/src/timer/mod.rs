//! STUB until the timer is merged.
use crate::ssrc::Ssrc;
use std::time::{Duration, Instant};
/// stub
#[derive(Clone, Debug)]
pub struct TimerConfig {
    /// s
    pub bandwidth: u64,
    /// s
    pub rtcp_share: f64,
    /// s
    pub sender_share: f64,
    /// s
    pub interval_min: Duration,
    /// s
    pub reduced_minimum: bool,
    /// s
    pub members_max: usize,
    /// s
    pub feedback: Option<FeedbackTiming>,
}
/// s
#[derive(Clone, Debug)]
pub struct FeedbackTiming {
    /// s
    pub regular_interval_min: Duration,
    /// s
    pub delay_max: Duration,
}
/// s
#[derive(Debug)]
pub struct Timer {
    next: Instant,
    urgent: bool,
    bye: bool,
    fb: bool,
    min: Duration,
}
/// s
#[derive(Debug)]
pub enum Due {
    /// s
    Nothing,
    /// s
    Report,
    /// s
    Feedback,
    /// s
    Bye,
}
#[allow(missing_docs, clippy::all, clippy::pedantic)]
impl Timer {
    pub fn new(config: TimerConfig, _: Ssrc, _: u64, now: Instant) -> Self {
        Self {
            next: now + config.interval_min / 2,
            urgent: false,
            bye: false,
            fb: config.feedback.is_some(),
            min: config.interval_min,
        }
    }
    pub fn handle_rtp(&mut self, _: Instant, _: Ssrc) {}
    pub fn handle_rtcp(&mut self, _: Instant, _: Ssrc) {}
    pub fn handle_compound(&mut self, _: Instant, _: usize) {}
    pub fn handle_bye(&mut self, _: Instant, _: Ssrc) {}
    pub fn note_sent_rtp(&mut self, _: Instant) {}
    pub fn want_feedback(&mut self, now: Instant) {
        if self.fb {
            self.urgent = true;
            self.next = now;
        }
    }
    pub fn want_bye(&mut self, now: Instant) {
        self.bye = true;
        self.next = now;
    }
    pub fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }
    pub fn handle_timeout(&mut self, now: Instant) -> Due {
        if now < self.next {
            return Due::Nothing;
        }
        if self.bye {
            return Due::Bye;
        }
        if std::mem::take(&mut self.urgent) {
            return Due::Feedback;
        }
        Due::Report
    }
    pub fn note_sent_rtcp(&mut self, now: Instant, _: usize) {
        self.next = now + self.min;
    }
    pub fn set_ssrc(&mut self, _: Instant, _: Ssrc) {}
    pub fn members(&self) -> usize {
        2
    }
    pub fn senders(&self) -> usize {
        1
    }
    pub fn interval(&self) -> Duration {
        self.min
    }
    pub fn poll_left(&mut self) -> Option<Ssrc> {
        None
    }
}
