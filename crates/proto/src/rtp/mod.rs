//! RTP packets (RFC 3550 section 5) and their header extensions (RFC 8285).
