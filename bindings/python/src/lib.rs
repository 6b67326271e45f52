//! The Python package `rushes`: the library's types as Python classes.
//!
//! Each file corresponds to the library's file of the same name. Waiting and sending release the
//! interpreter lock, and no thread that holds it waits for a lock of the library. Otherwise a hook
//! that runs under one of the two locks and needs the other could deadlock.
#![deny(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "Python passes arguments by value")]
#![allow(clippy::unused_self, reason = "methods of Python classes")]

mod aio;
mod buffer;
mod context;
mod error;
mod events;
mod file;
mod frame;
mod input;
mod integer;
mod log;
mod open;
mod options;
mod peer;
mod poller;
mod push_many;
mod rtcp;
mod security;
mod session;
mod stats;
mod stream;
mod texture;
mod wait;
mod zrtp;

/// The names that `rushes/__init__.py` exports.
#[pyo3::pymodule]
mod _rushes {
    #[pymodule_export]
    use crate::aio::Taker;
    #[pymodule_export]
    use crate::buffer::Octets;
    #[pymodule_export]
    use crate::context::Context;
    #[pymodule_export]
    use crate::error::{
        CircuitBreakerError, ClosedError, ConfigError, Error, FileError, FrameError, GpuError,
        NetError, RtcpError, SecurityError, SendError, StateError, TextureError, ZrtpError,
    };
    #[pymodule_export]
    use crate::events::Event;
    #[pymodule_export]
    use crate::file::{MediaReader, MediaWriter};
    #[pymodule_export]
    use crate::frame::Frame;
    #[pymodule_export]
    use crate::open::close_all;
    #[pymodule_export]
    use crate::peer::{PeerConnection, PeerStream};
    #[pymodule_export]
    use crate::poller::Poller;
    #[pymodule_export]
    use crate::push_many::push_many;
    #[pymodule_export]
    use crate::rtcp::{Peer, Rtcp};
    #[pymodule_export]
    use crate::security::{MasterKey, Security};
    #[pymodule_export]
    use crate::session::Session;
    #[pymodule_export]
    use crate::stats::{
        ReceiveStatistics, RtcpStatistics, SendStatistics, SocketCounters, SourceStatistics,
        Statistics,
    };
    #[pymodule_export]
    use crate::stream::{Frames, Stream};
    #[pymodule_export]
    use crate::texture::{
        Canvas, ExportedMemory, Gpu, GpuFrame, Pictures, RenderedFrames, SentTextureFrame,
        TextureClient, TextureClientStatistics, TextureFrame, TextureServer, TextureServerCounts,
        encode_texture, texture_formats,
    };
    #[pymodule_export]
    use crate::zrtp::{Opening, Sas};

    /// The library's version.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "as Python names it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
