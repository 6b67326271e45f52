//! Transport of texture video: cuts the octets of units into packets and reassembles them.
//!
//! **What it is.** The part of texture video that is independent of pixels and sockets. A frame
//! consists of *units*, each of which is a range of octets with a connection of its own. Both ends
//! derive the same [`Plan`], which cuts every unit into *stripes* and these into packets, numbered
//! through the whole frame. Every packet carries the numbers of its frame and of itself
//! ([`UnitHeader`]), which determine its place whatever the socket on which it arrives. An idle
//! unit can therefore send a stripe of another unit.
//!
//! **What it is not.** It holds no frame data: [`Assembly`] only reports where octets belong and
//! which are missing.
//!
//! ```
//! use std::time::Instant;
//! use rushes_delivery::{Assembly, AssemblyOptions, Claim, Plan, UnitHeader};
//!
//! # fn main() -> Result<(), rushes_delivery::PlanError> {
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
//! | octets | field |
//! |---|---|
//! | 1 | the frame's number, modulo 256 |
//! | 3 | the packet's number in the frame, most significant octet first |
//!
//! It precedes the data of each UDP datagram and of each chunk on a TCP connection, and is at the
//! beginning of each RTP payload (`payload::texture` of `rushes-proto`). There is no length field:
//! the length follows from the plan, so that a sender cannot state a wrong one.
//!
//! A packet that is sent again, because the client requested it, has its number plus P, the number
//! of packets of a frame: a client thus tells it from one that is late. Frames of more than 2^23 packets
//! are therefore not retransmitted. Only datagrams are sent again (UDP):
//!
//! - The client's [`GapFinder`] of each socket finds the packets that were skipped, its [`Assembly`]
//!   decides which of them to request and how long their frame waits for them;
//! - the requests travel on the control connection ([`control::Nack`]);
//! - the server's [`Retransmissions`] decides which packets to send again.
//!
//! # Repair packets
//!
//! A server may add repair packets (UDP), from which a client computes packets that did not arrive
//! (Reed–Solomon over blocks of packets of one stripe). They follow the packets of their stripe on the same
//! socket. Repair packet n of a frame has the number P · (1 + r) + n: with r, 1 to 100, the ratio in
//! percent. All repair packets of a frame have the same ratio, which may change from frame to frame. Frames
//! of more than 2^24 / 102 packets have no repair packets.
//!
//! - A stripe of k packets has ⌈k / b⌉ blocks, where b packets of the longest length have at most 1 MiB, and b
//!   is 1 to 256; packet p of the stripe belongs to block p modulo that number.
//! - A block of k packets has ⌈k · r / 100⌉ repair packets: the recovery shards of `reed-solomon-simd` 3
//!   for so many original ones. These are its packets, padded with zeros to the length of the longest of
//!   the stripe, or one octet more if that is odd.
//! - The repair packets of all blocks of a stripe take turns: first the first of each block, then the second.
//!
//! The server computes them with an [`Encoder`], by the ratio of a [`FecChoice`] or a fixed one. The
//! client's [`Assembly`] keeps those whose block lacks packets, until a [`Decoder`] can compute these.
//! Nothing authenticates packets over plain UDP: a forged packet is wrong itself, and so is what is
//! computed from it, in the same block. Neither replaces octets that arrived.
//!
//! # Packed stripes
//!
//! If both ends can, a stripe may be sent packed: reported as unchanged, or as one LZ4 block. Each of its packets
//! has a [`Packing`] of four octets between its header and its octets; only as many packets are sent as the
//! packed octets need, which are cut into P' = payload − 4 octets each. Packet n of the frame has the number
//! 102 · P + n then, and 103 · P + n if it is sent again, with n counted from the first packet of the stripe.
//! All other packets of the stripe count as arrived. Frames of more than 2^24 / 104 packets have no packed
//! stripes, nor have those with repair packets.
//!
//! - LZ4: the block is shorter than the stripe by more than the octets of the [`Packing`]s. Its octets
//!   unpacked are exactly those of the stripe, whose number both ends know.
//! - Unchanged, with an age of k frames: since frame f − k the stripe has had the same octets in every frame.
//!   A client that has them of one of these frames has them; otherwise the stripe is stale until it is sent
//!   again. A client that can request packets requests the first packet of such a stripe: the server then
//!   sends the stripe with the next frame. Over UDP and RTP, a server also sends each stripe about once a
//!   second.
//!
//! Iho's thesis, on which this design is based, carries the octet's offset in the 24 bits, which
//! limits a unit to 16 MiB and makes every value plausible. A packet number allows 2^24 packets in
//! a frame (23 GB at 1 408 octets), and numbers outside the plan are rejected. One bit for each
//! packet records whether it arrived, arrived twice or is missing, so that a complete frame is
//! detected by counting, without a timer.
#![forbid(unsafe_code)]

mod assembly;
pub mod control;
mod fec;
mod gaps;
mod pace;
mod packing;
mod plan;
mod requests;
mod retransmission;
mod slot;
mod step_choice;
mod window;
mod wire;

pub use assembly::{
    Assembly, AssemblyOptions, AssemblyStatistics, Claim, Discard, Ending, Gap, Landed,
    PackedClaim, PackedLanded, PackedPlace, Place, RepairOutcome, Unpacking,
};
pub use fec::{Decoder, Encoder, FecChoice, LossReport, Repair};
pub use gaps::{GapFinder, Gaps, Skipped};
pub use pace::Pace;
pub use packing::{PACKING_BYTES, Packing};
pub use plan::{FEC_PERCENT_MAX, PAYLOAD_MAX, Plan, PlanError, Span, Stripe, UNITS_MAX};
pub use retransmission::{MemberId, Planned, RetransmissionStatistics, Retransmissions};
pub use step_choice::StepChoice;
pub use window::{CREDIT_BYTES, Credit, Creditor, Window};
pub use wire::{HEADER_BYTES, UnitHeader, extend};
