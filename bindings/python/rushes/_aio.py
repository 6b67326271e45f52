"""Frames of a stream for ``async for``: a thread waits, the event loop does not."""

from __future__ import annotations

import asyncio
import queue
import threading

from rushes._rushes import ClosedError, Frame, Stream

__all__ = ["AsyncFrames"]

#: How long the thread waits before it looks whether anybody still wants a frame, in seconds.
_PATIENCE = 0.1

_Requests = queue.SimpleQueue["asyncio.Future[Frame | None] | None"]


class AsyncFrames:
    """The frames of a stream as an asynchronous iterator; ``aiter(stream)`` makes one.

    A frame is asked for when one is awaited, so none is lost between two loops over one stream, nor
    when a wait is cancelled: the next one gets what came. It ends when the stream is closed. One
    task at a time may wait.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._requests: _Requests = queue.SimpleQueue()
        self._given_up = threading.Event()
        self._pending: asyncio.Future[Frame | None] | None = None
        self._thread: threading.Thread | None = None

    def __aiter__(self) -> AsyncFrames:
        return self

    async def __anext__(self) -> Frame:
        if self._given_up.is_set():
            raise StopAsyncIteration
        if self._pending is None:
            self._pending = asyncio.get_running_loop().create_future()
            self._requests.put(self._pending)
            self._start()
        frame = await asyncio.shield(self._pending)
        self._pending = None
        if frame is None:
            await self.aclose()
            raise StopAsyncIteration
        return frame

    async def aclose(self) -> None:
        """Ends the iteration and its thread; the stream stays open."""
        self._give_up()

    def _start(self) -> None:
        if self._thread is None:
            # It keeps neither the iterator nor the interpreter alive.
            arguments = (self._stream, self._requests, self._given_up)
            self._thread = threading.Thread(
                target=_pump, args=arguments, name="rushes-async", daemon=True
            )
            self._thread.start()

    def _give_up(self) -> None:
        self._given_up.set()
        self._requests.put(None)

    def __del__(self) -> None:
        self._give_up()


def _pump(stream: Stream, requests: _Requests, given_up: threading.Event) -> None:
    """Gives a frame to each request."""
    while (wanted := requests.get()) is not None:
        frame: Frame | None = None
        error: Exception | None = None
        try:
            while frame is None and not given_up.is_set():
                frame = stream.pull_frame(_PATIENCE)
        except ClosedError:
            pass
        except Exception as exception:  # noqa: BLE001 - whoever awaits it is told
            error = exception
        try:
            wanted.get_loop().call_soon_threadsafe(_settle, wanted, frame, error)
        except RuntimeError:
            return  # The event loop is closed: nobody waits any more.


def _settle(
    wanted: asyncio.Future[Frame | None], frame: Frame | None, error: Exception | None
) -> None:
    if wanted.done():
        return
    if error is not None:
        wanted.set_exception(error)
    else:
        wanted.set_result(frame)
