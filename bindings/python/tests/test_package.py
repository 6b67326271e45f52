"""The package as a whole: documented, typed, and as its README says."""

from __future__ import annotations

import ast
import asyncio
import inspect
import itertools
import logging
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import rushes
from conftest import MEDIA

HERE = Path(__file__).resolve().parents[1]


def test_everything_public_is_documented() -> None:
    undocumented = []
    for name in rushes.__all__:
        value = getattr(rushes, name)
        if name.startswith("__") or name == "Format":
            continue  # A version, and an alias of words.
        if not getattr(value, "__doc__", None):
            undocumented.append(name)
        if inspect.isclass(value):
            undocumented += [
                f"{name}.{member}"
                for member, thing in vars(value).items()
                if not member.startswith("_") and not getattr(thing, "__doc__", None)
            ]
    assert undocumented == []


def test_all_that_is_public_is_exported() -> None:
    stub = ast.parse((HERE / "rushes" / "_rushes.pyi").read_text())
    classes = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    assert {name for name in classes if not name.startswith("_")} <= set(rushes.__all__)
    assert sorted(rushes.__all__) == list(rushes.__all__)


def test_the_version_is_the_workspaces() -> None:
    manifest = tomllib.loads((HERE.parents[1] / "Cargo.toml").read_text())
    assert rushes.__version__ == manifest["workspace"]["package"]["version"]


@pytest.mark.parametrize("film", sorted(MEDIA.iterdir()), ids=lambda film: str(film.suffix))
def test_a_file_is_streamed_bit_exactly(film: Path) -> None:
    run = [sys.executable, str(HERE / "examples" / "stream_file.py"), str(film)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("octets: equal\n")


def programs() -> dict[str, str]:
    """The Python of README and the guide, each program once, by its page and number."""
    root = HERE.parents[1]
    pages = [HERE / "README.md", root / "README.md", *sorted((root / "docs").glob("*.md"))]
    found: dict[str, str] = {}
    for page in pages:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
        for number, program in enumerate(blocks, 1):
            if program not in found.values():
                found[f"{page.parent.name}-{page.stem}-{number}"] = program
    return found


def test_the_pages_have_programs() -> None:
    assert len(programs()) >= 5


@pytest.mark.parametrize("program", programs().values(), ids=programs().keys())
def test_the_pages_programs_run(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are written, on this machine, in a folder with the film that they read."""
    monkeypatch.chdir(tmp_path)
    film = next(file for file in MEDIA.iterdir() if file.suffix == ".265")
    with rushes.MediaWriter(tmp_path / "film.265") as writer:
        for frame in itertools.islice(rushes.MediaReader(film), 5):
            writer.write(frame)
    logger = logging.getLogger("rushes")
    monkeypatch.setattr(logger, "level", logger.level)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(program.replace("192.0.2.7", "127.0.0.1"), "page", "exec"), names)  # noqa: S102
    if "main" in names:
        # It receives until it is cancelled.
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(names["main"](), 0.2))
