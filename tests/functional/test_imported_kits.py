"""Repositories of imported CRDs pass their own tests and lint, whatever fields the CRDs lack."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capsmith.commands.generate import generate
from tests.repositories import run_module
from tests.unit.importing.crds import crd, imported, provider

_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_TIME = {"type": "string", "format": "date-time"}


def _list(**properties: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


_CONDITIONS = _list(
    **dict.fromkeys(("type", "status", "reason", "message"), _TEXT), lastTransitionTime=_TIME
)
_WITHOUT_MESSAGES = _list(**dict.fromkeys(("type", "status", "reason"), _TEXT))
_NAMES = {"matchingClusters": _list(name=_TEXT, kind=_TEXT)}
"""The names of clusters, and nothing else about them."""


def _addon(**status: Any) -> list[dict[str, Any]]:
    """Return an add-on with these fields in its status."""
    return [
        crd(
            "AcmeChart",
            group="addons.cluster.x-k8s.io",
            spec={
                "chart": _TEXT,
                "clusterSelector": {"type": "object", "properties": {"matchLabels": _TEXTS}},
            },
            around={"required": ["chart"]},
            status=status,
        )
    ]


def _address_pool() -> list[dict[str, Any]]:
    """Return a pool of addresses that counts them under a name of its own."""
    count = {"type": "integer", "format": "int32"}
    counts = {"type": "object", "required": ["taken"], "properties": {"taken": count}}
    return [
        crd(
            "AcmeIPPool",
            group="ipam.cluster.x-k8s.io",
            spec={"network": _TEXT},
            status={"conditions": _CONDITIONS, "addresses": counts},
        )
    ]


def _address_pool_without_status() -> list[dict[str, Any]]:
    """Return a pool of addresses whose CRD has nothing but a spec."""
    pool = crd("AcmeIPPool", group="ipam.cluster.x-k8s.io", spec={"network": _TEXT})
    (version,) = pool["spec"]["versions"]
    del version["schema"]["openAPIV3Schema"]["properties"]["status"], version["subresources"]
    return [pool]


def _pool() -> list[dict[str, Any]]:
    """Return the CRDs of a pool whose machines are reported without provider ids."""
    pool = crd(
        "AcmeMachinePool",
        spec={"providerIDList": {"type": "array", "items": _TEXT}},
        status={
            "ready": {"type": "boolean"},
            "replicas": {"type": "integer", "format": "int32"},
            "instances": _list(instanceID=_TEXT, version=_TEXT),
        },
    )
    return [*provider(), pool]


def _managed() -> list[dict[str, Any]]:
    """Return the CRD of a managed control plane that does not report its version."""
    status = {key: {"type": "boolean"} for key in ("ready", "initialized")}
    group = "controlplane.cluster.x-k8s.io"
    return [
        *provider(),
        crd("AcmeControlPlane", group=group, spec={"version": _TEXT}, status=status),
    ]


def _control_plane() -> list[dict[str, Any]]:
    """Return a control plane without conditions and without the subresource scale."""
    count = {"type": "integer", "format": "int32"}
    reference = {"type": "object", "properties": dict.fromkeys(("apiGroup", "kind", "name"), _TEXT)}
    spec = {"type": "object", "properties": {"infrastructureRef": reference}}
    status = dict.fromkeys(("replicas", "readyReplicas", "upToDateReplicas"), count)
    initialized = {"controlPlaneInitialized": {"type": "boolean"}}
    plane = crd(
        "AcmeControlPlane",
        group="controlplane.cluster.x-k8s.io",
        spec={
            "version": _TEXT,
            "replicas": count,
            "machineTemplate": {"type": "object", "properties": {"spec": spec}},
        },
        status={
            **status,
            "selector": _TEXT,
            "initialization": {"type": "object", "properties": initialized},
        },
    )
    return [*provider(), plane]


def _resource_without_reasons() -> list[dict[str, Any]]:
    """Return a further kind whose conditions have only a type and a status."""
    conditions = _list(**dict.fromkeys(("type", "status"), _TEXT))
    return [*provider(), crd("AcmeImage", spec={"url": _TEXT}, status={"conditions": conditions})]


def _managed_with_machines() -> list[dict[str, Any]]:
    """Return a managed control plane that refers to infrastructure, but not as its contract."""
    reference = dict.fromkeys(("apiVersion", "kind", "name", "namespace"), _TEXT)
    place = {"infrastructureRef": {"type": "object", "properties": reference}}
    machines = {"type": "object", "required": ["infrastructureRef"], "properties": place}
    plane = crd(
        "AcmeControlPlane",
        group="controlplane.cluster.x-k8s.io",
        spec={
            "version": _TEXT,
            "replicas": {"type": "integer", "format": "int32"},
            "machineTemplate": machines,
        },
        status={
            "externalManagedControlPlane": {"type": "boolean"},
            "replicas": {"type": "integer", "format": "int32"},
        },
        around={"required": ["machineTemplate"]},
    )
    return [*provider(), plane]


@pytest.mark.parametrize(
    ("crds", "tests"),
    [
        (_addon(conditions=_CONDITIONS, **_NAMES), "TestAddons or TestAddonFaults"),
        (_addon(conditions=_CONDITIONS), "TestAddons or TestAddonFaults"),
        (_addon(), "TestAddons or TestAddonFaults"),
        (_addon(conditions=_WITHOUT_MESSAGES), "TestAddons"),
        (_pool(), "TestMachinePoolUpgrade"),
        (_address_pool(), "TestAddressPools or TestAddressFaults"),
        (_address_pool_without_status(), "TestAddressPools or TestAddressFaults"),
        (_managed(), "TestManagedControlPlane"),
        (_control_plane(), "created_and_deleted or only_machine_is_not_replaced"),
        (_resource_without_reasons(), "TestResources or crash_at_any_write"),
    ],
    ids=[
        *("addon", "addon-conditions", "addon-without-status"),
        *("addon-without-messages", "pool", "address-pool"),
        "address-pool-without-status",
        *("managed", "control-plane", "resource-without-reasons"),
    ],
)
def test_fields_that_a_crd_lacks_are_not_expected(
    crds: list[dict[str, Any]], tests: str, tmp_path: Path
) -> None:
    _check_tests(_generate(tmp_path, *crds), tests)


def test_templates_refer_to_infrastructure_where_the_crd_does(tmp_path: Path) -> None:
    repository = _generate(tmp_path, *_managed_with_machines())
    reference = "  machineTemplate:\n    infrastructureRef:\n      apiVersion: "
    assert reference in (repository / "templates" / "cluster-template.yaml").read_text()
    _check_tests(repository, "TestTemplates or TestSamples")


def test_converted_types_with_long_names_pass_lint(tmp_path: Path) -> None:
    names = ("workloadAffinity", "preferredDuringSchedulingIgnoredDuringExecution")
    schema: dict[str, Any] = _list(key=_TEXT)
    for name in (*names, *names):
        schema = {"type": "object", "required": [name], "properties": {name: schema}}
    crds = provider(spec={"terms": schema})
    for each in crds:
        (version,) = each["spec"]["versions"]
        older = copy.deepcopy({**version, "name": "v1alpha1", "storage": False})
        each["spec"]["versions"].append(older)
    for each in crds[2:]:
        older = each["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        if "template" in older["properties"]:
            older = older["properties"]["template"]["properties"]["spec"]
        older["properties"]["zone"] = _TEXT
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
        cwd=_generate(tmp_path, *crds),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def _generate(folder: Path, *crds: dict[str, Any]) -> Path:
    described = folder / "provider.yaml"
    described.write_text(imported(*crds).text)
    generate(described, folder / "repository")
    return folder / "repository"


def _check_tests(repository: Path, selected: str) -> None:
    done = run_module(repository, "pytest", "-q", "-p", "no:cacheprovider", "-k", selected)
    assert done.returncode == 0, done.stdout[-10_000:]
