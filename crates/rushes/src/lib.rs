//! Rushes.
