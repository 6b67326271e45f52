"""Types for annotations: settings, and strings with a few allowed values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from rushes._rushes import Pictures, RenderedFrames, Security

__all__ = [
    "Address",
    "AddressLike",
    "BytesLike",
    "Format",
    "HasArray",
    "HasBuffer",
    "MulticastOptions",
    "Rate",
    "ReportBlock",
    "SenderReport",
    "Source",
    "StreamOptions",
    "TextureClientOptions",
    "TextureServerOptions",
    "Timing",
    "Transport",
]


class HasBuffer(Protocol):
    """An object that exports its octets as a buffer."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


class HasArray(Protocol):
    """An array, whose annotations do not declare its buffer before Python 3.12."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


#: Octets: ``bytes``, ``bytearray``, ``memoryview``, a received frame, a contiguous array.
BytesLike: TypeAlias = HasBuffer | HasArray
#: A host and a port.
Address: TypeAlias = tuple[str, int]
#: A host and a port, also as one text: ``"localhost:7000"``, ``"[::1]:7000"``.
AddressLike: TypeAlias = Address | str
#: The payload format of a stream.
Format: TypeAlias = Literal[
    "h264",
    "h265",
    "h266",
    "vp8",
    "vp9",
    "av1",
    "opus",
    "l16",
    "l24",
    "pcmu",
    "pcma",
    "klv",
    "generic",
    "uncompressed",
]
#: Uncompressed video: width, height, sampling ("RGB", "YCbCr-4:2:2", ...), depth, and how lines are
#: scanned, by default progressive.
RawVideo: TypeAlias = (
    tuple[int, int, str, int]
    | tuple[int, int, str, int, Literal["progressive", "interlaced", "interlaced-by-field"]]
)
#: Frames per second: 60, ``Fraction(60000, 1001)``, 59.94.
Rate: TypeAlias = int | float | Fraction
#: The transport of tiles.
Transport: TypeAlias = Literal["udp", "tcp", "rtp", "multicast"]
#: When pictures are taken from a source.
Timing: TypeAlias = Literal["live", "every-frame", "flat-out"]
#: The source of a texture server's pictures.
Source: TypeAlias = "str | os.PathLike[str] | Pictures | RenderedFrames"


class MulticastOptions(TypedDict, total=False):
    """Options for joining a multicast group and sending to it."""

    interface: str
    ttl: int
    loop_back: bool
    sources: Sequence[str]


class StreamOptions(TypedDict, total=False):
    """Settings of a stream; times in seconds, sizes in octets, rates in bits per second."""

    local_port: int
    remote_port: int
    also_to: Sequence[tuple[str, int]]
    payload_type: int
    ssrc: int
    remote_ssrc: int
    only_from: str | tuple[str, int]
    clock_rate: int
    channels: int
    packet_time: float
    extensions: Mapping[str, int]
    extmap_allow_mixed: bool
    mid: str
    rid: str
    mtu: int
    socket_buffer: int
    frame_rate: Rate
    pacing: bool
    pacing_share: float
    pacing_rate: int
    burst: tuple[int, float]
    padding_limit: int
    delivery: Literal["access-unit", "unit"]
    framing: Literal["annex-b", "length-prefixed"]
    frame_len_max: int
    raw_video: RawVideo
    incomplete_frames: bool
    max_don_diff: int
    depack_buf_nalus: int
    depack_buf_bytes: int
    reorder_time: float
    latency: float
    memory: int
    reorder_window: tuple[int, int]
    probation: int
    sources: tuple[int, float]
    spin: float
    send_timeout: float
    first_packet: tuple[int, int]
    send_path: Literal["auto", "gso", "sendmmsg", "single"]
    receive_path: Literal["auto", "gro", "recvmmsg", "single"]
    dscp: int
    interface: str
    multicast: MulticastOptions
    keep_alive: float
    rtcp: bool
    rtcp_mux: bool
    rtcp_local_port: int
    rtcp_remote_port: int
    session_bandwidth: int
    feedback: bool
    reduced_size: bool
    describe: Sequence[tuple[str, str]]
    recovery: Literal["off", "on", "verbatim"] | int
    rtx_ssrc: int
    remote_rtx_ssrc: int
    fec: (
        Literal["receive", "auto"]
        | int
        | tuple[Literal["receive", "auto"] | int, Literal["flexfec", "flexfec-03", "ulpfec"]]
    )
    report_arrivals: bool
    report_transport_wide: bool
    rate_control: tuple[int, int, int] | tuple[int, int, int, Literal["l4s", "classic"]]
    rate_priority: int
    circuit_breakers: bool
    history: int
    security: Security | None


class TextureServerOptions(TypedDict, total=False):
    """Settings of a texture server."""

    format: str
    quality: Literal["fast", "high"]
    transport: Transport
    units: int
    payload: int
    in_flight: int
    pacing: bool
    pacing_share: float
    pacing_rate: int
    burst: tuple[int, float]
    adaptation: Literal["off", "format", "format-and-rate"]
    recovery: bool
    fec: Literal["off", "auto"] | int
    packing: bool
    scaling: bool
    multicast: str | None
    colour: tuple[int, int, int, int] | None
    clients_max: int
    clients_per_host_max: int
    timing: Timing
    loop: bool
    security: Security | None


class TextureClientOptions(TypedDict, total=False):
    """Settings of a texture client; times in seconds."""

    formats: Iterable[str]
    format: str
    transport: Transport
    units: int
    payload: int
    rate: Rate
    size_max: tuple[int, int]
    frame_bytes_max: int
    slots: int
    recovery: bool
    packing: bool
    deadline_min: float
    deadline_max: float
    connect_timeout: float
    security: Security | None


class SenderReport(TypedDict):
    """A sender report: the sender's clocks at one instant, and its counters."""

    wall_clock: float
    timestamp: int
    packets: int
    octets: int


class ReportBlock(TypedDict):
    """A receiver's report on our media."""

    ssrc: int
    fraction_lost: float
    cumulative_lost: int
    highest: int
    jitter: int
