"""Frames from one stream to another."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

import pytest
import rushes
from conftest import MEDIA, TIME_LIMIT, Pair, access_unit, nal_units

Make = Callable[..., Pair]


def test_a_session_receives_on_a_local_address(session: rushes.Session) -> None:
    with rushes.Context().receive_on("0.0.0.0").stream("generic", probation=1) as receiver:
        port = receiver.local_address[1]
        with session.stream("generic", remote_port=port) as sender:
            sender.push_frame(b"frame")
            frame = receiver.pull_frame(TIME_LIMIT)
            assert frame is not None
            assert bytes(frame) == b"frame"
    with pytest.raises(rushes.ConfigError, match="call receive_on"):
        rushes.Context().session("0.0.0.0")


def test_one_stream_reaches_several_destinations(session: rushes.Session) -> None:
    with (
        session.stream("generic", probation=1) as left,
        session.stream("generic", probation=1) as right,
    ):
        first, second = left.local_address[1], right.local_address[1]
        others = [("127.0.0.1", second)]
        with session.stream("generic", remote_port=first, also_to=others) as sender:
            sender.push_frame(b"both")
            for receiver in (left, right):
                frame = receiver.pull_frame(TIME_LIMIT)
                assert frame is not None
                assert bytes(frame) == b"both"
        with pytest.raises(rushes.ConfigError, match="given twice"):
            session.stream("generic", remote_port=first, also_to=[("127.0.0.1", first)])


def test_a_frame_arrives_as_it_was_sent(pair: Make) -> None:
    receiver, sender = pair()
    sent = access_unit(b"picture" * 40_000)
    sender.push_frame(sent, 90_000)
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None
    assert bytes(frame) == sent
    assert (len(frame), frame.nbytes) == (len(sent), len(sent))
    assert (frame.timestamp, frame.ssrc, frame.units) == (90_000, sender.ssrc, 1)
    assert frame.marker


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("avc_cif_60f_baseline.264", "h264"),
        ("hevc_192x128_90f_tiny_nals.265", "h265"),
        ("vvc_192x128_64f_vvenc_tiny_nals.266", "h266"),
        ("opus_speech_mono_mixed_durations.opus", "opus"),
    ],
)
def test_a_file_arrives_frame_by_frame(pair: Make, name: str, format: str) -> None:
    receiver, sender = pair(format)
    count = 0
    for count, sent in enumerate(rushes.MediaReader(MEDIA / name), 1):
        sender.push_frame(sent)
        frame = receiver.pull_frame(TIME_LIMIT)
        assert frame is not None
        assert nal_units(frame) == nal_units(sent)
        assert format != "opus" or bytes(frame) == sent
    assert count > 1
    assert sender.statistics().send.frames == count


def test_generic_frames_may_be_any_octets(pair: Make) -> None:
    receiver, sender = pair("generic")
    for sent in [b"\0", bytes(range(256)) * 1_000]:
        sender.push_frame(sent)
        assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == sent


def test_timestamps_follow_the_frame_rate_and_wrap(pair: Make) -> None:
    receiver, sender = pair(frame_rate=60, first_packet=(7, 0xFFFF_FFFF))
    for _ in range(3):
        sender.push_frame(access_unit(b"x"))
    timestamps = [frame.timestamp for frame in receiver.frames(0.2)]
    assert timestamps == [0xFFFF_FFFF, 1_499, 2_999]


def test_nal_units_are_delivered_by_themselves_where_wished(pair: Make) -> None:
    receiver, sender = pair(delivery="unit")
    sender.push_frame(b"\0\0\0\x01\x46\x01\x50" + access_unit(b"x"))
    frames = list(receiver.frames(0.2))
    assert [(bytes(frame)[4], frame.marker) for frame in frames] == [(0x46, False), (0x26, True)]


def test_no_frame_within_the_timeout_is_none(pair: Make) -> None:
    receiver, _ = pair()
    assert receiver.pull_frame(0) is None
    assert receiver.pull_frame(timeout=0.01) is None


def test_iteration_ends_with_silence(pair: Make) -> None:
    receiver, sender = pair()
    for _ in range(5):
        sender.push_frame(access_unit(b"x"))
    assert len(list(receiver.frames(timeout=0.2))) == 5


def test_iteration_ends_when_all_have_said_goodbye(pair: Make) -> None:
    receiver, sender = pair()
    for _ in range(5):
        sender.push_frame(access_unit(b"x"))
    sender.close()
    assert len(list(receiver.frames(until_bye=True))) == 5


def test_iteration_ends_when_the_stream_is_closed(pair: Make) -> None:
    receiver, sender = pair()
    sender.push_frame(access_unit(b"x"))
    frames = []
    for frame in receiver:
        frames.append(frame)
        receiver.close()
    assert len(frames) == 1


def test_a_stream_lasts_as_long_as_a_loop_over_it(
    session: rushes.Session, free_port: int
) -> None:
    def receiver() -> rushes.Stream:
        return session.stream("h265", local_port=free_port, probation=1)

    loops: list[Callable[[], rushes.Frames]] = [
        lambda: iter(receiver()),
        lambda: receiver().frames(TIME_LIMIT),
    ]
    for loop in loops:
        frames = loop()
        gc.collect()
        with session.stream("h265", remote_port=free_port) as sender:
            sender.push_frame(access_unit(b"x"))
        assert bytes(next(frames)) == access_unit(b"x")
        del frames


def test_a_stream_lasts_as_long_as_its_rtcp(session: rushes.Session) -> None:
    rtcp = session.stream("h265").rtcp
    gc.collect()
    assert rtcp.peers() == []


def test_a_waiting_thread_is_notified_that_the_stream_was_closed(pair: Make) -> None:
    receiver, _ = pair()
    began = threading.Event()
    reported: list[BaseException] = []

    def wait() -> None:
        began.set()
        try:
            receiver.pull_frame()
        except rushes.ClosedError as error:
            reported.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert began.wait(TIME_LIMIT)
    receiver.close()
    thread.join(TIME_LIMIT)
    assert len(reported) == 1


def test_waiting_keeps_no_other_thread_from_running(pair: Make) -> None:
    receiver, sender = pair()
    got: list[rushes.Frame | None] = []
    thread = threading.Thread(target=lambda: got.append(receiver.pull_frame(TIME_LIMIT)))
    thread.start()
    # If this thread could not run meanwhile, nothing would be sent before the wait ends.
    sender.push_frame(access_unit(b"meanwhile"))
    thread.join(2 * TIME_LIMIT)
    assert [bytes(frame or b"") for frame in got] == [access_unit(b"meanwhile")]


def test_after_closing_nothing_works_but_the_counters(pair: Make) -> None:
    receiver, sender = pair()
    sender.push_frame(access_unit(b"x"))
    sender.close()
    sender.close()
    assert sender.closed
    with pytest.raises(rushes.ClosedError, match="closed"):
        sender.push_frame(access_unit(b"x"))
    with pytest.raises(rushes.ClosedError):
        sender.pull_frame(0)
    with pytest.raises(rushes.ClosedError):
        sender.rtcp.peers()
    assert sender.statistics().send.frames == 1
    assert not receiver.closed


def test_a_session_closes_its_streams() -> None:
    with rushes.Context().session("127.0.0.1") as session:
        stream = session.stream("h264")
    assert stream.closed


def test_two_streams_share_a_port_by_their_payload_types(session: rushes.Session) -> None:
    first = session.stream("h264", probation=1)
    port = first.local_address[1]
    second = session.stream("h265", probation=1, local_port=port)
    for format, receiver in [("h264", first), ("h265", second)]:
        with session.stream(format, remote_port=port) as sender:  # type: ignore[arg-type]
            octets = b"\0\0\0\x01\x65\x80x" if format == "h264" else access_unit(b"x")
            sender.push_frame(octets)
        assert bytes(receiver.pull_frame(TIME_LIMIT) or b"") == octets


def test_statistics_say_what_was_moved(pair: Make) -> None:
    receiver, sender = pair()
    sender.push_frame(access_unit(b"x" * 10_000))
    assert receiver.pull_frame(TIME_LIMIT) is not None
    sent, received = sender.statistics(), receiver.statistics()
    assert sent.send.packets == received.receive.packets > 1
    source = received.receive.sources[0]
    assert (source.ssrc, source.packets_unusable) == (sender.ssrc, 0)
    assert source.known_for >= source.silent_for >= 0
    assert received.to_dict()["receive"]["sources"][0]["received"] == sent.send.packets
    assert received.socket.received_datagrams == sent.socket.sent_datagrams
    assert "SendStatistics(frames=1" in repr(sent)


def test_a_context_says_its_name() -> None:
    assert rushes.Context(cname="studio").cname == "studio"
    assert rushes.Context().cname != rushes.Context().cname


def test_a_session_binds_to_the_given_address() -> None:
    session = rushes.Context().session("127.0.0.1", local_address="127.0.0.2")
    with session.stream("h264") as stream:
        assert stream.local_address[0] == "127.0.0.2"
    anyone = rushes.Context().session(None, local_address="127.0.0.1")
    assert anyone.peer is None
    with anyone.stream("h264") as stream:
        assert stream.local_address[0] == "127.0.0.1"


def test_a_frame_carries_the_time_of_its_capture(session: rushes.Session) -> None:
    extensions = {"abs-capture-time": 1, "ntp-64": 2}
    with session.stream("generic", probation=1, extensions=extensions) as receiver:
        port = receiver.local_address[1]
        with session.stream("generic", remote_port=port, extensions=extensions) as sender:
            sender.push_frame(b"frame", captured=time.monotonic() - 0.03)
            frame = receiver.pull_frame(TIME_LIMIT)
            assert frame is not None
            assert frame.capture_time is not None
            assert abs(time.time() - frame.capture_time) < TIME_LIMIT
            latency = receiver.rtcp.frame_latency(frame)
            assert latency is not None
            assert latency >= 0.029
            statistics = receiver.statistics()
            assert sum(count for _, count in statistics.capture_to_delivery) == 1
            assert statistics.capture_to_delivery_sum >= 0.029
    with pytest.raises(rushes.ConfigError, match="reserved"):
        session.stream("generic", extensions={"ntp-64": 15})


def test_frames_carry_elements_of_header_extensions(session: rushes.Session) -> None:
    extensions = {"mid": 1, "audio-level": 2, "urn:example:seat": 3, "transport-sequence": 4}
    with session.stream(
        "generic", probation=1, extensions=extensions, report_transport_wide=True
    ) as receiver:
        port = receiver.local_address[1]
        with session.stream(
            "generic", remote_port=port, extensions=extensions, mid="0", rid="hi"
        ) as sender:
            sender.push_frame(
                bytes(5000), elements=[("every", 2, b"\x1e"), ("first", 3, b"12A")]
            )
            frame = receiver.pull_frame(TIME_LIMIT)
            assert frame is not None
            assert frame.first_elements == {1: b"0", 2: b"\x1e", 3: b"12A"}
            assert frame.last_elements == {1: b"0", 2: b"\x1e"}
            with pytest.raises(rushes.Error, match="not agreed on"):
                sender.push_frame(b"frame", elements=[("last", 9, b"x")])
    with pytest.raises(rushes.ConfigError, match="reserved"):
        session.stream("generic", extensions={"urn:example:seat": 15})
    with pytest.raises(rushes.ConfigError, match="report_transport_wide"):
        session.stream("generic", report_transport_wide=True)


def test_pacing_is_changed(pair: Make) -> None:
    receiver, sender = pair("generic")
    with pytest.raises(rushes.ConfigError, match="share"):
        sender.set_pacing(share=0)
    with pytest.raises(rushes.ConfigError):
        sender.set_pacing(rate=0)
    with pytest.raises(rushes.ConfigError, match="by share or by rate"):
        sender.set_pacing(share=0.5, rate=1_000_000)
    for change in ({"share": 0.5}, {"rate": 100_000_000}, {"pacing": False}, {}):
        sender.set_pacing(**change)
    # At 8 kbit/s a frame of 128 KiB would take more than two minutes.
    sender.set_pacing(rate=8_000)
    sender.set_pacing(False)
    sender.push_frame(b"x" * 131_072)
    frame = receiver.pull_frame(TIME_LIMIT)
    assert frame is not None
    assert len(frame) == 131_072
