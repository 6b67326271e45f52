"""Fixtures: pairs of streams, free ports, and the path of the program `rushes`."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import rushes

ROOT = Path(__file__).resolve().parents[3]
MEDIA = ROOT / "vectors" / "media"

#: The time limit for expected events, in seconds: far longer than they take.
TIME_LIMIT = 20.0

#: A NAL unit of H.265 that begins an access unit, with its start code.
SLICE = b"\0\0\0\x01\x26\x01\x80"

Pair = tuple[rushes.Stream, rushes.Stream]


def access_unit(octets: bytes) -> bytes:
    """An access unit of H.265 with one NAL unit."""
    return SLICE + octets.replace(b"\0", b"\1") + b"\x80"


def eventually(condition: Callable[[], bool]) -> None:
    """Waits until another thread makes a condition true."""
    deadline = time.monotonic() + TIME_LIMIT
    while not condition():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.005)


def nal_units(octets: bytes | rushes.Frame) -> list[bytes]:
    """The octets between start codes, which may have three octets or four."""
    return re.split(rb"\x00*\x00\x00\x01", bytes(octets))[1:]


@pytest.fixture
def session() -> Iterator[rushes.Session]:
    with rushes.Context().session("127.0.0.1") as session:
        yield session


@pytest.fixture
def pair(session: rushes.Session) -> Iterator[Callable[..., Pair]]:
    """Makes a stream that receives and one that sends to it."""
    with ExitStack() as stack:

        def make(format: str = "h265", **options: object) -> Pair:
            # Without probation the first frame is delivered at once.
            settings = {"probation": 1, **options}
            receiver = session.stream(format, **settings)  # type: ignore[arg-type]
            stack.enter_context(receiver)
            settings["remote_port"] = receiver.local_address[1]
            sender = session.stream(format, **settings)  # type: ignore[arg-type]
            stack.enter_context(sender)
            return receiver, sender

        yield make


@pytest.fixture
def free_port() -> int:
    """An even port with a free one above it."""
    for _ in range(64):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as media:
            media.bind(("127.0.0.1", 0))
            port = int(media.getsockname()[1])
            if port % 2 == 1:
                continue
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                try:
                    control.bind(("127.0.0.1", port + 1))
                except OSError:
                    continue
                return port
    pytest.fail("there is no free pair of ports")


@pytest.fixture
def program() -> Path:
    """The program `rushes`, which RUSHES_PROGRAM names."""
    named = os.environ.get("RUSHES_PROGRAM")
    if named and Path(named).is_file():
        return Path(named)
    if os.environ.get("RUSHES_INTEROP") == "require":
        pytest.fail("RUSHES_PROGRAM does not name the program `rushes`")
    pytest.skip("RUSHES_PROGRAM does not name the program `rushes`")


@pytest.fixture
def examples() -> Path:
    """The built examples in C and C++, whose folder RUSHES_EXAMPLES names."""
    named = os.environ.get("RUSHES_EXAMPLES")
    if named and (Path(named) / "send_cpp").is_file():
        return Path(named)
    if os.environ.get("RUSHES_INTEROP") == "require":
        pytest.fail("RUSHES_EXAMPLES does not name a folder of built examples")
    pytest.skip("RUSHES_EXAMPLES does not name a folder of built examples")


def wait_for_listener(port: int) -> None:
    """Waits until some process has a port."""

    def is_taken() -> bool:
        tables = [table for table in map(Path, ["/proc/net/udp", "/proc/net/udp6"]) if table.exists()]
        if tables:
            # The process might bind the port while this test has it to find out.
            lines = [line.split() for table in tables for line in table.read_text().splitlines()[1:]]
            return any(line[1].endswith(f":{port:04X}") for line in lines)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return True
            return False

    eventually(is_taken)
