"""Encrypted streams, and a key that is changed while they run."""

import os

import rushes
from rushes import MasterKey, Security

SUITE = "AEAD_AES_128_GCM"
FRAME = b"\0\0\0\x01\x65\x80" + b"\x55" * 10_000

# Both ends must have received the keys securely; the identifiers distinguish them.
first = MasterKey(SUITE, os.urandom(28), mki=b"\x01")
second = MasterKey(SUITE, os.urandom(28), mki=b"\x02")
security = Security.keys(first, first)

session = rushes.Context().session("127.0.0.1")
receiver = session.stream("h264", security=security, probation=1)
sender = session.stream("h264", security=security, remote_port=receiver.local_address[1])
with receiver, sender:
    for number in range(10):
        if number == 5:
            # The receiver first, so that no frame is lost meanwhile.
            receiver.add_receive_key(second)
            sender.set_send_key(second)
        sender.push_frame(FRAME)
        frame = receiver.pull_frame(2.0)
        assert frame is not None
        assert bytes(frame) == FRAME

    # A sender without the key is refused.
    with session.stream("h264", remote_port=receiver.local_address[1]) as stranger:
        stranger.push_frame(FRAME)
        assert receiver.pull_frame(0.1) is None
    print(receiver.statistics().receive.discards)
