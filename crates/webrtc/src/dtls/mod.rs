//! Keys for SRTP from a DTLS handshake on the media's port (RFC 5763, RFC 5764, RFC 8842).
