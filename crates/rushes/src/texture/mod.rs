//! Texture video: frames in texture formats, in tiles, over many sockets, into memory of one's own.
mod client;
mod error;
mod server;
mod shape;
mod sink;

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

pub use error::TextureError;
pub use shape::TextureShape;
pub use sink::{FrameMemory, MemorySink, Region, TextureFrame, TextureSink, plain_memory};

/// A lock that a panicking thread has left is taken over: what it guards is whole between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
