"""Evaluate a declared rule for a provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import Template

from capsmith.output.migration import migrated_resources
from capsmith.output.rbac.kinds import by_group, plurals, selected_kinds
from capsmith.output.rbac.model import DeclaredRule, Permission
from capsmith.provider.model import Component, Provider, Resource


def granted(rule: DeclaredRule, provider: Provider, component: Component) -> tuple[Permission, ...]:
    """Return the permissions of a component's manager: one, or one for each group of its kinds.

    Empty if the manager does not need them.
    """
    if not _applies(rule, provider, component):
        return ()
    if rule.kinds is not None:
        return tuple(_on_kinds(rule, selected_kinds(rule.kinds, provider, component)))
    values = _values(provider, component)
    permission = Permission(
        _expanded(rule.groups, values),
        rule.resources,
        rule.verbs,
        rule.reason,
        _expanded(rule.names, values),
    )
    return (permission,)


def aggregated(
    rules: Sequence[DeclaredRule], provider: Provider, component: Component
) -> Iterator[Permission]:
    """Yield the permissions on each kind of a component, in the component's order."""
    needed = [rule for rule in rules if _applies(rule, provider, component)]
    for resource in component.resources:
        for rule in needed:
            if rule.kinds and resource in selected_kinds(rule.kinds, provider, component):
                yield from _on_kinds(rule, (resource,))


def _applies(rule: DeclaredRule, provider: Provider, component: Component) -> bool:
    return rule.when is None or bool(selected_kinds(rule.when, provider, component))


def _on_kinds(rule: DeclaredRule, kinds: tuple[Resource, ...]) -> Iterator[Permission]:
    for group, of_group in by_group(kinds).items():
        yield Permission((group,), plurals(of_group, rule.subresource), rule.verbs, rule.reason)


def _values(provider: Provider, component: Component) -> Mapping[str, Sequence[str]]:
    return {
        "bootstrap_group": [
            str(each.bootstrap.group) for each in component.resources if each.bootstrap
        ],
        "migrated_crd": [str(each.crd_name) for each in migrated_resources(component, provider)],
        "namespace": [str(component.namespace)],
        "provider": [str(provider.name)],
    }


def _expanded(texts: Sequence[str], values: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the texts with each value of their placeholders, sorted."""
    found: set[str] = set()
    for text in texts:
        name, *_ = Template(text).get_identifiers() or [""]
        found |= {Template(text).substitute({name: value}) for value in values.get(name, [""])}
    return tuple(sorted(found))
