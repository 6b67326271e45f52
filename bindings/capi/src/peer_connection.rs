//! Connections with peers that are entered by offer and answer.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rushes::peer::{self, PeerHandle};

use crate::context::Context;
use crate::error::{Failure, Status, out_of_range};
use crate::guard::{guard, guard_with};
use crate::handle::handle_type;
use crate::options::{StreamOptions, argument, codec, codec_number, settings};
use crate::stream::Stream;
use crate::turn::Turn;
use crate::{handle, pointer};

/// How long a call waits before it checks whether the connection was closed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The port of STUN servers (RFC 8489 section 8.1).
const STUN_PORT: u16 = 3478;

/// A connection with a peer that is entered by offer and answer: a browser, or a server between
/// browsers (WebRTC).
pub struct PeerConnection {
    inner: Turn<Inner>,
    session: rushes::Session,
    handle: PeerHandle,
    /// The offer or the answer, once it is made.
    description: OnceLock<CString>,
    is_closed: AtomicBool,
}
handle_type!(PeerConnection, 12, "peer's connection");

struct Inner {
    /// The streams that were agreed on. Dropped before the connection, which carries their BYE.
    streams: Vec<Agreed>,
    peer: peer::Peer,
    /// The number of streams that were added.
    added: usize,
}

/// A stream that was agreed on.
struct Agreed {
    index: usize,
    about: PeerStream,
    /// The stream, until it is handed over.
    stream: Option<rushes::MediaStream>,
}

impl fmt::Debug for PeerConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerConnection").field("handle", &self.handle).finish_non_exhaustive()
    }
}

/// Options for a connection with a peer. A field that is 0 or NULL has its default. Later versions
/// may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PeerOptions {
    /// The only local address to use, as a name or an address. By default the peer is told every
    /// IPv4 address of this machine, of loopback only if there is no other.
    pub local_address: *const c_char,
    /// The host of a STUN server (RFC 8489), which tells under which address this machine is seen
    /// from outside; by default none.
    pub stun_server: *const c_char,
    /// The port of the STUN server, by default 3478.
    pub stun_port: u16,
    /// The local UDP port, by default a free one.
    pub local_port: u16,
    /// Not 0 if the peer is told the addresses of loopback, too: for a peer on this machine.
    pub loopback: u8,
    /// Not 0 if this end only answers the peer's checks (ICE lite, RFC 8445 section 2.5), as a
    /// server with a public address may.
    pub lite: u8,
    /// The port of the TURN server, by default 3478.
    pub turn_port: u16,
    /// The host of a TURN server (RFC 8656), used over UDP, which relays the media if no direct path
    /// is found; by default none.
    pub turn_server: *const c_char,
    /// The user name at the TURN server.
    pub turn_username: *const c_char,
    /// The password at the TURN server.
    pub turn_password: *const c_char,
}
impl pointer::Plain for PeerOptions {}

/// The direction of a stream, as seen from this end (RFC 8866 section 6.7).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum Direction {
    /// Frames are sent and received.
    SendRecv = 1,
    /// Frames are only sent.
    SendOnly = 2,
    /// Frames are only received.
    RecvOnly = 3,
}

fn direction(number: i32) -> Result<peer::Direction, Failure> {
    match number {
        way if way == Direction::SendRecv as i32 => Ok(peer::Direction::SendRecv),
        way if way == Direction::SendOnly as i32 => Ok(peer::Direction::SendOnly),
        way if way == Direction::RecvOnly as i32 => Ok(peer::Direction::RecvOnly),
        other => Err(argument(format!("{other} is not a direction"))),
    }
}

/// What was agreed on about a stream with a peer. Later versions may add fields at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct PeerStream {
    /// The format: a rushes_codec.
    pub codec: i32,
    /// Whether frames can be pushed.
    pub sends: bool,
    /// Whether frames are received.
    pub receives: bool,
    /// The identification of the media in the description (a=mid), terminated by a zero octet;
    /// empty if it has none.
    pub mid: [c_char; 64],
}

impl PeerConnection {
    fn new(context: &rushes::Context, options: PeerOptions) -> Result<Self, Failure> {
        let mut builder = context.peer().local_port(options.local_port).lite(options.lite != 0);
        if let Some(local) = pointer::optional_text(options.local_address)? {
            builder = builder.local_address(local)?;
        }
        if let Some(server) = pointer::optional_text(options.stun_server)? {
            let port = if options.stun_port == 0 { STUN_PORT } else { options.stun_port };
            builder = builder.stun_server(rushes::net::resolve(server, port)?);
        }
        if let Some(server) = pointer::optional_text(options.turn_server)? {
            let port = if options.turn_port == 0 { STUN_PORT } else { options.turn_port };
            let username = pointer::optional_text(options.turn_username)?.unwrap_or_default();
            let password = pointer::optional_text(options.turn_password)?.unwrap_or_default();
            let address = rushes::net::resolve(server, port)?;
            builder = builder.turn_server(address, username, password)?;
        }
        if options.loopback != 0 {
            builder = builder.with_loopback();
        }
        let peer = builder.open()?;
        Ok(Self {
            session: context.session_any(),
            handle: peer.handle(),
            inner: Turn::new(Inner { streams: Vec::new(), peer, added: 0 }),
            description: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        })
    }

    fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed.load(Relaxed) {
            return Err(Failure::new(Status::Closed, "the connection was closed meanwhile"));
        }
        Ok(())
    }

    /// Calls `act` with the peer.
    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> Result<T, Failure>) -> Result<T, Failure> {
        act(&mut *self.inner.wait()?)
    }

    /// Keeps the first description with the connection, further ones until the next text of this thread; returns
    /// its address.
    fn keep(&self, description: String) -> *const c_char {
        match self.description.set(CString::new(description).unwrap_or_default()) {
            Ok(()) => self.description.get().map_or(c"".as_ptr(), |kept| kept.as_ptr()),
            Err(further) => keep_text(further),
        }
    }

    /// Waits until the streams exist, at most for `timeout`; returns whether they do.
    fn connect(&self, timeout: Duration) -> Result<bool, Failure> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let left = deadline.map_or(Duration::MAX, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            let is_connected = self.with(|inner| {
                self.check_open()?;
                let Some(streams) = inner.peer.connect(left.min(POLL_INTERVAL))? else {
                    return Ok(false);
                };
                inner.streams = streams.into_iter().map(Agreed::from).collect();
                Ok(true)
            })?;
            if is_connected || left <= POLL_INTERVAL {
                return Ok(is_connected);
            }
        }
    }
}

impl Inner {
    /// Returns the stream that was added as number `index`.
    fn stream(&mut self, index: usize) -> Result<&mut Agreed, Failure> {
        if index >= self.added {
            return Err(out_of_range("streams"));
        }
        let agreed = self.streams.iter_mut().find(|agreed| agreed.index == index);
        agreed.ok_or_else(|| {
            let message = "the ends have not agreed on this stream, or are not connected yet";
            Failure::new(Status::Unsupported, message)
        })
    }
}

impl From<peer::PeerStream> for Agreed {
    fn from(of: peer::PeerStream) -> Self {
        let about = PeerStream {
            codec: codec_number(of.codec),
            sends: of.sends,
            receives: of.receives,
            mid: pointer::text_array(of.mid.as_deref().unwrap_or_default()),
        };
        Self { index: of.index, about, stream: Some(of.stream) }
    }
}

/// Opens the socket of a connection with a peer; close it with rushes_peer_connection_close().
///
/// Either end makes the offer and the other answers it; the two texts (SDP, RFC 8866) are exchanged
/// in some way that both trust. Then both ends look for a path (ICE), agree on keys (DTLS-SRTP), and
/// carry all streams on this path: rushes_peer_connection_connect(). `options` may be NULL; `size` is
/// sizeof(rushes_peer_options).
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_new(
    context: *const Context,
    options: *const PeerOptions,
    size: usize,
    connection: *mut *mut PeerConnection,
) -> Status {
    guard(|| {
        pointer::write(connection, std::ptr::null_mut())?;
        let default = PeerOptions {
            local_address: std::ptr::null(),
            stun_server: std::ptr::null(),
            stun_port: 0,
            local_port: 0,
            loopback: 0,
            lite: 0,
            turn_port: 0,
            turn_server: std::ptr::null(),
            turn_username: std::ptr::null(),
            turn_password: std::ptr::null(),
        };
        let options = pointer::read_prefix(options, size, default)?;
        let new = PeerConnection::new(&handle::get(context)?.0, options)?;
        pointer::write(connection, handle::insert(new)?)
    })
}

/// Closes a connection: the peer is told. Streams that were opened stay open until they are closed
/// themselves, but nothing leads to the peer any more: close them before. A
/// rushes_peer_connection_connect() in progress on another thread ends within 0.1 s with
/// RUSHES_ERROR_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_close(connection: *mut PeerConnection) -> Status {
    guard(|| {
        handle::remove(connection)?.is_closed.store(true, Relaxed);
        Ok(())
    })
}

/// Creates settings for a stream of the connection that carries `codec` (a rushes_codec), for
/// rushes_peer_connection_add(); close them with rushes_stream_options_close().
///
/// Its address, ports, payload type, keys and header extensions are agreed on with the peer, so that
/// settings of these have no effect. By default packets have at most 1280 octets, and lost packets
/// of video are requested.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_stream_options_new(
    connection: *const PeerConnection,
    codec: i32,
    options: *mut *mut StreamOptions,
) -> Status {
    guard(|| {
        pointer::write(options, std::ptr::null_mut())?;
        let connection = handle::get(connection)?;
        let codec = self::codec(codec)?;
        let builder = connection.with(|inner| Ok(inner.peer.stream(codec)))?;
        let new = StreamOptions::new(connection.session.clone(), builder);
        pointer::write(options, handle::insert(new)?)
    })
}

/// Adds a stream to what is offered or answered. Streams are numbered from 0 in the order of these
/// calls. `direction` is a rushes_direction. The settings are copied, and may be used again.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_add(
    connection: *const PeerConnection,
    options: *const StreamOptions,
    direction: i32,
) -> Status {
    guard(|| {
        let direction = self::direction(direction)?;
        let stream = settings(options)?.builder;
        handle::get(connection)?.with(|inner| {
            inner.peer.add(stream, direction);
            inner.added += 1;
            Ok(())
        })
    })
}

/// Adds another format for the stream that was added last: the first one that the peer has, too, is
/// taken. All of them are video, or all are audio. RUSHES_ERROR_UNSUPPORTED if there is no stream.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_add_alternative(
    connection: *const PeerConnection,
    options: *const StreamOptions,
) -> Status {
    guard(|| {
        let stream = settings(options)?.builder;
        handle::get(connection)?.with(|inner| {
            if inner.added == 0 {
                let message = "there is no stream that could have another format";
                return Err(Failure::new(Status::Unsupported, message));
            }
            inner.peer.add_alternative(stream);
            Ok(())
        })
    })
}

/// Makes the offer for the peer, once. The text belongs to the connection, and is valid until
/// that is closed. With a STUN server it waits for its answer, at most 2 s.
/// RUSHES_ERROR_UNSUPPORTED if there is an offer or an answer already.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_offer(
    connection: *const PeerConnection,
    offer: *mut *const c_char,
) -> Status {
    guard(|| {
        pointer::write(offer, std::ptr::null())?;
        let connection = handle::get(connection)?;
        let text = connection.with(|inner| Ok(inner.peer.offer()?))?;
        pointer::write(offer, connection.keep(text))
    })
}

/// Takes the peer's offer and makes the answer, which belongs to the connection, and is valid until
/// that is closed. Streams are matched with the offer's media in order, by kind. RUSHES_ERROR_ARGUMENT
/// if the offer cannot be read, or nothing of it can be agreed on; otherwise as
/// rushes_peer_connection_offer().
///
/// Once something is agreed on, the peer may offer again: with further addresses, or with other
/// credentials of ICE, with which both ends look for a path again. Streams and keys stay.
/// RUSHES_ERROR_UNSUPPORTED if it changes more than that; the connection then goes on as before. The
/// answer to such an offer is valid until the next call of this function, of
/// rushes_peer_connection_add_fragment or of rushes_peer_connection_offer_restart on the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_answer(
    connection: *const PeerConnection,
    offer: *const c_char,
    answer: *mut *const c_char,
) -> Status {
    guard(|| {
        pointer::write(answer, std::ptr::null())?;
        let connection = handle::get(connection)?;
        let offer = pointer::text(offer)?;
        let text = connection.with(|inner| Ok(inner.peer.answer(offer)?))?;
        pointer::write(answer, connection.keep(text))
    })
}

/// Takes the peer's answer to the offer. RUSHES_ERROR_ARGUMENT if it cannot be read, or does not fit
/// the offer; RUSHES_ERROR_UNSUPPORTED if there is no offer.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_set_answer(
    connection: *const PeerConnection,
    answer: *const c_char,
) -> Status {
    guard(|| {
        let answer = pointer::text(answer)?;
        handle::get(connection)?.with(|inner| Ok(inner.peer.set_answer(answer)?))
    })
}

/// Waits until a path to the peer and the keys are found, at most for `timeout` nanoseconds
/// (RUSHES_FOREVER: until the connection is closed). After RUSHES_TIMEOUT it may be called again;
/// after RUSHES_OK the streams can be opened. RUSHES_ERROR_NET if there is no path,
/// RUSHES_ERROR_KEY if the peer is not the one that its description names.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_connect(
    connection: *const PeerConnection,
    timeout: u64,
) -> Status {
    guard_with(|| {
        let timeout =
            if timeout == u64::MAX { Duration::MAX } else { Duration::from_nanos(timeout) };
        let is_connected = handle::get(connection)?.connect(timeout)?;
        Ok(if is_connected { Status::Ok } else { Status::Timeout })
    })
}

/// Gets what was agreed on about the stream that was added as number `index`. `size` is
/// sizeof(rushes_peer_stream). RUSHES_ERROR_UNSUPPORTED if the peer does not take part in the stream,
/// RUSHES_ERROR_ARGUMENT if fewer streams were added.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_look(
    connection: *const PeerConnection,
    index: usize,
    stream: *mut PeerStream,
    size: usize,
) -> Status {
    guard(|| {
        let connection = handle::get(connection)?;
        let about = connection.with(|inner| Ok(inner.stream(index)?.about))?;
        pointer::write_prefix(stream, size, about)
    })
}

/// Opens the stream that was added as number `index`, once: an ordinary one. Close it with
/// rushes_stream_close(), before the connection. Errors as of rushes_peer_connection_look();
/// RUSHES_ERROR_UNSUPPORTED if it was opened before, too.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_open(
    connection: *const PeerConnection,
    index: usize,
    stream: *mut *mut Stream,
) -> Status {
    guard(|| {
        pointer::write(stream, std::ptr::null_mut())?;
        let opened = handle::get(connection)?.with(|inner| {
            let message = "the stream was opened before";
            let again = || Failure::new(Status::Unsupported, message);
            inner.stream(index)?.stream.take().ok_or_else(again)
        })?;
        pointer::write(stream, handle::insert(Stream::new(opened)?)?)
    })
}

/// Adds an address of the peer that was found after its description was written (RFC 8838): the
/// value of a=candidate. Addresses that cannot be used are left out.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_add_candidate(
    connection: *const PeerConnection,
    candidate: *const c_char,
) -> Status {
    guard(|| {
        let candidate = pointer::text(candidate)?;
        handle::get(connection)?.handle.add_candidate(candidate);
        Ok(())
    })
}

thread_local! {
    /// The latest fragment or further answer that was returned on this thread.
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps a text for the caller, until the next one of this thread.
fn keep_text(text: CString) -> *const c_char {
    // While the thread exits, the thread-local may already be destroyed.
    let kept = TEXT.try_with(|stored| {
        *stored.borrow_mut() = text;
        stored.borrow().as_ptr()
    });
    kept.unwrap_or(c"".as_ptr())
}

/// Takes a fragment of a description (RFC 8840 section 9), as WHIP and WHEP carry them: further
/// addresses of the peer, or new credentials, with which both ends look for a path again.
///
/// After new credentials `*answer` is the fragment that answers them, otherwise NULL. It is valid
/// until the next call of this function, of rushes_peer_connection_answer or of
/// rushes_peer_connection_offer_restart on the same thread. RUSHES_ERROR_ARGUMENT if the fragment
/// cannot be read.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_add_fragment(
    connection: *const PeerConnection,
    fragment: *const c_char,
    answer: *mut *const c_char,
) -> Status {
    guard(|| {
        pointer::write(answer, std::ptr::null())?;
        let fragment = pointer::text(fragment)?;
        let reply = handle::get(connection)?.handle.handle_fragment(fragment)?;
        let Some(reply) = reply else { return Ok(()) };
        pointer::write(answer, keep_text(CString::new(reply).unwrap_or_default()))
    })
}

/// Offers to look for a path again (ICE restart, RFC 8445 section 9): `*offer` is a fragment with new
/// credentials and the addresses of this end, which WHIP and WHEP carry in a PATCH.
///
/// Nothing else changes before rushes_peer_connection_set_restart_answer, so that an offer may be
/// refused or lost; a further one replaces it. The fragment is valid until the next call of this
/// function, of rushes_peer_connection_answer or of rushes_peer_connection_add_fragment on the same
/// thread. RUSHES_ERROR_UNSUPPORTED before offer and answer; if the connection has ended, the error that
/// it has ended with.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_offer_restart(
    connection: *const PeerConnection,
    offer: *mut *const c_char,
) -> Status {
    guard(|| {
        pointer::write(offer, std::ptr::null())?;
        let fragment = handle::get(connection)?.handle.offer_restart()?;
        pointer::write(offer, keep_text(CString::new(fragment).unwrap_or_default()))
    })
}

/// Takes the peer's answer to rushes_peer_connection_offer_restart: both ends look for a path with the
/// new credentials. Keys and streams stay, and media goes on over the old path until a new one is
/// found.
///
/// RUSHES_ERROR_UNSUPPORTED without an offer, or if the answer has no credentials;
/// RUSHES_ERROR_ARGUMENT if it cannot be read. An answer that is refused changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_set_restart_answer(
    connection: *const PeerConnection,
    answer: *const c_char,
) -> Status {
    guard(|| {
        let answer = pointer::text(answer)?;
        Ok(handle::get(connection)?.handle.set_restart_answer(answer)?)
    })
}

/// Gets how long the peer has not answered on the path that is used, in nanoseconds; UINT64_MAX while
/// there is none.
///
/// The peer is asked each 4 s by threads that push, pull or wait. From 10 s on (two unanswered checks
/// take 9 s) a restart is worthwhile; after 30 s the path is given up.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_silence(
    connection: *const PeerConnection,
    silence: *mut u64,
) -> Status {
    guard(|| {
        let time = handle::get(connection)?.handle.silence();
        let nanos =
            time.map_or(u64::MAX, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        pointer::write(silence, nanos)
    })
}

/// Gets whether a path to the peer is found and answers.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_is_connected(
    connection: *const PeerConnection,
    is_connected: *mut bool,
) -> Status {
    guard(|| {
        let connection = handle::get(connection)?;
        pointer::write(is_connected, connection.handle.is_connected())
    })
}

/// Checks that the connection has not ended. If it has, returns the error that it has ended with,
/// which rushes_last_error_message() describes: RUSHES_ERROR_ENDED if the peer has closed it,
/// RUSHES_ERROR_NET if there is no path any more, or RUSHES_ERROR_KEY.
#[unsafe(no_mangle)]
pub extern "C" fn rushes_peer_connection_check(connection: *const PeerConnection) -> Status {
    guard(|| match handle::get(connection)?.handle.ended() {
        Some(error) => Err(rushes::Error::from(error).into()),
        None => Ok(()),
    })
}
