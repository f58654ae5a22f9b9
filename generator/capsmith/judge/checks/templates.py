"""Check that templates exist, are well-formed and immutable, and work with core's topology."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from capsmith.cel_text import is_transition
from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.crds import Crd, describe, find_field, is_open, is_required, walk_schema
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of, texts_of

_SPEC = "spec.template.spec"
_WHOLE = re.compile(r"\(?(self\s*==\s*oldSelf|oldSelf\s*==\s*self)\)?")
"""A CEL rule that refuses every change of its field."""


@check("template-of-object")
def check_template_of_object(context: Context) -> Iterator[Violation]:
    """IM-12, IC-14, MP-18, BC-07, CP-28: Each kind has a template kind.

    A pool's machine kind (``<X>MachinePoolMachine`` of ``<X>MachinePool``) needs none.
    """
    kinds = {(crd.group, crd.kind) for crd in context.bundle.crds}
    lacking = [crd for crd in context.crds() if (crd.group, f"{crd.kind}Template") not in kinds]
    for crd in lacking:
        if context.bundle.is_pool_machine(crd):
            continue
        yield Violation(
            crd.manifest,
            f"{crd.kind}: no kind {crd.kind}Template in {crd.group}",
            # Another kind with the role can be used; a controller may create this one.
            harmless=len(lacking) < len(context.crds()),
            path=("spec", "names", "kind"),
        )


@check("object-of-template")
def check_object_of_template(context: Context) -> Iterator[Violation]:
    """CRD-07, ER-01: A template's kind has a matching object kind that serves the same versions."""
    objects = {(crd.group, crd.kind): crd for crd in context.bundle.crds}
    for crd in context.crds():
        kind = crd.kind.removesuffix("Template")
        made = objects.get((crd.group, kind))
        if made is None:
            yield Violation(
                crd.manifest,
                f"{crd.kind}: no kind {kind} in {crd.group}",
                path=("spec", "names", "kind"),
            )
            continue
        served = {version.name for version in made.versions if version.served}
        for version in crd.versions:
            if version.served and version.name not in served:
                yield Violation(
                    crd.manifest,
                    f"{crd.kind} serves {version.name}, which {kind} does not serve",
                    path=crd.schema_path(version.name)[:3],
                )


@check("template-shape")
def check_template_shape(context: Context) -> Iterator[Violation]:
    """CRD-08, ER-02: Templates have the fields spec.template.{metadata, spec}."""
    for crd, version in context.versions():
        where = f"{crd.kind} {version.name}"
        for path in (_SPEC, "spec.template.metadata"):
            schema = find_field(version.schema, path)
            if schema is None:
                if path == _SPEC and not is_open(version.schema, path):
                    yield Violation(
                        crd.manifest,
                        f"{where}: {path} is not declared; expected object",
                        path=crd.schema_path(version.name, path),
                    )
            elif describe(schema) not in {"object", "map"}:
                yield Violation(
                    crd.manifest,
                    f"{where}: {path} is {describe(schema)}; expected object",
                    path=crd.schema_path(version.name, path),
                )


@dataclass(frozen=True, slots=True)
class ControllerFields:
    """Fields that only a controller can set, as paths relative to ``spec``."""

    fields: tuple[str, ...]


@check("template-not-required", ControllerFields)
def check_template_not_required(context: Context, params: ControllerFields) -> Iterator[Violation]:
    """TP-08: A template requires no field that only a controller can set."""
    for crd, version in context.versions():
        for field in params.fields:
            if is_required(version.schema, f"{_SPEC}.{field}"):
                yield Violation(
                    crd.manifest,
                    f"{crd.kind} {version.name}: {_SPEC}.{field} is required, "
                    "but only the controller knows it",
                    path=crd.schema_path(version.name, f"{_SPEC}.{field}"),
                )


@check("template-guard")
def check_template_guard(context: Context) -> Iterator[Violation]:
    """IM-13: Changes to spec.template.spec are refused."""
    # Without a complete provider, the webhook or policy may be in files that were not given.
    if not context.bundle.installs:
        return
    for crd in context.crds():
        if not any(True for _ in _transitions(crd)) and not any(
            _matches(resource_rule, crd)
            for manifest in context.bundle.of(
                "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"
            )
            for resource_rule in _resource_rules(manifest)
        ):
            yield Violation(
                crd.manifest,
                f"{crd.kind}: neither a webhook nor an admission policy checks updates of "
                f"{crd.plural}",
                path=("spec", "names", "plural"),
            )


@dataclass(frozen=True, slots=True)
class DryRun:
    """The annotation on the topology controller's dry runs, for ``template-dry-run``."""

    annotation: str


@check("template-dry-run", DryRun)
def check_template_dry_run(context: Context, params: DryRun) -> Iterator[Violation]:
    """IM-14, MP-21, BC-08: Immutable templates allow the topology controller's dry runs."""
    for crd in context.crds():
        yield from _refused_dry_runs(context, crd)
        for policy in context.bundle.of("ValidatingAdmissionPolicy"):
            if not any(_matches(resource_rule, crd) for resource_rule in _resource_rules(policy)):
                continue
            text = " ".join(_expressions(policy))
            # Whether the expression is correct cannot be decided; that it reads both is a good
            # sign.
            if "oldObject" in text and not ("dryRun" in text and params.annotation in text):
                yield Violation(
                    policy,
                    f"{policy.name} compares {crd.kind} with its old state, but does not allow "
                    f"dry runs with annotation {params.annotation}",
                    path=("spec", "validations"),
                )


def _refused_dry_runs(context: Context, crd: Crd) -> Iterator[Violation]:
    """Yield the violations in each version: rules for whole fields first, then other rules."""
    by_version: dict[str, dict[bool, list[str]]] = {}
    of_contract = {version.name for version in crd.versions_of(context.contract.label)}
    for version, path, rule in _transitions(crd):
        if version not in of_contract:
            continue
        # `self == oldSelf` for the spec refuses any change; other rules refuse only some changes,
        # which a class need not make.
        is_plain = _WHOLE.fullmatch(rule.strip()) is not None
        whole = is_plain and _SPEC.startswith(path)
        text = path if is_plain else f"{path} ({rule!r})"
        by_version.setdefault(version, {}).setdefault(whole, []).append(text)
    for version, found in by_version.items():
        for whole, texts in sorted(found.items(), reverse=True):
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version}: transition rules at {', '.join(texts)} "
                "also refuse dry runs",
                path=crd.schema_path(version, _SPEC),
                when="" if whole else "a ClusterClass changes such a field",
            )


def _transitions(crd: Crd) -> Iterator[tuple[str, str, str]]:
    """Yield the CEL rules that compare with the old object as (version, path, rule)."""
    for version in crd.versions:
        for path, schema in walk_schema(version.schema):
            for rule in list_of(schema, "x-kubernetes-validations"):
                text = text_of(rule, "rule")
                inside = path.startswith(_SPEC) or path in {"spec", "spec.template"}
                if inside and is_transition(text):
                    yield version.name, path, text


def _resource_rules(manifest: Manifest) -> list[object]:
    if manifest.kind == "ValidatingAdmissionPolicy":
        return manifest.listing("spec", "matchConstraints", "resourceRules")
    return [rule for hook in manifest.listing("webhooks") for rule in list_of(hook, "rules")]


def _matches(rule: object, crd: Crd) -> bool:
    data = mapping_of(rule)
    return all(
        set(texts_of(data, key)) & {wanted, "*"}
        for key, wanted in (
            ("apiGroups", crd.group),
            ("resources", crd.plural),
            ("operations", "UPDATE"),
        )
    )


def _expressions(policy: Manifest) -> Iterator[str]:
    for key in ("validations", "matchConditions", "variables"):
        for entry in policy.listing("spec", key):
            yield text_of(entry, "expression")


@dataclass(frozen=True, slots=True)
class References:
    """The field in which a control plane refers to its machines' infrastructure template."""

    path: str
    """Path to the field in the contract version that is checked."""
    other: str
    """Path to the field in the other contract version."""
    keys: tuple[str, ...]
    """The fields of the reference, all of which core writes."""


@check("topology-infrastructure-ref", References)
def check_topology_infrastructure_ref(context: Context, params: References) -> Iterator[Violation]:
    """TP-20, TP-21: The kind declares the reference that core writes."""
    kinds = {(crd.group, crd.kind) for crd in context.bundle.crds}
    for crd, version in context.versions():
        if (crd.group, f"{crd.kind}Template") not in kinds:
            continue
        holder = find_field(version.schema, "spec.machineTemplate")
        if not holder or not mapping_of(holder, "properties"):
            continue
        missing, found, where = _find_undeclared(version.schema, params), "", params.path
        if missing == [params.path] and find_field(version.schema, params.other) is not None:
            found, where = f"; found {params.other}", params.other
        for path in missing:
            yield Violation(
                crd.manifest,
                f"{crd.kind} {version.name}: {path} is not declared{found}",
                path=crd.schema_path(version.name, where),
                when="a ClusterClass has controlPlane.machineInfrastructure",
            )


def _find_undeclared(schema: Any, params: References) -> list[str]:
    """Return the path to the reference, or those to its fields, that a schema does not declare."""
    if not _is_declared(schema, params.path):
        return [params.path]
    paths = [f"{params.path}.{key}" for key in params.keys]
    return [path for path in paths if not _is_declared(schema, path)]


def _is_declared(schema: Any, path: str) -> bool:
    return find_field(schema, path) is not None or is_open(schema, path)
