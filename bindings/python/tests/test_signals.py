"""Ctrl-C during a wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PRELUDE = """
import rushes, sys
session = rushes.Context().session("127.0.0.1")
def ready():
    print("ready", flush=True)
"""

WAITS = {
    "pull_frame": "s = session.stream('h265'); ready(); s.pull_frame()",
    "iteration": "s = session.stream('h265'); ready(); list(s)",
    "wait": "s = session.stream('h265'); ready(); s.wait(1e9)",
    "zrtp": "o = session.begin('h265', security=rushes.Security.zrtp()); ready(); o.wait()",
    "texture": """
server = rushes.TextureServer(("127.0.0.1", 0), "pattern:16x16@60")
client = rushes.TextureClient(server.local_address)
client.on_frame(lambda frame: None)
ready()
client.wait()
""",
}


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_a_wait(what: str) -> None:
    run = [sys.executable, "-c", PRELUDE + WAITS[what]]
    with subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as waiting:
        try:
            assert waiting.stdout is not None
            assert waiting.stdout.readline() == "ready\n"
            waiting.send_signal(signal.SIGINT)
            _, errors = waiting.communicate(timeout=60)
        finally:
            waiting.kill()
    assert "KeyboardInterrupt" in errors
    assert waiting.returncode == -signal.SIGINT
