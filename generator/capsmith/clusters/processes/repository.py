"""A local clusterctl repository that holds releases of core and other providers.

The layout is defined by clusterctl: `<base>/<manifest label>/<version>/<file>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.tools import Toolbox, core_releases
from capsmith.manifests.go_yaml import STRING, GoDumper
from capsmith.manifests.parse import at, list_of, refuse_depth, text_of

WEBHOOK_PORT_VARIABLE = "CAPI_WEBHOOK_PORT"

_WEBHOOK_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CRD = "CustomResourceDefinition"
KINDS_WITH_WEBHOOKS = frozenset({*_WEBHOOK_CONFIGURATIONS, _CRD})
"""Kinds that :func:`localise_webhooks` changes."""

_TYPES = {
    "cluster-api": "CoreProvider",
    "bootstrap": "BootstrapProvider",
    "control-plane": "ControlPlaneProvider",
    "infrastructure": "InfrastructureProvider",
    "ipam": "IPAMProvider",
    "runtime-extension": "RuntimeExtensionProvider",
    "addon": "AddonProvider",
}


@dataclass(frozen=True)
class RepositoryEntry:
    """One provider's release in a local clusterctl repository."""

    label: str
    """Provider label, such as `infrastructure-docker`."""
    version: str
    components: Path
    """Path to the components file."""

    @property
    def name(self) -> str:
        """Return the provider's name in clusterctl."""
        for type in _TYPES:
            if self.label.startswith(f"{type}-"):
                return self.label.removeprefix(f"{type}-")
        return self.label

    @property
    def type(self) -> str:
        """Return the type in clusterctl's configuration, such as `InfrastructureProvider`."""
        return _TYPES[self.label.removesuffix(f"-{self.name}")]


class ClusterctlRepository:
    """A folder of provider releases, and a clusterctl configuration that refers to them."""

    def __init__(self, base: Path) -> None:
        """Use the folder ``base``. Providers in an existing configuration there are kept."""
        self.base = base
        self.config = base / "clusterctl.yaml"

    @property
    def entries(self) -> list[RepositoryEntry]:
        """Return each provider's most recently added release."""
        return list(self._entries().values())

    def add(self, label: str, version: str, components: str, files: dict[str, str]) -> None:
        """Add a release that consists of the given files.

        `files` holds each file's content by name; `components` is the name of the components file.
        """
        folder = self.base / label / version
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        self._add(RepositoryEntry(label, version, folder / components))

    def add_core(self, tools: Toolbox, series: str, pki: Pki) -> None:
        """Add core's release from a release series, with webhooks that call this computer.

        Raises ToolsUnavailable if the components that were built are damaged.
        """
        folder = tools.folders[f"capi-{series}"]
        documents = _load_built(folder / "core-components.yaml")
        files = {
            "core-components.yaml": dump(
                [localise_webhooks(each, pki.ca_bundle) for each in documents]
            ),
            "metadata.yaml": (folder / "metadata.yaml").read_text(),
        }
        self.add("cluster-api", core_releases()[series], "core-components.yaml", files)

    def _add(self, entry: RepositoryEntry) -> None:
        """Make a release the latest release of its provider; other releases stay available."""
        entries = {**self._entries(), entry.label: entry}
        providers = [
            {"name": each.name, "type": each.type, "url": each.components.as_uri()}
            for each in entries.values()
        ]
        self._configure("providers", providers)

    def set_cert_manager(self, version: str, manifest: Path) -> None:
        """Configure clusterctl to install a cert-manager release from a file."""
        folder = self.base / "cert-manager" / version
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / "cert-manager.yaml"
        target.write_bytes(manifest.read_bytes())
        self._configure("cert-manager", {"version": version, "url": target.as_uri()})

    def _configure(self, key: str, value: object) -> None:
        config = {**self._read(), key: value}
        self.config.write_text(yaml.safe_dump(config))

    def _read(self) -> JSON:
        return yaml.safe_load(self.config.read_text()) if self.config.exists() else {}

    def _entries(self) -> dict[str, RepositoryEntry]:
        """Read the configuration, to which another repository object may have added entries."""
        found = {}
        for each in self._read().get("providers", []):
            components = Path(unquote(urlsplit(each["url"]).path))
            label, version = components.parts[-3:-1]
            found[label] = RepositoryEntry(label, version, components)
        return found


def localise_webhooks(document: JSON, ca_bundle: str, port: str = WEBHOOK_PORT_VARIABLE) -> JSON:
    """Make an object's webhooks call 127.0.0.1, and return the object.

    Services do not resolve outside the cluster.  The object is modified in place.  The port is a
    clusterctl variable, so that one repository serves several management clusters.
    """
    kind = document["kind"]
    if kind in _WEBHOOK_CONFIGURATIONS:
        for webhook in list_of(document, "webhooks"):
            _localise_client(at(webhook, "clientConfig"), ca_bundle, port)
    elif kind == _CRD:
        client = at(document, "spec", "conversion", "webhook", "clientConfig")
        _localise_client(client, ca_bundle, port)
    else:
        return document
    # No cert-manager runs here to replace the CA that is written above.
    annotations = at(document, "metadata", "annotations")
    if isinstance(annotations, dict):
        annotations.pop("cert-manager.io/inject-ca-from", None)
    return document


def dump(documents: list[JSON], original: str = "") -> str:
    """Format documents as a YAML stream.

    Strings with clusterctl variables that have quotes in ``original``, the text of the documents,
    keep them.  Without quotes, ``${X:=true}`` would become a boolean.
    """
    quoted = _find_quoted(original)
    kept = [_keep_quotes(each, quoted) for each in documents] if quoted else documents
    return yaml.dump_all(kept, Dumper=_Dumper, sort_keys=False)


class _Quoted(str):
    """A string that is written in quotes."""


class _Dumper(GoDumper):
    """Writes strings that had quotes in quotes."""


def _represent_quoted(dumper: Any, value: _Quoted) -> Any:
    return dumper.represent_scalar(STRING, str(value), style='"')


_Dumper.add_representer(_Quoted, _represent_quoted)


def _find_quoted(text: str) -> set[str]:
    """Return the strings with variables that are in quotes everywhere in a YAML stream."""
    quoted, plain = set[str](), set[str]()
    for token in yaml.scan(text, Loader=yaml.CSafeLoader) if "${" in text else ():
        if isinstance(token, yaml.ScalarToken) and "${" in token.value:
            (plain if token.plain else quoted).add(token.value)
    return quoted - plain


def _keep_quotes(value: Any, quoted: set[str]) -> Any:
    if isinstance(value, dict):
        return {key: _keep_quotes(each, quoted) for key, each in value.items()}
    if isinstance(value, list):
        return [_keep_quotes(each, quoted) for each in value]
    return _Quoted(value) if isinstance(value, str) and value in quoted else value


def _localise_client(client: Any, ca_bundle: str, port: str) -> None:
    """Make a webhook's client configuration call 127.0.0.1 if it names a Service."""
    if not isinstance(client, dict) or "service" not in client:
        return
    path = text_of(client.pop("service"), "path")
    client["url"] = f"https://127.0.0.1:${{{port}:=9443}}{path}"
    client["caBundle"] = ca_bundle


def _load_built(file: Path) -> list[JSON]:
    try:
        return load(file.read_text())
    # PyYAML's constructors raise the others for a value that does not have the form of its tag.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        message = f"the components file {file.name} cannot be read: {error}"
        hint = f"Remove the folder {file.parent}; the next run builds it again."
        raise ToolsUnavailable(message, hint) from error


def load(text: str) -> list[JSON]:
    """Parse a YAML stream. Empty documents are left out.

    Raises yaml.YAMLError for invalid YAML, and ValueError for a document that is nested too deeply.
    """
    refuse_depth(text)
    return [each for each in yaml.load_all(text, Loader=yaml.CSafeLoader) if each]
