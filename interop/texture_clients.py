#!/usr/bin/env python3
"""CPU time of `rushes texture serve` with one client and with four.

    python3 interop/texture_clients.py target/release/rushes [ROUNDS [TRANSPORT]]

A film in memory is sent as BC1: encoded from YUV 4:2:0, or as it is in the file. What the first costs more is
encoding. Each figure is the median of the rounds, which take turns; loopback only, Linux only.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 5
SIZE = "1920x1080"
CLIENTS = (1, 4)


def cpu_of(process: subprocess.Popen[str]) -> float:
    """Returns the seconds that the process has computed, itself and in the kernel."""
    # The clock that clock_getcpuclockid(3) returns.
    return time.clock_gettime(~process.pid << 3 | 2)


def measure(program: str, film: list[str], clients: int, transport: str) -> float:
    """Returns the server's CPU time in milliseconds for each picture of a film, which options may follow."""
    serve = [program, "texture", "serve", *film, "--listen", "127.0.0.1:0"]
    serve += ["--loop", "--preload=1G", "--every-frame", "--units", "2", "--adapt", "off", "--transport", transport]
    serve += ["--json", "--stats-interval", "1s"]
    server = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert server.stdout is not None and server.stderr is not None
    viewers = []
    try:
        address = said = ""
        while not address:
            line = server.stderr.readline()
            said += line
            assert line, said
            address = line.partition("listening on ")[2].strip()
        view = [program, "texture", "view", address, "--null", "--quiet"]
        for _ in range(clients):
            viewers.append(subprocess.Popen(view, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        # The server says once a second how many clients it has, and how many frames were sent to all of them.
        marks = []
        while len(marks) <= SECONDS:
            state = json.loads(server.stdout.readline())
            if state["clients"] == clients:
                marks.append((cpu_of(server), state["frames"]))
        (cpu, frames), (cpu_then, frames_then) = marks[0], marks[-1]
        # With --every-frame no client leaves one out.
        return (cpu_then - cpu) * 1e3 * clients / (frames_then - frames)
    finally:
        for process in [*viewers, server]:
            if process.poll() is None:
                process.kill()
            process.wait()


def main() -> None:
    program = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    transport = sys.argv[3] if len(sys.argv) > 3 else "udp"
    with tempfile.TemporaryDirectory() as folder:
        films = {"encoded": Path(folder, "film.y4m"), "as it is": Path(folder, "film.ktx2")}
        make = [program, "texture", "encode", "--quiet", "--frames", "60", f"pattern:{SIZE}@60"]
        subprocess.run([*make, str(films["encoded"])], check=True)
        subprocess.run([*make, str(films["as it is"]), "--format", "bc1"], check=True)
        measured: dict[tuple[str, int], list[float]] = {}
        for _ in range(rounds):
            for name, film in films.items():
                for clients in CLIENTS:
                    cpu = measure(program, [str(film), "--format", "bc1"], clients, transport)
                    measured.setdefault((name, clients), []).append(cpu)
    medians = {key: statistics.median(values) for key, values in measured.items()}
    encoding = {n: medians["encoded", n] - medians["as it is", n] for n in CLIENTS}
    print(f"{SIZE} as BC1 by {transport}, ms of the server's CPU for each picture, medians of {rounds}")
    print(f"{'':12}{'1 client':>12}{'4 clients':>12}{'ratio':>8}")
    rows = {name: [medians[name, n] for n in CLIENTS] for name in films}
    rows["encoding"] = list(encoding.values())
    for name, (one, four) in rows.items():
        print(f"{name:12}{one:12.2f}{four:12.2f}{four / one:8.2f}")


if __name__ == "__main__":
    main()
