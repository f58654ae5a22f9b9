"""A release of simulated infrastructure, to check a provider that has none."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository, read_provider
from capsmith.clusters.lab.simulated.infrastructure import (
    build_cluster_template,
    generate_infrastructure,
)

_SECTIONS = {"bootstrap": "bootstrap", "controlPlane": "control-plane"}
"""Sections of provider.yaml, and the types of their providers."""
_CLOUD = "CAPSMITH_SIMULATED_CLOUD_DIR"


class SimulatedRelease(NamedTuple):
    """A release with a cluster template, and the command of each of its managers by type."""

    folder: Path
    commands: dict[str, str]


def build_release(repository: Path, folder: Path) -> SimulatedRelease:
    """Build a release of what clusters of the provider in ``repository`` need, in ``folder``.

    Raises CapsmithError if that is no generated provider, or if it has infrastructure, or if its
    clusters need more than can be simulated.
    """
    provider = read_provider(repository)
    _refuse_unsuitable(provider)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lab = LabFolder(folder)
    simulated = generate_infrastructure(lab, provider, has_kubeadm=False)
    template = build_cluster_template(lab, provider, has_kubeadm=False)
    simulated.check_manager()
    release = simulated.release(simulated.first_version(), folder / "release")
    own = [type for section, type in _SECTIONS.items() if provider.spec.get(section)]
    for type in own:
        (release.folder / f"{type}-components.yaml").unlink(missing_ok=True)
    for each in release.folder.glob("cluster*.yaml"):
        each.unlink()
    shutil.copyfile(template, release.folder / "cluster-template.yaml")
    variables = {"PYTHONPATH": simulated.import_path, _CLOUD: str(folder / "cloud")}
    settings = [f"{name}={value}" for name, value in variables.items()]
    start = ["env", *settings, simulated.python, "-m", simulated.package, "--component"]
    commands = {each.type: shlex.join([*start, each.type]) for each in release.components}
    return SimulatedRelease(release.folder, commands)


def _refuse_unsuitable(provider: ProviderRepository) -> None:
    kinds = provider.spec.get("controlPlane") or {}
    foreign = [each["bootstrap"] for each in kinds.values() if each.get("bootstrap")]
    message, hint = "", "Specify the other releases with --with, and their managers with --manager."
    if provider.has_infrastructure:
        message, hint = "the provider has infrastructure", "Leave out --simulate."
    elif not any(provider.spec.get(section) for section in _SECTIONS):
        message, hint = "the provider needs no cluster", "Leave out --simulate."
    elif foreign and not provider.spec.get("bootstrap"):
        message = f"its control planes need another provider's {foreign[0].get('kind')}"
    if message:
        raise LabError("lab-simulate", message, file=str(provider.folder), hint=hint)
