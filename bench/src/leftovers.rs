//! Cleanup after an interrupted measurement: network namespaces and programs.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exit status of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

/// The namespaces and programs to remove on an interrupt.
static LEFTOVERS: Mutex<BTreeMap<u64, Thing>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
enum Thing {
    Namespace(String),
    Process(u32),
}

/// A registration for removal on an interrupt; without one, the owner removes the thing itself.
#[derive(Debug)]
#[must_use = "it is forgotten when this is dropped"]
pub(crate) struct Leftover(u64);

impl Leftover {
    /// Creates a network namespace.
    pub(crate) fn namespace(name: &str) -> Self {
        Self::new(Thing::Namespace(name.to_owned()))
    }

    /// Creates a program that does not end by itself.
    pub(crate) fn process(id: u32) -> Self {
        Self::new(Thing::Process(id))
    }

    fn new(thing: Thing) -> Self {
        let mut all = lock();
        let number = all.last_key_value().map_or(0, |(last, _)| last + 1);
        all.insert(number, thing);
        Self(number)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        lock().remove(&self.0);
    }
}

/// Removes registered leftovers on Ctrl-C and on termination signals from now on.
pub(crate) fn watch() {
    let outcome = ctrlc::set_handler(|| {
        // The lock is kept, so that nothing is added until the process exits.
        let mut all = lock();
        // Later leftovers may depend on earlier ones.
        while let Some((_, thing)) = all.pop_last() {
            remove(&thing);
        }
        std::process::exit(INTERRUPTED);
    });
    // Fails if the program has its own handler, which must then clean up.
    drop(outcome);
}

fn remove(thing: &Thing) {
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        // Errors cannot be reported here.
        let _ = command.args(args).stdin(Stdio::null()).stderr(Stdio::null()).status();
    };
    match thing {
        Thing::Namespace(name) => run("ip", &["netns", "del", name]),
        Thing::Process(id) => run("kill", &["-KILL", &id.to_string()]),
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<u64, Thing>> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_its_owner_removed_is_forgotten() {
        let first = Leftover::namespace("first");
        let second = Leftover::namespace("second");
        assert_ne!(first.0, second.0);
        drop(first);
        assert!(lock().contains_key(&second.0));
        let number = second.0;
        drop(second);
        assert!(!lock().contains_key(&number));
    }
}
