"""Check a CRD except for its schemas: names, versions, conversion, columns, subresources.

Follows ``ValidateCustomResourceDefinition``.  Expects a CRD whose parts have the right types.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capsmith.judge.checks.apiextensions.model import (
    Fault,
    is_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
)
from capsmith.judge.checks.apiextensions.selectable import find_selectable_faults
from capsmith.manifests.go_url import parse_url
from capsmith.manifests.parse import list_of, mapping_of, text_of
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.quote import quote

Document = Mapping[str, Any]
_PROTECTED = ("k8s.io", "kubernetes.io")
_APPROVAL = "api-approved.kubernetes.io"
_LONGEST_WARNING = 256
_BASE64 = re.compile("(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_PORTS = range(1, 65536)


@dataclass(frozen=True, slots=True)
class Values:
    """The values that the API server accepts in the fields of a CRD."""

    api_version: str
    """API version of CRDs."""
    scopes: tuple[str, ...]
    """Values of ``spec.scope``."""
    strategies: tuple[str, ...]
    """Values of ``spec.conversion.strategy``."""
    review_versions: tuple[str, ...]
    """ConversionReview versions. A conversion webhook must accept at least one of them."""
    column_types: tuple[str, ...]
    """Types of printer columns."""
    column_formats: tuple[str, ...]
    """Formats of printer columns."""
    selectable_types: tuple[str, ...]
    """Types of fields that can be used in field selectors."""
    most_selectable: int
    """Maximum number of selectable fields per version."""


def find_definition_faults(crd: Document, values: Values) -> Iterator[Fault]:
    """Yield the reasons why the API server would reject a CRD, apart from its schemas."""
    if crd.get("apiVersion") != values.api_version:
        message = f"apiVersion is {crd.get('apiVersion')!r}; expected {values.api_version!r}"
        yield Fault(("apiVersion",), message)
        return
    yield from _metadata(crd)
    yield from _group(crd)
    if text_of(crd, "spec", "scope") not in values.scopes:
        yield Fault(("spec", "scope"), f"scope must be one of {', '.join(values.scopes)}")
    if mapping_of(crd, "spec").get("preserveUnknownFields") is True:
        message = "preserveUnknownFields cannot be true"
        yield Fault(("spec", "preserveUnknownFields"), message)
    yield from _names(mapping_of(crd, "spec", "names"))
    yield from _versions(list_of(crd, "spec", "versions"), values)
    yield from _conversion(mapping_of(crd, "spec").get("conversion"), values)


def _metadata(crd: Document) -> Iterator[Fault]:
    metadata = mapping_of(crd, "metadata")
    name = text_of(metadata, "name")
    group = text_of(crd, "spec", "group")
    plural = text_of(crd, "spec", "names", "plural")
    if name != f"{plural}.{group}" or not is_subdomain(name):
        message = f"the name is {quote(name)}; expected {quote(f'{plural}.{group}')}"
        yield Fault(("metadata", "name"), message)
    for key, value in mapping_of(metadata, "labels").items():
        if not is_qualified_name(key) or not is_label_value(value or ""):
            yield Fault(("metadata", "labels", key), f"{quote(key)} is not a valid label")
    for key in mapping_of(metadata, "annotations"):
        if not is_qualified_name(key.lower()):
            yield Fault(("metadata", "annotations", key), f"{quote(key)} is not a valid key")


def _group(crd: Document) -> Iterator[Fault]:
    group, path = text_of(crd, "spec", "group"), ("spec", "group")
    if not is_subdomain(group) or "." not in group:
        yield Fault(path, f"group {quote(group)} is not a DNS subdomain with a dot")
    if any(group == each or group.endswith(f".{each}") for each in _PROTECTED):
        approval = text_of(crd, "metadata", "annotations", _APPROVAL)
        link = parse_url(approval)
        is_link = link is not None and link.scheme and link.host
        if not approval.startswith("unapproved") and not is_link:
            yield Fault(path, f"group {quote(group)} requires the annotation {_APPROVAL}")


def _names(names: Document) -> Iterator[Fault]:
    path: Path = ("spec", "names")
    kind, list_kind = text_of(names, "kind"), text_of(names, "listKind")
    for key, text in (
        ("plural", text_of(names, "plural")),
        ("singular", text_of(names, "singular") or kind.lower()),
        ("kind", kind.lower()),
        ("listKind", (list_kind or f"{kind}List").lower()),
    ):
        if not is_label(text):
            yield Fault((*path, key), f"{key} {quote(text)} is not a DNS label")
    for key in ("shortNames", "categories"):
        for number, text in enumerate(list_of(names, key)):
            if not is_label(text or ""):
                yield Fault((*path, key, number), f"{quote(text or '')} is not a DNS label")
    if kind and kind == list_kind:
        yield Fault((*path, "listKind"), "kind and listKind are the same")


def _versions(versions: Sequence[Any], values: Values) -> Iterator[Fault]:
    path: Path = ("spec", "versions")
    names = [text_of(version, "name") for version in versions]
    for name, count in Counter(names).items():
        if count > 1:
            yield Fault(path, f"version {name} occurs {count} times")
    stored = [name for name, version in zip(names, versions, strict=True) if version.get("storage")]
    if len(stored) != 1:
        yield Fault(
            path, f"exactly one version must be stored; found {', '.join(stored) or 'none'}"
        )
    for number, version in enumerate(versions):
        for fault in _version(version, values):
            yield Fault((*path, number, *fault.path), f"version {names[number]}: {fault.message}")
    # Internally, the API server keeps what all versions share apart from them, and looks for
    # schemas and selectable fields only in the same place.
    fields = [list_of(version, "selectableFields") for version in versions]
    schemas = [mapping_of(version).get("schema") for version in versions]
    if any(fields) and _are_equal(fields) != _are_equal(schemas):
        what = "either both the schemas and the selectableFields of all versions are equal, or none"
        yield Fault(path, f"{what} of the two")


def _are_equal(parts: Sequence[Any]) -> bool:
    return all(part == parts[0] for part in parts)


def _version(version: Document, values: Values) -> Iterator[Fault]:
    if not is_label(text_of(version, "name")):
        yield Fault(("name",), "the name is not a DNS label")
    schema = mapping_of(version, "schema").get("openAPIV3Schema")
    if schema is None:
        yield Fault(("schema",), "openAPIV3Schema is missing")
    yield from _warning(version)
    yield from _scale(mapping_of(version, "subresources"))
    for number, column in enumerate(list_of(version, "additionalPrinterColumns")):
        for message in _column(mapping_of(column), values):
            yield Fault(("additionalPrinterColumns", number), message)
    fields = list_of(version, "selectableFields")
    for message in find_selectable_faults(
        fields, mapping_of(schema), values.selectable_types, values.most_selectable
    ):
        yield Fault(("selectableFields",), message)


def _warning(version: Document) -> Iterator[Fault]:
    warning = version.get("deprecationWarning")
    path = ("deprecationWarning",)
    if warning is None:
        return
    if version.get("deprecated") is not True:
        yield Fault(path, "deprecationWarning requires deprecated: true")
    if not 0 < len(warning.encode()) <= _LONGEST_WARNING or not warning.isprintable():
        message = f"deprecationWarning must have 1 to {_LONGEST_WARNING} printable characters"
        yield Fault(path, message)


def _scale(subresources: Document) -> Iterator[Fault]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for key, roots, is_required in (
        ("specReplicasPath", (".spec.",), True),
        ("statusReplicasPath", (".status.",), True),
        ("labelSelectorPath", (".spec.", ".status."), False),
    ):
        path = text_of(scale, key)
        if (path or is_required) and not path.startswith(roots):
            message = f"{key} is {quote(path)}; expected a path below {' or '.join(roots)}"
            yield Fault(("subresources", "scale", key), message)


def _column(column: Document, values: Values) -> Iterator[str]:
    name = text_of(column, "name")
    if not name:
        yield "a printer column has no name"
    if text_of(column, "type") not in values.column_types:
        yield f"column {quote(name)}: type must be one of {', '.join(values.column_types)}"
    format = text_of(column, "format")
    if format and format not in values.column_formats:
        yield f"column {quote(name)}: format must be one of {', '.join(values.column_formats)}"
    if not text_of(column, "jsonPath").startswith("."):
        yield f"column {quote(name)}: jsonPath must start with a dot"


def _conversion(conversion: Any, values: Values) -> Iterator[Fault]:
    path: Path = ("spec", "conversion")
    if conversion is None:
        return
    strategy, webhook = text_of(conversion, "strategy"), conversion.get("webhook")
    client = mapping_of(webhook).get("clientConfig")
    versions = list_of(webhook, "conversionReviewVersions")
    if strategy not in values.strategies:
        yield Fault((*path, "strategy"), f"strategy must be one of {', '.join(values.strategies)}")
    if strategy != "Webhook":
        if client is not None or versions:
            yield Fault((*path, "webhook"), "webhook requires the strategy Webhook")
        return
    if client is None:
        yield Fault((*path, "webhook"), "the strategy Webhook requires webhook.clientConfig")
    else:
        for fault in find_client_faults(client):
            yield Fault((*path, "webhook", "clientConfig", *fault.path), fault.message)
    where = (*path, "webhook", "conversionReviewVersions")
    if not set(versions) & set(values.review_versions):
        yield Fault(
            where, f"conversionReviewVersions has none of {', '.join(values.review_versions)}"
        )
    if len(set(versions)) != len(versions) or not all(is_label(each or "") for each in versions):
        yield Fault(where, "conversionReviewVersions must be different names of versions")


def find_client_faults(client: Document) -> Iterator[Fault]:
    """Yield the reasons why the API server would refuse how a webhook is reached."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield Fault((), "clientConfig must have either a url or a service")
        return
    if url is not None:
        parts = parse_url(url) if isinstance(url, str) else None
        if parts is None or parts.scheme != "https" or not parts.host or any(parts[2:]):
            yield Fault(("url",), f"{quote(str(url))} is not of the form https://host[/path]")
        return
    for key in ("namespace", "name"):
        if not text_of(service, key):
            yield Fault(("service", key), f"the service has no {key}")
    port = mapping_of(service).get("port")
    if port is not None and port not in _PORTS:
        yield Fault(("service", "port"), f"port {port} is not a port number")
    path = text_of(service, "path")
    steps = path.removeprefix("/").removesuffix("/").split("/")
    if path not in ("", "/") and not (path[0] == "/" and all(map(is_subdomain, steps))):
        yield Fault(("service", "path"), f"{quote(path)} is not a path of DNS names")


def is_base64(text: str) -> bool:
    """Return whether Go can decode ``text`` as base64. Line breaks are ignored."""
    return _BASE64.fullmatch(text.replace("\n", "").replace("\r", "")) is not None
