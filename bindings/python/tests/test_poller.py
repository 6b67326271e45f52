"""Many streams on one thread."""

from __future__ import annotations

import asyncio
import gc
import select
import sys
import threading
from collections.abc import Callable

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, eventually

Make = Callable[..., Pair]

linux = pytest.mark.skipif(sys.platform != "linux", reason="pollers have descriptors on Linux only")


def pulled(poller: rushes.Poller) -> tuple[int, bytes]:
    got = poller.pull(TIME_LIMIT)
    assert got is not None
    return got[0], bytes(got[1])


def test_frames_arrive_with_the_tokens_of_their_streams(pair: Make) -> None:
    with rushes.Poller() as poller:
        senders = []
        for token in range(10):
            receiver, sender = pair("generic")
            poller.add(receiver, token)
            poller.add_sender(sender, 100 + token)
            senders.append(sender)
        for number in range(3):
            frames = [(sender, b"%d of %d" % (number, at)) for at, sender in enumerate(senders)]
            assert rushes.push_many(frames) == []
        got = sorted(pulled(poller) for _ in range(30))
        assert got == sorted(
            (token, b"%d of %d" % (number, token)) for token in range(10) for number in range(3)
        )
        assert poller.pull(0) is None


def test_a_stream_is_in_one_place_at_a_time(pair: Make) -> None:
    receiver, sender = pair("generic")
    other, _ = pair("generic")
    poller, second = rushes.Poller(), rushes.Poller()
    poller.add(receiver, 2**64 - 1)
    uses: list[Callable[[], object]] = [
        lambda: receiver.pull_frame(0),
        lambda: receiver.on_frame(print),
        lambda: receiver.on_event(print),
        lambda: second.add(receiver, 1),
    ]
    for use in uses:
        with pytest.raises(rushes.StateError, match="a poller receives"):
            use()
    for add in (poller.add, poller.add_sender):
        with pytest.raises(rushes.ConfigError, match="token"):
            add(other, 2**64 - 1)
    with pytest.raises(rushes.ConfigError, match="token"):
        poller.add(other, -1)
    assert other.pull_frame(0) is None

    sender.push_frame(b"one")
    assert pulled(poller) == (2**64 - 1, b"one")
    assert receiver.statistics().receive.frames == 1
    assert poller.remove(7) is None
    assert poller.remove(2**64 - 1) is receiver
    sender.push_frame(b"two")
    assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == b"two"


def test_a_closed_poller_gives_its_streams_back(pair: Make) -> None:
    receiver, sender = pair("generic")
    with rushes.Poller() as poller:
        poller.add(receiver, 1)
    assert poller.closed
    sender.push_frame(b"frame")
    assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == b"frame"
    uses: list[Callable[[], object]] = [
        lambda: poller.pull(0),
        lambda: poller.add(receiver, 1),
        poller.timeout,
        poller.fileno,
    ]
    for use in uses:
        with pytest.raises(rushes.ClosedError):
            use()
    assert receiver.pull_frame(0) is None
    poller.close()


def test_a_closed_stream_leaves_the_poller(pair: Make) -> None:
    first, _ = pair("generic")
    receiver, sender = pair("generic")
    poller = rushes.Poller()
    poller.add(first, 1)
    poller.add_sender(first, 2)
    first.close()
    poller.add(receiver, 1)
    poller.add_sender(sender, 2)
    sender.push_frame(b"frame")
    assert pulled(poller) == (1, b"frame")


def test_a_poller_keeps_its_streams_open(session: rushes.Session) -> None:
    poller = rushes.Poller()
    stream = session.stream("generic", probation=1)
    port = stream.local_address[1]
    poller.add(stream, 1)
    del stream
    gc.collect()
    with session.stream("generic", remote_port=port) as sender:
        sender.push_frame(b"frame")
        assert pulled(poller) == (1, b"frame")
    stream_again = poller.remove(1)
    assert stream_again is not None
    assert not stream_again.closed


def test_a_frame_that_an_event_loop_left_comes_first(pair: Make) -> None:
    receiver, sender = pair("generic")
    sender.push_frame(b"one")
    assert receiver._keep_frame(TIME_LIMIT)
    sender.push_frame(b"two")
    poller = rushes.Poller()
    poller.add(receiver, 1)
    assert poller.timeout() == 0
    assert [pulled(poller), pulled(poller)] == [(1, b"one"), (1, b"two")]


def test_a_wait_can_be_ended_and_used_by_another_thread(pair: Make) -> None:
    receiver, sender = pair("generic")
    poller = rushes.Poller()
    got: list[object] = []

    def wait() -> None:
        got.append(poller.pull())
        got.append(pulled(poller))
        with pytest.raises(rushes.ClosedError):
            poller.pull()
        got.append("closed")

    thread = threading.Thread(target=wait)
    thread.start()
    poller.wake()
    poller.add(receiver, 5)
    sender.push_frame(b"frame")
    eventually(lambda: len(got) == 2)
    poller.close()
    thread.join(TIME_LIMIT)
    assert got == [None, (5, b"frame"), "closed"]


def test_events_are_passed_on_the_thread_that_pulls(pair: Make) -> None:
    receiver, sender = pair("generic")
    threads: set[int] = set()
    errors: list[Exception] = []
    poller = rushes.Poller()

    def note(_event: rushes.Event) -> None:
        threads.add(threading.get_ident())
        try:
            poller.pull(0)
        except rushes.StateError as error:
            errors.append(error)

    receiver.on_event(note)
    poller.add(receiver, 1)
    sender.push_frame(b"frame")
    assert pulled(poller) == (1, b"frame")
    assert threads == {threading.get_ident()}
    assert errors


@linux
def test_the_descriptor_is_readable_while_there_is_something_to_do(pair: Make) -> None:
    receiver, sender = pair("generic", rtcp=False)
    with rushes.Poller() as poller:
        poller.add(receiver, 1)
        while poller.pull(0) is not None or select.select([poller], [], [], 0)[0]:
            pass
        sender.push_frame(b"frame")
        assert select.select([poller], [], [], TIME_LIMIT)[0]
        assert pulled(poller) == (1, b"frame")
        assert poller.pull(0) is None
        poller.wake()
        assert select.select([poller], [], [], TIME_LIMIT)[0]
        assert poller.pull() is None


@linux
def test_an_event_loop_waits_for_the_descriptor(pair: Make) -> None:
    pairs = [pair("generic") for _ in range(5)]

    async def main() -> list[tuple[int, bytes]]:
        loop, done = asyncio.get_running_loop(), asyncio.Event()
        got: list[tuple[int, bytes]] = []

        def read() -> None:
            while (pulled := poller.pull(0)) is not None:
                token, frame = pulled
                got.append((token, bytes(frame)))
            if len(got) == 2 * len(pairs):
                done.set()

        with rushes.Poller() as poller:
            for token, (receiver, _) in enumerate(pairs):
                poller.add(receiver, token)
            loop.add_reader(poller, read)
            for _ in range(2):
                rushes.push_many((sender, b"frame") for _, sender in pairs)
                await asyncio.sleep(0.01)
            await asyncio.wait_for(done.wait(), TIME_LIMIT)
            loop.remove_reader(poller)
        return got

    assert sorted(asyncio.run(main())) == [(token, b"frame") for token in range(5) for _ in "12"]


def test_the_frames_that_were_not_sent_are_returned(pair: Make) -> None:
    receiver, sender = pair("generic")
    closed, _ = pair("generic")
    closed.close()
    _, picture = pair("h265")
    failed = rushes.push_many(
        [
            (closed, b"one"),
            (sender, b"two", 4_000_000_000),
            (picture, b"no start code"),
            (sender, bytearray(b"three"), None),
            (sender, memoryview(b"xfour")[1:], 7),
        ]
    )
    assert [(place, type(error)) for place, error in failed] == [
        (0, rushes.ClosedError),
        (2, rushes.FrameError),
    ]
    frames = [receiver.pull_frame(TIME_LIMIT) for _ in range(3)]
    assert [bytes(frame or b"") for frame in frames] == [b"two", b"three", b"four"]
    assert [frame.timestamp for frame in frames if frame][::2] == [4_000_000_000, 7]
    assert rushes.push_many([]) == []


@pytest.mark.parametrize("item", [b"frame", (), (1, b"frame"), "sender", ("sender", b"x", 1, 2)])
def test_a_wrong_item_is_refused_before_anything_is_sent(pair: Make, item: object) -> None:
    receiver, sender = pair("generic")
    with pytest.raises(TypeError, match=r"expected \(stream, data\)"):
        rushes.push_many([(sender, b"frame"), item])  # type: ignore[list-item]
    assert sender.statistics().send.frames == 0
    assert receiver.pull_frame(0) is None


def test_threads_push_on_the_same_streams(pair: Make) -> None:
    pairs = [pair("generic") for _ in range(4)]
    failed: list[object] = []

    def push(streams: list[rushes.Stream]) -> None:
        for _ in range(50):
            failed.extend(rushes.push_many((stream, b"frame") for stream in streams))

    senders = [sender for _, sender in pairs]
    threads = [
        threading.Thread(target=push, args=(order,)) for order in (senders, senders[::-1])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [sender.statistics().send.frames for sender in senders] == [100] * 4
