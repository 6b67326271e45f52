//! When a receiver wrote what it wrote: the length of its file tells.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::memory::MemoryFile;
use super::running::GLANCE;

/// Silence after which nothing more comes.
const SILENCE: Duration = Duration::from_millis(250);
/// The same, once as much came as was sent.
const SILENCE_AFTER_ALL: Duration = Duration::from_millis(20);

/// Octets that a receiver may write beside twice what was sent.
const MORE_MAX: u64 = 64 << 20;

/// What may be written only when a receiver is told to end, as a share of what was sent: that it
/// came earlier is believed.
const LATE_PART: u64 = 50;

/// Looks at a file while a receiver writes to it.
#[derive(Debug)]
pub(super) struct Watch<'f> {
    file: &'f MemoryFile,
    /// Octets that are sent.
    sent: u64,
    len: u64,
    started: Instant,
    /// When there was something first, and when there was more last.
    times: Option<(Instant, Instant)>,
    /// Octets that there were at those times.
    lengths: [u64; 2],
    quiet_since: Instant,
}

impl<'f> Watch<'f> {
    /// Of `file`, where `sent` octets are to come.
    pub(super) fn of(file: &'f MemoryFile, sent: u64) -> Self {
        let now = Instant::now();
        Self { file, sent, len: 0, started: now, times: None, lengths: [0; 2], quiet_since: now }
    }

    /// Looks once, after a while; `false` if nothing more is to come, or too much came.
    pub(super) fn goes_on(&mut self, all_is_sent: bool) -> anyhow::Result<bool> {
        std::thread::sleep(GLANCE);
        let (len, now) = (self.file.len()?, Instant::now());
        if len != self.len {
            self.take(now, len);
            self.len = len;
            self.quiet_since = now;
        }
        if !all_is_sent {
            self.quiet_since = now;
        }
        let patience = if len >= self.sent { SILENCE_AFTER_ALL } else { SILENCE };
        Ok(!self.is_too_much() && now - self.quiet_since < patience)
    }

    fn take(&mut self, now: Instant, len: u64) {
        let (first, first_len) = self.times.map_or((now, len), |times| (times.0, self.lengths[0]));
        (self.times, self.lengths) = (Some((first, now)), [first_len, len]);
    }

    fn is_too_much(&self) -> bool {
        self.len > 2 * self.sent + MORE_MAX
    }

    /// Seconds from the first look at which there was something to the last at which there was more,
    /// and how many octets there were then, now that the receiver has ended.
    pub(super) fn end(mut self, name: &str) -> anyhow::Result<(f64, [u64; 2])> {
        let before = self.len;
        self.len = self.file.len()?;
        if self.is_too_much() {
            bail!("{name} wrote more than twice what was sent");
        }
        if self.len.saturating_sub(before) > self.sent / LATE_PART {
            // Whoever keeps back so much is as slow as that.
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
#[allow(clippy::unwrap_used, reason = "a test may")]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn it_is_over_when_all_was_sent_and_nothing_comes() {
        let file = MemoryFile::new().unwrap();
        let mut watch = Watch::of(&file, 10);
        assert!(watch.goes_on(false).unwrap());
        file.writer().unwrap().write_all(&[1; 10]).unwrap();
        assert!(watch.goes_on(true).unwrap(), "something came");
        while watch.goes_on(true).unwrap() {}
        assert_eq!(watch.end("x").unwrap(), (0.0, [10, 10]), "all came at once");
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
