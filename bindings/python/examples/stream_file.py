"""Streams a file to itself through real sockets and compares every octet.

    python stream_file.py [FILE]

Without a file it takes a short clip of H.265 that it makes up.
"""

import sys
import tempfile
from pathlib import Path

import rushes


def made_up(folder: Path) -> Path:
    """A file of a hundred access units, each with one NAL unit of some octets."""
    film = folder / "clip.265"
    start = b"\0\0\0\x01\x26\x01\x80"
    film.write_bytes(b"".join(start + bytes([1 + n]) * (500 * n + 1) for n in range(100)))
    return film


def main() -> None:
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        film = Path(sys.argv[1]) if len(sys.argv) > 1 else made_up(folder)
        frames = list(rushes.MediaReader(film))
        copy = folder / ("copy" + film.suffix)

        session = rushes.Context().session("127.0.0.1")
        format = {".264": "h264", ".265": "h265", ".266": "h266"}.get(film.suffix, "generic")
        with session.stream(format) as receiver:  # type: ignore[arg-type]
            port = receiver.local_address[1]
            with (
                session.stream(format, remote_port=port) as sender,  # type: ignore[arg-type]
                rushes.MediaWriter(copy, format) as writer,  # type: ignore[arg-type]
            ):
                for number, frame in enumerate(frames):
                    sender.push_frame(frame)
                    # The first frame waits until a second packet shows that the source is one.
                    if number > 0 or len(frames) == 1:
                        writer.write(receiver.pull_frame(2.0) or b"")
                sender.send_keep_alive()
                for received in receiver.frames(timeout=0.2):
                    writer.write(received)
        same = copy.read_bytes() == film.read_bytes()
        print(f"{len(frames)} frames, {film.stat().st_size} octets:", "equal" if same else "NOT equal")
        if not same:
            sys.exit(1)


main()
