"""A provider's release, and the components in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.repository import (
    KINDS_WITH_WEBHOOKS,
    ClusterctlRepository,
    dump,
    localise_webhooks,
)
from capsmith.errors import UnreadableInput
from capsmith.manifests.parse import (
    Manifest,
    list_of,
    mapping_of,
    read_substituted,
    split_documents,
    text_of,
    texts_of,
)
from capsmith.regular_files import read_regular_text

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

        Raises UnreadableInput if the file is not valid YAML, or has an object without kind or name.
        """
        path = self.out / self.file
        return parse_objects(read_asset(path, "release-yaml", "Correct the file."), path)

    @cached_property
    def label(self) -> str:
        """Return the manifests' provider label or, if missing, guess it from type and namespace.

        Generated managers also use the label as their field manager.
        """
        for each in self.of("Namespace") + self.crds:
            found = mapping_of(each, "metadata", "labels").get("cluster.x-k8s.io/provider")
            if found:
                return str(found)
        return f"{self.type}-{self.namespace.removesuffix('-system').removeprefix('cap')}"

    @property
    def name(self) -> str:
        """Return the provider's name in clusterctl."""
        return self.label.removeprefix(f"{self.type}-")

    @property
    def namespace(self) -> str:
        """Return the namespace in which the manager runs.

        Raises UnreadableInput if the file does not have exactly one Namespace.
        """
        found = self.of("Namespace")
        if len(found) != 1:
            raise UnreadableInput(
                "release-namespace",
                f"{len(found)} objects of kind Namespace",
                file=str(self.out / self.file),
                hint="Put exactly one Namespace into the components: that of the manager.",
            )
        return str(found[0]["metadata"]["name"])

    @property
    def crds(self) -> list[JSON]:
        """Return the CustomResourceDefinitions in the components file."""
        return self.of("CustomResourceDefinition")

    @property
    def listed(self) -> list[tuple[str, str]]:
        """Return (group, plural) for every kind that the manager may list cluster-wide."""
        bound = {
            text_of(each, "roleRef", "name")
            for each in self.of("ClusterRoleBinding")
            if any(self._is_manager(subject) for subject in list_of(each, "subjects"))
        }
        roles = [each for each in self.of("ClusterRole") if each["metadata"]["name"] in bound]
        return [
            (group, plural)
            for role in roles
            for rule in list_of(role, "rules")
            # A list request cannot be limited to names, so a rule with names does not permit it.
            if "list" in list_of(rule, "verbs") and "resourceNames" not in rule
            for group in texts_of(rule, "apiGroups")
            for plural in texts_of(rule, "resources")
        ]

    def _is_manager(self, subject: object) -> bool:
        """Return whether an RBAC subject is the ServiceAccount of this component's manager."""
        pods = [mapping_of(each, "spec", "template", "spec") for each in self.of("Deployment")]
        accounts = {text_of(pod, "serviceAccountName") or "default" for pod in pods}
        is_account = text_of(subject, "kind") == "ServiceAccount"
        return is_account and text_of(subject, "name") in accounts

    @property
    def concurrency_variable(self) -> str:
        """Return the name of the clusterctl variable that sets the flag --concurrency."""
        (found,) = set(_CONCURRENCY.findall((self.out / self.file).read_text()))
        return str(found)

    @property
    def converts(self) -> bool:
        """Return whether the manager serves webhooks, for conversion or for admission.

        True if an object refers to a webhook and a Deployment has a container port for webhooks.
        """
        pods = [mapping_of(each, "spec", "template", "spec") for each in self.of("Deployment")]
        containers = [each for pod in pods for each in list_of(pod, "containers")]
        ports = [port for each in containers for port in list_of(each, "ports")]
        return self.has_webhooks and any(text_of(each, "name") == _WEBHOOK_PORT for each in ports)

    @property
    def has_webhooks(self) -> bool:
        """Return whether any object configures a webhook, for conversion or for admission."""
        configured = any(each["kind"].endswith("WebhookConfiguration") for each in self.components)
        return configured or any(
            text_of(crd, "spec", "conversion", "strategy") == "Webhook" for crd in self.crds
        )

    @property
    def port_variable(self) -> str:
        """Return the name of the clusterctl variable for the webhook port.

        :meth:`ProviderRelease.add_to` adds this variable to the release.
        """
        return f"{self.type.replace('-', '_').upper()}_WEBHOOK_PORT"

    def localise(self, text: str, ca_bundle: str) -> str:
        """Return the content ``text`` of the file with webhooks that call this computer.

        Other documents stay as they are written, because their values depend on the quotes of
        variables.  Raises UnreadableInput as :func:`parse_objects` does.
        """
        path, parts = self.out / self.file, []
        # As a whole first, so that an error names the line in the file.
        parse_objects(text, path)
        for _, part in split_documents(text):
            objects = parse_objects(part, path)
            if any(each["kind"] in KINDS_WITH_WEBHOOKS for each in objects):
                changed = [
                    localise_webhooks(each, ca_bundle, self.port_variable) for each in objects
                ]
                part = dump(changed, part)
            parts.append(part)
        return "\n---\n".join(parts)

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
        files = {name: change(name, text) for name, text in self._texts()}
        for component in self.components:
            if component.has_webhooks and ca_bundle:
                text = component.localise(files[component.file], ca_bundle)
                files = {**files, component.file: text}
        for component in self.components:
            repository.add(component.label, self.version, component.file, files)

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield the name and content of each asset, without binaries, which clusterctl ignores."""
        for path in sorted(self.folder.iterdir()):
            if path.is_file():
                with suppress(UnicodeDecodeError):
                    yield path.name, path.read_text(encoding="utf-8")


def parse_objects(text: str, path: Path) -> list[JSON]:
    """Return the objects in a YAML stream; ``path`` is the file to name in errors.

    Raises UnreadableInput for invalid YAML, and for an object without kind or name.
    """
    manifests, findings = read_substituted(text, str(path), text)
    hint = "Correct the file."
    for found in findings:
        line = found.location.line
        raise UnreadableInput("release-yaml", found.message, file=str(path), line=line, hint=hint)
    for each in manifests:
        if not each.kind or not each.name:
            message = "an object without kind or metadata.name"
            raise UnreadableInput(
                "release-object", message, file=str(path), line=each.line, hint=hint
            )
    return [dict(each.document) for each in manifests]


def read_newest_version(folder: Path) -> str:
    """Return the first version of the newest release series in metadata.yaml.

    Raises UnreadableInput if the file is missing or lists no release series.
    """
    path = folder / "metadata.yaml"
    hint = "Specify the folder with the assets of a release."
    if not path.is_file():
        raise UnreadableInput("release-metadata", "no such file", file=str(path), hint=hint)
    text = read_asset(path, "release-metadata", hint)
    manifests, findings = read_substituted(text, str(path), text)
    for found in findings:
        line = found.location.line
        message = f"no valid releaseSeries: {found.message}"
        raise UnreadableInput("release-metadata", message, file=str(path), line=line, hint=hint)
    series = [version for each in manifests for version in _read_series(each)]
    if not series:
        raise UnreadableInput("release-metadata", "no releaseSeries", file=str(path), hint=hint)
    major, minor = max(series)
    return f"v{major}.{minor}.0"


def _read_series(metadata: Manifest) -> Iterator[tuple[int, int]]:
    """Yield major and minor of each release series; raise UnreadableInput if one has none."""
    for each in metadata.listing("releaseSeries"):
        numbers = [mapping_of(each).get(key) for key in ("major", "minor")]
        major, minor = (number if type(number) is int else -1 for number in numbers)
        if min(major, minor) < 0:
            raise UnreadableInput(
                "release-metadata",
                "no valid releaseSeries: major and minor must be numbers of at least 0",
                file=metadata.file,
                line=metadata.line,
                hint="Correct the file.",
            )
        yield major, minor


def read_asset(path: Path, id: str, hint: str) -> str:
    """Return the content of a release's file.

    Raises UnreadableInput, with the given id and hint, if the file is no regular one in UTF-8.
    """
    try:
        return read_regular_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInput(id, str(error), file=str(path), hint=hint) from error
