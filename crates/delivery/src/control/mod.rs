//! The control connection of texture video, on which a server that has frames and a client that
//! shows them agree on a session and exchange its status (TCP; integers are big-endian).
//!
//! [`Server`] and [`Client`] are state machines: their inputs are octets and times, their outputs
//! octets, times and events. They transfer no frames: the rest of `delivery` handles the data of
//! units.
//!
//! # Openings
//!
//! Every connection to the server's port begins with an [`Opening`] from the client. Kind 1 is a
//! control connection; kind 2 is the connection of one unit, on which only unit data follows. Over
//! UDP the same 24 octets are a datagram from the unit's socket to the server's port for the unit,
//! which opens the path through address translators and shows the server the unit's address. The
//! datagram may be lost, so it is repeated every 50 ms until the server sends `Start`. Over RTP
//! there are no such datagrams, because `Accept` carries the ports and SSRCs of the client's
//! streams.
//!
//! | octet | kind 1: control | | octet | kind 2: unit |
//! |---|---|---|---|---|
//! | 0 | `RSHT` | | 0 | `RSHT` |
//! | 4 | version, 16 bits: 1 | | 4 | version, 16 bits: 1 |
//! | 6 | kind: 1 | | 6 | kind: 2 |
//! | 7 | 0 | | 7 | unit, 0 to 63 |
//! | 8 | formats, 64 bits: bit n is format n; bit 0: sizes | | 8 | token, 16 octets |
//! | 16 | transports: bit 0 multicast, 1 UDP, 2 TCP, 3 RTP; bit 4: recovery, 5: repair packets, 6: packed stripes, 7: colours | | 24 | *end* |
//! | 17 | requested format; 0: any | | | |
//! | 18 | requested transport: 1 UDP, 2 TCP, 3 RTP, 4 multicast; 0: any but multicast | | | |
//! | 19 | requested units, up to 64; 0: any | | | |
//! | 20 | octets of payload in a packet, 32 bits, up to 2^20; 0: any | | | |
//! | 24 | frame rate: numerator, denominator, 32 bits each; 0/0: any | | | |
//! | 32 | *end* | | | |
//!
//! Bits 4 to 7 of octet 16, and bit 0 of the formats, are the client's [`Abilities`]: a server uses those that it
//! has, and ignores the others, as does one of an older release. The requested format and transport must be among the
//! client's own. The numbers of formats, and how the fields of an offer divide a frame among units and packets, are in
//! `docs/rtp-texture.md`. The first six octets are the
//! same in all versions, as is the `Refuse` that answers an unknown version.
//!
//! # Sealed connections
//!
//! If both ends know a secret, they begin with the handshake `Noise_NNpsk0_25519_AESGCM_SHA256`
//! (The Noise Protocol Framework, revision 34). The client sends 56 octets instead of an opening:
//! `RSHT`, the version, kind 3, a 0, and the first handshake message. The eight octets before that
//! message are the prologue. The pre-shared key is HKDF-SHA256 of the secret, without salt, with
//! the information `Rushes texture control`. The server answers with `Sealed`, which carries the
//! second handshake message, or with `Refuse`, which is not authenticated.
//!
//! Then each end sends records: a length of 16 bits, up to 4112, and that number of octets, of
//! which the last 16 are the tag. The plain text of all records together is the octets of a clear
//! connection, beginning with the client's opening. The server makes no offer before the first
//! record is authenticated, which proves that the client knows the secret and that the handshake is
//! not a replay. See [`Channel`].
//!
//! The keys of the session's media are exported from the handshake: HKDF-SHA256 of the final
//! chaining key, salted with the handshake hash, with the information `export ` and a label, which
//! is `media to client` or `media to server`.
//!
//! If the ends agree on keys by ZRTP, they share a secret only after the first unit is bound. Their
//! connection is clear up to the client's `Accept`. Then the client sends the 56 octets of the
//! handshake, and everything after them is sealed. The prologue continues with everything sent in
//! the clear: the number of the client's octets, 32 bits, these octets, then the server's octets.
//! The secret is the exported key of ZRTP. Until then a client accepts only `Offer`, `Refuse` and
//! `Stop` (the last two unauthenticated), and a server only an opening, `Change`, `Accept` and `Stop`.
//!
//! # Messages
//!
//! Each message after the opening consists of a type, 8 bits; the length of the body, 24 bits, at
//! most 4096; and the body.
//!
//! | type | from | name | body, with the octets of each field |
//! |---|---|---|---|
//! | 1 | server | `Offer` | see below |
//! | 2 | server | `Refuse` | reason 1, length of text 1, text: UTF-8, up to 200 |
//! | 3 | server | `Start` | epoch 2 |
//! | 4 | server | `Frame` | number 8, captured 8, sent 8, octets 8, frames dropped 8 |
//! | 5 | server | `Pong` | id 4, t1 8, t2 8, t3 8 |
//! | 6 | server | `Statistics` | frames 8, dropped 8, packets 8, octets 8, send p50 4, p99 4 |
//! | 7 | both | `Stop` | like `Refuse` |
//! | 8 | server | `Sealed` | handshake 48; only before the first record |
//! | 16 | client | `Accept` | epoch 2, number of ports 1, ports 2 each, number of SSRCs 1, SSRCs 4 each |
//! | 17 | client | `Change` | format 1 (0: unchanged), rate 4 + 4 (0/0: unchanged), largest width 4 and height 4 (both absent: unchanged; both 0: the source's own) |
//! | 18 | client | `Ping` | id 4, t1 8 |
//! | 19 | client | `Report` | frames 8, frames lost 8, packets lost 8, late 8, duplicate 8, tiles concealed 8, latency p50 4, p99 4, packets recovered 8 (absent if 0), repaired 8 and answers in time 1 (absent if both are 0; then packets recovered may be 0) |
//! | 20 | client | `Nack` | frame 8, number of runs 1 (1 to 255), each: first packet 3, packets 2 |
//!
//! Times are in microseconds: of the server's clock in `Frame`, t2 and t3, of the client's in t1;
//! both clocks have arbitrary origins. The numbers of reasons are those of [`Reason`]. All counts
//! start with the session. A body is exactly as long as its fields. The runs of a `Nack` are in ascending
//! order, and are sent only if the offer in force has the ability *recovery*: packets that did not arrive
//! are requested and sent again, over UDP. `Offer`:
//!
//! | octet | field | bounds |
//! |---|---|---|
//! | 0 | token, 16 octets | random |
//! | 16 | epoch, 16 bits | 0, incremented by each change; it wraps |
//! | 18 | format | 1 to 63 |
//! | 19 | transport | 1 UDP, 2 TCP, 3 RTP, 4 multicast |
//! | 20 | width, height, 32 bits each | 1 to 32768 |
//! | 28 | frame rate: numerator, denominator, 32 bits each | 1 or more |
//! | 36 | stripe rows, 32 bits | 1 or more |
//! | 40 | payload octets in a packet, 32 bits | 1 to 65503; over TCP 1 to 2^20 |
//! | 44 | clock rate of RTP timestamps, 32 bits | 1 or more over RTP, otherwise 0 |
//! | 48 | number of the first frame, 64 bits | not before that of the last offer |
//! | 56 | units of each of three planes, 8 bits each | 1 to 64 in all; planes without units last |
//! | 59 | number of ports P, 8 bits | 0 over TCP, otherwise the number of units |
//! | 60 | ports of the server, 16 bits each | not 0 |
//! | 60 + 2P | number of SSRCs S, 8 bits | the number of units over RTP, otherwise 0 |
//! | 61 + 2P | SSRCs of the units, 32 bits each | all different |
//! | 61 + 2P + 4S | abilities, 8 bits; by multicast always there, otherwise absent if 0 | among those that the client announced |
//! | 62 + 2P + 4S | colour, 4 octets ([`Offer::colour`]); only with the ability *colour* | those that the application knows |
//! | the last 18 | group: an IPv6 address, or an IPv4 one mapped to it, and the port of the first unit, 16 bits; by multicast only | a multicast group; a port for each unit, up to 65535 |
//!
//! By multicast each client has a control connection of its own, and all receive the same datagrams: those of unit n
//! come from the server's address and its port of that unit, and go to the group at its port plus n. A client joins
//! through the interface of its control connection. Units are not bound by openings: a client has joined the group when
//! it sends `Accept`, which has no ports, and ignores frames before the first of its offer. `Start` follows at once. There
//! are no credits and no changes. Other clients of the group may request packets and use repair packets: a client tells
//! both by their numbers, and discards what it does not use. It announces the abilities *repair packets* and *colours*
//! for that; without them it is refused.
//!
//! With the ability *sizes*, a client may request a largest size, and the server scales the source's pictures down to
//! the largest that fits, with the same ratio of the sides; it never scales them up. So that no frame is of another
//! size, the client may answer the first offer with a `Change`, once: the server makes another, of epoch 1.
//!
//! A change keeps token, transport, clock rate and group, and the ports and SSRCs of existing units; new
//! units are bound like the first ones. Until its `Start` the old offer is in force, and no frame
//! of the new offer is sent.
//!
//! # States
//!
//! The first table is that of the server. Any event that is not in the table is out of turn: the
//! server sends `Refuse` or `Stop` and ends the session. `Stop` from either side, a closed
//! connection and the deadline lead from every state to *Stopped*, which ignores further input.
//!
//! | state | deadline | event | action | next |
//! |---|---|---|---|---|
//! | *Opening* | 5 s | opening, control | asks the application | *Negotiating* |
//! | | | opening, unit | hands the connection over | *Stopped* |
//! | *Negotiating* | 5 s each | application offers | `Offer` | *Negotiating* |
//! | | | application refuses | `Refuse` | *Stopped* |
//! | | | `Change`, once, with *sizes* | notifies the application, which offers again | *Negotiating* |
//! | | | `Accept` | | *Binding* |
//! | *Binding* | 10 s | `Ping` | `Pong` | *Binding* |
//! | | | last unit is bound | `Start` | *Streaming* |
//! | *Streaming* | 5 s of silence | application changes | `Offer` | *Changing* |
//! | | | `Ping` | `Pong` | *Streaming* |
//! | | | `Change`, `Report`, `Nack` | notifies the application | *Streaming* |
//! | | | frame, statistics | `Frame`, `Statistics` | *Streaming* |
//! | *Changing* | 30 s, then 10 s | `Accept`; all units are bound | `Start` | *Streaming* |
//! | | | all others of *Streaming* | | *Changing* |
//!
//! The second table is that of the client. Its deadlines are a second longer, so that the server's
//! reason arrives first.
//!
//! | state | deadline | event | action | next |
//! |---|---|---|---|---|
//! | *Opening* | 11 s | `Offer` | checks it, asks the application | *Negotiating* |
//! | | | `Refuse` | notifies the application | *Stopped* |
//! | *Negotiating* | 6 s | application accepts | `Accept` | *Binding* |
//! | | | application requests a size, once | `Change` | *Opening*, for 6 s in all |
//! | *Binding* | 11 s | `Start` | | *Streaming* |
//! | *Streaming* | 5 s of silence | `Offer` | checks it, asks the application | *Changing* |
//! | | | each second | `Ping` | *Streaming* |
//! | | | `Frame`, `Statistics`, `Pong` | notifies the application, sets the clock | *Streaming* |
//! | *Changing* | 31 s, then 11 s | application accepts | `Accept` | *Changing* |
//! | | | `Start` | | *Streaming* |
//! | | | all others of *Streaming* | | *Changing* |
//!
//! A deadline counts from the start of its state, and silence from the last complete message:
//! single octets extend neither. Output for a peer that does not read is limited: beyond the limit,
//! frames are not announced and pings are not answered until the peer reads or counts as silent.
//! The last frame is always announced before `Stop`, so that a client knows how many were sent.

mod channel;
mod clear;
mod client;
mod clock;
mod connection;
mod error;
mod event;
mod message;
mod noise;
mod offer;
mod opening;
mod read;
mod reason;
mod sealed;
mod server;
mod state;
mod transport;
mod write;

pub use channel::{Channel, ChannelError};
pub use client::Client;
pub use clock::{ClockEstimate, ClockFilter, Timeline};
pub use error::{CommandError, MessageError, OfferError, OpeningError};
pub use event::{ClientEvent, ServerEvent};
pub use message::{
    Change, FrameNotice, Message, NACK_RUNS_MAX, Nack, Ping, Pong, Report, ServerStatistics,
};
pub use offer::{Accept, Offer, VideoMode};
pub use opening::{Opening, UnitOpening, Wishes};
pub use reason::{Reason, Stopped, StoppedBy, TEXT_LEN_MAX};
pub use sealed::{ControlSecret, Entropy};
pub use server::Server;
pub use state::State;
pub use transport::{Abilities, FormatSet, FrameRate, Token, Transport, TransportSet};

use std::time::Duration;

/// The version of this protocol.
pub const VERSION: u16 = 1;

/// Octets before the body of a message.
pub const HEADER_LEN: usize = 4;

/// Octets in the longest body of a message.
pub const BODY_LEN_MAX: usize = 4096;

/// Maximum number of units of a session.
pub const UNITS_MAX: usize = 64;

/// Maximum number of pixels on a side of a frame.
pub const SIDE_MAX: u32 = 32_768;

/// Maximum octets of payload in a packet, over TCP.
pub const PAYLOAD_MAX: u32 = 1 << 20;

/// Time limit for the opening of a connection.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for making an offer, and for answering it.
pub const OFFER_TIMEOUT: Duration = Duration::from_secs(5);

/// Time limit for answering the offer of a change: frames of the old offer arrive first.
pub const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for binding all units.
pub const BINDING_TIMEOUT: Duration = Duration::from_secs(10);

/// Time without a message, while streaming, after which a peer counts as silent.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(5);

/// Interval of a client's pings, which query the server's clock and show that the client is alive.
pub const PING_INTERVAL: Duration = Duration::from_secs(1);

/// Extra time of a client's deadlines, so that the server's reason arrives first.
const CLIENT_MARGIN: Duration = Duration::from_secs(1);
