"""The kit of a runtime extension looks at the manifests of the extension only."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.cases import EXAMPLES, Case, generated

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

    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("tests/test_conformance.py", "-k", "TestRuntimeExtensionManifests"),
        ],
        cwd=tmp_path / "repository",
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "PYTHONPATH": "src:vendor",
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
