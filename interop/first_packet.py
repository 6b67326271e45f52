#!/usr/bin/env python3
"""Measures the time from POST to the first packet of media, for servers and clients of WHEP on loopback.

    first_packet.py --rushes target/release/rushes --pion pion-webrtc --python python3 --runs 9

Each run is one server and one client: the servers rushes, pion and aiortc with pion as the client, and the clients
rushes, pion and aiortc with rushes as the server, in turns. Times are those at which packets pass the loopback
interface, seen from outside of both programs: the first octets of POST, and the first RTP packet. It prints medians
and extremes in milliseconds. It needs the right to read that interface (CAP_NET_RAW), and nothing else on it.
"""

import argparse
import os
import pathlib
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 20
# SO_TIMESTAMPNS of Linux, whose control message is two 64-bit numbers.
TIMESTAMP = 35


class Sniffer:
    """Sees the packets of the loopback interface."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind(("lo", 0))
        self.socket.setsockopt(socket.SOL_SOCKET, TIMESTAMP, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self.socket.settimeout(0.2)
        self.posted = self.first = None
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.done.is_set():
            try:
                packet, control, _, _ = self.socket.recvmsg(2048, 64)
            except TimeoutError:
                continue
            seconds, nanoseconds = struct.unpack("qq", control[0][2][:16])
            self.take(packet[14:], seconds + nanoseconds / 1e9)

    def take(self, packet, at):
        if len(packet) < 40 or packet[0] >> 4 != 4:
            return
        transport = packet[(packet[0] & 15) * 4 :]
        if packet[9] == socket.IPPROTO_TCP and self.posted is None:
            (to,) = struct.unpack_from("!H", transport, 2)
            if to == self.port and transport[(transport[12] >> 4) * 4 :].startswith(b"POST "):
                self.posted = at
        elif packet[9] == socket.IPPROTO_UDP and self.posted is not None and self.first is None:
            media = transport[8:]
            # RTP, and not RTCP on the same port (RFC 5761 section 4, RFC 7983).
            if len(media) > 20 and media[0] >> 6 == 2 and not 192 <= media[1] <= 223:
                self.first = at
                self.done.set()

    def end(self):
        self.done.wait(PATIENCE)
        self.done.set()
        self.thread.join()
        self.socket.close()
        if self.posted is None or self.first is None:
            sys.exit("no POST" if self.posted is None else "no media after POST")
        return (self.first - self.posted) * 1000


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def await_server(port):
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    sys.exit("the server does not listen")


class Programs:
    """The command lines of servers and clients."""

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.film, self.mp4 = folder / "film.264", folder / "film.mp4"
        media = HERE.parent / "vectors" / "media"
        source, self.speech = media / "avc_cif_60f_baseline.264", media / "opus_speech_mono_mixed_durations.opus"
        # Every picture is a key frame: a viewer waits for the next one, whatever server it is.
        encode = ["-c:v", "libx264", "-profile:v", "baseline", "-g", "1", "-r", "30"]
        for file in (self.film, self.mp4):
            subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", source, *encode, file], check=True)
        self.aiortc = [arguments.python, HERE / "aiortc_peer.py"]

    def server(self, name, port):
        address = f"127.0.0.1:{port}"
        return {
            "rushes": [
                *(self.arguments.rushes, "serve", self.film, "--audio", self.speech),
                *("--fps", "30", "--http", address),
            ],
            "pion": [self.arguments.pion, "serve", address, "-video", self.film, "-audio", self.speech, "-loop"],
            "aiortc": [*self.aiortc, "serve", address, "--video", self.mp4, "--audio", self.speech],
        }[name]

    def client(self, name, port):
        url = f"http://127.0.0.1:{port}/whep"
        copy = self.folder / "copy.264"
        return {
            "rushes": [self.arguments.rushes, "recv", "--whep", url, "-o", copy, "--force"],
            "pion": [self.arguments.pion, "whep", url, "-video-out", copy, "-seconds", "5"],
            "aiortc": [*self.aiortc, "whep", url, "--seconds", "5"],
        }[name]

    def run(self, server, client):
        """Returns the milliseconds of one run."""
        port = free_port()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        serving = subprocess.Popen(list(map(os.fspath, self.server(server, port))), **quiet)
        playing = None
        try:
            await_server(port)
            # What is paced or awaits its first second has begun.
            time.sleep(0.5)
            sniffer = Sniffer(port)
            playing = subprocess.Popen(list(map(os.fspath, self.client(client, port))), **quiet)
            return sniffer.end()
        finally:
            for process in filter(None, (playing, serving)):
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rushes", default="rushes")
    parser.add_argument("--pion", default="pion-webrtc")
    parser.add_argument("--python", default=sys.executable, help="has aiortc")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    pairs = [(server, "pion") for server in ("rushes", "pion", "aiortc")]
    pairs += [("rushes", client) for client in ("rushes", "aiortc")]
    times = {pair: [] for pair in pairs}
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(arguments, pathlib.Path(folder))
        for _ in range(arguments.runs):
            for pair in pairs:
                times[pair].append(programs.run(*pair))
    print(f"from POST to the first RTP packet, ms, {arguments.runs} runs in turns")
    print("server  client  median   least    most")
    for (server, client), all_times in times.items():
        median = statistics.median(all_times)
        print(f"{server:7} {client:7} {median:6.1f} {min(all_times):7.1f} {max(all_times):7.1f}")


if __name__ == "__main__":
    main()
