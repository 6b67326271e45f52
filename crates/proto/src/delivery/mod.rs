//! Texture video: what server and client agree on.

pub mod control;
