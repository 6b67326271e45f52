"""Media files."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from pathlib import Path

import pytest
import rushes
from conftest import MEDIA, TIME_LIMIT, access_unit


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_read_while_another_thread_writes_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.265"
    os.mkfifo(pipe)
    frames = [access_unit(bytes([number + 1])) for number in range(5)]

    def write() -> None:
        # Either side waits for the other one to open it.
        with pipe.open("wb") as file:
            for frame in frames:
                file.write(frame)
                file.flush()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    assert list(rushes.MediaReader(pipe)) == frames
    thread.join(TIME_LIMIT)
    assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_live_source_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    pipe = tmp_path / "camera.265"
    os.mkfifo(pipe)
    reader = rushes.MediaReader(pipe)
    assert reader.is_live
    assert reader.read(0) is None
    frames = [access_unit(bytes([number + 1])) for number in range(5)]
    with pipe.open("wb", buffering=0) as file:
        for frame in frames:
            file.write(frame)
            # The next frame is written only after this one was read.
            assert reader.read(TIME_LIMIT) == frame
    with pytest.raises(EOFError):
        reader.read(TIME_LIMIT)
    with pytest.raises(rushes.ConfigError, match="timeout: -1"):
        reader.read(-1)


def test_a_file_is_cut_into_access_units() -> None:
    film = MEDIA / "hevc_192x128_90f_tiny_nals.265"
    reader = rushes.MediaReader(film)
    assert reader.frame_rate == Fraction(30)
    frames = list(reader)
    assert len(frames) == 90
    assert b"".join(frames) == film.read_bytes()


def test_pieces_of_anything_have_a_length(tmp_path: Path) -> None:
    file = tmp_path / "octets.bin"
    file.write_bytes(bytes(2_500))
    reader = rushes.MediaReader(file, frame_len=1_000)
    assert reader.frame_rate is None
    lengths = [len(piece) for piece in reader]
    assert lengths == [1_000, 1_000, 500]


def test_samples_are_sent_and_recorded_as_they_are(tmp_path: Path) -> None:
    samples = bytes(number * 37 % 251 for number in range(480 * 6))
    sound, copy = tmp_path / "sound.wav", tmp_path / "copy.wav"
    with rushes.MediaWriter(sound, "l24", sampling=(96_000, 2)) as writer:
        writer.write(samples)
    reader = rushes.MediaReader(sound, packet_time=0.000_5)
    assert reader.sampling == (96_000, 2)
    session = rushes.Context().session("127.0.0.1")
    options: rushes.StreamOptions = {"clock_rate": 96_000, "channels": 2, "packet_time": 0.000_5}
    monitor = session.stream("l24", **options)
    options["remote_port"] = monitor.local_address[1]
    camera = session.stream("l24", **options)
    for frame in reader:
        assert len(frame) == 48 * 6
        camera.push_frame(frame)
    with rushes.MediaWriter(copy, "l24", sampling=(96_000, 2)) as writer:
        for _ in range(10):
            received = monitor.pull_frame(TIME_LIMIT)
            assert received is not None
            writer.write(received)
    assert copy.read_bytes() == sound.read_bytes()
    with pytest.raises(rushes.ConfigError, match="sampling"):
        rushes.MediaWriter(copy, "l24", sampling=(0, 2))


def test_a_written_file_takes_its_name_when_it_is_finished(tmp_path: Path) -> None:
    copy = tmp_path / "copy.265"
    film = MEDIA / "hevc_192x128_90f_tiny_nals.265"
    with rushes.MediaWriter(copy) as writer:
        for frame in rushes.MediaReader(film):
            writer.write(frame)
        assert not copy.exists()
    assert copy.read_bytes() == film.read_bytes()
    with pytest.raises(rushes.ClosedError):
        writer.write(b"more")


def test_an_unfinished_file_vanishes(tmp_path: Path) -> None:
    def write() -> None:
        with rushes.MediaWriter(tmp_path / "copy.265") as writer:
            writer.write(b"\0\0\0\1\x26\1\x80")
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError):
        write()
    assert list(tmp_path.iterdir()) == []


def test_uncompressed_video_goes_from_y4m_to_a_stream_and_back(tmp_path: Path) -> None:
    film, copy = tmp_path / "film.y4m", tmp_path / "copy.y4m"
    planes = bytes(range(8)) + b"12" + b"78"
    film.write_bytes(b"YUV4MPEG2 W4 H2 F25:1 Ip C420jpeg\n" + b"FRAME\n" + planes)
    reader = rushes.MediaReader(film)
    video = reader.raw_video
    assert video == (4, 2, "YCbCr-4:2:0", 8)
    assert reader.frame_rate == Fraction(25)
    (frame,) = reader
    assert frame == bytes([0, 1, 4, 5, *b"17", 2, 3, 6, 7, *b"28"])
    session = rushes.Context().session("127.0.0.1")
    with session.stream("uncompressed", raw_video=video, probation=1) as monitor:
        port = monitor.local_address[1]
        with session.stream("uncompressed", raw_video=video, remote_port=port) as camera:
            camera.push_frame(frame)
            received = monitor.pull_frame(TIME_LIMIT)
    assert received is not None
    assert bytes(received) == frame
    assert (received.missing, received.is_second_field) == ([], False)
    with rushes.MediaWriter(copy, raw_video=video) as writer:
        writer.write(received)
    assert copy.read_bytes().endswith(b"FRAME\n" + planes)
    packed = tmp_path / "frames.rgb"
    packed.write_bytes(b"abcdefABCDEF")
    frames = rushes.MediaReader(packed, "uncompressed", raw_video=(2, 1, "RGB", 8))
    assert list(frames) == [b"abcdef", b"ABCDEF"]
