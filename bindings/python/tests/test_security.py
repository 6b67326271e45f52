"""Streams secured by keys."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, access_unit
from rushes import MasterKey, Security

Make = Callable[..., Pair]
GCM, CM = "AEAD_AES_128_GCM", "AES_CM_128_HMAC_SHA1_80"
ONE, OTHER = bytes(range(28)), bytes(range(100, 128))


def arrives(receiver: rushes.Stream, sender: rushes.Stream, timeout: float = TIME_LIMIT) -> bool:
    sender.push_frame(access_unit(b"a secret of some length"))
    frame = receiver.pull_frame(timeout)
    return frame is not None and bytes(frame) == access_unit(b"a secret of some length")


@pytest.mark.parametrize(("suite", "length"), [(GCM, 28), (CM, 30), ("AES_256_CM_HMAC_SHA1_32", 46)])
def test_both_ends_with_the_key_understand_each_other(
    pair: Make, suite: str, length: int
) -> None:
    assert arrives(*pair(security=Security.shared(suite, bytes(range(length)))))


def test_another_key_is_refused(session: rushes.Session) -> None:
    receiver = session.stream("h265", security=Security.shared(GCM, ONE), probation=1)
    events: list[rushes.Event] = []
    receiver.on_event(events.append)
    port = receiver.local_address[1]
    for security in [Security.shared(GCM, OTHER), None]:
        with session.stream("h265", remote_port=port, security=security) as sender:
            assert not arrives(receiver, sender, 0.1)
    assert receiver.statistics().receive.discards == {"authentication failed": 2}
    assert [(event.kind, event["reason"]) for event in events] == [
        ("refused", "authentication failed")
    ]


def test_each_way_may_have_its_own_key(session: rushes.Session) -> None:
    receiver = session.stream("h265", security=Security.separate(GCM, ONE, OTHER), probation=1)
    sender = session.stream(
        "h265",
        remote_port=receiver.local_address[1],
        security=Security.separate(GCM, OTHER, ONE),
    )
    assert arrives(receiver, sender)


def test_keys_change_while_the_stream_runs(pair: Make) -> None:
    first, second = MasterKey(GCM, ONE, mki=b"\1"), MasterKey(GCM, OTHER, mki=b"\2")
    receiver, sender = pair(security=Security.keys(first, first))
    assert arrives(receiver, sender)
    receiver.add_receive_key(second)
    sender.set_send_key(second)
    assert arrives(receiver, sender)
    with pytest.raises(rushes.SecurityError):
        sender.set_send_key(MasterKey(CM, bytes(30)))


def test_a_key_that_is_used_up_protects_nothing_more(pair: Make) -> None:
    key = MasterKey(GCM, ONE, lifetime=(2, 2))
    receiver, sender = pair(security=Security.keys(key, key))
    assert arrives(receiver, sender)
    assert arrives(receiver, sender)
    with pytest.raises(rushes.SecurityError, match="used up"):
        arrives(receiver, sender)


def test_keys_are_not_shown() -> None:
    shown = repr(Security.shared(GCM, ONE)) + repr(MasterKey(GCM, ONE, mki=b"id"))
    assert "keys" in shown
    assert GCM in shown
    assert str(list(ONE)[3:6])[1:-1] not in shown
    assert MasterKey(GCM, ONE, mki=b"id").mki == b"id"
