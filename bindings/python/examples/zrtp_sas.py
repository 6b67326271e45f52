"""Two ends agree on keys, and their users compare a few words.

Here this program is both users. In practice each end shows its words, and the users read them to each
other: if they are the same, there is no man in the middle.
"""

import threading

import rushes
from rushes import Sas, Security


def compare(sas: Sas) -> bool:
    """Returns whether the other side shows the same words; a real program would ask its user."""
    print(f"alice sees: {sas}")
    return True


def call(port: int) -> None:
    """Alice opens a stream to Bob; a function compares the words."""
    session = rushes.Context().session("127.0.0.1")
    security = Security.zrtp(timeout=10.0, on_sas=compare)
    with session.stream("generic", remote_port=port, security=security) as stream:
        stream.push_frame(b"for bob only")
        stream.push_frame(b"for bob too")
        arrived.wait(10.0)


arrived = threading.Event()
session = rushes.Context().session("127.0.0.1")
# Bob waits for any peer, and compares the words after the stream is open.
with session.begin("generic", security=Security.zrtp()) as opening:
    alice = threading.Thread(target=call, args=opening.local_address[1:])
    alice.start()
    stream = opening.wait(timeout=10.0)
    assert stream is not None, "no peer contacted Bob"
print(f"bob sees:   {session.sas}")
session.verify_sas(True)
with stream:
    for frame, expected in zip(stream.frames(5.0), [b"for bob only", b"for bob too"], strict=False):
        assert bytes(frame) == expected
        print(bytes(frame).decode())
    arrived.set()
alice.join()
print("warnings:", session.zrtp_warnings())
