//! Which pair of addresses carries the media (ICE, RFC 8445).
