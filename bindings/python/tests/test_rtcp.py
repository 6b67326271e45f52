"""Reports and requests."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
import rushes
from conftest import PATIENCE, Pair, access_unit
from test_hooks import Gathered

Make = Callable[..., Pair]


def told(receiver: rushes.Stream, sender: rushes.Stream, kind: str) -> rushes.Event:
    """The next event of a kind that `sender` hears of; both sides run meanwhile."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        receiver.pull_frame(0.01)
        sender.wait(0.01)
        while (event := sender.rtcp.poll_event()) is not None:
            if event.kind == kind:
                return event
    pytest.fail(f"no {kind} came")


def started(pair: Make, **options: object) -> Pair:
    receiver, sender = pair(feedback=True, **options)
    # Who sends is known by what was sent: both have each other's ports then.
    receiver.pull_frame(0)
    sender.push_frame(access_unit(b"x"))
    assert receiver.pull_frame(PATIENCE) is not None
    return receiver, sender


def two_way(session: rushes.Session, free_port: int, **options: object) -> Pair:
    settings = {"probation": 1, "feedback": True, **options}
    receiver = session.stream("h265", remote_port=free_port, **settings)  # type: ignore[arg-type]
    port = receiver.local_address[1]
    sender = session.stream("h265", local_port=free_port, remote_port=port, **settings)  # type: ignore[arg-type]
    sender.push_frame(access_unit(b"x"))
    assert receiver.pull_frame(PATIENCE) is not None
    return receiver, sender


@pytest.mark.parametrize("request_of", ["pli", "fir"])
def test_a_key_frame_is_asked_for(
    session: rushes.Session, free_port: int, request_of: str
) -> None:
    receiver, sender = two_way(session, free_port)
    receiver.rtcp.request_key_frame(request_of)  # type: ignore[arg-type]
    event = told(receiver, sender, "key-frame-requested")
    assert event["request"] == request_of
    assert event.ssrc == receiver.ssrc


def test_bit_rates_and_words_of_the_application_travel(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port, rtcp_mux=True)
    receiver.rtcp.request_bit_rate(sender.ssrc, 1_000_000)
    assert told(receiver, sender, "bit-rate-requested")["bit_rate"] == 1_000_000
    receiver.rtcp.send_estimate(2_000_000, [sender.ssrc])
    assert told(receiver, sender, "estimate")["bit_rate"] == 2_000_000
    receiver.rtcp.send_app("CLAP", b"ping", subtype=3)
    event = told(receiver, sender, "app")
    assert (event["name"], event["data"], event["subtype"]) == ("CLAP", b"ping", 3)


def test_peers_are_known_by_name_and_by_their_clocks(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port)
    told(sender, receiver, "sender-report")
    (peer,) = [peer for peer in receiver.rtcp.peers() if peer.ssrc == sender.ssrc]
    assert peer.sender is not None
    assert not peer.left
    at = peer.wall_clock(peer.sender["timestamp"])
    assert at == pytest.approx(peer.sender["wall_clock"], abs=1e-3)
    later = peer.wall_clock((peer.sender["timestamp"] + 90_000) % 2**32)
    assert later == pytest.approx(peer.sender["wall_clock"] + 1, abs=1e-3)
    assert receiver.rtcp.statistics().received > 0


def test_a_goodbye_is_told_to_a_hook(session: rushes.Session, free_port: int) -> None:
    receiver, sender = two_way(session, free_port)
    events = Gathered()
    receiver.rtcp.on_event(events)
    sender.rtcp.send_bye("lunch")
    for _ in range(100):
        receiver.pull_frame(0.02)
        goodbyes = [event for event in events.items if event.kind == "bye"]
        if goodbyes:
            break
    assert [(bye.ssrc, bye["reason"]) for bye in goodbyes] == [(sender.ssrc, "lunch")]


def test_without_rtcp_nothing_can_be_asked(pair: Make) -> None:
    receiver, _ = pair(rtcp=False)
    with pytest.raises(rushes.RtcpError, match="off"):
        receiver.rtcp.request_key_frame()
    assert receiver.rtcp.peers() == []


def test_words_that_cannot_be_sent_are_refused(pair: Make) -> None:
    receiver, _ = pair()
    with pytest.raises(rushes.ConfigError):
        receiver.rtcp.send_app("long name", b"")
    with pytest.raises(rushes.ConfigError):
        receiver.rtcp.request_key_frame("now")  # type: ignore[arg-type]


def test_lost_packets_are_sent_again(pair: Make) -> None:
    receiver, sender = started(pair, recovery="on")
    assert receiver.statistics().receive.requested == 0
    assert sender.statistics().send.retransmitted == 0
