"""Bootstrap data as stored in the API: configurations, Secrets, the lock."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import yaml

from capsmith.clusters.processes.kube import JSON
from tests.e2e.releases import KUBERNETES
from tests.e2e.scenario import Scenario

CONTROL_PLANE = "cluster.x-k8s.io/control-plane"


def add_pool(scenario: Scenario) -> str:
    """Create a MachinePool and its configuration, named as core would name them."""
    name = f"{scenario.name}-pool"
    api_version, kind = scenario.stack.provider.bootstrap_kind or ("", "")
    metadata = {
        "name": name,
        "namespace": scenario.namespace,
        "labels": {"cluster.x-k8s.io/cluster-name": scenario.name},
    }
    config: JSON = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}
    scenario.client.create(config)
    (machine,) = scenario.machines()
    infrastructure = {**machine["spec"]["infrastructureRef"], "name": "nowhere"}
    template = {
        "clusterName": scenario.name,
        "version": KUBERNETES,
        "bootstrap": {"configRef": scenario.stack.dialect.reference(config)},
        "infrastructureRef": infrastructure,
    }
    spec = {"clusterName": scenario.name, "replicas": 1, "template": {"spec": template}}
    scenario.client.create(
        {"apiVersion": scenario.core, "kind": "MachinePool", "metadata": metadata, "spec": spec}
    )
    return name


def configurations(
    scenario: Scenario, wanted: Callable[[JSON], bool] = lambda each: True
) -> list[JSON]:
    """Return the scenario's configurations for which ``wanted`` is true; by default all."""
    kind = scenario.stack.provider.bootstrap_kind
    assert kind is not None
    found = scenario.client.list(*kind, scenario.namespace)
    return [each for each in found if wanted(each)]


def config_of_name(scenario: Scenario, name: str) -> JSON:
    """Return the configuration with this name."""
    (found,) = configurations(scenario, lambda each: bool(each["metadata"]["name"] == name))
    return found


def config_template(scenario: Scenario) -> JSON:
    """Return the template from which the workers' configurations are cloned."""
    reference = deployment_of(scenario)["spec"]["template"]["spec"]["bootstrap"]["configRef"]
    version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
    return scenario.client.get(version, kind, name, scenario.namespace)


def deployment_of(scenario: Scenario) -> JSON:
    """Return the MachineDeployment of the workers."""
    (found,) = scenario.client.list(scenario.core, "MachineDeployment", scenario.namespace)
    return found


def data_secrets(scenario: Scenario) -> dict[str, JSON]:
    """Return the Secrets with bootstrap data, by name."""
    labels = {"cluster.x-k8s.io/cluster-name": scenario.name}
    found = scenario.client.list("v1", "Secret", scenario.namespace, labels)
    return {each["metadata"]["name"]: each for each in found if "format" in each["data"]}


def locks(scenario: Scenario) -> list[str]:
    """Return the names of the init locks; at most one exists."""
    found = scenario.client.list("v1", "ConfigMap", scenario.namespace)
    names = [each["metadata"]["name"] for each in found]
    return [name for name in names if name == f"{scenario.name}-lock"]


def control_plane_names(scenario: Scenario) -> set[str]:
    """Return the names of the control plane machines."""
    return {
        machine["metadata"]["name"]
        for machine in scenario.machines()
        if CONTROL_PLANE in machine["metadata"]["labels"]
    }


def value_of(secret: JSON) -> str:
    """Return the bootstrap data in a Secret."""
    return base64.b64decode(secret["data"]["value"]).decode()


def settings_of(value: str) -> dict[str, Any]:
    """Return the node settings in a cloud-config."""
    files = yaml.safe_load(value)["write_files"]
    (text,) = (file["content"] for file in files if file["path"].endswith("/node.json"))
    settings: dict[str, Any] = json.loads(text)
    return settings
