"""Two ends agree on keys by themselves, and their people compare a few words.

Here both people are this program. In earnest each end shows its words, and the two read them to each
other: if they are the same, nobody is in between.
"""

import threading

import rushes
from rushes import Sas, Security


def compare(sas: Sas) -> bool:
    """Asks whether the other side shows the same; `input` would do in a terminal."""
    print(f"alice sees: {sas}")
    return True


def call(port: int) -> None:
    """Alice calls, and is asked by a function."""
    session = rushes.Context().session("127.0.0.1")
    security = Security.zrtp(timeout=10.0, on_sas=compare)
    with session.stream("generic", remote_port=port, security=security) as stream:
        stream.push_frame(b"for bob only")
        stream.push_frame(b"for bob too")
        came.wait(10.0)


came = threading.Event()
session = rushes.Context().session("127.0.0.1")
# Bob waits for whoever speaks to him, and looks at the words himself.
with session.begin("generic", security=Security.zrtp()) as opening:
    alice = threading.Thread(target=call, args=opening.local_address[1:])
    alice.start()
    stream = opening.wait(timeout=10.0)
    assert stream is not None, "nobody came"
print(f"bob sees:   {session.sas}")
session.verify_sas(True)
with stream:
    for frame, expected in zip(stream.frames(5.0), [b"for bob only", b"for bob too"], strict=False):
        assert bytes(frame) == expected
        print(bytes(frame).decode())
    came.set()
alice.join()
print("warnings:", session.zrtp_warnings())
