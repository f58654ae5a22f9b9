"""One component of the provider under test: what clusterctl installs as one provider."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .kube import JSON
from .repository import load

_WEBHOOK_PORT = "webhook-server"
_SUFFIX = "-components.yaml"
_CONCURRENCY = re.compile(r"\$\{(\w+_CONCURRENCY):=")


def component_types(out: Path) -> list[str]:
    """The types of provider in a release, infrastructure first."""
    found = [path.name.removesuffix(_SUFFIX) for path in out.glob(f"*{_SUFFIX}")]
    return sorted(found, key=lambda type: (type != "infrastructure", type))


@dataclass(frozen=True)
class ComponentUnderTest:
    """A components file of a release."""

    out: Path
    """The release artefacts."""
    type: str
    """``infrastructure``, ``control-plane`` …"""

    @property
    def file(self) -> str:
        """Name of the components file."""
        return f"{self.type}{_SUFFIX}"

    @cached_property
    def components(self) -> list[JSON]:
        """Everything that clusterctl installs, variables not yet replaced."""
        return load((self.out / self.file).read_text())

    @cached_property
    def label(self) -> str:
        """The manifest label: what clusterctl calls it, and what it signs its writes with."""
        (namespace,) = self.of("Namespace")
        return str(namespace["metadata"]["labels"]["cluster.x-k8s.io/provider"])

    @property
    def name(self) -> str:
        """The name for clusterctl."""
        return self.label.removeprefix(f"{self.type}-")

    @property
    def namespace(self) -> str:
        """Where its manager is."""
        (found,) = self.of("Namespace")
        return str(found["metadata"]["name"])

    @property
    def crds(self) -> list[JSON]:
        """The kinds that it brings along."""
        return self.of("CustomResourceDefinition")

    @property
    def listed(self) -> list[tuple[str, str]]:
        """Group and plural of what its manager may list in the whole cluster, under any name."""
        bound = {each["roleRef"]["name"] for each in self.of("ClusterRoleBinding")}
        roles = [each for each in self.of("ClusterRole") if each["metadata"]["name"] in bound]
        rules = [rule for role in roles for rule in role.get("rules") or []]
        return [
            (group, plural)
            for rule in rules
            if "list" in rule["verbs"] and "resourceNames" not in rule
            for group in rule["apiGroups"]
            for plural in rule["resources"]
        ]

    @property
    def concurrency_variable(self) -> str:
        """The variable of clusterctl for the flag --concurrency."""
        (found,) = set(_CONCURRENCY.findall((self.out / self.file).read_text()))
        return str(found)

    @property
    def converts(self) -> bool:
        """Whether the API server has its manager convert objects."""
        (deployment,) = self.of("Deployment")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        served = any(port["name"] == _WEBHOOK_PORT for port in container["ports"])
        return served and self.has_webhooks

    @property
    def has_webhooks(self) -> bool:
        """Whether its kinds name one, be it of earlier releases."""
        return any(crd["spec"]["conversion"]["strategy"] == "Webhook" for crd in self.crds)

    @property
    def port_variable(self) -> str:
        """The variable of clusterctl for the port on which it converts; the tests' own."""
        return f"{self.type.replace('-', '_').upper()}_WEBHOOK_PORT"

    def of(self, kind: str) -> list[JSON]:
        """The objects of a kind."""
        return [each for each in self.components if each["kind"] == kind]
