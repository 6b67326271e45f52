//! How texture video travels: octets of units, cut into packets and put back where they belong.
//!
//! **What it is.** The part of texture video that knows neither pixels nor sockets. A frame is a
//! number of *units*, each a range of octets with a connection of its own; a [`Plan`] that both ends
//! work out cuts every unit into *stripes* and these into packets, numbered through the whole frame.
//! Every packet names its frame and its number ([`UnitHeader`]) and so its place, whichever socket it
//! came by: a unit that is done can send a stripe of another.
//!
//! **What it is not.** It holds no frame: [`Assembly`] only says where octets go, and what is still
//! missing.
//!
//! ```
//! use std::time::Instant;
//! use rushes_proto::delivery::{Assembly, AssemblyOptions, Claim, Plan, UnitHeader};
//!
//! # fn main() -> Result<(), rushes_proto::delivery::PlanError> {
//! // Two units of 3 000 octets, in packets of 1 408.
//! let plan = Plan::new(&[(3_000, 3_000), (3_000, 3_000)], 1_408)?;
//! let mut assembly = Assembly::new(plan, AssemblyOptions::default());
//! let header = UnitHeader { frame: 0, index: 5 };
//! match assembly.claim(Instant::now(), header, 184) {
//!     Claim::Place(place) => assert_eq!((place.unit, place.bytes), (1, 2_816..3_000)),
//!     other => panic!("{other:?}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The header of a packet
//!
//! | octets | what |
//! |---|---|
//! | 1 | the frame's number, modulo 256 |
//! | 3 | the packet's number in the frame, most significant octet first |
//!
//! It stands before each UDP datagram's octets, before each chunk on a TCP connection, and at the
//! beginning of each RTP payload (`payload::texture`). The length is not written: the plan knows it,
//! so that no sender can lie about it.
//!
//! Iho's thesis, which this follows, has the octet's offset in the 24 bits, which ends at
//! 16 MiB a unit, and whose every value is plausible. A packet's number reaches 2^24 packets a frame
//! (23 GB of 1 408 octets); what is not in the plan is refused; and one bit for each says exactly
//! what came, came twice or is missing, so a whole frame is known by counting and waits for no timer.

mod assembly;
pub mod control;
mod pace;
mod plan;
mod slot;
mod window;
mod wire;

pub use assembly::{Assembly, AssemblyOptions, AssemblyStatistics, Claim, Discard, Landed, Place};
pub use assembly::{Ending, Gap};
pub use pace::Pace;
pub use plan::{PAYLOAD_MAX, Plan, PlanError, Span, Stripe, UNITS_MAX};
pub use window::{CREDIT_BYTES, Credit, Creditor, Window};
pub use wire::{HEADER_BYTES, UnitHeader, extend};
