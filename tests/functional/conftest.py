"""Generated repositories, made once a session, and a way to run tools in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden.cases import authored_cases, cases, generated
from tests.repositories import PYTEST_VARIABLES, import_path, runtime_folder

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.slow)


@dataclass(frozen=True)
class Repository:
    folder: Path
    scratch: Path
    """Caches of tools, shared by all repositories."""

    @property
    def package(self) -> str:
        (init,) = (self.folder / "src").glob("*/__init__.py")
        return init.parent.name

    def run(self, *command: str) -> str:
        """Run a tool of the environment in the repository; its output, which must be success."""
        done = subprocess.run(
            [*command],
            cwd=self.folder,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=3600,
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-20_000:]}"
        return done.stdout

    def python(self, *arguments: str) -> str:
        return self.run(sys.executable, *arguments)

    def _environment(self) -> dict[str, str]:
        tools = str(Path(sys.executable).parent)
        return {
            "PATH": os.pathsep.join([tools, os.environ.get("PATH", os.defpath)]),
            "HOME": str(self.scratch),
            "PYTHONPATH": import_path(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **PYTEST_VARIABLES,
            "MYPYPATH": str(runtime_folder(self.folder)),
            "MYPY_CACHE_DIR": str(self.scratch / "mypy"),
            "RUFF_CACHE_DIR": str(self.scratch / "ruff"),
        }

    def files(self, pattern: str) -> Iterator[Path]:
        return (path for path in sorted(self.folder.rglob(pattern)) if path.is_file())


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


REPOSITORIES = (*cases(), *authored_cases())


@pytest.fixture(scope="session", params=REPOSITORIES, ids=lambda case: case.name)
def repository(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, scratch: Path
) -> Repository:
    folder = tmp_path_factory.mktemp(request.param.name) / "repository"
    generated(request.param, folder)
    return Repository(folder, scratch)
