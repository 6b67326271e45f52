//! When a participant may send RTCP (RFC 3550 sections 6.2 and 6.3, RFC 4585 section 3.5).
//!
//! [`Timer`] holds the state of one SSRC: the other members of the session, the average size of
//! RTCP packets and the time of the next report. It knows no wire format: the caller passes in the
//! SSRCs heard and the length of each compound packet, and writes and sends the packets that
//! [`Timer::handle_timeout`] requests.
//!
//! ```
//! use rushes_proto::Ssrc;
//! use rushes_proto::timer::Due;
//! use rushes_proto::timer::Timer;
//! use rushes_proto::timer::TimerConfig;
//! use std::time::Duration;
//! use std::time::Instant;
//!
//! let start = Instant::now();
//! let mut timer = Timer::new(TimerConfig::new(1_000_000), Ssrc(1), 42, start);
//! timer.handle_rtp(start, Ssrc(2));
//! assert_eq!(timer.members(), 2);
//! let mut now = timer.poll_timeout().expect("a report is scheduled");
//! assert!(now - start > Duration::from_secs(1));
//! while timer.handle_timeout(now) != Due::Report {
//!     now = timer.poll_timeout().expect("reconsidered: a little later");
//! }
//! timer.note_sent_rtcp(now, 100);
//! ```

mod config;
mod feedback;
mod interval;
mod members;
mod random;
#[allow(
    clippy::module_inception,
    reason = "the module is named after its only public state machine"
)]
mod timer;

pub use config::{FeedbackTiming, TimerConfig};
pub use interval::{INTERVAL_FLOOR, INTERVAL_MAX};
pub use timer::{Due, Timer};
