"""Check additional watches: a changed object must lead to the objects to enqueue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider_yaml.field_schemas import convert_field
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import WatchSpec

_CLUSTER_SCOPED = ("GlobalIPPool",)
"""Roles whose kinds are cluster-scoped."""
_NEEDED = {"field": "path", "label": "label"}
"""Kind of lookup -> key that it requires."""


def check_watches(kind: DraftKind, draft: Draft, reporter: PathReporter) -> None:
    """Report watches that cannot find objects of ``kind`` to enqueue, and duplicate watches.

    Ids: ``watch-own-kind``, ``watch-by``, ``watch-path-unknown``, ``watch-scope``, ``watch-plural``
    and ``spec-repeated``.
    """
    seen: set[tuple[str | None, ...]] = set()
    plurals: dict[tuple[str, str], tuple[str, str | None]] = {}
    for index, watch in enumerate(kind.spec.watches or ()):
        here = reporter.at("watches", index)
        group = watch.api_version.rpartition("/")[0]
        identity = (group, watch.kind, watch.by, watch.path, watch.label)
        if identity in seen:
            here.add_error("spec-repeated", "duplicate watch", "Remove it.")
        seen.add(identity)
        if (group, watch.kind) == (kind.group, kind.name):
            message = f"changes of {quote(kind.name)} already trigger its reconcile"
            here.add_error("watch-own-kind", message, "Remove this watch.", "kind")
        # All watches of a kind share one informer, so they must agree on plural and scope.
        names = (watch.resource or draft.find_plural(group, watch.kind), watch.scope)
        _check_plural(watch, names, plurals.setdefault((group, watch.kind), names), here)
        _check_by(watch, here)
        _check_scope(watch, kind, here)
        if watch.by == "field" and watch.path:
            _check_path(watch.path, kind, here)


def _check_plural(
    watch: WatchSpec,
    names: tuple[str, str | None],
    first: tuple[str, str | None],
    here: PathReporter,
) -> None:
    if len(names[0]) > DnsLabel.limit:
        message = f"the plural of {quote(watch.kind)} would have more than {DnsLabel.limit}"
        here.add_error(
            "watch-plural", f"{message} characters", "Set it explicitly: `resource: …`.", "kind"
        )
    elif names != first:
        message = f"{quote(watch.kind)} has a different `resource` or `scope` above"
        here.add_error("watch-plural", message, "Use the same values in each watch of the kind.")


def _check_by(watch: WatchSpec, here: PathReporter) -> None:
    needed = _NEEDED.get(watch.by)
    for key in ("path", "label"):
        is_given = getattr(watch, key) is not None
        if key == needed and not is_given:
            message = f"`by: {watch.by}` requires `{key}`"
            hint = (
                "Add the field, such as `path: spec.sshKeyRef.name`."
                if key == "path"
                else "Add the label, such as `label: acme.io/machine`."
            )
            here.add_error("watch-by", message, hint, "by")
        elif key != needed and is_given:
            message = f"`by: {watch.by}` does not allow `{key}`"
            here.add_error_at_key("watch-by", message, "Remove it.", key)


def _check_scope(watch: WatchSpec, kind: DraftKind, here: PathReporter) -> None:
    """Report ``watch-scope`` if a watched object's scope rules out the chosen lookup."""
    is_global = kind.spec.implements in _CLUSTER_SCOPED
    if watch.scope == "Cluster" and not is_global and watch.by != "field":
        message = (
            f"`by: {watch.by}` cannot find {quote(kind.name)} objects from a cluster-scoped object"
        )
        here.add_error("watch-scope", message, "Use `by: field`.", "by")
    if watch.scope != "Cluster" and is_global and watch.by == "field":
        message = f"{quote(kind.name)} is cluster-scoped: its field cannot name a namespaced object"
        here.add_error("watch-scope", message, "Use `by: ownerReference` or `by: label`.", "by")


def _check_path(path: str, kind: DraftKind, here: PathReporter) -> None:
    """Follow a path through objects and list items to a string, and report a dead end."""
    _, *steps = path.split(".")
    fields: Mapping[str, Any] = {
        name: convert_field(field) for name, field in (kind.spec.spec or {}).items()
    }
    schema: Mapping[str, Any] = {"type": "object", "properties": fields}
    way = "spec"
    for step in steps:
        known = schema.get("properties", {})
        if step not in known:
            message = f"{way} of {quote(kind.name)} has no field {quote(step)}"
            here.add_error("watch-path-unknown", message, suggest(step, known), "path")
            return
        way = f"{way}.{step}"
        schema = known[step]
        # A path leads through all items of a list, each of which can name an object.
        while schema.get("type") == "array":
            schema = schema.get("items", {})
    if schema.get("type") != "string":
        message = f"{way} is not a string, so it cannot name an object"
        here.add_error("watch-path-unknown", message, "Use the field that holds the name.", "path")
