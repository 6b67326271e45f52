//! Received datagrams in memory that is used again.

use std::net::SocketAddr;
use std::slice::ChunksMut;
use std::slice::Iter;

use crate::options::ReceivePath;
use crate::udp::UdpSocket;

/// Octets in one buffer: any datagram, or any coalesced run, fits.
pub(crate) const BUFFER_LEN: usize = 1 << 16;

/// Messages per call with coalescing: more than 8 fall out of the second-level cache.
const COALESCED_MESSAGES: usize = 8;

/// Messages per call without.
const PLAIN_MESSAGES: usize = 64;

/// Memory that one receive call fills; one per reading thread.
///
/// Its buffers are as large as any datagram, so that none is cut. Pages that no datagram reached
/// take no memory.
#[derive(Debug)]
pub struct Arena {
    pub(crate) octets: Vec<u8>,
    pub(crate) received: Vec<Received>,
    pub(crate) count: usize,
}

/// What came into one buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) len: usize,
    /// The length of each datagram but the last; `len` or more if there is one.
    pub(crate) segment: usize,
    pub(crate) from: SocketAddr,
}

impl Arena {
    /// An arena as `socket` needs it.
    pub fn new(socket: &UdpSocket) -> Self {
        let messages = match socket.receive_path() {
            ReceivePath::Gro => COALESCED_MESSAGES,
            ReceivePath::Recvmmsg => PLAIN_MESSAGES,
            ReceivePath::Auto | ReceivePath::Single => 1,
        };
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            octets: vec![0; messages * BUFFER_LEN],
            received: vec![Received { len: 0, segment: 0, from: nobody }; messages],
            count: 0,
        }
    }

    pub(crate) fn datagrams(&mut self) -> Datagrams<'_> {
        Datagrams {
            buffers: self.octets.chunks_mut(BUFFER_LEN),
            received: self.received[..self.count].iter(),
            run: None,
        }
    }
}

/// One received datagram. Its octets may be changed in place.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// The UDP payload, whole.
    pub data: &'a mut [u8],
    /// Who sent it.
    pub from: SocketAddr,
}

/// The datagrams of one receive call, in the order of arrival.
#[derive(Debug)]
pub struct Datagrams<'a> {
    buffers: ChunksMut<'a, u8>,
    received: Iter<'a, Received>,
    run: Option<Run<'a>>,
}

/// What is left of a buffer's datagrams.
#[derive(Debug)]
struct Run<'a> {
    rest: &'a mut [u8],
    segment: usize,
    from: SocketAddr,
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = Datagram<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datagram<'a>> {
        let Run { rest, segment, from } = if let Some(run) = self.run.take() {
            run
        } else {
            let received = self.received.next()?;
            let rest = self.buffers.next()?.get_mut(..received.len)?;
            Run { rest, segment: received.segment, from: received.from }
        };
        if segment == 0 || rest.len() <= segment {
            return Some(Datagram { data: rest, from });
        }
        let (data, rest) = rest.split_at_mut(segment);
        self.run = Some(Run { rest, segment, from });
        Some(Datagram { data, from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_split_and_empty_datagrams_stay() {
        let from = SocketAddr::from(([127, 0, 0, 1], 9));
        let received = |len, segment| Received { len, segment, from };
        let mut arena = Arena {
            octets: vec![7; 3 * BUFFER_LEN],
            received: vec![received(25, 10), received(0, 0), received(30, 10)],
            count: 3,
        };
        let lens: Vec<usize> = arena.datagrams().map(|datagram| datagram.data.len()).collect();
        assert_eq!(lens, [10, 10, 5, 0, 10, 10, 10]);
    }
}
