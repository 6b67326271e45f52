//! WHIP and WHEP: sessions of WebRTC entered over HTTP (RFC 9725), as client and as server.
//!
//! **Not in scope.** Media, and the meaning of offers and answers: they are text here.
#![forbid(unsafe_code)]
