"""Encodes pictures to H.264 with PyAV, streams them with Rushes and decodes them with PyAV.

    pip install av numpy
    python pyav_camera.py
"""

import threading
from fractions import Fraction

import av
import av.video
import numpy as np
import rushes

WIDTH, HEIGHT, RATE, FRAMES = 320, 240, 30, 60


def camera(port: int) -> None:
    """Encodes pictures as they are taken and sends each access unit."""
    codec = av.CodecContext.create("libx264", "w")
    assert isinstance(codec, av.VideoCodecContext)
    codec.width, codec.height, codec.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    codec.framerate, codec.gop_size, codec.max_b_frames = Fraction(RATE), 15, 0
    codec.options = {"tune": "zerolatency", "preset": "ultrafast"}
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h264", remote_port=port, frame_rate=RATE) as stream:
        for number in range(FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 40, np.uint8)
            picture[:, number * 4 : number * 4 + 40] = 220
            encoded = codec.encode(av.VideoFrame.from_ndarray(picture, format="rgb24"))
            for packet in encoded:
                stream.push_frame(bytes(packet))
            stream.wait(1 / 120)
        for packet in codec.encode(None):
            stream.push_frame(bytes(packet))


def bar(picture: av.VideoFrame) -> int:
    """The position of the bright bar."""
    row = picture.to_ndarray(format="gray")[HEIGHT // 2]
    return int(np.flatnonzero(row > 128).mean())


session = rushes.Context().session("127.0.0.1")
decoder = av.CodecContext.create("h264", "r")
assert isinstance(decoder, av.VideoCodecContext)
places = []
with session.stream("h264") as stream:
    thread = threading.Thread(target=camera, args=stream.local_address[1:])
    thread.start()
    for frame in stream.frames(timeout=5.0, until_bye=True):
        # PyAV copies its input, because FFmpeg requires zeros after it.
        places += [bar(picture) for picture in decoder.decode(av.Packet(bytes(frame)))]
    places += [bar(picture) for picture in decoder.decode(None)]
    thread.join()
print(f"{len(places)} pictures; the bar moved from {places[0]} to {places[-1]}")
assert len(places) == FRAMES
assert all(abs(place - (4 * number + 19)) <= 2 for number, place in enumerate(places))
