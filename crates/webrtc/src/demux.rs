//! Which protocol a datagram on the media's port is of (RFC 7983).
