//! Octets on their way to a file, a pipe or a device.

use std::fs::File;
use std::io;
use std::io::ErrorKind;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;

/// Octets given to the system at once.
const BUFFER_LEN: usize = 256 << 10;

/// Where octets go.
#[derive(Debug)]
pub(super) enum Target {
    /// A file of our own, which can be begun anew.
    File(File),
    /// A pipe or a device.
    Stream(File),
    /// The standard output.
    Output(io::Stdout),
}

impl Target {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) | Self::Stream(file) => file.write(octets),
            Self::Output(output) => output.write(octets),
        }
    }
}

/// A buffer before a [`Target`] that knows how many octets the system has taken, also after an error,
/// which [`std::io::BufWriter`] does not.
#[derive(Debug)]
pub(super) struct Sink {
    target: Target,
    buffer: Vec<u8>,
    taken: u64,
}

impl Sink {
    pub(super) fn new(target: Target) -> Self {
        Self { target, buffer: Vec::with_capacity(BUFFER_LEN), taken: 0 }
    }

    /// Octets that the system has taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Octets written, those in the buffer included.
    pub(super) fn written(&self) -> u64 {
        self.taken + self.buffer.len() as u64
    }

    /// Empties a file; what a pipe or a device was given cannot be taken back.
    pub(super) fn begin_again(&mut self) -> io::Result<()> {
        if let Target::File(file) = &mut self.target {
            self.buffer.clear();
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            self.taken = 0;
        }
        Ok(())
    }

    /// Gives what is in the buffer to the system.
    fn drain(&mut self) -> io::Result<()> {
        let mut done = 0;
        let outcome = loop {
            let rest = &self.buffer[done..];
            if rest.is_empty() {
                break Ok(());
            }
            match self.target.write(rest) {
                Ok(0) => break Err(ErrorKind::WriteZero.into()),
                Ok(octets) => done += octets,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.buffer.drain(..done);
        self.taken += done as u64;
        outcome
    }
}

impl Write for Sink {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + octets.len() > BUFFER_LEN {
            self.drain()?;
        }
        if octets.len() < BUFFER_LEN {
            self.buffer.extend_from_slice(octets);
            return Ok(octets.len());
        }
        let octets = self.target.write(octets)?;
        self.taken += octets as u64;
        Ok(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        match &mut self.target {
            Target::File(file) | Target::Stream(file) => file.flush(),
            Target::Output(output) => output.flush(),
        }
    }
}
