"""Frames of a stream for ``async for``: a thread waits, the event loop does not."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from contextlib import suppress

from rushes._rushes import ClosedError, Frame, Stream

__all__ = ["AsyncFrames", "Kept"]

#: How long the thread waits before it looks whether anybody still wants a frame, in seconds.
_PATIENCE = 0.1

_Requests = queue.SimpleQueue["asyncio.Future[bool] | None"]


class Kept:
    """Frames of one stream that a loop's thread has taken and nobody has been given yet."""

    def __init__(self) -> None:
        self.frames: deque[Frame] = deque()
        #: Held while a frame is taken and kept, so that they stay in their order.
        self.taking = threading.Lock()


class AsyncFrames:
    """The frames of a stream as an asynchronous iterator; ``aiter(stream)`` makes one.

    A frame is asked for when one is awaited, and kept with the stream until one is given it. So none
    is lost between two loops over one stream, nor when a wait is cancelled: the next one gets what
    came. It ends when the stream is closed. One task at a time may wait.
    """

    def __init__(self, stream: Stream, kept: Kept) -> None:
        self._stream = stream
        self._kept = kept
        self._requests: _Requests = queue.SimpleQueue()
        self._given_up = threading.Event()
        self._pending: asyncio.Future[bool] | None = None
        self._thread: threading.Thread | None = None

    def __aiter__(self) -> AsyncFrames:
        return self

    async def __anext__(self) -> Frame:
        while not self._given_up.is_set():
            with suppress(IndexError):
                return self._kept.frames.popleft()
            if not await self._wait():
                await self.aclose()
        raise StopAsyncIteration

    async def _wait(self) -> bool:
        """Waits until a frame may be there; whether more may come."""
        loop = asyncio.get_running_loop()
        # A loop that has ended has left its own behind.
        if self._pending is None or self._pending.get_loop() is not loop:
            self._pending = loop.create_future()
            self._requests.put(self._pending)
            self._start()
        pending = self._pending
        try:
            return await asyncio.shield(pending)
        finally:
            # It stays where the wait was cancelled.
            if pending.done() and self._pending is pending:
                self._pending = None

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
    while (wanted := requests.get()) is not None:
        came = False
        error: Exception | None = None
        try:
            while not came and not given_up.is_set():
                came = _take(stream, kept)
        except ClosedError:
            pass
        except Exception as exception:  # noqa: BLE001 - whoever awaits it is told
            error = exception
        try:
            wanted.get_loop().call_soon_threadsafe(_settle, wanted, came, error)
        except RuntimeError:
            pass  # The event loop is closed: nobody waits there any more.


def _take(stream: Stream, kept: Kept) -> bool:
    """Takes a frame, if one comes soon; whether any is kept."""
    with kept.taking:
        if not kept.frames and (frame := stream.pull_frame(_PATIENCE)) is not None:
            kept.frames.append(frame)
        return bool(kept.frames)


def _settle(wanted: asyncio.Future[bool], came: bool, error: Exception | None) -> None:
    if wanted.done():
        return
    if error is not None:
        wanted.set_exception(error)
    else:
        wanted.set_result(came)
