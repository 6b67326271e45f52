"""Texture video."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
import rushes
from conftest import TIME_LIMIT, eventually
from test_hooks import Gathered

HERE = ("127.0.0.1", 0)
Array = npt.NDArray[np.uint8]
Points = tuple[int, int, int, int]


def ramps(count: int, width: int = 64, height: int = 48) -> list[Array]:
    """Pictures of random octets."""
    rng = np.random.default_rng(1)
    return [rng.integers(0, 256, (height, width, 3), np.uint8) for _ in range(count)]


def pictures(arrays: list[Array], rate: int = 200) -> rushes.Pictures:
    height, width, _ = arrays[0].shape
    return rushes.Pictures(arrays, width, height, rate=rate)


@pytest.mark.parametrize("transport", ["udp", "tcp", "rtp"])
def test_pictures_arrive_as_they_were(transport: str) -> None:
    sent = ramps(5)
    with (
        rushes.TextureServer(HERE, pictures(sent), timing="every-frame", units=2) as server,
        rushes.TextureClient(  # type: ignore[call-overload]
            server.local_address, every_frame=True, transport=transport
        ) as client,
    ):
        got = list(client)
        assert client.transport == transport
        assert client.shape == ("rgb24", 64, 48)
        assert client.rate == 200
        assert "the source has ended" in (client.wait(TIME_LIMIT) or "")
    numbers = [frame.number for frame in got]
    if transport == "tcp":
        assert numbers == list(range(5))
        assert all(frame.is_whole for frame in got)
    # A busy machine may lose datagrams, and the frames report it.
    assert numbers
    assert numbers == sorted(set(numbers))
    whole = [frame for frame in got if frame.is_whole]
    assert all(np.array_equal(np.asarray(frame), sent[frame.number]) for frame in whole)
    assert client.statistics().frames_whole == len(whole)
    assert client.skipped == 0


def test_an_address_may_be_one_text() -> None:
    with rushes.TextureServer("127.0.0.1:0", pictures(ramps(2))) as server:
        host, port = server.local_address
        with rushes.TextureClient(f"{host}:{port}") as client:
            assert client.pull_frame(TIME_LIMIT) is not None


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("localhost", 'has no port; type "localhost:7000"'),
        ("", 'has no port; type "localhost:7000"'),
        ("::1", r'has no port; type "\[::1\]:7000", with brackets'),
        ("[::1]", r'has no port; type "\[::1\]:7000"'),
        ("fe80::1%eth0:7000", r'needs brackets; type "\[fe80::1%eth0\]:7000"'),
        (":7000", 'has no host; type "localhost:7000"'),
        ("localhost:http", '"http" is not a port, 0 to 65535'),
        ("localhost:70000", '"70000" is not a port, 0 to 65535'),
        (("localhost", 70000), "port: 70000 is outside 0 to 65535"),
    ],
)
def test_an_error_in_an_address_shows_what_to_type(
    address: str | tuple[str, int], message: str
) -> None:
    with pytest.raises(rushes.ConfigError, match=message):
        rushes.TextureClient(address)


def test_an_ipv6_address_stands_in_brackets() -> None:
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    with (
        rushes.TextureServer("[::1]:0", pictures(ramps(2))) as server,
        rushes.TextureClient(f"[::1]:{server.local_address[1]}", transport="tcp") as client,
    ):
        assert client.pull_frame(TIME_LIMIT) is not None


def test_arrays_look_at_the_frame_itself() -> None:
    with (
        rushes.TextureServer(HERE, pictures(ramps(2))) as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        frame = client.pull_frame(TIME_LIMIT)
        assert frame is not None
        array, again = np.asarray(frame), np.asarray(frame)
        assert array.shape == (48, 64, 3)
        assert array.ctypes.data == again.ctypes.data
        assert not array.flags.writeable
        copy = array.copy()
        del frame
        client.close()
        assert np.array_equal(array, copy)


def test_formats_have_the_shapes_of_their_planes() -> None:
    picture = ramps(1, 64, 48)[0]
    shapes = {
        "rgba8": (48, 64, 4),
        "rgb565": (48, 64, 2),
        "bc1": (12, 16, 8),
        "ycocg-bc3": (12, 16, 16),
    }
    for format, shape in shapes.items():
        frame = rushes.encode_texture(picture, 64, 48, format)
        assert np.asarray(frame).shape == shape
        assert [plane.shape for plane in frame.planes] == [shape]
    planes = rushes.encode_texture(picture, 64, 48, "yuv420")
    assert np.asarray(planes).shape == (64 * 48 * 3 // 2,)
    assert [plane.shape for plane in planes.planes] == [(48, 64), (24, 32), (24, 32)]
    assert b"".join(plane.tobytes() for plane in planes.planes) == bytes(planes)


def test_who_wants_columns_first_is_refused() -> None:
    frame = rushes.encode_texture(ramps(1)[0], 64, 48, "rgba8")
    # NumPy makes a copy of its own for that.
    assert np.asarray(frame, order="F").flags.f_contiguous
    assert memoryview(frame).c_contiguous


def test_what_is_encoded_here_can_be_decoded_here() -> None:
    grey = np.full((48, 64, 3), 130, np.uint8)
    for format in ["bc1", "bc3", "ycocg-bc3", "yuv422", "rgba8"]:
        decoded = rushes.encode_texture(grey, 64, 48, format).decode("rgb24")
        assert (decoded.format, decoded.width, decoded.height) == ("rgb24", 64, 48)
        assert decoded.colour == (1, 1, 1, 1)
        assert np.abs(np.asarray(decoded).astype(int) - 130).max() <= 3


def test_the_quality_high_is_nearer_to_the_picture() -> None:
    # Strokes in red on blue.
    picture = np.zeros((48, 64, 3), np.uint8)
    part = (np.arange(64) * 2 + np.arange(48)[:, None]) % 11 * 25
    picture[..., 0], picture[..., 2] = part, 255 - part

    def error(frame: rushes.TextureFrame) -> float:
        found = np.asarray(frame.decode("rgb24")).astype(float)
        return float(((found - picture) ** 2).mean())

    for format in ["bc1", "bc3", "ycocg-bc3"]:
        fast = rushes.encode_texture(picture, 64, 48, format)
        high = rushes.encode_texture(picture, 64, 48, format, quality="high")
        assert bytes(fast) == bytes(
            rushes.encode_texture(picture, 64, 48, format, quality="fast")
        )
        assert error(high) < error(fast)
        with (
            rushes.TextureServer(
                HERE, rushes.Pictures([picture], 64, 48), format=format, quality="high"
            ) as server,
            rushes.TextureClient(server.local_address) as client,
        ):
            frame = client.pull_frame(TIME_LIMIT)
            assert frame is not None and bytes(frame) == bytes(high)
    with pytest.raises(rushes.ConfigError, match="quality: the quality is fast or high"):
        rushes.encode_texture(picture, 64, 48, "bc1", quality="best")  # type: ignore[arg-type]
    with pytest.raises(rushes.ConfigError, match="quality"):
        rushes.TextureServer(HERE, "pattern:64x48@100", quality="best")  # type: ignore[arg-type]


def test_a_hook_is_given_frames() -> None:
    gathered = Gathered()
    with (
        rushes.TextureServer(HERE, "pattern:64x48@200", format="bc1") as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        client.on_frame(gathered)
        frames = gathered.wait_for(5)
        with pytest.raises(rushes.StateError):
            client.on_frame(print)
    numbers = [frame.number for frame in frames]
    assert numbers == sorted(set(numbers))
    assert frames[0].format == "bc1"


@pytest.mark.parametrize(("at_server", "at_client"), [(True, True), (True, False), (False, True)])
def test_either_end_may_do_without_recovery(at_server: bool, at_client: bool) -> None:
    with (
        rushes.TextureServer(HERE, "pattern:64x48@200", recovery=at_server) as server,
        rushes.TextureClient(server.local_address, recovery=at_client) as client,
    ):
        assert next(iter(client)).format == "rgb24"
        statistics, counts = client.statistics(), server.counts()
        assert statistics.packets_recovered <= statistics.packets_requested
        assert counts.packets_retransmitted <= counts.packets_requested
        if not (at_server and at_client):
            assert statistics.packets_requested == counts.packets_requested == 0


@pytest.mark.parametrize(("fec", "has_repairs"), [("off", False), ("auto", False), (25, True)])
def test_a_server_adds_repair_packets(fec: Literal["off", "auto"] | int, has_repairs: bool) -> None:
    with (
        rushes.TextureServer(HERE, "pattern:64x48@200", fec=fec) as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        frames = iter(client)
        for _ in range(5):
            assert next(frames).format == "rgb24"
        statistics, counts = client.statistics(), server.counts()
        assert (counts.repairs > 0, statistics.repairs > 0) == (has_repairs, has_repairs)
        assert statistics.packets_repaired <= statistics.repairs


@pytest.mark.parametrize("fec", [0, 101, "receive", 2.5])
def test_a_ratio_of_repair_packets_is_checked(fec: Any) -> None:
    with pytest.raises((rushes.ConfigError, TypeError), match="fec"):
        rushes.TextureServer(HERE, "pattern:64x48", fec=fec)


@pytest.mark.parametrize(
    ("server_packs", "client_unpacks"), [(True, True), (True, False), (False, True)]
)
def test_unchanged_stripes_are_left_out(server_packs: bool, client_unpacks: bool) -> None:
    still = ramps(1)
    with (
        rushes.TextureServer(
            HERE, pictures(still * 10), timing="every-frame", units=1, packing=server_packs
        ) as server,
        rushes.TextureClient(
            server.local_address, every_frame=True, transport="tcp", packing=client_unpacks
        ) as client,
    ):
        frames = list(client)
        statistics = client.statistics()
    assert len(frames) == 10
    assert all(np.array_equal(np.asarray(frame), still[0]) for frame in frames)
    # Noise of 9 KB is one stripe, and not packed.
    assert statistics.stripes_unchanged == (9 if server_packs and client_unpacks else 0)
    assert (statistics.stripes_unpacked, statistics.stripes_stale) == (0, 0)


def test_a_server_states_the_colours_of_its_pictures(tmp_path: Path) -> None:
    grey = bytes([120]) * (16 * 16 * 3 // 2)
    file = tmp_path / "grey.y4m"
    file.write_bytes(b"YUV4MPEG2 W16 H16 F50:1 C420jpeg XCOLORRANGE=FULL\nFRAME\n" + grey)
    made = rushes.Pictures([grey], 16, 16, pixels="yuv420", rate=50)
    hdr = (9, 16, 9, 0x82)
    # Of a file, all but the location of chroma is overridden, which stays in the centre.
    cases: list[tuple[rushes.Pictures | str, Points | None, Points]] = [
        (made, None, (1, 1, 1, 1)),
        (made, hdr, hdr),
        (str(file), None, (1, 1, 6, 0x81)),
        (str(file), (1, 1, 9, 0), (1, 1, 9, 1)),
        (str(file), hdr, (9, 16, 9, 0x81)),
    ]
    for source, colour, seen in cases:
        with (
            rushes.TextureServer(HERE, source, loop=True, colour=colour) as server,
            rushes.TextureClient(server.local_address) as client,
        ):
            frame = client.pull_frame(TIME_LIMIT)
            assert frame is not None
            assert frame.colour == seen
    for unknown in [(2, 1, 1, 1), (1, 18, 1, 1), (1, 1, 0, 1), (1, 1, 1, 7), (1, 1, 1, 256)]:
        with pytest.raises(rushes.ConfigError, match="colour"):
            rushes.TextureServer(HERE, made, colour=unknown)


def test_the_oldest_frame_is_dropped_if_none_is_pulled() -> None:
    with (
        rushes.TextureServer(HERE, pictures(ramps(30)), timing="every-frame") as server,
        rushes.TextureClient(server.local_address, queue=2, transport="tcp") as client,
    ):
        assert client.wait(TIME_LIMIT) is not None
        got = [frame.number for frame in client]
        assert got == [28, 29]
        assert client.skipped == 28


def test_a_generator_makes_pictures_on_demand() -> None:
    def endless() -> Iterator[bytes]:
        number = 0
        while True:
            yield bytes([number % 256]) * (16 * 16 * 3)
            number += 1

    source = rushes.Pictures(endless(), 16, 16, rate=500)
    with (
        rushes.TextureServer(HERE, source) as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        first = client.pull_frame(TIME_LIMIT)
        second = client.pull_frame(TIME_LIMIT)
        assert first is not None
        assert second is not None
        assert bytes(first)[0] != bytes(second)[0]
        eventually(lambda: server.counts().frames >= 2)
        assert server.take_frames()[0].frame == 0
        assert server.counts().clients == 1


def test_arrays_of_another_shape_change_the_size() -> None:
    sent = ramps(3) + ramps(3, 48, 80) + ramps(3)
    with (
        rushes.TextureServer(HERE, pictures(sent), timing="every-frame") as server,
        rushes.TextureClient(server.local_address, every_frame=True, transport="tcp") as client,
    ):
        got = list(client)
        assert "the source has ended" in (client.wait(TIME_LIMIT) or "")
    assert [(frame.height, frame.width, 3) for frame in got] == [array.shape for array in sent]
    assert all(np.array_equal(np.asarray(frame), array) for frame, array in zip(got, sent, strict=True))


def test_pictures_of_another_size_end_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda raised: reported.append(str(raised.exc_value)))
    source = rushes.Pictures([bytes(16 * 16 * 3), bytes(5)], 16, 16, rate=100)
    with (
        rushes.TextureServer(HERE, source) as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        assert "5 octets, where 768 are needed" in (client.wait(TIME_LIMIT) or "")
    assert reported == ["a picture of 5 octets, where 768 are needed"]


def test_tiles_are_encrypted_under_keys_that_the_ends_agree_on() -> None:
    zrtp = rushes.Security.zrtp(timeout=TIME_LIMIT)
    with (
        rushes.TextureServer(HERE, "pattern:64x48@100", security=zrtp) as server,
        rushes.TextureClient(server.local_address, security=zrtp) as client,
    ):
        assert client.pull_frame(TIME_LIMIT) is not None
        assert client.transport == "rtp"
        assert client.sas is not None
        assert [sas.text for sas in server.sas()] == [client.sas.text]


def test_a_client_may_ask_for_another_format() -> None:
    with (
        rushes.TextureServer(HERE, "pattern:64x48@100") as server,
        rushes.TextureClient(server.local_address) as client,
    ):
        client.change(format="bc1")
        assert "bc1" in (frame.format for frame in islice(client, 2_000))
        server.set_format("ycocg-bc3")
        assert "ycocg-bc3" in (frame.format for frame in islice(client, 2_000))


def test_a_client_may_ask_for_a_largest_size() -> None:
    array = ramps(1)[0]
    halves = array.reshape(24, 2, 32, 2, 3).astype(np.uint16).sum(axis=(1, 3))
    with (
        rushes.TextureServer(HERE, pictures([array] * 2_000)) as server,
        rushes.TextureClient(server.local_address, transport="tcp", size_max=(32, 100)) as client,
    ):
        frame = client.pull_frame(TIME_LIMIT)
        assert frame is not None
        assert np.array_equal(np.asarray(frame), (halves + 2) // 4)
        client.change(size_max=(16, 16))
        assert (16, 12) in ((frame.width, frame.height) for frame in islice(client, 500))
        client.change(size_max=(0, 0))
        assert (64, 48) in ((frame.width, frame.height) for frame in islice(client, 500))
        for size in [(0, 9), (9, 0), (32_769, 9)]:
            with pytest.raises(rushes.ConfigError, match="size_max"):
                client.change(size_max=size)
            with pytest.raises(rushes.ConfigError, match="size_max"):
                rushes.TextureClient(server.local_address, size_max=size)
    with (
        rushes.TextureServer(HERE, "pattern:64x48@100", scaling=False) as server,
        rushes.TextureClient(server.local_address, size_max=(32, 32)) as client,
    ):
        frame = client.pull_frame(TIME_LIMIT)
        assert frame is not None
        assert (frame.width, frame.height) == (64, 48)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(rushes.ConfigError, match="bc9"):
        rushes.TextureServer(HERE, "pattern:64x48@100", format="bc9")
    with pytest.raises(rushes.ConfigError, match="nowhere.y4m"):
        rushes.TextureServer(HERE, "nowhere.y4m")
    with pytest.raises(rushes.ConfigError):
        rushes.Pictures([], 0, 16)
    with pytest.raises(TypeError):
        rushes.Pictures(5, 16, 16)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="speed"):
        rushes.TextureServer(HERE, "pattern:64x48@100", speed=1)  # type: ignore[call-arg]
    with pytest.raises(rushes.NetError):
        rushes.TextureClient(("127.0.0.1", 1), connect_timeout=5.0)
    with pytest.raises(rushes.ConfigError, match="bytes"):
        rushes.encode_texture(b"short", 64, 48, "bc1")


def test_pictures_may_close_their_server() -> None:
    closed = threading.Event()
    servers: list[rushes.TextureServer] = []

    def two() -> Iterator[bytes]:
        yield bytes(16 * 16 * 3)
        servers[0].close()
        closed.set()
        yield bytes(16 * 16 * 3)

    server = rushes.TextureServer(HERE, rushes.Pictures(two(), 16, 16, rate=100))
    servers.append(server)
    with rushes.TextureClient(server.local_address) as client:
        assert client.wait(TIME_LIMIT) is not None
        assert closed.wait(TIME_LIMIT)
    with pytest.raises(rushes.ClosedError):
        server.counts()
    server.close()


def test_after_closing_nothing_works() -> None:
    server = rushes.TextureServer(HERE, "pattern:64x48@100")
    client = rushes.TextureClient(server.local_address)
    client.close()
    client.close()
    server.close()
    with pytest.raises(rushes.ClosedError):
        client.pull_frame(0)
    with pytest.raises(rushes.ClosedError):
        server.counts()
    assert client.statistics().packets_invalid == 0


def test_a_waiting_thread_is_notified_of_the_end() -> None:
    with rushes.TextureServer(HERE, pictures(ramps(1), rate=100), loop=True) as server:
        client = rushes.TextureClient(server.local_address)
        ended = threading.Event()

        def watch() -> None:
            for _ in client:
                pass
            ended.set()

        thread = threading.Thread(target=watch)
        thread.start()
        client.close()
        thread.join(TIME_LIMIT)
        assert ended.is_set()
