//! Streams: the straight paths of a packet out and in.
