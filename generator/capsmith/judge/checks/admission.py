"""Check that the API server calls the webhooks and admission policies of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capsmith.judge.checks.registry import Context, Violation, check
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import Manifest, has_variable, list_of, text_of, texts_of
from capsmith.yamldoc.compose import Path

_HOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
_ANY = "*"


@check("admission-rules", is_shared=True)
def check_admission_rules(context: Context) -> Iterator[Violation]:
    """CC-47: Each rule matches objects of the kinds that it seems to be for."""
    for manifest in context.bundle.of(*_HOOKS, *_POLICIES):
        for path, rule, is_exact in _rules(manifest):
            for number, resource in enumerate(texts_of(rule, "resources")):
                plural = resource.partition("/")[0]
                if has_variable(plural):
                    continue
                why = _unserved(context.bundle, rule, plural, is_exact)
                if why:
                    message = f"{manifest}: {why}"
                    yield Violation(manifest, message, path=(*path, "apiVersions"))
                why = _unknown(context.bundle, rule, plural)
                if why:
                    message = f"{manifest}: {why}"
                    yield Violation(manifest, message, path=(*path, "resources", number))


def _rules(manifest: Manifest) -> Iterator[tuple[Path, Mapping[str, Any], bool]]:
    """Yield the rules that say for which requests a webhook or policy is called.

    With each is its path, and whether it matches only requests in its own API versions.
    """
    for number, hook in enumerate(manifest.listing("webhooks")):
        for index, rule in enumerate(list_of(hook, "rules")):
            yield ("webhooks", number, "rules", index), rule, _is_exact(hook)
    path = ("spec", "matchConstraints", "resourceRules")
    is_exact = _is_exact(manifest.mapping(*path[:-1]))
    for index, rule in enumerate(manifest.listing(*path)):
        yield (*path, index), rule, is_exact


def _is_exact(parent: Any) -> bool:
    return text_of(parent, "matchPolicy") == "Exact"


def _unserved(bundle: Bundle, rule: Mapping[str, Any], plural: str, is_exact: bool) -> str:
    """Return that a rule has no API version of a resource, or an empty string."""
    versions = texts_of(rule, "apiVersions")
    if not versions or any(version == _ANY or has_variable(version) for version in versions):
        return ""
    found = [
        version
        for crd in _crds_of(bundle, rule)
        if crd.plural == plural
        for version in crd.versions
    ]
    served = {version.name for version in found if version.served}
    # The API server converts objects for the rule to each version of the CRD, served or not.
    matched = served if is_exact else {version.name for version in found}
    if not served or matched & set(versions):
        return ""
    return f"{plural} are not served as {', '.join(versions)}, but as {', '.join(sorted(served))}"


def _unknown(bundle: Bundle, rule: Mapping[str, Any], plural: str) -> str:
    """Return that a rule has another name of a kind than its plural, or an empty string."""
    crds = _crds_of(bundle, rule)
    # Groups are shared, so any other name may be a resource of another provider.
    if any(crd.plural == plural for crd in crds):
        return ""
    found = next((crd for crd in crds if plural in _other_names(crd)), None)
    return f"no resource is called {plural}; the plural is {found.plural}" if found else ""


def _crds_of(bundle: Bundle, rule: Mapping[str, Any]) -> list[Crd]:
    groups = texts_of(rule, "apiGroups")
    if _ANY in groups:
        return list(bundle.known_crds.values())
    return [crd for group in groups for crd in bundle.crds_in(group)]


def _other_names(crd: Crd) -> set[str]:
    """Return the names of a kind that are no resource."""
    names = crd.manifest.mapping("spec", "names")
    singular = text_of(names, "singular") or crd.kind.lower()
    return {crd.kind, crd.kind.lower(), singular, *texts_of(names, "shortNames")}
