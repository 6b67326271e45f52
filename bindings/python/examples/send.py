"""Sends frames to a port: a few generated H.265 access units.

    rushes recv --from 5004 --codec h265 -o copy.265     # or receive_iterator.py 5004
    python send.py 127.0.0.1 5004
"""

import sys

import rushes

host = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
port = int(sys.argv[2]) if len(sys.argv) > 2 else 5004

session = rushes.Context().session(host)
with session.stream("h265", remote_port=port, frame_rate=30) as stream:
    for number in range(30):
        # An encoder's access unit: start code, NAL unit header, slice.
        access_unit = b"\0\0\0\x01\x02\x01" + bytes([0x80 | number]) + b"\x55" * 20_000
        stream.push_frame(access_unit)
        # This answers reports and requests meanwhile; `time.sleep` would delay them.
        stream.wait(0.005)
    print(stream.statistics().send)
