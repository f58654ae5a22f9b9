"""``make pin-base`` of a generated repository writes the digest of the base image."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
NEWER = f"sha256:{'f' * 64}"
TAGS = {
    "base": "docker.io/library/python:3.13-slim",
    "compilers": "docker.io/library/python:3.13",
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pin") / "acme"
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder)
    return folder


def _pin(repository: Path, output: str, code: int = 0) -> int:
    """Run the target with a registry client that prints this; return the exit code."""
    client = repository / "docker"
    client.write_text(
        f'#!/bin/sh\necho "$@" >> "{repository}/calls"\necho "{output}"\nexit {code}\n', "utf-8"
    )
    client.chmod(0o755)
    return subprocess.run(
        ["make", "pin-base", f"DOCKER={client}"], cwd=repository, capture_output=True
    ).returncode


def _images(repository: Path) -> dict[str, str]:
    """Return the images of the stages that begin with one from a registry."""
    lines = (repository / "Dockerfile").read_text("utf-8").splitlines()
    stages = (line.split() for line in lines if line.startswith("FROM docker.io/"))
    return {name: image for _, image, _, name in stages}


@pytest.mark.parametrize(("output", "code"), [("", 0), ("not found", 0), (DIGEST, 1)])
def test_without_a_digest_nothing_changes(repository: Path, output: str, code: int) -> None:
    before = (repository / "Dockerfile").read_bytes()

    assert _pin(repository, output, code) != 0
    assert (repository / "Dockerfile").read_bytes() == before
    assert not (repository / "Dockerfile.pinned").exists()


def test_the_digest_is_written_and_renewed(repository: Path) -> None:
    for digest in (DIGEST, NEWER):
        assert _pin(repository, digest) == 0
        assert _images(repository) == {k: f"{tag}@{digest}" for k, tag in TAGS.items()}
    calls = (repository / "calls").read_text("utf-8").split()
    assert {*calls} >= {*TAGS.values()}
    assert not (repository / "Dockerfile.pinned").exists()
