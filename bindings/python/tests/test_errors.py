"""Errors: their messages and classes."""

from __future__ import annotations

import socket
from fractions import Fraction
from typing import Any

import pytest
import rushes

KEY = bytes(range(28))


@pytest.mark.parametrize(
    ("settings", "kind", "words"),
    [
        ({"mtu": 50}, rushes.ConfigError, "mtu: 50 is outside 100 to 65535"),
        ({"mtu": -1}, rushes.ConfigError, "mtu: -1 is outside 100 to 65535"),
        ({"remote_port": 70_000}, rushes.ConfigError, "remote_port: 70000 is outside 0 to 65535"),
        ({"local_port": -1}, rushes.ConfigError, "local_port: -1 is outside 0 to 65535"),
        ({"ssrc": 2**200}, rushes.ConfigError, "ssrc: 160.* is outside 0 to 4294967295"),
        ({"dscp": 64}, rushes.ConfigError, "dscp: 64 is outside 0 to 63"),
        ({"only_from": ("::1", 65_536)}, rushes.ConfigError, "only_from: 65536 is outside 0 to 65"),
        ({"also_to": [("::1", -1)]}, rushes.ConfigError, "also_to: -1 is outside 0 to 65535"),
        ({"multicast": {"ttl": 256}}, rushes.ConfigError, "ttl: 256 is outside 0 to 255"),
        ({"reorder_window": (0, 1)}, rushes.ConfigError, "reorder_window: 0 is outside 1 to 16384"),
        ({"first_packet": (65_536, 0)}, rushes.ConfigError, "first_packet: 65536 is outside"),
        ({"frame_rate": Fraction(1, 2**40)}, rushes.ConfigError, "frame_rate: 10.* is outside 0"),
        ({"pacing_share": 2.0}, rushes.ConfigError, "a pacing share of 2"),
        ({"pacing_rate": 0}, rushes.ConfigError, "a pacing rate of 0"),
        ({"rate_control": (3, 2, 1)}, rushes.ConfigError, "rate_control: rates of 3, 2 and 1"),
        ({"rate_control": (1, 2)}, rushes.ConfigError, "rate_control: it is .minimum, start, max"),
        ({"rate_control": (1, 2, 3, "ect")}, rushes.ConfigError, "not one of l4s, classic"),
        ({"rate_priority": 0}, rushes.ConfigError, "rate_priority: 0 is outside 1 to 255"),
        ({"payload_type": 200}, rushes.ConfigError, "payload_type: 200 is outside 0 to 127"),
        ({"payload_type": 72}, rushes.ConfigError, "payload_type: .*72 is among 64 to 95.*RFC 5761"),
        ({"recovery": 72}, rushes.ConfigError, "recovery: .*RFC 5761"),
        ({"frame_rate": 0}, rushes.ConfigError, "frame_rate: "),
        ({"clock_rate": 0}, rushes.ConfigError, "clock_rate: "),
        ({"reorder_time": -1.0}, rushes.ConfigError, "reorder_time: "),
        ({"delivery": "whole"}, rushes.ConfigError, "'whole'|\"whole\" is not one of"),
        ({"recovery": "yes"}, rushes.ConfigError, "is not one of off, on, verbatim"),
        ({"fec": "on"}, rushes.ConfigError, "is not one of receive, auto"),
        ({"fec": (20, "xor")}, rushes.ConfigError, "is not one of flexfec, flexfec-03, ulpfec"),
        ({"fec": (20,)}, rushes.ConfigError, "fec: it is a ratio, or .ratio, format."),
        ({"fec": 101}, rushes.ConfigError, "fec: 101 is outside 1 to 100"),
        ({"send_path": "pigeon"}, rushes.ConfigError, "pigeon"),
        ({"describe": [("shoe", "42")]}, rushes.ConfigError, "shoe"),
        ({"multicast": {"ttl": 1, "speed": 2}}, rushes.ConfigError, "speed"),
        ({"rtx_ssrc": 8}, rushes.ConfigError, "an SSRC of retransmissions is set"),
        ({"recovery": 96, "payload_type": 96}, rushes.ConfigError, "that of the media"),
        ({"recovery": "on", "rtcp": False}, rushes.RtcpError, "RTCP, which is off"),
        ({"fec": "auto", "rtcp": False}, rushes.RtcpError, "RTCP, which is off"),
        ({"fec": 20, "payload_type": 96, "recovery": 100}, rushes.ConfigError, "repair packets"),
        ({"speed": 1}, TypeError, "\"speed\" is not a setting of a stream"),
        ({"remote_prot": 1}, TypeError, "a setting of a stream; did you mean \"remote_port\""),
        ({"multicast": {"tll": 1}}, rushes.ConfigError, "did you mean \"ttl\""),
        ({"delivery": "units"}, rushes.ConfigError, "did you mean \"unit\""),
        ({"packet_time": 1.0}, rushes.ConfigError, "a packet time of 1s is outside"),
        ({"channels": 0}, rushes.ConfigError, "channel"),
        ({"mtu": 1.5}, TypeError, "mtu: "),
        ({"mtu": "large"}, TypeError, "mtu: "),
        ({"security": "please"}, TypeError, "security: "),
    ],
)
def test_a_wrong_setting_is_named(
    session: rushes.Session, settings: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        session.stream("h265", **settings)


def test_a_static_payload_type_of_another_rate_is_a_wrong_setting(session: rushes.Session) -> None:
    with pytest.raises(rushes.ConfigError, match="16000"):
        session.stream("pcmu", payload_type=0, clock_rate=16_000)


def test_an_argument_out_of_range_is_named(session: rushes.Session) -> None:
    def refused(words: str) -> Any:
        return pytest.raises(rushes.ConfigError, match=words)

    with session.stream("generic", remote_port=9) as stream:
        with refused("timestamp: 9223372036854775808 is outside -9223372036854775808 to "):
            stream.push_frame(b"frame", 2**63)
        with refused("ssrc: -1 is outside 0 to 4294967295"):
            stream.rtcp.request_bit_rate(-1, 1)
        with refused("sources: 4294967296 is outside"):
            stream.rtcp.send_estimate(1, [2**32])
        with refused("subtype: 32 is outside 0 to 31"):
            stream.rtcp.send_app("NAME", b"", subtype=32)
        with pytest.raises(TypeError, match="ssrc"):
            stream.rtcp.request_bit_rate("one", 1)  # type: ignore[arg-type]
    with refused("frame_len: -1 is outside 0 to"):
        rushes.MediaReader("nowhere.raw", frame_len=-1)
    with refused("lifetime: -1 is outside 0 to"):
        rushes.MasterKey("AEAD_AES_128_GCM", KEY, lifetime=(-1, 1))
    with refused("port: 70000 is outside 0 to 65535"):
        rushes.TextureServer(("127.0.0.1", 70_000), "pattern")
    with refused("width: -1 is outside 0 to 4294967295"):
        rushes.Pictures([], -1, 1)


def test_a_misspelled_setting_of_texture_video_is_answered_with_the_nearest() -> None:
    with pytest.raises(TypeError, match='texture video; did you mean "clients_max"'):
        rushes.TextureServer(("127.0.0.1", 0), "pattern", client_max=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match='did you mean "deadline_max"'):
        rushes.TextureClient(("127.0.0.1", 9), deadlin_max=1.0)  # type: ignore[call-overload]
    with pytest.raises(rushes.Error, match='did you mean "frames="'):
        rushes.TextureServer(("127.0.0.1", 0), "pattern,frame=3")


def test_none_is_a_settings_default(session: rushes.Session) -> None:
    with session.stream("h265", remote_port=None, security=None) as stream:  # type: ignore[arg-type]
        assert not stream.closed


def test_the_error_for_an_unknown_format_lists_the_known_ones(session: rushes.Session) -> None:
    known = (
        "av1, generic, h264, h265, h266, klv, l16, l24, opus, pcma, pcmu, uncompressed, vp8, vp9"
    )
    with pytest.raises(rushes.ConfigError, match=known):
        session.stream("mpeg2")  # type: ignore[arg-type]


def test_uncompressed_video_needs_its_size(session: rushes.Session) -> None:
    with pytest.raises(rushes.Error, match="raw_video"):
        session.stream("uncompressed")
    for video, error in [
        ((4, 2, "RGB"), "it is .width, height, sampling, depth."),
        ((4, 2, "RBG", 8), "the sampling is not one of RGB"),
        ((4, 2, "RGB", 9), "a depth of 9 bits"),
        ((0, 2, "RGB", 8), "the width and the height"),
        ((4, 3, "RGB", 8, "interlaced"), "an even height"),
        ((4, 2, "RGB", 8, "interlace"), 'did you mean "interlaced"'),
    ]:
        with pytest.raises(rushes.ConfigError, match=error):
            session.stream("uncompressed", raw_video=video)  # type: ignore[arg-type]


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
    assert len(errors) == 14
    assert all(issubclass(error, rushes.Error) for error in errors)
    assert issubclass(rushes.Error, Exception)
    assert issubclass(rushes.ZrtpError, rushes.SecurityError)
    assert issubclass(rushes.ClosedError, rushes.StateError)
    assert issubclass(rushes.GpuError, rushes.TextureError)
    assert all(error.__doc__ for error in errors)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(rushes.FileError, match="nowhere.265"):
        rushes.MediaReader("nowhere.265")
    with pytest.raises(rushes.ConfigError, match="nowhere"):
        rushes.MediaReader("nowhere")
