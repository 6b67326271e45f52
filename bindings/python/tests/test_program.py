"""Python at one end, the program `rushes` at the other."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import rushes
from conftest import MEDIA, TIME_LIMIT, nal_units
from rushes import Security

FILM = MEDIA / "hevc_192x128_90f_tiny_nals.265"
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg=="  # 28 octets, in Base64
SECURED = ["plain", "srtp", "zrtp"]


def security(how: str) -> Security | None:
    if how == "srtp":
        return Security.shared("AEAD_AES_128_GCM", b"0123456789abcdef0123456789ab")
    return Security.zrtp(timeout=TIME_LIMIT) if how == "zrtp" else None


def flags(how: str) -> list[str]:
    return {
        "plain": [],
        "srtp": ["--srtp", "AEAD_AES_128_GCM", "--key", KEY],
        "zrtp": ["--zrtp"],
    }[how]


@contextmanager
def running(program: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the program, and kills it afterwards."""
    run = [str(program), *arguments]
    with subprocess.Popen(
        run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", SECURED)
def test_the_program_receives_what_python_sends(
    program: Path, session: rushes.Session, tmp_path: Path, how: str
) -> None:
    copy = tmp_path / "copy.265"
    receive = ["recv", "--from", "0", "--codec", "h265", "-o", str(copy), *flags(how)]
    with running(program, *receive) as receiver:
        assert receiver.stderr is not None
        lines = iter(receiver.stderr.readline, "")
        port = next(found[1] for line in lines if (found := re.search(r"on .*:(\d+)$", line)))
        with session.stream(
            "h265", remote_port=int(port), frame_rate=500, security=security(how)
        ) as sender:
            for frame in rushes.MediaReader(FILM):
                sender.push_frame(frame)
                sender.wait(0.002)
            if how == "zrtp":
                assert session.sas is not None
                sas = session.sas.text
        _, rest = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, rest
    assert nal_units(copy.read_bytes()) == nal_units(FILM.read_bytes())
    if how == "zrtp":
        assert sas in rest


@pytest.mark.parametrize("how", SECURED)
def test_python_receives_what_the_program_sends(
    program: Path, session: rushes.Session, free_port: int, how: str
) -> None:
    if how == "zrtp":
        opening = session.begin("h265", local_port=free_port, security=security(how))
    else:
        receiver = session.stream("h265", local_port=free_port, security=security(how))
    send = ["send", str(FILM), "--to", f"127.0.0.1:{free_port}", "--fps", "500", *flags(how)]
    with running(program, *send) as sender:
        # The program's output is read, so that it does not fill the pipe.
        printed: list[str] = []
        reader = threading.Thread(target=lambda: printed.extend(sender.communicate(timeout=60)))
        reader.start()
        if how == "zrtp":
            opened = opening.wait(TIME_LIMIT)
            assert opened is not None
            receiver = opened
        frames = list(receiver.frames(TIME_LIMIT, until_bye=True))
        reader.join(TIME_LIMIT)
    assert sender.returncode == 0, printed
    received = [unit for frame in frames for unit in nal_units(frame)]
    assert received == nal_units(FILM.read_bytes())
    if how == "zrtp":
        assert session.sas is not None
        assert session.sas.text in "".join(printed)
    receiver.close()
