"""Frames of a stream for ``async for``: a thread waits instead of the event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from contextlib import suppress

from rushes._rushes import ClosedError, Frame, Stream, _Taker

__all__ = ["AsyncFrames"]

#: How long the thread waits before it checks whether a frame is still wanted, in seconds.
_POLL_INTERVAL = 0.1


class _Request:
    """A request for a frame by tasks of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: set[asyncio.Future[None]] = set()
        #: Whether a frame is kept, or the exception; ``None`` until it is known.
        self.outcome: bool | Exception | None = None

    def settle(self, outcome: bool | Exception) -> None:
        """Sets the outcome and wakes the waiting tasks, in the event loop."""
        self.outcome = outcome
        for waiting in self.waiting:
            if not waiting.done():
                waiting.set_result(None)


_Requests = queue.SimpleQueue[_Request | None]


class AsyncFrames:
    """The frames of a stream as an asynchronous iterator; ``aiter(stream)`` creates one.

    A frame is requested when a task awaits it, and is kept with the stream until it is delivered.
    No frame is lost between two loops over one stream or when a wait is cancelled, because the next
    wait returns it. The iteration ends when the stream is closed. Only one task may wait at a time.

    A thread waits and wakes the event loop. While frames follow each other within half a
    millisecond, the loop itself waits, for no longer than that, and other tasks run every few
    frames.
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
        # Kept short, because only this runs while frames arrive in quick succession.
        frame = self._take()
        return await self._next() if frame is None else frame

    async def _next(self) -> Frame:
        if self._taker.is_turn_of_others():
            # Other tasks run before a frame is taken, so that a cancellation here loses no frame.
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
        """Waits until a frame may be ready; returns whether more may arrive."""
        loop = asyncio.get_running_loop()
        request = self._pending
        # The pending request may be from an event loop that has ended.
        if request is None or request.loop is not loop:
            self._start()
            self._pending = request = _Request(loop)
            self._requests.put(request)
            if self._given_up.is_set():
                # The thread may have ended without reading the request.
                return False
        # The request stays pending if the wait is cancelled.
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
            # The thread keeps neither the iterator nor the interpreter alive.
            arguments = (self._stream, self._requests, self._given_up)
            thread = threading.Thread(
                target=_settle_requests, args=arguments, name="rushes-async", daemon=True
            )
            # This raises if no thread can be started; the caller may try again.
            thread.start()
            self._thread = thread

    def _give_up(self) -> None:
        self._given_up.set()
        self._requests.put(None)

    def __del__(self) -> None:
        self._give_up()


def _settle_requests(stream: Stream, requests: _Requests, given_up: threading.Event) -> None:
    """Settles each request when a frame is kept."""
    while (request := requests.get()) is not None:
        outcome: bool | Exception = False
        try:
            while not outcome and not given_up.is_set():
                outcome = stream._keep_frame(_POLL_INTERVAL)
        except ClosedError:
            pass
        except Exception as exception:  # noqa: BLE001 - raised where it is awaited
            outcome = exception
        with suppress(RuntimeError):  # The event loop is closed, so no task waits.
            request.loop.call_soon_threadsafe(request.settle, outcome)
