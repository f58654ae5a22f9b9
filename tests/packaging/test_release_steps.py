"""The steps of a release refuse what must not be released."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest

from releasing.checkout import check_checkout, commit_time
from releasing.commands import FailedError, run
from releasing.distributions import Distribution, write_checksums
from releasing.installed import Environment, differing_files


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(
        ["git", *identity, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "GIT_COMMITTER_DATE": "@1700000000 +0000"},
        timeout=60,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("1")
    _git(tmp_path, "add", "file")
    _git(tmp_path, "commit", "--quiet", "--message", "One")
    _git(tmp_path, "tag", "v1.0.0")
    return tmp_path


def test_the_time_is_that_of_the_commit(checkout: Path) -> None:
    assert commit_time(checkout) == "1700000000"


def test_a_tag_is_the_commit_and_nothing_else(checkout: Path) -> None:
    check_checkout(checkout, "v1.0.0")
    with pytest.raises(FailedError, match=r"HEAD is not v2\.0\.0; it has v1\.0\.0"):
        check_checkout(checkout, "v2.0.0")
    (checkout / "other").write_text("2")
    with pytest.raises(FailedError, match=r"differs from its commit:\n\?\? other"):
        check_checkout(checkout, "v1.0.0")


def test_a_failure_shows_its_output(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match=r"failed with 3:\nwhy"):
        run(["sh", "-c", "echo why >&2; exit 3"], tmp_path)


def _wheel(folder: Path, name: str, requires: str = "") -> Path:
    """Return a wheel with nothing but metadata."""
    information = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        required = f"Requires-Dist: {requires}\n" if requires else ""
        archive.writestr(f"{information}/METADATA", metadata + required)
        archive.writestr(
            f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{information}/RECORD", "")
    return wheel


def test_only_what_the_lock_names_is_installed(tmp_path: Path) -> None:
    locked = _wheel(tmp_path, "locked")
    digest = hashlib.sha256(locked.read_bytes()).hexdigest()
    lock = tmp_path / "lock.txt"
    lock.write_text(f"{locked} --hash=sha256:{digest}\n")
    (tmp_path / "environment").mkdir()
    environment = Environment(tmp_path / "environment", lock)

    environment.install(_wheel(tmp_path, "good", "locked"))
    with pytest.raises(FailedError, match="missing"):
        environment.install(_wheel(tmp_path, "bad", "missing"))


def test_a_wheel_of_another_hash_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "lock.txt"
    lock.write_text(f"{_wheel(tmp_path, 'locked')} --hash=sha256:{'0' * 64}\n")
    (tmp_path / "environment").mkdir()

    with pytest.raises(FailedError, match="DO NOT MATCH THE HASHES"):
        Environment(tmp_path / "environment", lock)


def test_a_demo_that_differs_is_named(tmp_path: Path) -> None:
    for folder in ("expected", "found"):
        (tmp_path / folder / ".capsmith").mkdir(parents=True)
        for name in ("same", "other", ".capsmith/lock.yaml"):
            (tmp_path / folder / name).write_text(name)
    (tmp_path / "expected" / "missing").write_text("")
    (tmp_path / "found" / "other").write_text("changed")
    (tmp_path / "found" / ".capsmith" / "lock.yaml").write_text("changed")

    assert list(differing_files(tmp_path / "expected", tmp_path / "found")) == ["missing", "other"]


def test_checksums_are_read_by_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "one-1.whl").write_text("one")
    write_checksums([Distribution("one", tmp_path, tmp_path)], tmp_path / "SHA256SUMS")

    said = run(["sha256sum", "--check", "--strict", "SHA256SUMS"], tmp_path)
    assert said == "one-1.whl: OK\n"
