"""A provider of contract v1beta1 that an author has worked on, brought to v1beta2 by command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from capsmith.merging.lock import Lock
from capsmith.tree import Owner, is_text_of
from tests.functional.conftest import Repository
from tests.regenerate.authors_work import ADDED, REPLACED, SHARED, work
from tests.regenerate.conftest import Provider, Said, run
from tests.regenerate.test_contract_upgrade import BOTH, DROP, KEEP, NEW, upgraded

SPEC = Path(__file__).parent / "quay/provider.yaml"
WORKFLOW = ".github/workflows/ci.yaml"


@pytest.fixture
def quay(tmp_path: Path) -> Provider:
    return worked_on(tmp_path / "quay", SPEC.read_text())


@pytest.fixture
def workers(tmp_path: Path) -> Provider:
    """Return the provider without its control plane, whose objects nothing converts in place."""
    text = re.sub(r"(?m)^controlPlane:\n(  .*\n)+", "", SPEC.read_text())
    return worked_on(tmp_path / "quay", text)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for the caches of tools, which all repositories here share."""
    return tmp_path_factory.mktemp("scratch")


def worked_on(folder: Path, spec: str) -> Provider:
    folder.mkdir()
    (folder / "provider.yaml").write_text(spec)
    assert run("generate", str(folder / "provider.yaml")).code == 0
    work(folder)
    assert run("update", "--check", str(folder)).code == 0
    return Provider(folder)


def authors(provider: Provider) -> dict[str, bytes]:
    """Return everything that the author wrote: edited scaffolds and added files."""
    lock = Lock.load(provider.path(".capsmith/lock.yaml").read_text(), "lock")
    edited = {
        path
        for path, file in lock.files.items()
        if file.owner is Owner.SCAFFOLD
        and not is_text_of(provider.path(path).read_bytes(), file.digest)
    }
    own = {
        path
        for path in provider.tree()
        if path not in lock.files and not path.startswith((".capsmith", "vendor/"))
    }
    found = edited | own - {"provider.yaml"}
    assert found >= {*ADDED, *REPLACED} - SHARED
    return {path: provider.path(path).read_bytes() for path in found}


def check_edits(provider: Provider) -> None:
    """Check that shared files contain what the author added."""
    for path in SHARED:
        for old, new in REPLACED[path]:
            added = new.replace(old, "")
            assert added in provider.path(path).read_text(), path


def check_alive(provider: Provider, scratch: Path) -> None:
    """Run the repository's own tests and tools, and check its release."""
    repository = Repository(provider.folder, scratch)
    passed = re.search(
        r"(\d+) passed", repository.python("-m", "pytest", "-q", "-p", "no:cacheprovider")
    )
    assert passed is not None
    assert int(passed[1]) > 60
    repository.python("-m", "mypy", "--strict", "src", "tests")
    repository.python("-m", "ruff", "check", ".")
    repository.python("-m", "black", "--check", "--quiet", ".")
    assert "QUAY_REGION" in repository.run("kubectl", "kustomize", "config/overlay")
    for path in provider.folder.rglob("__pycache__"):
        for file in path.iterdir():
            file.unlink()


def check_release(provider: Provider, scratch: Path, out: Path) -> None:
    """Check that the newest series can be released without a warning."""
    releases = yaml.safe_load(provider.path("provider.yaml").read_text())["releases"]
    version = f"{max(releases, key=lambda name: int(name.partition('.')[2]))}.0"
    output = Repository(provider.folder, scratch).run(
        "make", "release-manifests", f"VERSION={version}", f"OUT={out}"
    )
    assert "warning" not in output


def test_in_stages(quay: Provider) -> None:
    """Proves: CC-08, CC-09, GEN-06."""
    before = authors(quay)
    for stage in (BOTH, NEW, DROP):
        upgraded(quay, *stage)
        assert authors(quay) == before
        check_edits(quay)
    text = quay.path("provider.yaml").read_text()
    comments = re.findall(r"#.*", SPEC.read_text())
    assert re.findall(r"#.*", text) == comments
    assert "  - v1beta2\n" in text
    assert "  v0.1: v1beta1   # first release\n" in text


def test_in_place(workers: Provider) -> None:
    before = authors(workers)
    upgraded(workers, *KEEP)
    assert authors(workers) == before
    check_edits(workers)


def conflict(provider: Provider) -> Said:
    provider.edit(WORKFLOW, "VERSION=v0.2.0\n", "VERSION=v0.2.7\n")
    return provider.update(*BOTH)


def test_with_edits_that_conflict(quay: Provider) -> None:
    before, text = authors(quay), quay.path("provider.yaml").read_bytes()
    said = conflict(quay)
    assert (said.code, said.files("conflicted")) == (1, {WORKFLOW})
    assert quay.update("--abort").code == 0
    assert quay.path("provider.yaml").read_bytes() == text
    said = quay.update(*BOTH)
    assert (said.code, said.files("conflicted")) == (1, {WORKFLOW})
    marked = quay.path(WORKFLOW).read_text()
    ours = re.sub(r"<<<<<<< [^\n]*\n(.*?)=======\n.*?>>>>>>> [^\n]*\n", r"\1", marked, flags=re.S)
    quay.path(WORKFLOW).write_text(ours)
    assert quay.update("--continue").code == 0
    assert quay.update("--check").code == 0
    assert "VERSION=v0.2.7\n" in quay.path(WORKFLOW).read_text()
    check_edits(quay)
    assert authors(quay) == before


@pytest.mark.slow
def test_it_is_alive_after_each_stage(
    request: pytest.FixtureRequest, quay: Provider, tmp_path: Path, scratch: Path
) -> None:
    """The author's code and tests run unchanged against both contracts.

    The first stage leads to both contracts; test_it_is_alive_in_place has the newer one alone.
    What the stages begin with, and what the later ones lead to, runs with ``--exhaustive``.
    """
    is_exhaustive = request.config.getoption("--exhaustive")
    if is_exhaustive:
        check_alive(quay, scratch)
    before = authors(quay)
    for stage in (BOTH, NEW, DROP):
        upgraded(quay, *stage)
        if is_exhaustive or stage is BOTH:
            check_alive(quay, scratch)
        check_release(quay, scratch, tmp_path / "out")
    assert {path: quay.path(path).read_bytes() for path in before} == before


@pytest.mark.slow
def test_it_is_alive_in_place(workers: Provider, tmp_path: Path, scratch: Path) -> None:
    before = authors(workers)
    upgraded(workers, *KEEP)
    check_alive(workers, scratch)
    check_release(workers, scratch, tmp_path / "out")
    assert {path: workers.path(path).read_bytes() for path in before} == before
