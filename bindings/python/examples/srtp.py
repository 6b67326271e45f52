"""Encrypted streams, and a key that is changed while they run."""

import os

import rushes
from rushes import MasterKey, Security

SUITE = "AEAD_AES_128_GCM"
FRAME = b"\0\0\0\x01\x65\x80" + b"\x55" * 10_000

# Both ends must have got the keys in some safe way; the identifiers tell them apart.
first = MasterKey(SUITE, os.urandom(28), mki=b"\x01")
second = MasterKey(SUITE, os.urandom(28), mki=b"\x02")
security = Security.keys(first, first)

session = rushes.Context().session("127.0.0.1")
receiver = session.stream("h264", security=security, probation=1)
sender = session.stream("h264", security=security, remote_port=receiver.local_address[1])
with receiver, sender:
    for number in range(10):
        if number == 5:
            # First whoever receives, so that nothing is lost meanwhile.
            receiver.add_receive_key(second)
            sender.set_send_key(second)
        sender.push_frame(FRAME)
        frame = receiver.pull_frame(2.0)
        assert frame is not None
        assert bytes(frame) == FRAME

    # Whoever does not have the key cannot make anything up.
    with session.stream("h264", remote_port=receiver.local_address[1]) as stranger:
        stranger.push_frame(FRAME)
        assert receiver.pull_frame(0.1) is None
    print(receiver.statistics().receive.discards)
