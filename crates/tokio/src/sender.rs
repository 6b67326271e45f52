//! Sending without blocking a worker.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Poll, ready};

use rushes::{Error, RtpTimestamp, StreamSender};
use tokio::task::{JoinHandle, spawn_blocking};

/// The sending half of a stream.
///
/// A frame that is sent at once, such as an audio packet, is sent on the caller's thread, as by `UdpSocket`: it
/// waits only while the send buffer is full. A frame that is spread over time
/// ([`Pacing`](rushes::Pacing)) is sent by a thread of tokio's for what blocks, and the caller waits without a
/// thread.
#[derive(Debug)]
pub struct FrameSender {
    state: State,
}

type Sent = (Box<StreamSender>, Result<(), Error>);

#[derive(Debug)]
enum State {
    Idle(Box<StreamSender>),
    /// A frame is being sent, even if nobody waits for its end any more.
    Sending(JoinHandle<Sent>),
    /// The runtime ended while a frame was being sent.
    Lost,
}

impl FrameSender {
    /// Takes the sending half of a stream.
    pub fn new(sender: StreamSender) -> Self {
        Self { state: State::Idle(Box::new(sender)) }
    }

    /// Sends one frame; see [`StreamSender::push_frame`]. Ends when the kernel has accepted all of it.
    ///
    /// If the future is dropped while the frame is being sent, it is sent nevertheless, and its error is lost. The
    /// next call waits for its end first: dropped while it waits for the frame before, its own is not sent. The
    /// frame is copied if it is spread over time.
    ///
    /// # Errors
    /// As [`StreamSender::push_frame`]; [`Error::SendingStopped`] if the runtime has ended.
    pub async fn push(
        &mut self,
        frame: &[u8],
        timestamp: impl Into<Option<RtpTimestamp>>,
    ) -> Result<(), Error> {
        let timestamp = timestamp.into();
        let sender = self.sender().await?;
        if sender.sends_at_once(frame.len()) {
            return sender.push_frame(frame, timestamp);
        }
        let State::Idle(mut sender) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(Error::SendingStopped);
        };
        let frame = frame.to_vec();
        self.state = State::Sending(spawn_blocking(move || {
            let outcome = sender.push_frame(&frame, timestamp);
            (sender, outcome)
        }));
        self.end().await?
    }

    /// Waits for the end of a frame that is being sent, and returns the half, for its other functions.
    ///
    /// # Errors
    /// [`Error::SendingStopped`] if the runtime has ended.
    pub async fn sender(&mut self) -> Result<&mut StreamSender, Error> {
        // The error of a frame whose future was dropped.
        let _ = self.end().await?;
        match &mut self.state {
            State::Idle(sender) => Ok(sender),
            State::Sending(_) | State::Lost => Err(Error::SendingStopped),
        }
    }

    /// Waits until no frame is being sent; returns the outcome of the last one.
    async fn end(&mut self) -> Result<Result<(), Error>, Error> {
        poll_fn(|context| {
            let State::Sending(task) = &mut self.state else { return Poll::Ready(Ok(Ok(()))) };
            let Ok((sender, outcome)) = ready!(Pin::new(task).poll(context)) else {
                self.state = State::Lost;
                return Poll::Ready(Err(Error::SendingStopped));
            };
            self.state = State::Idle(sender);
            Poll::Ready(Ok(outcome))
        })
        .await
    }
}
