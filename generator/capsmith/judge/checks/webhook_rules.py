"""Check objects by rules that webhooks of core and kubeadm have in code, as CEL in the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.judge.checks.built_in_pods import list_values
from capsmith.judge.checks.mismatches import Mismatch, has_unknown
from capsmith.manifests.parse import Manifest, mapping_of, text_of


@dataclass(frozen=True, slots=True)
class RulePaths:
    """Where objects of some kinds have the values that a rule is about."""

    kinds: tuple[str, ...]
    path: str
    """Path to the values; ``[]`` stands for each item of a list."""
    versions: tuple[str, ...] = ()
    """API versions of the kinds that have the path; empty if all have it."""


@dataclass(frozen=True, slots=True)
class WebhookRule:
    """A rule of a webhook."""

    at: tuple[RulePaths, ...]
    rule: str
    """CEL expression that is false for a value that the webhook refuses."""
    message: str
    """What is wrong with the value, after its path."""
    below: str = ""
    """Path from each value of ``at`` to the values of the rule."""
    reads: tuple[str, ...] = ()
    """Paths in the value, or in each item of a list, that the rule reads; empty if it reads all.

    The rule is for values that have at least one of them.
    """
    only: str = ""
    """Contract version that all releases of core with the rule choose; empty if all have it."""


def find_broken_webhook_rules(
    manifest: Manifest, rules: Iterable[WebhookRule]
) -> Iterator[Mismatch]:
    """Yield the values of an object that the webhook of its kind refuses, and why."""
    kind, version = manifest.kind, text_of(manifest.document, "apiVersion").rpartition("/")[2]
    for rule in rules:
        for place in rule.at:
            if kind in place.kinds and version in (place.versions or (version,)):
                path = ".".join(filter(None, (place.path, rule.below)))
                for where, value in list_values(manifest.document, path):
                    if _is_broken(rule, value):
                        # A user can change what depends on a variable.
                        yield Mismatch(where, rule.message, where, True, only=rule.only)


def _is_broken(rule: WebhookRule, value: Any) -> bool:
    read = _prune(value, rule.reads)
    if read in (None, {}, []) or has_unknown(read):
        return False
    # Imported here because the CEL library is only needed, and loaded, for rules.
    from capsmith.provider_yaml.cel.compile import is_broken

    return is_broken(rule.rule, read)


def _prune(value: Any, paths: tuple[str, ...]) -> Any:
    """Return the parts of a value, or of each item of a list, that are at one of the paths."""
    if not paths:
        return value
    if isinstance(value, list):
        return [_prune(each, paths) for each in value]
    kept: dict[str, Any] = {}
    below: dict[str, list[str]] = {}
    for path in paths:
        head, _, rest = path.partition(".")
        below.setdefault(head, []).append(rest)
    for name, inner in below.items():
        part = mapping_of(value).get(name)
        if part is not None:
            found = _prune(part, tuple(each for each in inner if each))
            if found or not isinstance(part, Mapping):
                kept[name] = found
    return kept
