//! What would stay behind when a measurement is interrupted: namespaces, programs.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Exit status of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// What there is to be removed now.
static LEFTOVERS: Mutex<BTreeMap<u64, Thing>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
enum Thing {
    Namespace(String),
    Process(u32),
}

/// Something whose owner removes it; if it is interrupted before, it is removed for it.
#[derive(Debug)]
#[must_use = "it is forgotten when this is dropped"]
pub(crate) struct Leftover(u64);

impl Leftover {
    /// A network namespace.
    pub(crate) fn namespace(name: &str) -> Self {
        Self::new(Thing::Namespace(name.to_owned()))
    }

    /// A program that would not end by itself.
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

/// From now on Ctrl-C, and being told to end, removes what is left over.
pub(crate) fn watch() {
    let outcome = ctrlc::set_handler(|| {
        // Whoever wants to add something now waits for the end.
        let mut all = lock();
        // What came last may stand on what came first.
        while let Some((_, thing)) = all.pop_last() {
            remove(&thing);
        }
        std::process::exit(INTERRUPTED);
    });
    // A program that has a handler of its own cleans up by itself, or not.
    drop(outcome);
}

fn remove(thing: &Thing) {
    let run = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        // There is nobody to tell of what cannot be removed.
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
