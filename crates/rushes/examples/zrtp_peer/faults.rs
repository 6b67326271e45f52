//! Faults injected on purpose.

use std::collections::BTreeMap;

use rushes_netsim::Path;

/// Number of further messages of each type that are affected; `None` means all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, Option<u32>>);

impl Counts {
    /// Adds faults in the form `TYPE[:N],...`.
    pub(crate) fn add(&mut self, list: &str) -> Result<(), String> {
        for item in list.split(',') {
            let (kind, count) = match item.split_once(':') {
                Some((kind, count)) => {
                    let count = count.parse().map_err(|_| format!("{count} is not a count"))?;
                    (kind, Some(count))
                }
                None => (item, None),
            };
            self.0.insert(kind.to_owned(), count);
        }
        Ok(())
    }

    /// Counts this message; returns whether it is affected.
    pub(crate) fn take(&mut self, kind: &str) -> bool {
        match self.0.get_mut(kind) {
            Some(None) => true,
            Some(Some(left)) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

/// The faults of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) drop: Counts,
    pub(crate) drop_received: Counts,
    pub(crate) repeat: Counts,
    pub(crate) corrupt: Counts,
    /// The simulated path of sent packets.
    pub(crate) path: Path,
    /// The seed of the path's random numbers.
    pub(crate) seed: u64,
}
