//! Pairs of streams.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rushes::{Codec, Context, Pacing, Session, Ssrc, StreamBuilder, StreamReceiver, StreamSender};

pub(crate) const LONG: Duration = Duration::from_secs(30);
pub(crate) const MILLISECOND: Duration = Duration::from_millis(1);

pub(crate) fn session() -> Session {
    Context::new().session("127.0.0.1").unwrap()
}

pub(crate) fn receiver_of(builder: StreamBuilder) -> StreamReceiver {
    builder.probation(1).open().unwrap().split().unwrap().1
}

pub(crate) fn sender_of(builder: StreamBuilder) -> StreamSender {
    builder.pacing(Pacing::Off).open().unwrap().split().unwrap().0
}

/// Streams without RTCP, each on a port of its own, and their senders, which share one if `is_shared`.
pub(crate) fn pairs(count: u32, is_shared: bool) -> (Vec<StreamSender>, Vec<StreamReceiver>) {
    let session = session();
    let mut from = 0;
    let pair = |n| {
        let stream = || session.stream(Codec::Generic).rtcp(false).socket_buffer(200_000);
        let receiver = receiver_of(stream());
        let to = receiver.local_address().port();
        let sender = stream().remote_ssrc(Ssrc(n)).local_port(from).remote_port(to);
        let sender = sender_of(sender);
        from = if is_shared { sender.local_address().port() } else { 0 };
        (sender, receiver)
    };
    (1..=count).map(pair).unzip()
}

/// Streams without RTCP that receive on one port, and their senders, on another.
pub(crate) fn pairs_on_one_port(count: u32) -> (Vec<StreamSender>, Vec<StreamReceiver>) {
    let session = session();
    let (mut from, mut to) = (0, 0);
    let pair = |n| {
        let stream = || session.stream(Codec::Generic).rtcp(false);
        let receiver = receiver_of(stream().remote_ssrc(Ssrc(n)).local_port(to));
        to = receiver.local_address().port();
        let sender = stream().ssrc(Ssrc(n)).remote_ssrc(Ssrc(n)).local_port(from).remote_port(to);
        let sender = sender_of(sender);
        from = sender.local_address().port();
        (sender, receiver)
    };
    (1..=count).map(pair).unzip()
}

/// Tests that count threads and descriptors run one after the other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The threads of this process that the library has started.
pub(crate) fn threads() -> usize {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.flatten().filter(|name| name.starts_with("rushes")).count()
}
