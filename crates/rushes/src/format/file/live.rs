//! The bytes of a live source: a pipe, a device, another program's output.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Bytes read at once: the default capacity of a pipe.
const PIECE_LEN: usize = 64 << 10;

/// Maximum pieces in the queue; when it is full, the reading thread stops reading.
const PIECES_MAX: usize = 16;

/// Pause after a read from a non-blocking source that has no bytes.
const PAUSE: Duration = Duration::from_millis(1);

/// Bytes that were read at once.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) arrival: Instant,
}

/// The result of waiting for bytes.
#[derive(Debug)]
pub(super) enum Arrived {
    Piece(Piece),
    /// Nothing until the deadline.
    Nothing,
    End,
}

/// A source that a separate thread reads, so that other threads need not block on it. The thread
/// ends with the source, or at the first bytes after this value is dropped.
#[derive(Debug)]
pub(super) struct Live {
    pieces: Receiver<io::Result<Piece>>,
    /// Whether a caller has waited for bytes since the last frame.
    pub(super) has_waited: bool,
}

impl Live {
    /// Starts a thread that opens and reads a source; opening a named pipe blocks until another
    /// program opens its other end.
    pub(super) fn spawn<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> io::Result<Self> {
        let (to, pieces) = sync_channel(PIECES_MAX);
        std::thread::Builder::new().name("rushes-live".into()).spawn(move || {
            if let Err(error) = open().and_then(|source| read(source, &to)) {
                // Fails only if the reader was dropped.
                let _ = to.send(Err(error));
            }
        })?;
        Ok(Self { pieces, has_waited: false })
    }

    /// Waits for bytes until `deadline`, or for ever.
    pub(super) fn wait(&mut self, deadline: Option<Instant>) -> io::Result<Arrived> {
        if let Ok(piece) = self.pieces.try_recv() {
            return piece.map(Arrived::Piece);
        }
        self.has_waited = true;
        let piece = match deadline {
            None => self.pieces.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                self.pieces.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
        };
        match piece {
            Ok(piece) => piece.map(Arrived::Piece),
            Err(RecvTimeoutError::Timeout) => Ok(Arrived::Nothing),
            Err(RecvTimeoutError::Disconnected) => Ok(Arrived::End),
        }
    }
}

/// Reads until the source ends or the receiver of the pieces is dropped.
fn read(mut source: impl Read, to: &SyncSender<io::Result<Piece>>) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_LEN];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(len) => {
                let piece = Piece { bytes: buffer[..len].to_vec(), arrival: Instant::now() };
                if to.send(Ok(piece)).is_err() {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
}
