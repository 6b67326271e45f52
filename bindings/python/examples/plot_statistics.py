"""Plots statistics of a stream over time: cells of a notebook, run as a program.

    pip install matplotlib
    python plot_statistics.py [FILE.png]

Without matplotlib it prints the numbers.
"""

# %% A sender and a receiver, whose counters are read every fifth frame.
import sys
import time
from pathlib import Path

import rushes

session = rushes.Context().session("127.0.0.1")
receiver = session.stream("h265", probation=1)
sender = session.stream("h265", remote_port=receiver.local_address[1], frame_rate=100)
arrived: list[rushes.Frame] = []
receiver.on_frame(arrived.append)

rows: list[tuple[float, float, float, float]] = []
start, before = time.monotonic(), 0
for number in range(100):
    size = 5_000 + 4_000 * (number % 25)
    sender.push_frame(b"\0\0\0\x01\x26\x01\x80" + b"\x55" * size)
    sender.wait(0.01)
    if number % 5 == 4:
        seen = receiver.statistics().receive
        jitter = max((source.jitter_time for source in seen.sources), default=0.0)
        now = time.monotonic() - start
        octets, before = seen.payload_octets - before, seen.payload_octets
        rows.append((now, octets * 8e-6 / 0.05, jitter * 1e3, seen.frames))
session.close()
print(f"{len(arrived)} frames, {receiver.statistics().receive.packets_lost} packets lost")

# %% The plot.
try:
    from matplotlib import pyplot
except ImportError:
    for now, rate, jitter, frames in rows:
        print(f"{now:6.2f} s  {rate:7.1f} Mbit/s  {jitter:6.2f} ms  {frames:4.0f} frames")
else:
    figure, (rates, jitters) = pyplot.subplots(2, sharex=True)
    times = [row[0] for row in rows]
    rates.plot(times, [row[1] for row in rows])
    rates.set_ylabel("Mbit/s")
    jitters.plot(times, [row[2] for row in rows])
    jitters.set_ylabel("jitter, ms")
    jitters.set_xlabel("time, s")
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "statistics.png")
    figure.savefig(file)
    print(f"{file}: {file.stat().st_size} octets")
