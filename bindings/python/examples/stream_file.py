"""Streams a file to itself through real sockets and compares every bit of every frame.

    python stream_file.py [FILE]

Without a file it generates a short clip of H.265.
"""

import re
import sys
import tempfile
from pathlib import Path

import rushes

#: Files of NAL units.
NAL: dict[str, rushes.Format] = {".264": "h264", ".265": "h265", ".266": "h266"}


def generated(folder: Path) -> Path:
    """A file of a hundred access units, each with one NAL unit of some octets."""
    film = folder / "clip.265"
    start = b"\0\0\0\x01\x26\x01\x80"
    film.write_bytes(b"".join(start + bytes([1 + n]) * (500 * n + 1) for n in range(100)))
    return film


def canonical(file: Path) -> bytes:
    """The file's octets with start codes of four octets, because start codes are not sent."""
    octets = file.read_bytes()
    return re.sub(rb"\x00*\x00\x00\x01", b"\0\0\0\1", octets) if file.suffix in NAL else octets


def main() -> None:
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        film = Path(sys.argv[1]) if len(sys.argv) > 1 else generated(folder)
        format = NAL.get(film.suffix, "generic")
        frames = list(rushes.MediaReader(film, format))
        copy = folder / ("copy" + film.suffix)

        session = rushes.Context().session("127.0.0.1")
        # The receiver accepts the sender at once; by default it waits for a second packet.
        with session.stream(format, probation=1) as receiver:
            port = receiver.local_address[1]
            with (
                session.stream(format, remote_port=port) as sender,
                rushes.MediaWriter(copy, format) as writer,
            ):
                for frame in frames:
                    sender.push_frame(frame)
                    writer.write(receiver.pull_frame(2.0) or b"")
        same = canonical(copy) == canonical(film)
        print(f"{len(frames)} frames, {film.stat().st_size} octets:", "equal" if same else "NOT equal")
        if not same:
            sys.exit(1)


main()
