"""What Python costs: CPU time a gigabyte, beside the program `rushes`.

    RUSHES_PROGRAM=target/release/rushes python benches/speed.py [--amount OCTETS] [--runs N]

Each row is a sender and a receiver, processes on a core of their own, over loopback: access units of
667 KB, no more than two on their way, so that nothing is lost. Rows are interleaved and medians
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
PATIENCE = 5.0
NEWS = b"\0"

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
    """Seconds that this process has worked, in the kernel too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def pin(core: int) -> None:
    """Keeps to one core, where there are several and the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})


def receive(how: str, frames: int) -> None:
    """The receiving side: prints its port, is told where to send news, prints its CPU time."""
    pin(1)
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h265", probation=1) as stream:
        print(stream.local_address[1], flush=True)
        news = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        news.connect(("127.0.0.1", int(sys.stdin.readline())))
        before = cpu_time()
        RECEIVERS[how](stream, frames, news)
        print(json.dumps({"cpu": cpu_time() - before}), flush=True)


def by_iterator(stream: rushes.Stream, frames: int, news: socket.socket) -> None:
    """Whoever wants a frame reads the socket."""
    for count, frame in enumerate(stream.frames(PATIENCE), 1):
        assert len(frame) == FRAME_LEN
        del frame  # as the program does: its memory is used again while it is in the cache
        news.send(NEWS)
        if count == frames:
            return
    raise SystemExit("frames are missing")


def by_hook(stream: rushes.Stream, frames: int, news: socket.socket) -> None:
    """The library calls."""
    import threading

    done, left = threading.Event(), [frames]

    def take(frame: rushes.Frame) -> None:
        assert len(frame) == FRAME_LEN
        news.send(NEWS)
        left[0] -= 1
        if left[0] == 0:
            done.set()

    stream.on_frame(take)
    if not done.wait(60):
        raise SystemExit("frames are missing")


def by_asyncio(stream: rushes.Stream, frames: int, news: socket.socket) -> None:
    """The event loop is told."""

    async def main() -> None:
        left = frames
        async for frame in stream:
            assert len(frame) == FRAME_LEN
            del frame
            news.send(NEWS)
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
    """The sending side: prints where it wants news, then its CPU time."""
    pin(0)
    news = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    news.bind(("127.0.0.1", 0))
    news.settimeout(PATIENCE)
    print(news.getsockname()[1], flush=True)
    sys.stdin.readline()
    frame = access_unit() if what == "bytes" else bytearray(access_unit())
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h265", remote_port=port, pacing=False) as stream:
        before, on_their_way = cpu_time(), 0
        for _ in range(frames):
            if on_their_way == IN_FLIGHT:
                news.recv(1)
                on_their_way -= 1
            stream.push_frame(frame)
            on_their_way += 1
        print(json.dumps({"cpu": cpu_time() - before}), flush=True)
        for _ in range(on_their_way):
            news.recv(1)


def side(*arguments: str) -> subprocess.Popen[str]:
    """This program as one of the two sides."""
    run = [sys.executable, __file__, "--side", *arguments]
    return subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    """What a side says next."""
    assert process.stdout is not None
    said = process.stdout.readline()
    if not said:
        raise SystemExit("a side has given up")
    return said


def tell(process: subprocess.Popen[str], text: str) -> None:
    """Says something to a side."""
    assert process.stdin is not None
    process.stdin.write(text + "\n")
    process.stdin.flush()


def of_python(row: str, amount: int) -> tuple[float, float]:
    """CPU seconds a gigabyte of sending and of receiving."""
    what, how = ROWS[row]
    frames = max(amount // FRAME_LEN, 1)
    with side("receive", how, str(frames)) as receiver:
        port = line(receiver).strip()
        with side("send", what, str(frames), port) as sender:
            try:
                tell(receiver, line(sender).strip())
                tell(sender, "go")
                cpu = [json.loads(line(process))["cpu"] for process in (sender, receiver)]
            finally:
                if sender.poll() is None:
                    sender.stdin and sender.stdin.close()
    gigabytes = frames * FRAME_LEN / 1e9
    return cpu[0] / gigabytes, cpu[1] / gigabytes


def of_program(program: str, amount: int) -> tuple[float, float]:
    """The same of the program."""
    run = [program, "bench", "goodput", "--runs", "1", "--amount", str(amount), "--json"]
    run += ["--frame-size", str(FRAME_LEN)]
    # It says by its exit status whether the row that is paced has lost anything; this one cannot.
    told = subprocess.run(run, capture_output=True, text=True, check=False, timeout=300)
    rows = json.loads(told.stdout)["figures"][0]["rows"]
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
