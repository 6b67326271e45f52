//! The sessions that clients opened over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::endpoint::{Endpoint, OpenRequest, Reason, Refusal};
use crate::Kind;

/// Sessions by their names, at most a fixed number.
pub(super) struct Sessions {
    endpoint: Arc<dyn Endpoint>,
    max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<String, Arc<Entry>>,
    /// Sessions that the endpoint is about to open.
    opening: usize,
    /// The server ends: nothing opens any more.
    is_over: bool,
}

struct Entry {
    kind: Kind,
    /// The entity-tag of the current ICE session; locked while the endpoint takes a fragment.
    tag: Mutex<String>,
}

/// The result of a new session.
pub(super) struct Created {
    pub(super) id: String,
    pub(super) answer: String,
    pub(super) tag: String,
}

/// The result of a PATCH request.
pub(super) enum Patched {
    Candidates,
    Restarted { fragment: String, tag: String },
}

/// Why a PATCH request is not granted.
pub(super) enum PatchError {
    /// The entity-tag is missing.
    Required,
    /// The entity-tag is that of an earlier ICE session.
    Outdated,
    Refused(Refusal),
}

impl From<Refusal> for PatchError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Sessions {
    pub(super) fn new(endpoint: Arc<dyn Endpoint>, max: usize) -> Self {
        Self { endpoint, max, table: Mutex::default() }
    }

    /// Opens a session; `request.id` is ignored and set here.
    pub(super) fn open(&self, request: OpenRequest<'_>) -> Result<Created, Refusal> {
        let place = self.reserve()?;
        let id = random()?;
        let answer = self.endpoint.open(&OpenRequest { id: &id, ..request })?;
        let tag = match random() {
            Ok(tag) => tag,
            Err(refusal) => {
                self.endpoint.close(&id);
                return Err(refusal);
            }
        };
        let entry = Entry { kind: request.kind, tag: Mutex::new(tag.clone()) };
        let mut table = self.table();
        if table.is_over {
            drop(table);
            self.endpoint.close(&id);
            return Err(ending());
        }
        table.open.insert(id.clone(), Arc::new(entry));
        drop(table);
        drop(place);
        Ok(Created { id, answer, tag })
    }

    /// Takes a fragment for a session, if `condition`, the value of `If-Match`, holds.
    pub(super) fn patch(
        &self,
        kind: Kind,
        id: &str,
        condition: Option<&str>,
        fragment: &str,
    ) -> Result<Patched, PatchError> {
        let entry = self.find(kind, id).ok_or_else(unknown)?;
        let mut tag = lock(&entry.tag);
        if !holds(condition.ok_or(PatchError::Required)?, &tag) {
            return Err(PatchError::Outdated);
        }
        let Some(fragment) = self.endpoint.patch(id, fragment)? else {
            return Ok(Patched::Candidates);
        };
        *tag = random()?;
        Ok(Patched::Restarted { fragment, tag: tag.clone() })
    }

    /// Ends a session; returns whether there was one.
    pub(super) fn close(&self, kind: Kind, id: &str) -> bool {
        if self.find(kind, id).is_none() || self.table().open.remove(id).is_none() {
            return false;
        }
        self.endpoint.close(id);
        true
    }

    pub(super) fn has(&self, kind: Kind, id: &str) -> bool {
        self.find(kind, id).is_some()
    }

    /// Ends all sessions, and those about to open as soon as they do.
    pub(super) fn end(&self) {
        let mut table = self.table();
        table.is_over = true;
        let open = std::mem::take(&mut table.open);
        drop(table);
        for id in open.into_keys() {
            self.endpoint.close(&id);
        }
    }

    fn find(&self, kind: Kind, id: &str) -> Option<Arc<Entry>> {
        self.table().open.get(id).filter(|entry| entry.kind == kind).cloned()
    }

    fn reserve(&self) -> Result<Place<'_>, Refusal> {
        let mut table = self.table();
        if table.is_over {
            return Err(ending());
        }
        table.open.retain(|id, _| self.endpoint.is_open(id));
        if table.open.len() + table.opening >= self.max {
            let text = format!("all {} sessions of this server are in use; try again", self.max);
            return Err(Refusal::new(Reason::Busy, text));
        }
        table.opening += 1;
        Ok(Place(self))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

/// A session about to open.
struct Place<'a>(&'a Sessions);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.table().opening -= 1;
    }
}

/// Locks; a panic of the endpoint in another request leaves nothing half changed here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Evaluates `If-Match` (RFC 9110 section 13.1.1) by strong comparison.
///
/// RFC 9725 shows the asterisk within quotation marks, too.
fn holds(condition: &str, tag: &str) -> bool {
    condition.split(',').map(str::trim).any(|one| {
        let inner = one.strip_prefix('"').and_then(|one| one.strip_suffix('"'));
        one == "*" || inner == Some("*") || inner == Some(tag)
    })
}

/// 128 random bits as 32 hexadecimal digits.
fn random() -> Result<String, Refusal> {
    let mut octets = [0; 16];
    let failed = |_| Refusal::new(Reason::Internal, "the system has no random numbers");
    getrandom::fill(&mut octets).map_err(failed)?;
    Ok(format!("{:032x}", u128::from_be_bytes(octets)))
}

pub(super) fn unknown() -> Refusal {
    Refusal::new(Reason::NotFound, "there is no such session; it may have ended")
}

fn ending() -> Refusal {
    Refusal::new(Reason::Busy, "the server is ending")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_match_is_compared_strongly() {
        for condition in ["*", "\"*\"", "\"abc\"", "\"x\", \"abc\"", " \"abc\" "] {
            assert!(holds(condition, "abc"), "{condition}");
        }
        for condition in ["", "abc", "W/\"abc\"", "\"ab\"", "\"", "\"\"", "\"x\""] {
            assert!(!holds(condition, "abc"), "{condition}");
        }
    }

    #[test]
    fn names_of_sessions_do_not_repeat() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one != other && one.len() == 32);
    }
}
