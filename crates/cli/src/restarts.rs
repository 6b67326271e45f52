//! Restarts of ICE over HTTP, when a server of WHIP or WHEP no longer answers on the path.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rushes::peer::PeerHandle;
use rushes_whip::{ClientError, Session};

use crate::progress::note;

/// How long a server may be silent on the path: two checks and their repetitions take 9 seconds.
const SILENCE: Duration = Duration::from_secs(10);
/// Interval between looks at the path, and between restarts.
const INTERVAL: Duration = Duration::from_secs(5);
/// Interval between looks for addresses of this end that servers have reported since a restart.
const LATE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of restarts while the server does not answer.
const ATTEMPTS_MAX: u32 = 12;
/// Maximum number of requests that send the server the same addresses.
const REQUESTS_MAX: u32 = 5;

/// A thread that restarts ICE where that helps. It ends when this is dropped, after at most one request.
pub(crate) struct Restarts {
    _stop: SyncSender<()>,
}

impl Restarts {
    /// Watches the path of `connection`, which was entered by `session`.
    pub(crate) fn start(connection: PeerHandle, mut session: Session) -> anyhow::Result<Self> {
        let (stop, stopped) = sync_channel::<()>(0);
        let run = move || {
            let mut attempts = 0;
            let mut late = Late::default();
            while wait(&stopped, &connection, &mut session, attempts, &mut late) {
                match (is_silent(&connection), attempts) {
                    (false, 0) | (true, ATTEMPTS_MAX) => continue,
                    (false, _) => {
                        note!("the server answers again");
                        attempts = 0;
                        continue;
                    }
                    (true, 0) => note!("the server does not answer: looking for another path"),
                    (true, _) => {}
                }
                attempts += 1;
                // The restart sends all addresses.
                late = Late::default();
                if let Err(error) = restart(&connection, &mut session) {
                    if stopped.try_recv() == Err(TryRecvError::Empty) {
                        note!("cannot look for another path: {error:#}");
                    }
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("rushes-restarts".into());
        thread.spawn(run).context("cannot start a thread")?;
        Ok(Self { _stop: stop })
    }
}

/// Returns whether the server does not answer on the path, or there is none.
fn is_silent(connection: &PeerHandle) -> bool {
    connection.silence().is_none_or(|silence| silence >= SILENCE)
}

/// Waits for the next look at the path, and sends late addresses meanwhile. Returns `false` at the end.
fn wait(
    stopped: &Receiver<()>,
    connection: &PeerHandle,
    session: &mut Session,
    attempts: u32,
    late: &mut Late,
) -> bool {
    let end = Instant::now() + INTERVAL;
    while Instant::now() < end {
        if stopped.recv_timeout(LATE_INTERVAL) != Err(RecvTimeoutError::Timeout)
            || connection.ended().is_some()
        {
            return false;
        }
        // Before the first restart of a silence: it sends all addresses that are known by then.
        if attempts > 0 || !is_silent(connection) {
            late.send(connection.late_candidates(), |fragment| session.patch(fragment).map(|_| ()));
        }
    }
    true
}

/// Addresses of this end that the server does not know yet, as the fragments of their requests: the oldest first.
#[derive(Default)]
struct Late {
    fragments: VecDeque<String>,
    /// How often the first of them was sent.
    requests: u32,
}

impl Late {
    /// Sends the oldest fragment, and further ones if that succeeds; `fresh` is a new one. A request that fails is
    /// repeated at the next call, in all at most five times.
    fn send(
        &mut self,
        fresh: Option<String>,
        mut patch: impl FnMut(&str) -> Result<(), ClientError>,
    ) {
        self.fragments.extend(fresh);
        while let Some(fragment) = self.fragments.front() {
            let outcome = patch(fragment);
            self.requests += 1;
            let is_passing = outcome.as_ref().is_err_and(is_passing);
            if let Err(error) = &outcome {
                // The server may find the address itself, when it is reached from there.
                tracing::debug!(%error, "the server does not take an address");
            }
            if is_passing && self.requests < REQUESTS_MAX {
                return;
            }
            self.fragments.pop_front();
            self.requests = 0;
            if is_passing {
                return;
            }
        }
    }
}

/// Restarts ICE. Fails if it is of no use to try again.
fn restart(connection: &PeerHandle, session: &mut Session) -> anyhow::Result<()> {
    let outcome = match session.restart(&connection.offer_restart()?) {
        Ok(answer) => connection.set_restart_answer(&answer).context("the server's answer"),
        Err(error) if is_passing(&error) => Ok(()),
        Err(error) => Err(error.into()),
    };
    // A connection that has ended meanwhile says so itself.
    outcome.or_else(|error| if connection.ended().is_some() { Ok(()) } else { Err(error) })
}

/// Returns whether an error may be that of a network that is not there for a while.
fn is_passing(error: &ClientError) -> bool {
    use ClientError::{Busy, Connect, Http, Start, Timeout, Tls};
    matches!(error, Connect { .. } | Tls { .. } | Http { .. } | Timeout(_) | Start(_) | Busy { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends addresses; returns what was sent. The requests have these outcomes, and fail after them.
    fn sent(late: &mut Late, fresh: Option<&str>, outcomes: &[bool]) -> Vec<String> {
        let mut bodies = Vec::new();
        late.send(fresh.map(str::to_owned), |fragment| {
            bodies.push(fragment.to_owned());
            match outcomes.get(bodies.len() - 1) {
                Some(true) => Ok(()),
                _ => Err(ClientError::Timeout(INTERVAL)),
            }
        });
        bodies
    }

    #[test]
    fn an_address_that_could_not_be_sent_is_sent_again() {
        let mut late = Late::default();
        assert_eq!(sent(&mut late, Some("a"), &[true]), ["a"]);
        assert_eq!(sent(&mut late, None, &[]), [""; 0]);
        assert_eq!(sent(&mut late, Some("b"), &[false]), ["b"]);
        assert_eq!(sent(&mut late, Some("c"), &[false]), ["b"], "one request that fails is enough");
        assert_eq!(sent(&mut late, None, &[true, true]), ["b", "c"]);
        assert_eq!(sent(&mut late, None, &[]), [""; 0]);
    }

    #[test]
    fn an_address_is_sent_five_times_at_most() {
        let mut late = Late::default();
        for _ in 0..5 {
            assert_eq!(sent(&mut late, None, &[]).len(), 0);
        }
        assert_eq!(sent(&mut late, Some("a"), &[]), ["a"]);
        assert_eq!(sent(&mut late, Some("b"), &[]), ["a"]);
        for fragment in ["a", "a", "a", "b", "b", "b", "b", "b"] {
            assert_eq!(sent(&mut late, None, &[]), [fragment]);
        }
        assert_eq!(sent(&mut late, None, &[]), [""; 0]);
    }

    #[test]
    fn a_server_that_takes_no_addresses_is_asked_once_for_each() {
        let mut late = Late::default();
        let mut sent = 0;
        late.send(Some("a".to_owned()), |_| {
            sent += 1;
            Err(ClientError::Unsupported(405))
        });
        assert_eq!((sent, late.fragments.len()), (1, 0));
    }
}
