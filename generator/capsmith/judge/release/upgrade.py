"""Check an upgrade: find what is lost when clusterctl replaces an installed release.

clusterctl deletes the old components except CRDs and the Namespace, then creates the new ones.
Existing objects, such as CRDs, are updated with a merge patch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from capsmith.contract.model import Keyword, Rule
from capsmith.judge.release.judge import read_series_contract
from capsmith.judge.release.model import Breach, ReleaseViolation, VerifyOptions
from capsmith.judge.release.release import ReleaseFiles
from capsmith.judge.release.schema_changes import (
    PRUNED,
    TYPE,
    TYPE_OF_ALL,
    SchemaChange,
    find_schema_changes,
)
from capsmith.judge.release.targets import Core, choose, filter_installable
from capsmith.manifests.bundle import NONE, Artefact, Bundle, find_roles, split
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of, texts_of

_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_DELETED_BY_NAME = (
    *("CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding"),
    *("Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass"),
    "VolumeAttachment",
)
"""Kinds of which clusterctl deletes only objects whose names begin with the namespace.

It takes other cluster-scoped kinds, such as admission policies, for namespaced ones, and deletes
all of the provider's.
"""


def judge_upgrade(
    old: ReleaseFiles,
    new: ReleaseFiles,
    rules: Mapping[str, Rule],
    keywords: Mapping[str, Keyword],
    options: VerifyOptions,
) -> tuple[ReleaseViolation, ...]:
    """Return the violations that occur when ``new`` replaces ``old``, including advice.

    They are sorted by file and position.  ``keywords`` are the schema keywords to compare.
    """
    before, after = _whole(old, options), _whole(new, options)
    installed = {id(manifest) for manifest in before.manifests}
    found = []
    cores = filter_installable(options.cores, read_series_contract(after))
    for breach in _losses(before, after, cores, keywords):
        release = old if id(breach.manifest) in installed else new
        location = release.locate(breach.manifest, breach.path)
        found.append(ReleaseViolation.of(rules[breach.rule], breach, location, cores))
    return tuple(sorted(dict.fromkeys(found), key=lambda violation: violation.sort_key))


def _whole(release: ReleaseFiles, options: VerifyOptions) -> Bundle:
    """Return all objects of a release as one bundle, even for several providers, with roles."""
    bundles = list(split(release.manifests, {}))
    manifests = {id(m): m for bundle in bundles for m in bundle.manifests}
    whole = Bundle(tuple(manifests.values()), {})
    return replace(whole, roles=find_roles(whole, options.roles))


def _losses(
    old: Bundle, new: Bundle, cores: tuple[Core, ...], keywords: Mapping[str, Keyword]
) -> Iterator[Breach]:
    after = {crd.manifest.name: crd for crd in new.crds}
    # clusterctl installs Services and what refers to them into one namespace, whatever they say.
    services = {manifest.name for manifest in new.of("Service")}
    for crd in old.crds:
        successor = after.get(crd.manifest.name)
        if successor is None:
            yield Breach(
                "UP-04", crd.manifest, f"{crd.kind}: the new release does not have this CRD"
            )
            continue
        yield from _of_versions(crd, successor)
        yield from _of_schemas(crd, successor, keywords)
        yield from _of_storage(crd, successor, keywords)
        yield from _of_new_versions(crd, successor, keywords)
        yield from _of_subresources(crd, successor)
        yield from _of_selectable_fields(crd, successor)
        yield from _of_conversion(crd, successor, services)
        yield from _of_labels(crd, successor, cores)
    yield from _of_names(old, new)
    yield from _of_metadata(old, new)
    yield from _left_behind(old, new)
    yield from _of_webhooks(old, new, services)


def _of_versions(old: Crd, new: Crd) -> Iterator[Breach]:
    names = {version.name for version in new.versions}
    served = {version.name for version in new.versions if version.served}
    for version in old.versions:
        # The API server refuses a CRD that lacks a version in `status.storedVersions`.
        if version.storage and version.name not in names:
            message = f"{new.kind}: {version.name} is stored by the old release, but removed"
            yield Breach("UP-01", new.manifest, message, ("spec", "versions"))
            continue
        if version.served and version.name not in served:
            message = f"{new.kind}: {version.name} is no longer served"
            path = new.schema_path(version.name)[:3] or ("spec", "versions")
            yield Breach("UP-02", new.manifest, message, path)
        if version.name not in names:
            message = (
                f"{new.kind}: {version.name} is removed, but may be stored by an older release"
            )
            yield Breach("UP-22", new.manifest, message, ("spec", "versions"))
    for name, value, other, path in (
        ("scope", old.scope, new.scope, ("spec", "scope")),
        ("kind", old.kind, new.kind, ("spec", "names", "kind")),
    ):
        if value != other:
            message = f"{new.kind}: the {name} was {value!r} and is now {other!r}"
            yield Breach("UP-03", new.manifest, message, path)


def _of_schemas(old: Crd, new: Crd, keywords: Mapping[str, Keyword]) -> Iterator[Breach]:
    """Yield the schema changes of versions that both CRDs have; each only in the first version."""
    after = {version.name: version.schema for version in new.versions}
    seen: set[SchemaChange] = set()
    for version in old.versions:
        schema = after.get(version.name)
        for change in find_schema_changes(version.schema, schema, keywords) if schema else ():
            # Versions often share their fields, and repeating a change for each would flood the
            # report.
            if change not in seen:
                seen.add(change)
                field = change.field or _WHOLE
                message = f"{new.kind} {version.name}: {field} {change.message}"
                place = new.schema_path(version.name, change.field)
                yield Breach(change.rule, new.manifest, message, place)


_WHOLE = "the object"
_SHOWN = 8
"""Maximum number of fields in one message."""


def _of_storage(old: Crd, new: Crd, keywords: Mapping[str, Keyword]) -> Iterator[Breach]:
    """Yield what objects lose when they are stored in another version and nothing converts them."""
    before, after = _find_stored(old), _find_stored(new)
    names = {version.name for version in new.versions}
    # A release without the old version cannot be installed (UP-01).
    if before is None or after is None or before.name == after.name or before.name not in names:
        return
    if _is_converted(old, new):
        return
    changes = list(find_schema_changes(before.schema, after.schema, keywords))
    yield from _find_lost("UP-17", new, before, after, changes)
    for change in changes:
        if change.rule in ("UP-05", "UP-06"):
            field = change.field or _WHOLE
            message = f"{new.kind} {after.name}: {field} {change.message}, unlike {before.name}"
            place = new.schema_path(after.name, change.field)
            yield Breach(change.rule, new.manifest, message, place)


def _of_new_versions(old: Crd, new: Crd, keywords: Mapping[str, Keyword]) -> Iterator[Breach]:
    """Yield what stored objects lose when they are written in a version that is served since now.

    The version that is stored now is none of these: it loses values without such a write.
    """
    before, after = _find_stored(old), _find_stored(new)
    if before is None or after is None or _is_converted(old, new):
        return
    former = {version.name for version in old.versions if version.served}
    for version in new.versions:
        if version.served and version.name not in former | {before.name, after.name}:
            changes = list(find_schema_changes(before.schema, version.schema, keywords))
            yield from _find_lost("UP-25", new, before, version, changes)


def _find_lost(
    rule: str, crd: Crd, before: CrdVersion, after: CrdVersion, changes: list[SchemaChange]
) -> Iterator[Breach]:
    """Yield the fields of a stored version that another one does not have in the same form."""
    lost = [change.field for change in changes if change.rule in (TYPE, TYPE_OF_ALL, PRUNED)]
    if not lost:
        return
    more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
    message = (
        f"{crd.kind}: objects are stored in {before.name} with {', '.join(lost[:_SHOWN])}{more}"
        f", which {after.name} does not have in that form, but nothing converts them"
    )
    yield Breach(rule, crd.manifest, message, crd.schema_path(after.name)[:3])


def _merge_conversion(old: Crd, new: Crd) -> Mapping[str, Any]:
    """Return the conversion after the merge patch, which keeps what the new release leaves out."""
    before, after = (crd.manifest.mapping("spec", "conversion") for crd in (old, new))
    client: dict[str, Any] = {
        **mapping_of(before, "webhook", "clientConfig"),
        **mapping_of(after, "webhook", "clientConfig"),
    }
    webhook = {"webhook": {"clientConfig": client}} if client else {}
    return {**before, **after, **webhook}


def _is_converted(old: Crd, new: Crd) -> bool:
    return text_of(_merge_conversion(old, new), "strategy") not in ("", "None")


def _find_stored(crd: Crd) -> CrdVersion | None:
    return next((version for version in crd.versions if version.storage), None)


def _of_subresources(old: Crd, new: Crd) -> Iterator[Breach]:
    after = {version.name: version for version in new.versions}
    for version in old.versions:
        successor = after.get(version.name)
        if successor is None or not (version.served and successor.served):
            continue
        place = new.schema_path(version.name)[:3]
        for name, rule in (("status", "UP-19"), ("scale", "UP-21")):
            if name in version.subresources and name not in successor.subresources:
                message = f"{new.kind} {version.name}: subresource {name} was removed"
                yield Breach(rule, new.manifest, message, place)
        scales = [mapping_of(each.subresources, "scale") for each in (version, successor)]
        if all(scales) and scales[0] != scales[1]:
            message = f"{new.kind} {version.name}: scale reads or writes other fields than before"
            yield Breach("UP-21", new.manifest, message, (*place, "subresources", "scale"))


def _of_selectable_fields(old: Crd, new: Crd) -> Iterator[Breach]:
    after = {version.name: version for version in new.versions if version.served}
    for version in old.versions:
        successor = after.get(version.name)
        if successor is None or not version.served:
            continue
        for path in version.selectable:
            if path not in successor.selectable:
                message = f"{new.kind} {version.name}: {path} is no longer selectable"
                place = new.schema_path(version.name)[:3]
                yield Breach("UP-23", new.manifest, message, place)


def _of_conversion(old: Crd, new: Crd, services: set[str]) -> Iterator[Breach]:
    before, after = (crd.manifest.mapping("spec", "conversion") for crd in (old, new))
    merged = _merge_conversion(old, new)
    path = ("spec", "conversion")
    # The merge patch would keep the old webhook together with strategy None, which the API server
    # refuses.
    was_webhook = before.get("strategy") == "Webhook"
    if was_webhook and after.get("strategy") == "None" and "webhook" not in after:
        message = f"{new.kind}: the webhook of the old release remains despite strategy None"
        yield Breach("UP-13", new.manifest, message, (*path, "strategy"))
        return
    client = mapping_of(merged, "webhook", "clientConfig")
    if was_webhook and "url" in client and "service" in client:
        message = f"{new.kind}: service and url of the webhook remain, one from the old release"
        yield Breach("UP-13", new.manifest, message, (*path, "webhook", "clientConfig"))
        return
    name = text_of(client, "service", "name")
    is_called = merged.get("strategy") == "Webhook" and len(new.versions) > 1
    if is_called and "service" in client and name not in services:
        message = f"{new.kind}: Service {name} converts objects, but does not exist"
        yield Breach("UP-14", new.manifest, message, path)


def _of_names(old: Bundle, new: Bundle) -> Iterator[Breach]:
    """Yield names that CRDs which clusterctl leaves do not give to a new CRD."""
    known = {crd.manifest.name for crd in old.crds}
    kept = {crd.manifest.name for crd in new.crds}
    left = [crd for crd in old.crds if crd.manifest.name not in kept]
    for crd in new.crds:
        if crd.manifest.name in known:
            continue
        for former in left:
            pairs = zip(_list_names(former), _list_names(crd), strict=True)
            taken = sorted({name for before, after in pairs for name in before & after})
            if former.group == crd.group and taken:
                message = (
                    f"{crd.kind}: {former.manifest.name}, which stays, has the name"
                    f"{'s' if len(taken) > 1 else ''} {', '.join(taken)}, too"
                )
                yield Breach("UP-24", crd.manifest, message, ("spec", "names"))


def _list_names(crd: Crd) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of a CRD's resources, and those of its kinds, with the defaults."""
    names = crd.manifest.mapping("spec", "names")
    singular = text_of(names, "singular") or crd.kind.lower()
    resources = {crd.plural, singular, *texts_of(names, "shortNames")}
    kinds = {crd.kind, text_of(names, "listKind") or f"{crd.kind}List"}
    return frozenset(resources - {""}), frozenset(kinds - {""})


def _of_labels(old: Crd, new: Crd, cores: tuple[Core, ...]) -> Iterator[Breach]:
    if new.role in ("", NONE):
        return
    # A merge patch keeps labels that the new release leaves out, so core chooses from both.
    metadata = {**new.manifest.mapping("metadata"), "labels": {**old.labels, **new.labels}}
    patched = replace(
        new,
        manifest=replace(new.manifest, document={**new.manifest.document, "metadata": metadata}),
    )
    before, served = (
        {version.name for version in crd.versions if version.served} for crd in (old, new)
    )
    lost: dict[tuple[str, str], list[Core]] = {}
    for core in cores:
        chosen = choose(patched, core)
        if choose(old, core).version in before and chosen.version not in served:
            lost.setdefault(chosen, []).append(core)
    for (contract, version), affected in lost.items():
        message = f"{new.kind}: label {contract} selects {version!r}, which is no longer served"
        yield Breach("UP-10", new.manifest, message, ("metadata", "labels"), tuple(affected))


def _of_metadata(old: Bundle, new: Bundle) -> Iterator[Breach]:
    before: dict[tuple[int, int], set[str]] = {}
    for metadata in old.files(Artefact.METADATA):
        for series, contract in _series(metadata):
            before.setdefault(series, set()).add(contract)
    for metadata in new.files(Artefact.METADATA):
        after = dict(_series(metadata))
        for series, contract in after.items():
            known = sorted(before.get(series, {contract}))
            if contract not in known:
                name = ".".join(map(str, series))
                message = f"series {name} had contract {', '.join(known)} and now has {contract}"
                yield Breach("UP-11", metadata, message, ("releaseSeries",))
        # Several providers have their own series; which of them is installed is known only if there
        # is one.
        newest = max(before, default=None) if len(old.files(Artefact.METADATA)) == 1 else None
        if newest is not None and newest not in after:
            message = f"series {newest[0]}.{newest[1]} of the old release is missing"
            yield Breach("UP-12", metadata, message, ("releaseSeries",))


def _series(metadata: Manifest) -> Iterator[tuple[tuple[int, int], str]]:
    for entry in list_of(metadata.document, "releaseSeries"):
        major, minor = mapping_of(entry).get("major"), mapping_of(entry).get("minor")
        if isinstance(major, int) and isinstance(minor, int):
            yield (major, minor), text_of(entry, "contract")


def _left_behind(old: Bundle, new: Bundle) -> Iterator[Breach]:
    namespaces = [manifest.name for manifest in old.of("Namespace")]
    kept = {(manifest.kind, manifest.name) for manifest in new.objects}
    for manifest in old.of(*_DELETED_BY_NAME):
        is_deleted = any(manifest.name.startswith(f"{name}-") for name in namespaces)
        if namespaces and not is_deleted and (manifest.kind, manifest.name) not in kept:
            yield Breach(
                "UP-15", manifest, f"{manifest} remains after the upgrade", ("metadata", "name")
            )


def _of_webhooks(old: Bundle, new: Bundle, services: set[str]) -> Iterator[Breach]:
    resources: dict[str, set[str]] = {}
    for crd in (*old.crds, *new.crds):  # clusterctl keeps those of the old release
        resources.setdefault(crd.group, set()).add(crd.plural)
    for manifest in new.of(*_HOOKS):
        for number, hook in enumerate(manifest.listing("webhooks")):
            service: Mapping[str, Any] = mapping_of(hook, "clientConfig", "service")
            name = text_of(service, "name")
            # With Ignore, a webhook without a server is skipped; by default, requests fail.
            ignored = text_of(hook, "failurePolicy") == "Ignore"
            if service and not ignored and name not in services and _matches(hook, resources):
                message = f"{manifest}: Service {name} is not in the release"
                yield Breach("UP-16", manifest, message, ("webhooks", number, "clientConfig"))


def _matches(hook: Any, resources: Mapping[str, Set[str]]) -> bool:
    """Return whether a webhook is called for any request.

    ``resources`` are those of the CRDs, by their groups; what other groups have is unknown.
    """
    for rule in list_of(hook, "rules"):
        if not texts_of(rule, "operations") or not texts_of(rule, "apiVersions"):
            continue
        names = {name.partition("/")[0] for name in texts_of(rule, "resources")} - {""}
        for group in texts_of(rule, "apiGroups"):
            if names and (group not in resources or names & {"*", *resources[group]}):
                return True
    return False
