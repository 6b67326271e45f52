//! Code for other architectures, with the features that all their processors have.

pub(crate) use crate::blocks::blocks_without;
