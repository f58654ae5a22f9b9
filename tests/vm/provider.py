"""examples/libvirt, alone or with generated providers for the rest of a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.provider import FAST_LEASE
from tests.repositories import add_authored_code

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "libvirt"
VERSION = "v0.1.0"
_ADDED = {
    "bootstrap": {"LibvirtConfig": {"implements": "BootstrapConfig"}},
    "controlPlane": {"LibvirtControlPlane": {"implements": "ControlPlane"}},
}
"""Their scaffolds are used as they are; the image has the program that bootstrap data call."""


def build_libvirt_provider(
    folder: Path,
    *,
    with_helpers: bool,
    with_specs: bool = False,
    variables: Mapping[str, str] | None = None,
) -> ProviderUnderTest:
    """Generate the repository and make its release.

    With helpers it has providers of bootstrap data and control planes too, with specs those of
    Cluster API.  ``variables`` are those of its cluster templates.
    """
    spec, repository = folder / "provider.yaml", folder / "provider"
    folder.mkdir(parents=True, exist_ok=True)
    described = yaml.safe_load((EXAMPLE / "provider.yaml").read_text())
    described |= _ADDED if with_helpers else {}
    described |= {"e2e": True} if with_specs else {}
    spec.write_text(yaml.safe_dump(described, sort_keys=False))
    _run([sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(repository)], ROOT)
    add_authored_code(EXAMPLE, repository)
    if with_helpers:
        # Its kinds of kubeadm are then of a group that has other kinds here.
        for path in (repository / "templates").glob("*lxc.yaml"):
            path.unlink()
    _run(["make", "release-manifests", f"VERSION={VERSION}"], repository)
    return ProviderUnderTest(
        contract="v1beta2",
        repository=repository,
        package="cluster_api_provider_libvirt",
        version=VERSION,
        machine_change={},
        variables=dict(variables or {}),
        flags=FAST_LEASE,
    )


def _run(argv: list[str], folder: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(argv)}:\n{done.stdout}{done.stderr}"
