"""Connections by offer and answer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import rushes
from conftest import TIME_LIMIT, eventually

#: An access unit of H.264 with parameter sets, but for the octets of its slice.
PICTURE = b"\0\0\0\x01\x67\x42\xc0\x1e\xd9\0\0\0\x01\x68\xce\x38\x80\0\0\0\x01\x65"

Make = Callable[[], rushes.PeerConnection]


@pytest.fixture
def peer() -> Iterator[Make]:
    with ExitStack() as stack:
        context = rushes.Context()
        yield lambda: stack.enter_context(context.peer(local_address="127.0.0.1"))


def agree(offerer: rushes.PeerConnection, answerer: rushes.PeerConnection) -> None:
    offerer.set_answer(answerer.answer(offerer.offer()))


def connect(*ends: rushes.PeerConnection) -> list[list[rushes.PeerStream]]:
    """Connects both ends, one on another thread."""
    agree(*ends)
    streams: list[list[rushes.PeerStream] | None] = [None, None]

    def wait(end: int) -> None:
        streams[end] = ends[end].connect(TIME_LIMIT)

    other = threading.Thread(target=wait, args=(1,))
    other.start()
    wait(0)
    other.join()
    assert streams[0] is not None
    assert streams[1] is not None
    return [streams[0], streams[1]]


def test_video_and_audio_go_both_ways(peer: Make) -> None:
    ends = peer(), peer()
    for end in ends:
        assert end.add("h264", frame_rate=30) == 0
        assert end.add("opus") == 1
        assert not end.is_connected
    ours, theirs = connect(*ends)
    assert [(it.index, it.format, it.kind) for it in ours] == [
        (0, "h264", "video"),
        (1, "opus", "audio"),
    ]
    assert [it.mid for it in ours] == [it.mid for it in theirs] != [None, None]
    assert all(it.sends and it.receives for it in ours + theirs)
    assert all(end.is_connected and end.ended is None for end in ends)
    for sender, receiver in [(ours, theirs), (theirs, ours)]:
        for number in range(5):
            picture = PICTURE + bytes([number | 0x80]) * 5_000
            packet = bytes([0xF8, number, 0xFE])
            sender[0].stream.push_frame(picture)
            sender[1].stream.push_frame(packet)
            assert bytes(receiver[0].stream.pull_frame(TIME_LIMIT) or b"") == picture
            assert bytes(receiver[1].stream.pull_frame(TIME_LIMIT) or b"") == packet


def test_what_the_peer_lacks_has_no_stream(peer: Make) -> None:
    camera, monitor = peer(), peer()
    with pytest.raises(rushes.StateError, match="another format"):
        camera.add_alternative("vp8")
    with pytest.raises(rushes.ConfigError, match="direction"):
        camera.add("vp8", "both")  # type: ignore[arg-type]
    camera.add("av1", "sendonly")
    camera.add_alternative("vp8")
    camera.add("opus", "sendonly")
    monitor.add("vp8", "recvonly")
    ours, theirs = connect(camera, monitor)
    assert [(it.format, it.sends, it.receives) for it in ours] == [("vp8", True, False)]
    assert [(it.format, it.sends, it.receives) for it in theirs] == [("vp8", False, True)]
    with pytest.raises(rushes.StateError):
        theirs[0].stream.push_frame(b"\x10\x02\x00\x9d\x01\x2a")


def test_the_end_of_a_connection_is_told(peer: Make) -> None:
    ends = peer(), peer()
    for end in ends:
        end.add("opus")
    ours, theirs = connect(*ends)
    ends[0].close()
    assert ours[0].stream.closed
    assert ends[0].ended == "the connection is closed"

    def has_ended() -> bool:
        theirs[0].stream.pull_frame(0.005)
        return ends[1].ended is not None

    eventually(has_ended)
    assert ends[1].ended == "the peer has closed the connection"
    assert not ends[1].is_connected
    with pytest.raises(rushes.ClosedError):
        ends[0].offer()


def test_settings_are_checked() -> None:
    context = rushes.Context()
    with pytest.raises(rushes.ConfigError, match="has no port"):
        context.peer(stun_servers=["127.0.0.1"])
    with pytest.raises(rushes.ConfigError, match="has no port"):
        context.peer(turn_server="127.0.0.1")
    with pytest.raises(rushes.Error, match="user name of a TURN server has 0 octets"):
        context.peer(turn_server="127.0.0.1:3478")
    with pytest.raises(rushes.ConfigError, match="local_port"):
        context.peer(local_port=65_536)
    with context.peer(local_address="127.0.0.1", lite=True) as peer:
        peer.add("opus")
        assert "a=ice-lite" in peer.offer().split("\r\n")
        with pytest.raises(rushes.ConfigError, match="payload_type"):
            peer.add("opus", payload_type=128)


def test_another_path_is_looked_for_by_either_end(peer: Make) -> None:
    alice, bob = peer(), peer()
    for end in (alice, bob):
        end.add("opus")
        assert end.silence is None
        with pytest.raises(rushes.StateError):
            end.offer_restart()
    offer = alice.offer()
    alice.set_answer(bob.answer(offer))
    streams: list[list[rushes.PeerStream] | None] = []
    other = threading.Thread(target=lambda: streams.append(bob.connect(TIME_LIMIT)))
    other.start()
    ours = alice.connect(TIME_LIMIT)
    other.join()
    assert ours is not None
    theirs = streams[0]
    assert theirs is not None
    again = bob.answer(offer)
    assert "a=ice-ufrag:" in again
    with pytest.raises(rushes.StateError, match="direction"):
        bob.answer(offer.replace("a=sendrecv", "a=sendonly"))
    with pytest.raises(rushes.StateError):
        alice.set_restart_answer(again)
    fragment = bob.add_fragment(alice.offer_restart())
    assert fragment is not None
    alice.set_restart_answer(fragment)
    assert alice.silence is not None
    ours[0].stream.push_frame(b"\xf8\x07\xfe")
    frame = theirs[0].stream.pull_frame(TIME_LIMIT)
    assert frame is not None
    assert bytes(frame) == b"\xf8\x07\xfe"


def test_offers_and_answers_have_an_order(peer: Make) -> None:
    alice, bob = peer(), peer()
    for end in (alice, bob):
        end.add("opus")
    with pytest.raises(rushes.StateError):
        alice.connect(0)
    with pytest.raises(rushes.StateError):
        alice.set_answer("")
    with pytest.raises(rushes.ConfigError):
        bob.answer("v=1")
    agree(alice, bob)
    with pytest.raises(rushes.StateError):
        alice.offer()
    assert alice.connect(0) is None
    assert alice.add_fragment("a=ice-options:trickle\r\n") is None
    alice.add_candidate("nonsense")


def test_closing_ends_a_wait(peer: Make) -> None:
    alice, bob = peer(), peer()
    for end in (alice, bob):
        end.add("opus")
    agree(alice, bob)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            alice.connect()
        except rushes.ClosedError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    alice.close()
    waiting.join(TIME_LIMIT)
    assert len(errors) == 1
