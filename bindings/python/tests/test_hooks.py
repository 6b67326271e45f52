"""Hooks: Python functions that the library calls."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, access_unit

Make = Callable[..., Pair]


class Gathered:
    """A hook that collects its arguments, and a way to wait for them."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._changed = threading.Condition()

    def __call__(self, item: Any) -> None:
        with self._changed:
            self.items.append(item)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.items) >= count, TIME_LIMIT)
            return list(self.items)


def test_a_hook_is_given_frames_on_a_thread_of_its_own(pair: Make) -> None:
    receiver, sender = pair()
    gathered = Gathered()
    threads = set()

    def hook(frame: rushes.Frame) -> None:
        threads.add(threading.get_ident())
        gathered(bytes(frame))

    receiver.on_frame(hook)
    for number in range(20):
        sender.push_frame(access_unit(bytes([number + 1])))
    frames = gathered.wait_for(20)
    assert frames == [access_unit(bytes([number + 1])) for number in range(20)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_what_a_hook_keeps_for_its_thread_lasts(pair: Make) -> None:
    receiver, sender = pair()
    gathered, own = Gathered(), threading.local()

    def hook(_frame: rushes.Frame) -> None:
        own.calls = getattr(own, "calls", 0) + 1
        gathered(own.calls)

    receiver.on_frame(hook)
    for _ in range(5):
        sender.push_frame(access_unit(b"x"))
    assert gathered.wait_for(5) == [1, 2, 3, 4, 5]


def test_frames_go_to_one_place_only(pair: Make) -> None:
    receiver, _ = pair()
    receiver.on_frame(print)
    with pytest.raises(rushes.StateError, match="on_frame"):
        receiver.on_frame(print)
    with pytest.raises(rushes.StateError):
        receiver.pull_frame(0)
    with pytest.raises(rushes.StateError):
        receiver.on_event(print)


def test_exceptions_of_a_hook_are_reported_and_end_nothing(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, sender = pair()
    reported: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: reported.append(str(raised.exc_value)))
    gathered = Gathered()

    def hook(frame: rushes.Frame) -> None:
        gathered(frame)
        raise ValueError("not this frame")

    receiver.on_frame(hook)
    for _ in range(3):
        sender.push_frame(access_unit(b"x"))
    gathered.wait_for(3)
    receiver.close()
    assert reported == ["not this frame"] * 3


def test_a_hook_may_close_its_stream(pair: Make) -> None:
    receiver, sender = pair()
    gathered = Gathered()

    def hook(frame: rushes.Frame) -> None:
        receiver.close()
        gathered(frame)

    receiver.on_frame(hook)
    sender.push_frame(access_unit(b"x"))
    gathered.wait_for(1)
    assert receiver.closed


def test_a_hook_may_send(pair: Make) -> None:
    receiver, sender = pair()
    back, forth = pair()
    receiver.on_frame(lambda frame: forth.push_frame(frame))
    sender.push_frame(access_unit(b"there and back"))
    assert bytes(back.pull_frame(TIME_LIMIT) or b"") == access_unit(b"there and back")


def test_closing_waits_for_a_call_that_wants_the_interpreter(pair: Make) -> None:
    receiver, sender = pair()
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def hook(_frame: rushes.Frame) -> None:
        began.set()
        go_on.wait(TIME_LIMIT)
        done.set()

    receiver.on_frame(hook)
    sender.push_frame(access_unit(b"x"))
    assert began.wait(TIME_LIMIT)
    go_on.set()
    receiver.close()
    assert done.is_set()


def test_sources_and_conflicts_are_reported(pair: Make) -> None:
    receiver, sender = pair("generic", rtcp=False, reorder_time=0.01)
    events = Gathered()
    receiver.on_event(events)
    sender.push_frame(b"first")
    assert receiver.pull_frame(TIME_LIMIT) is not None
    # A second sender uses the same SSRC.
    with rushes.Context().session("127.0.0.1") as session:
        other = session.stream(
            "generic",
            remote_port=receiver.local_address[1],
            ssrc=sender.ssrc,
            first_packet=(0, 0),
            rtcp=False,
        )
        other.push_frame(b"from another address")
        assert receiver.pull_frame(0.1) is None
    kinds = [event.kind for event in events.items]
    assert kinds == ["source-started", "conflict"]
    assert events.items[0].ssrc == sender.ssrc


def test_another_payload_type_is_reported_with_its_sender(pair: Make) -> None:
    receiver, _ = pair("generic", rtcp=False)
    events = Gathered()
    receiver.on_event(events)
    with rushes.Context().session("127.0.0.1") as session:
        other = session.stream(
            "generic", remote_port=receiver.local_address[1], payload_type=33, rtcp=False
        )
        other.push_frame(b"of another kind")
        assert receiver.pull_frame(0.1) is None
        (event,) = events.wait_for(1)
        address = f"127.0.0.1:{other.local_address[1]}"
    assert event.kind == "other-payload-type"
    assert event.details == {"payload_type": 33, "address": address, "packets": 1}
    assert receiver.statistics().receive.discards == {"other payload type": 1}


def test_a_hook_cannot_use_what_has_called_it(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, sender = pair()
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: raised.append(error.exc_type))
    receiver.on_event(lambda event: receiver.pull_frame(0))
    sender.push_frame(access_unit(b"x"))
    assert receiver.pull_frame(TIME_LIMIT) is not None
    assert raised == [rushes.StateError]


def pull_in_threads(*streams: rushes.Stream) -> list[bytes]:
    """The first frame of each stream, pulled on one thread each."""
    got: list[bytes] = []

    def pull(stream: rushes.Stream) -> None:
        got.append(bytes(stream.pull_frame(TIME_LIMIT) or b""))

    threads = [threading.Thread(target=pull, args=[stream], daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * TIME_LIMIT)
    assert not any(thread.is_alive() for thread in threads)
    return got


def test_two_hooks_that_want_each_others_stream_do_not_hang(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, one), (second, two) = pair(rtcp=False), pair(rtcp=False)
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: raised.append(error.exc_type))
    both = threading.Barrier(2)

    def wants(other: rushes.Stream) -> Callable[[rushes.Event], None]:
        def hook(_event: rushes.Event) -> None:
            both.wait(TIME_LIMIT)
            other.pull_frame(0)

        return hook

    first.on_event(wants(second))
    second.on_event(wants(first))
    one.push_frame(access_unit(b"x"))
    two.push_frame(access_unit(b"x"))
    assert pull_in_threads(first, second) == [access_unit(b"x")] * 2
    # One of the two calls succeeds.
    assert raised == [rushes.StateError]


def test_two_hooks_that_close_the_streams_they_run_in_do_not_hang(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, one), (second, two) = pair(rtcp=False), pair(rtcp=False)
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: raised.append(error.exc_type))
    both = threading.Barrier(2)

    def closes(other: rushes.Stream) -> Callable[[rushes.Event], None]:
        def hook(_event: rushes.Event) -> None:
            both.wait(TIME_LIMIT)
            other.close()

        return hook

    first.on_event(closes(second))
    second.on_event(closes(first))
    one.push_frame(access_unit(b"x"))
    two.push_frame(access_unit(b"x"))
    assert pull_in_threads(first, second) == [access_unit(b"x")] * 2
    assert raised == [rushes.StateError] * 2
    # Both streams are still open.
    for stream in (first, second):
        assert not stream.closed
        assert stream.pull_frame(0) is None


def test_a_hook_waits_its_turn(pair: Make) -> None:
    receiver, sender = pair(rtcp=False)
    back, forth = pair(rtcp=False, pacing_rate=4_000_000)
    receiver.on_event(lambda _event: forth.push_frame(access_unit(b"y")))
    ended, pushing = threading.Event(), threading.Event()

    def push() -> None:
        while not ended.wait(0.01):
            pushing.set()
            forth.push_frame(access_unit(bytes(b"z" * 20_000)))

    thread = threading.Thread(target=push)
    thread.start()
    try:
        assert pushing.wait(TIME_LIMIT)
        sender.push_frame(access_unit(b"x"))
        assert receiver.pull_frame(TIME_LIMIT) is not None
        assert access_unit(b"y") in (bytes(frame) for frame in back.frames(TIME_LIMIT))
    finally:
        ended.set()
        thread.join(TIME_LIMIT)


def test_a_close_gives_the_port_back_from_a_thread_that_waits(
    session: rushes.Session, free_port: int
) -> None:
    stream = session.stream("h265", local_port=free_port)
    reported: list[type[BaseException]] = []
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        try:
            while True:
                stream.wait(60)
        except rushes.ClosedError as error:
            reported.append(type(error))

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(TIME_LIMIT)
    stream.wait(0.02)
    stream.close()
    session.stream("h265", local_port=free_port).close()
    for thread in threads:
        thread.join(TIME_LIMIT)
    assert reported == [rushes.ClosedError] * 2


def test_an_abandoned_loop_delays_no_other(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> object:
        frames = aiter(receiver)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(frames), 0.02)
        return frames

    frames = asyncio.run(main())
    sender.push_frame(access_unit(b"x"))
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None and bytes(frame) == access_unit(b"x")
    receiver.close()
    with pytest.raises(rushes.ClosedError):
        receiver.pull_frame(0)
    del frames


def test_a_stream_that_refuses_to_be_closed_stays_open_whole(
    session: rushes.Session, pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, sender = pair(rtcp=False)
    raised: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: raised.append(error.exc_type))
    receiver.on_event(lambda _event: session.close())
    sender.push_frame(access_unit(b"x"))
    assert receiver.pull_frame(TIME_LIMIT) is not None
    assert raised == [rushes.StateError]
    assert (receiver.closed, sender.closed) == (False, False)
    assert receiver.pull_frame(0) is None
    assert receiver.rtcp.peers() == []
    session.close()
    assert receiver.closed
    # Its port is free again.
    with session.stream("h265", local_port=receiver.local_address[1]):
        pass


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="sockets cannot be found")
def test_a_broken_socket_is_reported_to_a_hook(session: rushes.Session) -> None:
    receiver = session.stream("h265", rtcp=False)
    events = Gathered()
    receiver.on_event(events)
    receiver.on_frame(lambda _frame: None)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), descriptor_of(receiver.local_address[1]))
    (event, *_) = events.wait_for(1)
    assert event.kind == "unreadable"
    assert event["text"]
    receiver.close()


def descriptor_of(port: int) -> int:
    """The descriptor of this process's socket at a port."""
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as found:
                if found.getsockname()[1:2] == (port,):
                    return int(name)
        except OSError:
            pass
    raise AssertionError("there is no such socket")


def test_what_cannot_be_called_is_refused(pair: Make) -> None:
    receiver, _ = pair()
    for set_hook in [receiver.on_frame, receiver.on_event, receiver.rtcp.on_event]:
        with pytest.raises(TypeError, match="callable"):
            set_hook(5)  # type: ignore[arg-type]


def test_a_stream_without_references_is_closed(session: rushes.Session) -> None:
    gathered = Gathered()
    stream = session.stream("h265", probation=1)
    address = stream.local_address[1]
    stream.on_frame(gathered)
    del stream
    gc.collect()
    # Its port is free again.
    with session.stream("h265", local_port=address) as other:
        assert other.local_address[1] == address
    assert weakref.ref(gathered)() is gathered


def test_a_program_ends_with_hooks_still_running() -> None:
    program = """
import rushes, threading
session = rushes.Context().session("127.0.0.1")
receiver = session.stream("generic", probation=1)
sender = session.stream("generic", remote_port=receiver.local_address[1])
came = threading.Event()
receiver.on_frame(lambda frame: came.set())
server = rushes.TextureServer(("127.0.0.1", 0), "pattern:64x64@200")
client = rushes.TextureClient(server.local_address)
client.on_frame(lambda frame: None)
sender.push_frame(b"x")
print(came.wait(20))
"""
    run = [sys.executable, "-c", program]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
