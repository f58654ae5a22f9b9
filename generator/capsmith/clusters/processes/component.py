"""A provider's release, and the components in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.repository import (
    ClusterctlRepository,
    dump,
    load,
    localise_webhooks,
)
from capsmith.errors import UnreadableInput

_WEBHOOK_PORT = "webhook-server"
_SUFFIX = "-components.yaml"
_CONCURRENCY = re.compile(r"\$\{(\w+_CONCURRENCY):=")


def find_component_types(out: Path) -> list[str]:
    """Return the provider types in a folder with release assets, infrastructure first."""
    found = [path.name.removesuffix(_SUFFIX) for path in out.glob(f"*{_SUFFIX}")]
    return sorted(found, key=lambda type: (type != "infrastructure", type))


@dataclass(frozen=True)
class ReleaseComponent:
    """A components file in a release, such as ``infrastructure-components.yaml``."""

    out: Path
    """Path to the folder with the release assets."""
    type: str
    """Provider type: ``infrastructure``, ``control-plane`` …"""

    @property
    def file(self) -> str:
        """Return the file's name, such as ``infrastructure-components.yaml``."""
        return f"{self.type}{_SUFFIX}"

    @cached_property
    def components(self) -> list[JSON]:
        """Return the objects that clusterctl installs, before variables are substituted.

        Raises UnreadableInput if the file is not valid YAML.
        """
        path = self.out / self.file
        try:
            return load(path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            hint = "Correct the file."
            raise UnreadableInput("release-yaml", str(error), file=str(path), hint=hint) from error

    @cached_property
    def label(self) -> str:
        """Return the manifests' provider label or, if missing, guess it from type and namespace.

        Generated managers also use the label as their field manager.
        """
        for each in self.of("Namespace") + self.crds:
            found = (each["metadata"].get("labels") or {}).get("cluster.x-k8s.io/provider")
            if found:
                return str(found)
        return f"{self.type}-{self.namespace.removesuffix('-system').removeprefix('cap')}"

    @property
    def name(self) -> str:
        """Return the provider's name in clusterctl."""
        return self.label.removeprefix(f"{self.type}-")

    @property
    def namespace(self) -> str:
        """Return the namespace in which the manager runs."""
        (found,) = self.of("Namespace")
        return str(found["metadata"]["name"])

    @property
    def crds(self) -> list[JSON]:
        """Return the CustomResourceDefinitions in the components file."""
        return self.of("CustomResourceDefinition")

    @property
    def listed(self) -> list[tuple[str, str]]:
        """Return (group, plural) for every kind that the manager may list cluster-wide."""
        bound = {
            each["roleRef"]["name"]
            for each in self.of("ClusterRoleBinding")
            if any(self._is_manager(subject) for subject in each.get("subjects") or [])
        }
        roles = [each for each in self.of("ClusterRole") if each["metadata"]["name"] in bound]
        rules = [rule for role in roles for rule in role.get("rules") or []]
        return [
            (group, plural)
            for rule in rules
            # A list request cannot be limited to names, so a rule with names does not permit it.
            if "list" in rule["verbs"] and "resourceNames" not in rule
            for group in rule["apiGroups"]
            for plural in rule["resources"]
        ]

    def _is_manager(self, subject: JSON) -> bool:
        """Return whether an RBAC subject is the ServiceAccount of this component's manager."""
        pods = [each["spec"]["template"]["spec"] for each in self.of("Deployment")]
        accounts = {pod.get("serviceAccountName", "default") for pod in pods}
        return bool(subject["kind"] == "ServiceAccount" and subject["name"] in accounts)

    @property
    def concurrency_variable(self) -> str:
        """Return the name of the clusterctl variable that sets the flag --concurrency."""
        (found,) = set(_CONCURRENCY.findall((self.out / self.file).read_text()))
        return str(found)

    @property
    def converts(self) -> bool:
        """Return whether the manager serves webhooks, for conversion or for admission.

        True if an object refers to a webhook and the Deployment has a container port for webhooks.
        """
        (deployment,) = self.of("Deployment")
        containers = deployment["spec"]["template"]["spec"]["containers"]
        ports = [port for each in containers for port in each.get("ports") or []]
        return self.has_webhooks and any(port.get("name") == _WEBHOOK_PORT for port in ports)

    @property
    def has_webhooks(self) -> bool:
        """Return whether any object configures a webhook, for conversion or for admission."""
        configured = any(each["kind"].endswith("WebhookConfiguration") for each in self.components)
        return configured or any(
            (crd["spec"].get("conversion") or {}).get("strategy") == "Webhook" for crd in self.crds
        )

    @property
    def port_variable(self) -> str:
        """Return the name of the clusterctl variable for the webhook port.

        :meth:`ProviderRelease.add_to` adds this variable to the release.
        """
        return f"{self.type.replace('-', '_').upper()}_WEBHOOK_PORT"

    def of(self, kind: str) -> list[JSON]:
        """Return the objects of one kind in the components file."""
        return [each for each in self.components if each["kind"] == kind]


@dataclass(frozen=True)
class ProviderRelease:
    """The assets in one release: components, metadata.yaml, templates, ClusterClasses."""

    folder: Path
    version: str
    """Semantic version, such as `v1.2.3`."""

    @cached_property
    def components(self) -> tuple[ReleaseComponent, ...]:
        """Return the components, infrastructure first. clusterctl installs each as a provider."""
        return tuple(
            ReleaseComponent(self.folder, type) for type in find_component_types(self.folder)
        )

    def component(self, type: str) -> ReleaseComponent:
        """Return the component for a provider type.

        Raises UnreadableInput if there is none.
        """
        for component in self.components:
            if component.type == type:
                return component
        raise UnreadableInput(
            "release-component",
            f"no {type}-components.yaml",
            file=str(self.folder),
            hint="Specify the folder with the assets of a release.",
        )

    def add_to(
        self,
        repository: ClusterctlRepository,
        ca_bundle: str,
        change: Callable[[str, str], str] = lambda name, text: text,
    ) -> None:
        """Add the release to a clusterctl repository, with webhooks that call this computer.

        ``ca_bundle`` is the CA certificate in base64.  If it is empty, the webhooks keep calling a
        Service in the cluster.  ``change`` receives each asset's name and content, and returns the
        content to store.
        """
        paths = [path for path in sorted(self.folder.iterdir()) if path.is_file()]
        files = {path.name: change(path.name, path.read_text()) for path in paths}
        for component in self.components:
            if component.has_webhooks and ca_bundle:
                documents: list[JSON] = load(files[component.file])
                local = [
                    localise_webhooks(each, ca_bundle, component.port_variable)
                    for each in documents
                ]
                files = {**files, component.file: dump(local)}
        for component in self.components:
            repository.add(component.label, self.version, component.file, files)


def read_newest_version(folder: Path) -> str:
    """Return the first version of the newest release series in metadata.yaml.

    Raises UnreadableInput if the file is missing or lists no release series.
    """
    path = folder / "metadata.yaml"
    hint = "Specify the folder with the assets of a release."
    if not path.is_file():
        raise UnreadableInput("release-metadata", "no such file", file=str(path), hint=hint)
    try:
        (document,) = load(path.read_text(encoding="utf-8"))
        series = document["releaseSeries"]
        found = [(int(each["major"]), int(each["minor"])) for each in series]
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        message = f"no valid releaseSeries: {error}"
        raise UnreadableInput("release-metadata", message, file=str(path), hint=hint) from error
    if not found:
        raise UnreadableInput("release-metadata", "no releaseSeries", file=str(path), hint=hint)
    major, minor = max(found)
    return f"v{major}.{minor}.0"
