"""Receives frames one after the other, until the sender sends BYE.

    python receive_iterator.py [PORT]

Without a port it sends to itself.
"""

import sys
import threading

import rushes


def play(port: int) -> None:
    """Sends thirty frames."""
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h264", remote_port=port) as stream:
        for number in range(30):
            stream.push_frame(b"\0\0\0\x01\x65" + bytes([0x80 | number]) + b"\x55" * 5_000)


session = rushes.Context().session(None)
port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
with session.stream("h264", local_port=port) as stream:
    if port == 0:
        threading.Thread(target=play, args=stream.local_address[1:]).start()
    octets = 0
    for count, frame in enumerate(stream.frames(timeout=5.0, until_bye=True), 1):
        # A decoder would read `memoryview(frame)` here: the frame's memory, not a copy.
        octets += len(frame)
        if count % 10 == 0:
            print(f"frame {count}: {len(frame)} octets at {frame.timestamp}")
    print(f"{octets} octets, discarded: {stream.statistics().receive.discards}")
