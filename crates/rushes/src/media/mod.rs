//! An open stream and its halves: the pushing thread sends frames, the pulling thread receives
//! them.

mod hook;
#[cfg(feature = "srtp")]
mod keys;
mod parts;
mod poller;
mod pool;
mod push_many;
mod receiver;
mod sender;
mod stream;

pub use self::hook::Hook;
pub use self::poller::{Poller, PollerWaker};
pub use self::push_many::{FramePush, FramePusher};
pub use self::receiver::StreamReceiver;
pub use self::sender::StreamSender;
pub(crate) use self::stream::Receiving;
pub use self::stream::{MediaStream, StreamHandle};
