"""Receives frames by a function that the library calls on a dedicated thread."""

import threading

import rushes

FRAMES = 30
all_arrived = threading.Event()
lengths: list[int] = []


def on_frame(frame: rushes.Frame) -> None:
    """Called for each frame. It should return quickly; long work belongs on another thread."""
    lengths.append(len(frame))
    if len(lengths) == FRAMES:
        all_arrived.set()


session = rushes.Context().session("127.0.0.1")
with session.stream("opus") as speaker:
    speaker.on_event(lambda event: print(event.kind, event.details))
    speaker.on_frame(on_frame)
    with session.stream("opus", remote_port=speaker.local_address[1]) as microphone:
        for number in range(FRAMES):
            microphone.push_frame(bytes([0x08, number]) * (number + 1))
        is_complete = all_arrived.wait(5.0)
print(f"{len(lengths)} packets of {sum(lengths)} octets:", "all" if is_complete else "some are missing")
