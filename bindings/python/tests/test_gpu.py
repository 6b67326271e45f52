"""Frames in graphics memory, which another program imports into another graphics interface."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pytest
import rushes
from conftest import ROOT, TIME_LIMIT
from test_hooks import Gathered
from test_texture import HERE, Array, pictures

Import = Callable[[rushes.GpuFrame | rushes.Canvas], bytes]


def missing(reason: str) -> NoReturn:
    """Skips a test, or fails it where all that it needs must be there."""
    if os.environ.get("RUSHES_INTEROP") == "require":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def gpu() -> rushes.Gpu:
    """The graphics processor, or Mesa's software driver."""
    try:
        return rushes.Gpu()
    except rushes.GpuError as error:
        missing(str(error))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Import:
    """Returns the octets of a frame as OpenGL has them, in another process; draws on a canvas there."""
    program = tmp_path_factory.mktemp("gpu") / "import_frame"
    source = ROOT / "interop" / "import_frame.c"
    compiler = ["cc", str(source), "-lEGL", "-lGL", "-o", str(program)]
    try:
        subprocess.run(compiler, capture_output=True, text=True, check=True, timeout=60)
    except FileNotFoundError:
        missing("there is no C compiler")
    except subprocess.CalledProcessError as error:
        missing(f"the importer cannot be built: {error.stderr}")

    def run(frame: rushes.GpuFrame | rushes.Canvas) -> bytes:
        with frame.export() as memory:
            assert (memory.id, memory.offset, memory.handle) == (frame.id, 0, "opaque-fd")
            assert memory.size >= memory.buffer_size >= frame.nbytes
            numbers = [memory.size, frame.nbytes, int(memory.is_dedicated)]
            if isinstance(frame, rushes.Canvas):
                numbers += [frame.width, frame.height]
            return subprocess.run(
                [str(program), *map(str, numbers)],
                stdin=memory.fd,
                capture_output=True,
                check=True,
                timeout=60,
            ).stdout

    return run


def noise(count: int, width: int, height: int) -> list[Array]:
    rng = np.random.default_rng(2)
    return [rng.integers(0, 256, (height, width, 3), np.uint8) for _ in range(count)]


# The second frame does not end with a word.
@pytest.mark.parametrize(("width", "height"), [(64, 48), (35, 21)])
def test_another_program_has_every_received_frame_in_opengl(
    gpu: rushes.Gpu, imported: Import, width: int, height: int
) -> None:
    sent = noise(6, width, height)
    with (
        rushes.TextureServer(HERE, pictures(sent), timing="every-frame", units=3) as server,
        rushes.TextureClient(
            server.local_address, gpu=gpu, every_frame=True, transport="tcp"
        ) as client,
    ):
        frames = list(client)
        assert "the source has ended" in (client.wait(TIME_LIMIT) or "")
    assert [frame.number for frame in frames] == list(range(6))
    for frame, picture in zip(frames, sent, strict=True):
        assert (frame.format, frame.width, frame.height) == ("rgb24", width, height)
        assert frame.is_whole and frame.packets_missing == 0 and frame.colour == (1, 1, 1, 1)
        assert frame.first_at <= frame.done_at <= frame.copied_at
        assert imported(frame) == picture.tobytes()
    # Frames that are held have memory of their own.
    assert len({frame.id for frame in frames}) == len(frames)


def test_a_frame_that_is_held_does_not_change_while_others_share_memory(
    gpu: rushes.Gpu, imported: Import
) -> None:
    sent = noise(40, 64, 48)
    with (
        rushes.TextureServer(HERE, pictures(sent), timing="every-frame") as server,
        rushes.TextureClient(
            server.local_address, gpu=gpu, queue=1, every_frame=True, transport="tcp", slots=2
        ) as client,
    ):
        held = next(client)
        others = [frame.id for frame in client]
    assert len(others) == 39 and held.id not in others
    # As many as are being received, in the queue, and in the loop.
    assert len(set(others)) <= 6
    del client
    gc.collect()
    assert imported(held) == sent[0].tobytes()


def test_a_hook_is_given_frames(gpu: rushes.Gpu) -> None:
    gathered = Gathered()
    with (
        rushes.TextureServer(HERE, "pattern:64x48@200", format="bc1") as server,
        rushes.TextureClient(server.local_address, gpu=gpu) as client,
    ):
        client.on_frame(gathered)
        frames = gathered.wait_for(5)
        assert client.shape == ("bc1", 64, 48)
    assert all(isinstance(frame, rushes.GpuFrame) for frame in frames)
    assert [frame.nbytes for frame in frames[:2]] == [64 * 48 // 2] * 2


def one_frame(gpu: rushes.Gpu) -> rushes.GpuFrame:
    with (
        rushes.TextureServer(HERE, "pattern:64x48@100") as server,
        rushes.TextureClient(server.local_address, gpu=gpu, export="opaque-fd") as client,
    ):
        frame = client.pull_frame(TIME_LIMIT)
        assert frame is not None
        return frame


def is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def test_a_descriptor_belongs_to_its_object_until_it_is_handed_over(gpu: rushes.Gpu) -> None:
    frame = one_frame(gpu)
    with frame.export() as memory:
        closed = memory.fd
        assert memory.fileno() == closed and is_open(closed) and not os.get_inheritable(closed)
    assert not is_open(closed)
    for use in (memory.fileno, memory.detach, lambda: memory.fd):
        with pytest.raises(rushes.ClosedError, match="handed over by detach"):
            use()
    memory.close()

    collected = frame.export()
    number = collected.fd
    del collected
    gc.collect()
    assert not is_open(number)

    with frame.export() as memory:
        handed_over = memory.detach()
    del memory
    gc.collect()
    assert is_open(handed_over)
    os.close(handed_over)


def test_a_device_has_a_name_and_identifiers(gpu: rushes.Gpu) -> None:
    assert gpu.name.endswith("(vulkan)") and gpu.name in repr(gpu)
    assert gpu.is_software in (True, False)
    assert len(gpu.device_uuid) == len(gpu.driver_uuid) == 16
    assert gpu.driver_uuid != bytes(16)


def test_what_cannot_be_is_refused(gpu: rushes.Gpu) -> None:
    with pytest.raises(rushes.ConfigError, match="export: only with a gpu"):
        rushes.TextureClient(("127.0.0.1", 1), export="opaque-fd")  # type: ignore[call-overload]
    with pytest.raises(rushes.ConfigError, match='export: "fd" is neither "opaque-fd" nor'):
        rushes.TextureClient(("127.0.0.1", 1), gpu=gpu, export="fd")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="gpu"):
        rushes.TextureClient(("127.0.0.1", 1), gpu="first")  # type: ignore[call-overload]
    # Software drivers have no such memory; others get as far as the network.
    with pytest.raises((rushes.GpuError, rushes.NetError)) as refused:
        rushes.TextureClient(("127.0.0.1", 1), gpu=gpu, export="dma-buf")
    assert refused.type is not rushes.NetError or not gpu.is_software


def drawn(width: int, height: int) -> Array:
    """Returns the picture that the other process draws."""
    picture = np.zeros((height, width, 3), np.uint8)
    picture[: height // 2, : width // 2] = (255, 0, 0)
    picture[: height // 2, width // 2 :] = (0, 255, 0)
    picture[height // 2 :, : width // 2] = (0, 0, 255)
    picture[height // 2 :, width // 2 :] = 255
    return picture


def test_what_another_program_draws_in_opengl_is_sent(gpu: rushes.Gpu, imported: Import) -> None:
    frames = rushes.RenderedFrames(gpu, 64, 48, rate=30)
    with (
        rushes.TextureServer(HERE, frames, timing="every-frame") as server,
        rushes.TextureClient(server.local_address, every_frame=True, transport="tcp") as client,
    ):
        for width, height in ((64, 48), (64, 48), (32, 80)):
            frames.resize(width, height)
            canvas = frames.canvas()
            assert (canvas.width, canvas.height, canvas.nbytes) == (width, height, width * height * 4)
            assert f"{width}x{height}" in repr(canvas)
            imported(canvas)
            assert canvas.send()
            frame = client.pull_frame(TIME_LIMIT)
            assert frame is not None and (frame.format, frame.width) == ("bc1", width)
            # Whole blocks of one of these colours are exact.
            octets = np.asarray(frame.decode("rgb24")).reshape(height, width, 3)
            assert (octets == drawn(width, height)).all()
        for use in (canvas.send, canvas.export):
            with pytest.raises(rushes.ClosedError, match="was sent"):
                use()
        last = frames.canvas()
        del frames
        gc.collect()
        assert "the source has ended" in (client.wait(TIME_LIMIT) or "")
    assert not last.send()


def test_frames_to_draw_belong_to_one_server(gpu: rushes.Gpu) -> None:
    frames = rushes.RenderedFrames(gpu, 64, 48, "ycocg-bc3")
    with pytest.raises(rushes.ConfigError, match="colour: only for files and pictures"):
        rushes.TextureServer(HERE, frames, colour=(9, 16, 9, 1))
    with rushes.TextureServer(HERE, frames):
        with pytest.raises(rushes.ConfigError, match="another server was given these frames"):
            rushes.TextureServer(HERE, frames)
    assert not frames.canvas().send()
    with pytest.raises(rushes.GpuError, match="rgb24"):
        rushes.RenderedFrames(gpu, 64, 48, "rgb24")
    with pytest.raises(rushes.ConfigError, match="export"):
        rushes.RenderedFrames(gpu, 64, 48, export="fd")  # type: ignore[arg-type]
    with pytest.raises(rushes.ConfigError):
        rushes.RenderedFrames(gpu, 0, 48)


def test_annotations_name_the_kind_of_frame() -> None:
    kind: Any = rushes.TextureClient[rushes.GpuFrame]
    assert kind.__args__ == (rushes.GpuFrame,)
