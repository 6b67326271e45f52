//! Limits for connections without a session: those that have not sent an opening yet, and those whose session has
//! ended.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use rushes_net::TcpSocket;

use super::super::lock;
use super::host::host;

/// Maximum pending connections of one host: enough for two clients with 64 units each.
const PER_HOST_MAX: usize = 128;

/// Maximum pending connections of all hosts.
const ALL_MAX: usize = 256;

/// The connections whose opening has not been received, or whose clients have not closed them after the end, oldest
/// first.
#[derive(Debug)]
pub(super) struct PendingConnections<C = TcpSocket> {
    list: Mutex<VecDeque<(IpAddr, Arc<C>)>>,
}

impl<C> Default for PendingConnections<C> {
    fn default() -> Self {
        Self { list: Mutex::default() }
    }
}

impl<C> PendingConnections<C> {
    /// Adds a connection from `peer`. If there are too many, removes and returns the oldest
    /// connection of the host with the most connections; the caller closes it.
    pub(super) fn add(&self, peer: IpAddr, connection: &Arc<C>) -> Option<Arc<C>> {
        let host = host(peer);
        let mut list = lock(&self.list);
        let count = |of: IpAddr| list.iter().filter(|(host, _)| *host == of).count();
        let busiest_host = if count(host) >= PER_HOST_MAX {
            Some(host)
        } else if list.len() >= ALL_MAX {
            list.iter().map(|(host, _)| *host).max_by_key(|host| count(*host))
        } else {
            None
        };
        let oldest = list.iter().position(|(host, _)| Some(*host) == busiest_host);
        let evicted = oldest.and_then(|oldest| list.remove(oldest));
        list.push_back((host, connection.clone()));
        evicted.map(|(_, connection)| connection)
    }

    /// Removes a connection: its opening was received, or it has ended.
    pub(super) fn remove(&self, connection: &Arc<C>) {
        lock(&self.list).retain(|(_, other)| !Arc::ptr_eq(other, connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(pending: &PendingConnections<u32>, peer: &str, n: u32) -> Option<u32> {
        pending.add(peer.parse().unwrap(), &Arc::new(n)).map(|evicted| *evicted)
    }

    #[test]
    fn a_crowd_of_one_host_pushes_out_its_own_oldest() {
        let pending = PendingConnections::default();
        assert_eq!(add(&pending, "192.0.2.1", 0), None);
        for n in 0..128_u32 {
            assert_eq!(add(&pending, &format!("2001:db8::{n:x}"), 1000 + n), None);
        }
        assert_eq!(add(&pending, "2001:db8::ffff", 2000), Some(1000));
        assert_eq!(add(&pending, "2001:db8:0:0:9::1", 2001), Some(1001));
        assert_eq!(add(&pending, "::ffff:192.0.2.1", 1), None);
    }

    #[test]
    fn crowds_of_many_hosts_push_out_the_largest_before_any_other() {
        let pending = PendingConnections::default();
        assert_eq!(add(&pending, "192.0.2.1", 0), None);
        for n in 0..255_u32 {
            assert_eq!(add(&pending, &format!("198.51.100.{}", n / 100), 1000 + n), None);
        }
        // 198.51.100.0 and .1 have a hundred each.
        let evicted: Vec<_> = (0..100).filter_map(|n| add(&pending, "203.0.113.1", n)).collect();
        assert_eq!(evicted.len(), 100);
        assert!(evicted.iter().all(|n| *n >= 1000 || *n < 100), "{evicted:?}");
        assert!(lock(&pending.list).iter().any(|(_, n)| **n == 0), "the first is still there");
    }

    #[test]
    fn those_that_leave_make_room() {
        let pending = PendingConnections::default();
        let peer = IpAddr::from([192, 0, 2, 1]);
        let all: Vec<_> = (0..128_u32).map(Arc::new).collect();
        for one in &all {
            assert!(pending.add(peer, one).is_none());
        }
        pending.remove(&all[5]);
        assert!(pending.add(peer, &Arc::new(200)).is_none());
        assert!(pending.add(peer, &Arc::new(201)).is_some());
    }
}
