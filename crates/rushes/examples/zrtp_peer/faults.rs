//! What happens to packets on their way, on purpose.

use std::collections::BTreeMap;
use std::time::Duration;

/// How many more messages of each type meet a fault; `None` for all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(BTreeMap<String, Option<u32>>);

impl Counts {
    /// Adds `TYPE[:N],...`.
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

    /// Whether a message of this type meets the fault now.
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
    /// Sent packets that are lost, in hundredths.
    pub(crate) loss: f64,
    pub(crate) latency: Duration,
    /// The longest further delay of a packet.
    pub(crate) reorder: Duration,
    random: u64,
}

impl Faults {
    /// Begins another sequence of random numbers (splitmix64).
    pub(crate) fn seed(&mut self, seed: u64) {
        self.random = seed;
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    /// Whether the packet to be sent next is lost.
    pub(crate) fn loses(&mut self) -> bool {
        self.loss > 0.0 && (self.below(1_000_000) as f64) < self.loss * 10_000.0
    }

    /// How long the packet to be sent next takes; `None` if it goes at once.
    pub(crate) fn delay(&mut self) -> Option<Duration> {
        if self.latency.is_zero() && self.reorder.is_zero() {
            return None;
        }
        let further = self.below(self.reorder.as_micros() as u64 + 1);
        Some(self.latency + Duration::from_micros(further))
    }
}
