//! `MSG_ZEROCOPY`: messages that the kernel reads where they lie, and its word of when it has.
//!
//! Who lends gives the memory away ([`Lending::lend`]), so that no safe code can write to it or
//! free it; the [`Ledger`] gives it back when the kernel's word has come. The socket is a duplicate
//! of the caller's, with the same numbers, so that nobody can mistake another for it.
//!
//! The kernel gives each message it borrows the next number. A call that fails may have used one up or
//! not: a message that was made and thrown away (segmentation refused, a firewall) has, one that was
//! refused before it was made (no room, no memory to keep book, an error pending from before) has
//! not. The word of one that was thrown away has come when the call returns. So if there is none,
//! and the error is one of the latter, the number is used again; if there is none and the error is
//! another, it is in doubt, and no message is lent any more.

use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use crate::group::Limits;
use crate::lend::Loan;
use crate::lend::Returns;
use crate::sys::Outbox;
use crate::sys::Parcel;
use crate::sys::Taken;
use crate::sys::address;
use crate::sys::address::Finished;
use crate::sys::ledger::Ledger;
use crate::sys::linux;
use crate::sys::messages::Words;

/// How long a dropped socket waits for the kernel. What has not come back then never does.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// What one socket has lent.
#[derive(Debug)]
pub(crate) struct Lending {
    socket: UdpSocket,
    book: Mutex<Book>,
    works: AtomicBool,
    /// Messages away, as of the last look.
    away: AtomicU64,
    back: AtomicU64,
    copied: AtomicU64,
}

#[derive(Debug)]
struct Book {
    ledger: Ledger,
    words: Words,
}

/// A loan that is being sent. Dropped, it is with the kernel, or back if the kernel has nothing of
/// it.
pub(crate) struct Lent<'a> {
    lending: &'a Lending,
    returns: Returns,
    place: usize,
    loan: Loan,
}

impl Lending {
    /// Lending through `socket`, if the system can.
    pub(crate) fn offer(socket: &UdpSocket) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        linux::offer_zero_copy(&socket)?;
        Ok(Self {
            socket,
            book: Mutex::new(Book { ledger: Ledger::new(), words: Words::new() }),
            works: AtomicBool::new(true),
            away: AtomicU64::new(0),
            back: AtomicU64::new(0),
            copied: AtomicU64::new(0),
        })
    }

    /// Whether it lends, still.
    pub(crate) fn works(&self) -> bool {
        self.works.load(Relaxed)
    }

    /// Whether word of a message is to come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.away.load(Relaxed) > 0
    }

    /// Messages that came back, and those of them that the kernel copied.
    pub(crate) fn settled(&self) -> (u64, u64) {
        (self.back.load(Relaxed), self.copied.load(Relaxed))
    }

    /// Takes a loan, whose messages may be sent then.
    pub(crate) fn lend(&self, loan: Loan, returns: Returns) -> Lent<'_> {
        let place = self.lock().ledger.begin();
        Lent { lending: self, returns, place, loan }
    }

    /// Reads the kernel's word of what it has done with; how many messages.
    pub(crate) fn settle(&self) -> usize {
        self.settle_in(&mut self.lock())
    }

    fn settle_in(&self, book: &mut Book) -> usize {
        let Book { ledger, words } = book;
        let mut settled = 0;
        loop {
            let (read, is_all) = words.read(&self.socket);
            for control in read {
                let Some(finished) = address::decode_finished(control) else { continue };
                let Finished { first, last, copied } = finished;
                match ledger.settle(first, last) {
                    Ok(count) => {
                        settled += count;
                        self.back.fetch_add(count as u64, Relaxed);
                        self.copied.fetch_add(if copied { count as u64 } else { 0 }, Relaxed);
                    }
                    Err(differ) => self.give_up(&differ),
                }
            }
            if is_all {
                break;
            }
        }
        self.away.store(ledger.away() as u64, Relaxed);
        settled
    }

    /// Waits until there is word, or the deadline.
    pub(crate) fn wait(&self, deadline: Instant) -> io::Result<()> {
        linux::wait_word(&self.socket, deadline)
    }

    fn give_up(&self, reason: &impl fmt::Display) {
        if self.works.swap(false, Relaxed) {
            tracing::warn!(%reason, "slabs are not lent to the system any more, but copied");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lending {
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_WAIT;
        while self.is_awaited() {
            self.settle();
            if !self.is_awaited() || Instant::now() >= deadline || self.wait(deadline).is_err() {
                break;
            }
        }
        // What is still away stays in the ledger, whose entries free nothing.
    }
}

impl Lent<'_> {
    /// The memory.
    pub(crate) fn slab(&self) -> &[u8] {
        &self.loan.slab
    }

    /// Lends the first message of the parcel, which lies in the slab; `None` if the kernel will not
    /// have it.
    pub(crate) fn send(
        &self,
        outbox: &mut Outbox,
        parcel: Parcel<'_>,
        limits: Limits,
    ) -> io::Result<Option<Taken>> {
        let (slab, part) = (self.slab().as_ptr_range(), parcel.bytes.as_ptr_range());
        if part.start < slab.start || slab.end < part.end {
            return Ok(None);
        }
        let mut book = self.lending.lock();
        if !book.ledger.note(self.place) {
            self.lending.settle_in(&mut book);
            if !book.ledger.note(self.place) {
                return Ok(None);
            }
        }
        // SAFETY: the octets lie in the slab, which is this loan's own: it is only read while the
        // loan is being sent, and then kept by the ledger, which has just noted the message under
        // the number that the kernel gives it. The ledger lets go of the slab only when the kernel
        // has said that it has done with that number, or here below, where it has not taken it.
        let outcome = unsafe { outbox.lend(&self.lending.socket, parcel, limits) };
        self.lending.away.store(book.ledger.away() as u64, Relaxed);
        match outcome {
            Ok(taken) => Ok(Some(taken)),
            Err(error) => self.cope(&mut book, error),
        }
    }

    /// Finds out whether the kernel has the message in spite of the error.
    fn cope(&self, book: &mut Book, error: io::Error) -> io::Result<Option<Taken>> {
        let code = error.raw_os_error();
        self.lending.settle_in(book);
        if book.ledger.is_last_open() {
            if let Some(libc::ENOBUFS | libc::EAGAIN | libc::ECONNREFUSED) = code {
                book.ledger.take_back();
                self.lending.away.store(book.ledger.away() as u64, Relaxed);
            } else {
                book.ledger.doubt();
                self.lending.give_up(&error);
            }
        }
        // The kernel's own book is full, or the process may hold no more pages.
        if code == Some(libc::ENOBUFS) { Ok(None) } else { Err(error) }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let loan = std::mem::take(&mut self.loan);
        self.lending.lock().ledger.seal(self.place, loan, self.returns.clone());
    }
}
