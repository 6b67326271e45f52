//! The start of a stream's ZRTP hash chain.

use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::lock::lock;

/// H0, the random start of a stream's hash chain: fixed when the stream is described, used once.
#[derive(Clone, Default)]
pub(crate) struct ChainStart(Arc<Mutex<Option<[u8; 32]>>>);

impl ChainStart {
    pub(crate) fn peek(&self) -> Result<[u8; 32], Error> {
        let mut start = lock(&self.0);
        match *start {
            Some(h0) => Ok(h0),
            None => Ok(*start.insert(random()?)),
        }
    }

    /// Removes and returns the start, or a new one if none is fixed.
    pub(crate) fn take(&self) -> Result<[u8; 32], Error> {
        let taken = lock(&self.0).take();
        taken.map_or_else(random, Ok)
    }
}

impl std::fmt::Debug for ChainStart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChainStart(secret)")
    }
}

fn random() -> Result<[u8; 32], Error> {
    let mut h0 = [0; 32];
    getrandom::fill(&mut h0).map_err(|error| Error::Random(error.to_string()))?;
    Ok(h0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_chain_is_used_once() {
        let start = ChainStart::default();
        let known = start.peek().unwrap();
        assert_eq!(start.clone().take().unwrap(), known);
        assert_ne!(start.take().unwrap(), known);
    }
}
