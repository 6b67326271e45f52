//! One run of access units from one process to another: its specification ([`Spec`]), the two ends,
//! and the results ([`Trial`]).
//!
//! Each end is a process of this program on cores of its own, with a thread for each stream. The
//! receiver prints its ports; the sender prints the addresses at which it takes acknowledgements of
//! frames, which the receiver reads from its standard input. That is closed when the sender has
//! ended, and the receiver ends when nothing more arrives.

mod bare;
mod end;
mod flow;
mod process;
mod spec;
mod stream;
mod trial;

pub(crate) use self::bare::{RAW_DATAGRAM_LEN, send_datagrams};
pub(crate) use self::end::run as run_end;
pub(crate) use self::process::{EndArgs, Process};
pub(crate) use self::spec::{Clock, ETHERNET_LEN, IP_UDP_LEN, Path, Spec, Spread};
pub(crate) use self::trial::{Trial, Trials, in_turns};
