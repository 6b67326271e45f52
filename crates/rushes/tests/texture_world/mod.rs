//! What trials of texture video share: pictures that never repeat, a sink that knows what must
//! come, and a network that is not to be trusted.
#![allow(dead_code, reason = "each trial uses a part")]

pub(crate) mod noise;
pub(crate) mod relay;
pub(crate) mod stranger;
pub(crate) mod witness;
