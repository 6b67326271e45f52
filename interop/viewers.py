#!/usr/bin/env python3
"""Measures what viewers of WHEP cost a server: `rushes serve`, and MediaMTX beside it, on loopback.

    viewers.py --rushes target/release/rushes --mediamtx mediamtx --pion pion-webrtc --count 200 --seconds 20 --runs 3

The source is 10 seconds of H.264 at 2 Mbit/s and of Opus, again and again, made by ffmpeg. The viewers are one process,
`pion-webrtc viewers`, which decrypts and counts packets. The table has, as medians of the runs, which alternate: the
CPU time of the server's process (user and system) while all viewers watch, in per cent of a core, in all and for each
viewer; its threads and its memory (resident, in MB); the packets that viewers received and lost. --rushes may be given
several times, to compare builds. CPU time depends less on other work than wall-clock time does, but a loaded machine
loses packets.

MediaMTX 1.15 refuses an offer of audio with "codecs not supported by client" if the source has none, so it has some.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE = 30
# Time for the last viewers to connect, and between two of them.
SETTLING, RAMP = 3, 0.02
MEDIAMTX = """
logLevel: error
api: yes
apiAddress: 127.0.0.1:{api}
rtmp: no
srt: no
hls: no
rtspAddress: 127.0.0.1:{rtsp}
rtspTransports: [tcp]
webrtcAddress: 127.0.0.1:{http}
webrtcLocalUDPAddress: 127.0.0.1:{udp}
webrtcIPsFromInterfaces: no
webrtcAdditionalHosts: [127.0.0.1]
paths:
  all_others:
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def await_port(port):
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit("the server does not listen")


def await_publisher(url):
    """Waits until MediaMTX says that the path is published."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE:
        try:
            with urllib.request.urlopen(url) as response:
                if json.load(response)["ready"]:
                    return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the source is not published")


def stat(pid):
    """Returns the CPU seconds, the threads and the resident memory (MB) of a process."""
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    # The name of the program may contain spaces.
    fields = text.rpartition(")")[2].split()
    cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return cpu, int(fields[17]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def make_film(folder):
    """Makes the source, a key frame a second, without B-frames: two files for rushes, and one for ffmpeg."""
    raw, sound, film = folder / "film.264", folder / "film.opus", folder / "film.mp4"
    size = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30:duration=10"]
    noise = ["-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-preset", "veryfast", "-profile:v", "baseline"]
    rate = ["-pix_fmt", "yuv420p", "-g", "30", "-b:v", "2M", "-maxrate", "2M", "-bufsize", "2M"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *size, *noise, *rate, raw], check=True)
    tone = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=10", "-ac", "2"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *tone, "-c:a", "libopus", "-b:a", "64k", sound], check=True)
    both = ["-r", "30", "-i", raw, "-i", sound, "-c", "copy"]
    subprocess.run(["ffmpeg", "-v", "error", "-y", *both, film], check=True)
    return raw, sound, film


class Load:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.raw, self.sound, self.film = make_film(folder)
        self.processes = []

    def start(self, *command):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.processes.append(subprocess.Popen([os.fspath(part) for part in command], **quiet))
        return self.processes[-1]

    def serve_rushes(self, program):
        port = free_port()
        sessions = str(self.arguments.count + 8)
        film = [self.raw, "--audio", self.sound, "--fps", "30"]
        server = self.start(program, "serve", *film, "--sessions", sessions, "--http", str(port))
        await_port(port)
        return server, f"http://127.0.0.1:{port}/whep"

    def serve_mediamtx(self, program):
        ports = {name: free_port() for name in ("rtsp", "http", "udp", "api")}
        settings = self.folder / "mediamtx.yml"
        settings.write_text(MEDIAMTX.format(**ports))
        server = self.start(program, settings)
        await_port(ports["rtsp"])
        to = f"rtsp://127.0.0.1:{ports['rtsp']}/film"
        publish = ["-re", "-stream_loop", "-1", "-i", self.film, "-c", "copy", "-f", "rtsp", "-rtsp_transport", "tcp"]
        self.start("ffmpeg", "-v", "error", *publish, to)
        await_port(ports["http"])
        await_publisher(f"http://127.0.0.1:{ports['api']}/v3/paths/get/film")
        return server, f"http://127.0.0.1:{ports['http']}/film/whep"

    def run(self, name, program):
        """Returns the figures of one run."""
        count, seconds = self.arguments.count, self.arguments.seconds
        is_ours = not name.startswith("mediamtx")
        try:
            server, url = (self.serve_rushes if is_ours else self.serve_mediamtx)(program)
            entering = count * RAMP + SETTLING
            options = ["-count", str(count), "-seconds", str(seconds + entering + 1)]
            viewers = subprocess.Popen([self.arguments.pion, "viewers", url, *options], stdout=subprocess.PIPE)
            self.processes.append(viewers)
            time.sleep(entering)
            (before, _, _), start = stat(server.pid), time.monotonic()
            time.sleep(seconds)
            (after, threads, memory), end = stat(server.pid), time.monotonic()
            output, _ = viewers.communicate(timeout=seconds + PATIENCE + entering)
        finally:
            for process in self.processes:
                process.kill()
                process.wait()
            self.processes = []
        report = json.loads(output.splitlines()[-1])
        refused = next((viewer["error"] for viewer in report["viewers"] if viewer.get("error")), None)
        if refused:
            print(f"{name}: {refused}", file=sys.stderr)
        load = 100 * (after - before) / (end - start)
        return {
            "% of a core": load,
            "for each": load / max(report["connected"], 1),
            "threads": threads,
            "MB": memory,
            "viewers": report["connected"],
            "packets": report["packets"],
            "lost": report["lost"],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rushes", action="append", default=[])
    parser.add_argument("--mediamtx")
    parser.add_argument("--pion", default="pion-webrtc")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    servers = {f"rushes {number}" if number else "rushes": path for number, path in enumerate(arguments.rushes)}
    if arguments.mediamtx:
        servers["mediamtx"] = arguments.mediamtx
    if not servers:
        sys.exit("name a server: --rushes PATH, --mediamtx PATH")
    with tempfile.TemporaryDirectory() as folder:
        load = Load(arguments, pathlib.Path(folder))
        figures = {name: [] for name in servers}
        for _ in range(arguments.runs):
            for name, program in servers.items():
                figures[name].append(load.run(name, program))
    columns = list(next(iter(figures.values()))[0])
    print(f"{'server':12}" + "".join(f"{column:>14}" for column in columns))
    for name, runs in figures.items():
        medians = [statistics.median(run[column] for run in runs) for column in columns]
        print(f"{name:12}" + "".join(f"{median:14.2f}" for median in medians))


if __name__ == "__main__":
    main()
