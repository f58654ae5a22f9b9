"""Names of images are canonical where clusterctl's parser takes them as they are."""

from __future__ import annotations

import pytest

from capsmith.judge.checks.components import is_canonical
from capsmith.safetext import ImageName

DIGITS = "0" * 128


@pytest.mark.parametrize(
    "image",
    [
        "ghcr.io/acme/manager:v1.0.0",
        "localhost/manager",
        "Registry/manager",
        "registry:5000/a__b/c---d.e",
        "[::1]:5000/manager:_a",
        "docker.io/library/manager",
        f"a.b/c:v1@sha256:{DIGITS[:64]}",
        f"a.b/c@sha384:{DIGITS[:96]}",
        f"a.b/c@sha512:{DIGITS}",
        f"a.b/{'c' * 255}",
    ],
)
def test_canonical_names(image: str) -> None:
    assert is_canonical(image)


@pytest.mark.parametrize(
    "image",
    [
        "manager",
        "acme/manager:v1",
        "docker.io/manager",
        "index.docker.io/acme/manager",
        "-a.b/manager",
        "a..b/manager",
        "a.b:/manager",
        "a.b/c..d",
        "a.b/c___d",
        "a.b/c-_d",
        "a.b/Manager",
        "a.b/manager:",
        "a.b/manager:-a",
        "a.b/manager\n",
        f"a.b/c@sha256:{DIGITS[:63]}",
        f"a.b/c@sha256:{'A' * 64}",
        f"a.b/c@md5:{DIGITS[:32]}",
        f"a.b/{'c' * 256}",
    ],
)
def test_other_names(image: str) -> None:
    assert not is_canonical(image)


@pytest.mark.parametrize("name", ["-a.b/c", "a..b/c", "a.b/c-_d", "a.b/c..d", "a.b/c___d", "a.b/"])
def test_names_of_managers_that_clusterctl_cannot_parse_are_refused(name: str) -> None:
    assert ImageName.form.fullmatch(name) is None
    assert ImageName.form.fullmatch("registry.a-b.c:5000/d__e/f---g.h") is not None
