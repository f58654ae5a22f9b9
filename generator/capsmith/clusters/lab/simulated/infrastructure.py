"""Simulated infrastructure for providers that have none, and a cluster template that uses it.

Both are generated in the same way as any provider.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository, read_provider
from capsmith.clusters.lab.state import write_text
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.repository import dump, load
from capsmith.manifests.parse import list_of, mapping_of

_SPEC = Path(__file__).with_name("provider.yaml")
_TEMPLATE = Path("templates") / "cluster-template.yaml"
_INFRASTRUCTURE, _BOOTSTRAP, _CONTROL_PLANE = "infrastructure", "bootstrap", "controlPlane"
_MANAGED = "externalManagedControlPlane"
_PREFIX = "Simulated"
_SIMULATED_CONTROL_PLANE = "SimulatedControlPlane"
_CONFIG = "BootstrapConfig"
_BOOTSTRAP_GROUP = "bootstrap.cluster.x-k8s.io"
_GROUPS = "groups"
_COMPONENTS = "components"
_CREDENTIALS = "credentials"
_SECTIONS = (_INFRASTRUCTURE, _BOOTSTRAP, _CONTROL_PLANE)
# The keys of provider.yaml that determine a cluster template.
_KEPT = (
    "capsmith",
    "name",
    "title",
    "repository",
    "contracts",
    "apiVersions",
    "releases",
    "bootstrap",
    "controlPlane",
    "credentials",
)
_CONTRACT = "v1beta2"
_SECONDS = 120
_TAIL_LINES = 20


def generate_infrastructure(
    lab: LabFolder, provider: ProviderRepository, *, has_kubeadm: bool = True
) -> ProviderRepository:
    """Generate simulated infrastructure for the newest contract version that a provider supports.

    Unless ``has_kubeadm`` is true, the parts for which a lab uses the providers for kubeadm are
    simulated too.  Raises LabError if it cannot be generated.
    """
    contract = max(list_of(provider.spec, "contracts"), default=_CONTRACT)
    found = _simulated(provider, has_kubeadm=has_kubeadm)
    spec = {**found, "contracts": [contract], "releases": {"v0.1": contract}}
    return read_provider(_generated(spec, lab.root / _INFRASTRUCTURE))


def build_cluster_template(
    lab: LabFolder, provider: ProviderRepository, *, has_kubeadm: bool = True
) -> Path:
    """Write a cluster template for a provider with simulated infrastructure; return its path.

    Call :func:`generate_infrastructure` with the same arguments first.  Raises LabError if there is
    no template, for example because provider.yaml is invalid.
    """
    kept = {key: provider.spec[key] for key in _KEPT if key in provider.spec}
    groups = dict(mapping_of(provider.spec, _GROUPS))
    added = _simulated(provider, has_kubeadm=has_kubeadm)
    kinds = {key: added[key] for key in (_INFRASTRUCTURE, _BOOTSTRAP) if key in added}
    if not has_kubeadm and _CONTROL_PLANE not in kept:
        # The configurations that it creates are here in the same repository.
        kinds[_CONTROL_PLANE] = {_SIMULATED_CONTROL_PLANE: {"implements": "ControlPlane"}}
    for section in kinds:
        groups.pop(section, None)
    spec = {**kept, **({_GROUPS: groups} if groups else {}), **kinds}
    _give_credentials_to_own_kinds(spec)
    template = _objects(_generated(spec, lab.root / "template"))
    path = lab.root / _TEMPLATE.name
    write_text(path, dump(add_objects_of(_objects(lab.root / _INFRASTRUCTURE), template)))
    return path


def _give_credentials_to_own_kinds(spec: dict[str, Any]) -> None:
    """Let the kinds with credentials name an identity, because the simulated cluster has none."""
    sections = (mapping_of(spec, key) for key in (_BOOTSTRAP, _CONTROL_PLANE))
    if not any(_has_identity(mapping_of(kinds, each)) for kinds in sections for each in kinds):
        spec.pop(_CREDENTIALS, None)
        return
    # A manager reads the identities of the kinds that it serves only.
    spec[_COMPONENTS] = {_INFRASTRUCTURE: [key for key in _SECTIONS if key in spec]}
    for kind in spec[_INFRASTRUCTURE].values():
        kind["features"] = {_CREDENTIALS: False}


def _has_identity(kind: Mapping[str, Any]) -> bool:
    has_feature = mapping_of(kind, "features").get(_CREDENTIALS)
    return bool(has_feature) or kind.get("implements") == "Resource"


def add_objects_of(simulated: list[JSON], template: list[JSON]) -> list[JSON]:
    """Return ``template`` with its infrastructure objects replaced by those in ``simulated``.

    The objects in ``template`` have another provider's API version and credentials.
    """
    known = [each for each in simulated if each["kind"].startswith(_PREFIX)]
    versions = {each["kind"]: each["apiVersion"] for each in known}
    own = {_key(each): each for each in known if each["kind"] != _SIMULATED_CONTROL_PLANE}
    return [own.get(_key(each)) or _referring(each, versions) for each in template]


def _referring(value: Any, versions: Mapping[str, str]) -> Any:
    """Return a value with the API versions of its references replaced; ``versions`` are by kind."""
    if isinstance(value, list):
        return [_referring(each, versions) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _referring(each, versions) for key, each in value.items()}
    if "apiVersion" in found and found.get("kind") in versions:
        found["apiVersion"] = versions[found["kind"]]
    return found


def _key(obj: JSON) -> tuple[str, str]:
    return str(obj["kind"]), str(obj["metadata"]["name"])


def _objects(folder: Path) -> list[JSON]:
    return load((folder / _TEMPLATE).read_text(encoding="utf-8"))


def _simulated(provider: ProviderRepository, *, has_kubeadm: bool) -> dict[str, Any]:
    """Return a provider.yaml for the parts that a provider lacks.

    kubeadm's bootstrap configurations work with most providers, but workers need certificates that
    a control plane without machines does not have.
    """
    found = dict(yaml.safe_load(_SPEC.read_text(encoding="utf-8")))
    kinds = mapping_of(provider.spec, _CONTROL_PLANE).values()
    is_managed = any(mapping_of(each, "features").get(_MANAGED) for each in kinds)
    if provider.spec.get(_BOOTSTRAP) or not is_managed:
        del found[_BOOTSTRAP], found[_CONTROL_PLANE]
    if not has_kubeadm and not kinds:
        found[_CONTROL_PLANE] = {_SIMULATED_CONTROL_PLANE: _control_plane_of_machines(provider)}
    return found


def _control_plane_of_machines(provider: ProviderRepository) -> dict[str, Any]:
    """Return a kind of control plane whose machines have a provider's bootstrap configurations."""
    kinds = mapping_of(provider.spec, _BOOTSTRAP)
    found = [name for name in kinds if mapping_of(kinds, name).get("implements") == _CONFIG]
    group = mapping_of(provider.spec, _GROUPS).get(_BOOTSTRAP, _BOOTSTRAP_GROUP)
    return {"implements": "ControlPlane", _BOOTSTRAP: {"group": group, "kind": found[0]}}


def _generated(spec: dict[str, Any], folder: Path) -> Path:
    """Generate a repository in ``folder``, or update an existing one."""
    path = folder.with_suffix(".yaml")
    write_text(path, yaml.safe_dump(spec, sort_keys=False))
    command = [sys.executable, "-m", "capsmith", "generate", str(path), "--output", str(folder)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
    )
    if done.returncode != 0:
        output = keep_tail(done.stdout + done.stderr, _TAIL_LINES)
        message = f"no cluster can be created from the kinds in provider.yaml:\n{output}"
        raise LabError("lab-template", message, hint="Run capsmith validate.")
    return folder
