"""Core, kubeadm's providers and verify refuse the same objects of cluster templates."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith import resources
from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.kubeadm import KUBEADM_TYPES, KubeadmManager, add_kubeadm
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import Etcd
from capsmith.clusters.processes.tools import Toolbox
from capsmith.clusters.processes.tools.catalogue import KUBERNETES, core_module, kubeadm_module
from capsmith.clusters.processes.wait import eventually
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import Contract
from capsmith.judge.release.judge import judge
from capsmith.judge.release.model import VerifyOptions
from capsmith.judge.release.release import SourceFile, read_release
from capsmith.judge.release.targets import list_targets
from tests.core_kinds import FILE, read_crds, reduce_crds, render
from tests.core_mistakes import ACCEPTED as ACCEPTED_CHANGES
from tests.core_mistakes import OF_CLASSES, OF_OBJECTS, OF_TOPOLOGIES
from tests.core_objects import (
    CLASS,
    INFRASTRUCTURE,
    VERSIONS,
    Mistake,
    build_objects,
    list_mistakes,
    list_required,
)
from tests.e2e.releases import NEWEST
from tests.e2e.tools.required import required_toolbox
from tests.name_templates import ACCEPTED, REFUSED, build_deployment

_KINDS = ("AcmeCluster", "AcmeMachine", "AcmeClusterTemplate", "AcmeMachineTemplate")
_GATES = "RuntimeSDK=true,MachineTaintPropagation=true"
_KUBEADM_GATES = "ClusterTopology=true,KubeadmBootstrapFormatIgnition=true"
"""Feature gates without which the webhooks refuse objects that have no mistake."""
_RULES = {"CC-80", "CC-82", "TP-25", "TP-26"}
_OTHER: dict[str, JSON] = {
    "AcmeClusterTemplate": {"template": {"spec": {}}},
    "AcmeMachineTemplate": {"template": {"spec": {}}},
}


@pytest.fixture(scope="module")
def core_tools() -> Toolbox:
    names = [KUBERNETES, core_module(NEWEST), kubeadm_module(NEWEST)]
    return required_toolbox("the tests of core's webhooks", names)


@pytest.fixture(scope="module")
def client(core_tools: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeClient]:
    """Return a client of a cluster with core, kubeadm's providers, and CRDs without a provider."""
    folder = tmp_path_factory.mktemp("core-objects")
    etcd = Etcd(core_tools, folder)
    with ExitStack() as ends:
        ends.callback(etcd.stop)
        etcd.start()
        etcd.wait_ready()
        yield _start(Base(core_tools, Pki(folder / "pki"), etcd, folder), folder, ends)


def _start(base: Base, folder: Path, ends: ExitStack) -> KubeClient:
    repository = ClusterctlRepository(folder / "repository")
    repository.add_core(base.tools, NEWEST, base.pki)
    add_kubeadm(repository, base, NEWEST)
    clusterctl = Clusterctl(base.tools, NEWEST, repository.config, folder / "clusterctl")
    management = ManagementCluster(base, "objects", NEWEST, clusterctl, _GATES, audited=False)
    managers = [KubeadmManager(base, management, type, _KUBEADM_GATES) for type in KUBEADM_TYPES]
    ends.callback(management.stop)
    for manager in managers:
        ends.callback(manager.stop)
    providers = {"core": "cluster-api", "bootstrap": "kubeadm", "control-plane": "kubeadm"}
    variables = {key: value for each in managers for key, value in each.variables.items()}
    management.start(providers, variables)
    for manager in managers:
        manager.start()
    for kind in _KINDS:
        management.client.apply(_crd(kind))
    management.wait_established()
    return management.client


def _crd(kind: str) -> JSON:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [
        {
            "name": version,
            "served": True,
            "storage": version == VERSIONS[-1],
            "schema": {"openAPIV3Schema": schema},
        }
        for version in VERSIONS
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{INFRASTRUCTURE}",
            "labels": {f"cluster.x-k8s.io/{version}": version for version in VERSIONS},
        },
        "spec": {
            "group": INFRASTRUCTURE,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": versions,
        },
    }


def _find_refusal(client: KubeClient, document: JSON) -> str:
    """Return why an object is refused; empty if it is taken."""
    kind = client.resolve(document["apiVersion"], document["kind"])
    namespace = "namespaces/default/" if kind.namespaced else ""
    path = f"/apis/{document['apiVersion']}/{namespace}{kind.plural}"
    # clusterctl drops unknown fields, which is no refusal but loses what they say.
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        client.request("POST", path, body=document, query=query)
    except ApiError as error:
        return error.message or str(error)
    return ""


@cache
def _contracts() -> dict[str, Contract]:
    """Return the contracts with the rules under test alone."""
    found = {}
    for version in list_versions():
        contract = load_contract(version, resources.schemas())
        rules = {id: rule for id, rule in contract.rules.items() if id in _RULES}
        found[version] = replace(contract, rules=rules)
    return found


def _find_rules(*documents: JSON) -> set[str]:
    """Return the rules by which verify refuses a cluster template with these objects."""
    text = yaml.safe_dump_all(documents)
    release = read_release([SourceFile("cluster-template.yaml", text)])
    known = list_targets(load_compatibility(resources.schemas()).core).known
    return {each.id for each in judge(release, _contracts(), VerifyOptions(known[-1:]))}


def test_the_schemas_are_those_of_the_newest_release(core_tools: Toolbox) -> None:
    """``python -m tests.core_kinds`` writes them."""
    written = (resources.schemas() / "core" / FILE).read_text(encoding="utf-8")
    assert written == render(reduce_crds(read_crds(core_tools)))


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_without_a_mistake_are_taken(client: KubeClient, version: str) -> None:
    for name, document in build_objects(version).items():
        assert (name, _find_refusal(client, document)) == (name, "")
        assert not _find_rules(document), name


@pytest.mark.parametrize(("version", "mistake"), list_mistakes(OF_OBJECTS), ids=str)
def test_an_object_is_judged_as_by_core(client: KubeClient, version: str, mistake: Mistake) -> None:
    """Proves: CC-80."""
    document = mistake.applied(build_objects(version)[mistake.kind])
    assert _find_refusal(client, document)
    assert "CC-80" in _find_rules(document)


def test_changes_are_judged_as_by_core(client: KubeClient) -> None:
    """Proves: CC-80."""
    for version, change in list_mistakes(ACCEPTED_CHANGES):
        document = change.applied(build_objects(version)[change.kind])
        assert (str(change), _find_refusal(client, document)) == (str(change), "")
        assert "CC-80" not in _find_rules(document)


def test_templates_of_names_are_judged_as_by_core(client: KubeClient) -> None:
    """Proves: CC-80."""
    accepted = [text for text in ACCEPTED if not _find_refusal(client, build_deployment(text))]
    refused = [text for text in REFUSED if _find_refusal(client, build_deployment(text))]
    assert (accepted, refused) == (list(ACCEPTED), list(REFUSED))


@pytest.mark.parametrize("version", VERSIONS)
def test_missing_fields_are_judged_as_by_core(client: KubeClient, version: str) -> None:
    """Proves: CC-80."""
    differing = []
    for name, document in build_objects(version).items():
        for path in list_required(document):
            changed = Mistake(name, path).applied(document)
            refusal = _find_refusal(client, changed)
            if bool(refusal) != bool(_find_rules(changed)):
                differing.append((name, path, refusal))
    assert differing == []


@pytest.mark.parametrize(("version", "mistake"), list_mistakes(OF_CLASSES), ids=str)
def test_a_class_is_judged_as_by_core(client: KubeClient, version: str, mistake: Mistake) -> None:
    """Proves: TP-26."""
    document = mistake.applied(build_objects(version)[mistake.kind])
    assert _find_refusal(client, document)
    assert "TP-26" in _find_rules(document)


@pytest.fixture(scope="module")
def of_class(client: KubeClient) -> JSON:
    """Return a ClusterClass that core has reconciled, as it validates Clusters only by such."""
    objects = build_objects(VERSIONS[-1])
    config = objects["KubeadmConfigTemplate"]
    plane = copy.deepcopy(objects["KubeadmControlPlane"])
    plane["kind"] += "Template"
    plane["spec"] = {
        "template": {"spec": {"kubeadmConfigSpec": config["spec"]["template"]["spec"]}}
    }
    metadata = {"name": CLASS, "namespace": "default"}
    for kind, spec in _OTHER.items():
        api_version = f"{INFRASTRUCTURE}/{VERSIONS[-1]}"
        client.apply({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    made: JSON = objects["ClusterClass"]
    for document in (config, plane, made):
        client.apply(document)
    eventually(lambda: _is_reconciled(client, made), what="ClusterClass reconciled")
    return made


def _is_reconciled(client: KubeClient, document: JSON) -> bool:
    found: Any = client.get(document["apiVersion"], document["kind"], CLASS, "default")
    status = found.get("status", {})
    ready = {each["type"]: each["status"] for each in status.get("conditions", [])}
    is_observed = status.get("observedGeneration") == found["metadata"]["generation"]
    return is_observed and ready.get("VariablesReady") == "True"


@pytest.mark.parametrize("mistake", OF_TOPOLOGIES, ids=str)
def test_a_topology_is_judged_as_by_core(
    client: KubeClient, of_class: JSON, mistake: Mistake
) -> None:
    """Proves: TP-25."""
    document = build_objects(VERSIONS[-1])[mistake.kind]
    assert _find_refusal(client, document) == ""
    assert "TP-25" not in _find_rules(document, of_class)
    changed = mistake.applied(document)
    assert _find_refusal(client, changed)
    assert "TP-25" in _find_rules(changed, of_class)


@pytest.mark.parametrize("field", ["infrastructureRef", "controlPlaneRef"])
def test_core_does_not_find_an_object_of_another_name(client: KubeClient, field: str) -> None:
    """Proves: CC-82."""
    objects = build_objects(VERSIONS[-1])
    name = field.lower()
    cluster, plane = objects["Cluster"], objects["KubeadmControlPlane"]
    cluster["metadata"]["name"] = name
    infrastructure = {
        "apiVersion": f"{INFRASTRUCTURE}/{VERSIONS[-1]}",
        "kind": "AcmeCluster",
        "metadata": {"name": CLASS, "namespace": "default"},
    }
    cluster["spec"][field]["name"] = "other"
    assert "CC-82" in _find_rules(cluster, infrastructure, plane)
    client.apply(infrastructure)
    client.apply(cluster)
    condition = {
        "infrastructureRef": "InfrastructureReady",
        "controlPlaneRef": "ControlPlaneAvailable",
    }

    def is_not_found() -> bool:
        found: Any = client.get(cluster["apiVersion"], "Cluster", name, "default")
        conditions = found.get("status", {}).get("conditions", [])
        return any(
            each["type"] == condition[field] and each["reason"].endswith("DoesNotExist")
            for each in conditions
        )

    eventually(is_not_found, what=f"{condition[field]} says that the object does not exist")
