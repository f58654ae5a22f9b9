"""Kinds of identities that have the shape which ``credentials`` gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capsmith.contract.model import Contract
from capsmith.importing.fields import fields_of
from capsmith.importing.normal import normal
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import mapping_of
from capsmith.provider.model import SECRET_REF

ROLE = "Identity"
_ALLOWED = "allowedNamespaces"


def is_identity(crd: Crd, contract: Contract) -> bool:
    """Return whether the contract's fields of identities are in a CRD as capsmith generates them.

    An identity of another shape is a further kind.
    """
    fields = _spec(crd)
    shape = contract.types[ROLE].spec
    known = [name for name in (SECRET_REF, _ALLOWED) if name in fields]
    if (_ALLOWED in fields) != (crd.scope == "Cluster") or not known:
        return False
    return all(normal(fields[name]) == normal(shape[name].schema) for name in known)


def credentials(crds: Iterable[Crd], with_fields: bool) -> Any:
    """Return the value of the key ``credentials``, or None; the keys of Secrets are in no CRD."""
    entries = [_entry(crd, with_fields) for crd in crds]
    return entries[0] if len(entries) == 1 else entries or None


def _entry(crd: Crd, with_fields: bool) -> Any:
    fields = _spec(crd)
    entry: dict[str, Any] = {"kind": crd.kind}
    if crd.scope != "Cluster":
        entry["namespaced"] = True
    if SECRET_REF not in fields:
        entry["secret"] = False
    spec = fields_of(mapping_of(_schema(crd), "properties", "spec"))
    own = {name: field for name, field in spec.items() if name not in (SECRET_REF, _ALLOWED)}
    if own and with_fields:
        entry["spec"] = own
    return entry if len(entry) > 1 else crd.kind


def _spec(crd: Crd) -> Mapping[str, Any]:
    return mapping_of(_schema(crd), "properties", "spec", "properties")


def _schema(crd: Crd) -> Mapping[str, Any]:
    return next((each.schema for each in crd.versions if each.storage), {})
