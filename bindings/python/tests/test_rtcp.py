"""Reports and requests."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import pytest
import rushes
from conftest import TIME_LIMIT, Pair, access_unit
from test_hooks import Gathered

Make = Callable[..., Pair]


def next_event(receiver: rushes.Stream, sender: rushes.Stream, kind: str) -> rushes.Event:
    """Returns the next event of a kind at `sender`, while both sides run."""
    deadline = time.monotonic() + TIME_LIMIT
    while time.monotonic() < deadline:
        receiver.pull_frame(0.01)
        sender.wait(0.01)
        while (event := sender.rtcp.poll_event()) is not None:
            if event.kind == kind:
                return event
    pytest.fail(f"no {kind} event arrived")


class Relay:
    """Passes datagrams on between two ports, all but one."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.settimeout(0.05)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def between(self, receiver: int, sender: int, lost: int) -> None:
        """Drops the datagram number `lost` of those from `sender`."""
        self._thread = threading.Thread(target=self._run, args=(receiver, sender, lost))
        self._thread.start()

    def _run(self, receiver: int, sender: int, lost: int) -> None:
        count = 0
        while not self._ended.is_set():
            try:
                datagram, (_, port) = self._socket.recvfrom(65_536)
            except TimeoutError:
                continue
            # RTCP is distinguished from media by its packet types (RFC 5761 section 4).
            if port == sender and not 192 <= datagram[1] <= 223:
                count += 1
                if count == lost:
                    continue
            other = receiver if port == sender else sender
            self._socket.sendto(datagram, ("127.0.0.1", other))

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._socket.close()


def two_way(session: rushes.Session, free_port: int, **options: object) -> Pair:
    settings = {"probation": 1, "feedback": True, "remote_port": free_port, **options}
    receiver = session.stream("h265", **settings)  # type: ignore[arg-type]
    settings |= {"local_port": free_port, "remote_port": receiver.local_address[1]}
    sender = session.stream("h265", **settings)  # type: ignore[arg-type]
    sender.push_frame(access_unit(b"x"))
    assert receiver.pull_frame(TIME_LIMIT) is not None
    return receiver, sender


@pytest.mark.parametrize("request_of", ["pli", "fir"])
def test_a_key_frame_is_asked_for(
    session: rushes.Session, free_port: int, request_of: str
) -> None:
    receiver, sender = two_way(session, free_port)
    receiver.rtcp.request_key_frame(request_of)  # type: ignore[arg-type]
    event = next_event(receiver, sender, "key-frame-requested")
    assert event["request"] == request_of
    assert event.ssrc == receiver.ssrc


def test_bit_rates_and_words_of_the_application_travel(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port, rtcp_mux=True)
    receiver.rtcp.request_bit_rate(sender.ssrc, 1_000_000)
    assert next_event(receiver, sender, "bit-rate-requested")["bit_rate"] == 1_000_000
    receiver.rtcp.send_estimate(2_000_000, [sender.ssrc])
    assert next_event(receiver, sender, "estimate")["bit_rate"] == 2_000_000
    receiver.rtcp.send_app("CLAP", b"ping", subtype=3)
    event = next_event(receiver, sender, "app")
    assert (event["name"], event["data"], event["subtype"]) == ("CLAP", b"ping", 3)


def test_peers_are_known_by_name_and_by_their_clocks(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port)
    next_event(sender, receiver, "sender-report")
    (peer,) = [peer for peer in receiver.rtcp.peers() if peer.ssrc == sender.ssrc]
    assert peer.sender is not None
    assert not peer.left
    at = peer.wall_clock(peer.sender["timestamp"])
    assert at == pytest.approx(peer.sender["wall_clock"], abs=1e-3)
    later = peer.wall_clock((peer.sender["timestamp"] + 90_000) % 2**32)
    assert later == pytest.approx(peer.sender["wall_clock"] + 1, abs=1e-3)
    assert receiver.rtcp.statistics().received > 0
    late = receiver.rtcp.capture_latency(sender.ssrc, peer.sender["timestamp"])
    assert late is not None
    assert late > 0
    assert receiver.rtcp.capture_latency(sender.ssrc ^ 1, 0) is None
    # A clock that is two hours ahead gives no latency.
    ahead = (peer.sender["timestamp"] + 7200 * 90_000) % 2**32
    assert receiver.rtcp.capture_latency(sender.ssrc, ahead) is None


def test_a_goodbye_is_reported_to_a_hook(session: rushes.Session, free_port: int) -> None:
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


def test_a_hook_may_put_another_in_its_place(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port)
    first: list[rushes.Event] = []
    second = Gathered()

    def replaced(event: rushes.Event) -> None:
        first.append(event)
        receiver.rtcp.on_event(second)

    receiver.rtcp.on_event(replaced)
    ended = threading.Event()

    def pull() -> None:
        while not ended.is_set():
            receiver.pull_frame(0.02)

    # A daemon, so that the test ends even if the thread hangs.
    thread = threading.Thread(target=pull, daemon=True)
    thread.start()
    sender.rtcp.send_app("LAST", b"")
    sender.rtcp.send_bye("lunch")
    second.wait_for(1)
    ended.set()
    thread.join(TIME_LIMIT)
    assert not thread.is_alive()
    assert len(first) == 1


def test_a_hook_in_a_call_may_wait_for_no_other_hook(
    session: rushes.Session, free_port: int, pair: Make
) -> None:
    receiver, sender = two_way(session, free_port)
    hooked, other = pair()
    hooked.on_frame(lambda _frame: None)
    refused: list[str] = []
    gathered = Gathered()

    def hook(event: rushes.Event) -> None:
        # Each call might wait for a thread that waits for the pulled stream.
        for call in (hooked.close, other.close, lambda: other.rtcp.on_event(print)):
            with pytest.raises(rushes.StateError, match="a hook cannot"):
                call()
            refused.append(event.kind)
        gathered(event)

    receiver.rtcp.on_event(hook)
    sender.rtcp.send_bye("lunch")
    while not gathered.items:
        receiver.pull_frame(0.02)
    assert len(refused) % 3 == 0
    assert not hooked.closed
    assert not other.closed
    hooked.close()
    assert hooked.closed


def test_what_a_hook_lets_go_of_is_closed_by_another_thread(
    session: rushes.Session, free_port: int, pair: Make
) -> None:
    receiver, sender = two_way(session, free_port)
    kept = [session.stream("h264")]
    port = kept[0].local_address[1]
    gathered = Gathered()

    def hook(event: rushes.Event) -> None:
        kept.clear()
        gathered(event)

    receiver.rtcp.on_event(hook)
    sender.rtcp.send_bye("lunch")
    while not gathered.items:
        receiver.pull_frame(0.02)
    deadline = time.monotonic() + TIME_LIMIT
    while True:
        try:
            session.stream("h264", local_port=port).close()
            break
        except rushes.NetError:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_arrivals_are_reported_to_a_sender(
    session: rushes.Session, free_port: int
) -> None:
    receiver, sender = two_way(session, free_port, report_arrivals=True, feedback=True)
    events = Gathered()
    sender.rtcp.on_event(events)
    arrivals: list[rushes.Event] = []
    deadline = time.monotonic() + TIME_LIMIT
    while not arrivals and time.monotonic() < deadline:
        sender.push_frame(access_unit(b"x"))
        receiver.pull_frame(0.02)
        sender.wait(0.02)
        arrivals = [event for event in events.items if event.kind == "arrivals"]
    (arrived, *_) = arrivals
    assert arrived.ssrc == receiver.ssrc
    (sequence, came, before, mark), *_ = arrived["packets"]
    assert 0 <= sequence < 65536
    assert (came, mark) == (True, 0)
    assert before is None or 0 <= before < 8


def test_the_target_rate_follows_the_reports(session: rushes.Session, free_port: int) -> None:
    rates = (50_000, 100_000, 400_000, "classic")
    receiver, sender = two_way(session, free_port, report_arrivals=True, rate_control=rates)
    assert sender.rtcp.target_rate == 100_000
    events = Gathered()
    sender.rtcp.on_event(events)
    deadline = time.monotonic() + TIME_LIMIT
    while sender.rtcp.target_rate != 400_000 and time.monotonic() < deadline:
        sender.push_frame(access_unit(bytes(800)))
        receiver.pull_frame(0.01)
        sender.wait(0.01)
    assert sender.rtcp.target_rate == 400_000
    targets = [event["bit_rate"] for event in events.items if event.kind == "target-rate"]
    assert targets[0] == 100_000
    assert targets[-1] == 400_000
    assert not [event for event in events.items if event.kind in ("arrivals", "not-reported")]


def test_without_rate_control_there_is_no_target(pair: Make) -> None:
    _, sender = pair()
    assert sender.rtcp.target_rate is None


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


def test_lost_packets_are_reported_and_retransmitted(
    session: rushes.Session, free_port: int
) -> None:
    # A relay between both drops one datagram and passes on all others.
    with Relay(free_port) as relay:
        options = {"recovery": "on", "rtcp_mux": True, "mtu": 500, "probation": 1}
        options["reorder_time"] = 5.0
        receiver = session.stream("generic", remote_port=free_port, **options)  # type: ignore[arg-type]
        sender = session.stream("generic", remote_port=free_port, **options)  # type: ignore[arg-type]
        relay.between(receiver.local_address[1], sender.local_address[1], lost=5)
        events: list[str] = []
        receiver.on_event(lambda event: events.append(event.kind))
        got: list[rushes.Frame | None] = []
        thread = threading.Thread(target=lambda: got.append(receiver.pull_frame(TIME_LIMIT)))
        thread.start()
        sender.push_frame(bytes(range(256)) * 20)
        while thread.is_alive():
            sender.wait(0.01)
        thread.join()
        assert bytes(got[0] or b"") == bytes(range(256)) * 20
        assert receiver.statistics().receive.recovered == 1
        assert sender.statistics().send.retransmitted >= 1
        assert "packets-lost" not in events
        receiver.close()
        sender.close()


@pytest.mark.parametrize("form", [None, "flexfec-03", "ulpfec"])
def test_a_lost_packet_is_recovered_from_repair_packets(
    session: rushes.Session, free_port: int, form: str | None
) -> None:
    with Relay(free_port) as relay:
        options = {"rtcp_mux": True, "mtu": 500, "probation": 1, "reorder_time": 5.0}
        ratios = ("receive", 20) if form is None else (("receive", form), (20, form))
        receiver, sender = (
            session.stream("generic", remote_port=free_port, fec=ratio, **options)  # type: ignore[arg-type]
            for ratio in ratios
        )
        relay.between(receiver.local_address[1], sender.local_address[1], lost=5)
        frame = bytes(range(256)) * 20
        sender.push_frame(frame)
        sender.send_keep_alive()
        got = receiver.pull_frame(TIME_LIMIT)
        assert bytes(got or b"") == frame
        received = receiver.statistics().receive
        assert (received.repaired, received.requested) == (1, 0)
        assert 1 <= received.repairs <= sender.statistics().send.repairs
        receiver.close()
        sender.close()


def test_without_recovery_a_loss_is_reported(session: rushes.Session, free_port: int) -> None:
    with Relay(free_port) as relay:
        options = {"rtcp": False, "probation": 1, "reorder_time": 0.01}
        receiver = session.stream("generic", remote_port=free_port, **options)  # type: ignore[arg-type]
        sender = session.stream("generic", remote_port=free_port, **options)  # type: ignore[arg-type]
        relay.between(receiver.local_address[1], sender.local_address[1], lost=2)
        events: list[rushes.Event] = []
        receiver.on_event(events.append)
        for octets in [b"first", b"lost", b"third", b"fourth"]:
            sender.push_frame(octets)
        got = [bytes(frame) for frame in receiver.frames(0.5)]
        lost = [event for event in events if event.kind == "packets-lost"]
        assert [(event.ssrc, event["packets"]) for event in lost] == [(sender.ssrc, 1)]
        assert got[0] == b"first"
        assert b"lost" not in got
        assert receiver.statistics().receive.packets_lost == 1
        receiver.close()
        sender.close()
