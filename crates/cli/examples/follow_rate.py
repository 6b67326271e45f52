"""Encodes raw video to H.264 at the bit rate that `rushes send --target-rate-to` asks for.

    mkfifo rates
    ffmpeg -v error -f v4l2 -i /dev/video0 -vf scale=640:360 -pix_fmt yuv420p -f rawvideo - |
      python3 follow_rate.py rates 640x360 30 |
      rushes send - --codec h264 --to 192.0.2.7:5004 --max-rate 8M --target-rate-to rates

FFmpeg does not change the rate of x264 while it runs. A target that differs by a fifth therefore starts
another encoder, which begins with a key frame; no picture is lost. An encoder in the program itself sets its
rate instead, for example the property `bitrate` of GStreamer's x264enc.
"""

from __future__ import annotations

import subprocess
import sys
import threading

START = 1_000_000

target = START


def follow(path: str) -> None:
    """Reads a target from each line."""
    global target
    with open(path, encoding="ascii") as rates:
        for line in rates:
            target = int(line)


def encoder(size: str, fps: str, rate: int) -> subprocess.Popen[bytes]:
    """Starts an encoder from its standard input to our standard output."""
    command = ["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
    command += ["-s", size, "-r", fps, "-i", "-", "-c:v", "libx264", "-preset", "veryfast"]
    command += ["-tune", "zerolatency", "-g", "300", "-b:v", str(rate), "-maxrate", str(rate)]
    command += ["-bufsize", str(rate // 4), "-f", "h264", "-flush_packets", "1", "-"]
    return subprocess.Popen(command, stdin=subprocess.PIPE)


def main(path: str, size: str, fps: str) -> None:
    """Encodes pictures until there are none."""
    threading.Thread(target=follow, args=(path,), daemon=True).start()
    width, height = (int(number) for number in size.split("x"))
    rate = START
    process = encoder(size, fps, rate)
    while len(picture := sys.stdin.buffer.read(width * height * 3 // 2)) > 0:
        if abs(target - rate) * 5 > rate:
            process.communicate()
            rate = target
            process = encoder(size, fps, rate)
        assert process.stdin is not None
        process.stdin.write(picture)
        process.stdin.flush()
    process.communicate()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except TypeError:
        sys.exit("usage: follow_rate.py RATES WIDTHxHEIGHT FPS")
