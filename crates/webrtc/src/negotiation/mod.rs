//! Offer and answer: what both ends send and receive (RFC 3264, RFC 9429).
