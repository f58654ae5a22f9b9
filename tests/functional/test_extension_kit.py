"""The kit of a runtime extension looks at the manifests of the extension only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module

EXTENSION = "runtimeExtension:\n  hooks: [BeforeClusterCreate]\n"

NAMES = {
    "names by default": "",
    "a namespace that YAML 1.1 reads as a boolean": "namespaces: {runtimeExtension: 'on'}\n",
}


@pytest.mark.parametrize("names", NAMES)
def test_components_that_convert_are_not_in_its_way(names: str, tmp_path: Path) -> None:
    """Each component that converts objects has a Service and a certificate as well."""
    example = (EXAMPLES / "two-contracts" / "provider.yaml").read_text()
    (tmp_path / "provider.yaml").write_text(f"{example}{EXTENSION}{NAMES[names]}")
    generated(Case("both", tmp_path / "provider.yaml"), tmp_path / "repository")

    options = ("-q", "-p", "no:cacheprovider", "-k", "TestRuntimeExtensionManifests")
    done = run_module(tmp_path / "repository", "pytest", *options, "tests/test_conformance.py")

    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
