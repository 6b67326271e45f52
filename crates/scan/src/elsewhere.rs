//! Other architectures: code for the features that all their processors have.

pub(crate) use crate::blocks::blocks_without;
