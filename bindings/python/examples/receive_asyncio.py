"""Receives two streams in one event loop, which runs other tasks meanwhile."""

import asyncio

import rushes


async def watch(name: str, stream: rushes.Stream, count: int) -> int:
    """Receives frames of a stream as they arrive; returns the number of octets."""
    octets = 0
    async for frame in stream:
        octets += len(frame)
        count -= 1
        if count == 0:
            break
    print(f"{name}: {octets} octets")
    return octets


async def send(stream: rushes.Stream, frame: bytes, count: int) -> None:
    """Sends on another thread, because sending blocks while it is paced."""
    for _ in range(count):
        await asyncio.to_thread(stream.push_frame, frame)
        await asyncio.sleep(0.005)


async def main() -> None:
    session = rushes.Context().session("127.0.0.1")
    with session.stream("h265", probation=1) as screen, session.stream("opus", probation=1) as speaker:
        camera = session.stream("h265", remote_port=screen.local_address[1])
        microphone = session.stream("opus", remote_port=speaker.local_address[1])
        picture = b"\0\0\0\x01\x26\x01\x80" + b"\x55" * 30_000
        with camera, microphone:
            await asyncio.wait_for(
                asyncio.gather(
                    watch("picture", screen, 20),
                    watch("sound", speaker, 40),
                    send(camera, picture, 20),
                    send(microphone, b"\x08\1\2\3", 40),
                ),
                timeout=20,
            )


asyncio.run(main())
