//! Media streams of [Rushes](rushes) in tokio.
//!
//! **What it is.** [`Frames`] is the asynchronous stream of the frames of any number of media streams, in one
//! task: it waits for the descriptor of a [`Poller`], which also answers requests and sends
//! reports when they are due. [`FrameSender`] sends frames without blocking a worker of tokio.
//!
//! **What it is not.** It is no runtime and starts no thread of its own; a frame that is spread over time is
//! sent by tokio's threads for what blocks. It needs a descriptor that can be waited for, and so Linux: on
//! other systems it is empty.
//!
//! ```
//! use rushes::{Codec, Context};
//!
//! # #[cfg(target_os = "linux")]
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let session = Context::new().session("127.0.0.1")?;
//!     let microphone = session.stream(Codec::Opus).open()?;
//!     let port = microphone.local_address().port();
//!     let speaker = session.stream(Codec::Opus).remote_port(port).open()?;
//!
//!     let (mut sender, _) = rushes_tokio::split(speaker)?;
//!     let (_, mut frames) = rushes_tokio::split(microphone)?;
//!     sender.push(b"\xfc first", None).await?;
//!     sender.push(b"\xfc second", None).await?;
//!     let (_, frame) = frames.next().await?;
//!     assert_eq!(&frame[..], b"\xfc first");
//!     Ok(())
//! }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod frames;
mod sender;

pub use self::frames::Frames;
pub use self::sender::FrameSender;

use rushes::{Error, MediaStream, Poller};

/// Returns the two halves of a stream, for two tasks. The frames have the token 0; reports are read and sent
/// while the task that has [`Frames`] waits for them.
///
/// # Errors
/// [`Error::Hooked`] if the frames go to a hook, [`Error::Net`] without a descriptor or outside of a runtime
/// that waits for descriptors.
pub fn split(stream: MediaStream) -> Result<(FrameSender, Frames), Error> {
    let (sender, receiver) = stream.split()?;
    let mut poller = Poller::new()?;
    poller.add(receiver, 0)?;
    Ok((FrameSender::new(sender), Frames::new(poller)?))
}
