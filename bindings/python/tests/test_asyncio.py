"""Frames for event loops."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, access_unit

Make = Callable[..., Pair]


def run(main: Callable[[], object]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(main(), TIME_LIMIT)  # type: ignore[arg-type]

    asyncio.run(bounded())


def numbered(number: int) -> bytes:
    return access_unit(b"%d" % number)


def test_a_thread_that_does_not_start_is_reported_and_another_is_tried(
    pair: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver, sender = pair()
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "rushes-async":
            raise RuntimeError("there are too many threads")
        start(thread)

    async def main() -> None:
        frames = aiter(receiver)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="too many"):
                await anext(frames)
        asyncio.get_running_loop().call_later(0.05, sender.push_frame, numbered(1))
        assert bytes(await anext(frames)) == numbered(1)

    run(main)


def test_frames_arrive_while_the_loop_runs_other_tasks(pair: Make) -> None:
    receiver, sender = pair()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def send() -> None:
        for number in range(20):
            sender.push_frame(numbered(number))
            await asyncio.sleep(0.002)

    async def main() -> None:
        others = [asyncio.create_task(tick()), asyncio.create_task(send())]
        got = []
        async for frame in receiver:
            got.append(bytes(frame))
            if len(got) == 20:
                break
        others[0].cancel()
        assert got == [numbered(number) for number in range(20)]

    run(main)
    assert ticks > 1


def test_other_tasks_have_their_turn_where_frames_always_wait(pair: Make) -> None:
    receiver, sender = pair()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def main() -> None:
        for number in range(20):
            sender.push_frame(numbered(number))
        other = asyncio.create_task(tick())
        frames = aiter(receiver)
        for number in range(20):
            # Longer than other tasks may have to wait.
            time.sleep(0.003)
            assert bytes(await anext(frames)) == numbered(number)
        other.cancel()

    run(main)
    assert ticks >= 20


def test_a_loop_that_waits_itself_does_so_briefly(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        frames = aiter(receiver)
        taker = frames._taker
        number = 0
        while taker.quick < 2 * taker.needed:
            sender.push_frame(numbered(number))
            assert bytes(await anext(frames)) == numbered(number)
            number += 1
        # The next one is sent by the loop itself, so that it waits in vain.
        saved = taker.quick
        asyncio.get_running_loop().call_later(0.2, sender.push_frame, numbered(number))
        assert bytes(await anext(frames)) == numbered(number)
        assert taker.quick == saved - taker.needed
        # From here on, the thread of the iterator has waited.
        assert frames._thread is not None

    run(main)


def test_the_loop_never_waits_for_infrequent_frames(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        frames = aiter(receiver)
        for number in range(10):
            # Much later than half a millisecond, even if the loop itself is late.
            later = 0.05
            asyncio.get_running_loop().call_later(later, sender.push_frame, numbered(number))
            assert bytes(await anext(frames)) == numbered(number)
        assert frames._taker.quick == 0

    run(main)


def test_no_frame_is_lost_when_a_turn_of_others_is_cancelled(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        frames = aiter(receiver)
        for number in range(3):
            sender.push_frame(numbered(number))
            time.sleep(0.003)
            wait = asyncio.ensure_future(anext(frames))
            await asyncio.sleep(0)
            wait.cancel()
            with pytest.raises(asyncio.CancelledError):
                await wait
            assert bytes(await anext(frames)) == numbered(number)

    run(main)


def test_no_frame_is_lost_between_two_loops(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        for number in range(10):
            sender.push_frame(numbered(number))
        got = []
        for _ in range(5):
            frames = aiter(receiver)
            got += [bytes(await anext(frames)), bytes(await anext(frames))]
            await frames.aclose()
        assert got == [numbered(number) for number in range(10)]

    run(main)


def test_no_frame_is_lost_when_a_wait_is_cancelled(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        frames = aiter(receiver)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(frames), 0.02)
        sender.push_frame(numbered(1))
        sender.push_frame(numbered(2))
        assert bytes(await anext(frames)) == numbered(1)
        assert bytes(await anext(frames)) == numbered(2)

    run(main)


def test_no_frame_is_lost_to_a_loop_that_was_given_up(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        for number in range(0, 10, 2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    async for _ in receiver:
                        pass
            # The iterator's thread still waits for a frame, and takes one of these.
            sender.push_frame(numbered(number))
            sender.push_frame(numbered(number + 1))
            frames = aiter(receiver)
            assert bytes(await anext(frames)) == numbered(number)
            assert bytes(await anext(frames)) == numbered(number + 1)
            await frames.aclose()

    run(main)


def test_no_frame_is_lost_between_two_event_loops(pair: Make) -> None:
    receiver, sender = pair()
    frames = aiter(receiver)

    async def in_vain() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(frames), 0.01)

    async def main() -> None:
        assert bytes(await anext(frames)) == numbered(1)
        assert bytes(await anext(frames)) == numbered(2)

    run(in_vain)
    sender.push_frame(numbered(1))
    sender.push_frame(numbered(2))
    run(main)


def test_a_kept_frame_is_returned_by_the_next_call(pair: Make) -> None:
    async def give_up(receiver: rushes.Stream, sender: rushes.Stream) -> None:
        frames = aiter(receiver)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(frames), 0.01)
        # The iterator's thread still waits, and takes the frame.
        sender.push_frame(numbered(1))
        request = frames._pending
        assert request is not None
        while request.outcome is None:
            await asyncio.sleep(0.001)
        sender.push_frame(numbered(2))

    pulled, sender = pair()
    run(lambda: give_up(pulled, sender))
    assert bytes(pulled.pull_frame(TIME_LIMIT) or b"") == numbered(1)
    assert bytes(pulled.pull_frame(TIME_LIMIT) or b"") == numbered(2)

    hooked, sender = pair()
    run(lambda: give_up(hooked, sender))
    got: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    hooked.on_frame(lambda frame: got.put(bytes(frame)))
    assert [got.get(timeout=TIME_LIMIT) for _ in range(2)] == [numbered(1), numbered(2)]


def test_the_loop_ends_when_the_stream_is_closed(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> None:
        sender.push_frame(numbered(1))
        got = 0
        async for _ in receiver:
            got += 1
            asyncio.get_running_loop().call_later(0.02, receiver.close)
        assert got == 1

    run(main)


def test_two_streams_are_waited_for_at_once(pair: Make) -> None:
    streams = [pair() for _ in range(3)]

    async def first(receiver: rushes.Stream) -> bytes:
        return bytes(await anext(aiter(receiver)))

    async def main() -> None:
        waiting = [asyncio.create_task(first(receiver)) for receiver, _ in streams]
        await asyncio.sleep(0.01)
        for number, (_, sender) in enumerate(streams):
            sender.push_frame(numbered(number))
        assert await asyncio.gather(*waiting) == [numbered(number) for number in range(3)]

    run(main)


def test_errors_reach_the_awaiting_task(pair: Make) -> None:
    receiver, _ = pair()
    receiver.on_frame(print)

    async def main() -> None:
        frames = aiter(receiver)
        with pytest.raises(rushes.StateError) as first:
            await anext(frames)
        with pytest.raises(rushes.StateError) as second:
            await anext(frames)
        # The second call raised a new exception.
        assert first.value is not second.value

    run(main)


def test_the_thread_ends_with_its_iterator(pair: Make) -> None:
    receiver, sender = pair()

    async def main() -> threading.Thread:
        # A frame that is ready already would need no thread.
        asyncio.get_running_loop().call_later(0.01, sender.push_frame, numbered(1))
        frames = aiter(receiver)
        await anext(frames)
        thread = frames._thread
        assert thread is not None
        return thread

    thread = asyncio.run(main())
    thread.join(TIME_LIMIT)
    assert not thread.is_alive()
