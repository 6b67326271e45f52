"""Texture video from arrays to arrays: pictures made by NumPy, sent as BC1 and decoded again."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import rushes

WIDTH, HEIGHT, FRAMES = 640, 360, 30
Picture = npt.NDArray[np.uint8]


def pictures() -> Iterator[Picture]:
    """A bright bar that moves over a ramp."""
    ramp = np.linspace(0, 255, WIDTH).astype(np.uint8)
    for number in range(FRAMES):
        picture = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        picture[..., 0] = ramp
        picture[:, number * WIDTH // FRAMES :][:, :20] = 255
        yield picture


def bar(picture: Picture) -> int:
    """The position of the bar: the columns that are bright in all channels."""
    bright = (picture.min(axis=2) > 200).all(axis=0)
    return int(np.flatnonzero(bright).mean()) if bright.any() else -1


source = rushes.Pictures(pictures(), WIDTH, HEIGHT, rate=60)
with (
    rushes.TextureServer(("127.0.0.1", 0), source, format="bc1", timing="every-frame") as server,
    rushes.TextureClient(server.local_address, transport="tcp", every_frame=True) as client,
):
    for frame in client:
        blocks = np.asarray(frame)  # no copy: (block rows, blocks, octets of a block)
        picture = np.asarray(frame.decode("rgb24"))  # (height, width, 3)
        if frame.number % 10 == 0:
            print(f"frame {frame.number}: {blocks.shape} -> {picture.shape}, bar at {bar(picture)}")
    seen = client.statistics()
print(f"{seen.frames_whole} frames complete, {seen.octets} octets, {client.skipped} skipped")
assert seen.frames_whole == FRAMES
