//! Buffered output to a file, a pipe or a device.

use std::fs::File;
use std::io;
use std::io::{ErrorKind, Seek, SeekFrom, Write};

/// Octets passed to the operating system at once.
const BUFFER_LEN: usize = 256 << 10;

/// The destination of octets.
#[derive(Debug)]
pub(super) enum Target {
    /// A file created by the writer, which can be truncated.
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

/// A buffer before a [`Target`] that counts the octets accepted by the operating system.
///
/// Unlike with [`std::io::BufWriter`], the count is valid after an error, too.
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

    /// Returns the number of octets accepted by the operating system.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the number of octets written, including those in the buffer.
    pub(super) fn written(&self) -> u64 {
        self.taken + self.buffer.len() as u64
    }

    /// Truncates a file; data passed to a pipe or a device cannot be taken back.
    pub(super) fn begin_again(&mut self) -> io::Result<()> {
        if let Target::File(file) = &mut self.target {
            self.buffer.clear();
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            self.taken = 0;
        }
        Ok(())
    }

    /// Whether octets can be replaced, unlike in a pipe or a device.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.target, Target::File(_))
    }

    /// Replaces octets of a file from `offset` on by as many others.
    pub(super) fn replace(&mut self, offset: u64, octets: &[u8]) -> io::Result<()> {
        self.drain()?;
        if let Target::File(file) = &mut self.target {
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(octets)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok(())
    }

    /// Passes the buffer to a pipe or a device at once, since its reader waits for the frame. A
    /// file is written in larger pieces.
    pub(super) fn pass_on(&mut self) -> io::Result<()> {
        match self.target {
            Target::File(_) => Ok(()),
            Target::Stream(_) | Target::Output(_) => self.flush(),
        }
    }

    /// Passes the buffer to the operating system.
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
