"""An author's repository, through the releases that bring it to another contract."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from capsmith.tree import digest
from tests.checkout import environment
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.provider import FAST_LEASE

_ROOT = Path(__file__).parents[2]
_SPEC = Path(__file__).parent / "specs" / "ferry.yaml"
_PACKAGE = "cluster_api_provider_ferry"
Edits = tuple[tuple[str, str], ...]
ENDPOINTS = "endpoints"
"""Folder in the simulated cloud: where the author's code looks up the address of a cluster."""

_CLOUD = '''

class Ports:
    """What the author has added: each cluster has an address of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "endpoints"

    def of(self, cluster: str) -> int:
        """The port under which the control plane of a cluster is reached."""
        return int((self._folder / cluster).read_text())
'''
_EDITS: dict[str, Edits] = {
    f"src/{_PACKAGE}/cloud.py": (("", _CLOUD),),
    f"src/{_PACKAGE}/controllers/ferry_cluster.py": (
        ("import SimulatedCloud\n", "import Ports, SimulatedCloud\n"),
        ("host, port = self._cloud.endpoint()", 'host = "127.0.0.1"'),
        (
            "control_plane_endpoint or Endpoint(host, port)",
            "control_plane_endpoint\n"
            "            or Endpoint(host, Ports(self._cloud.folder).of(cluster.cluster.name))",
        ),
    ),
    f"src/{_PACKAGE}/controllers/ferry_machine.py": (
        ("import FerryMachineSpec\n", "import FerryMachineSpec, FerryMachineStatus\n"),
        (
            "failure_domain=server.zone,",
            "failure_domain=server.zone,\n"
            "            status=FerryMachineStatus(host=server.id),",
        ),
    ),
    "Makefile": (("", "\n.PHONY: mine\nmine: ## The author's target\n\t@echo mine\n"),),
}


@dataclass(frozen=True)
class Origin:
    """The start of a lineage."""

    spec: Path
    edits: Mapping[str, Edits]
    """The author's edits, by path: texts and their replacements; an empty text is the end of the
    file."""


FERRY = Origin(_SPEC, _EDITS)
"""Everything that a cluster needs, with the author's code."""
HOMELAB = Origin(_ROOT / "examples" / "homelab-v1beta1" / "provider.yaml", {})
"""Infrastructure only."""


class Lineage:
    """The repository, in which each stage replaces the previous one."""

    def __init__(self, folder: Path, origin: Origin = FERRY) -> None:
        self._folder = folder
        self._origin = origin
        self.repository = folder / "repository"

    def begin(self, version: str) -> ProviderUnderTest:
        """Generate the repository, add the author's code, and release it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        spec = self._folder / "provider.yaml"
        shutil.copyfile(self._origin.spec, spec)
        self._capsmith("generate", str(spec), "-o", str(self.repository))
        for path, edits in self._origin.edits.items():
            _edit(self.repository / path, edits)
        return self._released(version, "v1beta1")

    def go_on(self, version: str, *arguments: str) -> ProviderUnderTest:
        """Run `capsmith update` with arguments, and release the result."""
        before = self.author_files()
        self._capsmith("update", str(self.repository), *arguments)
        assert self.author_files() == before, "update has changed a file of the author"
        return self._released(version, "v1beta2")

    def author_files(self) -> dict[str, bytes]:
        """Return everything that the author wrote, by path: edited scaffolds and added files.

        provider.yaml is left out, because the stages of an upgrade edit it.
        """
        lock = yaml.safe_load((self.repository / ".capsmith" / "lock.yaml").read_text())
        ours = {
            path
            for path, entry in lock["files"].items()
            if entry["owner"] != "scaffold" or entry["digest"] == self._digest(path)
        }
        found = {}
        for path in sorted(self.repository.rglob("*")):
            name = path.relative_to(self.repository).as_posix()
            skipped = name.startswith((".capsmith/", "out/", "vendor/")) or "__pycache__" in name
            if path.is_file() and not skipped and name not in {*ours, "provider.yaml"}:
                found[name] = path.read_bytes()
        return found

    def _digest(self, path: str) -> str:
        file = self.repository / path
        return digest(file.read_bytes()) if file.is_file() else ""

    def _released(self, version: str, contract: ContractVersion) -> ProviderUnderTest:
        """Build the release, and keep what it consists of: managers of it go on beside the next."""
        self._run("make", "release-manifests", f"VERSION={version}", folder=self.repository)
        kept = self._folder / version
        for part in ("src", "vendor", "out", "config"):
            shutil.copytree(self.repository / part, kept / part)
        return ProviderUnderTest(
            contract=contract,
            repository=kept,
            package=next((kept / "src").glob("*/__main__.py")).parent.name,
            version=version,
            machine_change={"bootDiskGiB": 24},
            flags=FAST_LEASE,
        )

    def _capsmith(self, *arguments: str) -> None:
        self._run(sys.executable, "-m", "capsmith", *arguments, folder=_ROOT)

    def _run(self, *argv: str, folder: Path) -> None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        env = environment(PATH=path)
        done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
        with (self._folder / "author.log").open("a") as log:
            log.write(f"$ {' '.join(argv)}\n{done.stdout}{done.stderr}\n")
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(argv)}:\n{done.stdout}{done.stderr}")


def _edit(path: Path, edits: Edits) -> None:
    text = path.read_text()
    for old, new in edits:
        if old:
            assert text.count(old) == 1, f"{path} has {text.count(old)} times {old!r}"
            text = text.replace(old, new)
        else:
            text += new
    path.write_text(text)
