"""Messages of the library in the logger "rushes"."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, eventually

Make = Callable[..., Pair]

LOGGER = logging.getLogger("rushes")

#: More octets than any kernel grants.
TOO_LARGE = 2_000_000_000


class Gathered(logging.Handler):
    """A handler that collects records, and can be blocked by a test."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self.go_on = threading.Event()
        self.go_on.set()

    def emit(self, record: logging.LogRecord) -> None:
        self.go_on.wait(TIME_LIMIT)
        self.records.append(record)

    def texts(self) -> list[str]:
        return [record.getMessage() for record in self.records]

    def has(self, text: str) -> bool:
        return any(text in known for known in self.texts())


@pytest.fixture
def handler() -> Iterator[Gathered]:
    handler = Gathered()
    LOGGER.addHandler(handler)
    yield handler
    LOGGER.removeHandler(handler)
    LOGGER.setLevel(logging.NOTSET)


def open_with(session: rushes.Session, octets: int) -> None:
    with session.stream("generic", socket_buffer=octets):
        pass


def send_noise(receiver: rushes.Stream, datagrams: int) -> None:
    """Sends datagrams that are not reports to the port for RTCP, and makes the stream read them."""
    host, port = receiver.local_address
    before = receiver.rtcp.statistics().malformed
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for number in range(datagrams):
            stranger.sendto(b"noise", (host, port + 1))
            if number % 16 == 15:
                assert receiver.pull_frame(0.001) is None
    wanted = before + datagrams

    def is_read() -> bool:
        assert receiver.pull_frame(0.001) is None
        return receiver.rtcp.statistics().malformed >= wanted

    eventually(is_read)


def test_a_clamped_buffer_is_logged_with_its_advice(
    session: rushes.Session, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="rushes"):
        open_with(session, TOO_LARGE)
        eventually(lambda: f"of {TOO_LARGE} octets, bursts" in caplog.text)
    record = next(record for record in caplog.records if "rmem_max" in record.getMessage())
    assert (record.name, record.levelname) == ("rushes", "WARNING")
    assert "sysctl -w net.core.rmem_max=1073741823" in record.getMessage()
    assert f" of {TOO_LARGE} octets" in record.getMessage()
    assert (record.filename, record.module) == ("buffer.rs", "buffer")
    assert record.lineno > 0
    # The message is passed on by another thread than the one that logged it.
    assert record.threadName is None


def test_messages_below_the_level_are_not_passed_on(
    session: rushes.Session, handler: Gathered
) -> None:
    LOGGER.setLevel(logging.ERROR)
    open_with(session, TOO_LARGE)
    LOGGER.setLevel(logging.WARNING)
    open_with(session, TOO_LARGE + 1)
    eventually(lambda: handler.has(f"of {TOO_LARGE + 1} octets, bursts"))
    assert not handler.has(f"of {TOO_LARGE} octets, bursts")
    # No message is passed on while logging is disabled.
    logging.disable()
    open_with(session, TOO_LARGE + 2)
    logging.disable(logging.NOTSET)
    open_with(session, TOO_LARGE + 3)
    eventually(lambda: handler.has(f"of {TOO_LARGE + 3} octets, bursts"))
    assert not handler.has(f"of {TOO_LARGE + 2} octets, bursts")


def test_a_level_takes_effect_while_a_stream_waits(pair: Make, handler: Gathered) -> None:
    receiver, _ = pair()
    assert receiver.pull_frame(0) is None
    send_noise(receiver, 1)
    LOGGER.setLevel(logging.DEBUG)
    assert receiver.pull_frame(0.2) is None
    send_noise(receiver, 2)
    eventually(lambda: len([text for text in handler.texts() if "not RTCP" in text]) == 2)
    assert {record.levelno for record in handler.records} == {logging.DEBUG}


def test_a_handler_that_waits_holds_nothing_up(
    session: rushes.Session, pair: Make, handler: Gathered
) -> None:
    handler.go_on.clear()
    open_with(session, TOO_LARGE)
    # If a handler held a lock of the library, this thread could not send, receive and close.
    receiver, sender = pair("generic")
    sender.push_frame(b"meanwhile")
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None
    assert bytes(frame) == b"meanwhile"
    receiver.close()
    assert handler.records == []
    handler.go_on.set()
    eventually(lambda: handler.has("rmem_max"))


def test_a_handler_may_use_the_library(session: rushes.Session) -> None:
    stream = session.stream("generic")
    done = threading.Event()

    class Closes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            stream.close()
            done.set()

    handler = Closes()
    LOGGER.addHandler(handler)
    try:
        open_with(session, TOO_LARGE)
        assert done.wait(TIME_LIMIT)
    finally:
        LOGGER.removeHandler(handler)
    assert stream.closed


def test_exceptions_of_logging_are_reported_and_end_nothing(
    session: rushes.Session, handler: Gathered, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda error: reported.append(str(error.exc_value)))

    def refuse(record: logging.LogRecord) -> bool:
        raise ValueError("not this message")

    LOGGER.addFilter(refuse)
    try:
        open_with(session, TOO_LARGE)
        # There is at least one message for each direction.
        eventually(lambda: len(reported) >= 2)
    finally:
        LOGGER.removeFilter(refuse)
    assert set(reported) == {"not this message"}
    open_with(session, TOO_LARGE + 1)
    eventually(lambda: handler.has(f"of {TOO_LARGE + 1} octets, bursts"))


def test_no_more_messages_wait_than_the_queue_holds(pair: Make, handler: Gathered) -> None:
    LOGGER.setLevel(logging.DEBUG)
    receiver, _ = pair()
    handler.go_on.clear()
    send_noise(receiver, 3_000)
    handler.go_on.set()
    eventually(lambda: handler.has("messages were dropped"))
    kept = [text for text in handler.texts() if "not RTCP" in text]
    dropped = next(text for text in handler.texts() if "messages were dropped" in text)
    # The queue holds a thousand; at most another thousand were taken out of it together.
    assert 1_024 <= len(kept) <= 2_048
    assert len(kept) + int(dropped.split()[0]) == 3_000


def test_the_last_message_is_written_before_the_program_ends() -> None:
    program = (
        "import logging, rushes\n"
        "logging.basicConfig(format='%(name)s %(levelname)s %(message)s')\n"
        "session = rushes.Context().session('127.0.0.1')\n"
        f"stream = session.stream('generic', socket_buffer={TOO_LARGE})\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "rushes WARNING the system limits the receive buffer" in outcome.stderr


def test_nothing_is_printed_without_a_configuration() -> None:
    program = (
        "import rushes\n"
        "session = rushes.Context().session('127.0.0.1')\n"
        f"stream = session.stream('generic', socket_buffer={TOO_LARGE})\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert (outcome.stdout, outcome.stderr) == ("", "")
