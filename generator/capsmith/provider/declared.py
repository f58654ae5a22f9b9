"""CRDs in which the author declares parts of the contract otherwise than capsmith does."""

from __future__ import annotations

from collections.abc import Iterator

from capsmith.provider.model import ContractFields, Provider, Resource
from capsmith.provider.naming import pluralise


def declared_crds(provider: Provider) -> frozenset[str]:
    """Return the names of the files with such CRDs."""
    return frozenset(
        f"{each.group}_{each.plural}.yaml" for each in provider.resources if _is_declared(each)
    )


def _is_declared(resource: Resource) -> bool:
    return (
        resource.options.transition_rules
        or str(resource.plural) != pluralise(str(resource.kind).lower())
        or any(map(_is_otherwise, _contract_fields(resource)))
    )


def _contract_fields(resource: Resource) -> Iterator[ContractFields]:
    versions = (resource.version_fields or {}).values()
    for written in (resource.contract_fields, *(each.contract_fields for each in versions)):
        if written is not None:
            yield written


def _is_otherwise(written: ContractFields) -> bool:
    fields = (*written.spec.values(), *written.status.values())
    return bool(written.without or fields or written.metadata)
