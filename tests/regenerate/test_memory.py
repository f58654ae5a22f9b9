"""``--check`` remembers up-to-date repositories, and always reports the same as the full check."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.regenerate.conftest import Change, Provider, Said

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"
RECONCILER = "src/cluster_api_provider_acme/controllers/acme_machine.py"


Check = Callable[[Provider], Said]


@pytest.fixture
def checked(cache_without_memory: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Return a function that runs a check with a memory and compares it with one without."""

    def check(provider: Provider) -> Said:
        remembered = [provider.update("--check") for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.setenv("CAPSMITH_CACHE", str(cache_without_memory))
            whole = provider.update("--check")
        assert remembered == [whole, whole]
        return whole

    return check


def in_windows(provider: Provider) -> None:
    for path in provider.folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def symlinked(provider: Provider) -> None:
    provider.path("Makefile").rename(provider.path("real.mk"))
    provider.path("Makefile").symlink_to("real.mk")


@pytest.mark.parametrize(
    ("done", "code"),
    [
        (lambda provider: None, 0),
        (lambda provider: provider.append("Makefile", "mine:\n"), 0),
        (lambda provider: provider.path("Makefile").unlink(), 0),
        (lambda provider: provider.append(RECONCILER, "# mine\n"), 0),
        (lambda provider: provider.path(RECONCILER).unlink(), 0),
        (lambda provider: provider.path("mine").write_text("mine"), 0),
        (in_windows, 0),
        (lambda provider: provider.append(MODEL, "# mine\n"), 1),
        (lambda provider: provider.path(MODEL).unlink(), 1),
        (lambda provider: provider.append("provider.yaml", "# mine\n"), 1),
        (lambda provider: provider.append("provider.yaml", "nonsense: 1\n"), 1),
        (lambda provider: provider.append(".capsmith/lock.yaml", "# mine\n"), 1),
        (lambda provider: provider.append(".capsmith/lock.yaml", "nonsense"), 2),
        (lambda provider: provider.path(".capsmith/lock.yaml").unlink(), 2),
        (lambda provider: provider.path("provider.yaml").unlink(), 2),
        (lambda provider: provider.append(".capsmith/base/Makefile", "mine\n"), 1),
        (lambda provider: provider.path(".capsmith/base/Makefile").unlink(), 1),
        (lambda provider: provider.path(".capsmith/pending.json").write_text("{}"), 1),
        (lambda provider: provider.path(".capsmith/unfinished").symlink_to("x"), 1),
        (symlinked, 1),
    ],
)
def test_the_answer_is_that_of_the_whole_way(
    provider: Provider, checked: Check, done: Callable[[Provider], object], code: int
) -> None:
    assert provider.update("--check").code == 0
    done(provider)
    assert checked(provider).code == code


def test_another_capsmith_remembers_nothing(
    provider: Provider, change_blueprint: Change, checked: Check
) -> None:
    provider.update()
    assert provider.update("--check").code == 0
    change_blueprint("project/Makefile.jinja", "DOCKER ?= docker\n", "DOCKER ?= podman\n")
    assert checked(provider).ids == {"repository-behind"}


_SCRIPT = """
import sys
from capsmith.cli import main
try:
    main(["update", "--check", sys.argv[1]])
except SystemExit as end:
    print(end.code, *sorted({"pydantic", "jinja2", "capsmith.provider_yaml"} & set(sys.modules)))
"""


def test_a_repeated_check_imports_little(provider: Provider, tmp_path: Path) -> None:
    def ask() -> str:
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, str(provider.folder)],
            env={**os.environ, "CAPSMITH_CACHE": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()[-1]

    assert ask() == "0 capsmith.provider_yaml jinja2 pydantic"
    assert ask() == "0"
