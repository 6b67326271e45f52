//! Other architectures: what every one of their processors has.

pub(crate) use crate::blocks::blocks_without;
