"""Python at one end, the examples in C and C++ at the other."""

from __future__ import annotations

from pathlib import Path

import pytest
import rushes
from conftest import TIME_LIMIT, nal_units, wait_for_listener
from rushes import Security
from test_program import FILM, running

HOW = ["plain", "zrtp"]


def security(how: str) -> Security | None:
    return Security.zrtp(timeout=TIME_LIMIT) if how == "zrtp" else None


def more(how: str) -> list[str]:
    return ["zrtp"] if how == "zrtp" else []


def agreed(session: rushes.Session, how: str, output: str) -> bool:
    """Whether both ends show the same words; true without ZRTP."""
    if how == "plain":
        return True
    assert session.sas is not None
    return f"agreed: {session.sas.text}" in output


@pytest.mark.parametrize("name", ["receive", "receive_hook"])
@pytest.mark.parametrize("how", HOW)
def test_an_example_receives_what_python_sends(
    examples: Path, session: rushes.Session, free_port: int, tmp_path: Path, name: str, how: str
) -> None:
    copy = tmp_path / "copy.265"
    with running(examples / name, str(free_port), str(copy), *more(how)) as receiver:
        wait_for_listener(free_port)
        with session.stream(
            "h265", remote_port=free_port, frame_rate=500, security=security(how)
        ) as sender:
            for frame in rushes.MediaReader(FILM):
                sender.push_frame(frame)
                sender.wait(0.002)
        output, errors = receiver.communicate(timeout=60)
    assert receiver.returncode == 0, errors
    assert nal_units(copy.read_bytes()) == nal_units(FILM.read_bytes())
    assert agreed(session, how, output), output


@pytest.mark.parametrize("name", ["send", "send_cpp"])
@pytest.mark.parametrize("how", HOW)
def test_python_receives_what_an_example_sends(
    examples: Path, session: rushes.Session, free_port: int, name: str, how: str
) -> None:
    if how == "zrtp":
        opening = session.begin("h265", local_port=free_port, security=security(how))
    else:
        receiver = session.stream("h265", local_port=free_port)
    arguments = ["127.0.0.1", str(free_port), str(FILM), "300", *more(how)]
    with running(examples / name, *arguments) as sender:
        if how == "zrtp":
            opened = opening.wait(TIME_LIMIT)
            assert opened is not None
            receiver = opened
        frames = list(receiver.frames(TIME_LIMIT, until_bye=True))
        output, errors = sender.communicate(timeout=60)
    assert sender.returncode == 0, errors
    received = [unit for frame in frames for unit in nal_units(frame)]
    assert received == nal_units(FILM.read_bytes())
    assert agreed(session, how, output), output
    receiver.close()
