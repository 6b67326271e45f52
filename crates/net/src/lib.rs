//! Batched UDP sockets.
