"""Errors: their messages and classes."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import rushes

KEY = bytes(range(28))


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"mtu": 50}, rushes.ConfigError, "an MTU of 50 octets is outside 100 to 65535"),
        ({"mtu": -1}, rushes.ConfigError, "mtu: "),
        ({"remote_port": 70_000}, rushes.ConfigError, "remote_port: "),
        ({"pacing_share": 2.0}, rushes.ConfigError, "a pacing share of 2"),
        ({"pacing_rate": 0}, rushes.ConfigError, "a pacing rate of 0"),
        ({"payload_type": 200}, rushes.ConfigError, "payload_type: 200 is outside 0 to 127"),
        ({"frame_rate": 0}, rushes.ConfigError, "frame_rate: "),
        ({"clock_rate": 0}, rushes.ConfigError, "clock_rate: "),
        ({"reorder_time": -1.0}, rushes.ConfigError, "reorder_time: "),
        ({"delivery": "whole"}, rushes.ConfigError, "'whole'|\"whole\" is not one of"),
        ({"recovery": "yes"}, rushes.ConfigError, "is not one of off, on, verbatim"),
        ({"send_path": "pigeon"}, rushes.ConfigError, "pigeon"),
        ({"describe": [("shoe", "42")]}, rushes.ConfigError, "shoe"),
        ({"multicast": {"ttl": 1, "speed": 2}}, rushes.ConfigError, "speed"),
        ({"rtx_ssrc": 8}, rushes.ConfigError, "an SSRC of retransmissions is set"),
        ({"recovery": 96, "payload_type": 96}, rushes.ConfigError, "that of the media"),
        ({"recovery": "on", "rtcp": False}, rushes.RtcpError, "RTCP, which is off"),
        ({"speed": 1}, TypeError, "\"speed\" is not a setting of a stream"),
        ({"mtu": "large"}, TypeError, "mtu: "),
        ({"security": "please"}, TypeError, "security: "),
    ],
)
def test_a_wrong_setting_is_named(
    session: rushes.Session, settings: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        session.stream("h265", **settings)


def test_none_is_a_settings_default(session: rushes.Session) -> None:
    with session.stream("h265", remote_port=None, security=None) as stream:  # type: ignore[arg-type]
        assert not stream.closed


def test_an_unknown_format_is_told_the_known_ones(session: rushes.Session) -> None:
    with pytest.raises(rushes.ConfigError, match="generic, h264, h265, h266, klv, opus"):
        session.stream("mpeg2")  # type: ignore[arg-type]


def test_a_port_in_use_is_an_error_of_the_net(session: rushes.Session) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(rushes.NetError, match="in use"):
            session.stream("h265", local_port=taken.getsockname()[1])


def test_a_stream_without_a_port_to_send_to_says_so(session: rushes.Session) -> None:
    with session.stream("h265") as stream, pytest.raises(rushes.StateError, match="remote_port"):
        stream.push_frame(b"\0\0\0\1\x26\1\x80")


def test_what_is_no_frame_is_refused_whole(session: rushes.Session) -> None:
    with session.stream("h265", remote_port=9) as stream:
        with pytest.raises(rushes.FrameError):
            stream.push_frame(b"no start code")
        assert stream.statistics().send.packets == 0


def test_a_name_that_cannot_be_resolved_is_an_error_of_the_net() -> None:
    with pytest.raises(rushes.NetError, match="256.256.256.256"):
        rushes.Context().session("256.256.256.256")


def test_a_canonical_name_has_a_length() -> None:
    with pytest.raises(rushes.ConfigError, match="0 octets"):
        rushes.Context(cname="")


def test_a_key_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(rushes.SecurityError, match="28 octets"):
        rushes.Security.shared("AEAD_AES_128_GCM", KEY[1:])


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
def test_a_wait_is_a_number_of_seconds(session: rushes.Session, timeout: float) -> None:
    with session.stream("h265") as stream, pytest.raises(ValueError, match="seconds"):
        stream.pull_frame(timeout)


def test_every_error_is_one_of_the_library() -> None:
    errors = [value for name, value in vars(rushes).items() if name.endswith("Error")]
    assert len(errors) == 12
    assert all(issubclass(error, rushes.Error) for error in errors)
    assert issubclass(rushes.Error, Exception)
    assert issubclass(rushes.ZrtpError, rushes.SecurityError)
    assert issubclass(rushes.ClosedError, rushes.StateError)
    assert all(error.__doc__ for error in errors)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(rushes.FileError, match="nowhere.265"):
        rushes.MediaReader("nowhere.265")
    with pytest.raises(rushes.ConfigError, match="nowhere"):
        rushes.MediaReader("nowhere")
