"""The package as a whole: documented, typed, and as its README says."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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


def test_the_pages_programs_are_programs() -> None:
    pages = [HERE / "README.md", HERE.parents[1] / "docs" / "from-python.md"]
    programs = [re.findall(r"```python\n(.*?)```", page.read_text(), re.S) for page in pages]
    assert all(programs)
    for program in programs[0] + programs[1]:
        ast.parse(program)


@pytest.mark.parametrize("film", sorted(MEDIA.iterdir()), ids=lambda film: str(film.suffix))
def test_a_file_is_streamed_bit_exactly(film: Path) -> None:
    run = [sys.executable, str(HERE / "examples" / "stream_file.py"), str(film)]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.endswith("octets: equal\n")


def test_the_first_programs_run() -> None:
    for page in [HERE / "README.md", HERE.parents[1] / "docs" / "from-python.md"]:
        first = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)[0]
        exec(compile(first, str(page), "exec"), {"__name__": "page"})  # noqa: S102
