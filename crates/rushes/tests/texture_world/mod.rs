//! Shared by the trials of texture video: pictures that never repeat, a sink that checks every
//! octet, and an unreliable network.
#![allow(dead_code, reason = "each trial uses a part")]

pub(crate) mod changing;
pub(crate) mod noise;
pub(crate) mod relay;
pub(crate) mod stranger;
pub(crate) mod witness;
