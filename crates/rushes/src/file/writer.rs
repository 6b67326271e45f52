//! Writing received frames to a file.

use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use rushes_proto::RtpTimestamp;

use super::error::FileError;
use super::opus::OpusWriter;
use crate::codec::Codec;

/// A media file being written: frames of video and of the generic format one after the other,
/// Opus packets in Ogg.
///
/// An ordinary file is written as `NAME.part` and takes its name in [`finish`](Self::finish);
/// dropped before, it leaves nothing behind. Pipes and devices are written directly, and `-` is
/// the standard output.
#[derive(Debug)]
pub struct MediaWriter {
    path: PathBuf,
    part: Option<PathBuf>,
    output: Option<Output>,
}

#[derive(Debug)]
enum Output {
    Plain(Sink),
    Opus(OpusWriter<Sink>),
}

type Sink = BufWriter<Box<dyn Inner>>;

/// Where the octets go.
trait Inner: Write + Send + std::fmt::Debug {}

impl<T: Write + Send + std::fmt::Debug> Inner for T {}

impl MediaWriter {
    /// Begins a file of `codec` at `path`.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn create(path: &Path, codec: Codec) -> Result<Self, FileError> {
        let (inner, part): (Box<dyn Inner>, _) = if path == Path::new("-") {
            (Box::new(io::stdout()), None)
        } else if is_ordinary(path) {
            let mut part = path.as_os_str().to_owned();
            part.push(".part");
            let part = PathBuf::from(part);
            (
                Box::new(File::create(&part).map_err(|source| failed(&part, "create", source))?),
                Some(part),
            )
        } else {
            let file = File::options().write(true).open(path);
            (Box::new(file.map_err(|source| failed(path, "open", source))?), None)
        };
        let sink = BufWriter::with_capacity(256 << 10, inner);
        let output = if codec == Codec::Opus {
            Output::Opus(OpusWriter::new(sink, std::process::id()))
        } else {
            Output::Plain(sink)
        };
        Ok(Self { path: path.to_owned(), part, output: Some(output) })
    }

    /// Writes one frame, sampled at `timestamp`.
    ///
    /// # Errors
    /// [`FileError::Io`].
    pub fn write(&mut self, frame: &[u8], timestamp: RtpTimestamp) -> Result<(), FileError> {
        let written = match &mut self.output {
            Some(Output::Plain(sink)) => sink.write_all(frame),
            Some(Output::Opus(writer)) => writer.write(frame, timestamp),
            None => Ok(()),
        };
        written.map_err(|source| failed(&self.path, "write", source))
    }

    /// Ends the file and gives it its name.
    ///
    /// # Errors
    /// [`FileError::Io`]; nothing is left behind then.
    pub fn finish(mut self) -> Result<(), FileError> {
        let ended = match self.output.take() {
            Some(Output::Plain(mut sink)) => sink.flush(),
            Some(Output::Opus(writer)) => writer.finish().map(drop),
            None => Ok(()),
        };
        ended.map_err(|source| failed(&self.path, "write", source))?;
        if let Some(part) = &self.part {
            std::fs::rename(part, &self.path)
                .map_err(|source| failed(&self.path, "rename", source))?;
            self.part = None;
        }
        Ok(())
    }
}

impl Drop for MediaWriter {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            self.output = None;
            // If it is gone already, so much the better.
            let _ = std::fs::remove_file(part);
        }
    }
}

/// Whether `path` is a file, or not yet anything.
fn is_ordinary(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |metadata| metadata.is_file())
}

fn failed(path: &Path, action: &'static str, source: io::Error) -> FileError {
    FileError::Io { path: path.to_owned(), action, source }
}
