"""Validation and defaulting by author code of a generated repository, on a real API server."""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lightkube import KubeConfig, SingleConfig

from capsmith.clusters.processes import kube
from capsmith.clusters.processes.kube import JSON, ApiError, Credentials, KubeClient
from capsmith.clusters.processes.kubeconfig import request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import eventually
from capsmith_runtime.admission.controllers import AdmissionWebhook, AdmissionWebhookGroup
from capsmith_runtime.admission.reads import ObjectReads
from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.permissions import Permissions
from tests.golden.cases import EXAMPLES, Case, generated
from tests.importing import importable
from tests.realapi.webhook import ServedGroup

PACKAGE = "provider_with_webhooks"
API = "infrastructure.webhooks.example.com/v1alpha1"
FINALIZER = "tests.example.com/keep"
MANAGER = "acme-system-manager"
RBAC = "rbac.authorization.k8s.io"
CODE = """
from dataclasses import replace

from capsmith_runtime.admission import Defaulter, FieldError, Validator

from .._generated.api.acme_machine import AcmeMachineSpec


class AcmeMachineValidator(Validator[AcmeMachineSpec]):
    def validate_create(self, obj):
        if obj.spec.size == "huge":
            yield FieldError("size", "is not for sale", "FieldValueNotSupported")
        if obj.spec.zone != f"{obj.spec.size}-zone":
            yield FieldError("zone", f"must be {obj.spec.size}-zone")
        sold_out = obj.client.get("v1", "ConfigMap", "sold-out")
        if sold_out is not None and obj.spec.size in sold_out["data"]:
            yield FieldError("size", "is sold out")


class AcmeMachineDefaulter(Defaulter[AcmeMachineSpec]):
    def default(self, obj):
        return replace(obj.spec, zone=obj.spec.zone or f"{obj.spec.size}-zone")
"""


@dataclass
class Installed:
    """The CRDs of machines with their webhooks, and an invalid machine from before these."""

    api: KubeClient
    server: ServedGroup
    old: JSON

    def create(self, spec: JSON, kind: str = "AcmeMachine", **metadata: Any) -> JSON:
        return self.api.create(machine(spec, kind, **metadata))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("webhooks")
    spec = yaml.safe_load((EXAMPLES / "acme" / "provider.yaml").read_text())
    spec |= {"package": PACKAGE, "groups": {"infrastructure": API.partition("/")[0]}}
    spec["infrastructure"]["AcmeMachine"] |= {"webhooks": {"validation": True, "defaulting": True}}
    spec["infrastructure"]["AcmeMachine"]["spec"]["zone"] = "string"
    spec["rbac"] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    (folder / "provider.yaml").write_text(yaml.safe_dump(spec))
    repository = folder / "repository"
    generated(Case("webhooks", folder / "provider.yaml"), repository)
    (repository / "src" / PACKAGE / "webhooks/acme_machine.py").write_text(CODE)
    with importable(repository / "src", PACKAGE):
        yield repository


@pytest.fixture(scope="module")
def installed(
    repository: Path,
    api_server: ApiServer,
    api: KubeClient,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    crds = documents(repository, "config/crd/bases/*_acmemachine*.yaml")
    for crd in crds:
        api.create(crd)
    before = machine({"size": "huge", "image": "i"}, finalizers=[FINALIZER])
    eventually(lambda: quietly(api, before), timeout=120)
    client = runtime_client(api_server)
    folder = tmp_path_factory.mktemp("certificates")
    server = ServedGroup(webhooks(client), folder, client.close)
    server.start()
    configurations = documents(repository, "config/webhook/manifests.yaml")
    for configuration in configurations:
        for webhook in configuration["webhooks"]:
            server.turn(webhook["clientConfig"])
        api.create(configuration)
    found = Installed(api, server, before)
    # Webhooks are called a moment after their configuration has been created.
    eventually(lambda: is_refused(api, {"size": "huge", "image": "i"}), timeout=120)
    yield found
    server.stop()
    for document in (*configurations, *crds):
        api.delete(document)


def test_a_refusal_shows_all_errors(installed: Installed) -> None:
    with pytest.raises(ApiError) as caught:
        installed.create({"size": "huge", "image": "i", "zone": "other"})

    assert caught.value.status == 422
    assert "spec.size: Unsupported value: is not for sale" in caught.value.message
    assert "spec.zone: Invalid value: must be huge-zone" in caught.value.message
    with pytest.raises(ApiError, match=r"spec\.template\.spec\.zone: Invalid value"):
        installed.create(
            {"template": {"spec": {"size": "s", "image": "i", "zone": "x"}}}, "AcmeMachineTemplate"
        )


def test_a_validator_reads_what_the_user_changes(installed: Installed) -> None:
    sizes = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "sold-out", "namespace": "default"},
        "data": {"rare": ""},
    }
    installed.create({"size": "rare", "image": "i"})
    installed.api.create(sizes)
    try:
        with pytest.raises(ApiError, match=r"spec\.size: Invalid value: is sold out"):
            installed.create({"size": "rare", "image": "i"})
        with pytest.raises(ApiError, match="is sold out"):
            installed.api.apply(machine({"size": "rare", "image": "i"}), dry_run=True)
        installed.create({"size": "s", "image": "i"})
    finally:
        installed.api.delete(sizes)


def test_errors_of_the_schema_are_those_of_the_api_server(installed: Installed) -> None:
    with pytest.raises(ApiError, match=r"spec\.image: Required value") as caught:
        installed.create({"size": "s"})

    assert caught.value.status == 422


def test_defaults_are_written_and_stable(installed: Installed) -> None:
    """Proves: TP-07."""
    spec = {"size": "s", "image": "i"}
    assert installed.create(spec)["spec"] == {**spec, "diskGiB": 20, "zone": "s-zone"}

    template = machine({"template": {"spec": spec}}, "AcmeMachineTemplate")
    first = installed.api.apply(template)
    assert first["spec"]["template"]["spec"]["zone"] == "s-zone"
    again = installed.api.apply(template)
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_changed_spec_is_admitted(installed: Installed) -> None:
    obj = installed.create({"size": "s", "image": "i"})

    with pytest.raises(ApiError, match=r"spec\.zone: Invalid value: must be m-zone"):
        installed.api.patch(obj, {"spec": {"size": "m"}})
    changed = installed.api.patch(obj, {"spec": {"size": "m", "zone": None}})
    assert changed["spec"]["zone"] == "m-zone"


def test_an_invalid_machine_is_carried_through(
    installed: Installed, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metadata, status and the contract's fields can be written; and it can be deleted.

    The manager records a server even while no webhook is served, in whichever namespace it is.

    Proves: MV-08.
    """
    api, old = installed.api, installed.old
    with pytest.raises(ApiError, match="is not for sale"):
        api.patch(old, {"spec": {"image": "other"}})
    assert api.patch(old, {"spec": {"providerID": "acme://1"}})["spec"]["providerID"] == "acme://1"
    healthy = installed.create({"size": "s", "image": "i"}, finalizers=[FINALIZER])

    installed.server.stop()
    monkeypatch.setattr(kube, "_BUSY_SECONDS", 0)
    with pytest.raises(ApiError, match="failed calling webhook"):
        installed.create({"size": "s", "image": "i"})
    server_id: JSON = {"spec": {"providerID": "acme://2"}}
    refused = pytest.raises(ApiError, match="failed calling webhook")
    with account(api, pki, "tenant", ["acmemachines"]) as tenant, refused:
        tenant.patch(healthy, server_id)
    with account(api, pki, "elsewhere", ["acmemachines", "acmemachines/status"]) as manager:
        assert manager.patch(healthy, server_id)["spec"]["providerID"] == "acme://2"
    for obj in (old, healthy):
        api.patch(obj, {"metadata": {"labels": {"a": "b"}}})
        status = {"initialization": {"provisioned": True}}
        api.patch(obj, {"status": status}, subresource="status")
        api.delete(obj)
        api.patch(obj, {"metadata": {"finalizers": None}})
        metadata = obj["metadata"]
        assert api.find(API, "AcmeMachine", metadata["name"], metadata["namespace"]) is None


@contextmanager
def account(
    api: KubeClient, pki: Pki, namespace: str, resources: list[str]
) -> Iterator[KubeClient]:
    """Return a context manager with a client of an account with the name of the manager's."""
    name = f"{namespace}-{MANAGER}"
    rules = [{"apiGroups": [API.partition("/")[0]], "resources": resources, "verbs": ["*"]}]
    objects: list[JSON] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": MANAGER, "namespace": namespace},
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": MANAGER, "namespace": namespace}],
        },
    ]
    for obj in objects:
        api.create(obj)
    token = request_token(api, namespace, MANAGER)
    client = KubeClient(api.server, Credentials(pki.ca, token=token))
    try:
        yield client
    finally:
        client.close()
        for obj in reversed(objects):
            api.delete(obj)


def machine(spec: JSON, kind: str = "AcmeMachine", **metadata: Any) -> JSON:
    name = f"one-{uuid.uuid4().hex[:8]}"
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": spec,
    }


def documents(repository: Path, pattern: str) -> list[JSON]:
    found: list[JSON] = []
    for path in sorted(repository.glob(pattern)):
        found += yaml.safe_load_all(path.read_text())
    return found


def runtime_client(api_server: ApiServer) -> LightkubeClient:
    """Return the client of a manager of this API server."""

    def config() -> SingleConfig:
        found = KubeConfig.from_file(api_server.kubeconfig).get()
        assert found is not None
        return found

    return LightkubeClient(Metrics(), field_manager="test", config=config)


def webhooks(client: LightkubeClient) -> Any:
    """Return a factory of the admission webhooks in the generated wiring."""
    component = importlib.import_module(f"{PACKAGE}._generated.wiring.infrastructure").COMPONENT
    (webhook,) = (each for each in component.groups if isinstance(each, AdmissionWebhook))
    caches = Caches(client, Metrics(), CoreV1Beta2(), WatchScope())
    reads = ObjectReads(caches, Permissions(component.permissions))
    return lambda options: AdmissionWebhookGroup(webhook, options, reads, Metrics(), threads=4)


def quietly(api: KubeClient, obj: JSON) -> bool:
    try:
        api.create(obj)
    except (ApiError, LookupError):
        return False
    return True


def is_refused(api: KubeClient, spec: JSON) -> bool:
    try:
        api.create(machine(spec))
    except ApiError as error:
        return "is not for sale" in error.message
    return False
