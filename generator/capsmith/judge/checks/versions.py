"""Check CRD versions: contract labels, conversion, and loss of fields.

Contract labels must be present, correct, served, and consistent with metadata.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.crds import OPEN, Crd, CrdVersion, describe, read_types, walk_schema
from capsmith.manifests.parse import mapping_of
from capsmith.manifests.series import find_series, list_metadata, read_series
from capsmith.provider.versions import rank_api_version

_CONTRACT_LABEL = re.compile(r"cluster\.x-k8s\.io/(v1beta1|v1beta2)")
_VERSION = re.compile(r"v[0-9]{1,9}((alpha|beta)[0-9]{1,9})?")
_NEAR_MISS = re.compile(r".*cluster\.x-k8s\.io/v[0-9].*")


@dataclass(frozen=True, slots=True)
class KnownContracts:
    """The contract versions that capsmith knows, oldest first."""

    contracts: tuple[str, ...]


@check("contract-label-there", KnownContracts)
def check_contract_label_there(context: Context, params: KnownContracts) -> Iterator[Violation]:
    """GEN-01, ER-06: Each CRD that core uses has a contract label."""
    own = context.contract.label
    known = [f"{own.rpartition('/')[0]}/{each}" for each in reversed(params.contracts)]
    for crd in context.crds():
        if crd.labelled(own):
            continue
        # A CRD that lacks all labels has one violation, and not one for each contract version.
        labels = [own] if any(map(crd.labelled, known)) else known
        names = "_".join(version.name for version in crd.versions if version.served)
        yield Violation(
            crd.manifest,
            f"{crd.kind}: label {_explain_missing(crd, labels)}; expected {names!r}",
            path=("metadata", "labels", *(labels if len(labels) == 1 else ())),
        )


def _explain_missing(crd: Crd, labels: Sequence[str]) -> str:
    """Return why a CRD has none of the labels."""
    for label in labels:
        if label in crd.labels:
            return f"{label} is {crd.labels[label]!r}, which does not name a version"
        if label in crd.annotations:
            return f"{label} is an annotation, but must be a label"
    others = sorted(key for key in crd.labels if _NEAR_MISS.fullmatch(key))
    found = f"; found: {', '.join(others)}" if others else ""
    return f"{' or '.join(labels)} is missing{found}"


class Which(StrEnum):
    """Selects which of the versions in a contract label to check."""

    CHOSEN = "chosen"
    """The greatest version, which is the one that core uses (GEN-03)."""
    OTHERS = "others"


@dataclass(frozen=True, slots=True)
class Labelled:
    """The versions in a contract label that the check applies to."""

    which: Which


@check("contract-label-served", Labelled)
def check_contract_label_served(context: Context, params: Labelled) -> Iterator[Violation]:
    """GEN-02, GEN-16: The API versions in a contract label are served.

    The parameter selects either the version that core uses or all the others.
    """
    for crd in context.crds():
        served = [version.name for version in crd.versions if version.served]
        names = crd.labelled(context.contract.label)
        # Core only uses the highest version in the label, so this is the worse violation if that
        # one is not served.
        chosen = max(names, key=_order, default="")
        for name in names:
            if name not in served and (name == chosen) == (params.which is Which.CHOSEN):
                known = name in [version.name for version in crd.versions]
                wrong = "which is not served" if known else "which is not a version of the CRD"
                yield Violation(
                    crd.manifest,
                    f"{crd.kind}: label {context.contract.label} names {name!r}, {wrong}; "
                    f"served: {', '.join(served) or 'none'}",
                    path=("metadata", "labels", context.contract.label),
                )


@check("contract-label-exclusive")
def check_contract_label_exclusive(context: Context) -> Iterator[Violation]:
    """GEN-06: Each API version is listed under only one contract version."""
    for crd in context.crds():
        seen: dict[str, str] = {}
        for label in _contract_labels(crd):
            for name in crd.labelled(label):
                other = seen.setdefault(name, label)
                if other != label:
                    yield Violation(
                        crd.manifest,
                        f"{crd.kind}: version {name!r} is in both {other} and {label}",
                        path=("metadata", "labels", label),
                    )


@check("contract-label-every-served")
def check_contract_label_every_served(context: Context) -> Iterator[Violation]:
    """GEN-07: Each served API version is listed under a contract version."""
    for crd in context.crds():
        labels = _contract_labels(crd)
        named = {name for label in labels for name in crd.labelled(label)}
        for version in crd.versions:
            if labels and version.served and version.name not in named:
                yield Violation(
                    crd.manifest,
                    f"{crd.kind}: version {version.name!r} is served, but not in the label of "
                    "a contract that core knows",
                    path=crd.schema_path(version.name)[:3],
                )


@check("contract-label-alike")
def check_contract_label_alike(context: Context) -> Iterator[Violation]:
    """GEN-08: If any of the provider's CRDs has both contract versions' labels, all of them do."""
    by_crd = {crd: set(_contract_labels(crd)) for crd in context.crds()}
    # A release of core looks for its contract's label on every kind, and fails if it is missing.
    every = set().union(*by_crd.values())
    for crd, labels in by_crd.items():
        if labels and labels < every:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: label {', '.join(sorted(every - labels))} is missing, "
                "which other CRDs of the provider have",
                path=("metadata", "labels"),
            )


@check("metadata-agrees-with-labels", KnownContracts)
def check_metadata_agrees_with_labels(
    context: Context, params: KnownContracts
) -> Iterator[Violation]:
    """GEN-09: The release's series has the newest contract version that the labels list.

    Without a version of the release, the newest series is checked.
    """
    labelled = {
        label.rpartition("/")[2] for crd in context.crds() for label in _contract_labels(crd)
    }
    # In the order of the parameter, which is oldest first. Contracts unknown to the rule are
    # ignored.
    known = [contract for contract in params.contracts if contract in labelled]
    for metadata in list_metadata(context.bundle) if known else ():
        listed = read_series(metadata)
        series = find_series(context.bundle, metadata) or max(listed, default=None)
        # CC-06 reports a release without a series.
        if series is None or series not in listed:
            continue
        number, contract = listed[series]
        # CC-07 reports contract versions that cannot be installed.
        if contract in params.contracts and contract != known[-1]:
            yield Violation(
                metadata,
                f"series {series} has contract {contract!r}, but the CRDs are labelled "
                f"{known[-1]!r}",
                path=("releaseSeries", number, "contract"),
                when="clusterctl {core} installs the release",
                # Core finds its own contract's label even next to a newer one.
                harmless=contract in labelled,
                only_contract=contract,
            )


def _order(name: str) -> tuple[int, int, int]:
    """Return the sort key of a version; names of another form come first."""
    return rank_api_version(name) if _VERSION.fullmatch(name) else (-1, 0, 0)


def _contract_labels(crd: Crd) -> list[str]:
    return [
        key for key in sorted(crd.labels) if _CONTRACT_LABEL.fullmatch(key) and crd.labelled(key)
    ]


_SHOWN = 8
"""Maximum number of paths in one message."""


@dataclass(frozen=True, slots=True)
class Direction:
    """The direction in which the stored version is compared with other served versions."""

    stored: bool
    """If true, report the stored version's fields that other served versions lose. If false, report
    other versions' fields that the stored version loses.
    """


@check("crd-lossy-versions", Direction)
def check_crd_lossy_versions(context: Context, params: Direction) -> Iterator[Violation]:
    """CRD-20, CRD-21: Without conversion, both API versions declare the same spec fields."""
    for crd in context.crds():
        if crd.manifest.mapping("spec", "conversion").get("strategy", "None") != "None":
            continue
        stored = next((version for version in crd.versions if version.storage), None)
        for version in crd.versions:
            # Without conversion, the API server only changes apiVersion and prunes with the served
            # schema.
            if stored is None or not version.served or version is stored:
                continue
            source, target = (stored, version) if params.stored else (version, stored)
            yield from _lost(crd, source, target)


def _lost(crd: Crd, source: CrdVersion, target: CrdVersion) -> Iterator[Violation]:
    specs = [mapping_of(each.schema, "properties", "spec") for each in (source, target)]
    paths = list(_only_in(specs[0], specs[1], "spec"))
    if paths:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        yield Violation(
            crd.manifest,
            f"{crd.kind}: {source.name} has {', '.join(paths[:_SHOWN])}{more}, which {target.name} "
            "does not have in that form, but nothing converts them",
            path=crd.schema_path(source.name, paths[0]),
        )


def _only_in(source: Any, target: Any, path: str) -> Iterator[str]:
    """Yield the topmost fields of ``source`` that ``target`` drops or cannot hold."""
    if not _holds(source, target):
        yield path
        return
    open_ = mapping_of(target).get(OPEN) is True
    others = mapping_of(target, "properties")
    for name, part in mapping_of(source, "properties").items():
        if isinstance(others.get(name), Mapping):
            yield from _only_in(mapping_of(part), others[name], f"{path}.{name}")
        elif not open_ and "additionalProperties" not in target:
            yield f"{path}.{name}"
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        parts = [mapping_of(each, key) for each in (source, target)]
        if all(parts):
            yield from _only_in(parts[0], parts[1], path + mark)


def _holds(source: Mapping[str, Any], target: Mapping[str, Any]) -> bool:
    """Return whether ``target`` accepts values of the type that ``source`` has, unchanged."""
    forms = {describe(source), describe(target)}
    # A map and an object with fixed fields have the same JSON type, but prune different keys.
    return len(forms) == 1 or (
        forms != {"map", "object"} and read_types(source) <= read_types(target)
    )


@check("schema-plain-names")
def check_schema_plain_names(context: Context) -> Iterator[Violation]:
    """CRD-22: Property names contain no dot."""
    for crd, version in context.versions():
        for path, schema in walk_schema(version.schema):
            for name in mapping_of(schema, "properties"):
                if "." in str(name):
                    yield Violation(
                        crd.manifest,
                        f"{crd.kind} {version.name}: {path or 'the object'} has a property "
                        f"named {name!r}",
                        path=crd.schema_path(version.name, path),
                    )


@check("crd-conversion")
def check_crd_conversion(context: Context) -> Iterator[Violation]:
    """CRD-15: API versions with different schemas are converted."""
    for crd in context.crds():
        served = [version for version in crd.versions if version.served]
        strategy = crd.manifest.mapping("spec", "conversion").get("strategy", "None")
        if strategy != "None" or len(served) < 2:
            continue
        first, *others = (_plain(version.schema) for version in served)
        if any(shape != first for shape in others):
            names = ", ".join(version.name for version in served)
            yield Violation(
                crd.manifest,
                f"{crd.kind}: {names} differ in shape, but nothing converts them",
                path=("spec", "conversion"),
            )


def _plain(schema: Any) -> Any:
    """Return a schema without its descriptions."""
    if isinstance(schema, Mapping):
        return {
            key: _plain(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
        }
    return [_plain(item) for item in schema] if isinstance(schema, list) else schema
