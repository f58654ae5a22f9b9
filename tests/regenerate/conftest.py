"""A generated provider in its own folder, and capsmith run on it as users run it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from capsmith import resources
from capsmith.cli import main

ROOT = Path(__file__).parents[2]
ACME = ROOT / "examples/acme/provider.yaml"


@dataclass(frozen=True)
class Said:
    """The output of a run."""

    code: int
    text: str

    @property
    def report(self) -> dict[str, Any]:
        data = json.loads(self.text)
        assert data["exitCode"] == self.code
        return dict(data)

    @property
    def findings(self) -> dict[str, str]:
        """Return the id of the last finding about each file."""
        return {finding["file"]: finding["id"] for finding in self.report["findings"]}

    @property
    def ids(self) -> set[str]:
        return {finding["id"] for finding in self.report["findings"]}

    def files(self, outcome: str) -> set[str]:
        return {file["path"] for file in self.report["files"] if file["outcome"] == outcome}


@dataclass(frozen=True)
class Provider:
    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def edit(self, name: str, old: str, new: str) -> None:
        text = self.path(name).read_bytes().decode()
        assert old in text
        self.path(name).write_bytes(text.replace(old, new).encode())

    def append(self, name: str, text: str) -> None:
        with self.path(name).open("ab") as file:
            file.write(text.encode())

    def update(self, *arguments: str) -> Said:
        return run("update", *arguments, str(self.folder), "--format", "json")

    def tree(self) -> dict[str, tuple[bytes, int]]:
        return tree(self.folder)


def run(*arguments: str) -> Said:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return Said(result.exit_code, result.output)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Return content and permissions of every file, links as they are; without git's files."""
    return dict(sorted(_files(str(folder), "")))


def _files(folder: str, prefix: str) -> Iterator[tuple[str, tuple[bytes, int]]]:
    # Path.rglob takes three times as long, and thousands of trees are compared.
    with os.scandir(folder) as entries:
        for entry in entries:
            path, file = prefix + entry.name, Path(entry.path)
            if entry.name == ".git":
                continue
            if entry.is_symlink():
                yield path, (b"-> " + str(file.readlink()).encode(), 0)
            elif entry.is_dir():
                yield from _files(entry.path, f"{path}/")
            elif entry.is_file():
                yield path, (file.read_bytes(), entry.stat().st_mode & 0o777)


@pytest.fixture(scope="session", autouse=True)
def _a_cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPSMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated") / "acme"
    folder.mkdir()
    (folder / "provider.yaml").write_bytes(ACME.read_bytes())
    made = run("generate", str(folder / "provider.yaml"))
    assert made.code == 0, made.text
    return folder


@pytest.fixture(scope="session")
def _cache_of_a_first_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("first") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CAPSMITH_CACHE", str(cache))
        assert run("generate", str(ACME), "-o", str(cache.parent / "acme")).code == 0
    return cache


@pytest.fixture
def cache_without_memory(_cache_of_a_first_run: Path, tmp_path: Path) -> Path:
    """Return a cache of what rendering keeps, in which no repository is known to be up to date."""
    return Path(shutil.copytree(_cache_of_a_first_run, tmp_path / "cache-without-memory"))


@pytest.fixture
def provider(generated: Path, tmp_path: Path) -> Provider:
    return Provider(Path(shutil.copytree(generated, tmp_path / "acme")))


Change = Callable[[str, str, str], None]


@pytest.fixture
def change_blueprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Change:
    """Return a function that simulates a later capsmith with other blueprints."""
    blueprints = tmp_path / "blueprints"
    shutil.copytree(Path(str(resources.blueprints())), blueprints)
    commands = ("plan", "build", "preconditions", "update", "up_to_date", "recorded_output")
    for module in (*commands, "doctor"):
        monkeypatch.setattr(f"capsmith.commands.{module}.__version__", "9.9.9")
    monkeypatch.setattr(resources, "blueprints", lambda: blueprints)

    def change(name: str, old: str, new: str) -> None:
        text = (blueprints / name).read_text()
        assert old in text
        (blueprints / name).write_text(text.replace(old, new))

    return change
