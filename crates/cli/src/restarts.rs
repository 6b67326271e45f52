//! Restarts of ICE over HTTP, when a server of WHIP or WHEP no longer answers on the path.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::Context as _;
use rushes::peer::PeerHandle;
use rushes_whip::{ClientError, Session};

use crate::progress::note;

/// How long a server may be silent on the path: two checks and their repetitions take 9 seconds.
const SILENCE: Duration = Duration::from_secs(10);
/// Interval between looks at the path, and between restarts.
const INTERVAL: Duration = Duration::from_secs(5);
/// Interval between looks for addresses of this end that servers have told since a restart.
const LATE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of restarts while the server does not answer.
const ATTEMPTS_MAX: u32 = 12;

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
            while wait(&stopped, &connection, &mut session) {
                let is_silent = connection.silence().is_none_or(|silence| silence >= SILENCE);
                match (is_silent, attempts) {
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

/// Waits for the next look at the path, and sends late addresses meanwhile. Returns `false` at the end.
fn wait(stopped: &Receiver<()>, connection: &PeerHandle, session: &mut Session) -> bool {
    for _ in 0..INTERVAL.as_millis() / LATE_INTERVAL.as_millis() {
        if stopped.recv_timeout(LATE_INTERVAL) != Err(RecvTimeoutError::Timeout)
            || connection.ended().is_some()
        {
            return false;
        }
        if let Some(late) = connection.late_candidates()
            && let Err(error) = session.patch(&late)
        {
            // The server may find the address itself, when it is reached from there.
            tracing::debug!(%error, "the server does not take an address");
        }
    }
    true
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
