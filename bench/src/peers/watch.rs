//! The times at which a receiver wrote its output, from the length of its file.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::memory::MemoryFile;
use super::running::POLL_INTERVAL;

/// Time without output after which the receiver counts as finished.
const SILENCE: Duration = Duration::from_millis(250);
/// The maximum silence once as many octets were written as were sent.
const SILENCE_AFTER_ALL: Duration = Duration::from_millis(20);

/// Octets that a receiver may write beyond twice those sent.
const MORE_MAX: u64 = 64 << 20;

/// Divisor of the octets sent: if no more than this part is written only when the receiver is
/// interrupted, it is assumed to have arrived earlier.
const LATE_PART: u64 = 50;

/// Polls a file while a receiver writes to it.
#[derive(Debug)]
pub(super) struct Watch<'f> {
    file: &'f MemoryFile,
    /// Octets to be sent.
    sent: u64,
    len: u64,
    started: Instant,
    /// When the file was first not empty, and when it last grew.
    times: Option<(Instant, Instant)>,
    /// The lengths of the file at those times.
    lengths: [u64; 2],
    quiet_since: Instant,
}

impl<'f> Watch<'f> {
    /// Watches `file`, to which `sent` octets are to be written.
    pub(super) fn of(file: &'f MemoryFile, sent: u64) -> Self {
        let now = Instant::now();
        Self { file, sent, len: 0, started: now, times: None, lengths: [0; 2], quiet_since: now }
    }

    /// Waits, then polls once; `false` if the receiver has finished, or wrote too much.
    pub(super) fn goes_on(&mut self, all_is_sent: bool) -> anyhow::Result<bool> {
        std::thread::sleep(POLL_INTERVAL);
        let (len, now) = (self.file.len()?, Instant::now());
        if len != self.len {
            self.take(now, len);
            self.len = len;
            self.quiet_since = now;
        }
        if !all_is_sent {
            self.quiet_since = now;
        }
        let timeout = if len >= self.sent { SILENCE_AFTER_ALL } else { SILENCE };
        Ok(!self.is_too_much() && now - self.quiet_since < timeout)
    }

    fn take(&mut self, now: Instant, len: u64) {
        let (first, first_len) = self.times.map_or((now, len), |times| (times.0, self.lengths[0]));
        (self.times, self.lengths) = (Some((first, now)), [first_len, len]);
    }

    fn is_too_much(&self) -> bool {
        self.len > 2 * self.sent + MORE_MAX
    }

    /// Called when the receiver has ended: the seconds from the first output to the last growth,
    /// and the lengths at these times.
    pub(super) fn end(mut self, name: &str) -> anyhow::Result<(f64, [u64; 2])> {
        let before = self.len;
        self.len = self.file.len()?;
        if self.is_too_much() {
            bail!("{name} wrote more than twice what was sent");
        }
        if self.len.saturating_sub(before) > self.sent / LATE_PART {
            // A receiver that holds back this much counts as that slow.
            if self.times.is_none() {
                self.take(self.started, 0);
            }
            self.take(Instant::now(), self.len);
        }
        let seconds = self.times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        Ok((seconds, self.lengths))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn it_is_over_when_all_was_sent_and_nothing_comes() {
        let file = MemoryFile::new().unwrap();
        let mut watch = Watch::of(&file, 10);
        assert!(watch.goes_on(false).unwrap());
        file.writer().unwrap().write_all(&[1; 10]).unwrap();
        assert!(watch.goes_on(true).unwrap(), "octets were written");
        while watch.goes_on(true).unwrap() {}
        assert_eq!(watch.end("x").unwrap(), (0.0, [10, 10]), "all was written at once");
    }

    #[test]
    fn what_is_kept_back_to_the_end_is_late() {
        let file = MemoryFile::new().unwrap();
        let mut watch = Watch::of(&file, 1000);
        while watch.goes_on(true).unwrap() {}
        file.writer().unwrap().write_all(&[1; 1000]).unwrap();
        let (seconds, lengths) = watch.end("x").unwrap();
        assert_eq!(lengths, [0, 1000]);
        assert!(seconds > 0.0);
    }

    #[test]
    fn too_much_is_an_end_and_an_error() {
        let file = MemoryFile::new().unwrap();
        let mut watch = Watch::of(&file, 0);
        file.writer().unwrap().write_all(&vec![0; (MORE_MAX + 1) as usize]).unwrap();
        assert!(!watch.goes_on(false).unwrap());
        assert!(watch.end("x").is_err());
    }
}
