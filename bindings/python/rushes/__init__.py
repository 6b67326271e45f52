"""Video and audio between machines in real time, over RTP and as texture video.

Most programs need only ``Context`` → ``Session`` → ``Stream``:

>>> import rushes
>>> session = rushes.Context().session("127.0.0.1")
>>> with session.stream("h265") as monitor:
...     port = monitor.local_address[1]
...     with session.stream("h265", remote_port=port) as camera:
...         camera.push_frame(b"\\0\\0\\0\\x01\\x26\\x01\\x80first")
...         camera.push_frame(b"\\0\\0\\0\\x01\\x02\\x01\\x80other")
...     frame = monitor.pull_frame(timeout=1.0)
>>> bytes(frame)[4:]
b'&\\x01\\x80first'

Frames are buffers: neither received frames nor sent ``bytes`` are copied. Waiting and sending
release the interpreter lock. All exceptions of the library derive from ``rushes.Error``.
"""

import atexit as _atexit
import logging as _logging

from rushes._aio import AsyncFrames
from rushes._rushes import (
    Canvas,
    CircuitBreakerError,
    ClosedError,
    ConfigError,
    Context,
    Error,
    Event,
    ExportedMemory,
    FileError,
    Frame,
    FrameError,
    Frames,
    Gpu,
    GpuError,
    GpuFrame,
    MasterKey,
    MediaReader,
    MediaWriter,
    NetError,
    Octets,
    Opening,
    Peer,
    PeerConnection,
    PeerStream,
    Pictures,
    Poller,
    ReceiveStatistics,
    RenderedFrames,
    Rtcp,
    RtcpError,
    RtcpStatistics,
    Sas,
    Security,
    SecurityError,
    SendError,
    SendStatistics,
    SentTextureFrame,
    Session,
    SocketCounters,
    SourceStatistics,
    StateError,
    Statistics,
    Stream,
    TextureClient,
    TextureClientStatistics,
    TextureError,
    TextureFrame,
    TextureServer,
    TextureServerCounts,
    ZrtpError,
    __version__,
    close_all,
    encode_texture,
    push_many,
    texture_formats,
)
from rushes._types import (
    Format,
    RawVideo,
    StreamOptions,
    TextureClientOptions,
    TextureServerOptions,
)

__all__ = [
    "AsyncFrames",
    "Canvas",
    "CircuitBreakerError",
    "ClosedError",
    "ConfigError",
    "Context",
    "Error",
    "Event",
    "ExportedMemory",
    "FileError",
    "Format",
    "Frame",
    "FrameError",
    "Frames",
    "Gpu",
    "GpuError",
    "GpuFrame",
    "MasterKey",
    "MediaReader",
    "MediaWriter",
    "NetError",
    "Octets",
    "Opening",
    "Peer",
    "PeerConnection",
    "PeerStream",
    "Pictures",
    "Poller",
    "RawVideo",
    "ReceiveStatistics",
    "RenderedFrames",
    "Rtcp",
    "RtcpError",
    "RtcpStatistics",
    "Sas",
    "Security",
    "SecurityError",
    "SendError",
    "SendStatistics",
    "SentTextureFrame",
    "Session",
    "SocketCounters",
    "SourceStatistics",
    "StateError",
    "Statistics",
    "Stream",
    "StreamOptions",
    "TextureClient",
    "TextureClientOptions",
    "TextureClientStatistics",
    "TextureError",
    "TextureFrame",
    "TextureServer",
    "TextureServerCounts",
    "TextureServerOptions",
    "ZrtpError",
    "__version__",
    "close_all",
    "encode_texture",
    "push_many",
    "texture_formats",
]

# As usual for a library, nothing is printed unless the application configures logging.
_logging.getLogger(__name__).addHandler(_logging.NullHandler())

# Threads of the library must not call the interpreter while it shuts down.
_atexit.register(close_all)
