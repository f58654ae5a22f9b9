"""Check the objects in cluster templates and ClusterClasses against all known CRDs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from capsmith.judge.checks.core_objects import CoreKinds, find_core_mismatches
from capsmith.judge.checks.core_references import ReferenceForm, find_wrong_references
from capsmith.judge.checks.core_refusals import Refusal, find_refusals
from capsmith.judge.checks.mismatches import (
    Mismatch,
    drop_nulls,
    find_metadata_mismatches,
    find_mismatches,
)
from capsmith.judge.checks.name_templates import find_name_faults
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.judge.checks.selectors import find_selector_faults
from capsmith.judge.checks.webhook_rules import WebhookRule, find_broken_webhook_rules
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import (
    Manifest,
    find_value,
    list_of,
    mapping_of,
    may_have_null,
    may_vary,
    text_of,
    texts_of,
)
from capsmith.yamldoc.compose import Path

_SCALED = ("KubeadmControlPlane", "MachineDeployment", "MachinePool", "MachineSet")
"""Kinds of core and kubeadm that have the subresource scale."""


@dataclass(frozen=True, slots=True)
class CoreRules:
    """What is known of Cluster API's own kinds, for the check ``objects-fit``."""

    references: tuple[ReferenceForm, ...]
    """The forms of references, and where the kinds have them."""
    rules: tuple[WebhookRule, ...] = ()
    """What the webhooks of the kinds refuse."""


@dataclass(frozen=True, slots=True)
class CoreFaults:
    """What is wrong with an object of core or kubeadm, for any contract version."""

    decoded: Manifest
    """The object as the API server decodes it."""
    references: tuple[Refusal, ...]
    refusals: tuple[Refusal, ...]
    broken_rules: tuple[Mismatch, ...]
    mismatches: tuple[Mismatch, ...]


@check("objects-fit", CoreRules)
def check_objects_fit(context: Context, params: CoreRules) -> Iterator[Violation]:
    """CC-80: Every object in a cluster template or ClusterClass matches its CRD's schema.

    The same mismatch in several objects of a kind is reported only once.
    """
    first: dict[tuple[str, str], Violation] = {}
    count: Counter[tuple[str, str]] = Counter()
    for manifest, mismatch in _mismatched(context, params):
        where = ".".join(map(str, mismatch.path))
        generic = ".".join("[]" if isinstance(step, int) else step for step in mismatch.path)
        key = (manifest.kind, f"{generic} {mismatch.message}")
        text = f"{manifest}: {where} {mismatch.message}"
        violation = Violation(manifest, text, path=mismatch.path, when=mismatch.when)
        first.setdefault(key, violation)
        count[key] += 1
    for key, problem in first.items():
        more = f" ({count[key]} times)" if count[key] > 1 else ""
        yield replace(problem, message=problem.message + more)


def _mismatched(context: Context, params: CoreRules) -> Iterator[tuple[Manifest, Mismatch]]:
    known = context.bundle.known_crds
    defaulted = set(_defaulted(context))
    for artefact in (Artefact.CLUSTER_TEMPLATE, Artefact.CLUSTER_CLASS):
        for manifest in context.bundle.files(artefact):
            yield from ((manifest, each) for each in find_metadata_mismatches(manifest))
            crd = known.get((manifest.api_group, manifest.kind))
            if crd is None:
                for mismatch in _of_core(context, params, manifest):
                    where = mismatch.varies_with
                    if where is None or not may_vary(manifest, where, mismatch.is_deep):
                        yield manifest, mismatch
                if manifest.kind in _SCALED:
                    yield from _of_scale(manifest, ".spec.replicas")
                continue
            version = _version(crd, manifest)
            if version is None:
                served = ", ".join(each.name for each in crd.versions if each.served)
                api_version = manifest.document["apiVersion"]
                yield manifest, Mismatch(
                    ("apiVersion",), f"{api_version} is not served; use {served}"
                )
                continue
            # CRD-26 reports a version without a schema, and a CRD of an API version that is gone,
            # in which undeclared fields were kept.
            if not version.schema or not crd.manifest.document["apiVersion"].endswith("/v1"):
                continue
            # A defaulting webhook may add missing fields, so required fields count only without
            # one.
            complete = (crd.group, crd.plural) not in defaulted
            mismatches = context.share(
                (check_objects_fit, id(manifest)),
                partial(_find_own_mismatches, version.schema, manifest, complete),
            )
            for mismatch in mismatches:
                where = mismatch.varies_with
                if where is None or not may_vary(manifest, where, mismatch.is_deep):
                    yield manifest, mismatch
            scale = mapping_of(version.subresources, "scale")
            yield from _of_scale(manifest, text_of(scale, "specReplicasPath"))


def _find_own_mismatches(
    schema: Mapping[str, Any], manifest: Manifest, complete: bool
) -> tuple[Mismatch, ...]:
    return tuple(find_mismatches(schema, manifest.document, complete))


def _of_scale(manifest: Manifest, path: str) -> Iterator[tuple[Manifest, Mismatch]]:
    """Yield a negative number of replicas, which the API server refuses whatever the schema."""
    place: Path = tuple(path.removeprefix(".").split("."))
    replicas = find_value(manifest.document, place) if path else None
    if isinstance(replicas, int) and replicas < 0:
        yield manifest, Mismatch(place, f"is {replicas}; it has to be at least 0")


def _of_core(context: Context, params: CoreRules, manifest: Manifest) -> Iterator[Mismatch]:
    """Yield why core or the API server refuses an object of core's or kubeadm's kinds."""
    version = context.contract.version
    faults = context.share(
        (check_objects_fit, id(manifest)),
        lambda: _find_core_faults(manifest, params, context.contract.core_kinds),
    )
    wrong = faults.references
    refused = [*find_refusals(faults.decoded, version), *faults.refusals]
    yield from (Mismatch(path, why) for path, why in wrong)
    yield from (Mismatch(path, why, varies_with=path) for path, why in refused)
    yield from (each for each in faults.broken_rules if each.only in ("", version))
    found = [*wrong, *refused]
    for mismatch in faults.mismatches:
        if mismatch.only not in ("", version):
            continue
        # A reference of another form, or at another place, has no field that this one needs.
        is_required = mismatch.message == "is required"
        if not any(
            mismatch.path[: len(path)] == path or (is_required and mismatch.path[:-1] == path[:-1])
            for path, _ in found
        ):
            yield mismatch


def _find_core_faults(manifest: Manifest, params: CoreRules, kinds: CoreKinds) -> CoreFaults:
    decoded = manifest
    if may_have_null(manifest.document):
        decoded = replace(manifest, document=drop_nulls(manifest.document))
    return CoreFaults(
        decoded=decoded,
        references=tuple(find_wrong_references(decoded, params.references)),
        refusals=(*find_selector_faults(decoded), *find_name_faults(decoded)),
        broken_rules=tuple(find_broken_webhook_rules(decoded, params.rules)),
        mismatches=tuple(find_core_mismatches(decoded, kinds)),
    )


def _version(crd: Crd, manifest: Manifest) -> CrdVersion | None:
    name = text_of(manifest.document, "apiVersion").rpartition("/")[2]
    return next((each for each in crd.versions if each.name == name and each.served), None)


def _defaulted(context: Context) -> Iterator[tuple[str, str]]:
    """Yield group and resource of the kinds whose webhook may add required fields."""
    for manifest in context.bundle.all_of("MutatingWebhookConfiguration"):
        for hook in manifest.listing("webhooks"):
            for rule in list_of(hook, "rules"):
                for group in texts_of(rule, "apiGroups"):
                    yield from ((group, resource) for resource in texts_of(rule, "resources"))
