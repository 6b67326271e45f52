"""Measures the CPU time per gigabyte of Python, compared with the program `rushes`.

    RUSHES_PROGRAM=target/release/rushes python benches/speed.py [--amount OCTETS] [--runs N]

Each row is a sender and a receiver over loopback, processes on separate cores: access units of
667 KB, at most two in flight, so that no packet is lost. Rows are interleaved and medians
printed. `program` is the row `gso/gro` of `rushes bench goodput`. Build both with one profile: the
package by `maturin develop --release`, the program by `cargo build --release -p rushes-cli`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
from collections.abc import Callable

import rushes

FRAME_LEN = 667_000
IN_FLIGHT = 2
TIME_LIMIT = 5.0
ACK = b"\0"

#: How frames are sent and received, by the row's name.
ROWS = {
    "bytes, iterator": ("bytes", "iterator"),
    "bytearray, iterator": ("bytearray", "iterator"),
    "bytes, hook": ("bytes", "hook"),
    "bytes, asyncio": ("bytes", "asyncio"),
}


def access_unit() -> bytes:
    """A slice of H.265 without start codes in it."""
    body = bytes(1 + (n * 2_654_435_761 >> 13) % 255 for n in range(4096))
    return (b"\0\0\0\x01\x02\x01\x80" + body * (FRAME_LEN // len(body) + 1))[:FRAME_LEN]


def cpu_time() -> float:
    """CPU seconds of this process, including the kernel's."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pin(core: int) -> None:
    """Pins the process to one core, where the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})


def receive(how: str, frames: int) -> None:
    """The receiving side: prints its port, reads the port for acknowledgements, prints its CPU time."""
    pin(1)
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h265", probation=1) as stream:
        print(stream.local_address[1], flush=True)
        acks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        acks.connect(("127.0.0.1", int(sys.stdin.readline())))
        before = cpu_time()
        RECEIVERS[how](stream, frames, acks)
        print(json.dumps({"cpu": cpu_time() - before}), flush=True)


def by_iterator(stream: rushes.Stream, frames: int, acks: socket.socket) -> None:
    """The loop pulls frames."""
    for count, frame in enumerate(stream.frames(TIME_LIMIT), 1):
        assert len(frame) == FRAME_LEN
        del frame  # as the program does: its memory is reused while it is in the cache
        acks.send(ACK)
        if count == frames:
            return
    raise SystemExit("frames are missing")


def by_hook(stream: rushes.Stream, frames: int, acks: socket.socket) -> None:
    """The library calls a function."""
    import threading

    done, left = threading.Event(), [frames]

    def take(frame: rushes.Frame) -> None:
        assert len(frame) == FRAME_LEN
        acks.send(ACK)
        left[0] -= 1
        if left[0] == 0:
            done.set()

    stream.on_frame(take)
    if not done.wait(60):
        raise SystemExit("frames are missing")


def by_asyncio(stream: rushes.Stream, frames: int, acks: socket.socket) -> None:
    """An event loop awaits frames."""

    async def main() -> None:
        left = frames
        async for frame in stream:
            assert len(frame) == FRAME_LEN
            del frame
            acks.send(ACK)
            left -= 1
            if left == 0:
                return

    asyncio.run(asyncio.wait_for(main(), 60))


RECEIVERS: dict[str, Callable[[rushes.Stream, int, socket.socket], None]] = {
    "iterator": by_iterator,
    "hook": by_hook,
    "asyncio": by_asyncio,
}


def send(what: str, frames: int, port: int) -> None:
    """The sending side: prints the port for acknowledgements, then its CPU time."""
    pin(0)
    acks = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    acks.bind(("127.0.0.1", 0))
    acks.settimeout(TIME_LIMIT)
    print(acks.getsockname()[1], flush=True)
    sys.stdin.readline()
    frame = access_unit() if what == "bytes" else bytearray(access_unit())
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h265", remote_port=port, pacing=False) as stream:
        before, in_flight = cpu_time(), 0
        for _ in range(frames):
            if in_flight == IN_FLIGHT:
                acks.recv(1)
                in_flight -= 1
            stream.push_frame(frame)
            in_flight += 1
        print(json.dumps({"cpu": cpu_time() - before}), flush=True)
        for _ in range(in_flight):
            acks.recv(1)


def side(*arguments: str) -> subprocess.Popen[str]:
    """This program as one of the two sides."""
    run = [sys.executable, __file__, "--side", *arguments]
    return subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    """The next line that a side prints."""
    assert process.stdout is not None
    text = process.stdout.readline()
    if not text:
        raise SystemExit("a side ended early")
    return text


def write_line(process: subprocess.Popen[str], text: str) -> None:
    """Writes a line to a side."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def of_python(row: str, amount: int) -> tuple[float, float]:
    """CPU seconds per gigabyte of sending and of receiving."""
    what, how = ROWS[row]
    frames = max(amount // FRAME_LEN, 1)
    with side("receive", how, str(frames)) as receiver:
        port = line(receiver).strip()
        with side("send", what, str(frames), port) as sender:
            try:
                write_line(receiver, line(sender).strip())
                write_line(sender, "go")
                cpu = [json.loads(line(process))["cpu"] for process in (sender, receiver)]
            finally:
                if sender.poll() is None:
                    sender.stdin and sender.stdin.close()
    gigabytes = frames * FRAME_LEN / 1e9
    return cpu[0] / gigabytes, cpu[1] / gigabytes


def of_program(program: str, amount: int) -> tuple[float, float]:
    """The same for the program."""
    run = [program, "bench", "goodput", "--runs", "1", "--amount", str(amount), "--json"]
    run += ["--frame-size", str(FRAME_LEN)]
    # The exit status reports losses of the paced row only, which is not used here.
    ended = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    rows = json.loads(ended.stdout)["figures"][0]["rows"]
    (row,) = [row for row in rows if row["path"] == "gso/gro"]
    return row["send s/GB"], row["recv s/GB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--amount", type=int, default=1_000_000_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--side", nargs="+")
    arguments = parser.parse_args()
    match arguments.side:
        case ["receive", how, frames]:
            return receive(how, int(frames))
        case ["send", what, frames, port]:
            return send(what, int(frames), int(port))
    program = os.environ.get("RUSHES_PROGRAM")
    measured: dict[str, list[tuple[float, float]]] = {}
    for _ in range(arguments.runs):
        if program:
            seen = of_program(program, arguments.amount)
            measured.setdefault("program", []).append(seen)
        for row in ROWS:
            measured.setdefault(row, []).append(of_python(row, arguments.amount))
    print(f"{'':22}{'send s/GB':>10}{'recv s/GB':>11}   medians of {arguments.runs}")
    for row, runs in measured.items():
        sending, receiving = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"{row:22}{sending:10.3f}{receiving:11.3f}")


if __name__ == "__main__":
    main()
