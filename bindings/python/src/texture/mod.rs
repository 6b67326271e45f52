//! Texture video.

mod pool;
pub(crate) mod stats;

pub(crate) use pool::{Pool, Pooled};
