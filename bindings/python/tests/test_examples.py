"""Python at one end, the examples in C and C++, or one for GStreamer, at the other."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import rushes
from conftest import TIME_LIMIT, eventually, nal_units, wait_for_listener
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


#: What the example for GStreamer, and the pipelines of the tests, need.
GSTREAMER = """
import gi
for name in ["Gst", "GstApp", "GstVideo"]:
    gi.require_version(name, "1.0")
from gi.repository import Gst, GstApp, GstVideo
import rushes
Gst.init(None)
missing = [name for name in ["videoconvert", "gdppay"] if not Gst.ElementFactory.find(name)]
raise SystemExit(f"no element {missing[0]}" if missing else Gst.version() < (1, 20))
"""

#: `GST_BUFFER_FLAG_DISCONT`.
DISCONT = 1 << 6

Play = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Starts `texture_gstreamer.py` with an interpreter that has GStreamer."""
    site = tmp_path / "site"
    site.mkdir()
    # The package alone: other packages beside it may be for another interpreter.
    (site / "rushes").symlink_to(Path(rushes.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.delenv("PYTHONHOME", raising=False)
    # The tests look for words that GStreamer translates.
    monkeypatch.setenv("LC_ALL", "C")
    for python in [sys.executable, "/usr/bin/python3"]:
        asked = [python, "-c", GSTREAMER]
        if not os.access(python, os.X_OK):
            continue
        if subprocess.run(asked, capture_output=True, timeout=60).returncode == 0:
            break
    else:
        reason = "no interpreter has PyGObject with GStreamer and its elements"
        if os.environ.get("RUSHES_INTEROP") == "require":
            pytest.fail(reason)
        pytest.skip(reason)
    example = Path(__file__).parents[1] / "examples" / "texture_gstreamer.py"
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        run = [python, str(example), *words]
        process = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def solid(number: int, width: int = 40, height: int = 24) -> bytes:
    """A picture of one colour, opaque."""
    return bytes([number * 7 % 256, 255 - number, number, 255]) * (width * height)


def pictures(sent: Iterator[bytes], rate: int = 100) -> rushes.Pictures:
    return rushes.Pictures(sent, 40, 24, pixels="rgba8", rate=rate)


def address_of(server: rushes.TextureServer) -> str:
    host, port = server.local_address
    return f"{host}:{port}"


def unpacked(octets: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """The number, time, flags and octets of buffers that `gdppay` wrote, whose headers have 62 octets."""
    while octets:
        kind, length, pts, _, number = struct.unpack(">HIQQQ", octets[4:34])
        flags = int.from_bytes(octets[42:44], "big")
        if kind == 1:
            yield number, pts, flags, octets[62 : 62 + length]
        octets = octets[62 + length :]


def test_gstreamer_is_given_every_frame_as_it_was(play: Play, tmp_path: Path) -> None:
    copy = tmp_path / "copy.rgba"
    pipeline = f"videoconvert ! video/x-raw,format=RGBA ! filesink location={copy}".split()
    source = pictures(solid(number) for number in range(30))
    with rushes.TextureServer(("127.0.0.1", 0), source, timing="every-frame") as server:
        player = play("--every-frame", address_of(server), *pipeline)
        _, errors = player.communicate(timeout=60)
    assert player.returncode == 0, errors
    assert "30 frames; 0 left out for a slow pipeline, 0 lost" in errors
    assert copy.read_bytes() == b"".join(solid(number) for number in range(30))


def test_gstreamer_is_given_times_that_increase_and_what_is_left_out_is_marked(
    play: Play, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.gdp"
    with rushes.TextureServer(
        ("127.0.0.1", 0), pictures(solid(number) for number in range(60))
    ) as server:
        # Here as one word. It takes 50 ms for each frame, of which there is one every 10 ms.
        pipeline = f"identity sleep-time=50000 ! gdppay ! filesink location={copy}"
        player = play(address_of(server), pipeline)
        _, errors = player.communicate(timeout=60)
    assert player.returncode == 0, errors
    buffers = list(unpacked(copy.read_bytes()))
    numbers = [number for number, _, _, _ in buffers]
    assert len(numbers) < 60 and numbers == sorted(set(numbers)), errors
    for before, (number, _, flags, octets) in zip([None, *numbers], buffers):
        # GStreamer marks the first one itself.
        assert before is None or bool(flags & DISCONT) == (number != before + 1)
        assert len(octets) == len(solid(0))
    times = [pts for _, pts, _, _ in buffers]
    assert times[0] == 0
    assert times == sorted(set(times))
    # Of arrival: what the pipeline takes is spread over half a second.
    assert times[-1] > 10_000_000


def test_gstreamer_is_given_pictures_of_another_size(play: Play, tmp_path: Path) -> None:
    copy = tmp_path / "copy.gdp"
    sizes = [(40, 24), (40, 24), (56, 32), (56, 32)]

    def growing() -> Iterator[memoryview]:
        for number, (width, height) in enumerate(sizes):
            yield memoryview(solid(number, width, height)).cast("B", (height, width, 4))

    source = rushes.Pictures(growing(), 40, 24, pixels="rgba8", rate=20)
    with rushes.TextureServer(("127.0.0.1", 0), source, timing="every-frame") as server:
        pipeline = f"gdppay ! filesink location={copy}"
        player = play("--every-frame", address_of(server), pipeline)
        _, errors = player.communicate(timeout=60)
    assert player.returncode == 0, errors
    octets = copy.read_bytes()
    assert b"width=(int)40, height=(int)24" in octets
    assert b"width=(int)56, height=(int)32" in octets
    assert [it for _, _, _, it in unpacked(octets)] == [
        solid(number, *size) for number, size in enumerate(sizes)
    ]


def test_ctrl_c_ends_a_file_of_gstreamer(play: Play, tmp_path: Path) -> None:
    copy = tmp_path / "copy.rgba"
    with rushes.TextureServer(("127.0.0.1", 0), "pattern:64x48@100") as server:
        player = play(address_of(server), "filesink", f"location={copy}", "buffer-mode=unbuffered")
        eventually(lambda: copy.exists() and copy.stat().st_size > 0)
        player.send_signal(signal.SIGINT)
        _, errors = player.communicate(timeout=60)
    assert player.returncode == 0, errors
    assert "interrupted" in errors
    assert copy.stat().st_size % (64 * 48 * 4) == 0


def test_gstreamers_errors_end_the_example(play: Play, tmp_path: Path) -> None:
    lost = tmp_path / "nowhere" / "copy"
    with rushes.TextureServer(("127.0.0.1", 0), "pattern:64x48@100") as server:
        address = address_of(server)
        for words, reason in [
            ((address, "nosuchelement"), 'no element "nosuchelement"'),
            ((address, "filesink", f"location={lost}"), "Could not open file"),
            ((address, "video/x-raw,format=I420", "!", "fakesink"), "Internal data stream error"),
            (("localhost", "fakesink"), "has no port"),
        ]:
            player = play(*words)
            _, errors = player.communicate(timeout=60)
            assert player.returncode == 1, errors
            assert reason in errors.splitlines()[-1]
