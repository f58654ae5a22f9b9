"""Where the provider under test comes from."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import yaml

from capsmith.clusters.processes.kube import JSON
from tests.checkout import environment
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.provider import ProviderUnderTest
from tests.repositories import add_authored_code

_ROOT = Path(__file__).parents[2]

PREBUILT = "CAPSMITH_E2E_PREBUILT"
"""Folder with one finished repository for each example: tests those instead."""

# An optional field of the example's machine: a required one is a variable of its ClusterClass,
# which then overrides what the class's templates say.
_CHANGES: dict[str, JSON] = {
    "acme": {"diskGiB": 40},
    "homelab": {"image": "debian-14"},
    "homelab-v1beta1": {"image": "debian-14"},
    "everything": {"rootDiskGiB": 24},
    "ec2": {"keyName": "another"},
    "complete": {"bootDiskGiB": 24},
    "managed": {"diskGiB": 40},
    "pools": {"diskGiB": 40},
}

_SECTIONS = ("infrastructure", "bootstrap", "controlPlane", "ipam", "runtimeExtension", "addon")

# The newest release of each example, for its metadata.yaml must know the series.
_VERSIONS = {"everything": "v0.3.0"}
_FIRST_VERSION = "v0.1.0"

# A crashed leader is to be followed soon, or the crash test is all waiting.
FAST_LEASE = (
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
)


def build_provider(
    example: str, contract: ContractVersion, folder: Path, sections: tuple[str, ...] = ()
) -> ProviderUnderTest:
    """Generate the provider of an example for one contract and make its release artefacts.

    Of the example's types of provider only those in ``sections`` are taken, if any are named.
    """
    prebuilt = os.environ.get(PREBUILT)
    if prebuilt and not sections:
        return _described(example, contract, Path(prebuilt) / example)
    repository = folder / "provider"
    _generate(example, contract, repository, sections)
    _run(["make", "release-manifests", f"VERSION={_version(example)}"], repository)
    return _described(example, contract, repository)


def build_with(
    example: str, contract: ContractVersion, folder: Path, added: str
) -> ProviderUnderTest:
    """Build the provider of an example together with that of another one, in one repository."""
    both = [described(name, contract) for name in (example, added)]
    sections = {key: value for key, value in both[1].items() if key in _SECTIONS}
    for kind in sections.get("addon", {}).values():
        # The manager of add-ons does not serve the identities of the other's infrastructure.
        kind.pop("features", None)
    return build_described(example, contract, folder, both[0] | sections)


def build_form(
    example: str, contract: ContractVersion, folder: Path, version: str, components: JSON
) -> ProviderUnderTest:
    """Build another release of an example's provider, with these sections combined."""
    spec, repository = folder / "provider.yaml", folder / "provider"
    folder.mkdir(parents=True, exist_ok=True)
    described = {**yaml.safe_load(_text(example, contract)), "components": components}
    if "controlPlane" not in components.get("infrastructure", ()):
        for kind in described["controlPlane"].values():
            # Another manager does not serve the identities of the infrastructure.
            kind["features"].pop("credentials", None)
    spec.write_text(yaml.safe_dump(described, sort_keys=False))
    _run([sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(repository)], _ROOT)
    _run(["make", "release-manifests", f"VERSION={version}"], repository)
    return replace(_described(example, contract, repository), version=version)


def build_described(
    example: str, contract: ContractVersion, folder: Path, described: JSON
) -> ProviderUnderTest:
    """Build the provider of an example from another description."""
    spec, repository = folder / "provider.yaml", folder / "provider"
    folder.mkdir(parents=True, exist_ok=True)
    spec.write_text(yaml.safe_dump(described, sort_keys=False))
    _run([sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(repository)], _ROOT)
    _run(["make", "release-manifests", f"VERSION={_version(example)}"], repository)
    return _described(example, contract, repository)


def described(example: str, contract: ContractVersion) -> JSON:
    """Return the content of an example's provider.yaml."""
    return dict(yaml.safe_load(_text(example, contract)))


def _generate(
    example: str, contract: ContractVersion, repository: Path, sections: tuple[str, ...]
) -> None:
    """An example may be taken to another contract: nothing but the contract is exchanged."""
    spec = repository.parent / "provider.yaml"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(_only(sections, _text(example, contract)))
    overlay = _ROOT / "examples" / example / "blueprints"
    if overlay.is_dir():
        shutil.copytree(overlay, spec.parent / "blueprints", dirs_exist_ok=True)
    _run([sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(repository)], _ROOT)
    add_authored_code(_ROOT / "examples" / example, repository)


def _text(example: str, contract: ContractVersion) -> str:
    text = (_ROOT / "examples" / example / "provider.yaml").read_text()
    native = f"contracts: [{contract}]" in text
    return text if native else re.sub(r"v1beta[12]", contract, text)


def _only(sections: tuple[str, ...], text: str) -> str:
    described = yaml.safe_load(text)
    for section in _SECTIONS if sections else ():
        if section not in sections:
            described.pop(section, None)
    return yaml.safe_dump(described, sort_keys=False) if sections else text


def _described(example: str, contract: ContractVersion, repository: Path) -> ProviderUnderTest:
    (main,) = (repository / "src").glob("*/__main__.py")
    return ProviderUnderTest(
        contract=contract,
        repository=repository,
        package=main.parent.name,
        version=_version(example),
        machine_change=_CHANGES[example],
        flags=FAST_LEASE,
    )


def _version(example: str) -> str:
    return _VERSIONS.get(example, _FIRST_VERSION)


def _run(argv: list[str], folder: Path) -> None:
    # `make` and what it calls take the Python and the kubectl that these tests run with.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        argv, cwd=folder, env=environment(PATH=path), capture_output=True, text=True
    )
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
