"""Where the provider under test comes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.provider import VERSION, ProviderUnderTest

_ROOT = Path(__file__).parents[2]
_EXAMPLE = _ROOT / "examples" / "acme" / "provider.yaml"

PREBUILT = "CAPSMITH_E2E_PREBUILT"
"""Folder with one finished repository for each contract version: tests that one instead."""


def build_provider(contract: ContractVersion, folder: Path) -> ProviderUnderTest:
    """Generate a provider for one contract version and make its release artefacts."""
    prebuilt = os.environ.get(PREBUILT)
    if prebuilt:
        return _described(contract, Path(prebuilt) / contract)
    repository = folder / "provider"
    _generate(contract, repository)
    _run(["make", "release-manifests", f"VERSION={VERSION}"], repository)
    return _described(contract, repository)


def _generate(contract: ContractVersion, repository: Path) -> None:
    """The same example for every contract version: only the contract is exchanged."""
    spec = repository.parent / "provider.yaml"
    spec.parent.mkdir(parents=True, exist_ok=True)
    spec.write_text(_EXAMPLE.read_text().replace("v1beta2", contract))
    _run([sys.executable, "-m", "capsmith", "generate", str(spec), "-o", str(repository)], _ROOT)


def _described(contract: ContractVersion, repository: Path) -> ProviderUnderTest:
    (main,) = (repository / "src").glob("*/__main__.py")
    return ProviderUnderTest(
        name="acme",
        contract=contract,
        repository=repository,
        package=main.parent.name,
        out=repository / "out",
        machine_change={"diskGiB": 40},
        # A crashed leader is to be followed soon, or the crash test is all waiting.
        flags=(
            "--leader-elect-lease-duration=5s",
            "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=500ms",
        ),
    )


def _run(argv: list[str], folder: Path) -> None:
    done = subprocess.run(argv, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")
