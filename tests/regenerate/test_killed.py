"""Interrupted at any moment: the tree is the old one or the new one, or can be made either.

What dies and how, and what has to hold afterwards, is in :mod:`tests.regenerate.dying`.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.workspace.hold import hold_folder
from tests.conftest import without_privileges
from tests.regenerate.conftest import ROOT, Provider, run
from tests.regenerate.dying import SCENARIOS

MODEL = "src/cluster_api_provider_acme/_generated/api/acme_machine.py"


@pytest.fixture
def changed(provider: Provider) -> Provider:
    """Return a provider that has something to update."""
    provider.edit("provider.yaml", "AcmeMachine", "AcmeServer")
    provider.append("provider.yaml", "dependencies: [requests]\n")
    return provider


@pytest.fixture
def here(changed: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """The same, for an unprivileged user, who can reach nothing else and cannot import modules."""
    monkeypatch.chdir(changed.folder)
    # Without a cache, the dry run imports all that the update needs.
    monkeypatch.setenv("CAPSMITH_CACHE", "")
    assert changed.update("--dry-run").code == 0
    return Provider(Path())


@pytest.fixture(scope="module")
def trials() -> Iterator[subprocess.Popen[str]]:
    """Yield a process that has rendered and forks for each scenario, tests.regenerate.dying."""
    command = [sys.executable, "-m", "tests.regenerate.dying"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def spread(request: pytest.FixtureRequest) -> int:
    """Return the distance of the moments that are tried, no multiple of the three ways on."""
    return 1 if request.config.getoption("--exhaustive") else 5


def count_points(trials: subprocess.Popen[str], scenario: str, fault: str, step: int) -> int:
    """Return how many moments were tried."""
    assert trials.stdin is not None
    assert trials.stdout is not None
    trials.stdin.write(f"{scenario} {fault} {step}\n")
    trials.stdin.flush()
    printed: list[str] = []
    for line in trials.stdout:
        if line.startswith("{"):
            answer = json.loads(line)
            assert "failure" not in answer, "".join(printed) + answer["failure"]
            return int(answer["points"])
        printed.append(line)  # by a fork that ended unexpectedly
    raise AssertionError("".join(printed))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_killed_at_any_moment(trials: subprocess.Popen[str], spread: int, scenario: str) -> None:
    """At every moment with ``--exhaustive``."""
    assert count_points(trials, scenario, "kill", spread) > 50 // spread


@pytest.mark.parametrize("fault", ["torn", "full", "denied"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_other_faults(
    trials: subprocess.Popen[str], spread: int, scenario: str, fault: str
) -> None:
    """A file half written, a disk that is full from then on, a file that is refused."""
    assert count_points(trials, scenario, fault, 7 if spread == 1 else 19) > 1


def test_whole_processes_killed_at_random(changed: Provider) -> None:
    command = [sys.executable, "-m", "capsmith", "update", str(changed.folder)]
    began = time.monotonic()
    subprocess.run([*command, "--dry-run"], check=True, stdout=subprocess.DEVNULL)
    usual = time.monotonic() - began
    old = changed.tree()
    kept = shutil.copytree(changed.folder, changed.folder.parent / "kept")
    chance = random.Random(5)
    for _ in range(12):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        time.sleep(usual * chance.uniform(0.5, 1.3))
        process.kill()
        process.wait()
        said = changed.update("--abort")
        if said.code == 0 or changed.tree() == old:
            assert changed.tree() == old
            continue
        assert said.ids == {"nothing-to-abort"}  # since it came to its end
        assert changed.update("--check").code == 0
        shutil.rmtree(changed.folder)
        shutil.copytree(kept, changed.folder)
    assert changed.update().code == 0
    assert changed.update("--check").code == 0


def test_a_second_update_at_the_same_time_is_refused(changed: Provider) -> None:
    before = changed.tree()
    with hold_folder(changed.folder):
        for argument in ("--check", "--continue", "--abort", "--dry-run", "--verbose"):
            said = changed.update(argument)
            assert (said.code, said.ids) == (1, {"output-busy"})
    assert changed.tree() == before
    assert changed.update().code == 0


@pytest.mark.parametrize("way", ["--continue", "--abort", "--verbose"])
def test_a_read_only_folder_interrupts_the_update(here: Provider, way: str) -> None:
    for path in (here.folder, *here.folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    before = here.tree()
    shut = here.path(MODEL).parent
    shut.chmod(0o555)
    with without_privileges():
        said = here.update("--allow-dirty")
        assert (said.code, said.ids) == (2, {"output-unwritable"})
        assert here.update("--check").ids == {"update-interrupted"}
        said = here.update(way, "--allow-dirty")
    if way == "--abort":  # which has nothing to do there
        assert (said.code, said.ids) == (0, {"update-concluded"})
        assert here.tree() == before
    else:
        assert (said.code, said.ids) == (2, {"output-unwritable"})
        shut.chmod(0o777)
        assert here.update(way, "--allow-dirty").code == 0
        assert here.update("--check").code == 0
    assert not here.path(".capsmith/pending.json").exists()


def test_read_only_files_are_replaced_and_stay_read_only(changed: Provider) -> None:
    changed.append("pyproject.toml", "\n[tool.mine]\n")
    for path in changed.folder.rglob("*"):
        if path.is_file():
            path.chmod(0o444)
    assert changed.update().files("merged") == {"pyproject.toml"}
    assert changed.path("pyproject.toml").stat().st_mode & 0o777 == 0o444


def test_looking_at_a_folder_that_cannot_be_written(here: Provider) -> None:
    for path in (here.folder, *here.folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_privileges():
        assert here.update("--check").ids >= {"repository-behind"}
        assert here.update("--diff").code == 0


def test_what_a_killed_run_left_is_cleared_away(changed: Provider) -> None:
    stage = changed.path(".capsmith/stage/new")
    stage.mkdir(parents=True)
    (stage / "junk").write_text("")
    for option in ("--abort", "--continue"):
        assert run("update", option, str(changed.folder)).code == 1
        assert not changed.path(".capsmith/stage").exists()
        stage.mkdir(parents=True)
    assert changed.update().code == 0
    assert not changed.path(".capsmith/stage").exists()
