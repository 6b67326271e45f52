"""Frames of a stream for ``async for``: a thread waits, the event loop does not."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress

from rushes._rushes import ClosedError, Frame, Stream, _Taker

__all__ = ["AsyncFrames"]

#: How long the thread waits before it looks whether anybody still wants a frame, in seconds.
_PATIENCE = 0.1


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

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._requests: _Requests = queue.SimpleQueue()
        self._given_up = threading.Event()
        self._pending: _Request | None = None
        self._thread: threading.Thread | None = None
        self._taker = _Taker(stream)
        self._take = self._taker.take

    def __aiter__(self) -> AsyncFrames:
        return self

    async def __anext__(self) -> Frame:
        # Hardly anything, as this is all there is to it where frames come thick and fast.
        frame = self._take()
        return await self._next() if frame is None else frame

    async def _next(self) -> Frame:
        if self._taker.is_turn_of_others():
            # Before a frame is taken: who is cancelled here loses none.
            await asyncio.sleep(0)
            self._taker.go_on()
            if (frame := self._take()) is not None:
                return frame
        while not self._given_up.is_set() and await self._wait():
            self._taker.go_on()
            if (frame := self._take()) is not None:
                return frame
        await self.aclose()
        raise StopAsyncIteration

    async def _wait(self) -> bool:
        """Waits until a frame may be there; whether more may come."""
        loop = asyncio.get_running_loop()
        request = self._pending
        # A loop that has ended has left its own behind.
        if request is None or request.loop is not loop:
            self._start()
            self._pending = request = _Request(loop)
            self._requests.put(request)
            if self._given_up.is_set():
                # The thread may have ended before it came to that.
                return False
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
        self._taker.stop()
        self._give_up()

    def _start(self) -> None:
        if self._thread is None:
            # It keeps neither the iterator nor the interpreter alive.
            arguments = (self._stream, self._requests, self._given_up)
            thread = threading.Thread(
                target=_pump, args=arguments, name="rushes-async", daemon=True
            )
            # Who cannot have one is told so, and may try again.
            thread.start()
            self._thread = thread

    def _give_up(self) -> None:
        self._given_up.set()
        self._requests.put(None)

    def __del__(self) -> None:
        self._give_up()


def _pump(stream: Stream, requests: _Requests, given_up: threading.Event) -> None:
    """Answers each request when a frame is kept."""
    while (request := requests.get()) is not None:
        outcome: bool | Exception = False
        try:
            while not outcome and not given_up.is_set():
                outcome = stream._keep_frame(_PATIENCE)
        except ClosedError:
            pass
        except Exception as exception:  # noqa: BLE001 - whoever awaits it is told
            outcome = exception
        with suppress(RuntimeError):  # The event loop is closed: nobody waits there any more.
            request.loop.call_soon_threadsafe(request.settle, outcome)
