//! Texture video: frames in texture formats, cut into tiles, sent over many sockets at once, and
//! received into the application's memory.
//!
//! **What it is.** A [`TextureServer`] takes pictures from a [`source`], encodes them if necessary,
//! and sends the tiles of each frame, each with its own socket and thread. A [`TextureClient`]
//! assembles them in the memory of a [`TextureSink`], which it notifies of complete tiles and
//! frames.
//!
//! **What it is not.** It displays nothing. Over UDP, packets that did not arrive are requested as long
//! as an answer can be in time, or computed from repair packets; over UDP and RTP, octets that do not arrive in time are replaced by those
//! of the previous frame.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::mpsc;
//! use std::time::Duration;
//! use rushes::texture::{ClientOptions, Format, MemorySink, ServerOptions};
//! use rushes::texture::{TextureClient, TextureFrame, TextureServer};
//! use rushes::texture::source::{RawHint, open};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut options = ServerOptions::default();
//! options.format = Some(Format::Bc1);
//! let pattern = open("pattern:320x180@60".as_ref(), &RawHint::default())?;
//! let server = TextureServer::serve("127.0.0.1:0".parse()?, pattern, options)?;
//!
//! let (sender, frames) = mpsc::sync_channel(8);
//! let sink = Arc::new(MemorySink::new(move |frame: &TextureFrame<'_>| {
//!     let _ = sender.try_send((frame.number(), frame.shape().layout().bytes()));
//! }));
//! let client = TextureClient::connect(server.local_address(), sink, ClientOptions::default())?;
//! let (_, octets) = frames.recv_timeout(Duration::from_secs(5))?;
//! assert_eq!(octets, 320 / 4 * 180 / 4 * 8);
//! client.stop();
//! # Ok(())
//! # }
//! ```
mod client;
mod error;
mod live;
mod packing;
mod rtp;
mod sealing;
mod server;
mod shape;
mod sink;
mod transient;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use client::{ClientOptions, ClientStatistics, TextureClient};
pub use error::TextureError;
pub use live::{LiveHandle, LiveOptions, LiveSource};
pub use rushes_delivery::Gap;
pub use rushes_delivery::control::{
    ClockEstimate, FrameRate, Reason, Report, Stopped, StoppedBy, Transport,
};
pub use rushes_texture::{
    Colour, ColourHint, ColourRange, Decoder, Encoder, Factors, Format, InstructionSet, Layout,
    Matrix, Primaries, Quality, Rate, SIDE_MAX, Scaler, Siting, Tiling, Transfer, UnknownQuality,
    did_you_mean, file, fitted, metric, nearest, source,
};
pub use server::{
    Adaptation, Fec, MulticastGroup, SentFrame, ServerCounts, ServerOptions, TextureServer, Timing,
};
pub use shape::TextureShape;
pub use sink::{FrameMemory, MemorySink, Region, TextureFrame, TextureSink, plain_memory};

/// Calls a function if it is dropped by a panic.
struct OnPanic<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// Locks a mutex even after another thread panicked: its data is consistent between calls.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
