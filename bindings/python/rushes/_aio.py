"""Frames of a stream for ``async for``: a thread waits, the event loop does not."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from contextlib import suppress
from time import monotonic

from rushes._rushes import ClosedError, Frame, Stream

__all__ = ["AsyncFrames", "Kept"]

#: How long the thread waits before it looks whether anybody still wants a frame, in seconds.
_PATIENCE = 0.1

#: How long the event loop waits for a frame itself where they come thick and fast, in seconds. To be
#: woken by a thread would cost it a fifth of that in processor time.
_BRIEFLY = 0.0005

#: So many frames that came within that time make up for a wait of the loop in vain.
_QUICK = 8

#: As many such waits may be saved up.
_SAVED = 8

#: After so many seconds of frames without a wait, other tasks have their turn.
_TURN = 0.0005


class Kept:
    """Frames of one stream that a loop's thread has taken and nobody has been given yet."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        #: Held while a frame is taken and kept, so that they stay in their order.
        self.taking = threading.Lock()


class _Request:
    """A frame that somebody waits for in an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: set[asyncio.Future[None]] = set()
        #: Whether one is kept, or why not; ``None`` until it is known.
        self.outcome: bool | Exception | None = None

    def settle(self, outcome: bool | Exception) -> None:
        """Wakes whoever waits, in the event loop."""
        self.outcome = outcome
        for waiting in self.waiting:
            if not waiting.done():
                waiting.set_result(None)


_Requests = queue.SimpleQueue[_Request | None]


class AsyncFrames:
    """The frames of a stream as an asynchronous iterator; ``aiter(stream)`` makes one.

    A frame is asked for when one is awaited, and kept with the stream until one is given it. So none
    is lost between two loops over one stream, nor when a wait is cancelled: the next one gets what
    came. It ends when the stream is closed. One task at a time may wait.

    A thread waits and wakes the event loop. Only where frames follow each other within half a
    millisecond does the loop wait itself, for no longer than that, and other tasks have their turn
    between every few of them.
    """

    def __init__(self, stream: Stream, kept: Kept) -> None:
        self._stream = stream
        self._kept = kept
        self._requests: _Requests = queue.SimpleQueue()
        self._given_up = threading.Event()
        self._pending: _Request | None = None
        self._thread: threading.Thread | None = None
        #: Frames that came soon after they were asked for, less those that waits in vain have cost.
        self._quick = 0
        #: When other tasks had their turn.
        self._turned = monotonic()

    def __aiter__(self) -> AsyncFrames:
        return self

    async def __anext__(self) -> Frame:
        asked = monotonic()
        if asked - self._turned > _TURN:
            # Before a frame is taken: who is cancelled here loses none.
            await asyncio.sleep(0)
            self._turned = asked = monotonic()
        while not self._given_up.is_set():
            try:
                frame = self._take()
            except ClosedError:
                break
            if frame is not None:
                if self._quick < _QUICK * _SAVED and monotonic() - asked < _BRIEFLY:
                    self._quick += 1
                return frame
            if not await self._wait():
                break
            self._turned = monotonic()
        await self.aclose()
        raise StopAsyncIteration

    def _take(self) -> Frame | None:
        """Takes a frame that is there, or comes as soon as those before."""
        kept = self._kept
        if kept.frames:
            with suppress(IndexError):  # A loop in another thread may be faster.
                return kept.frames.popleft()
        # Not where a thread waits for one already.
        if self._pending is not None or not kept.taking.acquire(blocking=False):
            return None
        try:
            if kept.frames:
                return None  # One was kept meanwhile: it comes first.
            if self._quick < _QUICK:
                return self._stream._pull_if_free(0)
            frame = self._stream._pull_if_free(_BRIEFLY)
            if frame is None:
                self._quick -= _QUICK
            return frame
        finally:
            kept.taking.release()

    async def _wait(self) -> bool:
        """Waits until a frame may be there; whether more may come."""
        loop = asyncio.get_running_loop()
        request = self._pending
        # A loop that has ended has left its own behind.
        if request is None or request.loop is not loop:
            self._pending = request = _Request(loop)
            self._requests.put(request)
            self._start()
        # It stays where the wait is cancelled.
        if request.outcome is None:
            waiting = loop.create_future()
            request.waiting.add(waiting)
            try:
                await waiting
            finally:
                request.waiting.discard(waiting)
        if self._pending is request:
            self._pending = None
        if isinstance(request.outcome, Exception):
            raise request.outcome
        return bool(request.outcome)

    async def aclose(self) -> None:
        """Ends the iteration and its thread; the stream stays open."""
        self._give_up()

    def _start(self) -> None:
        if self._thread is None:
            # It keeps neither the iterator nor the interpreter alive.
            arguments = (self._stream, self._kept, self._requests, self._given_up)
            self._thread = threading.Thread(
                target=_pump, args=arguments, name="rushes-async", daemon=True
            )
            self._thread.start()

    def _give_up(self) -> None:
        self._given_up.set()
        self._requests.put(None)

    def __del__(self) -> None:
        self._give_up()


def _pump(stream: Stream, kept: Kept, requests: _Requests, given_up: threading.Event) -> None:
    """Answers each request when a frame is kept."""
    while (request := requests.get()) is not None:
        outcome: bool | Exception = False
        try:
            while not outcome and not given_up.is_set():
                outcome = _take(stream, kept)
        except ClosedError:
            pass
        except Exception as exception:  # noqa: BLE001 - whoever awaits it is told
            outcome = exception
        with suppress(RuntimeError):  # The event loop is closed: nobody waits there any more.
            request.loop.call_soon_threadsafe(request.settle, outcome)


def _take(stream: Stream, kept: Kept) -> bool:
    """Takes a frame, if one comes soon; whether any is kept."""
    with kept.taking:
        if not kept.frames and (frame := stream.pull_frame(_PATIENCE)) is not None:
            kept.frames.append(frame)
        return bool(kept.frames)
