"""Buffers: when they are copied, and how long they live."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
import rushes
from conftest import TIME_LIMIT, Pair

Make = Callable[..., Pair]


def through(pair: Make, sent: object) -> rushes.Frame:
    """Sends a generic frame and returns it as received."""
    receiver, sender = pair("generic")
    sender.push_frame(sent)  # type: ignore[arg-type]
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None
    return frame


def test_views_of_a_frame_are_its_own_memory(pair: Make) -> None:
    frame = through(pair, b"octets")
    view, array, again = memoryview(frame), np.asarray(frame), np.asarray(frame)
    assert array.ctypes.data == again.ctypes.data
    assert (view.nbytes, view.format, view.ndim, view.c_contiguous) == (6, "B", 1, True)
    assert array.tobytes() == b"octets"


def test_a_frame_cannot_be_written_to(pair: Make) -> None:
    frame = through(pair, b"octets")
    view = memoryview(frame)
    assert view.readonly
    with pytest.raises(TypeError):
        view[0] = 1
    assert not np.asarray(frame).flags.writeable
    with pytest.raises((BufferError, TypeError)):
        # This requests a writable buffer.
        open(__file__, "rb").readinto(frame)


def test_a_view_outlives_its_frame_and_its_stream(pair: Make) -> None:
    receiver, sender = pair("generic")
    sender.push_frame(b"kept" * 1_000)
    view = memoryview(receiver.pull_frame(TIME_LIMIT) or b"")
    receiver.close()
    for _ in range(3):
        gc.collect()
    assert bytes(view) == b"kept" * 1_000


def test_frames_that_are_kept_do_not_change(pair: Make) -> None:
    receiver, sender = pair("generic")
    kept = []
    for number in range(50):
        sender.push_frame(bytes([number]) * 5_000)
        kept.append(receiver.pull_frame(TIME_LIMIT))
    assert [bytes(frame or b"") for frame in kept] == [bytes([n]) * 5_000 for n in range(50)]


@pytest.mark.parametrize(
    "sent",
    [
        b"octets",
        bytearray(b"octets"),
        memoryview(b"octets"),
        memoryview(b"some octets here")[5:11],
        memoryview(bytearray(b"some octets"))[5:],
        np.frombuffer(b"octets", np.uint8),
        np.frombuffer(b"octets", np.uint16).reshape(1, 3),
        np.array(list(b"octets"), np.uint8),
    ],
    ids=lambda sent: type(sent).__name__,
)
def test_octets_of_any_kind_are_sent(pair: Make, sent: object) -> None:
    assert bytes(through(pair, sent)) == b"octets"


def test_a_received_frame_is_sent_on(pair: Make) -> None:
    frame = through(pair, b"many octets")
    assert bytes(through(pair, frame)) == b"many octets"
    assert bytes(through(pair, memoryview(frame)[5:])) == b"octets"


def test_copies_of_different_lengths_do_not_mix(pair: Make) -> None:
    receiver, sender = pair("generic")
    for length in [9_000, 10, 300, 20_000, 1]:
        sender.push_frame(bytearray(b"%d" % (length % 10)) * length)
        frame = receiver.pull_frame(TIME_LIMIT)
        assert bytes(frame or b"") == b"%d" % (length % 10) * length


@pytest.mark.parametrize("wrong", ["text", 5, None, [1, 2], np.zeros((4, 4))[:, ::2]])
def test_what_is_no_row_of_octets_is_refused(pair: Make, wrong: object) -> None:
    _, sender = pair("generic")
    with pytest.raises(TypeError, match="octets"):
        sender.push_frame(wrong)  # type: ignore[arg-type]
    assert sender.statistics().send.frames == 0


def test_a_bytearray_may_grow_after_it_was_sent(pair: Make) -> None:
    _, sender = pair("generic")
    octets = bytearray(b"octets")
    sender.push_frame(octets)
    octets.extend(b"more")
    assert len(octets) == 10


#: Sends 100 MB and prints by how many octets the process has grown.
MEASURED = """
import resource, socket, rushes
sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sink.bind(("127.0.0.1", 0))
session = rushes.Context().session("127.0.0.1")
stream = session.stream("generic", remote_port=sink.getsockname()[1], pacing=False)
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
whole = b"x" * 100_000_000
data = {given}
stream.push_frame(b"x" * 1_000)
before = peak()
stream.push_frame(data)
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("given", "is_copied"),
    [("whole", False), ("memoryview(whole)[5:]", False), ("bytearray(whole)", True)],
)
def test_what_never_changes_is_not_copied(given: str, is_copied: bool) -> None:
    run = [sys.executable, "-c", MEASURED.format(given=given)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)
    assert (int(ended.stdout) > 50_000_000) == is_copied


def test_views_of_bytes_are_sent_from_where_they_begin(pair: Make) -> None:
    receiver, sender = pair("generic")
    whole = bytes(range(256)) * 10
    for start, end in [(0, 10), (5, 2_000), (2_559, 2_560)]:
        sender.push_frame(memoryview(whole)[start:end])
        assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == whole[start:end]


def test_arrays_are_octets_for_type_checkers_too(pair: Make) -> None:
    receiver, sender = pair("generic")
    sender.push_frame(np.arange(5, dtype=np.uint8))
    assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == bytes(range(5))


def test_consumers_of_dlpack_read_the_frame_itself(pair: Make) -> None:
    frame = through(pair, b"octets")
    assert frame.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(frame)
    assert array.ctypes.data == np.asarray(frame).ctypes.data
    assert not array.flags.writeable
    del frame
    gc.collect()
    assert array.tobytes() == b"octets"

    picture = rushes.encode_texture(bytes(16 * 8 * 3), 16, 8, "rgba8")
    assert np.from_dlpack(picture).shape == (8, 16, 4)
    capsule = picture.__dlpack__(max_version=(1, 0))
    assert '"dltensor_versioned"' in repr(capsule)


def test_older_consumers_of_dlpack_get_copies_only(pair: Make) -> None:
    """Their capsules cannot say that the octets must not be written to."""
    frame = through(pair, b"octets")
    with pytest.raises(BufferError, match="readonly"):
        frame.__dlpack__()
    assert '"dltensor"' in repr(frame.__dlpack__(copy=True))


def test_dlpack_says_that_it_needs_numpy(pair: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = through(pair, b"octets")
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ImportError, match="pip install numpy"):
        frame.__dlpack__(max_version=(1, 0))
