"""Derive the kinds of identities from the key ``credentials``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider.draft import DraftIdentity

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import CredentialsSpec, ProviderSpec

_DEFAULT_KEYS = ("token",)


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
