"""Key agreement by ZRTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import rushes
from conftest import TIME_LIMIT
from rushes import Security

Ends = tuple[rushes.Session, rushes.Stream]


def connect(bobs: Security, alices: Security, **options: Any) -> tuple[Ends, Ends]:
    """Two streams that have agreed on keys: the called end and the calling end."""
    bob = rushes.Context().session("127.0.0.1")
    alice = rushes.Context().session("127.0.0.1")
    answered, called = call(bob, alice, bobs, alices, **options)
    return (bob, answered), (alice, called)


def call(
    bob: rushes.Session, alice: rushes.Session, bobs: Security, alices: Security, **options: Any
) -> tuple[rushes.Stream, rushes.Stream]:
    """A stream of Bob and one of Alice, who calls him."""
    with bob.begin("generic", security=bobs, **options) as opening:
        with ThreadPoolExecutor() as threads:
            port = opening.local_address[1]
            calling = threads.submit(
                alice.stream, "generic", remote_port=port, security=alices, **options
            )
            answered = opening.wait(TIME_LIMIT)
            called = calling.result(TIME_LIMIT)
    assert answered is not None
    return answered, called


def test_both_ends_have_the_same_string_and_media_flows() -> None:
    zrtp = Security.zrtp(timeout=TIME_LIMIT)
    (bob, receiver), (alice, sender) = connect(zrtp, zrtp)
    assert bob.sas is not None
    assert alice.sas is not None
    assert (bob.sas.text, bob.sas.hash) == (alice.sas.text, alice.sas.hash)
    assert str(bob.sas) == bob.sas.text
    assert not bob.sas.is_verified
    assert bob.verify_sas(True)
    assert bob.zrtp_warnings() == []
    sender.push_frame(b"for bob only")
    sender.push_frame(b"for bob too")
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None
    assert bytes(frame) == b"for bob only"
    bob.close()
    alice.close()


def test_a_function_is_asked_once_whether_the_strings_are_equal() -> None:
    asked: list[tuple[str, str]] = []

    def ask(name: str, answer: bool | None) -> Callable[[rushes.Sas], bool | None]:
        def compare(sas: rushes.Sas) -> bool | None:
            asked.append((name, sas.text))
            return answer

        return compare

    zrtp = {
        name: Security.zrtp(timeout=TIME_LIMIT, on_sas=ask(name, answer))
        for name, answer in [("bob", True), ("alice", None)]
    }
    (bob, _), (alice, _) = connect(zrtp["bob"], zrtp["alice"])
    assert sorted(name for name, _ in asked) == ["alice", "bob"]
    assert len({text for _, text in asked}) == 1
    assert bob.sas is not None and bob.sas.is_verified
    assert alice.sas is not None and not alice.sas.is_verified
    bob.close()
    alice.close()


def test_a_string_that_differs_opens_no_stream() -> None:
    zrtp = Security.zrtp(timeout=TIME_LIMIT)
    with pytest.raises(rushes.ZrtpError, match="a man in the middle"):
        connect(zrtp, Security.zrtp(timeout=TIME_LIMIT, on_sas=lambda sas: False))


def test_a_string_that_differs_opens_no_later_stream_either() -> None:
    asked: list[str] = []

    def compare(sas: rushes.Sas) -> bool:
        asked.append(sas.text)
        return False

    zrtp = Security.zrtp(timeout=TIME_LIMIT)
    asking = Security.zrtp(timeout=TIME_LIMIT, on_sas=compare)
    with rushes.Context().session("127.0.0.1") as bob:
        with rushes.Context().session("127.0.0.1") as alice:
            for security in [asking, asking, zrtp]:
                with pytest.raises(rushes.ZrtpError, match="a man in the middle"):
                    call(bob, alice, zrtp, security)
    assert len(asked) == 1


def test_a_stream_waits_for_an_answer_about_another() -> None:
    zrtp = Security.zrtp(timeout=TIME_LIMIT)
    asked: list[str] = []
    kept: list[object] = []
    later: list[Future[rushes.Stream]] = []
    with (
        ThreadPoolExecutor() as threads,
        rushes.Context().session("127.0.0.1") as bob,
        rushes.Context().session("127.0.0.1") as alice,
    ):

        def compare(sas: rushes.Sas) -> bool:
            asked.append(sas.text)
            opening = bob.begin("generic", security=zrtp)
            port = opening.local_address[1]
            later.append(
                threads.submit(alice.stream, "generic", remote_port=port, security=asking)
            )
            kept.extend([opening, opening.wait(TIME_LIMIT)])
            return False

        asking = Security.zrtp(timeout=TIME_LIMIT, on_sas=compare)
        with pytest.raises(rushes.ZrtpError, match="a man in the middle"):
            call(bob, alice, zrtp, asking)
        with pytest.raises(rushes.ZrtpError, match="a man in the middle"):
            later[0].result(TIME_LIMIT)
    assert None not in kept
    assert len(asked) == 1


def test_what_the_function_raises_reaches_the_caller_and_it_is_asked_again() -> None:
    answers: list[bool | Exception] = [LookupError("no user"), True]

    def compare(_sas: rushes.Sas) -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    zrtp = Security.zrtp(timeout=TIME_LIMIT)
    asking = Security.zrtp(timeout=TIME_LIMIT, on_sas=compare)
    with rushes.Context().session("127.0.0.1") as bob:
        with rushes.Context().session("127.0.0.1") as alice:
            with pytest.raises(LookupError, match="no user"):
                call(bob, alice, zrtp, asking)
            assert alice.sas is not None and not alice.sas.is_verified
            call(bob, alice, zrtp, asking)
            assert answers == []
            assert alice.sas.is_verified


def test_strings_compared_once_hold_for_later_sessions(tmp_path: Path) -> None:
    def ends() -> list[Security]:
        return [
            Security.zrtp(timeout=TIME_LIMIT, cache=tmp_path / name, on_sas=lambda sas: True)
            for name in ["bob", "alice"]
        ]

    for _ in range(2):
        (bob, _), (alice, _) = connect(*ends())
        verified = [end.sas is not None and end.sas.is_verified for end in [bob, alice]]
        bob.close()
        alice.close()
    assert verified == [True, True]


def test_a_missing_peer_is_an_error_in_time(session: rushes.Session, free_port: int) -> None:
    with pytest.raises(rushes.ZrtpError, match="within the time"):
        session.stream("h265", remote_port=free_port, security=Security.zrtp(timeout=0.1))


def test_waiting_for_a_peer_may_be_given_up(session: rushes.Session) -> None:
    opening = session.begin("h265", security=Security.zrtp())
    assert opening.wait(0.01) is None
    opening.close()
    with pytest.raises(rushes.ClosedError):
        opening.wait(0.01)
    with pytest.raises(rushes.ZrtpError):
        session.begin("h265")


def test_waiting_keeps_no_other_thread_from_running(session: rushes.Session) -> None:
    with session.begin("h265", security=Security.zrtp()) as opening:
        outcome: list[object] = []
        thread = threading.Thread(target=lambda: outcome.append(opening.wait(0.2)))
        thread.start()
        thread.join(TIME_LIMIT)
        assert outcome == [None]


def test_a_secret_that_both_know_needs_no_string_to_be_compared() -> None:
    known = Security.zrtp(
        timeout=TIME_LIMIT, aux_secret=b"sixteen octets..", policy="require_secret"
    )
    (bob, _), (alice, _) = connect(known, known)
    assert bob.sas is not None
    assert alice.sas is not None
    assert (bob.sas.shares_secret, alice.sas.shares_secret) == (True, True)
    bob.close()
    alice.close()


def test_a_peer_without_the_secret_gets_nothing() -> None:
    known = Security.zrtp(timeout=5, aux_secret=b"sixteen octets..", policy="require_secret")
    with pytest.raises(rushes.ZrtpError, match="secret"):
        connect(known, Security.zrtp(timeout=5))


def test_a_policy_that_there_is_not_is_named() -> None:
    with pytest.raises(rushes.ConfigError, match="require_secret"):
        Security.zrtp(policy="whoever")  # type: ignore[arg-type]
