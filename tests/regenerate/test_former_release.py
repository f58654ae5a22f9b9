"""Repositories of release 0.1.0 are brought over by ``capsmith update`` alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.exhaustive import exhaustive
from tests.regenerate.conftest import Provider, run
from tests.regenerate.former import NAMES, author_files, owners, unpacked
from tests.repositories import PYTEST_VARIABLES, import_path

REFUSED = "docs/reference.md"
one_repository = pytest.mark.parametrize(
    "former", [NAMES[0], *exhaustive(*NAMES[1:])], indirect=True
)
"""For what does not depend on the files that a repository has."""
one_update = pytest.mark.parametrize("updated", [NAMES[0], *exhaustive(*NAMES[1:])], indirect=True)
"""For tools: what they check in the others has been generated as in today's examples."""


@pytest.fixture(params=NAMES)
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Provider:
    return unpacked(request.param, tmp_path / "repository")


@pytest.fixture(scope="module", params=NAMES)
def updated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Provider:
    """Return a repository that was updated to this release; tests do not change it."""
    provider = unpacked(request.param, tmp_path_factory.mktemp("updated") / "repository")
    _command(provider, "update")
    return provider


def _command(provider: Provider, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "capsmith", name, *arguments, str(provider.folder)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def _python(provider: Provider, *arguments: str, timeout: int = 3600) -> str:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": import_path(provider.folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        **PYTEST_VARIABLES,
        "MYPY_CACHE_DIR": str(provider.folder.parents[1] / "mypy"),  # shared by all repositories
    }
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=provider.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout[-20_000:]
    return done.stdout


def test_the_author_s_files_stay_byte_for_byte(former: Provider) -> None:
    kept = author_files(former)
    before = former.tree()
    assert kept

    said = former.update()

    after = former.tree()
    assert (said.code, said.ids - {"scaffold-behind"}) == (0, set())
    assert {path: after.get(path) for path in kept} == {path: before[path] for path in kept}
    assert not (set(owners(former)) - set(after)) & set(said.files("created"))


def test_edits_of_merged_files_stay(former: Provider) -> None:
    merged = {path for path, owner in owners(former).items() if owner == "merged"}
    bases = {path: former.path(f".capsmith/base/{path}").read_text() for path in merged}
    added = {
        path: set(former.path(path).read_text().splitlines()) - set(bases[path].splitlines())
        for path in merged
    }
    assert added["pyproject.toml"]

    assert former.update().code == 0

    for path, lines in added.items():
        assert lines <= set(former.path(path).read_text().splitlines()), path


def test_what_was_generated_into_the_package_is_gone(former: Provider) -> None:
    (generated,) = former.folder.glob("src/*/_generated")
    assert (generated / "runtime").exists()
    assert former.path("tests/generated").exists()

    assert former.update().code == 0

    locked = set(owners(former))
    present = {path.relative_to(former.folder).as_posix() for path in generated.rglob("*.py")}
    assert present <= locked
    assert not (generated / "runtime").exists()
    assert not former.path("tests/generated").exists()
    assert former.path("vendor/capsmith_runtime/__init__.py").exists()


def test_permissions_that_a_later_core_requires_are_added(updated: Provider) -> None:
    """Proves: RB-11."""
    crds = sorted(updated.folder.rglob("config/crd/bases/*controlplanes.yaml"))
    bindings = sorted(updated.folder.rglob("config/rbac/kubeadm_bootstrap_role_binding.yaml"))

    assert [each.parents[1] for each in bindings] == [each.parents[2] for each in crds]
    for binding in bindings:
        kustomization = yaml.safe_load(binding.with_name("kustomization.yaml").read_text())
        assert {"kubeadm_bootstrap_role.yaml", binding.name} <= set(kustomization["resources"])


def test_what_readers_of_public_repositories_look_for_is_added(updated: Provider) -> None:
    made = {"SECURITY.md", ".github/dependabot.yml", ".github/pull_request_template.md"}
    makefile = updated.path("Makefile").read_text()

    assert [path for path in made if not updated.path(path).exists()] == []
    for target in ("setup", "install", "deploy", "undeploy", "install-crds", "uninstall-crds"):
        assert makefile.count(f"\n{target}:") == 1, target
    assert "## Who owns which file" in updated.path("CONTRIBUTING.md").read_text()
    assert "CONTRIBUTING.md" in updated.path("AGENTS.md").read_text()
    assert "`capsmith explain CC-31`" in updated.path("docs/reference.md").read_text()


@one_repository
def test_a_pinned_base_image_is_left_to_its_author(former: Provider) -> None:
    """The line has moved since: both are shown, and nothing is lost."""
    base = "FROM docker.io/library/python:3.13-slim"
    pinned = f"{base}@sha256:{'1' * 64} AS build"
    former.edit("Dockerfile", f"{base} AS build", pinned)

    said = former.update()

    assert said.files("conflicted") == {"Dockerfile"}
    after = former.path("Dockerfile").read_text()
    assert pinned in after
    assert " AS base\n" in after


def test_the_lock_has_the_runtime(former: Provider) -> None:
    said = former.update()
    lock = yaml.safe_load(former.path(".capsmith/lock.yaml").read_text())

    assert lock["runtime"]["mode"] == "vendored"
    assert lock["legacyImports"] is True
    assert said.report["runtime"]["outcome"] == "created"
    assert not any(path.startswith("vendor/") for path in lock["files"])


def test_afterwards_it_is_up_to_date(former: Provider) -> None:
    assert former.update().code == 0
    before = former.tree()

    assert former.update("--check").code == 0
    again = former.update()
    doctor = run("doctor", str(former.folder), "--format", "json")

    assert again.code == 0
    assert {file["outcome"] for file in again.report["files"]} <= {"unchanged", "kept"}
    assert (doctor.code, doctor.report["facts"]["update"]) == (0, {})
    assert former.tree() == before


@one_repository
@pytest.mark.parametrize("option", ["--dry-run", "--diff", "--check"])
def test_looking_writes_nothing(former: Provider, option: str) -> None:
    before = former.tree()
    former.update(option)
    assert former.tree() == before


@one_repository
def test_an_edited_generated_file_is_refused_by_name(former: Provider) -> None:
    former.append(REFUSED, "edited\n")
    before = former.tree()

    said = former.update()

    assert said.code == 1
    assert said.files("refused") == {REFUSED}
    assert former.tree() == before
    assert former.update("--force").code == 0
    assert not former.path(REFUSED).read_text().endswith("edited\n")
    assert former.update("--check").code == 0


@one_repository
def test_an_edited_module_of_the_old_runtime_is_refused_by_name(former: Provider) -> None:
    (module,) = former.folder.glob("src/*/_generated/runtime/queue.py")
    name = module.relative_to(former.folder).as_posix()
    former.append(name, "# edited\n")
    before = former.tree()

    said = former.update()

    assert (said.code, said.findings) == (1, {name: "output-edited"})
    assert former.tree() == before
    forced = former.update("--force")
    assert (forced.code, forced.findings[name]) == (0, "output-left-over")
    assert module.read_bytes() == before[name][0]
    assert former.update("--check").code == 0


@one_repository
@pytest.mark.slow
def test_killed_at_random(former: Provider) -> None:
    old = former.tree()
    kept = shutil.copytree(former.folder, former.folder.parent / "kept")
    command = [sys.executable, "-m", "capsmith", "update", str(former.folder)]
    began = time.monotonic()
    _command(former, "update", "--dry-run")
    usual = time.monotonic() - began
    chance = random.Random(7)
    for _ in range(6):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(usual * chance.uniform(0.6, 1.4))
        process.kill()
        process.wait()
        said = former.update("--abort")
        if said.code == 0 or former.tree() == old:
            assert former.tree() == old
            continue
        assert said.ids == {"nothing-to-abort"}
        assert former.update("--check").code == 0
        shutil.rmtree(former.folder)
        shutil.copytree(kept, former.folder)
    assert former.update().code == 0
    assert former.update("--check").code == 0


@one_update
@pytest.mark.slow
def test_its_own_tests_and_those_of_conformance_pass(updated: Provider) -> None:
    output = _python(updated, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert " passed" in output
    assert "failed" not in output


@one_update
@pytest.mark.slow
def test_types_style_and_format_are_clean(updated: Provider) -> None:
    _python(updated, "-m", "mypy")
    _python(updated, "-m", "ruff", "check", "--no-cache", ".")
    _python(updated, "-m", "black", "--check", "--quiet", ".")


def test_the_wiring_imports(updated: Provider) -> None:
    (package,) = (path.parent.name for path in updated.folder.glob("src/*/__init__.py"))
    code = (
        f"from {package}._generated.wiring import COMPONENTS, load; import json;"
        "print(json.dumps([load(name).label for name in COMPONENTS]))"
    )
    labels = json.loads(_python(updated, "-c", code))
    description = yaml.safe_load(updated.path("provider.yaml").read_text())
    assert all(label.endswith(description["name"]) for label in labels)
    assert labels
