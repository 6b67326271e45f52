#!/usr/bin/env python3
"""CPU time of `rushes texture serve` with and without --packing on, where packing is of no use.

    python3 interop/texture_packing.py target/release/rushes PICTURE.png [ROUNDS]

A window of 1920x1080 pixels moves over the photograph, which is scaled up to be larger than that. The frames are sent
in RGBA by TCP: nothing is encoded, so the server does little else than send. The figures are medians of the rounds,
which take turns. It needs Pillow; loopback only, Linux only.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from PIL import Image
from texture_clients import measure

WIDTH, HEIGHT, FRAMES = 1920, 1080, 45


def write_film(photograph: Path, film: Path) -> None:
    """Writes the frames, of which each is 10 pixels to the right of and 3 below the one before."""
    picture = Image.open(photograph).convert("RGBA")
    right, below = WIDTH + 10 * FRAMES, HEIGHT + 3 * FRAMES
    scale = max(right / picture.width, below / picture.height)
    picture = picture.resize((int(picture.width * scale) + 1, int(picture.height * scale) + 1), Image.Resampling.LANCZOS)
    with film.open("wb") as file:
        for number in range(FRAMES):
            x, y = 10 * number, 3 * number
            file.write(picture.crop((x, y, x + WIDTH, y + HEIGHT)).tobytes())


def main() -> None:
    program, photograph = sys.argv[1], Path(sys.argv[2])
    rounds = max(int(sys.argv[3]), 1) if len(sys.argv) > 3 else 9
    measured: dict[str, list[float]] = {"off": [], "on": []}
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder, "film.rgba")
        write_film(photograph, film)
        serve = [str(film), "--size", f"{WIDTH}x{HEIGHT}", "--fps", "60"]
        for number in range(rounds):
            # Which one is first changes from round to round.
            for packing in ("off", "on") if number % 2 else ("on", "off"):
                measured[packing].append(measure(program, [*serve, "--packing", packing], 1, "tcp"))
    off, on = (statistics.median(measured[packing]) for packing in ("off", "on"))
    print(f"ms of the server's CPU for each picture, medians of {rounds}: {off:.3f} without packing, {on:.3f} with it")
    print(f"{100 * (on / off - 1):+.1f} %")


if __name__ == "__main__":
    main()
