"""Kinds of identities, derived from the key ``credentials``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from capsmith.provider.draft import DraftIdentity
from capsmith.safetext import KindName

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import CredentialsSpec, ProviderSpec

SECRET_REF = "secretRef"
"""The feature of identities that refer to a Secret."""
_DEFAULT_KEYS = ("token",)


class Identity(NamedTuple):
    """A kind of identities and the keys that its Secrets must hold."""

    kind: KindName
    keys: tuple[str, ...]
    """Empty if it refers to no Secret."""
    secret: bool = True
    """Whether it refers to a Secret."""


def draft_identities(spec: ProviderSpec) -> tuple[DraftIdentity, ...]:
    """Return the kinds of identities, in the author's order."""
    return tuple(_identity(path, each) for path, each in spec.identities())


def _identity(path: tuple[str | int, ...], written: str | CredentialsSpec) -> DraftIdentity:
    if isinstance(written, str):
        return DraftIdentity(written, _DEFAULT_KEYS, False, True, {}, path, path)
    secret = written.secret is not False
    return DraftIdentity(
        kind=written.kind,
        keys=written.keys or (_DEFAULT_KEYS if secret else ()),
        namespaced=written.namespaced or False,
        secret=secret,
        fields=written.spec or {},
        path=path,
        kind_path=(*path, "kind"),
    )
