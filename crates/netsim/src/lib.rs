//! A simulated network for tests.
//!
//! A [`Path`] describes one direction: delay, jitter, a bottleneck with a queue, loss, reordering,
//! duplication, path MTU. A [`Course`] is a path that changes over time, and [`Conditions`]
//! describe both directions. One description works for
//!
//! - [`Link`] and [`Network`]: one and two directions in virtual time. Equal seeds give equal
//!   outcomes.
//! - [`Relay`]: real sockets in real time.
//!
//! [`Statistics`] count every datagram. The network implements no protocol and neither reads nor
//! changes datagrams.
//!
//! [`rate`] has flows over such a path, with which congestion controllers are tried.
//!
//! ```
//! use rushes_netsim::{Link, Loss, Path};
//! use std::time::Duration;
//!
//! let path = Path {
//!     delay: Duration::from_millis(50),
//!     loss: Loss::bursts(0.05, 3.0, 10),
//!     ..Path::default()
//! };
//! let mut link = Link::new(path, 1);
//! for n in 0..1000 {
//!     link.push(Duration::from_millis(n), 1200, n);
//! }
//! let mut delivered = 0;
//! while let Some(due) = link.next_due() {
//!     let delivery = link.poll(due).expect("a delivery is due");
//!     assert_eq!(delivery.at, Duration::from_millis(delivery.item + 50));
//!     delivered += 1;
//! }
//! assert_eq!(delivered + link.statistics().lost, 1000);
//! ```

#![forbid(unsafe_code)]

mod conditions;
mod jitter;
mod link;
mod loss;
mod network;
mod path;
pub mod rate;
mod relay;
mod seeded;
mod statistics;

pub use conditions::Conditions;
pub use link::{Delivery, HOLD_IDLE, Link};
pub use loss::Loss;
pub use network::{Network, Way};
pub use path::{Bottleneck, Change, Course, HEADERS, Lag, Path, Straying};
pub use relay::{Passing, Relay, RelayOptions};
pub use seeded::Seeded;
pub use statistics::Statistics;
